"""What shows that something goes on, and what nobody misses if it fails: text on its way, typing, what the agent does.

It never comes before something that must be seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from adapters.contract.chat import CallFailed, ChatAddress, ChatPort, ContentKind, Doing, Fate
from adapters.contract.pacing import Urgency
from adapters.delivery.parts import DraftPart
from adapters.delivery.reconcile import Part
from agent_core.ports import Clock, steady_ms
from agent_core.turn.view import BubbleKind
from gateway.delivery.calls import COSMETIC_SECONDS, ChatCalls, called
from gateway.delivery.turnoutlet import FirstSigns, TurnOutlet

log = structlog.get_logger("delivery")

DRAFT_REFRESH_SECONDS = 20.0  # drafts fade after 30 s (Bot API, sendMessageDraft)
PAUSE_SECONDS = 5.0
"""After what the agent does could not be shown."""
TROUBLES = 5
"""So many times in a row: then it is not shown in this chat any more."""
_LONG_AGO = -(10**9)


class Doings:
    """What the agent does in each thread, for platforms that show it: beside the deliveries, which never wait for it."""

    def __init__(self, address: ChatAddress, port: ChatPort, clock: Clock, ring: Callable[[], None]) -> None:
        self.refused = False
        """The chat takes no such thing."""
        self._address = address
        self._port = port
        self._clock = clock
        self._ring = ring
        self._shown: dict[str, tuple[Doing, str]] = {}
        """By thread, and for whom."""
        self._telling: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._troubles = 0

    def show(self, running: Mapping[str, tuple[Doing, str]], *, last_word_waits: bool) -> None:
        """Show what has changed. `running` is what is done now; what was said last comes before the word that it was the last."""
        if self.refused or self._telling is not None or self._clock.monotonic() < self._not_before:
            return
        wanted = {thread: (Doing.READY, person) for thread, (_, person) in self._shown.items()} | dict(running)
        for thread, (doing, person) in wanted.items():
            shown = self._shown.get(thread, (Doing.READY, ""))[0]
            if shown is doing:
                if doing is Doing.READY:
                    self._shown.pop(thread, None)
            elif doing is not Doing.READY or not last_word_waits:
                self._telling = asyncio.create_task(self._tell(thread, doing, person))
                return

    async def _tell(self, thread: str, doing: Doing, person: str) -> None:
        try:
            call = self._port.doing(self._address, thread, doing, person)
            await called(call, self._address.platform, COSMETIC_SECONDS)
            self._shown[thread] = (doing, person)
            self._troubles = 0
        except CallFailed as error:
            self._troubles += 1
            self.refused = error.fate is Fate.REFUSED or self._troubles >= TROUBLES
            self._not_before = self._clock.monotonic() + max(error.retry_after, PAUSE_SECONDS)
        finally:
            self._telling = None
            self._ring()

    async def end(self) -> None:
        """Give up what is being told."""
        if (telling := self._telling) is not None:
            telling.cancel()
            await asyncio.wait({telling})


def doing_of(address: ChatAddress, outlets: Sequence[TurnOutlet]) -> dict[str, tuple[Doing, str]]:
    """What the agent does in each thread of a chat, and for whom."""
    running: dict[str, tuple[Doing, str]] = {}
    for outlet in outlets:
        thread = address.thread or outlet.reply_to
        if outlet.driver is None or outlet.task is not None or not thread:
            continue
        asks = any(b.kind is BubbleKind.APPROVAL for b in outlet.driver.seen.current_view().bubbles)
        running[thread] = (Doing.WAITING if asks else Doing.WORKING, outlet.person)
    return running


class Cosmetics:
    """Those of one chat, and when the last of each was shown (ms that never go back)."""

    def __init__(self, calls: ChatCalls, signs: FirstSigns, clock: Clock) -> None:
        self.draft: DraftPart | None = None
        """Text on its way, as it should be seen."""
        self._calls = calls
        self._signs = signs
        self._clock = clock
        self._preview_at = self._typing_at = self._status_at = self._draft_at = _LONG_AGO
        self._draft_shown: DraftPart | None = None

    def previewed(self) -> None:
        """A new state of text on its way is shown."""
        self._preview_at = steady_ms(self._clock)

    def status_shown(self, part: Part) -> None:
        """A part is shown; if it is the status, its next state comes after a while."""
        if part.content.kind is ContentKind.STATUS:
            self._status_at = steady_ms(self._clock)

    def preview_due(self, now: int, waits: Mapping[Urgency, int]) -> bool:
        """Text on its way may be shown anew."""
        return now - self._preview_at >= self._calls.traits.preview_seconds * 1000 and waits[Urgency.COSMETIC] <= 0

    def status_due(self, now: int) -> bool:
        """The status may be changed again."""
        return now - self._status_at >= self._calls.traits.status_seconds * 1000

    async def show(self, now: int, outlets: Sequence[TurnOutlet], *, typing: bool) -> bool:
        """Make one call for text on its way, or to show that we type (if that is so); whether there was one."""
        if self.draft is not None and await self._show_draft(self.draft, now, outlets):
            return True
        return typing and await self._type(now, outlets)

    async def _show_draft(self, draft: DraftPart, now: int, outlets: Sequence[TurnOutlet]) -> bool:
        fresh = now - self._draft_at < DRAFT_REFRESH_SECONDS * 1000
        calls = self._calls
        if (draft == self._draft_shown and fresh) or now - self._draft_at < calls.traits.preview_seconds * 1000:
            return False
        self._draft_at = self._preview_at = now
        self._draft_shown = draft
        error = await calls.attempt(calls.port.draft(calls.address, draft.number, draft.body))
        if error is None:
            self._signs.shown(outlets)
        elif error.fate is Fate.REFUSED:
            log.info("surface.no_drafts", chat=calls.address.text(), words=error.words)
            calls.traits = replace(calls.traits, drafts=False)  # then it is shown by a message that is edited
            self.draft = None
        return True

    async def _type(self, now: int, outlets: Sequence[TurnOutlet]) -> bool:
        """Show that we type, where no text has just been seen to grow."""
        since = max(self._typing_at, self._preview_at if self.draft is not None else 0)
        calls = self._calls
        if not calls.traits.typing_seconds or now - since < calls.traits.typing_seconds * 1000:
            return False
        self._typing_at = now
        if await calls.attempt(calls.port.typing(calls.address)) is None:
            self._signs.shown(outlets)
        return True
