"""Asks an address whether an outspoken gateway answers there."""

from __future__ import annotations

import aiohttp
import orjson

from agent_core.tools.base import Json


async def answers(url: str) -> bool:
    """True if ``/healthz`` at `url` is one of ours; asked once, within a second."""
    timeout = aiohttp.ClientTimeout(total=1.0)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as http, http.get(f"{url}/healthz") as response:
            body: Json = orjson.loads(await response.read())
    except (aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError):
        return False
    return isinstance(body, dict) and body.get("program") == "outspoken"
