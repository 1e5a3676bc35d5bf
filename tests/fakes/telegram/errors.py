"""Errors in the form of the Bot API."""

from __future__ import annotations

from tests.fakes.common import JsonObject


class ApiError(Exception):
    """The Bot API refuses. `description` is whole, with its prefix; `parameters` is the ResponseParameters object, if any."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def body(self) -> JsonObject:
        """The answer's JSON."""
        body: JsonObject = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            body["parameters"] = dict(self.parameters)
        return body


def bad(words: str, **parameters: int) -> ApiError:
    """400, with the server's prefix. Its own words begin with a small letter, names of constants stay as they are."""
    return ApiError(400, f"Bad Request: {words}", **parameters)


def forbidden(words: str) -> ApiError:
    """403, with the server's prefix."""
    return ApiError(403, f"Forbidden: {words}")


def too_many(retry_after: int) -> ApiError:
    """429: come back after so many seconds."""
    return ApiError(429, f"Too Many Requests: retry after {retry_after}", retry_after=retry_after)
