"""What is done about a model call that went wrong: every remedy as one record, and which of them is next.

Why it is data: a remedy is chosen by the rules, done by the machine, told to people, operators and the model, and measured by what is learnt
from failures. All of that is said once, in its `Recipe`; whoever needs a part of it reads it there. To add one, write a member of `Remedy`.

Theory. A model call that does not come to a good end is a `Failure`. Against each there are remedies, in the order in which they stand in
`Remedy`, each so often within one step of the turn (`Use`); `next_remedy` picks the first that is not used up and can help. When none is left,
`exit_for` says how the turn ends. Counts are cleared by a reply that came to a good end, never by a stub of one.

Laws (tests/agent_core/test_recovery.py): the remedies against every failure come to an end; none is chosen more often than its count; a failure
that the same route cannot mend (400, 401, 402, 403, 404, filter) never repeats the same request there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias

from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.messages import GATEWAY_PREFIX
from agent_core.records import dataclass
from agent_core.retry import MODEL
from agent_core.settings import LadderCounts, Route
from agent_core.text.tongue import sentence
from agent_core.text.worded import Worded


class Failure(StrEnum):
    """What went wrong with a model call, as far as the choice of the remedy depends on it."""

    BEFORE_CONTENT = "before_content"
    """Break before any text or call; 429; 5xx; network; garbage."""
    IN_TEXT = "in_text"
    NOTHING_MORE = "nothing_more"
    """Asked to go on from a text, the model said nothing: an empty reply, or a break before any content."""
    THOUGHT_MORE = "thought_more"
    """The same, and it only thought."""
    IN_TOOL_CALL = "in_tool_call"
    EMPTY = "empty"
    THINKING_ONLY = "thinking_only"
    PROMISED = "promised"
    LENGTH = "length"
    LENGTH_IN_TOOL_CALL = "length_in_tool_call"
    OVERFLOW = "overflow"
    TOO_LARGE = "too_large"
    CREDENTIAL = "credential"
    """401, 402, 403: another credential may help, the same one will not."""
    REQUEST = "request"
    """400, 404, filter, an address that is wrong: another model may help, the same request will not."""


DOUBTING = frozenset({Failure.BEFORE_CONTENT, Failure.EMPTY, Failure.THINKING_ONLY})
"""Failures without a word of what they are about: what is left out is only doubted."""


# ---------------------------------------------------------------------- what the model is told


class Advice(Worded):
    """What the gateway tells the model beside the conversation, for one call: each with its words, see `advice_words`."""

    CONTINUE = (
        "continue",
        (
            "Your reply was cut off before its end. Go on exactly where it stopped, beginning with the very next "
            "character. Do not repeat anything and do not comment on the interruption. If nothing was missing, reply with the one word END."
        ),
    )
    REPEATED = (  # the same, of a reply that had begun to repeat itself
        "repeated",
        (
            "Your reply had begun to say the same again and again, and was stopped there. Go on with what comes next, or, "
            "if nothing is left to say, end it in a sentence. Do not repeat anything."
        ),
    )
    SMALLER_PIECES = (
        "smaller_pieces",
        (
            "Your call{of} was cut off while its arguments were being sent, so it was not executed. Send the work "
            "in smaller pieces: for a long text, write a short first part, then append or edit part by part, with at "
            "most about 2,000 characters of arguments in a call."
        ),
    )
    SMALLER_FROM_START = (  # earlier turns, or other sessions, had calls that broke off on their way
        "smaller_from_start",
        (
            "Calls of {detail} with long arguments broke off on their way lately and were not executed. Send the work "
            "in smaller pieces from the start: for a long text, write a short first part, then append or edit part by "
            "part, with at most about 2,000 characters of arguments in a call."
        ),
    )
    WITHHELD = (  # the tool's calls broke off so often that it is not offered for a while
        "withheld",
        (
            "Calls of {detail} broke off on their way again and again, whatever was tried, so {detail} is not offered "
            "for now. Give long content as text in your reply, or say what else could be done."
        ),
    )
    RETURNED_NOTHING = (
        "returned_nothing",
        "You returned nothing. Go on with the task, or say that you are done and what came of it.",
    )
    THOUGHT_ONLY = (
        "thought_only",
        "You thought about it but did not reply. Reply now, or call the tool you need.",
    )
    ACT_NOW = (
        "act_now",
        (
            "You announced “{detail}” and then stopped without calling a tool. Do it now by calling the tool. If no tool "
            "can do it (nothing wakes you later, for example), say plainly that you can't. If nothing is left to do, reply with the one "
            "word DONE: what you have said stands, and the person has it."
        ),
    )
    SUM_UP_LIMIT = (
        "sum_up_limit",
        (
            "The step limit for this message is reached, so no more tools can be called. Say briefly what is done, "
            "what is not done, and what the next step would be."
        ),
    )
    SUM_UP_LOOP = (
        "sum_up_loop",
        (
            "The tool calls are not getting anywhere, so no more tools can be called. Say briefly what you found, "
            "what is in the way, and what the person could do."
        ),
    )


REASONING_TAIL_CHARS = 6_000
"""How much of an unfinished reasoning is handed back."""


def advice_words(advice: Advice, detail: str = "", reasoning: str = "") -> str:
    """What the gateway tells the model, marked as the gateway's words; with the end of its `reasoning`, if it is to go on from there."""
    words = advice.words.format(detail=detail, of=f" of {detail}" if detail else "")
    tail = reasoning[-REASONING_TAIL_CHARS:]
    return f"{GATEWAY_PREFIX} {words}" + (f" This is the end of your thoughts so far:\n\n{tail}" if tail else "")


