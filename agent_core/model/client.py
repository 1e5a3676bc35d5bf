"""Asks a model and listens: one call, from request to its last event.

A call goes out by aiohttp (`transport`), and its body's bytes are parsed here: the `openai` SDK's client and its stream objects cost more than the
rest of a turn, so it is asked for lists of models alone (`listing`). Retries are not made here; the turn decides them. This client decides
nothing but what a byte or an exception means, and hands content to a sink as it comes.

Only content (text, reasoning, pieces of tool calls) counts as life; comments, pings and empty chunks do not move the deadline.
Leaving `ask`, also by cancellation, closes the socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field, replace
from typing import TYPE_CHECKING, cast

import orjson
import structlog

from agent_core.bell import Frames
from agent_core.causes import BreakCause
from agent_core.failures.complaints import NOTHING_SAID, Complaint
from agent_core.jsonvalue import Json
from agent_core.messages import Message, ToldConversation
from agent_core.model.endpoints import Endpoint
from agent_core.model.failures import DETAIL_CHARS, OF_THE_KEY, Rejection, rejection
from agent_core.model.knownbad import KnownBad, avoiding, nobody_left
from agent_core.model.learnt import Learnt, kind_of, own_words, without_tools
from agent_core.model.manners import AMENDS, POLITE, TOOL_FIELDS, Manners, amended, put
from agent_core.model.pauses import asked_pause
from agent_core.model.reach import ALONE, Lives, Theirs, TransportBroke, led_elsewhere, reason, speaks_tls
from agent_core.model.stream.sse import LIMIT_BYTES, SseTooLarge, decoded
from agent_core.model.templates import plainer
from agent_core.model.thinking import with_thoughts
from agent_core.patience import Limit
from agent_core.ports import Clock
from agent_core.records import NONE, changed, dataclass
from agent_core.rules.replies import DONE_ONLY, USUAL, Finish, finish_of
from agent_core.settings import CONNECT_SECONDS, REPLY_CHARS, SILENCE_SECONDS, Route
from agent_core.text.redaction import Redactor
from agent_core.text.shown import plain
from agent_core.turn.events import CallBroke, Event, ReplyFinished, ToolsRefused

if TYPE_CHECKING:
    from agent_core.model.stream.alike import BodyReader
    from agent_core.model.transport import ModelAnswer, ModelLine

log = structlog.get_logger("model")

GRACE_SECONDS = 3.0
"""How long a usage chunk or ``[DONE]`` is waited for once the finish reason is there."""
ASK_AGAIN_SECONDS = 60.0
"""How long an endpoint that could not say which models it has is not asked again."""

_HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
_NAMED = (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID"))
"""Headers that OpenAI's own clients take from the environment."""

STEADY_SECONDS = 0.05
BULK_BYTES = 8_192
"""A stream that has been going for this long in pieces smaller than this is read once a frame: people see the same, and a token
costs less. Short replies and those that come in bulk are not held up: somebody may be waiting for their end."""

PART_BYTES = 16_384
"""So much of a body is read at a time: the longest way through it takes a few milliseconds, and others have their turn behind it."""

Sink = Callable[[Sequence[Event]], None]
Ending = ReplyFinished | CallBroke


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call as the driver puts it."""

    route: Route
    number: int
    messages: Sequence[Message]
    tools: bytes = b""
    """The schemas of the tools on offer, encoded as a JSON array once for all calls; empty if none are."""
    parameters: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Sampling parameters and the like, in the API's words; they win over the endpoint's own."""
    first_content_seconds: float = SILENCE_SECONDS
    stall_seconds: float = SILENCE_SECONDS
    connect_seconds: float = CONNECT_SECONDS
    taken_ids: frozenset[str] = NONE
    """Tool-call ids that this turn has used."""
    offered: frozenset[str] = NONE
    """Names of the tools on offer."""
    manners: Manners = POLITE
    """How this way to this model wants to be asked, as far as it is known."""
    parse_text_calls: bool = True


class UnknownRoute(Exception):
    """A route names an endpoint or a credential that this client does not have."""


