"""Why a model call did not come to a good end, and how that is said. One line for each cause: its stored name and its words.

In the words, ``{seconds}``, ``{quiet}``, ``{status}`` and ``{detail}`` stand for what else is known of the break, and say nothing where nothing is known.
"""

from __future__ import annotations

from agent_core.text.shown import quoted
from agent_core.text.tongue import known_sentence, sentence, speak
from agent_core.text.worded import Worded


class BreakCause(Worded):
    """Why a model call did not come to a good end."""

    NO_CONTENT = "no_content", sentence("nothing came for {seconds} s")
    """The limit for the first content passed."""
    STALLED = "stalled", sentence("the stream went quiet{quiet}")
    """Content had come, then none for too long."""
    TOO_SLOW = "too_slow", sentence("the answer came too slowly: it was not whole after {seconds} s{detail}")
    """It came all the while, and was not at its end when the time for it was over."""
    DROPPED = "dropped", sentence("the connection was lost")
    """The connection was lost in the stream."""
    ENDED_EARLY = "ended_early", sentence("the stream ended before the reply was complete")
    """The stream ended cleanly, but without a finish reason (or with one that the content contradicts)."""
    GARBAGE = "garbage", sentence("what came was no readable reply")
    """What came is no chat completion."""
    BAD_PIECE = "bad_piece", sentence("a piece of the stream cannot be read: it is broken, or too long")
    """What answers is a model, but something that it sent is no JSON, or has no end."""
    UNREADABLE_CALL = "unreadable_call", sentence("what came of it cannot be read")
    """The stream came to its end, and a tool call in it cannot be read, or is not there."""
    NO_CALL = "no_call", sentence("its end speaks of a tool call, and there is none")
    """Its finish reason speaks of a tool call, and there is none."""
    ERROR_IN_STREAM = "error_in_stream", sentence("the provider reported an error in the middle of the stream{detail}")
    """The provider put an error object into its stream."""
    UNREACHABLE = "unreachable", sentence("the provider could not be reached{detail}")
    """No connection, and it is not known why (or an earlier version did not tell why)."""
    CONNECTION_REFUSED = (
        "connection_refused",
        sentence("nothing listens at the provider's address (the connection was refused)"),
    )
    """Nobody listens at the address."""
    UNKNOWN_NAME = "unknown_name", sentence("the name of the provider's server cannot be found")
    """The address's name cannot be resolved."""
    BAD_CERTIFICATE = "bad_certificate", sentence("the certificate of the provider's server cannot be trusted{detail}")
    """The server cannot prove that it is who it is to be."""
    NOT_TLS = "not_tls", sentence("the provider's address begins with https, but that port does not speak TLS")
    """``https`` was spoken to a port that does not speak it."""
    WANTS_TLS = "wants_tls", sentence("the provider's address begins with http, but that port wants TLS (https)")
    """``http`` was spoken to a port that wants ``https``."""
    NOT_CONNECTED = "not_connected", sentence("no connection to the provider came about in time")
    """No connection within the limit."""
    RATE_LIMITED = "rate_limited", sentence("the provider's rate limit was hit")
    SERVER_ERROR = "server_error", sentence("the provider answered with a server error{status}")
    UNAUTHORISED = "unauthorised", sentence("the provider did not accept the key{status}")
    FORBIDDEN = "forbidden", sentence("the provider does not allow this{status}")
    PAYMENT_REQUIRED = "payment_required", sentence("the provider asks for payment{status}")
    REGION = "region", sentence("the provider does not serve the country that this gateway calls from{status}")
    """The provider does not serve the country that we call from."""
    NOT_FOUND = "not_found", sentence("the provider does not know the model or the address{status}")
    NO_ROUTE = "no_route", sentence("the server at the provider's address has no chat API there{status}")
    """A server answers, but has no chat API at this path."""
    BY_PROXY = "by_proxy", sentence("a proxy or firewall answered in the provider's place{status}")
    """Something on the way (a proxy, a firewall) answered in the provider's place."""
    BAD_REQUEST = "bad_request", sentence("the provider did not accept the request{status}")
    CONTEXT_OVERFLOW = "context_overflow", sentence("the conversation is larger than the model can read")
    TOO_LARGE = "too_large", sentence("the request is larger than the provider takes{status}")
    REFUSED = "refused", sentence("the provider's content filter refused")
    """The provider's content filter said no instead of starting."""
    REPEATING = "repeating", sentence("the model only repeated itself")
    """The model said the same again and again, and nothing else."""
    TOO_LONG = "too_long", sentence("the reply grew longer than outspoken takes")
    """The reply grew beyond what the gateway keeps of one."""
    RESTARTED = "restarted", sentence("outspoken itself was restarted")
    """Our own process died during the call."""


def cause_words(cause: BreakCause | None, *, seconds: float = 0, status: int = 0, detail: str = "") -> str:
    """The cause of a break as part of a sentence, for a person. `seconds`: how long nothing came."""
    if cause is None:
        return speak("the reply could not be completed")
    waited = round(seconds)
    quiet = speak(" for {seconds} s", seconds=waited) if waited else ""
    return speak(cause.words, seconds=waited, quiet=quiet, status=status_words(status), detail=detail_words(detail))


def status_words(status: int) -> str:
    """An HTTP status behind what it speaks of; empty if there was none."""
    return f" (HTTP {status})" if status else ""


def said_words(status: int, detail: str) -> str:
    """An HTTP status with what the provider said to it, behind what they speak of; empty if there was neither."""
    if not detail:
        return status_words(status)
    return f" (HTTP {status}: {quoted(detail)})" if status else f" ({quoted(detail)})"


def detail_words(detail: str) -> str:
    """What a provider said, or is known besides, behind what it speaks of; empty if that is nothing."""
    return f" ({known_sentence(detail)})" if detail else ""
