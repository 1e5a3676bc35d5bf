"""How a turn can end: one closed list of exits, and the facts that each carries.

Theory. Every turn ends by exactly one `Exit`: a code and the facts that its notice needs. What depends on a code alone is
decided here by exhaustive matches; the words are in `notices`, where a new code without words does not type-check.

Law: a finish reason of ``stop`` belongs to `answered` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never


class ExitCode(StrEnum):
    """The closed set of endings."""

    ANSWERED = "answered"
    HANDED_TO_CLIENT = "handed_to_client"
    BROKEN_BEFORE_TEXT = "broken_before_text"
    BROKEN_IN_TEXT = "broken_in_text"
    BROKEN_IN_TOOL_CALL = "broken_in_tool_call"
    SAME_STALL_AGAIN = "same_stall_again"
    EMPTY_REPLY = "empty_reply"
    EMPTY_AFTER_TOOLS = "empty_after_tools"
    THINKING_ONLY = "thinking_only"
    PROMISED_WITHOUT_ACTING = "promised_without_acting"
    CUT_BY_LENGTH = "cut_by_length"
    TOOL_CALL_CUT_BY_LENGTH = "tool_call_cut_by_length"
    REFUSED = "refused"
    REFUSED_MIDWAY = "refused_midway"
    UNKNOWN_TOOL = "unknown_tool"
    UNREADABLE_ARGUMENTS = "unreadable_arguments"
    REPEATING_FAILING_CALL = "repeating_failing_call"
    FAILING_TOOL = "failing_tool"
    NO_PROGRESS = "no_progress"
    GOING_IN_CIRCLES = "going_in_circles"
    STEP_LIMIT = "step_limit"
    TIME_LIMIT = "time_limit"
    SPEND_LIMIT = "spend_limit"
    RATE_LIMITED = "rate_limited"
    PROVIDER_DOWN = "provider_down"
    PROVIDER_GARBAGE = "provider_garbage"
    NOT_AUTHORISED = "not_authorised"
    PAYMENT_REQUIRED = "payment_required"
    MODEL_NOT_FOUND = "model_not_found"
    BAD_REQUEST = "bad_request"
    CONTEXT_OVERFLOW = "context_overflow"
    REQUEST_TOO_LARGE = "request_too_large"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    APPROVAL_DENIED = "approval_denied"
    APPROVAL_EXPIRED = "approval_expired"
    INTERRUPTED_BY_RESTART = "interrupted_by_restart"
    INTERNAL_ERROR = "internal_error"
    NOT_STARTED = "not_started"


class ExitClass(StrEnum):
    """What a program needs to know of an exit; decides a one-shot command's status and the API's finish reason."""

    CLEAN = "clean"
    HANDED = "handed"
    REFUSED = "refused"
    PROVIDER = "provider"
    LIMIT = "limit"
    LOOP = "loop"
    STOPPED = "stopped"
    OURS = "ours"
    NOT_STARTED = "not_started"


class BreakCause(StrEnum):
    """Why a model call did not come to a good end."""

    NO_CONTENT = "no_content"
    """The limit for the first content passed."""
    STALLED = "stalled"
    """Content had come, then none for too long."""
    DROPPED = "dropped"
    """The connection was lost in the stream."""
    ENDED_EARLY = "ended_early"
    """The stream ended cleanly, but without a finish reason (or with one that the content contradicts)."""
    GARBAGE = "garbage"
    """What came is no chat completion."""
    UNREADABLE_CALL = "unreadable_call"
    """The stream came to its end, and a tool call in it cannot be read, or is not there."""
    NO_CALL = "no_call"
    """Its finish reason speaks of a tool call, and there is none."""
    ERROR_IN_STREAM = "error_in_stream"
    """The provider put an error object into its stream."""
    UNREACHABLE = "unreachable"
    """No connection, and it is not known why (or an earlier version did not tell why)."""
    CONNECTION_REFUSED = "connection_refused"
    """Nobody listens at the address."""
    UNKNOWN_NAME = "unknown_name"
    """The address's name cannot be resolved."""
    BAD_CERTIFICATE = "bad_certificate"
    """The server cannot prove that it is who it is to be."""
    NOT_TLS = "not_tls"
    """``https`` was spoken to a port that does not speak it."""
    WANTS_TLS = "wants_tls"
    """``http`` was spoken to a port that wants ``https``."""
    NOT_CONNECTED = "not_connected"
    """No connection within the limit."""
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    UNAUTHORISED = "unauthorised"
    FORBIDDEN = "forbidden"
    PAYMENT_REQUIRED = "payment_required"
    REGION = "region"
    """The provider does not serve the country that we call from."""
    NOT_FOUND = "not_found"
    NO_ROUTE = "no_route"
    """A server answers, but has no chat API at this path."""
    BY_PROXY = "by_proxy"
    """Something on the way (a proxy, a firewall) answered in the provider's place."""
    BAD_REQUEST = "bad_request"
    CONTEXT_OVERFLOW = "context_overflow"
    TOO_LARGE = "too_large"
    REFUSED = "refused"
    """The provider's content filter said no instead of starting."""
    REPEATING = "repeating"
    """The model said the same again and again, and nothing else."""
    TOO_LONG = "too_long"
    """The reply grew beyond what the gateway keeps of one."""
    RESTARTED = "restarted"
    """Our own process died during the call."""