class ModelClient:
    """All endpoints of the configuration, and one line for each credential, made at first use."""

    def __init__(self, endpoints: Sequence[Endpoint], clock: Clock, redactor: Redactor, lives: Lives = ALONE) -> None:
        self._lives = lives
        self._endpoints = {endpoint.label: endpoint for endpoint in endpoints}
        self._clock = clock
        self._redactor = redactor
        self._lines: dict[tuple[str, str], ModelLine] = {}
        self._frames: Frames | None = None
        self._names: dict[str, str] = {}
        self._ask_again_at: dict[str, float] = {}
        self._unavoidable: set[tuple[str, str]] = set()
        """Endpoints and models for which nobody was left once those that go wrong were avoided."""
        self._wants_tls: dict[str, bool] = {}
        """Of endpoints that answered, or hung up without a word: whether they want TLS where plain HTTP is configured."""
        self._learnt: dict[tuple[str, str, frozenset[str]], Learnt] = {}
        self._endings: dict[tuple[str, str], Endings] = {}

    def endpoint(self, label: str) -> Endpoint:
        """The endpoint of that label; `UnknownRoute` if there is none."""
        try:
            return self._endpoints[label]
        except KeyError:
            raise UnknownRoute(f"no endpoint is called {label!r}") from None

    async def warm(self) -> None:
        """Load what the first call would have to wait for, beside the loop, and make the lines that it goes by."""
        await asyncio.to_thread(_load)
        for endpoint in self._endpoints.values():
            for credential in endpoint.credentials:
                with contextlib.suppress(TransportBroke):  # the call says so
                    self._line(endpoint, credential.id)
                await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Close all connections."""
        lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            await line.aclose()

    async def model_names(self) -> dict[str, str]:
        """For each endpoint without a configured model: the first model of its list that may answer (asked once, within 5 s).

        An endpoint that cannot be asked now gets the name ``default`` for the time being, and is asked again in a minute.
        """
        names: dict[str, str] = {}
        for endpoint in self._endpoints.values():
            if endpoint.models:
                continue
            now = self._clock.monotonic()
            if endpoint.label not in self._names and self._ask_again_at.get(endpoint.label, 0) <= now:
                found = await self._first_model(endpoint)
                if found:
                    self._names[endpoint.label] = found
                else:
                    self._ask_again_at[endpoint.label] = now + ASK_AGAIN_SECONDS
            names[endpoint.label] = self._names.get(endpoint.label, "default")
        return names

    async def _first_model(self, endpoint: Endpoint) -> str:
        await asyncio.to_thread(_load_listing)
        import openai

        from agent_core.model.listing import first_model

        try:
            async with asyncio.timeout(5):
                return await first_model(endpoint)
        except (openai.APIStatusError, TransportBroke, TimeoutError, orjson.JSONDecodeError) as error:
            log.warning("model.names_unknown", endpoint=endpoint.label, error=type(error.__cause__ or error).__name__)
            return ""

    # ------------------------------------------------------------------ one call

    async def ask(self, request: ModelRequest, sink: Sink) -> Ending:
        """Make one model call. Content events go to `sink` as they come; the result says how it ended.

        Never raises for what a provider or a network does; raises `CancelledError` when cancelled, with the socket closed, and `AskedByOthers`.
        """
        if self._frames is None:
            await asyncio.to_thread(_load)  # the first call waits for it, nobody else does
        self._frames = self._frames or Frames()
        way = (request.route.endpoint, request.route.model)
        kind = (*way, kind_of(request.messages))
        if (endings := self._endings.get(way)) is None:
            endings = self._endings[way] = Endings()
        if (learnt := self._learnt.get(kind)) is None:
            learnt = self._learnt[kind] = Learnt()
        began, keeps = learnt.manners(self._clock.monotonic()), True
        request = _with(began, request)
        for tried in itertools.count():
            call = _Call(request, sink, self._clock, self._redactor, self._frames, endings)
            try:
                endpoint = self.endpoint(way[0])
                stream = self.open_stream(endpoint, request)
            except (TransportBroke, UnknownRoute) as error:
                return call.broke(BreakCause.UNREACHABLE, detail=_client_trouble(error.__cause__ or error))
            ending = await call.run(stream)
            if call.answered:
                self._wants_tls[endpoint.label] = False
            elif isinstance(ending, CallBroke) and ending.cause is BreakCause.DROPPED:
                return await self._hung_up(ending, endpoint)
            if isinstance(ending, CallBroke) and 300 <= ending.status < 400:
                cause, detail = led_elsewhere(endpoint.base_url, ending.status, call.location)
                return replace(ending, cause=cause, detail=self._redactor.redact(detail))
            if isinstance(ending, CallBroke) and nobody_left(ending.detail) and way not in self._unavoidable:
                self._unavoidable.add(way)  # who was to be avoided is the only one: the next try goes there
                return replace(ending, cause=BreakCause.SERVER_ERROR)
            refusal = call.refusal
            if refusal is None and keeps and (call.any_content or isinstance(ending, ReplyFinished)):
                learnt.taken(began, request.manners, self._clock.monotonic(), tools=bool(request.tools))
            if refusal is None or tried == AMENDS:
                return ending
            sent = self._body(endpoint, request)
            better = amended(request.manners, sent, refusal.status, refusal.body)
            if better is None:
                return ending
            own = own_words(refusal.body, request.messages)
            keeps = keeps and (own == refusal.body or amended(request.manners, sent, refusal.status, own) == better)
            _tell(request, better, quoted=not keeps)
            request = _with(better, request)
        raise AssertionError("counting has no end")

    async def _hung_up(self, broke: CallBroke, endpoint: Endpoint) -> CallBroke:
        """A port from which nothing ever came has hung up: it may be one that wants TLS. It is asked once."""
        if endpoint.label not in self._wants_tls:
            self._wants_tls[endpoint.label] = await speaks_tls(endpoint.base_url)
        return replace(broke, cause=BreakCause.WANTS_TLS, detail="") if self._wants_tls[endpoint.label] else broke

    def open_stream(self, endpoint: Endpoint, request: ModelRequest) -> AbstractAsyncContextManager[ModelAnswer]:
        """The answer to `request`, its body not read yet; leaving the block closes its connection.

        Raises `TransportBroke`, `RequestNotTaken` and `UnknownRoute`.
        """
        line = self._line(endpoint, request.route.credential)
        return line.asked(_encoded(self._body(endpoint, request), request.tools), request.connect_seconds)

    def _body(self, endpoint: Endpoint, request: ModelRequest) -> dict[str, object]:
        """What a call says; rows of known bad endpoints count for it unless nobody would be left."""
        rows = () if (endpoint.label, request.route.model) in self._unavoidable else endpoint.known_bad
        return _body(endpoint, request, rows)

    def _line(self, endpoint: Endpoint, credential: str) -> ModelLine:
        key = (endpoint.label, credential)
        if key not in self._lines:
            secret = next((c.secret for c in endpoint.credentials if c.id == credential), None)
            if secret is None:
                raise UnknownRoute(f"no credential of {endpoint.label} is called {credential!r}")
            from agent_core.model.transport import ModelLine

            with Theirs():
                self._lines[key] = ModelLine(
                    f"{endpoint.base_url.rstrip('/')}/chat/completions", _headers(secret, endpoint.headers), self._lives
                )
        return self._lines[key]


def _headers(secret: str, given: Mapping[str, str]) -> dict[str, str]:
    """Of all calls with a key; `given` are the operator's own, which win over ours but for what says how the answer is read."""
    ours = {"Authorization": f"Bearer {secret}", "User-Agent": "outspoken"}
    ours |= {header: value for header, name in _NAMED if (value := os.environ.get(name, ""))}
    told = {name.lower() for name in (*given, *_HEADERS)}
    return {
        **{name: value for name, value in ours.items() if name.lower() not in told},
        **{name: value for name, value in given.items() if name.lower() not in {one.lower() for one in _HEADERS}},
        **_HEADERS,
    }