DONE_SECONDS = 6.0
"""For so long the model's word is waited for whether a doubtful reply is finished."""
NOTHING_TO_ADD = "DONE."
"""What a model that is asked to act replies if nothing is left to do. It is not shown."""


@dataclass(frozen=True, slots=True)
class AdviceItem:
    """Advice of the gateway that stays before the model for the rest of the turn; never part of later turns."""

    advice: Advice
    detail: str = ""


# ---------------------------------------------------------------------- what a remedy is made of


class Asks(StrEnum):
    """Which model, at which endpoint, with which key the next call asks."""

    SAME = "same"
    NEXT = "next"
    """The next route that can help (`Use.helps`)."""
    FIRST = "first"


class Helps(StrEnum):
    """Which other routes can help with a failure."""

    ANY = "any"
    OTHER_CREDENTIAL = "other_credential"
    OTHER_MODEL = "other_model"
    LARGER_WINDOW = "larger_window"


class Put(StrEnum):
    """How the next call is put (`state.ask_after`)."""

    AS_BEFORE = "as_before"
    AS_TOLD = "as_told"
    """With the advice alone; advice to go on means from the text so far."""
    GO_ON = "go_on"
    """It goes on from the text so far."""
    THINK_ON = "think_on"
    """It goes on from the thoughts so far."""
    TO_ANOTHER = "to_another"
    """As before; after a failure of what a model said, as another model is asked at first."""


class Does(StrEnum):
    """What else changes in the turn (`taking.escalate`)."""

    NOTHING = "nothing"
    LEAVE_OUT = "leave_out"
    """What a provider may object to is not sent; see `leftout`."""
    FORGET = "forget"
    """What was tried because of earlier failures is given up."""
    WITHHOLD = "withhold"
    """The tool that the advice speaks of is not offered in the next call."""
    KEEP_ADVICE = "keep_advice"
    """The advice stays before the model for the rest of the turn."""
    COMPACT = "compact"
    """The history is shortened first."""


class Pause(StrEnum):
    """What is waited for before a remedy."""

    NONE = "none"
    BACKOFF = "backoff"
    RESTART = "restart"
    """From the second time on: as long as a provider takes to restart."""
    RESTARTING = "restarting"
    """The same, from the first time on."""


@dataclass(frozen=True, slots=True)
class Use:
    """A remedy against one failure."""

    times: Callable[[LadderCounts], int]
    """How often within one step."""
    pause: Pause = Pause.NONE
    helps: Helps = Helps.ANY
    page: str = ""
    """For docs/exits.md, where the remedy's own words do not fit."""


