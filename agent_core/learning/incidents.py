"""Incidents: a fingerprint that several people meet within a window. Pure.

Theory. What is counted are failures that were more than hiccups (`HICCUPS`, `TroubleReads.counts`), and people: several conversations of
one person are one, and so are all who do not say who they are. From those counts and the open incidents follows which incidents open,
change and close; whoever stores them decides nothing. An incident about a model that is not asked any more is over.

Laws (tests/agent_core/test_incidents.py): a fingerprint has at most one open incident; one that still comes up stays open, one
that has been quiet closes; the same counts twice change nothing the second time; nobody opens one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from agent_core.failures.exits import EXITS, ExitCode
from agent_core.failures.known import KnownIncident
from agent_core.failures.remedies import Remedy
from agent_core.failures.troubles import RemedyOutcome
from agent_core.learning.measured import REMEDIES, best_remedy
from agent_core.records import dataclass
from agent_core.store.troubles.rows import IncidentRow, IncidentState, RemedyCount, TroubleCount

HICCUPS = tuple(remedy for remedy in Remedy if remedy.recipe.hiccup)
"""What these cured at once is no incident: the same model did the same work after all."""
_EXITS = {one.value: one for one in ExitCode}


@dataclass(frozen=True, slots=True)
class IncidentRules:
    """When a failure is an incident."""

    people: int = 2
    """So many must have met it."""
    window_ms: int = 3_600_000
    quiet_ms: int = 1_800_000
    """One that did not come up for so long is over."""


def remedy_of(counts: Iterable[RemedyCount], before: str = "") -> str:
    """What helps best by these counts; what did so `before` if they say nothing about any."""
    tries = [
        (REMEDIES[c.remedy], c.outcome == RemedyOutcome.HELPED, c.count)
        for c in counts
        if c.outcome != RemedyOutcome.NOT_KNOWN and c.remedy in REMEDIES
    ]
    best = best_remedy(tries)
    return best.value if best is not None else "" if tries else before


def changes(
    counts: Sequence[TroubleCount],
    opened: Sequence[IncidentRow],
    now: int,
    rules: IncidentRules,
    new_id: Callable[[], str],
    asked: Callable[[str, str], bool] = lambda _endpoint, _model: True,
) -> list[IncidentRow]:
    """The incidents that are not as they are stored (`opened`: those that are open), given the counts of the window.

    `asked` says whether a model at an endpoint is one that turns ask.
    """
    by_fingerprint = {incident.fingerprint: incident for incident in opened}
    found: list[IncidentRow] = []
    for count in counts:
        known = by_fingerprint.get(count.fingerprint)
        if not _says_what(count.fingerprint):
            continue
        if not asked(*parts_of(count.fingerprint)[1:3]):
            continue
        if known is None and (count.people < rules.people or now - count.last_at >= rules.quiet_ms):
            continue
        incident = _with(known or _new(count, new_id()), count)
        if incident != known:
            found.append(incident)
            by_fingerprint[count.fingerprint] = incident
    for incident in by_fingerprint.values():
        if now - incident.last_at >= rules.quiet_ms or not asked(incident.endpoint, incident.model):
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
    return replace(
        incident,
        last_at=max(incident.last_at, count.last_at),
        conversations=max(incident.conversations, count.conversations),
        turns=max(incident.turns, count.turns),
        remedy=remedy_of(count.remedies, incident.remedy),
    )


def parts_of(fingerprint: str) -> tuple[str, str, str, str, str]:
    """Exit, endpoint, model, tool (empty for none) and size. A model's name may itself hold the separator."""
    code, endpoint, rest = fingerprint.split("|", 2)
    model, tool, size = rest.rsplit("|", 2)
    return code, endpoint, model, "" if tool == "-" else tool, size


def _says_what(fingerprint: str) -> bool:
    """Whether it is one: of what somebody else wrote into the database nobody learns anything."""
    return fingerprint.count("|") >= 4


def known_incidents(opened: Iterable[IncidentRow]) -> tuple[KnownIncident, ...]:
    """The open incidents as a turn is told of them; of one that nobody understands it is told nothing."""
    return tuple(
        KnownIncident(
            _EXITS[one.code],
            one.endpoint,
            one.model,
            one.tool,
            REMEDIES.get(one.remedy),
            parts_of(one.fingerprint)[4],
        )
        for one in opened
        if one.code in _EXITS and _says_what(one.fingerprint)
    )


def exit_title(code: str) -> str:
    """What happens where turns end like this; of an exit that only a newer version knows, its name."""
    try:
        return EXITS[ExitCode(code)].title
    except ValueError:
        return code.replace("_", " ")


def failure_title(code: str, endpoint: str, model: str, tool: str) -> str:
    """What fails where, in one line; `endpoint` and `tool` may be empty."""
    where = f" – {model} at {endpoint}" if endpoint else ""
    return f"{exit_title(code)}{where}{f', calls of {tool}' if tool else ''}"


def incident_title(incident: IncidentRow) -> str:
    """What an incident is called wherever operators meet it."""
    return failure_title(incident.code, incident.endpoint, incident.model, incident.tool)


def incident_words(incident: IncidentRow) -> str:
    """One line for the operators: that it opened, or that it is over."""
    what = incident_title(incident)
    if incident.state is IncidentState.CLOSED:
        minutes = max(1, round((incident.last_at - incident.opened_at) / 60_000))
        met = f"{incident.conversations} conversations, {incident.turns} turns, over {minutes} min"
        return f"✅ Over: {what} ({met}). Incident {incident.incident}."
    helps = f" What helps most so far: {incident.remedy.replace('_', ' ')}." if incident.remedy else ""
    return f"🚨 {what}: {incident.conversations} conversations met it.{helps} Incident {incident.incident}."
