"""The real openai client, a running gateway, and a model server of ours behind it, each on its own socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
from aiohttp import web

from tests import elsewhere
from tests.gateway.rig import Model, Reply, chunk
from tests.laws.look import is_lawful
from tests.serving import served


@dataclass
class Talk:
    client: openai.AsyncOpenAI
    model: Model
    url: str
    folder: Path

    async def ask(self, *messages: Mapping[str, Any], **more: Any) -> Any:
        """The whole answer to some messages."""
        said: Any = list(messages)
        create: Any = self.client.chat.completions.create
        return await create(model="m1", messages=said, **more)

    @property
    def sent(self) -> dict[str, Any]:
        """What the model's server was asked last."""
        return self.model.requests[-1]


def person(words: Any) -> dict[str, Any]:
    return {"role": "user", "content": words}


async def fine(_: list[dict[str, Any]], response: web.StreamResponse, __: web.Request) -> None:
    await response.write(chunk({"content": "fine"}, "stop"))


@asynccontextmanager
async def talking(folder: Path, reply: Reply = fine, env: Mapping[str, str] | None = None) -> AsyncGenerator[Talk]:
    model = Model(reply)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", model.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        given = {
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "sk-test",
            "OUTSPOKEN_MODEL__NAME": "m1",
            **(env or {}),
        }
        async with (
            served(folder, given) as up,
            openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as client,
        ):
            yield Talk(client, model, up.url, folder)
    finally:
        await runner.cleanup()
    await is_lawful(elsewhere.database_of(folder))
