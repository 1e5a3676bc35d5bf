"""Takes a request in: its body, its id, its place in a conversation; or says why it is not taken."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from math import inf
from time import monotonic

from aiohttp import web

from adapters.contract.base import Gateway, KeptResponse, SessionKey, Ticket
from adapters.contract.callers import Caller
from adapters.contract.notaccepted import NotAccepted
from adapters.http.api.asked import ApiRequest, KnownItems, Referring
from adapters.http.api.retries import Retries, Served, counts_retries, is_retry, stored_as
from adapters.http.api.spelling import ApiEndpoint
from adapters.http.api.truth import ERRORS_HEADER
from adapters.http.common import CALLER, Problem, refusal
from adapters.http.consent import gone_with, wish_of_key, wish_with
from adapters.http.errorsas import Disconnect, ErrorsAs
from adapters.http.sealing import Seals
from adapters.http.theirs import asked_by
from adapters.http.tracecontext import traceparent_of
from agent_core.jsonvalue import Json
from agent_core.ports import Clock, Ids
from agent_core.records import changed, dataclass
from agent_core.text.tongue import accepted

TRACING = ("X-Client-Request-Id", "X-Request-Id")
KEYED = "Idempotency-Key"
MOST_ID = 255
"""Characters of a request's id. Of a longer one that is only to be found again the beginning is enough; one that stands for the request has to be whole."""
TOGETHER = 36
"""So many requests are taken in at a time: as many as there are turns that may begin at once, each in one commit with its message. Fewer take more
commits, and each step of one is dearer the fewer share it; of more all have to wait for the last of them."""
STUCK_SECONDS = 0.5
QUIET_SECONDS = 0.0005
"""A round of the loop that took no longer had nothing else to do."""
BUSY_SECONDS = 0.05
"""So long at most the last who wait are held up for what it has to do."""
NO_RESPONSE = "There is no such response, or it is not kept any longer."


def request_id_of(request: web.Request, ids: Ids) -> str:
    """By which the client and the logs name the request; the client's own, if it gave one."""
    for name in (KEYED, *TRACING):
        if given := request.headers.get(name):
            return given[:MOST_ID]
    return ids.new("req")


def platform_key_of(request: web.Request, asked: ApiRequest, request_id: str) -> str:
    """The key of the message. A retry under the same id, of the same conversation and person, is the same message.

    ``Idempotency-Key`` stands for the request, whose content is compared; a tracing id does so only together with the content.
    """
    whose, key = asked.whose, request.headers.get(KEYED)
    if key:
        return f"keyed:{key}:{whose}" if whose else f"key:{key}"
    if [name for name in TRACING if request.headers.get(name)]:
        return f"rid:{request_id}:{whose}{asked.digest}"
    return f"{stored_as(mark_of(asked))}{request_id}" if counts_retries(request.headers) else request_id


def mark_of(asked: ApiRequest) -> str:
    """The same of two requests with one body from one caller, in one conversation."""
    return f"{asked.caller.key}/{asked.whose}/{asked.digest}"


WAITS_UNSEEN = (
    "Approvals are decided in a conversation, and this request is in none. Name one (X-Outspoken-Session), or ask by /v1/responses "
    "with a response that is kept (store)."
)