@dataclass(frozen=True, slots=True)
class Case:
    """A failure, and what of the turn the choice of its remedy depends on."""

    failure: Failure
    cause: BreakCause
    routes: Sequence[Route]
    current: int
    counts: LadderCounts
    tools: tuple[str, ...] = ()
    """Whose calls were arriving."""
    promised: str = ""
    """What the model had announced."""
    goes_on: bool = False
    """The call was to go on from a text."""
    trying: bool = False
    """What earlier failures taught is being tried."""
    too_long: bool = False
    """The provider asks for a longer pause than is waited for."""
    left: bool = False
    """There is something that can be left out."""
    named: bool = False
    """And the provider says what."""
    breaks_off: str = ""
    """The tool whose calls have broken off so often that the turn can only do without it."""


Told: TypeAlias = tuple[Advice | None, str]
"""What the model is told with a remedy, and what that speaks of."""


def _nothing(_: Case) -> Told:
    return None, ""


def _always(_: Case) -> bool:
    return True


def _never(_: Case) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that there is to say about a remedy."""

    against: Mapping[Failure, Use]
    """When and how often."""
    anyway: Callable[[Case], bool] = _never
    """Where this holds it is used against whatever failure, once a step."""
    can: Callable[[Case], bool] = _always
    """Whether it can help at all."""
    before_all: Callable[[Case], bool] = _never
    """Whether it goes before those that stand before it."""
    asks: Asks = Asks.SAME
    put: Put = Put.AS_BEFORE
    does: Does = Does.NOTHING
    advises: Callable[[Case], Told] = _nothing
    names_tool: bool = False
    """What its advice speaks of is the name of a tool."""
    hiccup: bool = True
    """What it cures at once was a hiccup: the same model did the same work after all. Such a failure is no incident, and where it helps as well,
    nothing special is done beforehand."""
    page: str
    """In the table of docs/exits.md."""
    story: str
    """In a turn's story, for operators: “The gateway …”."""
    mended: str
    """For people, in the line that says what was mended; ``{model}`` is the one that came to a good end."""
    tried: str = ""
    """For people, in the notice of a stall that came again; empty: its stored name."""

    def use(self, case: Case) -> Use | None:
        """How it is used against this failure, if it is."""
        return self.against.get(case.failure) or (_ONCE if self.anyway(case) else None)


def _go_on(case: Case) -> Told:
    return Advice.REPEATED if case.cause is BreakCause.REPEATING else Advice.CONTINUE, ""


def _to_another(case: Case) -> Told:
    """With what people have seen it has to go on all the same."""
    if case.failure in (Failure.IN_TEXT, Failure.LENGTH) or case.goes_on:
        return _go_on(case)
    return (Advice.ACT_NOW, case.promised) if case.promised else (None, "")


def _remind(case: Case) -> Told:
    return Advice.ACT_NOW if case.failure is Failure.PROMISED else Advice.RETURNED_NOTHING, case.promised


def _within_patience(case: Case) -> bool:
    return not case.too_long


def _as_often_as_there_is_one(_: LadderCounts) -> int:
    return 1_000


def _nothing_more(counts: LadderCounts) -> int:
    """As often as where nothing had been said before: that something was takes no remedy away."""
    return max(counts.retry, counts.empty_retry + counts.empty_nudge)


_ONCE = Use(lambda _: 1)
_ANY = Use(_as_often_as_there_is_one)
_OTHER_MODEL = Use(_as_often_as_there_is_one, helps=Helps.OTHER_MODEL)
_REFUSED = Use(lambda c: c.leave_out)
_DOUBTED = Use(
    lambda c: min(2, c.leave_out),
    page="leave out what may be the reason, if there is any: what is attached and what turns without an answer said; then all of the history",
)


# ---------------------------------------------------------------------- the remedies


