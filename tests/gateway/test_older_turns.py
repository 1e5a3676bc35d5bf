"""Turns that an older version left open, and one whose journal does not fit: taken up by a real gateway with other rules."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

from aiohttp import web

from agent_core.messages import GATEWAY_PREFIX
from agent_core.rules.promises import ANSWERED
from agent_core.store.turns.rows import timed
from agent_core.tools.base import EffectClass
from tests.gateway.rig import CountingTool, Rig, call_chunk, chunk, gateway
from tests.journalrows import OF_TURN

PROMISE = "I'll send the report to Ann now:"


async def sends_mail(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    """A model that promises, sends a mail when it is reminded, and then tells of it."""
    if messages[-1]["content"] == "And?" or any(m["role"] == "tool" for m in messages):
        await response.write(chunk({"content": "It was on its way when I was interrupted."}, "stop"))
    elif messages[-1]["role"] == "user" and str(messages[-1]["content"]).startswith(GATEWAY_PREFIX):
        await response.write(call_chunk("mail", "{}"))
    else:
        await response.write(chunk({"content": PROMISE}, "stop"))


def _mail(folder: Path, seconds: float = 30) -> CountingTool:
    return CountingTool("mail", EffectClass.EFFECT, folder / "mails", seconds)


async def _left_open(folder: Path) -> str:
    """A turn that is left while its mail goes out; its id."""
    async with gateway(folder, sends_mail, tools=[_mail(folder)]) as rig:
        ticket = await rig.hub.accept(rig.inbound("Send the report to Ann.", key="first"))
        await rig.until_text(ticket, PROMISE)
        async with asyncio.timeout(60):
            while not _mail(folder).runs():
                await asyncio.sleep(0.02)
    with closing(sqlite3.connect(folder / "db")) as made:
        found = made.execute("SELECT turn FROM turns WHERE state = 'open'").fetchall()
    assert len(found) == 1
    return str(found[0][0])


def _rows(folder: Path, turn: str) -> list[tuple[str, dict[str, Any], int]]:
    with closing(sqlite3.connect(folder / "db")) as made:
        found = made.execute(f"SELECT kind, body, at FROM journal WHERE {OF_TURN} ORDER BY seq", (turn,)).fetchall()
    return [(kind, json.loads(timed(body, at)), at) for kind, body, at in found]


def _rewrite(folder: Path, turn: str, rows: Sequence[tuple[str, dict[str, Any], int]]) -> None:
    with closing(sqlite3.connect(folder / "db")) as made, made:
        kept = made.execute(f"SELECT * FROM journal WHERE {OF_TURN} ORDER BY seq", (turn,)).fetchall()
        names = [row[1] for row in made.execute("PRAGMA table_info(journal)")]
        made.execute(f"DELETE FROM journal WHERE {OF_TURN}", (turn,))
        for seq, (kind, body, at) in enumerate(rows):
            values = dict(zip(names, kept[0], strict=True)) | {
                "id": kept[0][0] + seq,
                "seq": seq,
                "kind": kind,
                "body": json.dumps(body).encode(),
                "at": at,
            }
            made.execute(
                f"INSERT INTO journal({', '.join(names)}) VALUES({', '.join('?' * len(names))})",
                [values[name] for name in names],
            )


NEW = {"ReplyJudged", "FailureJudged", "TurnBegun", "TurnLeft"}


async def _next(rig: Rig, words: str) -> list[dict[str, Any]]:
    """What the model is told with the next message."""
    await rig.say(words)
    return rig.model.requests[-1]["messages"]


async def test_what_an_older_version_took_for_a_promise_stays_one_and_its_mail_is_not_denied(tmp_path: Path) -> None:
    turn = await _left_open(tmp_path)
    older = [row for row in _rows(tmp_path, turn) if row[0] not in NEW]
    older[0][1]["settings"]["rules"] = 4
    for kind, body, _ in older:
        if kind == "RungClimbed":
            del body["advice"], body["detail"]
    _rewrite(tmp_path, turn, older)
    # A version whose list lacks the phrase
    with mock.patch("agent_core.judging.judge.read_ending", return_value=ANSWERED):
        async with gateway(tmp_path, sends_mail, tools=[_mail(tmp_path)]) as rig:
            assert rig.recovered == 1
            ended = await rig.end(await rig.hub.accept(rig.inbound("Send the report to Ann.", key="first")))
            assert ended.exit.code.value == "answered"
            told = str(rig.model.requests[-1]["messages"])
            assert "mail was started, and the gateway was restarted" in told
            assert len(_mail(tmp_path).runs()) == 1
            later = await _next(rig, "And?")
            assert [m["tool_calls"][0]["function"]["name"] for m in later if m.get("tool_calls")] == ["mail"]


async def test_a_turn_whose_journal_does_not_fit_ends_once_with_the_tools_that_may_have_run(tmp_path: Path) -> None:
    turn = await _left_open(tmp_path)
    rows = _rows(tmp_path, turn)
    last = max(at for at, row in enumerate(rows) if row[0] == "ReplyJudged")
    _rewrite(tmp_path, turn, [*rows[:last], *rows[last + 1 :]])
    for _ in range(2):
        async with gateway(tmp_path, sends_mail, tools=[_mail(tmp_path)]) as rig:
            later = await _next(rig, "And?")
            assert "May or may not have run: mail" in str(later)
    assert len(_mail(tmp_path).runs()) == 1
    ends = [body for kind, body, _ in _rows(tmp_path, turn) if kind == "TurnEnded"]
    assert [(end["exit"]["code"], end["exit"]["facts"]["tools_unsure"]) for end in ends] == [
        ("internal_error", ["mail"])
    ]
