"""``/api/triage``: what ``outspoken triage`` says, for whoever runs the gateway from elsewhere. Needs the operators' key."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import web

from adapters.http.common import Problem, guarded, problem_response
from adapters.http.routes import HttpRoute
from agent_core.ports import Clock

MOST_GROUPS = 100
USUAL_GROUPS = 10


class TriageLook:
    """Serves it. `where` is the database; it is read beside the gateway, in a thread, on a connection of its own."""

    def __init__(self, where: str | Path, clock: Clock, key: str | None) -> None:
        self._where, self._clock, self._key = where, clock, key
        self._one = asyncio.Lock()
        """One look at a time: each reads days of failures."""

    def routes(self) -> list[web.RouteDef]:
        return [HttpRoute.TRIAGE.served(guarded(self._key, self._look))]

    async def _look(self, request: web.Request) -> web.Response:
        from gateway.operate.triage.reading import DATABASE_MS, CannotTriage, since_ms

        now = self._clock.now_ms()
        try:
            limit = int(request.query.get("limit", str(USUAL_GROUPS)))
        except ValueError:
            limit = 0
        if not 1 <= limit <= MOST_GROUPS:
            words = f"limit must be a number from 1 to {MOST_GROUPS}"
            return problem_response(Problem(400, words, param="limit", code="invalid_value"))
        since = request.query.get("since", "")
        try:
            begin = since_ms(since, now) if since else now - DATABASE_MS
        except (CannotTriage, OverflowError) as error:
            words = str(error).removeprefix("--") if isinstance(error, CannotTriage) else "since is no time"
            return problem_response(Problem(400, words, param="since", code="invalid_value"))
        async with self._one:
            body = await asyncio.to_thread(_read, self._where, begin, now, limit)
        return web.Response(body=body, content_type="application/json")


def _read(where: str | Path, since: int, now: int, limit: int) -> bytes:
    from gateway.operate.triage.reading import from_database
    from gateway.operate.triage.report import as_json

    return as_json(asyncio.run(from_database(where, since, now)), limit)
