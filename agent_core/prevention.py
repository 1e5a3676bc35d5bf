"""What a turn does differently from its first call on, because of what is known of earlier failures. Pure.

Rules (behaviour, section 4, across turns). A call that broke off in earlier turns of the conversation, or does so in an open
incident about this model, is met by the smaller-pieces advice before the first call. From the second turn that ended by it,
the next model is asked, if there is one. When it came back after that, the tool is not offered for a while.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_core.exits import ExitCode
from agent_core.known import Known
from agent_core.recovery import Advice, AdviceItem, Helps, Rung, next_route
from agent_core.settings import TurnSettings

NEXT_MODEL_AFTER = 2
"""So many turns must have ended by a tool's calls that break off before the first model is passed over."""
CALLS = (ExitCode.BROKEN_IN_TOOL_CALL, ExitCode.TOOL_CALL_CUT_BY_LENGTH)


@dataclass(frozen=True, slots=True)
class Start:
    """How a turn begins."""

    route: int = 0
    """Index of the first route."""
    advice: tuple[AdviceItem, ...] = ()
    withheld: tuple[str, ...] = ()
    """Own tools that are not offered."""


def prevention(settings: TurnSettings, known: Known) -> Start:
    """How a turn begins that knows this."""
    offered = {*settings.client_tools, *(tool.name for tool in settings.tools)}
    stalls = [stall for stall in known.stalls if stall.tool in offered]
    route = settings.routes[0]
    incidents = [
        incident
        for incident in known.incidents
        if incident.code in CALLS
        and (incident.endpoint, incident.model) == (route.endpoint, route.model)
        and incident.tool in offered
    ]
    withheld = sorted(stall.tool for stall in stalls if stall.withheld and stall.tool not in settings.client_tools)
    advised = sorted({*(s.tool for s in stalls), *(i.tool for i in incidents)} - {*withheld})
    advice = [AdviceItem(Advice.SMALLER_FROM_START, " and ".join(advised))] if advised else []
    advice += [AdviceItem(Advice.WITHHELD, tool) for tool in withheld]
    passed_over = any(stall.ended >= NEXT_MODEL_AFTER for stall in stalls) or any(
        incident.remedy is Rung.NEXT_ROUTE for incident in incidents
    )
    following = next_route(settings.routes, 0, Helps.OTHER_MODEL) if passed_over else None
    return Start(following or 0, tuple(advice), tuple(withheld))
