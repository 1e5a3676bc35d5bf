"""Events as rows of the journal, and back.

A row's kind is the event's class name; its body is the event's fields as JSON. Fields that an older program did not know take their defaults.

Law (tests/agent_core/test_journal.py): `decode(*encode(event)) == event` for every event.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from agent_core import slim
from agent_core.events import (
    Event,
    ReasoningArrived,
    TextArrived,
    ToolArgumentsArrived,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from agent_core.turn import Turn

KINDS: dict[str, type[Event]] = {cls.__name__: cls for cls in get_args(Event)}


class UnreadableJournal(Exception):
    """A row of the journal cannot be read by this program; says which and why."""


@dataclass(frozen=True, slots=True)
class Written:
    """An event as it goes into the journal."""

    kind: str
    body: bytes
    at: int


def encode(event: Event) -> Written:
    """The row for an event."""
    return Written(type(event).__name__, slim.dumps(event), event.at)


@functools.cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    from pydantic import TypeAdapter

    return TypeAdapter(KINDS[kind])


def decode(kind: str, body: bytes) -> Event:
    """The event of a row. Raises `UnreadableJournal`."""
    if kind not in KINDS:
        raise UnreadableJournal(f"the journal holds an event of a kind that this version does not know: {kind}")
    try:
        return _adapter(kind).validate_json(body)
    except ValueError as error:
        raise UnreadableJournal(
            f"an event of kind {kind} in the journal cannot be read: {type(error).__name__}"
        ) from error


def merged(events: Iterable[Event]) -> list[Event]:
    """`events` with neighbouring pieces of one text joined, keeping the later time. The fold stays the same."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        match last, event:
            case TextArrived(), TextArrived():
                out[-1] = TextArrived(at=event.at, text=last.text + event.text)
            case ReasoningArrived(), ReasoningArrived():
                out[-1] = ReasoningArrived(at=event.at, text=last.text + event.text)
            case ToolArgumentsArrived(), ToolArgumentsArrived() if last.index == event.index:
                out[-1] = ToolArgumentsArrived(at=event.at, index=event.index, text=last.text + event.text)
            case _:
                out.append(event)
    return out


def fold(rows: Iterable[tuple[str, bytes]]) -> Turn:
    """The turn that a journal tells."""
    from agent_core.turn import Turn  # whoever only reads events needs no machine

    turn = Turn()
    for kind, body in rows:
        turn.feed(decode(kind, body))
    return turn