class Narrow:
    """Lets a few in at a time, in their order, so that of a crowd the first have their answers begun while the last have yet to be read: all at once, each
    step is done for everybody before the next one is done for anybody. The last who wait are let in as soon as the loop has nothing else to do: what it
    has to do are the calls and first words of those before them. (In a larger crowd whoever waits is to be told their place first.)
    While nobody inside comes to an end (a storage that is slow), more and more are let in, as nobody is to wait for whom he has nothing to do with."""

    def __init__(self, most: int = TOGETHER, patience_seconds: float = STUCK_SECONDS) -> None:
        self._most = most
        self._patience = patience_seconds
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._came_out = self._seen = 0
        """How many have, and how many had when that was looked at."""
        self._more = most
        """So many are let in beyond the most, if nobody has come out since."""
        self._timer: asyncio.TimerHandle | None = None
        self._looking = False
        """It is being looked whether the loop has anything else to do."""

    async def __aenter__(self) -> None:
        if self._inside < self._most and not self._waiting:
            self._inside += 1
            return
        if self._timer is None:
            self._watch()
        waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waits)
        try:
            await waits
        except asyncio.CancelledError:
            if waits.done() and not waits.cancelled():  # let in, and gone at the same time
                self._out()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._out()

    def _out(self) -> None:
        self._inside -= 1
        self._came_out += 1
        if len(self._waiting) > self._most:
            self._fill()
        elif self._waiting and not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_soon(self._look, -inf, monotonic() + BUSY_SECONDS)

    def _look(self, before: float, until: float) -> None:
        """A round of the loop has passed since one time (before the first none has): whether it had anything else to do. Until another time, or until
        there is a crowd, it is waited for one that had not."""
        now = monotonic()
        if before + QUIET_SECONDS < now < until and len(self._waiting) <= self._most:
            asyncio.get_running_loop().call_soon(self._look, now, until)
            return
        self._looking = False
        self._fill()

    def _fill(self) -> None:
        while self._waiting and self._inside < self._most:
            self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            waits = self._waiting.popleft()
            if not waits.done():
                self._inside += 1
                waits.set_result(None)
                return

    def _stuck(self) -> None:
        """Some wait, and have waited for a while."""
        self._timer = None
        if self._came_out != self._seen:
            self._more = self._most
        else:
            for _ in range(self._more):
                self._let_in()
            self._more *= 2
        if self._waiting:
            self._watch()

    def _watch(self) -> None:
        self._seen = self._came_out
        self._timer = asyncio.get_running_loop().call_later(self._patience, self._stuck)


@dataclass(frozen=True, slots=True)
class Taken:
    """A request that is stored."""

    asked: ApiRequest
    ticket: Ticket
    served: Served
    gone: bool = False
    """Its client went while it was being stored."""


