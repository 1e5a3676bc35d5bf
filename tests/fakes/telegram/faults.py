"""Answers that say no, in the form of the Bot API, for scripts; beside the common faults."""

from __future__ import annotations

import orjson

from tests.fakes.common import Answer
from tests.fakes.telegram.errors import ApiError


def refusal(code: int, description: str, **parameters: int) -> Answer:
    """An error of the Bot API with these words and ResponseParameters."""
    return Answer(code, orjson.dumps(ApiError(code, description, **parameters).body()))


def flood(retry_after: int) -> Answer:
    """429: wait so many seconds."""
    return refusal(429, f"Too Many Requests: retry after {retry_after}", retry_after=retry_after)


def conflict() -> Answer:
    """409: somebody else polls."""
    return refusal(
        409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    )


def server_error(code: int = 500) -> Answer:
    """5xx in the Bot API's form."""
    words = {500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}
    return refusal(code, words.get(code, "Internal Server Error"))


def gateway_page(code: int = 502) -> Answer:
    """5xx as a proxy in front of the server says it: a page, not JSON."""
    page = f"<html><head><title>{code} Bad Gateway</title></head><body><h1>{code}</h1></body></html>"
    return Answer(code, page.encode(), "text/html")
