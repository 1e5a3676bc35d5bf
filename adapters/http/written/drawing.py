"""Answers the page how formulas are written. Who looks at them can read them all the same, so nothing but the answer depends on it."""

from __future__ import annotations

import orjson
from aiohttp import web

from adapters.http.common import CALLER, Problem, problem_response
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import Handler
from adapters.http.written.formulas import JOB, MOST_CHARS, MOST_FORMULAS
from agent_core.jsonvalue import Json
from agent_core.workers.pool import Workers, WorkFailed

_WORDS = f"formulas must be at most {MOST_FORMULAS}, each with tex (at most {MOST_CHARS} characters) and display."


def drawn(workers: Workers) -> Handler:
    """Serves `HttpRoute.FORMULAS`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            asked = json_of(await request.read())
        except NotJson as error:
            return problem_response(Problem(400, str(error)))
        formulas = _formulas(asked.get("formulas") if isinstance(asked, dict) else None)
        if formulas is None:
            return problem_response(Problem(400, _WORDS, param="formulas"))
        try:
            made = await workers.run(JOB, {}, orjson.dumps(formulas), owner=("page", request[CALLER].realm))
        except WorkFailed:
            made = [None] * len(formulas)  # it took too long; they stay as they were written
        return web.Response(body=orjson.dumps({"formulas": made}), content_type="application/json")

    return handle


def _formulas(asked: Json) -> list[Json] | None:
    """Each as [TeX, whether it stands alone]; None if something is wrong. Pure."""
    if not isinstance(asked, list) or len(asked) > MOST_FORMULAS:
        return None
    found: list[Json] = []
    for one in asked:
        tex, alone = (one.get("tex"), one.get("display")) if isinstance(one, dict) else (None, None)
        if not isinstance(tex, str) or len(tex) > MOST_CHARS or not isinstance(alone, bool):
            return None
        found.append([tex, alone])
    return found
