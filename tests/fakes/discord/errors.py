"""Errors in the form of Discord's API (https://docs.discord.com/developers/topics/opcodes-and-status-codes)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from tests.fakes.common import Json, JsonObject


class Code(IntEnum):
    """The JSON error codes that the fake gives."""

    GENERAL = 0
    UNKNOWN_CHANNEL = 10003
    UNKNOWN_GUILD = 10004
    UNKNOWN_MEMBER = 10007
    UNKNOWN_MESSAGE = 10008
    UNKNOWN_USER = 10013
    UNKNOWN_EMOJI = 10014
    UNKNOWN_WEBHOOK = 10015
    UNKNOWN_INTERACTION = 10062
    UNKNOWN_COMMAND = 10063
    TOO_MANY_REACTIONS = 30010
    TOO_MANY_COMMANDS = 30032
    TOO_LARGE = 40005
    ALREADY_ACKNOWLEDGED = 40060
    MISSING_ACCESS = 50001
    NOT_IN_A_DM = 50003
    NOT_THE_AUTHOR = 50005
    EMPTY_MESSAGE = 50006
    CANNOT_DM = 50007
    MISSING_PERMISSIONS = 50013
    BULK_DELETE_COUNT = 50016
    SYSTEM_MESSAGE = 50021
    WRONG_CHANNEL_KIND = 50024
    INVALID_WEBHOOK_TOKEN = 50027
    INVALID_RECIPIENT = 50033
    INVALID_FORM = 50035
    INVALID_API_VERSION = 50041
    THREAD_ARCHIVED = 50083
    INVALID_JSON = 50109
    REPLY_NEEDS_HISTORY = 160002
    THREAD_EXISTS = 160004


_WORDS: Mapping[Code, tuple[int, str]] = {
    Code.UNKNOWN_CHANNEL: (404, "Unknown Channel"),
    Code.UNKNOWN_GUILD: (404, "Unknown Guild"),
    Code.UNKNOWN_MEMBER: (404, "Unknown Member"),
    Code.UNKNOWN_MESSAGE: (404, "Unknown Message"),
    Code.UNKNOWN_USER: (404, "Unknown User"),
    Code.UNKNOWN_EMOJI: (400, "Unknown Emoji"),
    Code.UNKNOWN_WEBHOOK: (404, "Unknown Webhook"),
    Code.UNKNOWN_INTERACTION: (404, "Unknown interaction"),
    Code.UNKNOWN_COMMAND: (404, "Unknown application command"),
    Code.TOO_MANY_REACTIONS: (400, "Maximum number of reactions reached (20)"),
    Code.TOO_MANY_COMMANDS: (400, "Maximum number of application commands reached (100)."),
    Code.TOO_LARGE: (413, "Request entity too large"),
    Code.ALREADY_ACKNOWLEDGED: (400, "Interaction has already been acknowledged."),
    Code.MISSING_ACCESS: (403, "Missing Access"),
    Code.NOT_IN_A_DM: (403, "Cannot execute action on a DM channel"),
    Code.NOT_THE_AUTHOR: (403, "Cannot edit a message authored by another user"),
    Code.EMPTY_MESSAGE: (400, "Cannot send an empty message"),
    Code.CANNOT_DM: (403, "Cannot send messages to this user"),
    Code.MISSING_PERMISSIONS: (403, "Missing Permissions"),
    Code.BULK_DELETE_COUNT: (400, "You can only bulk delete between 2 and 100 messages."),
    Code.SYSTEM_MESSAGE: (403, "Cannot execute action on a system message"),
    Code.WRONG_CHANNEL_KIND: (400, "Cannot execute action on this channel type"),
    Code.INVALID_WEBHOOK_TOKEN: (401, "Invalid Webhook Token"),
    Code.INVALID_RECIPIENT: (400, "Invalid Recipient(s)"),
    Code.INVALID_FORM: (400, "Invalid Form Body"),
    Code.INVALID_API_VERSION: (400, "Invalid API version provided"),
    Code.THREAD_ARCHIVED: (400, "Thread is archived"),
    Code.INVALID_JSON: (400, "The request body contains invalid JSON."),
    Code.REPLY_NEEDS_HISTORY: (400, "Cannot reply without permission to read message history"),
    Code.THREAD_EXISTS: (400, "A thread has already been created for this message"),
}


class ApiError(Exception):
    """The API refuses."""

    def __init__(self, status: int, code: int, message: str, errors: JsonObject | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = int(code)
        self.message = message
        self.errors = errors

    def body(self) -> JsonObject:
        """The answer's JSON."""
        body: JsonObject = {"message": self.message, "code": self.code}
        if self.errors:
            body["errors"] = self.errors
        return body


def refused(code: Code) -> ApiError:
    """The error with this code, in the server's words."""
    status, words = _WORDS[code]
    return ApiError(status, code, words)


def plain(status: int, words: str) -> ApiError:
    """An error that has no code of its own, such as "401: Unauthorized"."""
    return ApiError(status, Code.GENERAL, f"{status}: {words}")


def flaw(code: str, message: str) -> JsonObject:
    """What is wrong with one field, as the leaf of a nested error."""
    flaws: list[Json] = [{"code": code, "message": message}]
    return {"_errors": flaws}


def invalid(errors: JsonObject) -> ApiError:
    """50035 with its nested errors."""
    status, words = _WORDS[Code.INVALID_FORM]
    return ApiError(status, Code.INVALID_FORM, words, errors)


def invalid_field(path: str, code: str, message: str) -> ApiError:
    """50035 about one field; `path` goes down with dots, such as `data.title`."""
    errors: JsonObject = flaw(code, message)
    for name in reversed(path.split(".")):
        errors = {name: errors}
    return invalid(errors)
