"""The OpenAI-compatible surface: ``/v1/chat/completions`` (streaming and not) and ``/v1/models``.

A request becomes a `FromApi`; what comes back is the view of its turn. This surface only appends: for every text bubble it
remembers how much has gone out, and sends the rest. Statuses and tool activity are comments of the event stream, so that no
client takes them for the reply; notices are ordinary text, so that no client misses them. A client that goes away detaches from
its turn, unless it or the configuration says ``cancel``.

Sources: OpenAI's API reference for chat completions; design notes in docs/architecture.md.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field

import orjson
import structlog
from aiohttp import web

from adapters.contract.base import (
    Ended,
    Follower,
    FromApi,
    Gateway,
    LeftOpen,
    Queued,
    RefusedRequest,
    SessionKey,
    Showing,
    Sight,
    Ticket,
    once,
)
from adapters.contract.notaccepted import NotAccepted
from adapters.http.common import Problem, cors_headers, no_budget, problem_response, refusal, stranger
from adapters.http.openai_request import ChatRequest, parse
from adapters.http.tracecontext import traceparent_of
from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.failures.notices import ExitClass, NotStarted
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.store.errors import StorageUnavailable
from agent_core.text.ours import GrowingText, ours
from agent_core.turn.view import LEFT_WORDS, Bubble, BubbleKind, View

log = structlog.get_logger("api")

TOLD_SECONDS = 0.5
"""Whoever streams is told something by then, whatever becomes of the turn."""
STATUS_SECONDS = 3.0
"""How often a running status is told in a comment, and looked for while nothing comes."""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """What the configuration says about this surface."""

    api_key: str | None = field(repr=False)
    max_body_bytes: int
    keep_alive_seconds: float
    disconnect: str
    """``detach`` or ``cancel``."""
    cors_origins: tuple[str, ...] = ()
    own_host: str = ""
    """A name under which the gateway is reached, beside those of this machine."""


LEFT_OPEN = "left_open"
"""What stands in an exit's place where there is none yet."""
_NO_USAGE: dict[str, Json] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
BY_US: dict[str, Json] = {"by": "gateway"}
"""The ``outspoken`` object of a delta whose words are the gateway's own."""
TRACING = ("X-Client-Request-Id", "X-Request-Id")
TEXT_TAIL = b'},"logprobs":null,"finish_reason":null}]}\n\n'


_TEXT = frozenset({BubbleKind.INTERIM, BubbleKind.PARTIAL, BubbleKind.ANSWER})
_SAID = _TEXT | {BubbleKind.NOTE, BubbleKind.NOTICE}
"""What an append-only client is told."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text for an append-only client."""

    text: str
    ours: bool = False
    """The gateway says it, not the model."""


def text_of(pieces: Iterable[TextPiece]) -> str:
    return "".join(piece.text for piece in pieces)


class Spoken:
    """What has been said to an append-only client, and what is new in a view."""

    def __init__(self) -> None:
        self._said: dict[str, GrowingText] = {}
        self._told: set[str] = set()

    def new(self, view: View) -> list[TextPiece]:
        """What of `view` has not been said, in order; bubbles are paragraphs."""
        pieces: list[TextPiece] = []
        shown = [bubble for bubble in view.bubbles if bubble.text and bubble.kind in _SAID]
        latest = next((bubble for bubble in reversed(shown) if bubble.kind in _TEXT), None)
        if len(shown) > 1:  # what was begun is ended first
            shown.sort(key=lambda one: one.key not in self._said)
        for bubble in shown:
            match bubble.kind:
                case BubbleKind.INTERIM | BubbleKind.PARTIAL | BubbleKind.ANSWER:
                    said = self._said.setdefault(bubble.key, GrowingText())
                    begins = not said.begun
                    text = said.new(bubble.text, final=bubble.final or not view.open or bubble is not latest)
                    if text:
                        pieces.append(TextPiece(self._paragraph(bubble.key, text) if begins else text))
                case BubbleKind.NOTICE | BubbleKind.NOTE if bubble.key not in self._told and not self._goes_on(
                    latest, view
                ):
                    pieces.append(TextPiece(self._paragraph(bubble.key, ours(bubble.text)), ours=True))
                case _:
                    pass
        return pieces

    def _goes_on(self, latest: Bubble | None, view: View) -> bool:
        """The latest text was begun and may grow: nothing is put into its middle."""
        return view.open and latest is not None and not latest.final and self._said.get(latest.key, GrowingText()).begun

    def _paragraph(self, key: str, text: str) -> str:
        before = "\n\n" if self._told else ""
        self._told.add(key)
        return f"{before}{text}"


