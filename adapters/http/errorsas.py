"""How a failure is told to a client of the API, and what becomes of its turn when it has gone."""

from __future__ import annotations

from enum import StrEnum


class ErrorsAs(StrEnum):
    """How a failure is told to a client of the API."""

    AUTO = "auto"
    """As the client is known to take it: words for front ends of chats, a status for all others."""
    WORDS = "words"
    """In the content, with 200."""
    STATUS = "status"
    """As an HTTP status with an error object; in a stream that has begun as an error event."""


class Disconnect(StrEnum):
    """What happens to a turn whose API client went away."""

    GRACE = "grace"
    DETACH = "detach"
    CANCEL = "cancel"
