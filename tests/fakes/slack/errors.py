"""Errors in the form of the Web API: mostly HTTP 200 with `"ok": false` and a word that says why."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes.common import Json, JsonObject


class ApiError(Exception):
    """The Web API refuses. `messages` go into `response_metadata`, `fields` beside `error`."""

    def __init__(
        self,
        error: str,
        *,
        status: int = 200,
        retry_after: int | None = None,
        messages: Sequence[str] = (),
        **fields: Json,
    ) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.retry_after = retry_after
        self.messages = tuple(messages)
        self.fields = fields

    def body(self) -> JsonObject:
        """The answer's JSON."""
        body: JsonObject = {"ok": False, "error": self.error, **self.fields}
        if self.messages:
            body["response_metadata"] = {"messages": [f"[ERROR] {message}" for message in self.messages]}
        return body

    def headers(self) -> dict[str, str]:
        """The answer's headers beside the usual ones."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


def bad(message: str, pointer: str = "") -> ApiError:
    """An argument is missing or of the wrong form; the pointer says where in the JSON."""
    return ApiError("invalid_arguments", messages=[f"{message} [json-pointer:/{pointer}]" if pointer else message])


def bad_blocks(message: str, pointer: str) -> ApiError:
    """Blocks that Block Kit does not take."""
    return ApiError("invalid_blocks", messages=[f"{message} [json-pointer:/{pointer}]"])


def ratelimited_error(retry_after: int) -> ApiError:
    """429: come back after so many seconds."""
    return ApiError("ratelimited", status=429, retry_after=retry_after)
