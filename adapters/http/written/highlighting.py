"""Answers the page how a piece of code is coloured. Who looks at it can read it all the same, so nothing but the answer depends on it."""

from __future__ import annotations

import orjson
from aiohttp import web

from adapters.http.common import CALLER, Problem, problem_response
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import Handler
from adapters.http.written.colours import JOB, MOST_CHARS
from agent_core.jsonvalue import Json
from agent_core.workers.pool import Workers, WorkFailed

LANGUAGE_CHARS = 30


def highlighted(workers: Workers) -> Handler:
    """Serves `HttpRoute.HIGHLIGHT`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            asked = json_of(await request.read())
        except NotJson as error:
            return problem_response(Problem(400, str(error)))
        language, text = (asked.get("language"), asked.get("text")) if isinstance(asked, dict) else (None, None)
        if not isinstance(language, str) or not isinstance(text, str) or len(language) > LANGUAGE_CHARS:
            return problem_response(
                Problem(400, f"language and text must be text, language of at most {LANGUAGE_CHARS} characters.")
            )
        runs: Json = []
        if len(text) <= MOST_CHARS:
            try:
                code = text.encode("utf-8", "replace")
                runs = await workers.run(JOB, {"language": language}, code, owner=("page", request[CALLER].realm))
            except WorkFailed:
                runs = []  # it took too long; it stays without colours
        return web.Response(body=orjson.dumps({"runs": runs}), content_type="application/json")

    return handle
