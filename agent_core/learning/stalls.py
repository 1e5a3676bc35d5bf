"""Patterns across turns: what a conversation and the whole gateway have learned from failures. Pure.

Theory. Each closed turn leaves rows (`rows_of`): its troubles with their remedies, what became of a remedy that was tried beforehand, and the
calls of a known kind that came whole.
A conversation's memory is the fold of its rows, oldest first (`stalls_of`). Over all conversations, rows with one fingerprint
within the window are an incident (`agent_core.learning.incidents`).

Laws (tests/agent_core/test_stalls.py): a stub of text clears nothing; a call of that kind that came whole clears all that was
before it; each turn counts once, however often it tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from agent_core.failures.exits import ExitCode
from agent_core.failures.known import KnownStall
from agent_core.failures.notices import ExitClass
from agent_core.failures.remedies import Failure, Remedy
from agent_core.failures.troubles import RemedyOutcome, Trouble, size_bucket
from agent_core.learning.measured import REMEDIES, best_remedy
from agent_core.learning.prevention import CALLS, tried
from agent_core.records import dataclass
from agent_core.store.troubles.rows import FORESEEN, TroubleRow
from agent_core.text.wellformed import storable
from agent_core.turn.standing import Standing
from agent_core.turn.state import AssistantItem

STALLED_CALLS = CALLS
"""The exits of calls that break off on their way: the kind that smaller pieces can help."""
REMEMBER_MS = 24 * 3_600_000


def fingerprint(turn: Standing) -> str:
    """The fingerprint of what ended a turn; empty for clean exits."""
    if turn.exit is None or turn.exit.kind in (ExitClass.CLEAN, ExitClass.HANDED, ExitClass.STOPPED):
        return ""
    ended = next((trouble for trouble in reversed(turn.troubles.found) if trouble.ended), None)
    if ended is not None:
        return ended.fingerprint
    return Trouble(turn.exit.code, None, turn.route.endpoint, turn.route.model, turn.exit.tool).fingerprint


def rows_of(turn: Standing) -> tuple[TroubleRow, ...]:
    """What a closed turn leaves behind; one that is tried as good as once says nothing of how models fail."""
    if turn.settings.most_calls:
        return ()
    at, conversation = turn.phase_since, turn.troubles.known.conversation
    solved = [Trouble(ExitCode.ANSWERED, None, turn.route.endpoint, turn.route.model, t) for t in turn.troubles.solved]
    found = [*turn.troubles.found, *foreseen(turn), *solved]
    return tuple(_row(number, at, conversation, trouble) for number, trouble in enumerate(found))


def foreseen(turn: Standing) -> list[Trouble]:
    """What became of that with which a turn began because of earlier failures, as far as it can be said."""
    arrived = {call.name for item in turn.items if isinstance(item, AssistantItem) for call in item.calls}
    found: list[Trouble] = []
    failed_by = next((failure for failure, remedy in turn.remedies if remedy is Remedy.AS_USUAL), None)
    if not turn.trying and failed_by is None:
        return []
    for one in tried(turn.settings, turn.troubles.known):
        elsewhere = one.remedy is Remedy.NEXT_ROUTE
        good = turn.trying and (turn.steps_done > 0 if elsewhere else one.tool in arrived)
        bad = failed_by is not None and (elsewhere or failed_by in (Failure.IN_TOOL_CALL, Failure.LENGTH_IN_TOOL_CALL))
        if good or bad:
            found.append(replace(one, outcome=RemedyOutcome.HELPED if good else RemedyOutcome.NOT_HELPED))
    return found


def _row(number: int, at: int, conversation: str, trouble: Trouble) -> TroubleRow:
    return TroubleRow(
        number=number,
        at=at,
        conversation=conversation,
        fingerprint=trouble.fingerprint,
        code=trouble.code.value,
        cause=FORESEEN if trouble.foreseen else trouble.cause.value if trouble.cause is not None else "",
        endpoint=trouble.endpoint,
        model=trouble.model,
        tool=storable(trouble.tool),
        size=size_bucket(trouble.chars),
        chars=trouble.chars,
        rung=trouble.remedy.value if trouble.remedy is not None else "",
        outcome=trouble.outcome.value,
        ended=trouble.ended,
    )


@dataclass(slots=True)
class _Stall:
    """What is known of one tool's calls of one size, while it is gathered."""

    chars: int = 0
    ended: set[str] = field(default_factory=set[str])
    tried: dict[Remedy, None] = field(default_factory=dict[Remedy, None])
    models: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    measured: list[tuple[Remedy, bool, int]] = field(default_factory=list[tuple[Remedy, bool, int]])


def stalls_of(rows: Iterable[tuple[str, TroubleRow]], now: int) -> tuple[KnownStall, ...]:
    """What a conversation knows of calls that broke off. `rows` are (turn, row), oldest first."""
    found: dict[tuple[str, str], _Stall] = {}
    for turn, row in rows:
        if row.code == ExitCode.ANSWERED:
            found = {kind: stall for kind, stall in found.items() if kind[0] != row.tool}
        elif row.code in STALLED_CALLS and row.tool and now - row.at < REMEMBER_MS:
            kind = (row.tool, row.size)
            if row.cause == FORESEEN and kind not in found:
                continue
            stall = found.setdefault(kind, _Stall())
            if row.rung in REMEDIES:
                stall.tried[REMEDIES[row.rung]] = None
                if row.outcome != RemedyOutcome.NOT_KNOWN:
                    stall.measured.append((REMEDIES[row.rung], row.outcome == RemedyOutcome.HELPED, 1))
            if row.cause == FORESEEN:
                continue
            stall.chars = max(stall.chars, row.chars)
            stall.models[row.endpoint, row.model] = None
            if row.ended:
                stall.ended.add(turn)
    return tuple(
        KnownStall(
            tool=tool,
            chars=stall.chars,
            ended=len(stall.ended),
            tried=tuple(stall.tried),
            size=size,
            models=tuple(stall.models),
            remedy=best_remedy(stall.measured),
        )
        for (tool, size), stall in found.items()
    )
