"""Answers an accepted request: follows its turn, streams it or waits for its end, keeps the connection alive, and closes it.

What is said is the `Spelling`'s; when it is said is decided here.
"""

from __future__ import annotations

import orjson
import structlog
from aiohttp import web

from adapters.contract.base import Ended, Follower, LeftOpen, Queued, Showing, Sight
from adapters.http.api.spelling import KEEP_ALIVE, ApiJob, Spelling
from adapters.http.api.spoken import Spoken, told
from adapters.http.common import Problem, no_budget, problem_response
from agent_core.failures import exits
from agent_core.failures.notices import ExitClass, NotStarted
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass

log = structlog.get_logger("api")

TOLD_SECONDS = 0.5
"""Whoever streams is told something by then, whatever becomes of the turn."""
STATUS_SECONDS = 3.0
"""How often a running status is told in a comment, and looked for while nothing comes."""


@dataclass(frozen=True, slots=True)
class ApiAnswering:
    """Answers requests, each in its spelling."""

    clock: Clock
    ids: Ids
    keep_alive_seconds: float

    async def answer(
        self, request: web.Request, job: ApiJob, spelling: Spelling, follower: Follower
    ) -> web.StreamResponse:
        """Answer one request to its end."""
        if job.asked.stream:
            return await self._streamed(request, job, spelling, follower)
        return await self._whole(request, job, spelling, follower)

    # ------------------------------------------------------------------ streaming

    async def _streamed(
        self, request: web.Request, job: ApiJob, spelling: Spelling, follower: Follower
    ) -> web.StreamResponse:
        first = await follower.next(min(TOLD_SECONDS, self.keep_alive_seconds))
        if isinstance(first, Ended) and (problem := not_begun(first)) is not None:
            return problem_response(problem)
        headers = {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",
            **job.headers,
        }
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(spelling.begins())
        try:
            await self._tell(response, spelling, follower, first)
        except ConnectionError:
            raise
        except Exception:  # the border of this surface: a client that waits must get an end
            reference = self.ids.new("err")
            log.exception("api.stream_failed", reference=reference, request=job.request_id)
            await response.write(spelling.broken(reference))
        await response.write_eof()
        return response

    async def _tell(
        self, response: web.StreamResponse, spelling: Spelling, follower: Follower, first: Sight | None
    ) -> None:
        """Write what there is to see, from the first sight to the last."""
        turn = ""
        spoken = Spoken()
        told_at = self.clock.monotonic()
        sight = first
        while True:
            match sight:
                case None:
                    if self.clock.monotonic() - told_at >= self.keep_alive_seconds:
                        await response.write(KEEP_ALIVE)
                        told_at = self.clock.monotonic()
                case Queued():
                    await response.write(spelling.queued(sight))
                case Showing():
                    if not turn:
                        turn = sight.turn
                        await response.write(spelling.begun(turn))
                    pieces = spoken.new(sight.view)
                    if pieces:
                        await response.write(spelling.says(pieces))
                        told_at = self.clock.monotonic()
                    elif self.clock.monotonic() - told_at >= STATUS_SECONDS:
                        await response.write(spelling.waits(sight.view))
                        told_at = self.clock.monotonic()
                case Ended():
                    await response.write(spelling.ended(sight, spoken.new(told(sight))))
                    return
                case LeftOpen():
                    await response.write(spelling.left(sight, spoken.new(sight.view)))
                    return
            sight = await follower.next(min(STATUS_SECONDS, self.keep_alive_seconds))

    # ------------------------------------------------------------------ not streaming

    async def _whole(
        self, request: web.Request, job: ApiJob, spelling: Spelling, follower: Follower
    ) -> web.StreamResponse:
        """One JSON object at the end. While it takes long, white space goes out, which JSON allows before a value."""
        response: web.StreamResponse | None = None
        quiet_since = self.clock.monotonic()
        while True:
            sight = await follower.next(self.keep_alive_seconds)
            if isinstance(sight, Ended | LeftOpen):
                break
            if self.clock.monotonic() - quiet_since < self.keep_alive_seconds:
                continue
            quiet_since = self.clock.monotonic()
            if response is None:
                response = web.StreamResponse(headers={"Content-Type": "application/json", **job.headers})
                await response.prepare(request)
            await response.write(b" ")
        if response is None and isinstance(sight, Ended) and (problem := not_begun(sight)) is not None:
            return problem_response(problem)
        body = orjson.dumps(spelling.whole(sight) if isinstance(sight, Ended) else spelling.unfinished(sight))
        if response is None:
            return web.Response(body=body, content_type="application/json", headers=job.headers)
        await response.write(body)
        await response.write_eof()
        return response


def not_begun(ended: Ended) -> Problem | None:
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