class NotStarted(StrEnum):
    """Why an accepted message was not run."""

    QUEUE_FULL = "queue_full"
    TOO_OLD = "too_old"
    QUOTA = "quota"
    QUARANTINED = "quarantined"
    DAMAGED = "damaged"
    """What the conversation held cannot be read: it is set aside, and its chat goes on with a new one."""
    GONE = "gone"
    """It was run and is over, but what came of it is not there any more."""
    FORGOTTEN = "forgotten"
    """Its person is being forgotten."""
    RESTORED = "restored"
    """It still waited in a backup that was put back."""
    WITHDRAWN = "withdrawn"
    """Whoever sent it took it back."""
    NOT_OPENED = "not_opened"
    """A mistake of ours."""
    SHUTTING_DOWN = "shutting_down"


class Budget(StrEnum):
    """What a limit on spending is for. All but `TURN` begin anew with their window."""

    TURN = "turn"
    """One turn."""
    PERSON = "person"
    """One person, a day."""
    CHAT = "chat"
    """One chat, a day."""
    HOUR = "hour"
    """Everybody together, an hour."""
    DAY = "day"
    """Everybody together, a day."""
    MONTH = "month"
    """Everybody together, a month."""


class Measure(StrEnum):
    """In what a limit is counted."""

    TOKENS = "tokens"
    MONEY = "money"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """How a budget stands that has no room, or little."""

    budget: Budget
    measure: Measure
    limit: int
    """Tokens, or billionths of the currency."""
    used: int
    """In the same unit; what is held for calls under way is not in it."""
    held: int = 0
    """Reserved for calls that are under way, in the same unit."""
    currency: str = ""
    opens: str = ""
    """When the budget opens again, with its time zone; empty if it does not."""
    opens_in_seconds: int = 0


class Action(StrEnum):
    """What a person can do about a notice with one press."""

    CONTINUE = "continue"
    RETRY = "retry"
    WHY = "why"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a notice may need. Fields that do not concern an exit keep their defaults."""

    cause: BreakCause | None = None
    seconds: int = 0
    """How long was waited, seconds."""
    attempts: int = 0
    steps: int = 0
    """Model steps that were finished."""
    tools_done: tuple[str, ...] = ()
    """Names of the tools that ran to an end, in order."""
    tools_dropped: tuple[str, ...] = ()
    """Names of the tools that were asked for and not executed."""
    tools_unsure: tuple[str, ...] = ()
    """Names of the tools that may or may not have run."""
    tool: str = ""
    count: int = 0
    limit: int = 0
    status: int = 0
    """HTTP status, 0 if there was none."""
    retry_after_seconds: int = 0
    announced: str = ""
    pattern: str = ""
    tried: tuple[str, ...] = ()
    alone: bool = False
    """The message that is answered is too much by itself: without what was said before it was too much as well."""
    without: str = ""
    """What of the conversation the model was not sent in the last tries, in vain."""
    reference: str = ""
    size: int = 0
    """Estimated tokens of the request."""
    chars: int = 0
    """How much of a call's arguments had arrived."""
    reason: NotStarted | None = None
    detail: str = ""
    """The provider's own words, redacted and short."""
    model: str = ""
    text_shown: bool = False
    """Part of a reply is on screen that is not finished."""
    unclear: bool = False
    """Nobody knows whether the reply on screen is whole: it reads so, or the model had nothing to add."""
    limit_was_asked: bool = False
    """The client itself set the output limit that cut the reply."""
    spend: Spend | None = None
    """The budget that is used up."""
    forgotten: bool = False
    """It was stopped because its person is being forgotten."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How one turn ended."""

    code: ExitCode
    facts: Facts = Facts()


