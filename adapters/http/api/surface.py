"""The OpenAI-compatible surface: ``/v1/chat/completions``, ``/v1/responses`` (streaming and not) and ``/v1/models``.

A request becomes a `FromApi`; what comes back is the view of its turn. This surface only appends: for every text bubble it
remembers how much has gone out, and sends the rest. What becomes of the turn of a client that goes away
is said by the client, else by the configuration.

Sources: OpenAI's API reference; design notes in docs/architecture.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, cached_property
from math import inf
from typing import TYPE_CHECKING

import orjson
import structlog
from aiohttp import web

from adapters.contract.base import Gateway, RefusedRequest, Ticket
from adapters.contract.callers import Caller, Callers, may_ask
from adapters.http.api.answering import ApiAnswering
from adapters.http.api.asked import ApiRequest
from adapters.http.api.completions import COMPLETIONS
from adapters.http.api.retries import Served
from adapters.http.api.spelling import ApiEndpoint, ApiJob
from adapters.http.api.taking import KEYED, Taking, request_id_of
from adapters.http.api.truth import errors_as
from adapters.http.common import (
    CALLER,
    HEADERS,
    Problem,
    caller_of,
    cors_headers,
    limit_headers,
    mistake_of_ours,
    not_here,
    problem_response,
)
from adapters.http.consent import gone_with
from adapters.http.errorsas import Disconnect, ErrorsAs
from adapters.http.routes import Handler, HttpRoute, later
from adapters.http.sealing import Seals
from agent_core.beside import loaded
from agent_core.jsonvalue import Json
from agent_core.ports import Clock, Ids
from agent_core.records import changed, dataclass
from agent_core.store.errors import LeaseLost, StorageUnavailable

if TYPE_CHECKING:
    from adapters.http.api.keptresponses import KeptResponses

log = structlog.get_logger("api")


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """What the configuration says about this surface."""

    callers: Callers
    max_body_bytes: int
    keep_alive_seconds: float
    disconnect: Disconnect
    disconnect_seconds: float = 10.0
    """How long the grace is."""
    cors_origins: tuple[str, ...] = ()
    errors: ErrorsAs = ErrorsAs.AUTO
    """How failures are told, where a request does not say."""
    thinking: bool = True
    """Clients are shown what the model thinks, where their key does not say otherwise."""
    seals: Seals | None = None
    """How thoughts are sealed for clients that bring them back; None: they are not."""
    own_host: str = ""
    """A name under which the gateway is reached, beside those of this machine."""


KEPT = "adapters.http.api.keptresponses"
COMING_BACK = (
    HttpRoute.CANCEL_COMPLETION,
    HttpRoute.GET_RESPONSE,
    HttpRoute.DELETE_RESPONSE,
    HttpRoute.CANCEL_RESPONSE,
    HttpRoute.LIST_INPUT_ITEMS,
)
"""For answers that there are."""


class OpenAiApi:
    """Serves the routes; decides nothing about turns."""

    def __init__(
        self,
        gateway: Gateway,
        settings: ApiSettings,
        clock: Clock,
        ids: Ids,
        refused: Callable[[RefusedRequest], Awaitable[None]],
    ) -> None:
        """`refused` is told of each request that is not taken."""
        self._refused = refused
        self._gateway = gateway
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._answering = ApiAnswering(clock, ids, settings.keep_alive_seconds)
        self._taking = Taking(gateway, ids, clock, settings.max_body_bytes, self._named, settings.seals)

    @cached_property
    def _kept(self) -> KeptResponses:
        """Loaded by the first who comes back to an answer, or calls the Responses API."""
        from adapters.http.api.keptresponses import KeptResponses

        return KeptResponses(self._gateway, self._answering, self._dressed, self._settings.seals)

    async def _named(self, names: Sequence[str], caller: Caller) -> Mapping[str, Json]:
        await loaded(KEPT)
        return await self._kept.named(names, caller)

    def _coming_back(self) -> Mapping[HttpRoute, Handler]:
        return {
            HttpRoute.CANCEL_COMPLETION: self._kept.cancel_completion,
            HttpRoute.GET_RESPONSE: self._kept.get,
            HttpRoute.DELETE_RESPONSE: self._kept.delete,
            HttpRoute.CANCEL_RESPONSE: self._kept.cancel,
            HttpRoute.LIST_INPUT_ITEMS: self._kept.items,
        }

    def _responding(self) -> Mapping[HttpRoute, Handler]:
        from adapters.http.api.responses import RESPONSES

        return {HttpRoute.RESPOND: self._asked(RESPONSES)}

    def routes(self, beside: Mapping[HttpRoute, Handler] | None = None) -> list[web.RouteDef]:
        """`beside` is what others serve below the same root, for the same callers."""
        served: dict[HttpRoute, Handler] = {
            HttpRoute.COMPLETE: self._asked(COMPLETIONS),
            **later(cache(self._responding), (HttpRoute.RESPOND,), "adapters.http.api.responses"),
            **later(self._coming_back, COMING_BACK, KEPT),
            HttpRoute.LIST_MODELS: self._models,
            HttpRoute.GET_MODEL: self._model,
            **(beside or {}),
        }
        routes = [route.served(self._guarded(handler)) for route, handler in served.items()]
        return [
            *routes,
            web.options("/v1/{path:.*}", self._preflight),
            web.route("*", "/v1/{path:.*}", self._guarded(self._nothing_here)),
        ]

    def _guarded(
        self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Check who calls, and give every error OpenAI's shape."""

        async def handle(request: web.Request) -> web.StreamResponse:
            settings = self._settings
            caller = caller_of(request, settings.callers, settings.cors_origins, settings.own_host)
            if not isinstance(caller, Problem):
                request[CALLER], request[HEADERS] = caller, cors_headers(request, settings.cors_origins)
                try:
                    response = await handler(request)
                except (ConnectionError, web.HTTPException, StorageUnavailable, LeaseLost):
                    raise
                except Exception:
                    if request.writer.output_size > 0:
                        raise  # there is no second answer: the client sees that this one is cut
                    reference = self._ids.new("err")
                    log.exception("api.failed", reference=reference, path=request.path[:200])
                    response = problem_response(mistake_of_ours(reference))
            else:
                await self._refused(RefusedRequest(caller.status, stranger=True))
                response = problem_response(caller)
            if not response.prepared:
                response.headers.update(cors_headers(request, settings.cors_origins))
            return response

        return handle

    async def _preflight(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=204, headers=cors_headers(request, self._settings.cors_origins))

    async def _nothing_here(self, request: web.Request) -> web.StreamResponse:
        known = "POST /v1/chat/completions, POST /v1/responses, GET /v1/models, and what /openapi.json lists"
        return await not_here(request, f"There is: {known}.")

    # ------------------------------------------------------------------ models

    def _model_object(self, name: str) -> dict[str, Json]:
        return {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "outspoken"}

    def _names(self, request: web.Request) -> list[str]:
        """What the caller may ask for."""
        caller, about = request[CALLER], self._gateway.about()
        return [name for name in about.models if may_ask(name, caller.key, caller.terms, about.held)]

    async def _models(self, request: web.Request) -> web.StreamResponse:
        data: list[Json] = [self._model_object(name) for name in self._names(request)]
        return _json({"object": "list", "data": data})

    async def _model(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["model"]
        if name in self._names(request):
            return _json(self._model_object(name))
        words = f"There is no model called {name[:200]!r} here."
        return problem_response(Problem(404, words, param="model", code="model_not_found"))

    # ------------------------------------------------------------------ one request

    def _asked(self, endpoint: ApiEndpoint) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """What serves requests of an endpoint."""

        async def handle(request: web.Request) -> web.StreamResponse:
            request_id = request_id_of(request, self._ids)
            taken = await self._taking.take(request, endpoint, request_id)
            if not isinstance(taken, Problem):
                job = self._job(request, request_id, taken.asked, taken.ticket)
                if not taken.gone:
                    return await self._answer(request, job, endpoint, taken.served)
                self._left(request, job, taken.served)
                raise asyncio.CancelledError
            await self._refused(RefusedRequest(taken.status, _reason(taken), request_id, request[CALLER].key))
            response = problem_response(taken, self._limits(request))
            response.headers["x-request-id"] = request_id
            return response

        return handle

    def _limits(self, request: web.Request) -> dict[str, str]:
        """What is left to the caller, for its answer."""
        return limit_headers(self._settings.callers.left(request[CALLER]))

    def _job(self, request: web.Request, request_id: str, asked: ApiRequest, ticket: Ticket) -> ApiJob:
        job = ApiJob(
            asked=asked,
            ticket=ticket,
            request_id=request_id,
            created=(ticket.received_at or self._clock.now_ms()) // 1000,
            headers={"x-request-id": request_id, **self._limits(request)},
            keyed=KEYED in request.headers,
            errors=ErrorsAs.STATUS,
            placed=asked.background,
        )
        return self._dressed(request, job)

    def _dressed(self, request: web.Request, job: ApiJob) -> ApiJob:
        """The job with what depends on who asks: how failures are told, what is shown of thoughts, and what a page of another origin has to be told."""
        caller, seals = request[CALLER], self._settings.seals

        def seal(value: Json) -> str:
            return "" if seals is None else seals.seal(value, caller.realm)

        style = caller.terms.errors
        configured = self._settings.errors if style is None else ErrorsAs(style.value)
        return changed(
            job,
            headers={**job.headers, **request.get(HEADERS, {})},
            errors=errors_as(request.headers, configured, structured=job.asked.structured),
            thinking=caller.terms.shows_thinking(self._settings.thinking),
            seal=seal,
        )

    async def _answer(
        self, request: web.Request, job: ApiJob, endpoint: ApiEndpoint, served: Served
    ) -> web.StreamResponse:
        try:
            stream = job.asked.stream
            async with self._gateway.follow(
                job.ticket, end_alone=not stream, stored_alone=stream and job.placed
            ) as follower:
                answer = await self._answering.answer(request, job, endpoint.spelling(job), follower)
        except (ConnectionError, asyncio.CancelledError):
            self._left(request, job, served)
            raise
        except BaseException:
            self._taking.retries.answered(served)
            raise
        self._taking.retries.answered(served)
        return answer

    def _goes_on(self, request: web.Request, job: ApiJob) -> float:
        """For how many seconds a request goes on whose client has gone before the end of its answer."""
        match gone_with(request.headers, self._settings.disconnect):
            case Disconnect.CANCEL:
                return 0.0
            case Disconnect.DETACH:
                return inf
            case Disconnect.GRACE | Problem():
                return inf if job.keyed or job.asked.background else self._settings.disconnect_seconds

    def _left(self, request: web.Request, job: ApiJob, served: Served) -> None:
        """The client has gone before its answer came to an end."""
        seconds = self._goes_on(request, job)
        self._taking.retries.left(served, self._clock.monotonic(), seconds)
        log.info("api.client_left", request=job.request_id, turn_goes_on=seconds == inf)
        if seconds < inf:
            self._gateway.client_left(job.ticket, seconds)


def _json(value: dict[str, Json]) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")


def _reason(problem: Problem) -> str:
    """What is noted of a problem: none of its words, which may quote the request."""
    return (
        f"{problem.code or 'invalid_request'}{f' at {problem.param}' if problem.param else ''} (HTTP {problem.status})"
    )
