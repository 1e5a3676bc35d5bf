"""Files that contents carry, and files that people attach: read and fetched, the same for all platforms."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from adapters.chat import CallFailed, Cause, Content, Fate

FETCH_SECONDS = 60.0
MIB = 1024 * 1024


async def bytes_of(content: Content, most_bytes: int, platform: str) -> bytes:
    """What a part of kind file carries. Raises `CallFailed` if it is gone, empty, or more than `platform` takes."""
    data = content.file_text.encode()
    if content.file:
        try:
            data = await asyncio.to_thread(Path(content.file).read_bytes)
        except OSError as error:
            raise CallFailed(Fate.REFUSED, f"it cannot be read ({error.strerror})", cause=Cause.FILE) from error
    if not data:
        raise CallFailed(Fate.REFUSED, "it is empty", cause=Cause.FILE)
    if len(data) > most_bytes:
        words = f"it is larger than {most_bytes // MIB} MB, the most that {platform} takes"
        raise CallFailed(Fate.REFUSED, words, cause=Cause.FILE)
    return data


async def fetched(url: str, limit_bytes: int, headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes at an address of a platform. Raises `CallFailed`. A page in place of a file is Slack's way to say no."""
    timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as http, http.get(url, headers=headers) as response:
            if response.status != 200 or (headers and response.content_type == "text/html"):
                raise CallFailed(Fate.REFUSED, f"the platform did not give it ({response.status})", cause=Cause.FILE)
            data = bytearray()
            async for piece in response.content.iter_any():
                data += piece
                if len(data) > limit_bytes:
                    raise CallFailed(Fate.REFUSED, "it is too large", cause=Cause.FILE)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise CallFailed(Fate.NOT_SENT, f"it could not be fetched ({type(error).__name__})") from error
    return bytes(data)
