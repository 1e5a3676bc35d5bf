"""``POST /hooks/NAME`` on real gateways: who may call, once for each id, into a chat or a session, over a kill."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from gateway.config.reading import ConfigError
from gateway.webhooks import signing
from tests.chats.harness import answer, running, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.gateway.test_process import daemon, environment
from tests.ports import free_port
from tests.serving import served
from tests.webhooks.receiver import KEY, SECRET


def configured(**more: object) -> dict[str, str]:
    entry = {"name": "builds", "prompt": "Say what failed.", "session": "ops", "secret_env": "HOOK_SECRET", **more}
    if "chat" in more:
        del entry["session"]
    return {"OUTSPOKEN_HOOKS__ENTRIES": json.dumps([entry]), "HOOK_SECRET": SECRET}


async def call(
    url: str,
    body: object,
    name: str = "msg_1",
    *,
    hook: str = "builds",
    at: float = 0,
    heads: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, Any], Mapping[str, str]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    signed = signing.headers([KEY], name, round((at or time.time()) * 1000), raw)
    given = heads if heads is not None else signed
    async with ClientSession() as http, http.post(f"{url}/hooks/{hook}", data=raw, headers=given) as response:
        return response.status, await response.json(), {**response.headers}


async def said(url: str, session: str, words: str) -> str:
    body = {"messages": [{"role": "user", "content": words}], "session": session}
    async with ClientSession() as http, http.post(f"{url}/v1/chat/completions", json=body) as response:
        return json.dumps(await response.json())


async def test_a_signed_call_is_stored_answered_at_once_and_begins_one_turn(tmp_path: Path) -> None:
    async with served(tmp_path, configured()) as up:
        status, told, _ = await call(up.url, {"build": 7})
        assert status == 202, told
        assert told["id"] == "msg_1"
        again = await call(up.url, {"build": 7})
        assert again[:2] == (202, told)
        row = await up.hub.accepting.store.inbox.one(told["message"])
        assert row is not None
        assert row.platform_key == "hook:builds:msg_1"
        async with asyncio.timeout(30):
            while not _over(await up.hub.accepting.store.inbox.one(told["message"])):
                await asyncio.sleep(0.05)
        other = await call(up.url, {"build": 8})
        assert other[0] == 422, "one id, two contents"


def _over(row: object) -> bool:
    return getattr(row, "state", "") == "done"


@pytest.mark.parametrize(
    ("what", "status", "code"),
    [
        ("unsigned", 400, "not_signed"),
        ("old", 401, "too_old"),
        ("ahead", 401, "too_new"),
        ("wrong", 401, "wrong_signature"),
        ("no json", 400, "invalid_json"),
        ("large", 413, "too_large"),
        ("unknown", 404, "unknown_hook"),
    ],
)
async def test_what_is_not_taken_is_refused_for_what_it_is(tmp_path: Path, what: str, status: int, code: str) -> None:
    async with served(tmp_path, configured(body_bytes=2_000)) as up:
        wrong = signing.headers([b"x" * 32], "msg_1", round(time.time() * 1000), b'{"a": 1}')
        got = await {
            "unsigned": lambda: call(up.url, {"a": 1}, heads={}),
            "old": lambda: call(up.url, {"a": 1}, at=time.time() - 400),
            "ahead": lambda: call(up.url, {"a": 1}, at=time.time() + 400),
            "wrong": lambda: call(up.url, b'{"a": 1}', heads=wrong),
            "no json": lambda: call(up.url, b"{"),
            "large": lambda: call(up.url, {"a": "x" * 3_000}),
            "unknown": lambda: call(up.url, {"a": 1}, hook="other"),
        }[what]()
        assert (got[0], got[1]["error"]["code"]) == (status, code)
        assert await up.hub.accepting.store.inbox.by_key("api", "hook:builds:msg_1") is None


async def test_more_calls_than_may_be_are_told_when_to_come_again_and_a_known_one_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path, configured(per_minute=2)) as up:
        first = await call(up.url, {}, "msg_1")
        await call(up.url, {}, "msg_2")
        status, told, heads = await call(up.url, {}, "msg_3")
        assert (status, told["error"]["code"]) == (429, "too_many")
        assert 1 <= int(heads["Retry-After"]) <= 60
        assert (await call(up.url, {}, "msg_1"))[:2] == first[:2]


async def test_calls_of_one_id_that_come_at_once_begin_one_turn(tmp_path: Path) -> None:
    async with served(tmp_path, configured()) as up:
        heard = await asyncio.gather(*(call(up.url, {"build": 7}) for _ in range(8)))
        assert {status for status, _, _ in heard} == {202}
        assert len({told["message"] for _, told, _ in heard}) == 1


async def test_the_call_from_a_shell_in_the_documentation_is_taken(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text("utf-8")
    (script,) = re.findall(r"The same from a shell:\n\n```sh\n(.*?)```", page, re.DOTALL)
    (tmp_path / "builds.secret").write_text(f"{SECRET}\n")
    async with served(tmp_path, configured()) as up:
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", script.replace("http://127.0.0.1:8787", up.url), cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        assert process.returncode == 0, err
        assert json.loads(out)["session"]


async def test_githubs_signature_is_taken_and_a_replay_begins_nothing(tmp_path: Path) -> None:
    raw = b'{"action": "opened"}'
    secret = "It's-a-Secret"
    heads = {"X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()}
    settings = {**configured(scheme="github"), "HOOK_SECRET": secret}
    async with served(tmp_path, settings) as up:
        one = await call(up.url, raw, heads={**heads, "X-GitHub-Delivery": "a"})
        two = await call(up.url, raw, heads={**heads, "X-GitHub-Delivery": "b"})
        bad = await call(up.url, raw + b" ", heads=heads)
    assert one[0] == 202
    assert two[:2] == one[:2]
    assert (bad[0], bad[1]["error"]["code"]) == (401, "wrong_signature")


@pytest_asyncio.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


async def test_the_answer_comes_to_the_chat_which_is_told_who_asked(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    place = telegram.private(ada)
    chat = telegram.chat_of(place)
    async with running(telegram, **configured(chat=f"telegram/{chat}", prompt="say build seven failed")) as up:
        telegram.say(place, ada, "say hello")
        await answer(telegram, place, "hello", 30)
        status, told, _ = await call(up.url, {"build": "number 7"})
        assert status == 202, told
        await answer(telegram, place, "build seven failed", 30)
        assert "🔔 Webhook: builds" in texts(telegram, place)
    asked = json.dumps(telegram.model.requests[-1], ensure_ascii=False)
    assert "data from outside begins" in asked
    assert "number 7" in asked


async def test_a_hook_for_a_platform_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[hooks\.builds\] is for a chat on telegram"):
        async with served(tmp_path, configured(chat="telegram/12345")):
            pass


def test_what_was_taken_outlasts_a_kill_and_is_not_begun_twice(tmp_path: Path) -> None:
    asyncio.run(_killed(tmp_path))


async def _killed(home: Path) -> None:
    env = environment(home, free_port(), **configured())
    url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}"
    with daemon(env, home / "log") as process:
        taken = [await call(url, {"build": n}, f"msg_{n}") for n in range(3)]
        process.kill()
    with daemon(env, home / "log") as process:
        again = [await call(url, {"build": n}, f"msg_{n}") for n in range(3)]
        assert [one[:2] for one in again] == [one[:2] for one in taken]
        assert await said(url, "ops", "hello")
        process.kill()
    log = (home / "log").read_text()
    assert log.count("hook.taken") == 3
    assert SECRET not in log