def is_asked_limit(ended: Ended) -> bool:
    """The reply was cut by the limit that the client set itself: it asked for that, and is told by the finish reason."""
    return isinstance(ended.exit, exits.Cut) and ended.exit.limit_was_asked


def comment(view: View) -> str:
    """What a comment says about a running turn: its status, else the latest tool that runs."""
    for bubble in reversed(view.bubbles):
        if bubble.kind in (BubbleKind.STATUS, BubbleKind.MENDED):
            return bubble.text
        if bubble.kind is BubbleKind.APPROVAL:
            return f"waiting for approval of {bubble.tool}"
        if bubble.kind is BubbleKind.ACTIVITY and bubble.state == "running":
            return f"running {bubble.tool}, {bubble.seconds} s"
    return ""


def queue_comment(queued: Queued) -> str:
    """What a comment says of a message that waits."""
    if queued.line:
        return f"queued, place {queued.line} of everybody who waits"
    return f"queued, place {queued.position}"


def queue_facts(queued: Queued) -> dict[str, Json]:
    """The ``outspoken`` object of a chunk about a message that waits."""
    scope = "gateway" if queued.line else "conversation"
    return {"status": "queued", "place": queued.line or queued.position, "queue": scope}


def facts_of(ended: Ended, session: str) -> dict[str, Json]:
    """The ``outspoken`` object of the last chunk: how the turn really ended."""
    summary = ended.summary
    return {
        "exit": ended.exit.code.value,
        "turn": ended.turn,
        "session": session or None,
        "seconds": round(summary.seconds, 3),
        "steps": summary.steps,
        "tool_calls": summary.tool_calls,
        "model_calls": summary.attempts,
        "model": summary.model,
        "notice": next((b.text for b in ended.view.bubbles if b.kind is BubbleKind.NOTICE), None),
    } | recovered_facts(ended.view)


def recovered_facts(view: View) -> dict[str, Json]:
    """What had gone wrong for some time on the way, and was mended; nothing if nothing had."""
    mended: list[Json] = [bubble.text for bubble in view.bubbles if bubble.kind is BubbleKind.MENDED]
    return {"recovered": mended} if mended else {}


def left_words(*, keyed: bool) -> str:
    """What a client is told whose turn goes on in the next process."""
    again = " Ask again with the same Idempotency-Key to get all of it." if keyed else ""
    return f"({LEFT_WORDS}.{again})"


def left_facts(left: LeftOpen, session: str) -> dict[str, Json]:
    """The ``outspoken`` object of a reply whose turn is still open: it is no exit."""
    return {"exit": LEFT_OPEN, "going_on": True, "turn": left.turn or None, "session": session or None}


def usage_of(ended: Ended) -> dict[str, Json]:
    summary = ended.summary
    return {
        "prompt_tokens": summary.input_tokens,
        "completion_tokens": summary.output_tokens,
        "total_tokens": summary.input_tokens + summary.output_tokens,
    }


