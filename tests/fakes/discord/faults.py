"""Answers that say no, in Discord's form, for scripts; beside the common faults."""

from __future__ import annotations

import orjson

from tests.fakes.common import Answer, JsonObject
from tests.fakes.discord.errors import ApiError, Code, refused

VIA = "1.1 google"
"""What Discord's own answers have in the header `Via`; those of the shield before it have none."""


def refusal(code: Code | ApiError) -> Answer:
    """An error of the API."""
    error = code if isinstance(code, ApiError) else refused(code)
    return Answer(error.status, orjson.dumps(error.body()), headers={"Via": VIA})


def flood(retry_after: float, *, everywhere: bool = False, via: bool = True) -> Answer:
    """429: wait so many seconds, on this route or `everywhere`. Without `via` it does not look like Discord's own."""
    body: JsonObject = {
        "message": "You are being rate limited.",
        "retry_after": retry_after,
        "global": everywhere,
    }
    headers = {"Retry-After": str(max(1, round(retry_after)))}
    if everywhere:
        headers["X-RateLimit-Global"] = "true"
    headers["X-RateLimit-Scope"] = "global" if everywhere else "user"
    if via:
        headers["Via"] = VIA
    return Answer(429, orjson.dumps(body), headers=headers)


def shield_ban() -> Answer:
    """429 by the shield before Discord: a page without `Via`, after too many bad requests."""
    page = b"<!DOCTYPE html><html><head><title>Access denied | discord.com</title></head><body>error code: 1015</body></html>"
    return Answer(429, page, "text/html; charset=UTF-8", headers={"Retry-After": "3600"})


def server_error(status: int = 500) -> Answer:
    """5xx in the API's form."""
    words = {500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}
    body: JsonObject = {"message": f"{status}: {words.get(status, words[500])}", "code": 0}
    return Answer(status, orjson.dumps(body), headers={"Via": VIA})


def gateway_page(status: int = 502) -> Answer:
    """5xx as the shield before Discord says it: a page, not JSON."""
    page = f"<html><head><title>{status} Bad Gateway</title></head><body><h1>{status}</h1></body></html>"
    return Answer(status, page.encode(), "text/html")
