"""What a turn does differently from its first call on, because of what is known of earlier failures. Pure.

Theory. What is known is *tried*, once: a turn may begin with advice, or at another model. At the first failure of that try, whatever it is,
the turn goes on as one that knows nothing (`Remedy.AS_USUAL`): first model, no advice, the whole ladder from its beginning. No tool is ever
taken away beforehand. So a turn that knows something recovers whenever one that knows nothing would, with one call more at most.

What is tried was measured to help (`agent_core.learning.measured`): by this conversation, for calls that broke off in it, or by several people, in an
incident about the first model. Where nothing special was needed (a retry cured it), nothing special is done. Calls that broke off in this
conversation and that nothing has helped against are met by the advice all the same, and from the second turn that ended so by the next model.

Law (tests/agent_core/test_knowledge.py): knowledge never hurts.
"""

from __future__ import annotations

from agent_core.failures.exits import ExitCode
from agent_core.failures.known import Known, KnownIncident, KnownStall
from agent_core.failures.remedies import Advice, AdviceItem, Remedy
from agent_core.failures.troubles import Trouble, least_chars
from agent_core.records import dataclass
from agent_core.settings import Route, TurnSettings

NEXT_MODEL_AFTER = 2
"""So many turns must have ended by a tool's calls that break off before the first model is passed over."""
CALLS = (ExitCode.BROKEN_IN_TOOL_CALL, ExitCode.TOOL_CALL_CUT_BY_LENGTH)
OF_THE_MODEL = frozenset({
    *CALLS, ExitCode.BROKEN_BEFORE_TEXT, ExitCode.BROKEN_IN_TEXT, ExitCode.EMPTY_REPLY, ExitCode.EMPTY_AFTER_TOOLS, ExitCode.THINKING_ONLY,
    ExitCode.PROMISED_WITHOUT_ACTING, ExitCode.PROVIDER_DOWN, ExitCode.PROVIDER_GARBAGE, ExitCode.MODEL_NOT_FOUND,
})  # fmt: skip
"""Failures that speak of a model, whoever asks it. Refusals and overflows speak of a request, and limits of a key, which is set aside by itself."""


@dataclass(frozen=True, slots=True)
class TurnStart:
    """How a turn begins."""

    route: int = 0
    """Index of the first route."""
    advice: tuple[AdviceItem, ...] = ()


AS_USUAL = TurnStart()


def prevention(settings: TurnSettings, known: Known) -> TurnStart:
    """How a turn begins that knows this."""
    if not known.stalls and not known.incidents:  # as nearly all
        return AS_USUAL
    stalls, incidents = _stalls(settings, known), _incidents(settings, known)
    advised = sorted({*(s.tool for s in stalls), *(i.tool for i in incidents if i.remedy is Remedy.ADVISE_SMALLER)})
    advice = (AdviceItem(Advice.SMALLER_FROM_START, " and ".join(advised)),) if advised else ()
    ended = [stall for stall in stalls if stall.ended >= NEXT_MODEL_AFTER]
    away = [incident for incident in incidents if incident.remedy is Remedy.NEXT_ROUTE]
    if not ended and not away:
        return TurnStart(0, advice)
    first = settings.routes[0]
    bad = {_place(first), *(model for stall in ended for model in stall.models)}
    bad |= {(i.endpoint, i.model) for i in known.incidents if i.remedy is Remedy.NEXT_ROUTE and i.code in OF_THE_MODEL}
    return TurnStart(next((n for n, route in enumerate(settings.routes) if _place(route) not in bad), 0), advice)


def tried(settings: TurnSettings, known: Known) -> list[Trouble]:
    """The failures for whose sake the turn began as it did, each with what was tried against it."""
    first = settings.routes[0]
    found = [
        Trouble(i.code, None, i.endpoint, i.model, i.tool, least_chars(i.size), i.remedy, foreseen=True)
        for i in _incidents(settings, known)
    ]
    found += [
        Trouble(
            CALLS[0],
            None,
            first.endpoint,
            first.model,
            s.tool,
            least_chars(s.size),
            Remedy.ADVISE_SMALLER,
            foreseen=True,
        )
        for s in _stalls(settings, known)
    ]
    return list({(one.fingerprint, one.remedy): one for one in found}.values())


def _place(route: Route) -> tuple[str, str]:
    return route.endpoint, route.model


def _offered(settings: TurnSettings) -> set[str]:
    return {*settings.client_tools} or {tool.name for tool in settings.tools}


def _stalls(settings: TurnSettings, known: Known) -> list[KnownStall]:
    """Those of the conversation that something special is tried against."""
    first = _place(settings.routes[0])
    return [
        stall
        for stall in known.stalls
        if stall.tool in _offered(settings)
        and (not stall.models or first in stall.models)
        and (stall.remedy is None or not stall.remedy.recipe.hiccup)
    ]


def _incidents(settings: TurnSettings, known: Known) -> list[KnownIncident]:
    """Those about the turn's first model that something special has been seen to help against."""
    first, offered = _place(settings.routes[0]), _offered(settings)
    return [
        incident
        for incident in known.incidents
        if (incident.endpoint, incident.model) == first
        and incident.code in OF_THE_MODEL
        and (not incident.tool or incident.tool in offered)
        and (
            incident.remedy is Remedy.NEXT_ROUTE
            or (incident.remedy is Remedy.ADVISE_SMALLER and incident.code in CALLS)
        )
    ]
