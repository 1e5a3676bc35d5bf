"""Messages that cannot go into their conversation's queue yet: too fast, or there is no room. As each is stored, and which are here.

Such a message is stored as a command that the gateway gives itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from adapters.contract.base import FromChat
from adapters.contract.notaccepted import NotAcceptedCode
from agent_core.messages import InputMessage
from agent_core.records import dataclass
from agent_core.text.tongue import speak
from gateway.config.types import SessionPolicy
from gateway.people.members import HELD_MOST
from gateway.people.routing import Command

HOLD = "hold"
HELD_IN_ALL = 1_000
"""For so many messages without room there is a task each; the next one is refused."""


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message that waits for its time."""

    due: int
    """ms; 0 if only room is missing for it."""
    text: str
    foreign: str = ""

    @staticmethod
    def for_room(text: str) -> HeldMessage:
        """One that is run as soon as there is room."""
        return HeldMessage(0, text)

    @property
    def policy(self) -> SessionPolicy | None:
        """What has waited for room has its place in the queue, and leaves the answer alone that is under way."""
        return None if self.due else SessionPolicy.QUEUE

    def command(self) -> Command:
        """As it is stored."""
        return Command(HOLD, f"{self.due} {self.text}")

    @staticmethod
    def of(inbound: FromChat) -> HeldMessage | None:
        """What a stored command says; None if it is none of these. Pure."""
        name, _, rest = str(inbound.input[0].content).partition(" ") if inbound.input else ("", "", "")
        due, _, text = rest.partition(" ")
        return HeldMessage(int(due), text, inbound.chat.foreign) if name == f"/{HOLD}" and due.isdecimal() else None


class HeldHere:
    """Those that this process has. One that waits for room goes behind those of its conversation that came before it."""

    def __init__(self) -> None:
        self._taken_out: dict[str, dict[int, asyncio.Event]] = {}
        """By conversation and number: set when it is taken out."""
        self._line: dict[str, list[int]] = {}
        """Those that wait for room, by conversation, in their order."""
        self._in_line = 0

    @contextmanager
    def holding(self, key: str, number: int) -> Generator[asyncio.Event]:
        """It is here while the block runs; the event is set if somebody takes it out."""
        taken_out = self._taken_out.setdefault(key, {})[number] = asyncio.Event()
        try:
            yield taken_out
        finally:
            _without(self._taken_out, key, number)

    @contextmanager
    def lining_up(self, key: str, number: int) -> Generator[None]:
        """It waits for room while the block runs."""
        line = self._line.setdefault(key, [])
        line.append(number)
        line.sort()
        self._in_line += 1
        try:
            yield
        finally:
            self._in_line -= 1
            line.remove(number)
            if not line:
                del self._line[key]

    def next(self, key: str, number: int) -> bool:
        """Whether none of its conversation is before it."""
        line = self._line.get(key)
        return line is None or number <= line[0]

    def lined_up(self, key: str) -> int:
        """How many of the conversation wait for room; whatever comes now goes behind them."""
        return len(self._line.get(key, ()))

    def takes(self, key: str) -> bool:
        """Whether one more of the conversation may wait for room."""
        return self.lined_up(key) < HELD_MOST and self._in_line < HELD_IN_ALL

    def take_out(self, key: str, *, room: bool) -> int:
        """Take all of a conversation out that wait for their time, and with `room` those that wait for that, too; how many they were."""
        line = () if room else self._line.get(key, ())
        going = [(number, one) for number, one in self._taken_out.get(key, {}).items() if not one.is_set()]
        gone = [one for number, one in going if number not in line]
        for one in gone:
            one.set()
        return len(gone)


def _without(found: dict[str, dict[int, asyncio.Event]], key: str, number: int) -> None:
    del found[key][number]
    if not found[key]:
        del found[key]


def held_words(seconds: int) -> str:
    """What is told of a message that waits for its time."""
    return speak(
        "⏳ That was too fast for me. Your message is kept, and I take it up in {seconds} s; {/stop} takes it out.",
        seconds=seconds,
    )


def no_room_words(code: NotAcceptedCode) -> str:
    """What is told of a message that waits for room."""
    if code is NotAcceptedCode.GATEWAY_FULL:
        return speak(
            "⏳ Too many people are waiting for an answer just now. Your message is kept, and I take it up as soon as there is room; {/stop all} takes it out."
        )
    return speak(
        "⏳ Too many messages are already waiting here. This one is kept, and I take it up as soon as there is room; {/stop all} takes it out."
    )


def edited(inbound: FromChat, stored: FromChat) -> FromChat | None:
    """The new wording of a message that waits for its time, as it is stored; None if the stored one is none. Pure."""
    held = HeldMessage.of(stored)
    if held is None:
        return None
    command = replace(held, text="\n".join(str(one.content) for one in inbound.input)).command()
    return replace(inbound, input=(InputMessage(f"/{command.name} {command.words}"),))
