"""Calls to a platform: whatever comes of one is its answer, or a `CallFailed` that says what is known of it.

A library that raises while it reads an answer has made its call. So anything that no port has a name for is *unknown*: it may have
been done, and is looked up, or marked, and has a bound of tries (`adapters.delivery.aftermath`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import structlog

from adapters.contract.chat import CallFailed, Cause, Fate

log = structlog.get_logger("delivery")
T = TypeVar("T")

CALL_SECONDS = 50.0
"""For a call that is to be seen; the platforms' libraries have limits of their own below it."""
UPLOAD_SECONDS = 180.0
COSMETIC_SECONDS = 10.0
"""For what nobody misses: typing, drafts, what the agent does."""


async def called(call: Awaitable[T], platform: str, seconds: float = CALL_SECONDS) -> T:
    """The answer to a call of a port. Raises `CallFailed`, and nothing else but a cancellation."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except CallFailed:
        raise
    except TimeoutError as error:
        raise CallFailed(Fate.UNKNOWN, f"{platform} did not answer within {seconds:g} s") from error
    except Exception as error:
        kind = type(error).__name__
        log.exception("delivery.unreadable", platform=platform, error=kind)
        words = f"what {platform} answered could not be understood ({kind})"
        raise CallFailed(Fate.UNKNOWN, words, cause=Cause.UNREADABLE) from error
