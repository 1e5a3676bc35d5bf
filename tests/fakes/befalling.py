"""What befalls a request and its answer at a stand-in's door, on every platform alike."""

from __future__ import annotations

import asyncio
import time

from aiohttp import web

from tests.fakes.common import Answer, Call, Delay, Garble, LoseAnswer, Pause, Reset, cut


async def before(request: web.Request, call: Call) -> web.StreamResponse | None:
    """What befalls a request before the platform acts; an answer ends it."""
    for fault in call.faults:
        match fault:
            case Delay(seconds, after=False):
                await asyncio.sleep(seconds)
            case Pause(after=False):
                await fault.pass_through()
            case Reset():
                call.ended_at = time.monotonic()
                cut(request.transport)
                return web.Response()
            case Answer():
                call.status, call.ended_at = fault.status, time.monotonic()
                headers = {"Content-Type": fault.content_type, **fault.headers}
                return web.Response(status=fault.status, body=fault.body, headers=headers)
            case Delay() | Pause() | LoseAnswer() | Garble():
                pass
    return None


async def after(request: web.Request, call: Call, response: web.Response) -> web.StreamResponse:
    """What befalls an answer."""
    for fault in call.faults:
        match fault:
            case Delay(seconds, after=True):
                await asyncio.sleep(seconds)
            case Pause(after=True):
                await fault.pass_through()
            case LoseAnswer():
                await _lose(request, response, fault)
                return response
            case Garble():
                return fault.answer()
            case Delay() | Pause() | Reset() | Answer():
                pass
    return response


async def _lose(request: web.Request, response: web.Response, fault: LoseAnswer) -> None:
    """Cut the connection in the place of an answer, or in the middle of it."""
    if fault.sent == "half":
        body = response.body
        body = body if isinstance(body, bytes) else b""
        partial = web.StreamResponse(status=response.status, headers=response.headers)
        partial.content_length = len(body)
        await partial.prepare(request)
        await partial.write(body[: len(body) // 2])
        # Let what was written leave before the reset throws it away.
        await asyncio.sleep(0.01)
    cut(request.transport, clean=fault.clean)