class Remedy(StrEnum):
    """The remedies, in the order in which they are tried. The value is the name under which one is stored."""

    recipe: Recipe

    def __new__(cls, value: str, recipe: Recipe) -> Remedy:
        member = str.__new__(cls, value)
        member._value_ = value
        member.recipe = recipe
        return member

    AS_USUAL = (
        "as_usual",
        Recipe(  # what was tried because of earlier failures did not help: ask as a turn asks that knows nothing
            against={},
            anyway=lambda case: case.trying and not (case.too_long and case.current == 0),
            before_all=_always,
            asks=Asks.FIRST,
            put=Put.AS_TOLD,
            does=Does.FORGET,
            advises=_to_another,
            page="the same call again, as if nothing were known of earlier failures",
            story=sentence(
                "The gateway gave up what it had tried because of earlier failures, and asked as usual{more}."
            ),
            mended=sentence("asked again"),
            tried=sentence("the same call again"),
        ),
    )
    RETRY = (
        "retry",
        Recipe(
            against={
                Failure.BEFORE_CONTENT: Use(lambda c: c.retry, Pause.BACKOFF),
                Failure.IN_TOOL_CALL: Use(lambda c: c.tool_call_retry),
                Failure.EMPTY: Use(lambda c: c.empty_retry, Pause.BACKOFF),
            },
            can=_within_patience,
            page="the same call again",
            story=sentence("The gateway tried the same call again{more}."),
            mended=sentence("asked again"),
            tried=sentence("the same call again"),
        ),
    )
    CONTINUE = (
        "continue",
        Recipe(
            against={
                Failure.IN_TEXT: Use(lambda c: c.continue_text, Pause.RESTART),
                Failure.NOTHING_MORE: Use(_nothing_more, Pause.RESTARTING),
                Failure.THOUGHT_MORE: Use(lambda c: c.continue_thinking),
                Failure.LENGTH: Use(lambda c: c.continue_length),
            },
            can=_within_patience,
            put=Put.GO_ON,
            advises=_go_on,
            page="go on from where it stopped",
            story=sentence("The gateway asked the model to go on from the text so far{more}."),
            mended=sentence("it went on from there"),
        ),
    )
    ADVISE_SMALLER = (
        "advise_smaller",
        Recipe(
            against={
                Failure.IN_TOOL_CALL: Use(lambda c: c.tool_call_advice),
                Failure.LENGTH_IN_TOOL_CALL: Use(lambda c: c.tool_call_length_advice),
            },
            does=Does.KEEP_ADVICE,
            advises=lambda case: (Advice.SMALLER_PIECES, "".join(case.tools[:1])),
            names_tool=True,
            hiccup=False,
            page="again, with the advice to send smaller pieces",
            story=sentence("The gateway advised the model to send the work in smaller pieces{more}."),
            mended=sentence("asked again in smaller pieces"),
            tried=sentence("advice to send smaller pieces"),
        ),
    )
    NUDGE = (
        "nudge",
        Recipe(
            against={
                Failure.EMPTY: Use(lambda c: c.empty_nudge, Pause.BACKOFF),
                Failure.PROMISED: Use(lambda c: c.promise_nudge),
            },
            put=Put.AS_TOLD,
            advises=_remind,
            page="tell the model what is missing",
            story=sentence("The gateway reminded the model to go on{more}."),
            mended=sentence("it was reminded"),
        ),
    )
    CONTINUE_THINKING = (
        "continue_thinking",
        Recipe(
            against={Failure.THINKING_ONLY: Use(lambda c: c.continue_thinking)},
            put=Put.THINK_ON,
            advises=lambda _: (Advice.THOUGHT_ONLY, ""),
            page="let it go on to an answer",
            story=sentence("The gateway asked the model to reply from its thoughts so far{more}."),
            mended=sentence("it went on from there"),
        ),
    )
    COMPACT = (
        "compact",
        Recipe(
            against={failure: Use(lambda c: c.compact) for failure in (Failure.OVERFLOW, Failure.TOO_LARGE)},
            does=Does.COMPACT,
            page="shorten the conversation",
            story=sentence("The gateway shortened the conversation{more}."),
            mended=sentence("the conversation was shortened"),
        ),
    )
    NEXT_ROUTE = (
        "next_route",
        Recipe(
            against={
                Failure.BEFORE_CONTENT: _ANY,
                Failure.NOTHING_MORE: _ANY,
                Failure.CREDENTIAL: Use(_as_often_as_there_is_one, helps=Helps.OTHER_CREDENTIAL),
                Failure.OVERFLOW: Use(_as_often_as_there_is_one, helps=Helps.LARGER_WINDOW),
                Failure.IN_TEXT: _OTHER_MODEL,
                Failure.THOUGHT_MORE: _OTHER_MODEL,
                Failure.IN_TOOL_CALL: _OTHER_MODEL,
                Failure.EMPTY: _OTHER_MODEL,
                Failure.THINKING_ONLY: _OTHER_MODEL,
                Failure.PROMISED: _OTHER_MODEL,
                Failure.LENGTH_IN_TOOL_CALL: _OTHER_MODEL,
                Failure.TOO_LARGE: _OTHER_MODEL,
                Failure.REQUEST: _OTHER_MODEL,
            },
            asks=Asks.NEXT,
            put=Put.TO_ANOTHER,
            advises=_to_another,
            hiccup=False,
            page="the next key or model",
            story=sentence("The gateway went to the next key or model{more}."),
            mended=sentence("{model} was asked"),
            tried=sentence("another model"),
        ),
    )
    LEAVE_OUT = (
        "leave_out",
        Recipe(  # ask again without what the provider objects to
            against={
                **dict.fromkeys(sorted(DOUBTING), _DOUBTED),
                **dict.fromkeys((Failure.OVERFLOW, Failure.TOO_LARGE, Failure.REQUEST), _REFUSED),
            },
            can=lambda case: case.left,
            before_all=lambda case: case.named,
            does=Does.LEAVE_OUT,
            page="leave out what the provider objects to: what it names, else a picture, else messages, the latest first",
            story=sentence("The gateway left out what the provider may object to{more}."),
            mended=sentence("asked again without what it objects to"),
        ),
    )
    WITHOUT_TOOL = (
        "without_tool",
        Recipe(  # a tool's calls break off whatever is tried: ask for the same as text. The last of all, for one call
            against={},
            anyway=lambda case: bool(case.breaks_off),
            put=Put.AS_TOLD,
            does=Does.WITHHOLD,
            advises=lambda case: (Advice.WITHHELD, case.breaks_off),
            names_tool=True,
            hiccup=False,
            page="ask for text instead of the call",
            story=sentence("The gateway asked for the same as text, without the tool{more}."),
            mended=sentence("asked for text instead"),
            tried=sentence("asking for text instead"),
        ),
    )


