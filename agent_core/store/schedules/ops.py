"""What is written of schedules: none over what somebody else has made of them meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, Op
from agent_core.store.errors import Conflict
from agent_core.store.schedules.rows import Claimed, ScheduleRow, ScheduleState


@dataclass(frozen=True, slots=True)
class PutSchedule(Op[None]):
    """A schedule as it is to be; its `rev` is one more than that of the state that was seen."""

    schedule: ScheduleRow
    turn: str = ""
    """In which it is asked for."""

    def need(self, wanted: Needs) -> None:
        wanted.schedules.add(self.schedule.schedule)
        wanted.turns.update({self.turn} - {""})

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        turn = facts.turns.get(self.turn)
        if turn is not None and turn.row.removed:
            raise Conflict(f"Turn {self.turn} is removed, and so is what it had set.")
        put_schedules(facts, [self.schedule])

    def weight(self) -> int:
        return len(self.schedule.body)


def put_schedules(facts: Facts, rows: Sequence[ScheduleRow]) -> None:
    """Make or change schedules. Raises Conflict, before anything is changed, if one is not as it was seen."""
    for row in rows:
        known = facts.schedules.get(row.schedule)
        if known != row and row.rev != (known.rev if known is not None else 0) + 1:
            raise Conflict(f"Schedule {row.schedule} was changed meanwhile, by somebody else or by an occurrence.")
    for row in rows:
        _put(facts, row)


def _put(facts: Facts, row: ScheduleRow) -> None:
    if facts.schedules.get(row.schedule) != row:
        facts.schedules[row.schedule] = row
        facts.put(t.SCHEDULE, row)


def check_claim(facts: Facts, claim: Claimed) -> None:
    """An occurrence is claimed once: only of a schedule that is as it was seen, and only after all that were claimed. Raises Conflict."""
    name, due = claim.schedule.schedule, claim.occurrence.due_at
    known = facts.schedules.get(name)
    if known is None or known.state is not ScheduleState.ACTIVE or claim.schedule.rev != known.rev + 1:
        raise Conflict(f"Schedule {name} was changed meanwhile, or its occurrence of {due} is claimed already.")
    if due <= known.done_to or claim.schedule.done_to < claim.occurrence.last_at:
        raise Conflict(f"The occurrence of {due} of schedule {name} is claimed already.")


def claim_occurrence(facts: Facts, claim: Claimed, inbox: int) -> None:
    """The occurrence is claimed by this message."""
    _put(facts, claim.schedule)
    facts.add(t.OCCURRENCE, replace(claim.occurrence, inbox=inbox))
