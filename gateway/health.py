"""Health endpoints: ``/healthz`` (the loop is alive) and ``/readyz`` (the store takes writes)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from aiohttp import web


class Checkable(Protocol):
    """Something that can say whether it works, by raising if it does not."""

    async def check(self) -> None: ...


class Health:
    """Serves the two endpoints that supervisors ask. They need no key and tell no secret."""

    def __init__(self, store: Checkable, laws_broken: Callable[[], int]) -> None:
        self._store = store
        self._laws_broken = laws_broken

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/healthz", self._healthz), web.get("/readyz", self._readyz)]

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.json_response({"program": "outspoken", "status": "ok"})

    async def _readyz(self, _: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(3):
                await self._store.check()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the store, the answer is "not ready"
            return web.json_response({"status": "not ready", "store": type(error).__name__}, status=503)
        return web.json_response({"status": "ready", "laws_broken": self._laws_broken()})
