"""Answers an accepted request: follows its turn, streams it or waits for its end, keeps the connection alive, and closes it.

What is said is the `Spelling`'s, and whether an end is an error is told by `truth`; when it is said is decided here. For a program that is told
failures by their status the head of the answer waits until something was produced, as long as the connection may be silent; then it goes
out all the same, with nothing but comments, so that the first event may still be the error.
"""

from __future__ import annotations

from collections.abc import Coroutine

import orjson
import structlog
from aiohttp import web
from aiohttp.http import StreamWriter

from adapters.contract.base import Ended, Follower, LeftOpen, Queued, Showing, Sight
from adapters.http.api.beside import with_data
from adapters.http.api.spelling import ApiJob, Spelling
from adapters.http.api.spoken import queue_comment, status_comment
from adapters.http.api.truth import failure_of, is_begun, left_problem, shown
from adapters.http.common import Problem, error_object, mistake_of_ours, no_storage, problem_response
from adapters.http.errorsas import ErrorsAs
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.store.errors import LeaseLost, StorageUnavailable
from agent_core.turn.state import ThoughtText

log = structlog.get_logger("api")

TOLD_SECONDS = 0.5
"""Whoever streams is told something by then, whatever becomes of the turn."""
HELD_SECONDS = 10.0
"""So long the head of a stream waits for something that was produced."""
HELD_WHOLE_SECONDS = 50.0
"""The same of an answer as one object: proxies commonly wait a minute."""
STATUS_SECONDS = 3.0
"""How often a running status is told in a comment, and looked for while nothing comes."""
MOST_UNREAD = 65_536
"""Where so many bytes wait for a client to read them, what comes waits for it, too."""
KEEP_ALIVE = "keep-alive"


@dataclass(frozen=True, slots=True)
class ApiAnswering:
    """Answers requests, each in its spelling."""

    clock: Clock
    ids: Ids
    keep_alive_seconds: float

    def answer(
        self, request: web.Request, job: ApiJob, spelling: Spelling, follower: Follower
    ) -> Coroutine[None, None, web.StreamResponse]:
        """Answers one request to its end."""
        if job.asked.stream:
            return self._streamed(request, job, spelling, follower)
        return self._whole(request, job, spelling, follower)

    # ------------------------------------------------------------------ streaming

    async def _streamed(
        self, request: web.Request, job: ApiJob, spelling: Spelling, follower: Follower
    ) -> web.StreamResponse:
        first = await self._first(job, follower)
        if (problem := failure(job, first)) is not None:
            return problem_response(problem, job.headers)
        stream = ApiStream(self, request, job, spelling)
        await stream.open()
        try:
            await stream.tell(follower, first)
        except ConnectionError:
            raise
        except Exception:  # the border of this surface: a client that waits must get an end
            reference = self.ids.new("err")
            log.exception("api.stream_failed", reference=reference, request=job.request_id)
            await stream.broken(reference)
        return await stream.close()

    async def _first(self, job: ApiJob, follower: Follower) -> Sight | None:
        """The sight with which a stream begins."""
        if not job.waits:
            return await follower.next(min(TOLD_SECONDS, self.keep_alive_seconds))
        until = self.clock.monotonic() + min(HELD_SECONDS, self.keep_alive_seconds)
        latest: Sight | None = None
        while (left := until - self.clock.monotonic()) > 0:
            latest = await follower.next(left) or latest
            if isinstance(latest, Ended | LeftOpen) or (isinstance(latest, Showing) and is_begun(latest.view)):
                break
        return latest

    # ------------------------------------------------------------------ not streaming

    async def _whole(
        self, request: web.Request, job: ApiJob, spelling: Spelling, follower: Follower
    ) -> web.StreamResponse:
        """One JSON object at the end. While it takes long, white space goes out, which JSON allows before a value."""
        if job.asked.background:
            value = spelling.unfinished(None)
            return web.Response(body=orjson.dumps(value), content_type="application/json", headers=job.headers)
        waiting = WhiteSpace(self, request, job)
        try:
            sight = await waiting.over(follower)
            problem = failure(job, sight)
            if waiting.response is None and problem is not None:
                return problem_response(problem, job.headers)
            value = spelling.whole(await with_data(sight)) if isinstance(sight, Ended) else spelling.unfinished(sight)
        except ConnectionError:
            raise
        except Exception as error:
            if waiting.response is None:
                raise
            value, problem = {}, self._failed(error, request.path[:200])
        if waiting.response is None:
            return web.Response(body=orjson.dumps(value), content_type="application/json", headers=job.headers)
        if problem is not None:  # too late for a status
            value = {**value, **error_object(problem)}
        await waiting.response.write(orjson.dumps(value))
        await waiting.response.write_eof()
        return waiting.response

    def _failed(self, error: Exception, path: str) -> Problem:
        """What is told in the body where the head of the answer has gone out: one object, whatever happens."""
        if isinstance(error, StorageUnavailable | LeaseLost):
            log.warning("http.storage_unavailable", path=path, error=str(error))
            return no_storage(error)
        reference = self.ids.new("err")
        log.exception("api.failed", reference=reference, path=path, exc_info=error)
        return mistake_of_ours(reference)


