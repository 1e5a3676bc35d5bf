"""Incidents: a fingerprint that several conversations meet within a window. Pure.

Theory. What is counted are failures that were more than hiccups (`HICCUPS`, `store.reads.trouble_counts`). From
those counts and the open incidents follows which incidents open, change and close; whoever stores them decides nothing.

Laws (tests/agent_core/test_incidents.py): a fingerprint has at most one open incident; one that still comes up stays open, one
that has been quiet closes; the same counts twice change nothing the second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agent_core.exits import ExitCode
from agent_core.known import KnownIncident
from agent_core.recovery import Rung
from agent_core.store.rows import IncidentRow, IncidentState, RungCount, TroubleCount
from agent_core.troubles import Outcome

HICCUPS = (Rung.RETRY, Rung.CONTINUE, Rung.NUDGE, Rung.CONTINUE_THINKING, Rung.COMPACT, Rung.LEAVE_OUT)
"""What these cured at once is no incident: the same model did the same work after all."""


@dataclass(frozen=True, slots=True)
class IncidentRules:
    """When a failure is an incident."""

    conversations: int = 2
    """So many must have met it."""
    window_ms: int = 3_600_000
    quiet_ms: int = 1_800_000
    """One that did not come up for so long is over."""


def best_remedy(counts: Iterable[RungCount]) -> Rung | None:
    """The remedy that helped in the largest share of its tries (a little doubt for few tries); None if none helped."""
    helped, tried = Counter[str](), Counter[str]()
    for count in counts:
        if count.outcome != Outcome.NOT_KNOWN:
            tried[count.rung] += count.count
            helped[count.rung] += count.count if count.outcome == Outcome.HELPED else 0
    best = max(
        (rung for rung in tried if helped[rung]),
        key=lambda rung: ((helped[rung] + 1) / (tried[rung] + 2), rung),
        default=None,
    )
    return Rung(best) if best is not None else None


def changes(
    counts: Sequence[TroubleCount],
    opened: Sequence[IncidentRow],
    now: int,
    rules: IncidentRules,
    new_id: Callable[[], str],
) -> list[IncidentRow]:
    """The incidents that are not as they are stored (`opened`: those that are open), given the counts of the window."""
    by_fingerprint = {incident.fingerprint: incident for incident in opened}
    found: list[IncidentRow] = []
    for count in counts:
        known = by_fingerprint.get(count.fingerprint)
        if known is None and (count.conversations < rules.conversations or now - count.last_at >= rules.quiet_ms):
            continue
        incident = _with(known or _new(count, new_id()), count)
        if incident != known:
            found.append(incident)
            by_fingerprint[count.fingerprint] = incident
    for incident in by_fingerprint.values():
        if now - incident.last_at >= rules.quiet_ms:
            found = [one for one in found if one.incident != incident.incident]
            found.append(replace(incident, state=IncidentState.CLOSED, closed_at=now))
    return found


def _new(count: TroubleCount, incident: str) -> IncidentRow:
    code, endpoint, model, tool, _ = parts_of(count.fingerprint)
    return IncidentRow(
        incident=incident, fingerprint=count.fingerprint, state=IncidentState.OPEN, code=code, endpoint=endpoint,
        model=model, tool=tool, opened_at=count.last_at, last_at=count.last_at,
    )  # fmt: skip


def _with(incident: IncidentRow, count: TroubleCount) -> IncidentRow:
    remedy = best_remedy(count.rungs)
    return replace(
        incident,
        last_at=max(incident.last_at, count.last_at),
        conversations=max(incident.conversations, count.conversations),
        turns=max(incident.turns, count.turns),
        remedy=remedy.value if remedy is not None else incident.remedy,
    )


def parts_of(fingerprint: str) -> tuple[str, str, str, str, str]:
    """Exit, endpoint, model, tool (empty for none) and size. A model's name may itself hold the separator."""
    code, endpoint, rest = fingerprint.split("|", 2)
    model, tool, size = rest.rsplit("|", 2)
    return code, endpoint, model, "" if tool == "-" else tool, size


def known_incidents(opened: Iterable[IncidentRow]) -> tuple[KnownIncident, ...]:
    """The open incidents as a turn is told of them."""
    return tuple(
        KnownIncident(ExitCode(one.code), one.endpoint, one.model, one.tool, Rung(one.remedy) if one.remedy else None)
        for one in opened
    )


def incident_words(incident: IncidentRow) -> str:
    """One line for the operators: that it opened, or that it is over."""
    tool = f", calls of {incident.tool}" if incident.tool else ""
    what = f"{incident.code.replace('_', ' ')} – {incident.model} at {incident.endpoint}{tool}"
    if incident.state is IncidentState.CLOSED:
        minutes = max(1, round((incident.last_at - incident.opened_at) / 60_000))
        met = f"{incident.conversations} conversations, {incident.turns} turns, over {minutes} min"
        return f"✅ Over: {what} ({met}). Incident {incident.incident}."
    helps = f" What helps most so far: {incident.remedy.replace('_', ' ')}." if incident.remedy else ""
    return f"🚨 {what}: {incident.conversations} conversations met it.{helps} Incident {incident.incident}."
