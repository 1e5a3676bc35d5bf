"""Why a message is not taken, in words and as a code: the same for every way in."""

from __future__ import annotations

from enum import StrEnum


class NotAcceptedCode(StrEnum):
    """Why a message was not accepted."""

    QUEUE_FULL = "queue_full"
    GATEWAY_FULL = "gateway_full"
    """Too many people wait."""
    UNKNOWN_MODEL = "unknown_model"
    OTHER_CONTENT = "other_content"
    """The same platform key came with other content."""
    STORAGE_AWAY = "storage_away"
    STORAGE_FULL = "storage_full"
    """There is no room to keep it."""
    STORAGE_DAMAGED = "storage_damaged"
    """What all need cannot be read or written, until somebody mends it."""
    QUOTA = "quota"
    """A budget is used up."""
    TOO_MANY = "too_many"
    """The key's requests of a minute are used up."""
    SHUTTING_DOWN = "shutting_down"

    @property
    def passes(self) -> bool:
        """It is of this moment, whatever the message says: not confirmed, it comes again and may be taken then.

        Everything else is the message's answer: it is told, and the message does not come again.
        """
        storage = (NotAcceptedCode.STORAGE_AWAY, NotAcceptedCode.STORAGE_FULL, NotAcceptedCode.STORAGE_DAMAGED)
        return self in (*storage, NotAcceptedCode.SHUTTING_DOWN)

    @property
    def lacks_room(self) -> bool:
        """Too many wait before it; it may be taken once they are done."""
        return self in (NotAcceptedCode.QUEUE_FULL, NotAcceptedCode.GATEWAY_FULL)


class NotAccepted(Exception):
    """The message is not taken, and nothing of it is kept. The words are for the person."""

    def __init__(self, words: str, code: NotAcceptedCode, retry_after_seconds: int = 0) -> None:
        super().__init__(words)
        self.code = code
        self.retry_after_seconds = retry_after_seconds
        """When it may be tried again, if that is known; else 0."""
