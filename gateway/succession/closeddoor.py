"""What answers at the gateway's address while it has no database: alive, not ready, and everything else is not served, in words.

So whoever starts processes again leaves it alone, and whoever sends people sends them elsewhere.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

import structlog
from aiohttp import web

from adapters.http.common import Problem, problem_response

log = structlog.get_logger("gateway")

RETRY_AFTER_SECONDS = 2


class ClosedDoor:
    """Shut until it is opened for the first time. A port that is taken (another gateway of this machine has it) hinders nothing."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._stack = AsyncExitStack()
        self._phase = self._words = ""

    async def show(self, phase: str, words: str) -> None:
        """Say this to whoever comes."""
        there, self._phase, self._words = bool(self._phase), phase, words
        if there:
            return
        app = web.Application()
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/readyz", self._not_ready)
        app.router.add_route("*", "/{rest:.*}", self._not_served)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, auto_decompress=False)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            log.info("gateway.unseen", port=self._port, error=error.strerror)

    async def away(self) -> None:
        """Make room for the gateway's own."""
        self._phase = ""
        await self._stack.aclose()

    async def _alive(self, _: web.Request) -> web.Response:
        return web.json_response({"program": "outspoken", "status": "ok"})

    async def _not_ready(self, _: web.Request) -> web.Response:
        body = {"status": "not ready", "phase": self._phase, "problems": [self._words]}
        return web.json_response(body, status=503)

    async def _not_served(self, request: web.Request) -> web.Response:
        if "text/html" in request.headers.get("Accept", ""):  # a person looks
            return web.Response(status=503, text=self._words, headers={"Refresh": str(RETRY_AFTER_SECONDS)})
        problem = Problem(503, self._words, "server_error", code=self._phase, retry_after=RETRY_AFTER_SECONDS)
        return problem_response(problem)
