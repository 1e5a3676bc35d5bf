"""A whole gateway that tells: the end of a turn and its message are one commit, and outlast kills, stops and a receiver that is away."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from aiohttp import ClientSession
from sqlalchemy import create_engine, text

from gateway.webhooks.events import HookEvent
from tests.gateway.test_process import daemon, environment, outspoken, post
from tests.ports import free_port
from tests.serving import served
from tests.webhooks.receiver import SECRET, receiving, status


def configured(url: str, **more: object) -> dict[str, str]:
    receiver = {"name": "deploy", "url": url, "secret_env": "HOOK_SECRET", "private": True, **more}
    return {"OUTSPOKEN_WEBHOOKS__RECEIVERS": json.dumps([receiver]), "HOOK_SECRET": SECRET}


async def asked(url: str, words: str, session: str = "") -> str:
    """Ask, and return what was answered."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": words}]}
    if session:
        body["session"] = session
    async with ClientSession() as http, http.post(f"{url}/v1/chat/completions", json=body) as response:
        return json.dumps(await response.json())


async def test_the_end_of_a_turn_is_told_with_facts_and_without_a_word(tmp_path: Path) -> None:
    async with receiving() as told, served(tmp_path, configured(told.url, events=["turn.ended"])) as up:
        await asked(up.url, "list files PURPLE")
        await told.until(1)
    sent = told.came[0].body
    assert sent["type"] == "turn.ended"
    data = sent["data"]
    assert (data["exit"], data["clean"], data["surface"]) == ("answered", True, "api")
    assert data["turn"].startswith("t")
    assert data["steps"] >= 1
    assert "PURPLE" not in json.dumps(sent)
    assert "words" not in data


async def test_words_are_told_where_they_are_wanted(tmp_path: Path) -> None:
    async with receiving() as told, served(tmp_path, configured(told.url, words=True, events=["turn.ended"])) as up:
        await asked(up.url, "hello PURPLE")
        await told.until(1)
    words = told.came[0].body["data"]["words"]
    assert words["asked"] == "hello PURPLE"
    assert words["answer"]


async def test_only_the_ends_that_are_wanted_are_told(tmp_path: Path) -> None:
    async with receiving() as told, served(tmp_path, configured(told.url, exits=["failed"])) as up:
        await asked(up.url, "hello")
        await asked(up.url, "rehearse unauthorised")
        await told.until(1)
        await asyncio.sleep(0.3)
    assert [one.body["data"]["clean"] for one in told.came if one.body["type"] == "turn.ended"] == [False]


async def test_without_a_receiver_nothing_is_stored_and_nothing_is_loaded(tmp_path: Path) -> None:
    async with served(tmp_path) as up:
        await asked(up.url, "hello")
        async with ClientSession() as http, http.get(f"{up.url}/api/webhooks") as response:
            assert response.status == 404
    assert _rows(tmp_path) == []


async def test_a_gateway_that_stops_tells_the_rest_after_its_next_start(tmp_path: Path) -> None:
    port = free_port()
    settings = configured(f"http://127.0.0.1:{port}/hook", events=["turn.ended"])
    async with served(tmp_path, settings) as up:  # nobody listens there
        await asked(up.url, "hello")
    assert [row[1] for row in _rows(tmp_path)] == ["waiting"]
    async with receiving(port) as told, served(tmp_path, settings):
        await told.until(1)
        await _until(lambda: [row[1] for row in _rows(tmp_path)] == ["sent"])
    assert told.ids == [_rows(tmp_path)[0][0]]


def test_a_killed_gateway_loses_no_message_and_repeats_only_under_the_same_id(tmp_path: Path) -> None:
    asyncio.run(_killed(tmp_path))


async def _killed(home: Path) -> None:
    loop = asyncio.get_running_loop()
    async with receiving() as told:
        told.usual = status(500)
        env = environment(home, free_port(), **configured(told.url, events=["turn.ended"]))
        for n in range(3):
            with daemon(env, home / "log") as process:
                await loop.run_in_executor(None, post, env, f"hello {n}", f"k{n}")
                process.kill()
        told.usual = status(200)
        with daemon(env, home / "log") as process:
            await _until(lambda: [row[1] for row in _rows(home)] == ["sent"] * 3)
            process.kill()
    rows = _rows(home)
    assert len(rows) == 3
    assert set(told.ids) == {row[0] for row in rows}
    of_each = {one.id: one.raw for one in told.came}
    assert all(of_each[one.id] == one.raw for one in told.came), "one id, two contents"


async def test_the_command_lists_tries_and_sends_again(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with receiving() as told:
        env = environment(tmp_path, free_port(), **configured(told.url))
        with daemon(env, tmp_path / "log"):
            tried = await loop.run_in_executor(None, lambda: outspoken(env, "webhooks", "test", "deploy"))
            assert tried.returncode == 0, tried.stderr
            await told.until(1)
            assert told.came[0].body["type"] == HookEvent.TEST.value
            listed = await loop.run_in_executor(None, lambda: outspoken(env, "webhooks", "list"))
            assert "deploy: on; 0 waiting, 1 sent" in listed.stdout
            again = await loop.run_in_executor(
                None, lambda: outspoken(env, "webhooks", "resend", "deploy", told.ids[0])
            )
            assert again.returncode == 0, again.stderr
            await told.until(2)
            unknown = await loop.run_in_executor(None, lambda: outspoken(env, "webhooks", "test", "other"))
            assert (unknown.returncode, "There is no webhook 'other'" in unknown.stderr) == (1, True), unknown.stderr
            status_said = await loop.run_in_executor(None, lambda: outspoken(env, "status"))
            assert "Webhook deploy: on" in status_said.stdout
    assert told.ids[0] == told.ids[1]
    assert SECRET not in (tmp_path / "log").read_text()


def _rows(home: Path) -> list[tuple[str, str]]:
    file = next(home.rglob("*.db"))
    engine = create_engine(f"sqlite:///file:{file}?mode=ro&uri=true")
    with engine.connect() as conn:
        found = conn.execute(text("select message, state from hooks where event = 'turn.ended' order by number"))
        rows = [(str(row[0]), str(row[1])) for row in found]
    engine.dispose()
    return rows


async def _until(true: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
