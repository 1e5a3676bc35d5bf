"""What is written of sessions and nodes."""

from __future__ import annotations

from typing import ClassVar

from agent_core.records import dataclass
from agent_core.store.batch.facts import Facts, Needs, Op, SessionFact, parts_bytes
from agent_core.store.deliveries.ops import deliver
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import Conflict, OwnedElsewhere
from agent_core.store.inbox.rows import InboxState
from agent_core.store.schedules.ops import put_schedules
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions.rows import BranchChange, SessionChange, settings_with
from agent_core.store.turns.rows import ON_ANOTHER_BRANCH, TAKEN_BACK


@dataclass(frozen=True, slots=True)
class Claim(Op[int]):
    """The answer is the epoch."""

    session: str

    def need(self, wanted: Needs) -> None:
        wanted.sessions.add(self.session)
        wanted.claims.add(self.session)

    def decide(self, facts: Facts, previous: object) -> int:  # noqa: ARG002 - repeating it says the same
        session = facts.session(self.session)
        if session.row.owner == facts.node:
            return session.row.epoch
        right = facts.right(session.row.key)
        if right.other is not None:
            raise OwnedElsewhere(session.row.session, right.other)
        if session.row.owner is not None and session.row.owner not in facts.dead and not right.ours:
            raise OwnedElsewhere(session.row.session, session.row.owner)
        session.change(owner=facts.node, epoch=session.row.epoch + 1)
        return session.row.epoch


@dataclass(frozen=True, slots=True)
class Respond(Op[None]):
    """A command was carried out: its message is done, and what it changes and answers is there."""

    session: str
    epoch: int
    inbox_id: int
    """0: only the change; the message is done later."""
    change: SessionChange
    deliveries: tuple[DeliveryRow, ...]
    schedules: tuple[ScheduleRow, ...] = ()
    """Schedules that it makes or changes."""

    def need(self, wanted: Needs) -> None:
        wanted.sessions.add(self.session)
        wanted.inbox.update({self.inbox_id} - {0})
        wanted.schedules.update(row.schedule for row in self.schedules)
        change_needs(self.change, wanted)

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        session = facts.owned(self.session, self.epoch)
        message = facts.inbox.get(self.inbox_id)
        if self.inbox_id and (message is None or message.row.session != self.session):
            raise Conflict(f"There is no message {self.inbox_id} in session {self.session} to respond to.")
        if message is not None and message.row.state is InboxState.DONE:
            return
        if message is not None and message.row.state is not InboxState.NEW:
            raise Conflict(f"Message {self.inbox_id} is {message.row.state}; it cannot be responded to.")
        put_schedules(facts, self.schedules)
        change_session(facts, session, self.change)
        if message is not None:
            message.change(state=InboxState.DONE)
        deliver(facts, self.session, self.epoch, self.deliveries)

    def weight(self) -> int:
        return parts_bytes(self.deliveries)


def change_needs(change: SessionChange, wanted: Needs) -> None:
    """What has to be known for `change_session`, beside the session."""
    if change.undo is not None:
        wanted.turns.add(change.undo)
    if change.branch is not None:
        wanted.turns.update((*change.branch.told, *change.branch.untold))


def change_session(facts: Facts, session: SessionFact, change: SessionChange) -> None:
    """The session is changed like this; saying so once more changes nothing."""
    undone = facts.turns.get(change.undo) if change.undo is not None else None
    if undone is not None and not undone.row.undone:
        number, follows = undone.row.number, undone.row.follows
        undone.change(undone=TAKEN_BACK)
        if number == (session.last_number if session.row.tip < 0 else session.row.tip):
            session.change(tip=number - 1 if follows < 0 else follows)
    if change.branch is not None:
        _show(facts, session, change.branch)
    if change.forget:
        session.change(since=session.last_number)
    if change.policy is not None:
        session.change(policy=settings_with(session.row.policy, change.policy))
    if change.place is not None:
        facts.pointed[change.place.place] = change.place.continues


def _show(facts: Facts, session: SessionFact, branch: BranchChange) -> None:
    for turns, undone in ((branch.told, 0), (branch.untold, ON_ANOTHER_BRANCH)):
        for turn in (facts.turns[name] for name in turns if name in facts.turns):
            turn.change(undone=undone)
    session.change(tip=branch.tip)


@dataclass(frozen=True, slots=True)
class Touch(Op[None]):
    """Writes this node's own row, a little differently each time: the proof that a write gets through."""

    proves: ClassVar[bool] = True

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.touched = True
