"""A turn that another gateway runs is read on as it is stored, and comes to the same as when it is read at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from agent_core.journal.rows import decode, fold, row_of
from agent_core.store.store import Store
from agent_core.store.turns.rows import JournalRow
from agent_core.tools.base import EffectClass
from agent_core.turn.events import TakenOver, ToolReturned
from agent_core.turn.view import BubbleKind, view
from gateway.sharing.afar import FarTurn
from gateway.sharing.portion import (
    ELSEWHERE_SECONDS,
    HEED_SECONDS,
    SESSION,
    TOOL,
    WATCH,
    WATCH_SECONDS,
    Due,
    FarWatchers,
)
from tests.gateway.rig import CountingTool, call_chunk, chunk, gateway


@dataclass
class Stored:
    """A journal as far as it is stored."""

    rows: list[JournalRow]
    upto: int = 0
    read: int = 0
    asked: int = 0
    slow: asyncio.Event = field(default_factory=asyncio.Event)
    """An answer comes when it is set."""

    def __post_init__(self) -> None:
        self.slow.set()

    async def journal(self, _: str, after: int = -1) -> list[JournalRow]:
        found = [row for row in self.rows[: self.upto] if row.seq > after]
        self.asked += 1
        await self.slow.wait()
        self.read += len(found)
        return found

    @property
    def turns(self) -> Stored:
        return self


async def works_and_breaks(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
    if messages[-1]["role"] == "tool":
        for piece in ("It ", "has ", "run."):
            await response.write(chunk({"content": piece}))
            await asyncio.sleep(0.05)
        await response.write(chunk({}, "stop"))
    elif any(one["role"] == "assistant" for one in messages):
        await response.write(chunk({"content": "I look first, and then. "}))
        await response.write(call_chunk("note", "{}"))
    else:
        await response.write(chunk({"reasoning_content": "Hm, let me see. "}))
        await response.write(chunk({"content": "I look first"}))  # and there it breaks off


async def test_what_is_read_on_comes_to_what_is_read_at_once(tmp_path: Path) -> None:
    tool = CountingTool("note", EffectClass.KEYED, tmp_path / "runs")
    async with gateway(tmp_path, works_and_breaks, tools=[tool]) as rig:
        end = await rig.say("go")
        rows = await rig.store.turns.journal(end.turn)
    assert len(rows) > 10
    whole = fold([(row.kind, row.body) for row in rows])
    for step in (1, 2, 3, len(rows)):
        stored = Stored(rows)
        far = FarTurn(cast("Store", stored), end.turn)
        while stored.upto < len(rows):
            stored.upto += step
            await far.look()
        assert far.turn is not None
        assert view(far.turn, whole.phase_since) == view(whole, whole.phase_since), step
        assert far.turn.thoughts.beyond(0) == whole.thoughts.beyond(0)
        assert far.turn.exit == whole.exit


async def test_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    async with gateway(tmp_path, works_and_breaks) as rig:
        end = await rig.say("go")
        rows = await rig.store.turns.journal(end.turn)
    texts = [at for at, row in enumerate(rows) if row.kind == "TextArrived"]
    stored = Stored(rows, texts[0])
    far = FarTurn(cast("Store", stored), end.turn)
    await far.look()
    assert far.last == rows[texts[0] - 1].seq
    stored.upto += 1
    await far.look()
    await far.look()
    assert far.last == rows[texts[0]].seq
    assert stored.read == texts[0] + 1


async def test_those_who_look_in_one_moment_cost_one_question_and_see_what_is_stored_by_then(tmp_path: Path) -> None:
    async with gateway(tmp_path, works_and_breaks) as rig:
        end = await rig.say("go")
        rows = await rig.store.turns.journal(end.turn)
    stored = Stored(rows, 1)
    far = FarTurn(cast("Store", stored), end.turn)
    await asyncio.gather(*(far.look() for _ in range(20)))
    assert stored.asked == 1
    stored.slow.clear()
    first = asyncio.create_task(far.look())
    await asyncio.sleep(0.01)
    stored.upto = 2  # behind what the first was told
    second = asyncio.create_task(far.look())
    stored.slow.set()
    await asyncio.gather(first, second)
    assert far.last == rows[1].seq
    assert stored.asked == 3


async def test_without_a_word_it_is_looked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    due = Due()
    assert [due.now(), due.now()] == [True, False]
    assert due.seconds == ELSEWHERE_SECONDS
    due.ring()
    assert [due.seconds, due.now(), due.now()] == [0, True, False]
    now[0] += ELSEWHERE_SECONDS
    assert [due.now(), due.now()] == [True, False]


async def test_who_looks_says_so_now_and_then_and_counts_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now, words = [1_000.0], list[str]()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    there = FarWatchers(words.append)
    there.look_at("")
    for _ in range(3):
        there.look_at("s")
    assert words == [f"{WATCH}:s"]
    now[0] += WATCH_SECONDS
    there.look_at("s")
    assert words == [f"{WATCH}:s"] * 2
    here = FarWatchers(words.append)
    here.stored("s")
    assert len(words) == 2, "nobody is told what nobody looks at"
    here.heard("s")
    assert here.watched("s")
    here.stored("s")
    assert words[2:] == [f"{SESSION}:s"]
    now[0] += HEED_SECONDS
    assert not here.watched("s")


async def test_what_a_tool_says_is_heard_where_it_is_watched_and_shown_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = CountingTool("note", EffectClass.KEYED, tmp_path / "runs")
    async with gateway(tmp_path, works_and_breaks, tools=[tool]) as rig:
        end = await rig.say("go")
        rows = await rig.store.turns.journal(end.turn)
    now, words = [1_000.0], list[str]()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    here, there = FarWatchers(words.append), FarWatchers(words.append)
    here.told("s", end.turn, "c", "unheard")
    assert not words, "nobody is told what nobody looks at"
    here.heard("s")
    returned = next(at for at, row in enumerate(rows) if row.kind == "ToolReturned")
    event = decode(rows[returned].kind, rows[returned].body)
    assert isinstance(event, ToolReturned)
    call = event.call
    for step in ("half of it", "too soon after that"):
        here.told("s", end.turn, call, step)
    (said,) = words
    assert not there.heard_of_tool(said.removeprefix(f"{TOOL}:")), "it is watched by nobody there"
    stored = Stored(rows, returned)
    far = there.turn(cast("Store", stored), end.turn)
    await far.look()
    before = far.mark
    assert there.heard_of_tool(said.removeprefix(f"{TOOL}:")) == "s"
    assert far.mark != before
    assert "half of it" in str(far.shown(0))
    stored.upto += 1
    await far.look()
    assert "half of it" not in str(far.shown(0))


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_what_a_reply_says_again_is_not_shown_when_its_turn_is_taken_over(tmp_path: Path, times: int) -> None:
    """That it is taken over is stored before anybody has judged what the broken call had said: until then it is seen as it was."""
    async with gateway(
        tmp_path, works_and_breaks, tools=[CountingTool("note", EffectClass.KEYED, tmp_path / "r")]
    ) as rig:
        end = await rig.say("go")
        rows = await rig.store.turns.journal(end.turn)
    found = next(at for at, row in enumerate(rows) if row.kind == "OverlapFound")
    upto = max(at for at, row in enumerate(rows[:found]) if row.kind == "TextArrived") + 1
    broken = rows[:upto]
    taken = [row_of(TakenOver(at=broken[-1].at, epoch=2 + number), upto + number) for number in range(times)]

    def shown(journal: list[JournalRow]) -> list[str]:
        turn = fold([(row.kind, row.body) for row in journal])
        return [one.text for one in view(turn, turn.phase_since).bubbles if one.kind is BubbleKind.PARTIAL]

    assert shown(broken) == shown([*broken, *taken])
    stored = Stored([*broken, *taken], upto)
    far = FarTurn(cast("Store", stored), end.turn)
    await far.look()
    for _ in taken:
        stored.upto += 1
        await far.look()
        assert far.turn is not None
        assert [
            one.text for one in view(far.turn, far.turn.phase_since).bubbles if one.kind is BubbleKind.PARTIAL
        ] == shown(broken)
