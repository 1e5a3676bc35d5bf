"""What the model is told of earlier turns. Laws: what is kept makes no difference to it; a long past takes no more queries than a short one."""

from __future__ import annotations

import base64
import random
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import event

from agent_core.messages import InputMessage
from agent_core.store.database.readers import SqliteReaders
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import Store
from gateway.sessions.recall import KEPT_BYTES, PastRecall
from tests.gateway.rig import Rig, chunk, gateway

TURNS = 6
ASKING: ContextVar[list[str] | None] = ContextVar("ASKING", default=None)
"""Where the statements go that are read with on behalf of whoever set it."""


async def echo(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    words = str(messages[-1]["content"])
    if "break" in words:
        return  # nothing comes: the turn ends in a notice, which is remembered as well
    await response.write(chunk({"content": f"You said: {words}"}))
    await response.write(chunk({}, "stop"))


def asked(groups: list[list[Any]]) -> list[str]:
    """What the person said, turn by turn."""
    return [str(group[0]["content"]) for group in groups]


@contextmanager
def queries(store: Store) -> Generator[list[str]]:
    """The statements that this task read with meanwhile."""
    found: list[str] = []
    ours = ASKING.set(found)

    def note(conn: object, cursor: object, statement: str, *_: object) -> None:
        if ASKING.get() is found:  # others go on in the gateway
            found.append(statement)

    readers = store.asks.readers
    assert isinstance(readers, SqliteReaders)
    event.listen(readers.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(readers.engine, "before_cursor_execute", note)
        ASKING.reset(ours)


class Walk:
    """A conversation as a person leads it, and what ought to be told of it."""

    def __init__(self, rig: Rig, chance: random.Random) -> None:
        self.rig = rig
        self.chance = chance
        self.told: list[str] = []
        self.turns: list[str] = []
        self.session = ""

    async def step(self, number: int) -> None:
        match self.chance.choice(["say", "say", "say", "break", "undo", "new"]):
            case "undo" if self.turns:
                await self._change(SessionChange(undo=self.turns.pop()))
                self.told.pop()
            case "new" if self.turns:
                await self._change(SessionChange(forget=True))
                self.told, self.turns = [], []
            case how:
                words = f"{how} {number}"
                ended = await self.rig.say(words)
                row = await self.rig.store.turns.one(ended.turn)
                assert row is not None
                self.session = row.session
                self.told.append(words)
                self.turns.append(ended.turn)

    async def _change(self, change: SessionChange) -> None:
        key = self.rig.inbound("").session.text()
        self.rig.hub.queues.forget_memory(key)
        queue = await self.rig.hub.accepting.owned(key, self.session)
        await self.rig.store.sessions.change(self.session, queue.epoch, change)
        self.rig.hub.queues.release(queue)


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_kept_makes_no_difference(tmp_path: Path, seed: int) -> None:
    async with gateway(tmp_path, echo, history_turns=TURNS) as rig:
        recalls = [PastRecall(rig.store, TURNS, size) for size in (0, 3_000, KEPT_BYTES)]
        walk = Walk(rig, random.Random(seed))
        for number in range(25):
            await walk.step(number)
            if not walk.session:
                continue
            memories = [await one.memory(walk.session) for one in recalls]
            assert [asked(one.groups) for one in memories] == [walk.told[-TURNS:]] * 3
            assert memories[0].groups == memories[1].groups == memories[2].groups
        await rig.say("last")
        given = [m["content"] for m in rig.model.requests[-1]["messages"] if m["role"] == "user"]
        assert given == [*walk.told[-TURNS:], "last"]


async def test_a_long_past_takes_as_few_queries_as_a_short_one(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        ended = [await rig.say(f"say {number}") for number in range(30)]
        row = await rig.store.turns.one(ended[-1].turn)
        assert row is not None
        recall = PastRecall(rig.store, 200)
        with queries(rig.store) as first:
            memory = await recall.memory(row.session)
        with queries(rig.store) as second:
            again = await recall.memory(row.session)
        assert len(memory.groups) == 30
        assert again == memory
        assert (len(first), len(second)) == (2, 1)


async def test_pictures_do_not_push_out_what_was_said_without_any(tmp_path: Path) -> None:
    """Where twenty people talk, whose pictures are larger than what is kept, only the turns with pictures are read anew."""
    async with gateway(tmp_path, echo) as rig:
        for number in range(5):
            await rig.say("hello", session="words")
            url = "data:image/png;base64," + base64.b64encode(random.Random(number).randbytes(300_000)).decode()
            picture: Any = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
            await rig.say("", session="pictures", input=(InputMessage(picture),))
        recall = PastRecall(rig.store, 50, kept_bytes=600_000)
        found = [
            await rig.store.sessions.by_key(rig.inbound("", session=one).session.text())
            for one in ("words", "pictures")
        ]
        words, pictures = [one.session for one in found if one is not None]
        before = await recall.memory(words)
        await recall.memory(pictures)
        with queries(rig.store) as asked_again:
            assert await recall.memory(words) == before
        assert len(asked_again) == 1