LADDERS: Mapping[Failure, Sequence[tuple[Remedy, Use]]] = {
    failure: tuple((one, one.recipe.against[failure]) for one in Remedy if failure in one.recipe.against)
    for failure in Failure
}
"""What is tried against each failure, in order."""


def offered_again(remedies: Sequence[tuple[Failure, Remedy]], withheld: frozenset[str]) -> frozenset[str]:
    """The tools that are not offered in the next call: to do without one is for a single call."""
    return frozenset() if remedies and remedies[-1][1].recipe.does is Does.WITHHOLD else withheld


def next_route(routes: Sequence[Route], current: int, helps: Helps) -> int | None:
    """The index of the next route of the chain that can help, or None."""
    here = routes[current]
    for index in range(current + 1, len(routes)):
        there = routes[index]
        match helps:
            case Helps.ANY:
                return index
            case Helps.OTHER_CREDENTIAL:
                if there.credential != here.credential:
                    return index
            case Helps.OTHER_MODEL:
                if (there.endpoint, there.model) != (here.endpoint, here.model):
                    return index
            case Helps.LARGER_WINDOW:
                other = (there.endpoint, there.model) != (here.endpoint, here.model)
                if other and (not here.window or not there.window or there.window > here.window):
                    return index
    return None


def next_remedy(case: Case, chosen: Mapping[tuple[Failure, Remedy], int]) -> tuple[Remedy, Use] | None:
    """The next remedy, or None if there is none left. `chosen` holds how often each was in this step of the turn."""
    for remedy in sorted(Remedy, key=lambda one: not one.recipe.before_all(case)):
        recipe = remedy.recipe
        use = recipe.use(case)
        if use is None or chosen.get((case.failure, remedy), 0) >= use.times(case.counts) or not recipe.can(case):
            continue
        if recipe.asks is Asks.NEXT and next_route(case.routes, case.current, use.helps) is None:
            continue
        return remedy, use
    return None


