"""A few kills; the five hundred are `make soak`'s."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import aiohttp
from aiohttp import web

from tests import elsewhere
from tests.kills.people import Conversation
from tests.listening import listening

LIMIT_SECONDS = 180
"""Beyond the limit of the process itself, which ends with what it started."""


def said_by(module: str, kills: int) -> str:
    """What it says of a run that went well."""
    command = [sys.executable, "-m", f"tests.kills.{module}", "--kills", str(kills), "--seed", "3"]
    env = {**os.environ, **elsewhere.settings()}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_killed_gateways_lose_nothing_and_do_nothing_twice() -> None:
    assert "5 kills" in said_by("run", 5)


def test_sixteen_conversations_with_file_tools_lose_nothing_and_do_nothing_twice_in_gateways_that_are_killed() -> None:
    assert "0 lost, 0 done twice" in said_by("load", 6)


async def test_who_asks_again_hears_an_end_that_is_told_as_a_status(tmp_path: Path) -> None:
    told = {"error": {}, "outspoken": {"exit": "internal_error", "notice": "This was set aside."}}

    async def chat(_: web.Request) -> web.Response:
        return web.json_response(told, status=500)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    stop, log = tmp_path / "stop", tmp_path / "log"
    async with listening(app) as address, aiohttp.ClientSession() as client:
        asking = Conversation(1, int(address.rsplit(":", 1)[1]), log).run(client, stop)
        running = asyncio.create_task(asking)
        while not (log.exists() and '"end"' in log.read_text()):
            await asyncio.sleep(0.01)
        stop.touch()
        await running
    end = next(line for line in map(json.loads, log.read_text().splitlines()) if line["what"] == "end")
    assert (end["exit"], end["said"]) == ("internal_error", "This was set aside.")