@dataclass(frozen=True, slots=True)
class Taking:
    """Takes requests of at most so many bytes."""

    gateway: Gateway
    ids: Ids
    clock: Clock
    max_body_bytes: int
    named: Callable[[Sequence[str], Caller], Awaitable[Mapping[str, Json]]]
    """Items of kept responses by their ids."""
    seals: Seals | None = None
    retries: Retries = field(default_factory=Retries)
    continued: set[SessionKey] = field(default_factory=set[SessionKey])
    """Sessions for which a request is being stored that goes on there."""
    looking: dict[object, set[SessionKey]] = field(default_factory=dict[object, set[SessionKey]])
    """For each request that is being looked for its place: in which sessions others were stored meanwhile."""
    narrow: Narrow = field(default_factory=Narrow)

    async def take(self, request: web.Request, endpoint: ApiEndpoint, request_id: str) -> Taken | Problem:
        """The request, accepted; or why it is not."""
        body = await self._body(request)
        if isinstance(body, Problem):
            return body
        async with self.narrow:
            return await self._take(request, endpoint, request_id, body)

    async def _take(self, request: web.Request, endpoint: ApiEndpoint, request_id: str, body: bytes) -> Taken | Problem:
        asked = await self._read(request, endpoint, body)
        if isinstance(asked, Problem):
            return asked
        told = request.headers.get(ERRORS_HEADER)
        if told is not None and told.strip().lower() not in list(ErrorsAs):
            known = ", ".join(ErrorsAs)
            return Problem(400, f"{ERRORS_HEADER} must be one of: {known}.", param=ERRORS_HEADER, code="invalid_header")
        if isinstance(gone := gone_with(request.headers, Disconnect.GRACE), Problem):
            return gone
        wish = wish_with(asked.wish, request.headers)
        if not isinstance(wish, Problem):
            wish = wish_of_key(wish, request[CALLER].terms.tools_from)
        if isinstance(wish, Problem):
            return wish
        asked = changed(asked, caller=request[CALLER], wish=wish)
        if asked.waits_unseen:
            return Problem(400, WAITS_UNSEEN, param="outspoken.approvals", code="unsupported_value")
        if len(request.headers.get(KEYED, "")) > MOST_ID:
            return Problem(400, f"{KEYED} is longer than {MOST_ID} characters.", param=KEYED, code="invalid_header")
        key = platform_key_of(request, asked, request_id)
        trace = traceparent_of(request.headers.getall("traceparent", ()))
        retry = is_retry(request.headers)
        if retry and (KEYED in request.headers or any(request.headers.get(name) for name in TRACING)):
            retry = False
        served = await self._served(asked, key, retry=retry)
        placed: ApiRequest | Problem | None = None
        taken: Taken | None = None
        try:
            placed = await self._placed(asked) if served.platform_key == key else asked
            if isinstance(placed, Problem):
                return placed
            taken = await self._accepted(placed, served, trace, accepted(request.headers.get("Accept-Language", "")))
            return taken
        except NotAccepted as refused:
            return refusal(refused)
        finally:
            if taken is None:
                self.retries.answered(served)
            if isinstance(placed, ApiRequest) and placed.place is not None:
                self.continued.discard(placed.place)
                for passed in self.looking.values():
                    passed.add(placed.place)

    async def _served(self, asked: ApiRequest, key: str, *, retry: bool) -> Served:
        """The request as one that is served, under the key of that which it joins, if it joins one."""
        mark = mark_of(asked)
        if retry and not self.retries.knows(mark, self.clock.monotonic()):
            stored = await self.gateway.unanswered(stored_as(mark))
            self.retries.found(mark, stored, self.clock.monotonic())
        return self.retries.begins(mark, key, self.clock.monotonic(), retry=retry)

    async def _accepted(self, asked: ApiRequest, served: Served, trace: str, language: str) -> Taken:
        """Have it stored. That goes on where its client goes meanwhile, and then somebody must know that nobody waits for it."""
        inbound = asked.inbound(served.platform_key, trace, self.ids.new("x"), language)
        ticket = await self.gateway.accept(inbound, to_end=True)
        task = asyncio.current_task()
        return Taken(asked, ticket, served, gone=task is not None and task.cancelling() > 0)

    async def _placed(self, asked: ApiRequest) -> ApiRequest | Problem:
        """The request in the conversation that it goes on from: in its session, if nothing has come there since; else in one of its own, which
        begins with what was said until then."""
        if asked.before is None:
            return asked
        kept = await self._before(*asked.before)
        if kept is None or not asked_by(kept.inbound, asked.caller):
            return Problem(400, NO_RESPONSE, param="previous_response_id", code="previous_response_not_found")
        session = kept.inbound.session
        goes_on = (
            kept.latest
            and asked.kept
            and not asked.wish.errand
            and not asked.said_before
            and not kept.inbound.stateless
        )
        if goes_on and session not in self.continued:
            self.continued.add(session)  # until this is stored: another that comes meanwhile goes a way of its own
            return replace(asked, place=session)
        told = await self.gateway.told_after(kept)
        if told is None:
            words = "The previous response has not ended, and something else waits for it already. Ask again when it has ended."
            return Problem(409, words, param="previous_response_id", code="response_in_progress")
        return replace(asked, history=(*told, *asked.history))

    async def _before(self, session: str, inbox_id: int) -> KeptResponse | None:
        """The response that a request goes on from, as it stands now: of one in whose session another request was stored while it was read nobody knows
        whether it is the latest."""
        mine = object()
        passed = self.looking[mine] = set[SessionKey]()
        try:
            while True:
                kept = await self.gateway.response(session, inbox_id)
                if kept is None or kept.inbound.session not in passed:
                    return kept
                passed.clear()
        finally:
            del self.looking[mine]

    async def _read(self, request: web.Request, endpoint: ApiEndpoint, body: bytes) -> ApiRequest | Problem:
        """The request, with what it refers to."""
        caller, seals, named = request[CALLER], self.seals, request.headers.get("X-Outspoken-Session", "")
        known = KnownItems()
        if seals is not None and b"encrypted_content" in body and await seals.at_hand():
            known = KnownItems(lambda text: seals.opened(text, caller.realm))
        asked = endpoint.read(body, named, known)
        if isinstance(asked, Referring):
            asked = endpoint.read(body, named, replace(known, items=await self.named(asked.items, caller)))
        assert not isinstance(asked, Referring)
        if isinstance(asked, ApiRequest) and asked.sealed and (seals is None or not await seals.at_hand()):
            asked = replace(asked, left_out=(*asked.left_out, "include.reasoning.encrypted_content"))
        return asked

    async def _body(self, request: web.Request) -> bytes | Problem:
        too_large = Problem(413, f"The body is larger than {self.max_body_bytes} bytes.", code="request_too_large")
        told = request.content_length
        if told is not None and told > self.max_body_bytes:
            return too_large
        body = bytearray()
        try:
            # By `read` aiohttp would keep it as long as the answer takes
            while piece := await request.content.readany():
                body += piece
                if len(body) > self.max_body_bytes:
                    return too_large
        except (ValueError, web.HTTPBadRequest, web.RequestPayloadError):
            words = "The body could not be read: it is not as its Content-Encoding says, or ends too early."
            return Problem(400, words, code="invalid_body")
        return bytes(body)