CAUSE_TO_FAILURE: Mapping[BreakCause, Failure] = {
    BreakCause.NO_CONTENT: Failure.BEFORE_CONTENT,
    BreakCause.STALLED: Failure.BEFORE_CONTENT,
    BreakCause.TOO_SLOW: Failure.BEFORE_CONTENT,
    BreakCause.DROPPED: Failure.BEFORE_CONTENT,
    BreakCause.ENDED_EARLY: Failure.BEFORE_CONTENT,
    BreakCause.GARBAGE: Failure.BEFORE_CONTENT,
    BreakCause.BAD_PIECE: Failure.BEFORE_CONTENT,
    BreakCause.UNREADABLE_CALL: Failure.BEFORE_CONTENT,
    BreakCause.NO_CALL: Failure.BEFORE_CONTENT,
    BreakCause.ERROR_IN_STREAM: Failure.BEFORE_CONTENT,
    BreakCause.UNREACHABLE: Failure.BEFORE_CONTENT,
    BreakCause.CONNECTION_REFUSED: Failure.BEFORE_CONTENT,
    BreakCause.UNKNOWN_NAME: Failure.BEFORE_CONTENT,
    BreakCause.NOT_CONNECTED: Failure.BEFORE_CONTENT,
    BreakCause.BY_PROXY: Failure.BEFORE_CONTENT,
    BreakCause.BAD_CERTIFICATE: Failure.REQUEST,
    BreakCause.NOT_TLS: Failure.REQUEST,
    BreakCause.WANTS_TLS: Failure.REQUEST,
    BreakCause.REGION: Failure.REQUEST,
    BreakCause.NO_ROUTE: Failure.REQUEST,
    BreakCause.RATE_LIMITED: Failure.BEFORE_CONTENT,
    BreakCause.SERVER_ERROR: Failure.BEFORE_CONTENT,
    BreakCause.RESTARTED: Failure.BEFORE_CONTENT,
    BreakCause.REPEATING: Failure.BEFORE_CONTENT,
    BreakCause.TOO_LONG: Failure.LENGTH,
    BreakCause.UNAUTHORISED: Failure.CREDENTIAL,
    BreakCause.FORBIDDEN: Failure.CREDENTIAL,
    BreakCause.PAYMENT_REQUIRED: Failure.CREDENTIAL,
    BreakCause.NOT_FOUND: Failure.REQUEST,
    BreakCause.BAD_REQUEST: Failure.REQUEST,
    BreakCause.REFUSED: Failure.REQUEST,
    BreakCause.CONTEXT_OVERFLOW: Failure.OVERFLOW,
    BreakCause.TOO_LARGE: Failure.TOO_LARGE,
}
"""The failure that a break is, as long as neither text nor a tool call had come."""

CAUSE_TO_EXIT: Mapping[BreakCause, ExitCode] = {
    BreakCause.NO_CONTENT: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.STALLED: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.TOO_SLOW: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.DROPPED: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.ENDED_EARLY: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.GARBAGE: ExitCode.PROVIDER_GARBAGE,
    BreakCause.BAD_PIECE: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.UNREADABLE_CALL: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.NO_CALL: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.ERROR_IN_STREAM: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.UNREACHABLE: ExitCode.PROVIDER_DOWN,
    BreakCause.CONNECTION_REFUSED: ExitCode.PROVIDER_DOWN,
    BreakCause.UNKNOWN_NAME: ExitCode.PROVIDER_DOWN,
    BreakCause.NOT_CONNECTED: ExitCode.PROVIDER_DOWN,
    BreakCause.BY_PROXY: ExitCode.PROVIDER_DOWN,
    BreakCause.BAD_CERTIFICATE: ExitCode.PROVIDER_DOWN,
    BreakCause.NOT_TLS: ExitCode.PROVIDER_DOWN,
    BreakCause.WANTS_TLS: ExitCode.PROVIDER_DOWN,
    BreakCause.REGION: ExitCode.NOT_AUTHORISED,
    BreakCause.NO_ROUTE: ExitCode.MODEL_NOT_FOUND,
    BreakCause.RATE_LIMITED: ExitCode.RATE_LIMITED,
    BreakCause.SERVER_ERROR: ExitCode.PROVIDER_DOWN,
    BreakCause.RESTARTED: ExitCode.INTERRUPTED_BY_RESTART,
    BreakCause.REPEATING: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.TOO_LONG: ExitCode.CUT_BY_LENGTH,
    BreakCause.UNAUTHORISED: ExitCode.NOT_AUTHORISED,
    BreakCause.FORBIDDEN: ExitCode.NOT_AUTHORISED,
    BreakCause.PAYMENT_REQUIRED: ExitCode.PAYMENT_REQUIRED,
    BreakCause.NOT_FOUND: ExitCode.MODEL_NOT_FOUND,
    BreakCause.BAD_REQUEST: ExitCode.BAD_REQUEST,
    BreakCause.REFUSED: ExitCode.REFUSED,
    BreakCause.CONTEXT_OVERFLOW: ExitCode.CONTEXT_OVERFLOW,
    BreakCause.TOO_LARGE: ExitCode.REQUEST_TOO_LARGE,
}
"""How a turn ends on a break for which no remedy is left, before any text or tool call of the step."""

