"""Why the gateway did not take a message, as an HTTP error: one law for the API and the page."""

from __future__ import annotations

from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.http.common import Problem


def no_budget(words: str, retry_after: int) -> Problem:
    """A limit of use is reached; there is room again after so many seconds."""
    return Problem(429, words, "insufficient_quota", code="insufficient_quota", retry_after=retry_after)


def refusal(refused: NotAccepted) -> Problem:
    """Why the gateway did not take the message, as an HTTP error."""
    words = str(refused)
    match refused.code:
        case NotAcceptedCode.QUEUE_FULL:
            return Problem(429, words, "rate_limit_error", code="queue_full", retry_after=10)
        case NotAcceptedCode.GATEWAY_FULL:
            return Problem(503, words, "server_error", code="overloaded", retry_after=refused.retry_after_seconds)
        case NotAcceptedCode.QUOTA:
            return no_budget(words, refused.retry_after_seconds)
        case NotAcceptedCode.UNKNOWN_MODEL:
            return Problem(404, words, param="model", code="model_not_found")
        case NotAcceptedCode.OTHER_CONTENT:
            return Problem(422, words, code="idempotency_key_reused")
        case NotAcceptedCode.STORAGE_AWAY | NotAcceptedCode.STORAGE_DAMAGED:
            return Problem(503, words, "server_error", code="storage_unavailable", retry_after=10)
        case NotAcceptedCode.STORAGE_FULL:
            return Problem(507, words, "server_error", code="storage_full", retry_after=refused.retry_after_seconds)
        case NotAcceptedCode.SHUTTING_DOWN:
            return Problem(503, words, "server_error", code="shutting_down", retry_after=30)
