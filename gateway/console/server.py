"""Serves the console: its page, one stream of everything as it is, one stream of one turn, and what can be done by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager

import orjson
from aiohttp import web

from adapters.delivery.reconcile import Hand
from adapters.http.common import Problem, problem_response
from adapters.http.entrance import NotJson, json_of
from adapters.http.pagefiles import PageFiles
from adapters.http.routes import Handler, HttpRoute
from agent_core.jsonvalue import Json
from agent_core.ports import Clock
from agent_core.store.store import Damaged, StorageUnavailable
from gateway.console.access import Access
from gateway.console.acting import Acting, CannotAct, PartName
from gateway.console.looking import Board
from gateway.console.reading import TextReading
from gateway.console.streams import Streams
from gateway.console.turns import ConsoleTurns
from gateway.explain.ids import CannotExplain
from gateway.storage.storewatch import AWAY_WORDS

MOST_WATCHERS = 24
"""Streams at once; each page has one or two."""
MAX_BODY_BYTES = 10_000
DAMAGED_WORDS = "This cannot be read: the database is damaged there. outspoken db check says where."
# The page holds nothing that is secret: it is served without a key.
PAGE = PageFiles("gateway.console.page", frozenset({"index.html", "console.css", "console.js", "chart.js"}))


class Console:
    """Its routes."""

    def __init__(
        self, board: Board, turns: ConsoleTurns, acting: Acting, reading: TextReading, access: Access, clock: Clock
    ) -> None:
        self._board = board
        self._turns = turns
        self._acting = acting
        self._reading = reading
        self._access = access
        self._streams = Streams(board, turns, clock)
        self._watchers = 0

    def routes(self) -> Mapping[HttpRoute, Handler]:
        return {
            HttpRoute.CONSOLE: PAGE.page,
            HttpRoute.CONSOLE_TOO: PAGE.page,
            HttpRoute.CONSOLE_FILE: PAGE.named,
            HttpRoute.CONSOLE_LIVE: self._guarded(self._live),
            HttpRoute.CONSOLE_TURN: self._guarded(self._turn),
            HttpRoute.CONSOLE_EXPLAIN: self._guarded(self._explain),
            HttpRoute.CONSOLE_PREVIEW: self._guarded(self._preview),
            HttpRoute.CONSOLE_TEXT: self._guarded(self._text),
            HttpRoute.CONSOLE_TITLE: self._guarded(self._title),
            HttpRoute.CONSOLE_SEARCH: self._guarded(self._search),
            HttpRoute.CONSOLE_ACT: self._guarded(self._act),
        }

    def _guarded(self, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            problem = self._access.refusal(request)
            if problem is not None:
                return problem_response(problem)
            try:
                return await handler(request)
            except CannotAct as refused:
                return problem_response(Problem(refused.status, str(refused)))
            except Damaged:
                return problem_response(Problem(503, DAMAGED_WORDS))
            except StorageUnavailable:
                return problem_response(Problem(503, f"{AWAY_WORDS} Look again before you repeat it.", retry_after=5))

        return handle

    # ------------------------------------------------------------------ looking

    @asynccontextmanager
    async def _stream(self, request: web.Request) -> AsyncGenerator[web.StreamResponse]:
        self._watchers += 1
        try:
            response = web.StreamResponse(
                headers={
                    "Content-Type": "text/event-stream; charset=utf-8",
                    "Cache-Control": "no-store",
                    "X-Accel-Buffering": "no",
                }
            )
            await response.prepare(request)
            yield response
        finally:
            self._watchers -= 1

    def _full(self) -> Problem | None:
        if self._watchers < MOST_WATCHERS:
            return None
        return Problem(503, f"{MOST_WATCHERS} consoles are open already. Close one.", retry_after=10)

    async def _live(self, request: web.Request) -> web.StreamResponse:
        if (full := self._full()) is not None:
            return problem_response(full)
        async with self._stream(request) as response, aclosing(self._streams.live()) as events:
            async for event in events:
                await response.write(event)
            return response

    async def _turn(self, request: web.Request) -> web.StreamResponse:
        turn = request.match_info["turn"]
        if (full := self._full()) is not None:
            return problem_response(full)
        first = await self._turns.look(turn, None)
        if first is None:
            return problem_response(Problem(404, f"There is no turn {turn}."))
        async with self._stream(request) as response, aclosing(self._streams.turn(turn, first)) as events:
            async for event in events:
                await response.write(event)
            return response

    async def _explain(self, request: web.Request) -> web.StreamResponse:
        try:
            return _json(await self._turns.explain(request.match_info["id"]))
        except CannotExplain as error:
            return problem_response(Problem(404, str(error)))

    # ------------------------------------------------------------------ acting

    async def _preview(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        seen = await self._acting.preview(_name(body), _hand(body), _text(body, "to"))
        return _json({"lines": list(seen.lines), "mark": seen.mark, "to": seen.to, "who": self._access.who(request)})

    async def _text(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        text = await self._acting.show_text(self._access.who(request), _name(body))
        self._board.hurry()
        return _json({"text": text})

    async def _title(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        text = await self._reading.title(self._access.who(request), _text(body, "session"))
        self._board.hurry()
        return _json({"text": text})

    async def _search(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        found = await self._reading.search(self._access.who(request), _text(body, "text"))
        self._board.hurry()
        return _json(found)

    async def _act(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        who = self._access.who(request)
        words = await self._acting.act(who, _name(body), _hand(body), _text(body, "to"), _text(body, "mark"))
        self._board.hurry()
        return _json({"words": words})


def _json(value: dict[str, Json]) -> web.Response:
    return web.Response(
        body=orjson.dumps(value), content_type="application/json", headers={"Cache-Control": "no-store"}
    )


async def _body(request: web.Request) -> dict[str, Json]:
    """A request's object. Raises `CannotAct`. That it must be JSON keeps forms of other pages out."""
    if request.content_type != "application/json":
        raise CannotAct(415, "The body must be JSON (Content-Type: application/json).")
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise CannotAct(413, f"The body is larger than {MAX_BODY_BYTES} bytes.")
    try:
        value = json_of(await request.read())
    except NotJson as error:
        raise CannotAct(400, str(error)) from None
    if not isinstance(value, dict):
        raise CannotAct(400, "The body must be a JSON object.")
    return value


def _text(body: dict[str, Json], name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        raise CannotAct(400, f"{name} must be text.")
    return value


def _name(body: dict[str, Json]) -> PartName:
    name = body.get("name")
    if not isinstance(name, dict):
        raise CannotAct(400, "name must say which part: surface, origin, bubble, part.")
    part = name.get("part")
    if not isinstance(part, int) or isinstance(part, bool):
        raise CannotAct(400, "part must be a number.")
    return PartName(_text(name, "surface"), _text(name, "origin"), _text(name, "bubble"), part)


def _hand(body: dict[str, Json]) -> Hand:
    try:
        return Hand(_text(body, "act"))
    except ValueError:
        raise CannotAct(400, f"act must be one of: {', '.join(Hand)}.") from None
