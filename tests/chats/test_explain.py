"""Every message of a run with faults has a story, and its ending agrees with the database."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import AsyncExitStack, closing
from datetime import UTC
from pathlib import Path

from agent_core.explain.why import MOST_LINES
from agent_core.failures.exits import ExitCode
from agent_core.ports import SystemClock
from agent_core.store.reading import open_reads
from gateway.explain.story import Explainer, ToldStory
from tests.chats.harness import answer, process, quiet, running, starting
from tests.chats.telegram_harness import TelegramHarness, Where, telegram_harness
from tests.chats.test_schedule import entry, put_back, scheduled
from tests.fakes.common import LoseAnswer, Reset
from tests.fakes.telegram import flood, server_error

MESSAGES, CHATS = 60, 2
"""However the kill divides them, somebody says more than may wait."""
WORDS = ("say", "say", "say", "down", "empty", "/status", "/steer say", "say")


async def test_every_message_of_a_run_with_faults_is_explained(tmp_path: Path):
    chance = random.Random(11)
    async with telegram_harness(tmp_path) as harness, AsyncExitStack() as stack:
        places = [(harness.private(p), p) for p in (harness.person(f"P{n}") for n in range(CHATS))]
        harness.fake.chaos(
            3, (0.03, server_error(500)), (0.05, LoseAnswer()), (0.02, flood(1)), (0.02, Reset()), method="sendMessage"
        )
        gateway = await stack.enter_async_context(process(harness, OUTSPOKEN_TELEGRAM__PER_MINUTE="8"))
        said: list[str] = []
        for number in range(MESSAGES):
            place, person = chance.choice(places)
            words = f"{chance.choice(WORDS)} private#{number}"
            said.append(f"{place.chat.id}:{harness.say(place, person, words)}")
            if number == MESSAGES // 2:
                await gateway.kill()
                gateway = await stack.enter_async_context(process(harness, OUTSPOKEN_TELEGRAM__PER_MINUTE="8"))
            await asyncio.sleep(0.02)
        (database,) = tmp_path.rglob("*.db")
        await _settled(database, set(said))
        await gateway.kill()
        found = await _explained(database, said)
        _agree(database, found)
        assert {"ended", "refused", "command"} <= {one.ending for one in found.values()}
        await _deliveries_too(database)


async def _settled(database: Path, said: set[str]) -> None:
    """Until all is stored, or nothing more comes: what is open then must be explained as well."""
    for _ in range(200):
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as conn:
            stored = {row[0] for row in conn.execute("SELECT platform_key FROM inbox")}
            (new,) = conn.execute("SELECT count(*) FROM inbox WHERE state = 'new'").fetchone()
            (running,) = conn.execute("SELECT count(*) FROM turns WHERE state = 'open'").fetchone()
        if said <= stored and not new and not running:
            return
        await asyncio.sleep(0.5)


async def _explained(database: Path, said: list[str]) -> dict[str, ToldStory]:
    found: dict[str, ToldStory] = {}
    async with open_reads(database) as reads:
        explainer = Explainer(reads, SystemClock().now_ms)
        for key in said:
            one = found[key] = await explainer.of(key)
            text = one.text(UTC)
            assert len(text.splitlines()) <= MOST_LINES, text
            assert "private#" not in text, text
    return found


def _agree(database: Path, found: dict[str, ToldStory]) -> None:
    """By plain SQL, beside everything that made the stories."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as conn:
        rows = conn.execute(
            "SELECT i.platform_key, i.lane, i.state, i.reason, i.turn, t.exit, i.id FROM inbox i "
            "LEFT JOIN turns t ON t.turn = i.turn"
        ).fetchall()
        receipts = conn.execute(
            "SELECT origin, platform_id FROM deliveries WHERE state = 'sent' AND platform_id IS NOT NULL AND NOT gone"
        ).fetchall()
    by_key = {row[0]: row[1:] for row in rows}
    assert found.keys() <= by_key.keys()
    for key, one in found.items():
        lane, state, reason, turn, exit_, number = by_key[key]
        text = one.text(UTC)
        if lane == "refused":
            assert (one.ending, reason) == ("refused", "too many messages"), text
        elif lane == "command":
            assert one.ending == ("command" if state == "done" else "waiting"), text
        elif turn is None:
            assert one.ending in {"new": ("waiting",), "dropped": ("dropped",), "done": ("steered",)}[state], text
        else:
            assert (one.turn, one.exit, one.ending) == (turn, exit_ or "", "ended" if exit_ else "running"), text
            assert (exit_ is None) or ("The turn was answered." in text) is (exit_ == ExitCode.ANSWERED.value), text
        mine = [str(pid) for origin, pid in receipts if origin in (turn, f"inbox:{number}")]
        assert len(mine) > 2 or all(f"as message {pid} " in text for pid in mine), (mine, text)


