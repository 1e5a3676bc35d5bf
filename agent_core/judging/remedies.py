"""The recovery ladders (behaviour, section 3), as data and pure functions.

Theory. A model call that does not come to a good end is a `Failure`; each failure escalates along its own ladder: an ordered list of
`LadderStep`s, each with a remedy (`Remedy`) and how often it may be used within one step of the turn. `next_remedy` picks the
first that is not used up and can help. When none is left, `exit_for` says how the turn ends. Counts are cleared by a reply
that came to a good end, never by a stub of one.

Laws (tests/agent_core/test_recovery.py): every ladder ends; a remedy is never chosen more often than its count; a failure that
the same route cannot mend (400, 401, 402, 403, 404, filter) never repeats the same request there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent_core.turn.exits import BreakCause, ExitCode
from agent_core.turn.settings import LadderCounts, Route


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


class Remedy(StrEnum):
    """A remedy."""

    RETRY = "retry"
    NEXT_ROUTE = "next_route"
    CONTINUE = "continue"
    ADVISE_SMALLER = "advise_smaller"
    NUDGE = "nudge"
    CONTINUE_THINKING = "continue_thinking"
    COMPACT = "compact"
    LEAVE_OUT = "leave_out"
    """Ask again without what the provider objects to; see `leftout`."""
    AS_USUAL = "as_usual"
    """What was tried because of earlier failures did not help: ask as a turn asks that knows nothing."""
    WITHOUT_TOOL = "without_tool"
    """A tool's calls break off whatever is tried: ask for the same as text. The last of all, for one call."""


DOUBTING = frozenset({Failure.BEFORE_CONTENT, Failure.EMPTY, Failure.THINKING_ONLY})
"""Failures without a word of what they are about: what is left out is only doubted."""
SPECIAL = frozenset({Remedy.NEXT_ROUTE, Remedy.ADVISE_SMALLER, Remedy.WITHOUT_TOOL})
"""Remedies that do something else than to ask the same model for the same again."""


class Advice(StrEnum):
    """What the gateway tells the model beside the conversation, for one call."""

    CONTINUE = "continue"
    REPEATED = "repeated"
    """The same, of a reply that had begun to repeat itself."""
    SMALLER_PIECES = "smaller_pieces"
    SMALLER_FROM_START = "smaller_from_start"
    """Earlier turns, or other sessions, had calls that broke off on their way."""
    WITHHELD = "withheld"
    """The tool's calls broke off so often that it is not offered for a while."""
    RETURNED_NOTHING = "returned_nothing"
    THOUGHT_ONLY = "thought_only"
    ACT_NOW = "act_now"
    SUM_UP_LIMIT = "sum_up_limit"
    SUM_UP_LOOP = "sum_up_loop"


DONE_SECONDS = 6.0
"""For so long the model's word is waited for whether a doubtful reply is finished."""
NOTHING_TO_ADD = "DONE."
"""What a model that is asked to act replies if nothing is left to do. It is not shown."""


@dataclass(frozen=True, slots=True)
class AdviceItem:
    """Advice of the gateway that stays before the model for the rest of the turn; never part of later turns."""

    advice: Advice
    detail: str = ""


class Helps(StrEnum):
    """Which other routes can help with a failure."""

    ANY = "any"
    OTHER_CREDENTIAL = "other_credential"
    OTHER_MODEL = "other_model"
    LARGER_WINDOW = "larger_window"


