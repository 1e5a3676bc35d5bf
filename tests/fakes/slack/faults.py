"""Answers that say no, in the form of the Web API, for scripts; beside the common faults."""

from __future__ import annotations

import orjson

from tests.fakes.common import Answer
from tests.fakes.slack.errors import ApiError, ratelimited_error


def _answer(error: ApiError) -> Answer:
    return Answer(error.status, orjson.dumps(error.body()), headers=error.headers())


def refusal(error: str, *, status: int = 200, **fields: str) -> Answer:
    """An error of the Web API with this word, and what stands beside it."""
    return _answer(ApiError(error, status=status, retry_after=None, messages=(), **fields))


def ratelimited(retry_after: int) -> Answer:
    """429: wait so many seconds."""
    return _answer(ratelimited_error(retry_after))


def missing_scope(needed: str, provided: str = "app_mentions:read") -> Answer:
    """The token lacks a scope."""
    return refusal("missing_scope", needed=needed, provided=provided)


def internal_error(status: int = 200) -> Answer:
    """The server failed, and says so in its own form. What was asked for may have happened all the same."""
    return refusal("internal_error", status=status)


def fatal_error() -> Answer:
    """The server failed badly. What was asked for may have happened all the same."""
    return refusal("fatal_error")


def gateway_page(status: int = 503) -> Answer:
    """5xx as a proxy in front of the server says it: a page, not JSON."""
    page = f"<html><head><title>Server Error</title></head><body><h1>{status}</h1></body></html>"
    return Answer(status, page.encode(), "text/html")
