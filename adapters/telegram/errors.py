"""What a failed call to the Bot API means. Pure.

Sources: https://core.telegram.org/bots/api#making-requests (ok, error_code, description, ResponseParameters), and the errors of
python-telegram-bot 22: a time limit is `TimedOut`, a lost connection `NetworkError` with aiohttp's error as its cause (`wire`), a
5xx `NetworkError` too; any 404 is `InvalidToken`, unknown methods included. Descriptions are compared without regard to case.
"""

from __future__ import annotations

from http import HTTPStatus

import aiohttp

from adapters import refusing
from adapters.contract.chat import CallFailed, Cause, Fate

_WORDS: tuple[tuple[str, Cause], ...] = (
    ("replied", Cause.FORM),
    ("reply message", Cause.FORM),
    ("message is not modified", Cause.UNCHANGED),
    ("message_not_modified", Cause.UNCHANGED),
    ("message to edit not found", Cause.NO_MESSAGE),
    ("message to delete not found", Cause.NO_MESSAGE),
    ("message not found", Cause.NO_MESSAGE),
    ("message_id_invalid", Cause.NO_MESSAGE),
    ("message identifier is not specified", Cause.NO_MESSAGE),
    ("message can't be edited", Cause.UNEDITABLE),
    ("message can't be deleted", Cause.UNEDITABLE),
    ("no text in the message to edit", Cause.UNEDITABLE),
    ("message_edit_time_expired", Cause.UNEDITABLE),
    ("message_author_required", Cause.UNEDITABLE),
    ("message is too long", Cause.TOO_LONG),
    ("message_too_long", Cause.TOO_LONG),
    ("text is too long", Cause.TOO_LONG),
    ("entities_too_long", Cause.TOO_LONG),
    ("caption is too long", Cause.TOO_LONG),
    ("caption_too_long", Cause.TOO_LONG),
    ("message thread not found", Cause.NO_THREAD),
    ("topic_closed", Cause.NO_THREAD),
    ("topic_deleted", Cause.NO_THREAD),
    ("user_is_blocked", Cause.BLOCKED),
    ("input_user_deactivated", Cause.BLOCKED),
    ("chat not found", Cause.NO_CHAT),
    ("peer_id_invalid", Cause.NO_CHAT),
    ("not enough rights", Cause.NO_RIGHTS),
    ("have no rights", Cause.NO_RIGHTS),
    ("chat_write_forbidden", Cause.NO_RIGHTS),
    ("chat_restricted", Cause.NO_RIGHTS),
    ("_forbidden", Cause.NO_RIGHTS),
    ("channel_private", Cause.NO_CHAT),
    ("need administrator rights", Cause.NO_RIGHTS),
    ("wrong file identifier", Cause.FILE),
    ("file is too big", Cause.FILE),
    ("file must be non-empty", Cause.FILE),
    ("file_parts_invalid", Cause.FILE),
    ("document_invalid", Cause.FILE),
    ("photo_invalid_dimensions", Cause.FORM),
    ("image_process_failed", Cause.FORM),
    ("can't parse entities", Cause.FORM),
    ("entity", Cause.FORM),
    ("entities", Cause.FORM),
    ("button", Cause.FORM),
    ("url", Cause.FORM),
    ("reply", Cause.FORM),
)


NAME = "Telegram"


def failure(error: Exception) -> CallFailed:
    """What is known of a call that raised `error`."""
    from telegram import error as e

    from adapters.telegram.wire import AskedToWait, NotItself

    words = str(error) or type(error).__name__
    match error:
        case NotItself():
            return _not_itself(error.status)
        case AskedToWait():
            return _too_fast(error.seconds)
        case e.ChatMigrated():
            moved = str(error.new_chat_id)
            return CallFailed(Fate.REFUSED, refusing.SUPERGROUP, cause=Cause.MOVED, moved_to=moved)
        case e.Forbidden():
            lowered = words.lower()
            blocked = "blocked" in lowered or "deactivated" in lowered or "initiate" in lowered
            return CallFailed(Fate.REFUSED, _plain(words), cause=Cause.BLOCKED if blocked else Cause.NO_RIGHTS)
        case e.InvalidToken():
            return CallFailed(Fate.REFUSED, refusing.TOKEN.format(platform=NAME), cause=Cause.NOT_LET_IN)
        case e.BadRequest():
            return CallFailed(Fate.REFUSED, _plain(words), cause=_cause(words))
        case e.TimedOut():
            return CallFailed(_sent_or_not(error), refusing.SLOW.format(platform=NAME))
        case e.NetworkError():
            # There is one where nothing was answered: then a number in the words is a port's, say
            cause = error.__cause__
            if cause is None and ("(413)" in words or "too large" in words.lower()):
                return CallFailed(Fate.REFUSED, refusing.TOO_LARGE.format(platform=NAME), cause=Cause.FILE)
            if isinstance(cause, aiohttp.ClientHttpProxyError):
                words = refusing.NOT_ITSELF.format(platform=NAME, what=cause.status)
                return CallFailed(Fate.NOT_SENT, words)
            why = refusing.broken(cause) if isinstance(cause, aiohttp.ClientError | OSError) else _plain(words)[:120]
            return CallFailed(_sent_or_not(error), refusing.FAILED.format(platform=NAME, why=why))
        case _:  # the base class says that the answer made no sense
            words = refusing.NOT_UNDERSTOOD.format(platform=NAME, what=_plain(words)[:80])
            return CallFailed(Fate.UNKNOWN, words, cause=Cause.UNREADABLE)


def _too_fast(seconds: float) -> CallFailed:
    words = refusing.ASKS_TO_WAIT.format(platform=NAME, seconds=f"{seconds:g}")
    return CallFailed(Fate.TOO_FAST, words, retry_after=seconds)


def _not_itself(status: int) -> CallFailed:
    """Somebody between us and Telegram answered: it has not been asked, unless it was and its answer did not come through."""
    from adapters.telegram.wire import DEFAULT_PAUSE_SECONDS

    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return _too_fast(DEFAULT_PAUSE_SECONDS)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return CallFailed(Fate.REFUSED, refusing.TOO_LARGE.format(platform=NAME), cause=Cause.FILE)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return CallFailed(Fate.UNKNOWN, refusing.ANSWERED_WITH.format(platform=NAME, what=status))
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return CallFailed(Fate.UNKNOWN, refusing.NOT_ITSELF.format(platform=NAME, what=status), cause=Cause.SHIELDED)
    return CallFailed(Fate.NOT_SENT, refusing.NOT_ITSELF.format(platform=NAME, what=status), cause=Cause.SHIELDED)


def _cause(words: str) -> Cause:
    lowered = words.lower()
    return next((cause for part, cause in _WORDS if part in lowered), Cause.OTHER)


def _plain(words: str) -> str:
    """The description without the prefix that says the same as its code, and without the dress of a constant."""
    said = words.removeprefix("Bad Request: ").removeprefix("Forbidden: ")
    return said if " " in said else said.replace("_", " ")


def _sent_or_not(error: BaseException) -> Fate:
    from adapters.telegram.wire import BEFORE

    return Fate.NOT_SENT if isinstance(error.__cause__, BEFORE) else Fate.UNKNOWN
