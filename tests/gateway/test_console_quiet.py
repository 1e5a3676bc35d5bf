"""What an open console costs while nothing happens, counted: statements, sections and bytes. The clock is moved by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from adapters.contract.chat import AdapterSight
from agent_core.bell import Bell
from agent_core.limits.budgets import BudgetRules, window
from agent_core.limits.spend import Budget
from agent_core.text.redaction import Redactor
from gateway.console import looking, turns
from gateway.console.looking import DAYS, FRESH_SECONDS, QUIET_SECONDS, Board, Sources
from gateway.console.naming import Names
from gateway.console.streams import KEEP_ALIVE_SECONDS, Streams
from gateway.console.turns import ConsoleTurns
from gateway.delivery.outbox import Outbox
from tests.asked import asked_here
from tests.gateway.rig import Rig, chunk, gateway
from tests.statements import told_of
from tests.steps import fill
from tests.store.support import FakeClock

NOON = 1_800_014_400_000
"""In the middle of an hour's window and a day's."""


class Table:
    """A console beside a gateway; its time goes on only while it waits, and by all of what it may wait unless its bell has rung."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.clock = rig, FakeClock(NOON)
        self.sights: list[AdapterSight] = []
        self.waits: list[float] = []
        outbox, redactor = Outbox(rig.store, self.clock, 1), Redactor.of([])
        names = Names(rig.store)
        sources = Sources(
            rig.store, rig.hub, outbox, lambda: self.sights, BudgetRules(), self.clock, redactor, "test", names
        )
        self.board = Board(sources, self.pace)
        self.turns = ConsoleTurns(rig.store, rig.hub, self.clock, redactor, names, self.pace)
        self.streams = Streams(self.board, self.turns, self.clock)

    async def pace(self, bell: Bell, least: float, most: float) -> None:
        self.waits.append(least if await bell.wait(0) else most)
        self.clock.now += round(self.waits[-1] * 1000)

    async def minute(self, events: AsyncGenerator[bytes]) -> list[tuple[str, dict[str, Any]]]:
        """What is sent within a minute."""
        until = self.clock.now + 60_000
        sent: list[tuple[str, dict[str, Any]]] = []
        while self.clock.now < until:
            sent.append(parsed(await anext(events)))
        return sent


def parsed(event: bytes) -> tuple[str, dict[str, Any]]:
    name, _, data = event.decode().strip().partition("\n")
    return name.removeprefix("event: "), orjson.loads(data.removeprefix("data: "))


