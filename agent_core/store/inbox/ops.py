"""What is written of messages: they are accepted, worded anew, dropped."""

from __future__ import annotations

from dataclasses import field

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, Op, Pieces, SessionFact, bytes_of, parts_bytes
from agent_core.store.budgets.ops import charge
from agent_core.store.budgets.rows import Charge
from agent_core.store.database.mapping import Fact
from agent_core.store.deliveries.ops import deliver
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import Conflict
from agent_core.store.inbox.rows import Accepted, CursorRow, InboxRow, InboxState, NewMessage
from agent_core.store.schedules.ops import check_claim, claim_occurrence
from agent_core.store.sessions.ops import change_needs, change_session
from agent_core.store.sessions.rows import SessionRow
from agent_core.store.slices.rows import tenure_now
from agent_core.store.turns.ops import Start
from agent_core.store.turns.rows import OpeningTurn


@dataclass(frozen=True, slots=True)
class Accept(Op[Accepted]):
    message: NewMessage
    claims: bool = True
    """A session that is made for the message is this node's at once: one commit less until its turn can begin."""
    pieces: Pieces = ()
    opening: OpeningTurn | None = None
    """A turn that begins with the message, in the same commit: if it is stored by this, and the session is as its turn expects it."""

    def need(self, wanted: Needs) -> None:
        message = self.message
        if self.opening is not None and self.opening.session != message.new_session_id:
            wanted.sessions.add(self.opening.session)  # whoever writes for a session locks it
        wanted.session_keys.add(message.session_key)
        wanted.messages.add((message.account, message.platform_key))
        wanted.pots.update(key for one in message.charges for key in one.keys)
        if message.claim is not None:
            wanted.schedules.add(message.claim.schedule.schedule)
        if message.change is not None:
            wanted.sessions.add(message.change.session)
            change_needs(message.change.change, wanted)

    def decide(self, facts: Facts, previous: object) -> Accepted:
        message = self.message
        name = (message.account, message.platform_key)
        found = facts.messages.get(name)
        if found is not None:
            if isinstance(previous, Accepted) and previous.inbox_id == found.row.id:
                if not previous.duplicate:  # it was this very offer that stored it, and a batch is repeated as a whole
                    _move_cursor(facts, message)
                return previous
            row = found.row
            return Accepted(
                row.id, row.session, row.arrival, True, row.state, row.turn, received_at=row.received_at
            )  # fmt: skip
        if message.claim is not None:
            check_claim(facts, message.claim)
        alongside = message.change
        changing = facts.owned(alongside.session, alongside.epoch) if alongside is not None else None
        session = facts.sessions_by_key.get(message.session_key)
        charges = [one for one in message.charges if session is None or not one.new_session]
        charge(facts, charges, message.received_at)  # the last that may refuse it: nothing is changed before
        if alongside is not None and changing is not None:
            change_session(facts, changing, alongside.change)
        if session is None:
            session = self._new_session(facts)
        number = facts.free_ids.pop()
        row = InboxRow(
            id=number,
            account=message.account,
            platform_key=message.platform_key,
            session=session.row.session,
            arrival=number,  # ids only grow, so they give the order inside the session as well
            lane=message.lane,
            body=message.body,
            state=InboxState.DROPPED if message.refused else InboxState.NEW,
            reason=message.refused or None,
            received_at=message.received_at,
            person=message.person,
        )
        facts.messages[name] = facts.inbox[number] = Fact(row)
        _move_cursor(facts, message)
        if message.claim is not None:
            claim_occurrence(facts, message.claim, number)
        epoch = session.row.epoch if self.claims and session.row.owner == facts.node else 0
        if self.opening is not None and self._can_start(session, self.opening, facts.node):
            Start(self.opening, (number,)).decide(facts, None)
            return Accepted(
                number, session.row.session, number, False, InboxState.TAKEN, self.opening.turn, epoch, started=True,
                received_at=message.received_at,
            )  # fmt: skip
        after = session.last_waiting or 0
        return Accepted(
            number,
            session.row.session,
            number,
            False,
            row.state,
            None,
            epoch,
            received_at=message.received_at,
            after=after,
        )

    def _can_start(self, session: SessionFact, opening: OpeningTurn, node: int) -> bool:
        ours = (session.row.session, session.row.owner, session.row.epoch) == (opening.session, node, opening.epoch)
        waits = session.open_turn is not None or session.last_waiting is not None
        return ours and not waits and not self.message.refused

    def _new_session(self, facts: Facts) -> SessionFact:
        message, at = self.message, self.message.received_at
        owner, epoch = (facts.node, 1) if self.claims else (None, 0)
        made = SessionRow(message.new_session_id, message.session_key, owner, epoch, created_at=at, last_at=at)
        session = SessionFact(made)
        facts.sessions_by_key[made.key] = facts.sessions[made.session] = session
        return session

    def weight(self) -> int:
        return len(self.message.body) + (bytes_of(self.opening.rows) if self.opening is not None else 0)

    def cut_out(self) -> Pieces:
        return self.pieces


def _move_cursor(facts: Facts, message: NewMessage) -> None:
    if message.cursor is not None:
        facts.put(t.CURSOR, CursorRow(message.account, *message.cursor), under=message.under)


@dataclass(frozen=True, slots=True)
class MoveCursor(Op[None]):
    account: str
    channel: str
    last_seen: str
    under: tuple[str, ...] | None = field(default_factory=tenure_now)

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.put(t.CURSOR, CursorRow(self.account, self.channel, self.last_seen), under=self.under)


@dataclass(frozen=True, slots=True)
class Reword(Op[bool]):
    """A waiting message was edited where it came from. The answer is whether it was in time."""

    account: str
    platform_key: str
    body: bytes
    pieces: Pieces = ()
    charges: tuple[Charge, ...] = ()
    """What it counts for as it is now; what counted before is among it."""
    at: int = 0

    def need(self, wanted: Needs) -> None:
        wanted.rewordings.add((self.account, self.platform_key))
        wanted.pots.update(key for one in self.charges for key in one.keys)

    def decide(self, facts: Facts, previous: object) -> bool:  # noqa: ARG002 - repeating it says the same
        message = facts.messages.get((self.account, self.platform_key))
        if message is None or message.row.state is not InboxState.NEW:
            return False
        charge(facts, self.charges, self.at)
        message.change(body=self.body)
        return True

    def weight(self) -> int:
        return len(self.body)

    def cut_out(self) -> Pieces:
        return self.pieces


@dataclass(frozen=True, slots=True)
class Drop(Op[None]):
    """A message is not run, and what its chat is told of that, in one commit."""

    inbox_id: int
    reason: str
    session: str = ""
    """Whose parts they are."""
    epoch: int = 0
    deliveries: tuple[DeliveryRow, ...] = ()

    def need(self, wanted: Needs) -> None:
        wanted.inbox.add(self.inbox_id)
        if self.deliveries:
            wanted.sessions.add(self.session)

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        message = facts.inbox.get(self.inbox_id)
        if message is None:
            raise Conflict(f"There is no message {self.inbox_id} to drop.")
        if message.row.state not in (InboxState.NEW, InboxState.DROPPED):
            raise Conflict(
                f"Message {self.inbox_id} is {message.row.state} (turn {message.row.turn}); only a new one can be dropped."
            )
        if self.deliveries:
            facts.owned(self.session, self.epoch)
            deliver(facts, self.session, self.epoch, self.deliveries)
        if message.row.state is InboxState.NEW:
            message.change(state=InboxState.DROPPED, reason=self.reason)

    def weight(self) -> int:
        return parts_bytes(self.deliveries)
