"""What is written of incidents."""

from __future__ import annotations

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, Op
from agent_core.store.troubles.rows import IncidentRow, IncidentState
from agent_core.store.webhooks.ops import tell
from agent_core.store.webhooks.rows import HookRow


@dataclass(frozen=True, slots=True)
class PutIncident(Op[bool]):
    """An incident as it is now. The answer is whether it opens or closes by this.

    One that opens while its fingerprint has an open one changes nothing.
    """

    incident: IncidentRow
    hooks: tuple[HookRow, ...] = ()
    """What tells of it, if it opens or closes."""

    def need(self, wanted: Needs) -> None:
        wanted.incidents.add(self.incident.fingerprint)

    def decide(self, facts: Facts, previous: object) -> bool:
        incident = self.incident
        opened = facts.open_incidents.get(incident.fingerprint)
        mine = opened == incident.incident
        if incident.state is IncidentState.CLOSED and not mine:
            return previous is True  # somebody closed it before
        if incident.state is IncidentState.OPEN and opened is not None and not mine:
            return False
        facts.put(t.INCIDENT, incident)
        changes = not mine or incident.state is IncidentState.CLOSED
        if incident.state is IncidentState.CLOSED:
            del facts.open_incidents[incident.fingerprint]
        else:
            facts.open_incidents[incident.fingerprint] = incident.incident
        if changes:
            tell(facts, self.hooks)
        return changes or previous is True
