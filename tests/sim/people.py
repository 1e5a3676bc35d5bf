"""The people of a simulation and the surfaces they look at: slow ones, ones that leave and come back, impatient ones."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

from adapters.contract.base import Ended, FromApi, LeftOpen, SessionKey, Showing, Ticket
from adapters.contract.notaccepted import NotAccepted
from agent_core.messages import InputMessage
from agent_core.store.errors import StorageUnavailable
from agent_core.turn.events import Verdict
from agent_core.turn.view import BubbleKind, View
from gateway.sessions.hub import Hub
from tests.sim.loop import SimLoop

TEXT = (BubbleKind.NOTE, BubbleKind.INTERIM, BubbleKind.PARTIAL, BubbleKind.ANSWER, BubbleKind.NOTICE)


@dataclass
class Said:
    """One message, and what its person saw of its answer. Outlives every process."""

    key: str
    session: str
    words: str
    at: float
    """Seconds of virtual time at which it is sent."""
    withdraws: bool = False
    attempted: bool = False
    tickets: list[Ticket] = field(default_factory=list[Ticket])
    accepted_at: float = 0.0
    ended: Ended | None = None
    ended_at: float = 0.0
    settled: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """(turn, bubble) → text of bubbles that were shown as final: what was said may not be unsaid."""
    taken_back: dict[tuple[str, str], tuple[str, float]] = field(
        default_factory=dict[tuple[str, str], tuple[str, float]]
    )
    """(turn, bubble) → text of bubbles that were shown and went away whole, and when that was seen: only a thought may."""
    complaints: list[str] = field(default_factory=list[str])
    incarnation: int = 0
    asked: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Questions for approval that the person has read; they answer at once or never."""

    def see(self, turn: str, view: View, before: View | None, now: float) -> None:
        """Note a view of this moment (seconds of virtual time); complain of text that went away or shrank."""
        texts = {bubble.key: bubble.text for bubble in view.bubbles if bubble.kind in TEXT}
        for bubble in before.bubbles if before is not None else ():
            if bubble.kind in TEXT and bubble.text and bubble.key not in texts:
                self.taken_back[turn, bubble.key] = bubble.text, now
            elif bubble.kind in TEXT and not texts.get(bubble.key, "").startswith(bubble.text):
                self.complaints.append(
                    f"bubble {bubble.key} of {turn} was {bubble.text!r} and became {texts.get(bubble.key)!r}"
                )
        for bubble in view.bubbles:
            if bubble.final and bubble.kind in TEXT:
                self.settled.setdefault((turn, bubble.key), bubble.text)


@dataclass
class Person:
    """Sends one message and looks until it has its end."""

    said: Said
    hub: Hub
    loop: SimLoop
    draw: random.Random
    goes_elsewhere: ClassVar[bool] = False
    """There are other gateways, where it is asked again."""

    async def live(self) -> None:
        if self.said.ended is not None:
            return
        await asyncio.sleep(max(0.0, self.said.at - self.loop.now))
        ticket = await self._send()
        if self.said.withdraws and self.draw.random() < 0.7:
            with suppress(StorageUnavailable):  # they are told that it cannot be stored
                await self.hub.stop_message(ticket)
        while self.said.ended is None:
            await self._look(ticket, leaves=self.draw.random() < 0.2)

    async def _send(self) -> Ticket:
        said = self.said
        inbound = FromApi(
            account="sim",
            platform_key=said.key,
            session=SessionKey("sim", "a", said.session),
            input=(InputMessage(said.words),),
            surface="sim",
            memory_scope="sim",
            can_approve=True,
        )
        said.attempted = True
        while True:
            try:
                async with asyncio.timeout(self.draw.choice((None, None, None, 0.002, 0.02))):  # who leaves comes back
                    ticket = await self.hub.accept(inbound)
            except (NotAccepted, TimeoutError):
                await asyncio.sleep(self.draw.choice((0.0, 1.0)))
                continue
            said.tickets.append(ticket)
            said.accepted_at = said.accepted_at or self.loop.now
            return ticket

    async def _look(self, ticket: Ticket, *, leaves: bool) -> None:
        """Follow until the end, or leave early and come back."""
        said = self.said
        last: dict[str, View] = {}
        async with self.hub.follow(ticket) as follower:
            for _ in range(10_000):
                sight = await follower.next(60.0)
                if isinstance(sight, Showing):
                    said.see(sight.turn, sight.view, last.get(sight.turn), self.loop.now)
                    last[sight.turn] = sight.view
                    await self._decide(sight)
                elif isinstance(sight, Ended):
                    said.see(sight.turn, sight.view, last.get(sight.turn), self.loop.now)
                    said.ended, said.ended_at = sight, self.loop.now
                    return
                elif isinstance(sight, LeftOpen) and self.goes_elsewhere:
                    return
                if self.draw.random() < 0.1:
                    await asyncio.sleep(self.draw.choice((0.01, 0.5, 3.0)))
                if leaves and self.draw.random() < 0.2:
                    return
            said.complaints.append("ten thousand sights and no end")

    async def _decide(self, sight: Showing) -> None:
        """Answer a question for approval, most of the time, and a moment later."""
        for bubble in sight.view.bubbles:
            question = (sight.turn, bubble.call)
            if bubble.kind is not BubbleKind.APPROVAL or question in self.said.asked:
                continue
            self.said.asked.add(question)
            if self.draw.random() < 0.7:
                verdict = self.draw.choice((Verdict.GIVEN, Verdict.GIVEN, Verdict.DENIED))
                await asyncio.sleep(self.draw.choice((0.1, 3.0)))
                await self.hub.approve(
                    SessionKey("sim", "a", self.said.session), sight.turn, bubble.call, verdict, "sim"
                )


async def stopper(hub: Hub, session: str, at: float, loop: SimLoop) -> None:
    """Somebody who presses stop."""
    await asyncio.sleep(max(0.0, at - loop.now))
    await hub.stop(SessionKey("sim", "a", session))
