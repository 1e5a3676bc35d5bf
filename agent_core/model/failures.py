"""What a provider's refusal means: HTTP status, error object and headers to a `BreakCause`. Pure.

Providers disagree on wordings, so the tables below are data, each row from the documentation or an observed answer of a
server that is in wide use.
"""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from dataclasses import dataclass

from agent_core.exits import BreakCause
from agent_core.tools.base import Json
from agent_core.wellformed import well_formed

DETAIL_CHARS = 300

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "string_above_max_length", "context_window_exceeded"})
_OVERFLOW_WORDS = (
    "context length",
    "context window",
    "maximum context",
    "context size",
    "prompt is too long",
    "too many tokens",
    "input is too long",
    "exceeds the available context",
    "reduce the length of the messages",
    "maximum number of tokens",
    "input token count",
)
_FILTER_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "data_inspection_failed"}
)
_NO_CREDIT_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "billing_not_active"}
)
_RATE_CODES = frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "rate_limited"})
_MODEL_CODES = frozenset({"model_not_found", "model_not_available", "unknown_model"})
_KEY_CODES = frozenset({"invalid_api_key", "authentication_error", "invalid_authentication"})
_BUSY_CODES = frozenset(
    {"overloaded_error", "server_error", "overloaded", "service_unavailable", "internal_server_error"}
)

_BY_STATUS: Mapping[int, BreakCause] = {
    401: BreakCause.UNAUTHORISED,
    402: BreakCause.PAYMENT_REQUIRED,
    403: BreakCause.FORBIDDEN,
    404: BreakCause.NOT_FOUND,
    408: BreakCause.SERVER_ERROR,
    409: BreakCause.SERVER_ERROR,
    413: BreakCause.TOO_LARGE,
    425: BreakCause.SERVER_ERROR,
    429: BreakCause.RATE_LIMITED,
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """A provider's "no", in our words."""

    cause: BreakCause
    status: int
    detail: str
    """The provider's message, shortened; not yet redacted."""


def _words(error: Json) -> tuple[str, frozenset[str], int]:
    """(message, codes, status) of an error object in any of the usual shapes."""
    if isinstance(error, str):
        return error, frozenset(), 0
    if not isinstance(error, dict):
        return "", frozenset(), 0
    inner = error.get("error")
    if isinstance(inner, dict | str):
        message, codes, status = _words(inner)
        if message or codes:
            return message, codes, status
    message = next(
        (v for k in ("message", "detail", "error_description", "msg") if isinstance(v := error.get(k), str)), ""
    )
    codes = frozenset(str(error[k]).lower() for k in ("code", "type", "status", "param") if error.get(k))
    numbers = [int(c) for c in codes if c.isdigit() and 400 <= int(c) <= 599]
    return message, codes, numbers[0] if numbers else 0


def rejection(status: int, body: Json) -> Rejection:
    """What an HTTP answer with `status` (0: an error object inside a stream) and `body` means."""
    message, codes, inner_status = _words(body)
    detail = well_formed(" ".join(message.split())[:DETAIL_CHARS])
    status = status or inner_status
    return Rejection(_cause(status, message.lower(), codes), status, detail)


def _cause(status: int, message: str, codes: frozenset[str]) -> BreakCause:
    client_error = status == 0 or 400 <= status < 500
    if client_error and status not in (401, 402, 403, 429):
        if codes & _OVERFLOW_CODES or any(words in message for words in _OVERFLOW_WORDS):
            return BreakCause.CONTEXT_OVERFLOW
        if codes & _FILTER_CODES or "content management policy" in message:
            return BreakCause.REFUSED
    if codes & _NO_CREDIT_CODES:
        return BreakCause.PAYMENT_REQUIRED
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return BreakCause.SERVER_ERROR
    if codes & _RATE_CODES:
        return BreakCause.RATE_LIMITED
    if codes & _KEY_CODES:
        return BreakCause.UNAUTHORISED
    if codes & _MODEL_CODES:
        return BreakCause.NOT_FOUND
    if codes & _BUSY_CODES:
        return BreakCause.SERVER_ERROR
    if 300 <= status < 400:
        return BreakCause.GARBAGE
    return BreakCause.BAD_REQUEST if status else BreakCause.ERROR_IN_STREAM


def retry_after_seconds(headers: Mapping[str, str], now_ms: int) -> float:
    """How long the provider asks to wait: ``retry-after-ms``, then ``Retry-After`` (RFC 9110, seconds or a date); else 0."""
    millis = headers.get("retry-after-ms", "")
    try:
        return max(0.0, float(millis) / 1000)
    except ValueError:
        pass
    value = headers.get("retry-after", "").strip()
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - now_ms / 1000
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return min(max(0.0, seconds), 30 * 86_400.0) if seconds == seconds else 0.0  # noqa: PLR0124 - not a number