def _load() -> None:
    """Get what a call needs: forty modules, most of them what is known of families of models."""
    from agent_core.model.stream import alike, listening
    from agent_core.model.stream.chunks import ChunkReader
    from agent_core.model.transport import trusted

    del alike, listening
    ChunkReader(0, frozenset(), parse_text_calls=True)  # the marks of all families are put together for the first one
    with contextlib.suppress(OSError):  # the call says so
        trusted()


def _load_listing() -> None:
    """Get what a list of models needs: 0.2 s of work and 8 MiB, most of it the SDK."""
    from agent_core.model.sdk import lighten

    lighten()
    from agent_core.model import listing

    del listing


def _client_trouble(error: BaseException) -> str:
    """Why a client could not be made. A wrong SSL_CERT_FILE raises a bare FileNotFoundError."""
    if isinstance(error, FileNotFoundError):
        return "a certificate file was not found; check SSL_CERT_FILE and SSL_CERT_DIR"
    if type(error).__name__ == "InvalidURL":
        return "what is configured is no web address"
    return f"{type(error).__name__}: {error}"


def _with(manners: Manners, request: ModelRequest) -> ModelRequest:
    """The request as this way to this model takes it."""
    if manners == request.manners and not manners.plain_schemas:
        return request
    return changed(request, manners=manners, tools=plainer(request.tools) if manners.plain_schemas else request.tools)