FAILURE_TO_EXIT: Mapping[Failure, ExitCode] = {
    Failure.IN_TEXT: ExitCode.BROKEN_IN_TEXT,
    Failure.NOTHING_MORE: ExitCode.BROKEN_IN_TEXT,
    Failure.THOUGHT_MORE: ExitCode.BROKEN_IN_TEXT,
    Failure.IN_TOOL_CALL: ExitCode.BROKEN_IN_TOOL_CALL,
    Failure.EMPTY: ExitCode.EMPTY_REPLY,
    Failure.THINKING_ONLY: ExitCode.THINKING_ONLY,
    Failure.PROMISED: ExitCode.PROMISED_WITHOUT_ACTING,
    Failure.LENGTH: ExitCode.CUT_BY_LENGTH,
    Failure.LENGTH_IN_TOOL_CALL: ExitCode.TOOL_CALL_CUT_BY_LENGTH,
}
"""How a turn ends on a failure whose cause does not matter."""


def exit_for(failure: Failure, cause: BreakCause, *, tools_ran: bool) -> ExitCode:
    """How a turn ends on a failure for which no remedy is left."""
    if cause is BreakCause.RESTARTED:
        return ExitCode.INTERRUPTED_BY_RESTART
    if failure is Failure.EMPTY and tools_ran:
        return ExitCode.EMPTY_AFTER_TOOLS
    return FAILURE_TO_EXIT.get(failure) or CAUSE_TO_EXIT[cause]


SET_ASIDE_SECONDS: Mapping[BreakCause, float] = {
    BreakCause.UNAUTHORISED: 600,
    BreakCause.FORBIDDEN: 600,
    BreakCause.PAYMENT_REQUIRED: 3600,
    BreakCause.RATE_LIMITED: 30,
}
"""How long a credential is set aside for what concerns the credential, and for nothing else."""


RESTART_SECONDS = (4.0, 10.0)
"""A provider that restarts is back within so long."""


def pause_seconds(kind: Pause, number: int, seed: int, low: float, high: float) -> float:
    """The pause before the `number`-th try (from 1) of a remedy. No pause is longer than `high`; jitter comes from `seed` alone."""
    match kind:
        case Pause.NONE:
            return 0.0
        case Pause.BACKOFF:
            return replace(MODEL, first=low, most=high).seconds(number, _fraction(number, seed))
        case Pause.RESTART | Pause.RESTARTING:
            least, most = (min(seconds, high) for seconds in RESTART_SECONDS)
            return least + (most - least) * _fraction(number, seed) if number > 1 or kind is Pause.RESTARTING else 0.0


def _fraction(number: int, seed: int) -> float:
    """Between 0 and 1, always the same for the same numbers."""
    # A multiplicative hash (Knuth) of seed and number; 53 bits make a fraction.
    mixed = (seed ^ (number * 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 31
    return (mixed >> 11) / (1 << 53)
