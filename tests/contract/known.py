"""A gateway in which there is something to be asked for: people of a chat, a turn, a part that could not be sent, a call that waits for somebody's word."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from gateway.daemon import Serving
from tests.chats.harness import answer, running
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.gateway.test_console import calling, refused_part
from tests.ports import free_port
from tests.webhooks.test_gateway import configured

Known = Mapping[str, list[dict[str, Any]]]
"""By method and path of an operation: values for it."""


async def _found(telegram: TelegramHarness, up: Serving, key: str) -> Known:
    async with calling(up, Authorization=f"Bearer {key}") as http:
        _, part = await refused_part(telegram, http)
        ben = telegram.person("Ben")
        his = telegram.private(ben)
        telegram.say(his, ben, "write notes.txt: x")
        await answer(telegram, his, "May I write")

        async def told(path: str, body: dict[str, Any] | None = None) -> Any:
            async with http.request("GET" if body is None else "POST", path, json=body) as response:
                assert response.status == 200, await response.text()
                return await response.json()

        ((session, turn),) = _rows(telegram.folder, "SELECT session, turn FROM turns WHERE state = 'closed' LIMIT 1")
        waits = (await told("/api/approvals"))["approvals"][0]["id"]
        to = f"telegram/{telegram.chat_of(his)}"
        sent = (await told("/api/send", {"to": to, "text": "hello"}))["id"]
        retry = {"name": part["name"], "act": "retry", "to": ""}
        mark = (await told("/console/api/outbox/preview", retry))["mark"]
    return {
        "POST /api/access": [{"body": {"verb": "revoke", "who": telegram.id_of(ben)}}],
        "POST /api/keys": [{"body": {"verb": "add", "name": f"k{number}"}} for number in range(50)],
        "POST /api/approvals": [{"body": {"id": waits, "approve": True}}],
        "POST /api/send": [{"body": {"to": to, "text": "hello again"}}],
        "GET /api/send/{id}": [{"path": {"id": sent}}],
        "POST /api/webhooks": [{"body": {"receiver": "deploy", "verb": "test"}}],
        "GET /console/static/{name}": [{"path": {"name": "console.js"}}],
        "GET /console/api/explain/{id}": [{"path": {"id": turn}}],
        "POST /console/api/outbox/preview": [{"body": retry}],
        "POST /console/api/outbox/text": [{"body": retry}],
        "POST /console/api/outbox/act": [{"body": {**retry, "mark": mark}}],
        "POST /console/api/title": [{"body": {"session": session}}],
        "POST /console/api/search": [{"body": {"text": "good morning"}}],
    }


def _rows(folder: Path, query: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(folder / "outspoken.db")) as database:
        return database.execute(query).fetchall()


@asynccontextmanager
async def peopled(folder: Path, key: str, env: Mapping[str, str]) -> AsyncGenerator[tuple[str, Known]]:
    """Where it serves, and what there is."""
    nobody = configured(f"http://127.0.0.1:{free_port()}/hook")
    more = {**env, **nobody, "OUTSPOKEN_TOOLS__APPROVAL": "write_file"}
    async with telegram_harness(folder) as telegram, running(telegram, **more) as up:
        yield up.url, await _found(telegram, up, key)


def written(known: Known, folder: Path) -> dict[str, str]:
    """What schemathesis is told of it, see `tests/clients/programs/contract_values.py`."""
    (folder / "known.json").write_text(json.dumps(known))
    (folder / "answered").touch()
    return {"CONTRACT_KNOWN": str(folder / "known.json"), "CONTRACT_ANSWERED": str(folder / "answered")}