def calls_of(ended: Ended) -> list[Json]:
    """The client's tool calls, as the API spells them."""
    return [
        {"id": call.call, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in ended.handed
    ]


@dataclass(frozen=True)
class _Job:
    """An accepted request."""

    chat: ChatRequest
    ticket: Ticket
    request_id: str
    model: str
    created: int
    headers: Mapping[str, str]
    keyed: bool
    """The client has named the request, and can come back to it."""

    @functools.cached_property
    def text_head(self) -> bytes:
        """What stands before the text in a chunk with text: such a chunk goes out many times a second."""
        head = orjson.dumps(
            {
                "id": self.completion_id,
                "object": "chat.completion.chunk",
                "created": self.created,
                "model": self.model,
                "choices": [],
            }
        )
        return b"data: " + head.removesuffix(b"]}") + b'{"index":0,"delta":{"content":'

    @functools.cached_property
    def completion_id(self) -> str:
        """One id for all chunks, also those before the turn begins, and for every retry of the same request."""
        return f"chatcmpl-{self.ticket.session}-{self.ticket.inbox_id}"


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

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/chat/completions", self._guarded(self._chat)),
            web.get("/v1/models", self._guarded(self._models)),
            web.get("/v1/models/{model:.+}", self._guarded(self._model)),
            web.options("/v1/{path:.*}", self._preflight),
            web.route("*", "/v1/{path:.*}", self._guarded(self._nothing_here)),
        ]

    def _guarded(
        self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Check who calls, and give every error OpenAI's shape."""

        async def handle(request: web.Request) -> web.StreamResponse:
            settings = self._settings
            problem = stranger(request, settings.api_key, settings.cors_origins, settings.own_host)
            if problem is None:
                try:
                    response = await handler(request)
                except (ConnectionError, web.HTTPException, StorageUnavailable):
                    raise
                except Exception:
                    reference = self._ids.new("err")
                    log.exception("api.failed", reference=reference, path=request.path[:200])
                    words = (
                        f"Something went wrong inside the gateway (reference {reference}). Please tell whoever runs it."
                    )
                    response = problem_response(Problem(500, words, "server_error", code="internal_error"))
            else:
                await self._refused(RefusedRequest(problem.status, stranger=True))
                response = problem_response(problem)
            if not response.prepared:
                response.headers.update(cors_headers(request, settings.cors_origins))
            return response

        return handle

    async def _preflight(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=204, headers=cors_headers(request, self._settings.cors_origins))

    async def _nothing_here(self, request: web.Request) -> web.StreamResponse:
        known = "POST /v1/chat/completions, GET /v1/models"
        words = f"There is nothing at {request.method} {request.path[:200]}. There is: {known}."
        return problem_response(Problem(404, words, code="unknown_url"))

    # ------------------------------------------------------------------ models

    def _model_object(self, name: str) -> dict[str, Json]:
        return {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "outspoken"}

    async def _models(self, _: web.Request) -> web.StreamResponse:
        data: list[Json] = [self._model_object(name) for name in self._gateway.about().models]
        return _json({"object": "list", "data": data})

    async def _model(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["model"]
        if name in self._gateway.about().models:
            return _json(self._model_object(name))
        words = f"There is no model called {name[:200]!r} here."
        return problem_response(Problem(404, words, param="model", code="model_not_found"))

    # ------------------------------------------------------------------ one request

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        request_id = self._request_id(request)
        taken = await self._take(request, request_id)
        if isinstance(taken, Problem):
            await self._refused(RefusedRequest(taken.status, _reason(taken), request_id))
            response = problem_response(taken)
            response.headers["x-request-id"] = request_id
            return response
        chat, ticket = taken
        job = _Job(
            chat=chat,
            ticket=ticket,
            request_id=request_id,
            model=chat.model or "outspoken",
            created=self._clock.now_ms() // 1000,
            headers={"x-request-id": request_id, **cors_headers(request, self._settings.cors_origins)},
            keyed="Idempotency-Key" in request.headers,
        )
        mode = request.headers.get("X-Outspoken-Disconnect", self._settings.disconnect)
        try:
            async with self._gateway.follow(ticket) as follower:
                answer = self._streamed if chat.stream else self._whole
                return await answer(request, job, follower)
        except (ConnectionError, asyncio.CancelledError):
            if mode == "cancel":
                await asyncio.shield(self._gateway.stop_message(ticket))
            else:
                log.info("api.client_left", request=request_id, turn_goes_on=True)
            raise

    async def _take(self, request: web.Request, request_id: str) -> tuple[ChatRequest, Ticket] | Problem:
        """The request, accepted; or why it is not."""
        body = await self._body(request)
        if isinstance(body, Problem):
            return body
        chat = parse(body, request.headers.get("X-Outspoken-Session", ""))
        if isinstance(chat, Problem):
            return chat
        key = self._platform_key(request, chat, request_id)
        if len(key) > 400:
            return Problem(400, "The request id is longer than 255 characters.")
        try:
            return chat, await self._gateway.accept(
                self._inbound(chat, key, traceparent_of(request.headers.getall("traceparent", ())))
            )
        except NotAccepted as refused:
            return refusal(refused)

    async def _body(self, request: web.Request) -> bytes | Problem:
        limit = self._settings.max_body_bytes
        too_large = Problem(413, f"The body is larger than {limit} bytes.", code="request_too_large")
        if request.content_length is not None and request.content_length > limit:
            return too_large
        try:
            return await request.read()
        except web.HTTPRequestEntityTooLarge:
            return too_large
        except (ValueError, web.HTTPBadRequest, web.RequestPayloadError) as error:
            return Problem(400, f"The body could not be read: {type(error).__name__}.")

    def _request_id(self, request: web.Request) -> str:
        """By which the client and the logs name the request; the client's own, if it gave one."""
        given = (request.headers.get(name) for name in ("Idempotency-Key", *TRACING))
        return next((one[:255] for one in given if one), "") or self._ids.new("req")

    def _platform_key(self, request: web.Request, chat: ChatRequest, request_id: str) -> str:
        """The key of the message. A retry under the same id, of the same conversation and person, is the same message.

        ``Idempotency-Key`` stands for the request, whose content is compared; a tracing id does so only together with the content.
        """
        whose, key = _whose(chat), request.headers.get("Idempotency-Key")
        if key:
            return f"keyed:{key}:{whose}" if whose else f"key:{key}"
        traced = any(request.headers.get(name) for name in TRACING)
        return f"rid:{request_id}:{whose}{chat.digest}" if traced else request_id

    def _inbound(self, chat: ChatRequest, key: str, trace: str) -> FromApi:
        before, latest = chat.split()
        if chat.session:
            system = tuple(
                InputMessage(content=m.get("content"), role=str(m["role"]))
                for m in chat.messages
                if m["role"] in ("system", "developer")
            )
            session, history, latest = SessionKey("api", "key", chat.session), None, (*system, *latest)
        else:
            session, history = once(self._ids.new("x")), before
        return FromApi(
            account="api",
            platform_key=key,
            session=session,
            input=latest,
            surface="api",
            memory_scope=f"api/{chat.user}" if chat.user else "api",
            own_history=history,
            request=chat.parameters,
            client_tools=chat.tools,
            model=chat.model,
            client_output_limit=chat.client_output_limit,
            digest=chat.digest,
            trace=trace,
        )

    # ------------------------------------------------------------------ streaming

    async def _streamed(self, request: web.Request, job: _Job, follower: Follower) -> web.StreamResponse:
        first = await follower.next(min(TOLD_SECONDS, self._settings.keep_alive_seconds))
        if isinstance(first, Ended) and (problem := _not_begun(first)) is not None:
            return problem_response(problem)
        headers = {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",
            **job.headers,
        }
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(self._chunk(job, {"role": "assistant", "content": ""}))
        try:
            await self._tell(response, job, follower, first)
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - the border of this surface: a client that waits must get an end
            await response.write(self._broken(job))
        await response.write_eof()
        return response

    async def _tell(self, response: web.StreamResponse, job: _Job, follower: Follower, first: Sight | None) -> None:
        """Write what there is to see, from the first sight to the last."""
        turn = ""
        spoken = Spoken()
        told_at = self._clock.monotonic()
        sight = first
        while True:
            match sight:
                case None:
                    if self._clock.monotonic() - told_at >= self._settings.keep_alive_seconds:
                        await response.write(b": keep-alive\n\n")
                        told_at = self._clock.monotonic()
                case Queued():
                    told = self._chunk(job, {}, outspoken=queue_facts(sight))
                    await response.write(f": {queue_comment(sight)}\n\n".encode() + told)
                case Showing():
                    if not turn:
                        turn = sight.turn
                        await response.write(f": turn {turn}\n\n".encode())
                    pieces = spoken.new(sight.view)
                    if pieces:
                        await response.write(self._pieces(job, pieces))
                        told_at = self._clock.monotonic()
                    elif self._clock.monotonic() - told_at >= STATUS_SECONDS:
                        words = " ".join(comment(sight.view).split()) or "keep-alive"
                        await response.write(f": {words}\n\n".encode())
                        told_at = self._clock.monotonic()
                case Ended():
                    await response.write(self._last_chunks(job, sight, spoken))
                    return
                case LeftOpen():
                    await response.write(self._left_chunks(job, sight, spoken))
                    return
            sight = await follower.next(min(STATUS_SECONDS, self._settings.keep_alive_seconds))

    def _pieces(self, job: _Job, pieces: Sequence[TextPiece]) -> bytes:
        """A chunk for each run of words of the model's or of ours; ours say so."""
        if len(pieces) == 1 and not pieces[0].ours:  # as nearly always: many times a second
            return job.text_head + orjson.dumps(pieces[0].text) + TEXT_TAIL
        chunks: list[bytes] = []
        for is_ours, run in itertools.groupby(pieces, key=lambda piece: piece.ours):
            text = text_of(run)
            if is_ours:
                chunks.append(self._chunk(job, {"content": text, "outspoken": BY_US}))
            else:
                chunks.append(job.text_head + orjson.dumps(text) + TEXT_TAIL)
        return b"".join(chunks)

    def _broken(self, job: _Job) -> bytes:
        """The end of a stream that this surface itself could not go on with: a bug of ours, told as one."""
        reference = self._ids.new("err")
        log.exception("api.stream_failed", reference=reference, request=job.request_id)
        words = (
            f"Something went wrong inside the gateway while it was showing this (reference {reference}). The turn itself "
            "goes on; ask again with the same Idempotency-Key to get what came of it."
        )
        said = TextPiece(f"\n\n{ours(words)}", ours=True)
        end = self._chunk(job, {}, "length", outspoken={"exit": ExitCode.INTERNAL_ERROR.value, "reference": reference})
        return self._pieces(job, [said]) + end + b"data: [DONE]\n\n"

    def _left_chunks(self, job: _Job, left: LeftOpen, spoken: Spoken) -> bytes:
        """The end of a stream whose turn goes on in the next process."""
        pieces = [*spoken.new(left.view), TextPiece(f"\n\n{ours(left_words(keyed=job.keyed))}", ours=True)]
        end = self._chunk(job, {}, "length", outspoken=left_facts(left, job.chat.session))
        return self._pieces(job, pieces) + end + b"data: [DONE]\n\n"

    def _chunk(self, job: _Job, delta: dict[str, Json], finish: str | None = None, **more: Json) -> bytes:
        chunk: dict[str, Json] = {
            "id": job.completion_id,
            "object": "chat.completion.chunk",
            "created": job.created,
            "model": job.model,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
            **more,
        }
        return b"data: " + orjson.dumps(chunk) + b"\n\n"

    def _last_chunks(self, job: _Job, ended: Ended, spoken: Spoken) -> bytes:
        """The rest of the text, the finish reason with what really happened, usage if asked for, and the end mark."""
        parts: list[bytes] = []
        view = _without_notice(ended.view) if is_asked_limit(ended) else ended.view
        rest = spoken.new(view)
        if rest:
            parts.append(self._pieces(job, rest))
        calls = calls_of(ended)
        if calls:
            numbered: list[Json] = [{"index": i, **c} for i, c in enumerate(calls) if isinstance(c, dict)]
            parts.append(self._chunk(job, {"tool_calls": numbered}))
        facts = facts_of(ended, job.chat.session)
        parts.append(self._chunk(job, {}, ended.exit.kind.finish_reason, outspoken=facts))
        if job.chat.include_usage:
            usage: dict[str, Json] = {
                "id": job.completion_id,
                "object": "chat.completion.chunk",
                "created": job.created,
                "model": job.model,
                "choices": [],
                "usage": usage_of(ended),
            }
            parts.append(b"data: " + orjson.dumps(usage) + b"\n\n")
        parts.append(b"data: [DONE]\n\n")
        return b"".join(parts)

    # ------------------------------------------------------------------ not streaming

    async def _whole(self, request: web.Request, job: _Job, follower: Follower) -> web.StreamResponse:
        """One JSON object at the end. While it takes long, white space goes out, which JSON allows before a value."""
        response: web.StreamResponse | None = None
        quiet_since = self._clock.monotonic()
        while True:
            sight = await follower.next(self._settings.keep_alive_seconds)
            if isinstance(sight, Ended | LeftOpen):
                break
            if self._clock.monotonic() - quiet_since < self._settings.keep_alive_seconds:
                continue
            quiet_since = self._clock.monotonic()
            if response is None:
                response = web.StreamResponse(headers={"Content-Type": "application/json", **job.headers})
                await response.prepare(request)
            await response.write(b" ")
        if response is None and isinstance(sight, Ended) and (problem := _not_begun(sight)) is not None:
            return problem_response(problem)
        body = self._completion(job, sight) if isinstance(sight, Ended) else self._unfinished(job, sight)
        if response is None:
            return _json(body, headers=job.headers)
        await response.write(orjson.dumps(body))
        await response.write_eof()
        return response

    def _unfinished(self, job: _Job, left: LeftOpen) -> dict[str, Json]:
        text = f"{text_of(Spoken().new(left.view))}\n\n{ours(left_words(keyed=job.keyed))}".lstrip()
        message: dict[str, Json] = {"role": "assistant", "content": text, "refusal": None}
        return self._whole_object(job, message, "length", _NO_USAGE, left_facts(left, job.chat.session))

    def _whole_object(
        self, job: _Job, message: dict[str, Json], finish: str, usage: dict[str, Json], facts: dict[str, Json]
    ) -> dict[str, Json]:
        return {
            "id": job.completion_id,
            "object": "chat.completion",
            "created": job.created,
            "model": job.model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": usage,
            "outspoken": facts,
        }

    def _completion(self, job: _Job, ended: Ended) -> dict[str, Json]:
        view = _without_notice(ended.view) if is_asked_limit(ended) else ended.view
        text = text_of(Spoken().new(view))
        calls = calls_of(ended)
        message: dict[str, Json] = {"role": "assistant", "content": text or (None if calls else ""), "refusal": None}
        if calls:
            message["tool_calls"] = calls
        finish, facts = ended.exit.kind.finish_reason, facts_of(ended, job.chat.session)
        return self._whole_object(job, message, finish, usage_of(ended), facts)


def _whose(chat: ChatRequest) -> str:
    """A mark of the conversation and the person that a request names, empty if it names neither: ids of requests are theirs."""
    if not chat.session and not chat.user:
        return ""
    return hashlib.blake2b(orjson.dumps([chat.session, chat.user]), digest_size=12).hexdigest()


def _without_notice(view: View) -> View:
    return View(tuple(b for b in view.bubbles if b.kind is not BubbleKind.NOTICE), view.open, view.exit_code)


def _json(value: dict[str, Json], headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json", headers=headers)


def _not_begun(ended: Ended) -> Problem | None:
    """The HTTP error for a message for which no model was ever asked, or of whose end nothing is left; None if there is something to tell."""
    if isinstance(ended.exit, exits.InternalError) and ended.exit.reason is NotStarted.GONE:
        words = f"{ended.view.text} To have it done again, ask with another Idempotency-Key, or without one."
        return Problem(410, words, "server_error", code="answer_lost")
    if ended.exit.kind is ExitClass.NOT_STARTED:
        return Problem(503, ended.view.text, "server_error", code="not_started", retry_after=5)
    spend = ended.exit.spend if isinstance(ended.exit, exits.SpendLimit) else None
    if spend is None or ended.summary.attempts > 1:
        return None
    return no_budget(ended.view.text, spend.opens_in_seconds if spend.used >= spend.limit else 60)


def _reason(problem: Problem) -> str:
    """What is noted of a problem: none of its words, which may quote the request."""
    return (
        f"{problem.code or 'invalid_request'}{f' at {problem.param}' if problem.param else ''} (HTTP {problem.status})"
    )
