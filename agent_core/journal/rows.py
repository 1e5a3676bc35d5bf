"""Events as rows of the journal, and back.

A row's kind is the event's `kind()`; its body is the event's fields as JSON. Fields that an older program did not know take their defaults.
As a row is stored, a turn's settings are told by what is otherwise with them (`ordinary`); an export has them whole.

Law (tests/agent_core/test_journal.py): `decode(*encode(event)) == event` for every event, and so for the row that is stored of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast, get_args

import orjson

from agent_core import storedjson
from agent_core.failures.errors import NewerRules, ProtocolError, UnreadableJournal
from agent_core.journal.ordinary import filled
from agent_core.journal.ordinary import short as short_settings
from agent_core.records import dataclass
from agent_core.settings import RULES
from agent_core.store.turns.rows import JournalRow
from agent_core.text.wellformed import storable
from agent_core.turn.effects import Effect, Record
from agent_core.turn.events import (
    Event,
    ReasoningArrived,
    TextArrived,
    ToolArgumentsArrived,
    TurnOpened,
)
from agent_core.turn.questions import MUST_BE_ANSWERED

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from agent_core.machine.turn import Turn

DEEPEST = 100
"""How deep a value may lie in an event that has to be made plain."""
LARGEST = 2**53 - 1

KINDS: dict[str, type[Event]] = {cls.kind(): cls for cls in get_args(Event)}


@dataclass(frozen=True, slots=True)
class WrittenEvent:
    """An event as it goes into the journal."""

    kind: str
    body: bytes
    at: int


def encode(event: Event) -> WrittenEvent:
    """An event as it is written, whole."""
    return WrittenEvent(event.kind(), _body(event), event.at)


def row_of(event: Event, seq: int) -> JournalRow:
    """An event as the row `seq` of a journal, as the database keeps it."""
    return JournalRow(seq, event.kind(), _body(event, _opening if event.__class__ is TurnOpened else None), event.at)


def _body(event: Event, dumps: Callable[[Any], bytes] | None = None) -> bytes:
    """What came from outside was made storable where it was read; should an event hold something all the same that JSON cannot spell, a plain one
    takes its place: an end that cannot be stored is none."""
    dumps = dumps or storedjson.dumps
    try:
        return dumps(event)
    except (TypeError, ValueError):
        return dumps(plain(event))


def _opening(event: TurnOpened) -> bytes:
    """The same of a turn's beginning, whose settings are told shortly."""
    return storedjson.dumps({**storedjson.facts(event), "settings": orjson.Fragment(short_settings(event.settings))})


def plain(value: Any) -> Any:
    """The same event with nothing in it that cannot be stored: characters are replaced, numbers bounded, and what lies too deep is left out."""
    return _plain(value, DEEPEST)


def _plain(value: Any, deeper: int) -> Any:
    match value:
        case bool() | None:
            return value
        case StrEnum():
            return value
        case str():
            return storable(value)
        case int():
            return max(-LARGEST, min(LARGEST, value))
        case float():
            return value if math.isfinite(value) else 0.0
        case tuple() | list():
            inner: Any = [] if deeper == 0 else [_plain(each, deeper - 1) for each in cast("list[Any]", value)]
            return inner if isinstance(value, list) else tuple(inner)
        case Mapping():
            found = cast("Mapping[Any, Any]", value)
            return {} if deeper == 0 else {storable(str(key)): _plain(each, deeper - 1) for key, each in found.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{each.name: _plain(getattr(value, each.name), deeper) for each in fields(value)})
        case _:
            return value


@functools.cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    from pydantic import TypeAdapter

    return TypeAdapter(KINDS[kind])


def decode(kind: str, body: bytes) -> Event:
    """The event of a row. Raises `UnreadableJournal`."""
    if kind not in KINDS:
        raise UnreadableJournal(f"the journal holds an event of a kind that this version does not know: {kind}")
    try:
        event = _adapter(kind).validate_json(filled(body) if kind == TurnOpened.kind() else body)
    except ValueError as error:
        raise UnreadableJournal(
            f"an event of kind {kind} in the journal cannot be read: {type(error).__name__}"
        ) from error
    if isinstance(event, TurnOpened) and event.settings.rules > RULES:
        raise NewerRules(event.settings.rules, RULES)
    return event


def opened_of(kind: str, body: bytes) -> TurnOpened | None:
    """The event that opened a turn, from the first row of its journal; None if it cannot be read."""
    try:
        opened = decode(kind, body)
    except UnreadableJournal:
        return None
    return opened if isinstance(opened, TurnOpened) else None


def merged(events: Iterable[Event]) -> list[Event]:
    """`events` with neighbouring pieces of one text joined, keeping the later time. The fold stays the same."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if event.__class__ is not last.__class__:  # nearly always
            out.append(event)
            continue
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


def recorded(event: Event, effects: Iterable[Effect]) -> list[Event]:
    """What has to be journalled of an event that was fed to a turn and had these effects: it, and what was judged of it."""
    return [event, *[effect.event for effect in effects if isinstance(effect, Record)]]


def read(rows: Iterable[tuple[str, bytes]]) -> list[Event]:
    """The events of a journal, with what was judged of them, whatever version wrote it. Raises `UnreadableJournal`."""
    return list(completed([decode(kind, body) for kind, body in rows]))


def completed(events: Sequence[Event]) -> Sequence[Event]:
    """`events` with the judgements that stand in a journal since version 7 of the rules, if it is an older one."""
    if not events or not isinstance(events[0], TurnOpened) or events[0].settings.judged:
        return events
    from agent_core.journal.old import judged

    return judged(events)


def fold(rows: Iterable[tuple[str, bytes]]) -> Turn:
    """The turn that a journal tells. Raises `UnreadableJournal`, and as one `agent_core.failures.errors.ProtocolError`."""
    return turn_of(read(rows))


def turn_of(events: Iterable[Event]) -> Turn:
    """The turn that these events tell, with all that was judged of them."""
    from agent_core.machine.turn import Turn  # whoever only reads events needs no machine

    return read_on(Turn(), events)


def _undecided(turn: Turn) -> bool:
    """Somebody has still to say something that silence does not say, and what comes before that with it."""
    return any(isinstance(one, MUST_BE_ANSWERED) for one in turn.questions)


def read_on(turn: Turn, events: Iterable[Event]) -> Turn:
    """The same turn, as far as these later events tell it: whole commits of a journal in which judgements stand (`TurnSettings.judged`)."""
    for number, event in enumerate(events):
        try:
            turn.apply(event)
        except ProtocolError as error:
            raise ProtocolError(f"event {number} of the journal does not fit: {error}") from error
    # A commit holds what was judged of its facts, but for that which tells that a turn is taken over: how it goes on is said by the next.
    while turn.questions and turn.settings.judged and not _undecided(turn):
        turn.silence()
    turn.draft.show()
    return turn
