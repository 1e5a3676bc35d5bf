"""Several keys and several models: one that is refused is left for the next, and only for what concerns it; and a long
conversation is shortened when it no longer fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from aiohttp import web

from adapters.contract.base import Ended
from agent_core.failures.exits import ExitCode
from gateway.config.model import endpoints_of
from gateway.config.reading import load
from gateway.sessions.chain import ModelChain
from tests.gateway.rig import chunk, gateway
from tests.serving import served
from tests.store.support import FakeClock

KEYS = {
    "OUTSPOKEN_MODEL__API_KEYS": "key-number-one,key-number-two",
    "OUTSPOKEN_MODEL__NAME": "m1",
    "OUTSPOKEN_MODEL__FALLBACKS": "m2",
}


async def serve(handler: Any) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"


async def test_a_refused_key_is_left_for_the_next_and_stays_aside(tmp_path: Path):
    seen: list[tuple[str, str]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        key = request.headers["Authorization"].removeprefix("Bearer ")
        seen.append((key, (await request.json())["model"]))
        if key == "key-number-one":
            return web.json_response({"error": {"message": f"bad {key}", "code": "invalid_api_key"}}, status=401)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(chunk({"content": "fine"}, "stop"))
        return response

    runner, url = await serve(handle)
    try:
        async with served(tmp_path, {**KEYS, "OUTSPOKEN_MODEL__BASE_URL": url}) as up:
            import openai

            async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="x", max_retries=0) as client:
                for _ in range(2):
                    answer = await client.chat.completions.create(
                        model="outspoken", messages=[{"role": "user", "content": "hi"}]
                    )
                    assert answer.choices[0].message.content == "fine"
                await client.chat.completions.create(model="m2", messages=[{"role": "user", "content": "hi"}])
    finally:
        await runner.cleanup()
    assert seen == [
        ("key-number-one", "m1"),
        ("key-number-two", "m1"),
        ("key-number-two", "m1"),
        ("key-number-two", "m2"),
    ]


def test_one_key_has_one_name_for_all_models_of_its_host():
    config = load(None, {**KEYS, "OUTSPOKEN_MODEL__BASE_URL": "http://host/v1"}).config
    endpoints = endpoints_of(config.model.chain())
    assert [[c.id for c in e.credentials] for e in endpoints] == [["host/key1", "host/key2"]] * 2
    assert len({e.label for e in endpoints}) == 2
    assert "key-number" not in repr(endpoints)


async def test_of_two_pauses_of_a_key_the_longer_one_counts() -> None:
    config = load(None, {**KEYS, "OUTSPOKEN_MODEL__BASE_URL": "http://host/v1"}).config
    clock = FakeClock()
    chain = ModelChain(cast("Any", None), endpoints_of(config.model.chain()), clock)

    async def first() -> str:
        return (await chain.routes(""))[0].credential

    for seconds in (600, 30):
        chain.set_aside("host/key1", seconds, "refused")
    clock.now += 599_000
    assert await first() == "host/key2"
    clock.now += 1_000
    assert await first() == "host/key1"


async def test_a_conversation_that_no_longer_fits_is_summed_up_and_goes_on(tmp_path: Path):
    async def strict(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        if "Sum up the following conversation" in str(messages[0]["content"]):
            await response.write(chunk({"content": "They counted."}, "stop"))
        elif len(json.dumps(messages)) > 6_000:
            await response.write(b'data: {"error": {"message": "maximum context length exceeded", "code": 400}}\n\n')
        else:
            await response.write(chunk({"content": "ok " + "x" * 800}, "stop"))

    async with gateway(tmp_path, strict) as rig:
        ends: list[Ended] = [await rig.say(f"message {n}") for n in range(12)]
        assert {end.exit.code for end in ends} == {ExitCode.ANSWERED}
        last = rig.model.requests[-1]["messages"]
        assert "They counted." in last[0]["content"]
        assert last[-1]["content"] == "message 11"
    async with gateway(tmp_path, strict) as rig:
        assert (await rig.say("after a restart")).exit.code is ExitCode.ANSWERED
        assert "They counted." in rig.model.requests[-1]["messages"][0]["content"]
