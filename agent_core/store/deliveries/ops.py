"""What is written of parts, gates, and of what is done by hand."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.audit import AuditRow
from agent_core.store.batch.facts import Facts, Needs, Op, parts_bytes
from agent_core.store.deliveries.rows import DeliveryRow, GateRow
from agent_core.store.webhooks.ops import hooks_bytes, tell
from agent_core.store.webhooks.rows import HookRow


def deliver(facts: Facts, session: str, epoch: int, rows: Sequence[DeliveryRow]) -> None:
    """These parts of a session are like this from now on."""
    for row in rows:
        facts.put(t.PART, row, session=session, epoch=epoch)


@dataclass(frozen=True, slots=True)
class PutDeliveries(Op[None]):
    session: str
    epoch: int
    deliveries: tuple[DeliveryRow, ...]
    hooks: tuple[HookRow, ...] = ()

    def need(self, wanted: Needs) -> None:
        wanted.sessions.add(self.session)

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.owned(self.session, self.epoch)
        deliver(facts, self.session, self.epoch, self.deliveries)
        tell(facts, self.hooks)

    def weight(self) -> int:
        return parts_bytes(self.deliveries) + hooks_bytes(self.hooks)


@dataclass(frozen=True, slots=True)
class Act(Op[None]):
    """Somebody who runs the gateway did something by hand: its entry, and the parts that it changes, in one commit."""

    audit: AuditRow
    session: str = ""
    """Whose parts they are; empty if there are none."""
    epoch: int = 0
    deliveries: tuple[DeliveryRow, ...] = ()

    def need(self, wanted: Needs) -> None:
        wanted.sessions.update({self.session} - {""})

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        if self.session:
            facts.owned(self.session, self.epoch)
            deliver(facts, self.session, self.epoch, self.deliveries)
        facts.put(t.AUDIT, self.audit)

    def weight(self) -> int:
        return parts_bytes(self.deliveries)


@dataclass(frozen=True, slots=True)
class PutGate(Op[None]):
    gate: GateRow

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.put(t.GATE, self.gate)