async def answers(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    del messages, request
    await response.write(chunk({"content": "hello"}))
    await response.write(chunk({}, "stop"))


@asynccontextmanager
async def table(folder: Path) -> AsyncGenerator[Table]:
    async with gateway(folder, answers) as rig:
        for number in range(3):
            await rig.say("hello", session=f"s{number}")
        yield Table(rig)


async def test_a_quiet_minute_asks_the_database_once_and_draws_nothing(tmp_path: Path, figure: Callable[[str], None]):
    async with table(tmp_path) as at, aclosing(at.streams.live()) as events:
        with asked_here() as first:
            _, whole = parsed(await anext(events))
        assert whole["turns"]["ended"]
        at.waits.clear()
        with asked_here() as asked:
            sent = await at.minute(events)
        assert len(asked) <= len(first)  # by the net, which is there for what cannot happen
        assert len(sent) <= 60 / KEEP_ALIVE_SECONDS + 1
        assert {name for _, data in sent for name in data} == {"now"}  # signs of life
        assert len(at.waits) <= (60 + KEEP_ALIVE_SECONDS) / QUIET_SECONDS + 1
        figure(f"console: a quiet minute has {len(asked)} statements, {len(sent)} signs of life of 35 bytes, no redraw")


async def test_whatever_is_committed_is_looked_at_in_the_next_step(tmp_path: Path):
    async with table(tmp_path) as at, aclosing(at.streams.live()) as events:
        await anext(events)
        await anext(events)
        before = at.clock.now
        await at.rig.say("hello", session="another")
        _, data = parsed(await anext(events))
        assert at.clock.now - before <= FRESH_SECONDS * 1000
        assert "another" in data["turns"]["ended"][0]["place"]
        assert {"turns", "sessions", "spend", "exits", "now"} >= data.keys()
        with asked_here() as asked:
            assert {name for _, data in await at.minute(events) for name in data} == {"now"}
        assert len(asked) <= 2 * 15


async def test_what_is_not_stored_is_looked_at_every_second_without_a_statement(tmp_path: Path):
    async with table(tmp_path) as at, aclosing(at.streams.live()) as events:
        await anext(events)
        with asked_here() as asked:
            for state in ("up", "reconnecting", "up"):
                at.sights = [AdapterSight("telegram/1", state, "")]
                before = at.clock.now
                _, data = parsed(await anext(events))
                assert data["adapters"][0]["state"] == state
                assert at.clock.now - before <= QUIET_SECONDS * 1000
        assert asked == []


async def test_a_new_day_is_there_within_a_second_of_its_beginning(tmp_path: Path):
    async with table(tmp_path) as at, aclosing(at.streams.live()) as events:
        at.clock.now = NOON + 12 * 3600_000 - 2000
        day = parsed(await anext(events))[1]["exits"]["days"][-1]["day"]
        later = day
        while later == day and at.clock.now < NOON + 12 * 3600_000 + QUIET_SECONDS * 1000:
            _, data = parsed(await anext(events))
            later = data["exits"]["days"][-1]["day"] if "exits" in data else day
        assert later > day


async def test_a_day_that_is_over_is_counted_once(tmp_path: Path):
    async with table(tmp_path) as at, aclosing(at.streams.live()) as events:
        ended = (await at.rig.store.overview.turns(1))[0].closed_at
        assert ended is not None
        at.clock.now = ended + 36 * 3600_000
        counted: list[int] = []

        def note(statement: str, values: Any) -> None:
            if "GROUP BY anon_1.exit" in statement:
                counted.append(values[2])  # from when on

        day, _ = window(Budget.DAY, ended, BudgetRules().zone)
        with told_of(note):
            await anext(events)
            assert day in counted
            counted.clear()
            await at.minute(events)
            await at.minute(events)
        assert counted  # the days in which nothing ended, and today
        assert day not in counted


async def test_a_turn_that_is_open_on_the_page_and_does_nothing_costs_no_statement(tmp_path: Path):
    async with table(tmp_path) as at:
        turn = (await at.rig.store.overview.turns(1))[0].turn
        seen = await at.turns.look(turn, None)
        assert seen is not None
        async with aclosing(at.streams.turn(turn, seen)) as events:
            await anext(events)
            with asked_here() as asked:
                sent = await at.minute(events)
            assert len(asked) <= 15
            assert len({orjson.dumps(data) for _, data in sent}) == 1


async def test_of_a_turn_the_latest_lines_are_shown_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with table(tmp_path) as at:
        turn = (await at.rig.store.overview.turns(1))[0].turn
        whole: Any = await at.turns.look(turn, None)
        story, lines = whole.body["story"], whole.body["timeline"]
        secret = max(" ".join(story).split(), key=len)
        assert len(lines) > 2
        assert whole.body["left_out"] == 0
        monkeypatch.setattr(turns, "MOST_LINES", 2)
        redactor = Redactor.of([secret])
        looks = ConsoleTurns(at.rig.store, at.rig.hub, at.clock, redactor, Names(at.rig.store), at.pace)
        seen: Any = await looks.look(turn, None)
        assert (seen.body["timeline"], seen.body["left_out"]) == (lines[-2:], len(lines) - 2)
        assert secret not in " ".join(seen.body["story"])
        assert len(seen.body["story"]) == len(story)


async def test_a_storage_that_goes_away_is_told_and_its_return_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with table(tmp_path) as at, aclosing(at.streams.live()) as events:
        await anext(events)

        async def away(_: object) -> object:
            raise OSError("gone")

        with monkeypatch.context() as gone:
            gone.setattr(at.rig.store.asks.readers, "run", away)
            at.rig.store.changes.note()  # a write failed
            name, data = parsed(await anext(events))
            assert (name, "cannot be read" in data["words"]) == ("trouble", True)
        name, _ = parsed(await anext(events))
        assert name == "sections"


async def test_a_look_goes_through_no_more_than_some_turns_and_the_days_come_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(looking, "TURNS_A_LOOK", 4)
    day = 24 * 3600_000
    async with table(tmp_path) as at:
        old: list[dict[str, object]] = [
            {"turn": f"t_{n:05}", "session": (await at.rig.store.overview.turns(1))[0].session, "number": 100 + n, "state": "closed", "exit": "answered",
             "opened_at": NOON - n // 5 * day - 2, "closed_at": NOON - n // 5 * day - 1, "deadline": 0, "first_message": 0, "last_message": 0}
            for n in range(5 * DAYS)
        ]  # fmt: skip
        fill(tmp_path / "db", "turns", old)
        async with aclosing(at.streams.live()) as events:
            with asked_here() as first:
                _, seen = parsed(await anext(events))
            assert [len(seen[name]["days"]) for name in ("exits", "trends")] == [2, 2]
            assert not any("anon_1.people" in one for one in first)  # who spent is asked of all days together
            for count in range(3, DAYS + 1):
                seen |= parsed(await anext(events))[1]
                assert [len(seen[name]["days"]) for name in ("exits", "trends")] == [count, count]
            days = seen["exits"]["days"]
            assert [one["counts"].get("answered", 0) for one in days] == [5] * DAYS
            assert days == sorted(days, key=lambda one: one["day"])
            with asked_here() as asked:
                await at.minute(events)
            assert len(asked) <= len(first) + 2 * DAYS