class Pause(StrEnum):
    """What is waited for before a remedy."""

    NONE = "none"
    BACKOFF = "backoff"
    RESTART = "restart"
    """From the second time on: as long as a provider takes to restart."""
    RESTARTING = "restarting"
    """The same, from the first time on."""


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One row of a ladder."""

    remedy: Remedy
    times: Callable[[LadderCounts], int]
    pause: Pause = Pause.NONE
    helps: Helps = Helps.ANY


def _always(_: LadderCounts) -> int:
    return 1_000  # as long as there is a further route


def _nothing_more(counts: LadderCounts) -> int:
    """As often as where nothing had been said before: that something was takes no remedy away."""
    return max(counts.retry, counts.empty_retry + counts.empty_nudge)


_LEAVE_OUT = LadderStep(Remedy.LEAVE_OUT, lambda c: c.leave_out)
_WITHOUT_DOUBTED = LadderStep(Remedy.LEAVE_OUT, lambda c: min(2, c.leave_out))
"""The last of all: something in the conversation may make the model fail."""
_NEXT_MODEL = LadderStep(Remedy.NEXT_ROUTE, _always, helps=Helps.OTHER_MODEL)
_NEXT_LARGER = LadderStep(Remedy.NEXT_ROUTE, _always, helps=Helps.LARGER_WINDOW)

LADDERS: Mapping[Failure, Sequence[LadderStep]] = {
    Failure.BEFORE_CONTENT: (
        LadderStep(Remedy.RETRY, lambda c: c.retry, Pause.BACKOFF),
        LadderStep(Remedy.NEXT_ROUTE, _always),
        _WITHOUT_DOUBTED,
    ),
    Failure.IN_TEXT: (LadderStep(Remedy.CONTINUE, lambda c: c.continue_text, Pause.RESTART), _NEXT_MODEL),
    Failure.NOTHING_MORE: (
        LadderStep(Remedy.CONTINUE, _nothing_more, Pause.RESTARTING),
        LadderStep(Remedy.NEXT_ROUTE, _always),
    ),
    Failure.THOUGHT_MORE: (LadderStep(Remedy.CONTINUE, lambda c: c.continue_thinking), _NEXT_MODEL),
    Failure.IN_TOOL_CALL: (
        LadderStep(Remedy.RETRY, lambda c: c.tool_call_retry),
        LadderStep(Remedy.ADVISE_SMALLER, lambda c: c.tool_call_advice),
        _NEXT_MODEL,
    ),
    Failure.EMPTY: (
        LadderStep(Remedy.RETRY, lambda c: c.empty_retry, Pause.BACKOFF),
        LadderStep(Remedy.NUDGE, lambda c: c.empty_nudge, Pause.BACKOFF),
        _NEXT_MODEL,
        _WITHOUT_DOUBTED,
    ),
    Failure.THINKING_ONLY: (
        LadderStep(Remedy.CONTINUE_THINKING, lambda c: c.continue_thinking),
        _NEXT_MODEL,
        _WITHOUT_DOUBTED,
    ),
    Failure.PROMISED: (LadderStep(Remedy.NUDGE, lambda c: c.promise_nudge), _NEXT_MODEL),
    Failure.LENGTH: (LadderStep(Remedy.CONTINUE, lambda c: c.continue_length),),
    Failure.LENGTH_IN_TOOL_CALL: (LadderStep(Remedy.ADVISE_SMALLER, lambda c: c.tool_call_length_advice), _NEXT_MODEL),
    Failure.OVERFLOW: (LadderStep(Remedy.COMPACT, lambda c: c.compact), _NEXT_LARGER, _LEAVE_OUT),
    Failure.TOO_LARGE: (LadderStep(Remedy.COMPACT, lambda c: c.compact), _NEXT_MODEL, _LEAVE_OUT),
    Failure.CREDENTIAL: (LadderStep(Remedy.NEXT_ROUTE, _always, helps=Helps.OTHER_CREDENTIAL),),
    Failure.REQUEST: (_NEXT_MODEL, _LEAVE_OUT),
}
"""What is tried against each failure, in order."""


def offered_again(remedies: Sequence[tuple[Failure, Remedy]], withheld: frozenset[str]) -> frozenset[str]:
    """The tools that are not offered in the next call: to do without one is for a single call."""
    return frozenset() if remedies and remedies[-1][1] is Remedy.WITHOUT_TOOL else withheld


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


def next_remedy(
    failure: Failure,
    chosen: Mapping[tuple[Failure, Remedy], int],
    counts: LadderCounts,
    routes: Sequence[Route],
    current: int,
    *,
    skip: frozenset[Remedy] = frozenset(),
    first: Remedy | None = None,
) -> LadderStep | None:
    """The next remedy for a failure, or None if there is none left.

    `chosen` holds how often each remedy was used in this step of the turn. `skip` are remedies that cannot help (the provider
    asked for a longer pause than we wait); `first` is one that is tried before the others.
    """
    for step in sorted(LADDERS[failure], key=lambda one: one.remedy is not first):
        if chosen.get((failure, step.remedy), 0) >= step.times(counts):
            continue
        if step.remedy in skip:
            continue
        if step.remedy is Remedy.NEXT_ROUTE and next_route(routes, current, step.helps) is None:
            continue
        return step
    return None


CAUSE_TO_FAILURE: Mapping[BreakCause, Failure] = {
    BreakCause.NO_CONTENT: Failure.BEFORE_CONTENT,
    BreakCause.STALLED: Failure.BEFORE_CONTENT,
    BreakCause.DROPPED: Failure.BEFORE_CONTENT,
    BreakCause.ENDED_EARLY: Failure.BEFORE_CONTENT,
    BreakCause.GARBAGE: Failure.BEFORE_CONTENT,
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
    BreakCause.DROPPED: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.ENDED_EARLY: ExitCode.BROKEN_BEFORE_TEXT,
    BreakCause.GARBAGE: ExitCode.PROVIDER_GARBAGE,
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


def pause_seconds(step: LadderStep, number: int, seed: int, low: float, high: float) -> float:
    """The pause before the `number`-th try (from 1) of a remedy. No pause is longer than `high`; jitter comes from `seed` alone."""
    match step.pause:
        case Pause.NONE:
            return 0.0
        case Pause.BACKOFF:
            return backoff_seconds(number, seed, low, high)
        case Pause.RESTART | Pause.RESTARTING:
            least, most = (min(seconds, high) for seconds in RESTART_SECONDS)
            return (
                least + (most - least) * _fraction(number, seed)
                if number > 1 or step.pause is Pause.RESTARTING
                else 0.0
            )


def backoff_seconds(number: int, seed: int, low: float, high: float) -> float:
    """The pause before the `number`-th try (from 1): full jitter in an exponentially growing window.

    The window is ``low`` s for the first try and doubles up to ``high`` s; the pause lies between a tenth of the window and
    the whole of it. The jitter comes from `seed` alone, so a replay waits as long.
    """
    window = min(high, low * 2 ** min(number - 1, 20))
    return window * (0.1 + 0.9 * _fraction(number, seed))


def _fraction(number: int, seed: int) -> float:
    """Between 0 and 1, always the same for the same numbers."""
    # A multiplicative hash (Knuth) of seed and number; 53 bits make a fraction.
    mixed = (seed ^ (number * 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 31
    return (mixed >> 11) / (1 << 53)


def patience(prompt_tokens: int) -> float:
    """How much the silence limits grow with the prompt: ×1.5 over 50 000 tokens, ×2 over 100 000 (behaviour, section 2)."""
    if prompt_tokens > 100_000:
        return 2.0
    return 1.5 if prompt_tokens > 50_000 else 1.0
