"""The middleware of all routes: tells the door what is being served, refuses what cannot be read, and gives every mistake an answer.

Law: whatever a request holds, it is answered, and never with a traceback (tests/adapters/test_entrance.py).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import structlog
from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware
from typing_extensions import override

from adapters.contract.pacing import worth_saying
from adapters.http.behindproxy import BehindProxy
from adapters.http.common import (
    Problem,
    mistake_of_ours,
    no_storage,
    not_here,
    problem_response,
    shown_key,
)
from adapters.http.entrance import NotJson, client_of, is_among, unreadable
from agent_core.ports import Ids
from agent_core.signals import RequestRefused, Tell
from agent_core.store.errors import LeaseLost, StorageUnavailable
from gateway.http.connections import Door, Doorkeeper, SlowBody, packed_rest
from gateway.limits.patience import ALIVE, READY

log = structlog.get_logger("http")

ANSWERING = web.RequestKey("answering", bool)
"""Set in a request as soon as the head of its answer is written."""
TOO_DEEP = Problem(400, "The body is nested too deeply.", code="invalid_json")
SLOW = Problem(408, "The body did not come in time.", code="request_timeout")
NO_BODY = Problem(400, "The body could not be read.", code="invalid_body")


class ServersLog(logging.Logger):
    """What aiohttp's server says of requests that never reach the middleware: bounded, and a traceback only for what is no client's doing."""

    def __init__(self) -> None:
        super().__init__("aiohttp.server")
        self.parent = logging.getLogger()  # else what it says goes to nobody's handler, and as it is to standard error
        self._malformed = 0

    @override
    def exception(self, msg: object, *args: object, **more: Any) -> None:
        error = more.get("exc_info")
        if isinstance(error, ConnectionError):
            return  # whoever asked has gone before the answer began
        if not isinstance(error, HttpProcessingError | web.RequestPayloadError):
            super().exception(msg, *args, **more)
            return
        self._malformed += 1
        if worth_saying(self._malformed):
            log.info("http.refused", status=400, reason=type(error).__name__, times=self._malformed)


async def expects(request: web.Request) -> web.StreamResponse | None:
    """Somebody waits to be told to send the body: the only thing that HTTP lets them expect."""
    if request.version == HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return None
    return problem_response(Problem(417, "That cannot be expected here.", code="expectation_failed"))


def expecting(routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
    """The routes and one for all other paths, with an answer to whatever is expected."""
    routes = [*routes, web.route("*", "/{path:.*}", not_here)]
    return [
        web.RouteDef(route.method, route.path, route.handler, {**route.kwargs, "expect_handler": expects})
        for route in routes
    ]


def introducing(learn: Callable[[str], Awaitable[None]]) -> Middleware:
    """A middleware that has the key learnt that somebody shows, before it is looked at. Where nobody can look, none is told to be wrong."""

    @web.middleware
    async def introduce(request: web.Request, handler: Handler) -> web.StreamResponse:
        unknown: StorageUnavailable | None = None
        if shown := shown_key(request):
            try:
                await learn(shown)
            except StorageUnavailable as error:
                unknown = error
        response = await handler(request)
        if unknown is not None and response.status == 401:
            raise unknown
        return response

    return introduce


class EntryMiddleware:
    """`middleware` is the outermost one of the server."""

    def __init__(self, keeper: Doorkeeper, ids: Ids, tell: Tell, proxies: BehindProxy) -> None:
        self._keeper = keeper
        self._proxies = proxies
        self._ids = ids
        self._tell = tell
        self._open: Counter[str] = Counter()
        """Requests that are being served, by who sent them through a proxy."""
        self._refused: Counter[int] = Counter()

    def connect(self, app: web.Application, *inner: Middleware) -> None:
        """Have every request of the application pass here, and then what is `inner`."""
        app.middlewares.extend([self._enter, *inner])
        app.on_response_prepare.append(self._prepared)

    async def _prepared(self, request: web.Request, _: web.StreamResponse) -> None:
        request[ANSWERING] = True

    @web.middleware
    async def _enter(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        door = self._keeper.door_of(request)
        if door is not None:
            door.begins(request)
            self._proxies.note(request, door.peer)
        counted: str | Problem = ""
        try:
            counted = unreadable(request.headers) or self._counted(request, door)
            refused = isinstance(counted, Problem)
            response = self._refusal(counted) if refused else await self._answered(request, handler)
            once = door is not None and door.once
            if once or request.content.exception() is not None or packed_rest(request):
                response.force_close()
            return response
        finally:
            if request.content.exception() is not None and not request.content.is_eof():
                request.content.feed_eof()  # what came of the body cannot be read, and the server need not wait for more
            if isinstance(counted, str):
                self._served(counted)
            if door is not None:
                door.ends()

    def _counted(self, request: web.Request, door: Door | None) -> str | Problem:
        """For whom it counts; empty if for nobody. A proxy's connections have no bound of their own; those for whom it speaks have the same
        as anybody."""
        limits = self._keeper.limits
        if door is None or not is_among(door.peer, limits.trusted):
            return ""
        client = client_of(door.peer, request.headers.get("X-Forwarded-For", ""), limits.trusted)
        health = request.path in (ALIVE.pattern, READY.pattern)
        if client != door.peer and self._open[client] >= limits.per_peer and not health:
            words = "Too many requests come from your address. Wait for one to end."
            return Problem(429, words, "rate_limit_error", code="too_many_of_one_peer", retry_after=5)
        self._open[client] += 1
        return client

    def _served(self, client: str) -> None:
        """A request that was `_counted` for somebody is over."""
        if client:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except SlowBody:
            return self._refusal(SLOW)
        except (web.HTTPException, ConnectionError):
            raise
        except NotJson as error:
            return self._refusal(Problem(400, str(error), code="invalid_json"))
        except RecursionError:
            return self._refusal(TOO_DEEP)
        except web.RequestPayloadError:
            return self._refusal(NO_BODY)
        except (StorageUnavailable, LeaseLost) as error:  # lost: another node of ours begins in a moment
            log.warning("http.storage_unavailable", path=request.path[:200], error=str(error))
            if ANSWERING in request:
                raise ConnectionResetError from error
            return problem_response(no_storage(error))
        except Exception as error:
            reference = self._ids.new("err")
            log.exception("http.failed", reference=reference, path=request.path[:200])
            if ANSWERING in request:  # too late for another answer: the client sees that it is cut
                raise ConnectionResetError from error
            return problem_response(mistake_of_ours(reference))

    def _refusal(self, problem: Problem) -> web.Response:
        self._tell(RequestRefused(status=problem.status))
        self._refused[problem.status] += 1
        times = self._refused[problem.status]
        if worth_saying(times):
            log.info("http.refused", status=problem.status, reason=problem.code or "", times=times)
        return problem_response(problem)