async def _deliveries_too(database: Path) -> None:
    """What the bot wrote leads back to what it belongs to."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as conn:
        keys = conn.execute("SELECT key, origin FROM deliveries ORDER BY random() LIMIT 60").fetchall()
    async with open_reads(database) as reads:
        explainer = Explainer(reads, SystemClock().now_ms)
        for key, origin in keys:
            one = await explainer.of(key)
            assert origin in (
                one.turn,
                f"inbox:{one.id}",
                f"queue:{one.id}",
                f"held:{one.id}",
            ) or f"number {origin.split(':')[1]}," in one.text(UTC)


async def test_what_a_schedule_makes_happen_is_explained_whole(tmp_path: Path):
    hour = 3_600_000
    async with telegram_harness(tmp_path) as harness:
        ada = harness.person("Ada")
        place = harness.private(ada)
        settings = {"OUTSPOKEN_SCHEDULE__ENTRIES": entry(f"telegram/{ada.id}")}
        async with running(harness, **settings):
            harness.command(place, ada, "remind", "in 3 hours tea")
            await answer(harness, place, "tea", 30)
            await scheduled(harness, "config:morning")
        put_back(harness, "remind:%", 10 * hour)
        put_back(harness, "config:morning", 5 * hour)
        async with running(harness, **settings):
            await answer(harness, place, "Reminder: tea", 30)
            await answer(harness, place, "good morning", 30)
            await quiet(harness, place)
        said = harness.seen(place)
        (database,) = tmp_path.rglob("*.db")
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as conn:
            rows = conn.execute("SELECT id, platform_key FROM inbox WHERE platform_key LIKE 'schedule%'").fetchall()
            schedules = dict(conn.execute("SELECT schedule, state FROM schedules").fetchall())
        stories: dict[str, str] = {}
        async with open_reads(database) as reads:
            explainer = Explainer(reads, SystemClock().now_ms)
            for number, key in rows:
                one = await explainer.of(str(number))
                kind, name = key.split(":")[:2]
                text = one.text(UTC)
                assert "tea" not in text, text
                assert "say good" not in text, text
                stories[f"{kind} {name} {'missed' if 'missed' in text else 'run'}"] = text
            whole = {name: (await explainer.of(name)).text(UTC) for name in schedules}
    reminder = stories["schedule remind run"]
    assert "had been due for 7 h" in reminder
    assert "The chat was reminded at once" in reminder
    shown = next(one.id for one in said if "Reminder: tea" in one.text)
    assert f"as message {shown} " in reminder
    missed = stories["schedule config missed"]
    assert "had been missed 4 times, the first time" in missed
    assert "the chat was told that it was missed" in missed
    due, prompt = stories["schedule config run"], stories["scheduled config run"]
    assert "it led to message" in due
    assert "no person wrote it" in prompt
    assert "it came of message" in prompt
    assert "The turn was answered." in prompt
    assert "It ran (message" in next(v for k, v in whole.items() if k.startswith("remind:"))
    morning = whole["config:morning"]
    assert "It had been missed 4 times, which was told" in morning
    assert "It is due next." in morning


async def test_a_message_that_never_came_tells_of_the_adapter(tmp_path: Path):
    async with telegram_harness(tmp_path) as harness:
        ada = harness.person("Ada")
        place = harness.private(ada)
        async with running(harness):
            harness.say(place, ada, "say hello")
            await harness.until(lambda: any(one.mine for one in harness.seen(place)), 30)
        (database,) = tmp_path.rglob("*.db")
        stopped = await _at(harness, place, database)
        assert "never arrived" not in stopped
        async with starting(harness, **harness.wrong_token()):
            await harness.until(lambda: _states(database)[-1:] == ["needs a person"], 30)
        assert _states(database) == ["starting", "up", "stopped", "starting", "needs a person", "stopped"]


def _states(database: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as conn:
        return [row[0] for row in conn.execute("SELECT state FROM adapter_states ORDER BY at")]


async def _at(harness: TelegramHarness, place: Where, database: Path) -> str:
    async with open_reads(database) as reads:
        explainer = Explainer(reads, SystemClock().now_ms)
        hour = 3_600_000
        never = await explainer.chat_at(f"telegram/{place.chat.id}", SystemClock().now_ms() - hour)
        assert not never.found
        assert "No message from" in never.text(UTC)
        came = await explainer.chat_at(f"telegram/{place.chat.id}", SystemClock().now_ms())
        return came.ending
