"""What a failed call to Discord means. Pure.

Sources: https://discord.com/developers/docs/topics/opcodes-and-status-codes#json (codes), .../topics/rate-limits (429 with
``retry_after``), and the errors of discord.py 2.7: `RateLimited` where its own limit for waiting is passed, `HTTPException` with
the answer's status and code, `OSError` and aiohttp's errors for connections.
"""

from __future__ import annotations

import asyncio

import aiohttp

from adapters.contract.chat import CallFailed, Cause, Fate

INVALID_FORM = 50035
_CODES = {
    10003: Cause.NO_CHAT,  # unknown channel
    10008: Cause.NO_MESSAGE,  # unknown message
    50001: Cause.NO_RIGHTS,  # missing access
    30046: Cause.UNEDITABLE,  # an old message was edited too often
    50005: Cause.UNEDITABLE,  # cannot edit a message of another user
    50021: Cause.UNEDITABLE,  # a system message
    50007: Cause.BLOCKED,  # cannot send messages to this user
    50013: Cause.NO_RIGHTS,  # missing permissions
    INVALID_FORM: Cause.FORM,
    50083: Cause.NO_THREAD,  # thread is archived
    160005: Cause.NO_THREAD,  # thread is locked
    40005: Cause.FILE,  # request entity too large
    50046: Cause.FILE,  # invalid file
    400001: Cause.FILE,  # the guild takes no files for now
}
_TOO_LONG = "or fewer in length"
CLOUDFLARE_SECONDS = 60.0
"""A 429 without a time comes from the shield before Discord: leave it alone for a while."""


def failure(error: Exception) -> CallFailed:
    """What is known of a call that raised `error`."""
    from adapters.discord.library import discord

    match error:
        case discord.RateLimited():
            return CallFailed(
                Fate.TOO_FAST, f"Discord asks to wait {error.retry_after:g} s", retry_after=error.retry_after
            )
        case discord.LoginFailure():
            return CallFailed(Fate.REFUSED, "Discord does not know this bot's token", cause=Cause.NOT_LET_IN)
        case discord.HTTPException():
            return _answered(error.status, error.code, error.text)
        case aiohttp.ClientConnectorError():
            return CallFailed(Fate.NOT_SENT, f"the connection to Discord failed ({type(error).__name__})")
        case aiohttp.ClientError() | OSError() | asyncio.TimeoutError():
            return CallFailed(Fate.UNKNOWN, f"the connection to Discord failed ({type(error).__name__})")
        case _:
            words = f"what Discord answered could not be understood ({type(error).__name__})"
            return CallFailed(Fate.UNKNOWN, words, cause=Cause.UNREADABLE)


def _answered(status: int, code: int, text: str) -> CallFailed:
    words = " ".join(text.split())[:200] or f"status {status}"
    if status == 429:
        return CallFailed(Fate.TOO_FAST, "Discord refused us as too fast", retry_after=CLOUDFLARE_SECONDS)
    if status >= 500:
        return CallFailed(Fate.UNKNOWN, f"Discord answered with {status}")
    if status == 401:
        return CallFailed(Fate.REFUSED, "Discord does not know this bot's token", cause=Cause.NOT_LET_IN)
    if status == 413:
        return CallFailed(Fate.REFUSED, "the file is too large for Discord", cause=Cause.FILE)
    if code == INVALID_FORM and _TOO_LONG in words and "content" in words.lower():
        return CallFailed(Fate.REFUSED, words, cause=Cause.TOO_LONG)
    default = Cause.NO_RIGHTS if status == 403 else Cause.OTHER
    return CallFailed(Fate.REFUSED, words, cause=_CODES.get(code, default))
