"""Why a model call did not come to a good end, and how that is said. One line for each cause: its stored name and its words.

In the words, ``{seconds}``, ``{quiet}``, ``{status}`` and ``{detail}`` stand for what else is known of the break, and say nothing where nothing is known.
"""

from __future__ import annotations

from agent_core.text.worded import Worded


class BreakCause(Worded):
    """Why a model call did not come to a good end."""

    NO_CONTENT = "no_content", "nothing came for {seconds} s"
    """The limit for the first content passed."""
    STALLED = "stalled", "the stream went quiet{quiet}"
    """Content had come, then none for too long."""
    DROPPED = "dropped", "the connection was lost"
    """The connection was lost in the stream."""
    ENDED_EARLY = "ended_early", "the stream ended before the reply was complete"
    """The stream ended cleanly, but without a finish reason (or with one that the content contradicts)."""
    GARBAGE = "garbage", "what came was no readable reply"
    """What came is no chat completion."""
    UNREADABLE_CALL = "unreadable_call", "what came of it cannot be read"
    """The stream came to its end, and a tool call in it cannot be read, or is not there."""
    NO_CALL = "no_call", "its end speaks of a tool call, and there is none"
    """Its finish reason speaks of a tool call, and there is none."""
    ERROR_IN_STREAM = "error_in_stream", "the provider reported an error in the middle of the stream{detail}"
    """The provider put an error object into its stream."""
    UNREACHABLE = "unreachable", "the provider could not be reached{detail}"
    """No connection, and it is not known why (or an earlier version did not tell why)."""
    CONNECTION_REFUSED = (
        "connection_refused",
        "nothing listens at the provider's address (the connection was refused)",
    )
    """Nobody listens at the address."""
    UNKNOWN_NAME = "unknown_name", "the name of the provider's server cannot be found"
    """The address's name cannot be resolved."""
    BAD_CERTIFICATE = "bad_certificate", "the certificate of the provider's server cannot be trusted{detail}"
    """The server cannot prove that it is who it is to be."""
    NOT_TLS = "not_tls", "the provider's address begins with https, but that port does not speak TLS"
    """``https`` was spoken to a port that does not speak it."""
    WANTS_TLS = "wants_tls", "the provider's address begins with http, but that port wants TLS (https)"
    """``http`` was spoken to a port that wants ``https``."""
    NOT_CONNECTED = "not_connected", "no connection to the provider came about in time"
    """No connection within the limit."""
    RATE_LIMITED = "rate_limited", "the provider's rate limit was hit"
    SERVER_ERROR = "server_error", "the provider answered with a server error{status}"
    UNAUTHORISED = "unauthorised", "the provider did not accept the key{status}"
    FORBIDDEN = "forbidden", "the provider does not allow this{status}"
    PAYMENT_REQUIRED = "payment_required", "the provider asks for payment{status}"
    REGION = "region", "the provider does not serve the country that this gateway calls from{status}"
    """The provider does not serve the country that we call from."""
    NOT_FOUND = "not_found", "the provider does not know the model or the address{status}"
    NO_ROUTE = "no_route", "the server at the provider's address has no chat API there{status}"
    """A server answers, but has no chat API at this path."""
    BY_PROXY = "by_proxy", "a proxy or firewall answered in the provider's place{status}"
    """Something on the way (a proxy, a firewall) answered in the provider's place."""
    BAD_REQUEST = "bad_request", "the provider did not accept the request{status}"
    CONTEXT_OVERFLOW = "context_overflow", "the conversation is larger than the model can read"
    TOO_LARGE = "too_large", "the request is larger than the provider takes{status}"
    REFUSED = "refused", "the provider's content filter refused"
    """The provider's content filter said no instead of starting."""
    REPEATING = "repeating", "the model only repeated itself"
    """The model said the same again and again, and nothing else."""
    TOO_LONG = "too_long", "the reply grew longer than outspoken takes"
    """The reply grew beyond what the gateway keeps of one."""
    RESTARTED = "restarted", "outspoken itself was restarted"
    """Our own process died during the call."""


def cause_words(cause: BreakCause | None, *, seconds: float = 0, status: int = 0, detail: str = "") -> str:
    """The cause of a break as part of a sentence, for a person. `seconds`: how long nothing came."""
    if cause is None:
        return "the reply could not be completed"
    waited = round(seconds)
    quiet = f" for {waited} s" if waited else ""
    return cause.words.format(seconds=waited, quiet=quiet, status=status_words(status), detail=detail_words(detail))


def status_words(status: int) -> str:
    """An HTTP status behind what it speaks of; empty if there was none."""
    return f" (HTTP {status})" if status else ""


def detail_words(detail: str) -> str:
    """What a provider said, behind what it speaks of; empty if it said nothing."""
    return f" ({detail})" if detail else ""
