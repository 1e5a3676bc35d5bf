"""What the model is told of earlier turns. Laws: what is kept makes no difference to it; a long past takes no more queries than a short one."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent_core.judging.compaction import SessionMemory, ToldTurn
from agent_core.messages import InputMessage, Message
from agent_core.store.batch import owned
from agent_core.store.sessions.rows import SessionChange
from gateway.queues.pasts import EACH_BYTES, KEPT_BYTES, Pasts
from gateway.sessions.recall import PastRecall
from tests.gateway.rig import Rig, chunk, gateway
from tests.statements import told_of

TURNS = 6
ASKING: ContextVar[list[str] | None] = ContextVar("ASKING", default=None)
"""Where the statements go that are read with on behalf of whoever set it."""
PICTURE = "data:image/png;base64,iVBORw0KGgo="


async def nobody_asks(*_: Any) -> Any:
    raise AssertionError("what is known was asked for")


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
def queries() -> Generator[list[str]]:
    """The statements that this task read with meanwhile."""
    found: list[str] = []
    ours = ASKING.set(found)

    def note(statement: str, _values: object) -> None:
        if ASKING.get() is found:  # others go on in the gateway
            found.append(statement)

    try:
        with told_of(note):
            yield found
    finally:
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
                await self.change(SessionChange(undo=self.turns.pop()))
                self.told.pop()
            case "new" if self.turns:
                await self.change(SessionChange(forget=True))
                self.told, self.turns = [], []
            case how:
                words = f"{how} {number}"
                ended = await self.rig.say(words)
                row = await self.rig.store.turns.one(ended.turn)
                assert row is not None
                self.session = row.session
                self.told.append(words)
                self.turns.append(ended.turn)

    async def change(self, change: SessionChange) -> None:
        key = self.rig.inbound("").session.text()
        self.rig.hub.queues.forget_memory(key)
        queue = await self.rig.hub.accepting.owned(key, self.session)
        await self.rig.store.sessions.change(self.session, queue.epoch, change)
        self.rig.hub.queues.release(queue)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most", [0, 3_000, KEPT_BYTES])
async def test_what_is_kept_makes_no_difference(tmp_path: Path, seed: int, most: int) -> None:
    async with gateway(tmp_path, echo, history_turns=TURNS) as rig:
        rig.hub.queues.pasts = Pasts(most)
        walk = Walk(rig, random.Random(seed))
        for number in range(25):
            await walk.step(number)
            if walk.session:
                memory = await PastRecall(rig.store, TURNS).memory(walk.session)
                assert asked(memory.groups) == walk.told[-TURNS:]
        await rig.say("last")
        given = [m["content"] for m in rig.model.requests[-1]["messages"] if m["role"] == "user"]
        assert given == [*walk.told[-TURNS:], "last"]
        again = rig.model.requests[-1]["messages"]
        rig.hub.queues.pasts.clear()
        await walk.change(SessionChange(undo=(await rig.store.turns.latest(walk.session, 1))[0].turn))
        await rig.say("last")
        assert rig.model.requests[-1]["messages"] == again


async def test_the_next_turn_of_a_conversation_asks_nothing_of_its_past(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        await rig.say("first")
        rig.store.turns.told = nobody_asks  # type: ignore[method-assign]
        rig.store.turns.journals = nobody_asks  # type: ignore[method-assign]
        for number in range(5):
            await rig.say(f"say {number}")
        given = [m["content"] for m in rig.model.requests[-1]["messages"] if m["role"] == "user"]
        assert given == ["first", *(f"say {number}" for number in range(5))]


async def test_a_session_that_was_another_processs_meanwhile_is_read_anew(tmp_path: Path) -> None:
    """Whoever has had it has counted its epoch on."""
    pasts = Pasts()
    pasts.keep("key", "s_1", 3, SessionMemory())
    assert pasts.take("key", "s_1", 4) is None
    pasts.keep("key", "s_1", 3, SessionMemory())
    assert pasts.take("key", "s_2", 3) is None
    pasts.keep("key", "s_1", 3, memory := SessionMemory())
    assert pasts.take("key", "s_1", 3) is memory


def test_what_was_used_last_is_kept_longest() -> None:
    pasts = Pasts(3 * EACH_BYTES)
    for name in ("a", "b", "c"):
        pasts.keep(name, name, 1, SessionMemory())
    kept = pasts.take("a", "a", 1)
    assert kept is not None
    pasts.keep("a", "a", 1, kept)
    pasts.keep("d", "d", 1, SessionMemory())
    assert pasts.take("b", "b", 1) is None
    assert pasts.take("a", "a", 1) is kept


def test_five_thousand_conversations_in_rotation_are_kept() -> None:
    """Else each turn of each of them would ask the database for all of its past. Of fifty turns each, which is what they are told."""
    pasts, many = Pasts(), 5_000
    memory = SessionMemory()
    for number in range(50):
        said: list[Message] = [
            {"role": "user", "content": f"{number} and so on".ljust(50, ".")},
            {"role": "assistant", "content": "Yes." * 12},
        ]
        memory.take(ToldTurn(said))
    for known in (None, memory):
        for number in range(many):
            assert pasts.take(f"k{number}", f"s{number}", 1) is known
            pasts.keep(f"k{number}", f"s{number}", 1, memory)
    assert many <= owned.MOST  # nor for the sessions themselves


async def test_a_long_past_takes_as_few_queries_as_a_short_one(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        ended = [await rig.say(f"say {number}") for number in range(30)]
        row = await rig.store.turns.one(ended[-1].turn)
        assert row is not None
        with queries() as first:
            memory = await PastRecall(rig.store, 200).memory(row.session)
        assert len(memory.groups) == 30
        assert len(first) == 2


async def test_a_picture_in_the_past_goes_to_the_model_as_before(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        picture: Any = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
        await rig.say("", input=(InputMessage(picture),))
        await rig.say("and now")
        assert rig.model.requests[-1]["messages"][-3]["content"] == picture