class WhiteSpace:
    """Waits for the end of a turn that is told as one object, and writes white space meanwhile."""

    def __init__(self, answering: ApiAnswering, request: web.Request, job: ApiJob) -> None:
        self._answering = answering
        self._request = request
        self._job = job
        self.response: web.StreamResponse | None = None
        """Its head has gone out; None: nothing has."""

    async def over(self, follower: Follower) -> Ended | LeftOpen:
        """The last sight."""
        clock, keep_alive = self._answering.clock, self._answering.keep_alive_seconds
        quiet_since = clock.monotonic()
        patience = HELD_WHOLE_SECONDS if self._job.errors is ErrorsAs.STATUS else keep_alive
        while True:
            sight = await follower.next(keep_alive)
            if isinstance(sight, Ended | LeftOpen):
                return sight
            if clock.monotonic() - quiet_since < (patience if self.response is None else keep_alive):
                continue
            quiet_since = clock.monotonic()
            if self.response is None:
                self.response = web.StreamResponse(headers={"Content-Type": "application/json", **self._job.headers})
                await self.response.prepare(self._request)
            await self.response.write(b" ")


class ApiStream:
    """One answer while it streams."""

    def __init__(self, answering: ApiAnswering, request: web.Request, job: ApiJob, spelling: Spelling) -> None:
        self._answering = answering
        self._clock = answering.clock
        self._request = request
        self._job = job
        self._spelling = spelling
        self._spoken = spelling.listening()
        self._begun = False
        """Something other than comments has gone out."""
        self._thought = 0
        """How much has gone out of what the model thinks."""
        self._turn = ""
        self._told_at = self._clock.monotonic()
        headers = {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",
            **job.headers,
        }
        self._response = web.StreamResponse(headers=headers)
        self._in_chunks = False
        """As every client of HTTP/1.1 has it."""
        self._failed: Exception | None = None
        """Why text could not be written."""

    async def open(self) -> None:
        """Send the head."""
        writer = await self._response.prepare(self._request)
        self._in_chunks = isinstance(writer, StreamWriter) and writer.chunked
        if not self._job.waits:
            await self._response.write(self._beginning())

    def _beginning(self) -> bytes:
        """What stands before all but comments, once."""
        if self._begun:
            return b""
        self._begun = True
        return self._spelling.begins()

    async def close(self) -> web.StreamResponse:
        """The end."""
        await self._response.write_eof()
        return self._response

    async def broken(self, reference: str) -> None:
        """A bug of ours: told as one."""
        if not self._begun:
            words = f"Something went wrong inside the gateway while it was showing this (reference {reference})."
            await self._response.write(
                self._spelling.failed(Problem(500, words, "server_error", code="internal_error"))
            )
            return
        await self._response.write(self._spelling.broken(reference))

    async def tell(self, follower: Follower, first: Sight | None) -> None:
        """Write what there is to see, from the first sight to the last."""
        wait = min(STATUS_SECONDS, self._answering.keep_alive_seconds)
        sight = first
        while not isinstance(sight, Ended | LeftOpen):
            await self._tell(sight)
            sight = await follower.next(wait, self)
            if self._failed is not None:
                raise self._failed
        await self._end(await with_data(sight) if isinstance(sight, Ended) else sight)

    async def _tell(self, sight: Queued | Showing | None) -> None:
        match sight:
            case None:
                if self._clock.monotonic() - self._told_at >= self._answering.keep_alive_seconds:
                    await self._response.write(self._said_beside(KEEP_ALIVE))
            case Queued():
                told = self._spelling.queued(sight) if self._begun else b""
                await self._response.write(f": {queue_comment(sight)}\n\n".encode() + told)
            case Showing():
                if told := self._news(sight):
                    await self._response.write(told)

    def _news(self, sight: Showing) -> bytes:
        """What is new of a running turn, to be sent together."""
        told = b""
        if not self._turn:
            self._turn = sight.turn
            told = f": turn {sight.turn}\n\n".encode()
        told += self._thinks(sight.thought)
        if pieces := self._spoken.new(sight.view):
            told += self._beginning() + self._spelling.says(pieces)
            self._told_at = self._clock.monotonic()
        elif self._clock.monotonic() - self._told_at >= STATUS_SECONDS:
            told += self._said_beside(" ".join(status_comment(sight.view).split()) or KEEP_ALIVE)
        return told

    def shown(self, sight: Showing) -> bool:
        """More text has come: it is written here and now, and no task is woken for it, unless anything else is to be said or written first."""
        transport = self._request.transport
        thinks = self._job.thinking and sight.thought.chars > self._thought
        if thinks or not self._begun or not self._turn or not self._in_chunks or transport is None:
            return False
        if transport.is_closing() or transport.get_write_buffer_size() > MOST_UNREAD:
            return False
        try:
            if pieces := self._spoken.new(sight.view):
                data = self._spelling.says(pieces)
                transport.write(b"%x\r\n%b\r\n" % (len(data), data))
                self._told_at = self._clock.monotonic()
        except Exception as error:  # noqa: BLE001 - it belongs to the task that answers
            self._failed = error
            return False
        return bool(pieces) or self._clock.monotonic() - self._told_at < STATUS_SECONDS

    def _thinks(self, thoughts: ThoughtText) -> bytes:
        if not self._job.thinking or thoughts.chars <= self._thought:
            return b""
        placed, self._thought = thoughts.placed(self._thought), thoughts.chars
        self._told_at = self._clock.monotonic()
        return b"".join([self._beginning(), *(self._spelling.thinks(text, behind) for behind, text in placed)])

    def _said_beside(self, words: str) -> bytes:
        """A comment."""
        self._told_at = self._clock.monotonic()
        return f": {words}\n\n".encode()

    async def _end(self, sight: Ended | LeftOpen) -> None:
        if not self._begun:
            problem = failure(self._job, sight)
            if problem is not None:
                await self._response.write(self._spelling.failed(problem))
                return
        told = self._beginning()
        if isinstance(sight, Ended):
            told += self._thinks(sight.thought)
            told += self._spelling.ended(sight, self._spoken.new(shown(sight)))
        else:
            told += self._spelling.left(sight, self._spoken.new(sight.view))
        await self._response.write(told)


def failure(job: ApiJob, sight: Sight | None) -> Problem | None:
    """The error that a request comes to, if it has come to one."""
    if job.asked.background:  # its id is known already, and its response says it
        return None
    match sight:
        case Ended():
            return failure_of(sight, job.asked.session, job.errors, keyed=job.keyed)
        case LeftOpen() if job.errors is ErrorsAs.STATUS:
            return left_problem(sight, job.asked.session, keyed=job.keyed)
        case _:
            return None
