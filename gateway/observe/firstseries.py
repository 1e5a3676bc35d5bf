"""The series that a gateway has before anything has happened: those whose labels are known beforehand. Pure.

Why: Prometheus sees an increase only between two values. A counter that is born at 1 has none, so an alert on it would miss the first
failure, which is often the only one. So every series of a closed label set, and of what is configured, begins at 0. What is not here
has a label from outside (an HTTP status, a tool's name) or no rule and a great many values.

Law (tests/gateway/test_metrics.py): each counter that an alert rule asks for is here, with all that the program can count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import product

from adapters.contract.chat import Cause, Fate
from agent_core.model.endpoints import Endpoint
from agent_core.turn.exits import Budget, ExitCode, Measure
from gateway.http.patience import Cut
from gateway.http.refusals import LANE as REFUSED_LANE
from gateway.observe import metricscatalogue as m
from gateway.observe.metricscatalogue import Metric
from gateway.sessions.hub import COMMAND_LANE, NORMAL_LANE

OWN_SURFACES = ("api", "web")
OUTCOMES = ("stored", "failed")


def first_series(
    platforms: Sequence[str], endpoints: Sequence[Endpoint], stalled: Sequence[str]
) -> Iterator[tuple[Metric, tuple[str, ...]]]:
    """Each metric with the values of its labels. `stalled` are the causes for which a silent model's call is given up."""
    surfaces = (*OWN_SURFACES, *platforms)
    known: Mapping[Metric, Sequence[Iterable[str]]] = {
        m.MESSAGES: (surfaces, (NORMAL_LANE, COMMAND_LANE, REFUSED_LANE)),
        m.TURNED_AWAY: (surfaces,),
        m.CONNECTIONS_CUT: (_of(Cut),),
        m.TURNS: (_of(ExitCode), surfaces),
        m.TURN_WAIT: (surfaces,),
        m.FIRST_CONTENT: (surfaces,),
        m.TURN_SECONDS: (surfaces,),
        m.FIRST_SIGN: (platforms,),
        m.SPEND_STOPPED: (_of(Budget), _of(Measure)),
        m.STORE_OPERATIONS: (OUTCOMES,),
        m.COMMIT_SECONDS: (OUTCOMES,),
        m.DELIVERY_LAG: (platforms,),
        m.DELIVERY_RETRIES: (platforms, _of(Fate), _of(Cause)),
        m.DELIVERY_FAILED: (platforms, _of(Cause)),
        m.DELIVERY_PAUSES: (platforms,),
    }
    for metric, sets in known.items():
        for values in product(*sets):
            yield metric, values
    for endpoint in endpoints:
        for model, cause in product(endpoint.models or ("",), stalled):
            yield m.STALLS, (endpoint.label, model, cause)


def _of(members: type[Enum]) -> list[str]:
    return [str(member.value) for member in members]
