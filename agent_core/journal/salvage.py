"""What can be told of a turn whose journal cannot be read as one: rows that this version does not know, or events that do not fit. Pure.

Nothing is folded: each row that can be read counts for itself. That is enough to say which tools ran, and which may have.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_core.failures.errors import UnreadableJournal
from agent_core.failures.exits import InternalError
from agent_core.journal.rows import decode
from agent_core.messages import Message, shown_still
from agent_core.records import dataclass
from agent_core.text.tongue import spelled
from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.turn.events import (
    CallSettled,
    Event,
    Refusal,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnEnded,
    TurnOpened,
    call_id,
)
from agent_core.turn.transcript import MARK


@dataclass(frozen=True, slots=True)
class Ran:
    """Names of tools, in order."""

    done: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    """They may or may not have run."""


def readable(rows: Iterable[tuple[str, bytes]]) -> list[Event]:
    """The events of those rows that can be read."""
    found: list[Event] = []
    for kind, body in rows:
        try:
            found.append(decode(kind, body))
        except UnreadableJournal:
            continue
    return found


def ran(events: Iterable[Event]) -> Ran:
    """Which tools ran, by what was begun and what came back."""
    names: dict[str, str] = {}
    pure: set[str] = set()
    begun: dict[str, None] = {}
    done: list[str] = []
    unsure: list[str] = []
    for event in events:
        match event:
            case TurnOpened():
                pure = {tool.name for tool in event.settings.tools if tool.effect is EffectClass.PURE}
            case ToolCallNamed():
                names[call_id(event.call, names)] = event.name
            case ToolStarted():
                begun[event.call] = None
            case ToolReturned() | CallSettled():
                was_begun = event.call in begun
                begun.pop(event.call, None)
                name = names.get(event.call, "")
                if isinstance(event, CallSettled):
                    unsure += [name] if event.unsure else []
                elif event.refusal is Refusal.NONE and event.status is ToolStatus.OK:
                    done.append(name)
                elif was_begun and event.status in (ToolStatus.TIMED_OUT, ToolStatus.UNKNOWN) and name not in pure:
                    unsure.append(name)
            case _:
                pass
    unsure += [name for call in begun if (name := names.get(call, "")) not in pure]
    return Ran(tuple(done), tuple(unsure))


def unreadable_end(rows: Iterable[tuple[str, bytes]], reference: str) -> InternalError:
    """How a turn ends whose journal cannot be read: with the tools that ran, and those that may have."""
    found = ran(readable(rows))
    return InternalError(reference=reference, tools_done=found.done, tools_unsure=found.unsure)


def told(rows: Iterable[tuple[str, bytes]]) -> list[Message]:
    """What later turns are told of a closed turn: what was asked, what ran, how it ended. Empty if not even its beginning can be read."""
    events = readable(rows)
    opened = next((event for event in events if isinstance(event, TurnOpened)), None)
    if opened is None or opened.own_history is not None:
        return []
    ended = next((event.exit for event in reversed(events) if isinstance(event, TurnEnded)), None)
    notice = ended.notice() if ended is not None else None
    found = ran(events)
    words = [spelled(notice.text) if notice is not None else "What was replied here cannot be read any more."]
    if found.done and (notice is None or not any(name in notice.text for name in found.done)):
        words.append(f"Done: {', '.join(found.done)}.")
    if found.unsure and (notice is None or not any(name in notice.text for name in found.unsure)):
        words.append(f"May or may not have run: {', '.join(found.unsure)}.")
    messages = [shown_still(message.to_message()) for message in opened.input]
    return [*messages, {"role": "assistant", "content": f"{MARK} {' '.join(words)}]"}]
