"""The reference gateway: what forwarding costs at the least with aiohttp and orjson. ``python -m tests.bench.reference PORT UPSTREAM``.

It keeps nothing, recovers nothing and tells nothing: it reads each event of the upstream, parses it and writes it again.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import orjson
from aiohttp import web

UPSTREAM = web.AppKey("upstream", str)
CLIENT = web.AppKey("client", aiohttp.ClientSession)


async def chat(request: web.Request) -> web.StreamResponse:
    """Forward one streamed completion, event by event."""
    body = orjson.loads(await request.read())
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    client = request.app[CLIENT]
    async with client.post(f"{request.app[UPSTREAM]}/chat/completions", data=orjson.dumps(body)) as upstream:
        await response.prepare(request)
        buffer = b""
        async for data in upstream.content.iter_any():
            buffer += data
            *events, buffer = buffer.split(b"\n\n")
            for event in events:
                payload = event.removeprefix(b"data: ")
                if payload == b"[DONE]":
                    await response.write(b"data: [DONE]\n\n")
                    continue
                chunk = orjson.loads(payload)
                rebuilt = {
                    "id": chunk["id"],
                    "object": "chat.completion.chunk",
                    "created": chunk["created"],
                    "model": chunk["model"],
                    "choices": [
                        {
                            "index": 0,
                            "delta": chunk["choices"][0]["delta"],
                            "finish_reason": chunk["choices"][0]["finish_reason"],
                        }
                    ],
                }
                await response.write(b"data: " + orjson.dumps(rebuilt) + b"\n\n")
    await response.write_eof()
    return response


async def main(port: int, upstream: str) -> None:
    app = web.Application()
    app[UPSTREAM] = upstream
    app[CLIENT] = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=2048).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