def _tell(request: ModelRequest, better: Manners, *, quoted: bool) -> None:
    """Operators hear what is left out, and of tools always."""
    endpoint, model = request.route.endpoint, request.route.model
    if request.tools and without_tools(better) and not without_tools(request.manners):
        log.warning("model.tools_refused", endpoint=endpoint, model=model, quoted=quoted)
    else:
        log.info("model.request_amended", endpoint=endpoint, model=model, left_out=sorted(better.left_out))


def _body(endpoint: Endpoint, request: ModelRequest, known_bad: Sequence[KnownBad]) -> dict[str, object]:
    """What a call says; `known_bad` are the rows that count for it."""
    model = request.route.model
    body: dict[str, object] = {
        **endpoint.extra_body,
        "model": model,
        "messages": with_thoughts(request.messages, endpoint.label, model, request.manners),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if endpoint.temperature is not None:
        body["temperature"] = endpoint.temperature
    if endpoint.max_output_tokens:
        body["max_tokens"] = endpoint.max_output_tokens
    if request.tools:
        body["tools"] = orjson.Fragment(request.tools)
    body |= request.parameters
    given = {**endpoint.extra_body, **request.parameters}
    return put({**body, **avoiding(endpoint.base_url, model, given, known_bad)}, request.manners)


def _encoded(body: Mapping[str, object], tools: bytes) -> bytes:
    said = body["messages"]
    try:
        return orjson.dumps(
            {**body, "messages": orjson.Fragment(said.encoded)} if isinstance(said, ToldConversation) else body
        )
    except orjson.JSONEncodeError:  # half a surrogate pair somewhere: JSON can spell it, UTF-8 cannot
        plain = {**body, "messages": list(cast("Sequence[Message]", said))}
        return json.dumps({**plain, "tools": orjson.loads(tools)} if "tools" in body else plain).encode()


@dataclass(slots=True)
class Endings:
    """How the replies of one model at one endpoint have ended so far, and how the latest began."""

    with_reason: bool = False
    """At least one that was no call gave a finish reason that is known."""
    only_done: int = 0
    """How many ended with ``[DONE]`` and without one."""
    words: Counter[str] = field(default_factory=Counter[str])
    """How many gave a finish reason that nobody knows, and which."""
    inside_thought: bool | None = None
    """The latest began inside a thought: a template had written the mark that begins it. None: none has come to its end yet."""

    @property
    def done_is_enough(self) -> bool:
        """``[DONE]`` is how a reply ends here: there never is a reason, and this is not the first that has none."""
        return not self.with_reason and self.only_done > 1

    def is_usual(self, word: str) -> bool:
        """This word, which nobody knows, is how a reply ends here: there never is one that is known, and this is not the first."""
        return not self.with_reason and self.words[word] > 1

    def note(self, reason: str, *, done: bool, called: bool) -> None:
        """A reply is over. What ends a call says nothing of how a text ends: some servers give a reason for calls alone."""
        if reason and finish_of(reason) is Finish.UNKNOWN:
            if reason in self.words or len(self.words) < WORDS:
                self.words[reason] += 1
        elif reason:
            self.with_reason = self.with_reason or not called
        elif done:
            self.only_done += 1


BLANK_SECONDS = 0.5
"""So long a blank at the end of the text waits for what follows it."""
OVER = frozenset({Finish.STOP, Finish.TOOLS, Finish.LENGTH, Finish.FILTER})
"""How a reply ends of which no more is to come."""
WORDS = 16
"""More finish reasons that nobody knows are not kept in mind of one model at one endpoint."""


@dataclass(frozen=True, slots=True)
class ProviderRefusal:
    """An answer that took nothing of a request."""

    status: int
    body: Json


class _Call:
    """One call that is under way."""

    __slots__ = (
        "_began",
        "_blank",
        "_clock",
        "_content_began",
        "_endings",
        "_frames",
        "_life",
        "_listening",
        "_made",
        "_reader",
        "_redactor",
        "_repeated",
        "_request",
        "_sink",
        "_steady",
        "_toolless",
        "answered",
        "any_content",
        "location",
        "refusal",
    )

    def __init__(
        self, request: ModelRequest, sink: Sink, clock: Clock, redactor: Redactor, frames: Frames, endings: Endings
    ) -> None:
        self._request = request
        self._sink = sink
        self._clock = clock
        self._redactor = redactor
        self._frames = frames
        self._endings = endings
        from agent_core.model.stream.chunks import ChunkReader
        from agent_core.model.stream.listening import Listening

        self._listening = Listening()
        self._reader = ChunkReader(
            request.number,
            request.taken_ids,
            parse_text_calls=request.parse_text_calls,
            offered=request.offered,
            tools=request.tools,
            inside_thought=endings.inside_thought,
        )
        self.refusal: ProviderRefusal | None = None
        self._began = clock.monotonic()
        self._life = self._began
        self._repeated = self._began
        """When something came last that was no life."""
        self.any_content = False
        self._toolless = bool(request.tools) and without_tools(request.manners)
        """That it was asked without the tools on offer has yet to be said."""
        self._content_began = 0.0
        self._steady: tuple[BodyReader, Limit, bool] | None = None
        """What reads the stream, its limit, and whether the reason for its end had come, while it is read by frames."""
        self._blank: asyncio.TimerHandle | None = None
        self._made = 0
        """How much it has made beside text: that is life as well."""
        self.answered = False
        """The server has answered, whatever it said."""
        self.location = ""
        """Where it leads in the place of an answer."""

    def broke(
        self,
        cause: BreakCause,
        *,
        status: int = 0,
        retry_after: float = 0.0,
        detail: str = "",
        complaint: Complaint = NOTHING_SAID,
    ) -> CallBroke:
        return CallBroke(
            complaint=complaint,
            at=self._clock.now_ms(),
            cause=cause,
            status=status,
            retry_after_seconds=retry_after,
            waited_seconds=round(self._clock.monotonic() - self._life, 3),
            detail=plain(self._redactor.redact(" ".join(detail.split()))[:DETAIL_CHARS]),
            input_tokens=self._reader.input_tokens,
            output_tokens=self._reader.output_tokens,
            cached_tokens=self._reader.cached_tokens,
        )

    async def run(self, stream: AbstractAsyncContextManager[ModelAnswer]) -> Ending:
        """Listen to the stream until it is over, however that comes about."""
        from agent_core.model.transport import RequestNotTaken

        try:
            async with Limit(self._request.first_content_seconds) as guard, stream as answer:
                self.answered = True
                return await self._listen(answer, guard)
        except TimeoutError:
            return self._silent()
        except RequestNotTaken as refused:
            return self._rejected(refused.status, refused.body, refused.headers)
        except TransportBroke as error:
            return self._lost(error) if self.answered else self._unreachable(error)
        except SseTooLarge as large:
            cause = BreakCause.BAD_PIECE if large.data or self._reader.recognised else BreakCause.GARBAGE
            return self._lost_for(cause, "a single event of the stream was larger than is sensible")
        except ValueError as error:  # what could be read of it makes no sense
            return self.broke(BreakCause.GARBAGE, detail=type(error).__name__)
        finally:
            if self._blank is not None:
                self._blank.cancel()

    # ------------------------------------------------------------------ the stream

    async def _listen(self, answer: ModelAnswer, guard: Limit) -> Ending:
        """By what the body begins with: servers say that a stream is JSON, and the other way round."""
        from agent_core.model.stream.alike import BodyReader

        body = BodyReader(self._reader)
        finished = begun = False
        while (data := await answer.next()) is not None:
            if not begun:
                head = data.lstrip()  # a server that is busy sends empty lines first
                begun = bool(head)
                if head.startswith((b"{", b"[")):
                    return await self._whole(head, answer)
            if len(data) > PART_BYTES:
                await self._take_by_parts(data, body, guard, finished=finished)
            else:
                self._take(body.feed(data, self._clock.now_ms()), guard, finished=finished)
            if self._goes_on(len(data), finished=finished):
                data = head = b""  # a stream that waits holds nothing of what was read
                self._steady = body, guard, finished
                await answer.in_frames(self._frames, self, PART_BYTES)
            if self._over():
                break
            if self._reader.finish_reason and not finished:
                finished = True
                guard.move(GRACE_SECONDS)
            data = head = b""
        else:
            self._take(body.finish(self._clock.now_ms()), guard, finished=finished)
        return self._ended(answer.status, body.stray)

    def take_frame(self, data: bytes) -> bool:
        """What a frame of a steady stream has brought; whether it goes on so."""
        assert self._steady is not None
        body, guard, finished = self._steady
        self._take(body.feed(data, self._clock.now_ms()), guard, finished=finished)
        return self._goes_on(len(data), finished=finished)

    async def _take_by_parts(self, data: bytes, body: BodyReader, guard: Limit, *, finished: bool) -> None:
        """Much has come at once: others have their turn meanwhile."""
        for at in range(0, len(data), PART_BYTES):
            self._take(body.feed(data[at : at + PART_BYTES], self._clock.now_ms()), guard, finished=finished)
            if self._over():
                return
            await asyncio.sleep(0)

    def _unsent(self) -> tuple[str, ...]:
        """What was wished and is not taken here; tools are told of by themselves."""
        left_out = self._request.manners.left_out.difference(TOOL_FIELDS)
        return tuple(sorted(left_out.intersection(self._request.parameters)))

    def _goes_on(self, size: int, *, finished: bool) -> bool:
        """The stream is steady, and not over: the next read can wait for the next frame."""
        steady = self.any_content and size < BULK_BYTES and self._life - self._content_began >= STEADY_SECONDS
        return steady and (finished or not self._reader.finish_reason) and not self._over()

    def _take(self, events: Sequence[Event], guard: Limit, *, finished: bool) -> None:
        """Pass on what came in one piece from the socket; move the deadline if there was content in it. `finished`: the reason had come before."""
        grown, self._made = self._reader.made.size > self._made, self._reader.made.size
        if not (self._heard(events) or grown) or (finished and not self._reader.belied):
            if events:
                self._repeated = self._clock.monotonic()
            return
        self._life = self._clock.monotonic()
        if self._blank is None and self._reader.holds_blank:
            self._blank = self._frames.loop.call_later(BLANK_SECONDS, self._let_blank_go)
        if not self.any_content:
            self.any_content, self._content_began = True, self._life
        guard.move(self._request.stall_seconds)

    def _let_blank_go(self) -> None:
        """A blank at the end waits for what follows it. If nothing does, it is passed on, so that it is stored: the process may end, and the
        next one's model may begin with a word."""
        self._blank = None
        if not self._reader.holds_blank or self._listening.holding:
            return
        quiet = self._clock.monotonic() - self._life
        if quiet < BLANK_SECONDS / 2:
            self._blank = self._frames.loop.call_later(BLANK_SECONDS - quiet, self._let_blank_go)
        elif held := self._reader.let_go(self._clock.now_ms()):
            self._pass_on(held)

    def _heard(self, events: Sequence[Event]) -> bool:
        """Pass on what is no repetition; whether something new is in it."""
        if not events:
            return False
        passed, alive = self._listening.take(events)
        if passed:
            self._pass_on(passed)
        return alive

    def _pass_on(self, events: Sequence[Event]) -> None:
        if self._toolless:
            self._toolless = False
            events = [ToolsRefused(at=self._clock.now_ms()), *events]
        self._sink(events)

    def _over(self) -> bool:
        reader = self._reader
        return reader.done or reader.error is not None or reader.bad_chunk or reader.full or self._endless

    @property
    def _endless(self) -> bool:
        return self._listening.looping or self._reader.chars > REPLY_CHARS

    async def _whole(self, begun: bytes, answer: ModelAnswer) -> Ending:
        """Some servers answer with one JSON object in spite of ``stream``; some put their error into a 200."""
        data = bytearray(begun)
        while (piece := await answer.next()) is not None:
            data += piece
            if len(data) > LIMIT_BYTES:
                raise SseTooLarge(LIMIT_BYTES, data=False)
        body, lines = decoded(bytes(data)), data.split(b"\n")
        if body is not None:
            self._heard(self._reader.whole(body, self._clock.now_ms()))
        elif isinstance(decoded(bytes(lines[0])), dict):  # a line an event, as Ollama's own API has it
            self._heard(self._reader.feed([bytes(line) for line in lines if line.strip()], self._clock.now_ms()))
        else:
            return self.broke(BreakCause.GARBAGE, status=answer.status, detail="the answer is no readable JSON")
        return self._ended(answer.status, b"")

    def _ended(self, status: int, stray: bytes) -> Ending:
        """The stream is over: what it amounts to."""
        reader = self._reader
        self._rest()
        beside = decoded(stray) if stray and not self._was_over else None
        if isinstance(beside, dict) and reader.error is None:
            reader.error = beside.get("error") or None  # a bare line of JSON, for which no event was left
        self._endings.note(reader.finish_reason, done=reader.done and reader.recognised, called=reader.called)
        if reader.error is not None and not self._was_over:
            return self._error_in_stream()
        if reader.bad_chunk and not self._was_over:
            cause = BreakCause.BAD_PIECE if reader.recognised else BreakCause.GARBAGE
            return self._lost_for(cause, "a chunk of the stream was no readable JSON")
        if self._listening.looping:
            return self._looped()
        if reader.chars > REPLY_CHARS:
            return self._lost_for(BreakCause.TOO_LONG)
        if reader.full:
            return self._finished("length")
        if reader.finish_reason:
            return self._finished(reader.finish_reason)
        if not reader.recognised and (reader.foreign or stray.strip()):
            return self._stray(status, stray)
        if not reader.recognised and reader.done:
            return self.broke(BreakCause.ENDED_EARLY)  # the address is right: nothing else ends a stream so
        if reader.done and (reader.called_whole or self._endings.done_is_enough):
            return self._finished(DONE_ONLY)
        return self._lost_for(BreakCause.ENDED_EARLY, DONE_ONLY if reader.done else "")

    @property
    def _was_over(self) -> bool:
        """The reply had come to its end: what goes wrong behind that is not about it."""
        reader = self._reader
        return not reader.belied and finish_of(reader.finish_reason) in OVER

    def _rest(self) -> None:
        """No more comes: what the reader had held back."""
        self._heard(self._reader.finish(self._clock.now_ms()))
        if self._reader.began_inside is not None:
            self._endings.inside_thought = self._reader.began_inside

    def _release(self) -> None:
        held = self._listening.released()
        if held:
            self._pass_on(held)

    def _lost_for(self, cause: BreakCause, detail: str = "") -> CallBroke:
        """The stream broke; what waited to be told apart from a loop was none."""
        self._release()
        return self.broke(cause, detail=detail)

    def _looped(self) -> CallBroke:
        """It only said the same again: that is left out."""
        self._listening.dropped()
        return self.broke(BreakCause.REPEATING)

    def _finished(self, reason: str) -> Ending:
        finish = finish_of(reason)
        if finish is Finish.LOOP or (finish is Finish.LENGTH and self._listening.ended_in_loop()):
            return self._looped()
        self._release()
        usual = finish is Finish.UNKNOWN and self._endings.is_usual(reason)
        return ReplyFinished(
            at=self._clock.now_ms(),
            reason=USUAL + reason if usual else reason,
            thoughts=self._reader.keeper.kept(),
            made=self._reader.made.kept(),
            unsent=self._unsent(),
            reasoning_tokens=self._reader.reasoning_tokens,
            input_tokens=self._reader.input_tokens,
            output_tokens=self._reader.output_tokens,
            cached_tokens=self._reader.cached_tokens,
        )

    # ------------------------------------------------------------------ what went wrong

    def _silent(self) -> Ending:
        """A limit passed without anything new. What was only said again by then is as good as nothing, and is told as what it is if it went on."""
        half = (self._life + self._clock.monotonic()) / 2
        repeating = self.any_content and self._listening.repeating and self._repeated >= half
        self._rest()
        if self._reader.finish_reason and not self._reader.belied:  # only the trailing usage chunk did not come
            return self._finished(self._reader.finish_reason)
        if gap := self._listening.gap():
            self._sink([gap])
        self._listening.dropped()
        if repeating:
            return self.broke(BreakCause.REPEATING)
        return self.broke(BreakCause.STALLED if self.any_content else BreakCause.NO_CONTENT)

    def _error_in_stream(self) -> CallBroke:
        error = self._reader.error
        found = self._meant(0, error)
        if not self.any_content:
            self.refusal = ProviderRefusal(found.status or 400, error)
        self._release()
        wait = asked_pause({}, error, self._clock.now_ms())
        return self.broke(
            found.cause, status=found.status, retry_after=wait, detail=found.detail, complaint=found.complaint
        )

    def _stray(self, status: int, stray: bytes) -> CallBroke:
        what = "chat completion" if self._reader.foreign or decoded(stray) is not None else "event stream"
        return self.broke(BreakCause.GARBAGE, status=status, detail=f"the answer is no {what}")

    def _rejected(self, status: int, body: Json, headers: Mapping[str, str]) -> CallBroke:
        self.answered = True
        lower = {k.lower(): v for k, v in headers.items()}
        self.location = lower.get("location", "")
        said = body if isinstance(body, dict | str | list) else None
        found = self._meant(status, said)
        self.refusal = ProviderRefusal(status, said)
        wait = asked_pause(lower, said, self._clock.now_ms())
        return self.broke(found.cause, status=status, retry_after=wait, detail=found.detail, complaint=found.complaint)

    def _meant(self, status: int, body: Json) -> Rejection:
        """What a refusal means. What is said of a key concerns everybody who is served with it: there no words count that may only be quoted."""
        found = rejection(status, body)
        if found.cause not in OF_THE_KEY or rejection(status, None).cause in OF_THE_KEY:
            return found
        own = rejection(status, own_words(body, self._request.messages))
        return found if own.cause is found.cause else replace(found, cause=own.cause, complaint=own.complaint)

    def _unreachable(self, error: Exception) -> Ending:
        cause, detail = reason(error)
        return self._lost(error) if cause is BreakCause.DROPPED else self.broke(cause, detail=detail)

    def _lost(self, error: Exception) -> Ending:
        """The connection broke after it was made."""
        self._rest()
        if self._was_over:
            return self._finished(self._reader.finish_reason)
        return self._lost_for(BreakCause.DROPPED, reason(error)[1])
