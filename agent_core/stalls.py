"""Patterns across turns: what a conversation and the whole gateway have learned from failures. Pure.

Theory. Each closed turn leaves rows (`rows_of`): its troubles with their remedies, and the calls of a known kind that came whole.
A conversation's memory is the fold of its rows, oldest first (`stalls_of`). Over all conversations, rows with one fingerprint
within the window are an incident (`agent_core.incidents`).

Laws (tests/agent_core/test_stalls.py): a stub of text clears nothing; a call of that kind that came whole clears all that was
before it; each turn counts once, however often it tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent_core.exits import ExitClass, ExitCode, exit_class
from agent_core.known import KnownStall
from agent_core.recovery import Rung
from agent_core.store.rows import TroubleRow
from agent_core.troubles import Trouble, size_bucket
from agent_core.turn import Turn
from agent_core.wellformed import storable

STALLED_CALLS = (ExitCode.BROKEN_IN_TOOL_CALL, ExitCode.TOOL_CALL_CUT_BY_LENGTH)
"""The exits of calls that break off on their way: the kind that smaller pieces can help."""
REMEMBER_MS = 24 * 3_600_000
WITHHOLD_MS = 3_600_000


def fingerprint(turn: Turn) -> str:
    """The fingerprint of what ended a turn; empty for clean exits."""
    if turn.exit is None or exit_class(turn.exit.code) in (ExitClass.CLEAN, ExitClass.HANDED, ExitClass.STOPPED):
        return ""
    ended = next((trouble for trouble in reversed(turn.troubles.found) if trouble.ended), None)
    if ended is not None:
        return ended.fingerprint
    return Trouble(turn.exit.code, None, turn.route.endpoint, turn.route.model, turn.exit.facts.tool).fingerprint


def rows_of(turn: Turn) -> tuple[TroubleRow, ...]:
    """What a closed turn leaves behind."""
    at, conversation = turn.phase_since, turn.troubles.known.conversation
    found = [_row(number, at, conversation, trouble) for number, trouble in enumerate(turn.troubles.found)]
    solved = (Trouble(ExitCode.ANSWERED, None, turn.route.endpoint, turn.route.model, t) for t in turn.troubles.solved)
    return (*found, *(_row(len(found) + offset, at, conversation, one) for offset, one in enumerate(solved)))


def _row(number: int, at: int, conversation: str, trouble: Trouble) -> TroubleRow:
    return TroubleRow(
        number=number,
        at=at,
        conversation=conversation,
        fingerprint=trouble.fingerprint,
        code=trouble.code.value,
        cause=trouble.cause.value if trouble.cause is not None else "",
        endpoint=trouble.endpoint,
        model=trouble.model,
        tool=storable(trouble.tool),
        size=size_bucket(trouble.chars),
        chars=trouble.chars,
        rung=trouble.rung.value if trouble.rung is not None else "",
        outcome=trouble.outcome.value,
        ended=trouble.ended,
    )


@dataclass(slots=True)
class _Stall:
    """What is known of one tool, while it is gathered."""

    chars: int = 0
    ended: set[str] = field(default_factory=set[str])
    tried: dict[Rung, None] = field(default_factory=dict[Rung, None])
    last_at: int = 0


def stalls_of(rows: Iterable[tuple[str, TroubleRow]], now: int, *, rounds: int) -> tuple[KnownStall, ...]:
    """What a conversation knows of calls that broke off. `rows` are (turn, row), oldest first.

    After `rounds` turns that ended by it, the tool is withheld for an hour from the last time.
    """
    found: dict[str, _Stall] = {}
    for turn, row in rows:
        if row.code == ExitCode.ANSWERED:
            found.pop(row.tool, None)
        elif row.code in STALLED_CALLS and row.tool and now - row.at < REMEMBER_MS:
            stall = found.setdefault(row.tool, _Stall())
            stall.chars = max(stall.chars, row.chars)
            stall.last_at = row.at
            if row.ended:
                stall.ended.add(turn)
            if row.rung:
                stall.tried[Rung(row.rung)] = None
    return tuple(
        KnownStall(
            tool=tool,
            chars=stall.chars,
            ended=len(stall.ended),
            tried=tuple(stall.tried),
            withheld=len(stall.ended) >= rounds and now - stall.last_at < WITHHOLD_MS,
        )
        for tool, stall in found.items()
    )