@dataclass(frozen=True, slots=True)
class Notice:
    """What the gateway says to a person about an exit."""

    text: str
    actions: tuple[Action, ...] = ()


def exit_class(code: ExitCode) -> ExitClass:
    """The class of an exit, for programs."""
    match code:
        case ExitCode.ANSWERED:
            return ExitClass.CLEAN
        case ExitCode.HANDED_TO_CLIENT:
            return ExitClass.HANDED
        case ExitCode.REFUSED | ExitCode.REFUSED_MIDWAY:
            return ExitClass.REFUSED
        case (
            ExitCode.BROKEN_BEFORE_TEXT
            | ExitCode.BROKEN_IN_TEXT
            | ExitCode.BROKEN_IN_TOOL_CALL
            | ExitCode.SAME_STALL_AGAIN
            | ExitCode.EMPTY_REPLY
            | ExitCode.EMPTY_AFTER_TOOLS
            | ExitCode.THINKING_ONLY
            | ExitCode.PROMISED_WITHOUT_ACTING
            | ExitCode.RATE_LIMITED
            | ExitCode.PROVIDER_DOWN
            | ExitCode.PROVIDER_GARBAGE
            | ExitCode.NOT_AUTHORISED
            | ExitCode.PAYMENT_REQUIRED
            | ExitCode.MODEL_NOT_FOUND
            | ExitCode.BAD_REQUEST
        ):
            return ExitClass.PROVIDER
        case (
            ExitCode.CUT_BY_LENGTH
            | ExitCode.TOOL_CALL_CUT_BY_LENGTH
            | ExitCode.STEP_LIMIT
            | ExitCode.TIME_LIMIT
            | ExitCode.SPEND_LIMIT
            | ExitCode.CONTEXT_OVERFLOW
            | ExitCode.REQUEST_TOO_LARGE
        ):
            return ExitClass.LIMIT
        case (
            ExitCode.UNKNOWN_TOOL
            | ExitCode.UNREADABLE_ARGUMENTS
            | ExitCode.REPEATING_FAILING_CALL
            | ExitCode.FAILING_TOOL
            | ExitCode.NO_PROGRESS
            | ExitCode.GOING_IN_CIRCLES
        ):
            return ExitClass.LOOP
        case ExitCode.STOPPED | ExitCode.SUPERSEDED | ExitCode.APPROVAL_DENIED | ExitCode.APPROVAL_EXPIRED:
            return ExitClass.STOPPED
        case ExitCode.INTERRUPTED_BY_RESTART | ExitCode.INTERNAL_ERROR:
            return ExitClass.OURS
        case ExitCode.NOT_STARTED:
            return ExitClass.NOT_STARTED
        case _:
            assert_never(code)


def finish_reason(code: ExitCode) -> str:
    """The OpenAI finish reason of an exit. Standard values only: strict clients break on others.

    ``stop`` belongs to `answered` alone, so that no client takes an unfinished turn for a finished one.
    """
    match exit_class(code):
        case ExitClass.CLEAN:
            return "stop"
        case ExitClass.HANDED:
            return "tool_calls"
        case ExitClass.REFUSED:
            return "content_filter"
        case (
            ExitClass.PROVIDER
            | ExitClass.LIMIT
            | ExitClass.LOOP
            | ExitClass.STOPPED
            | ExitClass.OURS
            | ExitClass.NOT_STARTED
        ):
            return "length"


def process_status(code: ExitCode) -> int:
    """The exit status of a one-shot command: 0 only for a clean exit; the others tell the class."""
    match exit_class(code):
        case ExitClass.CLEAN | ExitClass.HANDED:
            return 0
        case ExitClass.PROVIDER:
            return 10
        case ExitClass.LIMIT:
            return 11
        case ExitClass.LOOP:
            return 12
        case ExitClass.REFUSED:
            return 13
        case ExitClass.STOPPED:
            return 14
        case ExitClass.OURS:
            return 15
        case ExitClass.NOT_STARTED:
            return 75
