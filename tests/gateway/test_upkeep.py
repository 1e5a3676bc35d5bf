"""What is old goes, and is said to be gone; what is still needed stays."""

from __future__ import annotations

import asyncio
import base64
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from agent_core.limits.reckoning import Reckoning
from agent_core.limits.retention import DAY_MS, Keep
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock, SystemIds
from agent_core.store import tables as t
from agent_core.store.keeping import retaining
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import open_store
from agent_core.tools.files.trees import below
from gateway.explain.story import why
from gateway.retention.upkeep import FilePlaces, Tally, Upkeep
from tests.deepfolders import dig
from tests.gateway.rig import Rig, chunk, gateway
from tests.storage.harm import damage

CANARY = "tangerine-lighthouse"
DAY = DAY_MS / 1000


async def echo(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    await response.write(chunk({"content": f"There are {len(messages)} messages."}))
    await response.write(chunk({}, "stop"))


class Ahead(SystemClock):
    """The machine's clock, some days ahead, as if so much time had passed."""

    def __init__(self, days: float) -> None:
        super().__init__()
        self.days = days

    def now_ms(self) -> int:
        return super().now_ms() + round(self.days * DAY_MS)


def upkeep(rig: Rig, folder: Path, days: float, keep: Keep | None = None, told: int = 50) -> Upkeep:
    """An upkeep to which so many days have passed, by a clock that nobody doubts."""
    made = Upkeep(rig.store, Ahead(days), keep or Keep(), FilePlaces(folder / "workspaces", folder / "outbox"), told)
    made.forget = rig.hub.queues.forget_memories
    made._reckoning = Reckoning(Ahead(days).now_ms())
    made._began = made._seen = made.clock.monotonic()
    return made


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("db*"))


async def turns_of(rig: Rig, session: str) -> list[Any]:
    found = await rig.store.sessions.by_key(rig.inbound("", session=session).session.text())
    assert found is not None
    return await rig.store.turns.latest(found.session, 100)


async def ended(rig: Rig, folder: Path, days: float, **more: Any) -> Any:
    clock = Ahead(days)
    rig.store.writing.clock = clock
    return await upkeep(rig, folder, days, **more).look()


async def test_old_journals_go_with_their_words_and_are_said_to_be_gone(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        for number in range(3):
            await rig.say(f"{number} {CANARY}", session="old")
        young = await turns_of(rig, "old")
        tally = await ended(rig, tmp_path, 89)
        assert (tally.messages, tally.journals) == (2, 0)
        tally = await ended(rig, tmp_path, 91)
        assert tally.journals == 3
        assert tally.database_bytes > 0
        assert all(
            row.removed == "no longer kept: [retention] journals_days = 90" for row in await turns_of(rig, "old")
        )
        assert await rig.store.turns.journal(young[0].turn) == []
        story = "\n".join(await why(rig.store, young[0].turn, Ahead(91).now_ms))
        assert "no longer kept: [retention] journals_days = 90" in story
        follower = rig.hub.follow_session(rig.inbound("", session="old").session)
        async with follower as page:
            shown = await page.next(5)
        assert shown is not None
        assert "no longer kept: [retention] journals_days = 90" in shown[0].view.text
        assert (await rig.say("again", session="old")).view.text == "There are 2 messages."
        assert (await ended(rig, tmp_path, 89)).journals == 0


async def seen(rig: Rig, session: str) -> list[tuple[str, str]]:
    """What somebody who opens the page of a session is shown: what was said, and what came of it."""
    async with rig.hub.follow_session(rig.inbound("", session=session).session) as page:
        shown = await page.next(5)
    assert shown is not None
    return [(one.person, one.view.text) for one in sorted(shown, key=lambda sight: sight.order)]


async def test_the_page_shows_what_the_journal_has_when_messages_as_they_came_are_gone(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        for number in range(6):
            await rig.say(f"{number}", session="page")
        await rig.say("only", session="quiet")
        await rig.say("another", session="other")
        before = await seen(rig, "page"), await seen(rig, "quiet")
        assert [said for said, _ in before[0]] == list("012345")
        rows = await turns_of(rig, "page")

        def age(conn: Any) -> None:
            old = t.inbox.c.id <= 3
            conn.execute(t.inbox.update().where(old).values(received_at=t.inbox.c.received_at - 12 * DAY_MS))
            kept = t.turns.c.turn != rows[0].turn
            conn.execute(t.turns.update().where(~kept).values(closed_at=t.turns.c.closed_at - 100 * DAY_MS, undone=1))

        await rig.store.keeping.remove(age)
        tally = await ended(rig, tmp_path, 0)
        assert (tally.messages, tally.journals) == (3, 1)
        page = await seen(rig, "page")
        assert page == [("", "Older messages are no longer kept: [retention] journals_days = 90."), *before[0][1:]]
        assert await seen(rig, "page") == page, "the same when it is opened again"
        assert (await ended(rig, tmp_path, 12)).messages == 4
        assert await seen(rig, "page") == page
        assert await seen(rig, "quiet") == before[1]
        await ended(rig, tmp_path, 120)
        gone = [("", "Older messages are no longer kept: [retention] journals_days = 90.")]
        assert await seen(rig, "quiet") == gone


async def test_what_the_model_is_still_told_stays_in_a_conversation_that_goes_on(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo, history_turns=3) as rig:
        for number in range(6):
            await rig.say(f"{number}", session="living")
            await rig.say(f"{number}", session="idle")
        rows = await turns_of(rig, "living")
        await rig.store.sessions.change(*(await _owner(rig, "living")), SessionChange(undo=rows[5].turn))

        def age(conn: Any) -> None:
            conn.execute(t.turns.update().values(closed_at=t.turns.c.closed_at - 100 * DAY_MS))
            idle = t.sessions.c.key.like("%idle%")
            conn.execute(t.sessions.update().where(idle).values(last_at=t.sessions.c.last_at - 100 * DAY_MS))

        await rig.store.keeping.remove(age)
        tally = await ended(rig, tmp_path, 0, told=3)
        assert [bool(row.removed) for row in await turns_of(rig, "living")] == [True, True, False, False, False, True]
        assert all(row.removed for row in await turns_of(rig, "idle"))
        assert tally.journals == 9
        assert (await rig.say("go on", session="living")).view.text == "There are 8 messages."


async def _owner(rig: Rig, session: str) -> tuple[str, int]:
    found = await rig.store.sessions.by_key(rig.inbound("", session=session).session.text())
    assert found is not None
    return found.session, found.epoch


async def test_a_picture_goes_before_the_words_around_it_unless_it_is_still_shown(tmp_path: Path) -> None:
    picture = "data:image/png;base64," + base64.b64encode(random.Random(1).randbytes(60_000)).decode()
    look: Any = [{"type": "text", "text": CANARY}, {"type": "image_url", "image_url": {"url": picture}}]
    async with gateway(tmp_path, echo) as rig:
        await rig.say("", session="chat", input=(InputMessage(look),))

        def age(conn: Any) -> None:
            conn.execute(t.pieces.update().values(at=t.pieces.c.at - 31 * DAY_MS))

        await rig.store.keeping.remove(age)
        assert (await ended(rig, tmp_path, 29)).files == 0, "somebody spoke here 29 days ago"
        assert (await ended(rig, tmp_path, 31)).files == 1
        [row] = await turns_of(rig, "chat")
        body = (await rig.store.turns.journal(row.turn))[0].body
        assert CANARY.encode() in body
        assert b"[no longer kept]" in body
        rig.hub.queues.forget_memory(rig.inbound("", session="chat").session.text())
        await rig.say("and now?", session="chat")
        told = rig.model.requests[-1]["messages"][1]["content"]
        assert told == [look[0], {"type": "text", "text": "[image_url: no longer kept]"}]
        again = await rig.say("", session="other", input=(InputMessage(look),))
        assert again.view.text
        assert (await rig.store.turns.journal(row.turn))[0].body.count(picture.encode()) == 1


async def test_folders_that_nobody_uses_go_and_those_in_use_stay(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        root = tmp_path / "workspaces"
        for name in ("old", "touched", "deep", ".nameless"):
            (root / name / "inner").mkdir(parents=True)
            (root / name / "inner" / "file").write_text(CANARY)
        past = SystemClock().now_ms() / 1000 - 200 * DAY
        for path in [*root.rglob("*")]:
            os.utime(path, (past, past))
        (root / "deep" / "inner" / "file").write_text("new")
        os.utime(root / "touched")
        tally = await ended(rig, tmp_path, 0)
        assert tally.workspaces == 1
        assert sorted(path.name for path in root.iterdir()) == [".nameless", "deep", "touched"]
        assert tally.workspaces_bytes == 2 * len(CANARY) + 3


async def test_a_folder_that_nobody_uses_goes_however_deep_it_is(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        root = tmp_path / "workspaces"
        (root / "old").mkdir(parents=True)
        dig(root / "old")
        past = SystemClock().now_ms() / 1000 - 200 * DAY
        for one in below(root):
            os.utime(one.name, (past, past), dir_fd=one.folder)
        tally = await ended(rig, tmp_path, 0)
        assert tally.workspaces == 1
        assert list(root.iterdir()) == []


async def test_what_a_killed_process_left_of_a_file_goes_and_the_folder_is_used_no_later(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        inner = tmp_path / "workspaces" / "somebodys" / "inner"
        inner.mkdir(parents=True)
        past = SystemClock().now_ms() / 1000 - 2 * DAY
        for name in (".0123456789abcdef.part", "mine.part", "file"):
            (inner / name).write_text("x")
            os.utime(inner / name, (past, past))
        (inner / ".fedcba9876543210.part").write_text("is being written")
        os.utime(inner, (past, past))
        await ended(rig, tmp_path, 0)
        assert sorted(path.name for path in inner.iterdir()) == [".fedcba9876543210.part", "file", "mine.part"]
        assert inner.stat().st_mtime == pytest.approx(past)


def jumped(rig: Rig, folder: Path, clock: Ahead, keep: Keep | None = None) -> Upkeep:
    """The upkeep of a gateway that has just been started with this clock."""
    rig.store.writing.clock = clock
    return Upkeep(rig.store, clock, keep or Keep(), FilePlaces(folder / "workspaces"), 50)


@pytest.mark.parametrize("marked", [True, False], ids=["what time it was is stored", "stored by an earlier version"])
async def test_a_clock_far_ahead_removes_nothing_though_somebody_writes(tmp_path: Path, marked: bool) -> None:
    async with gateway(tmp_path, echo) as rig:
        for number in range(3):
            await rig.say("hello", session=f"s{number}")
        if marked:
            await jumped(rig, tmp_path, Ahead(0)).look()
        else:
            await rig.store.keeping.remove(lambda conn: conn.execute(t.memory.delete()))
    for _ in range(2):
        async with gateway(tmp_path, echo) as rig:
            clock = Ahead(4000)
            rig.hub._clock = rig.store.writing.clock = clock
            if not marked:
                await rig.store.keeping.remove(lambda conn: conn.execute(t.memory.delete()))
                started = t.nodes.update().where(t.nodes.c.node == rig.store.node).values(started_at=clock.now_ms())
                await rig.store.keeping.remove(lambda conn, do=started: conn.execute(do))
            await rig.say("stored after the jump", session="new")
            tally = await jumped(rig, tmp_path, clock).look()
            assert tally.doubted
            assert (tally.journals, tally.messages, tally.records) == (0, 0, 0)
            marked = True


async def test_a_leap_is_believed_when_gateways_have_run_for_a_day_since_not_before(tmp_path: Path) -> None:
    class Running(Ahead):
        ran = 0.0

        def monotonic(self) -> float:
            return self.ran

        def now_ms(self) -> int:
            return super().now_ms() + round(self.ran * 1000)

    async with gateway(tmp_path, echo) as rig:
        for number in range(3):
            await rig.say("hello", session=f"s{number}")
        await jumped(rig, tmp_path, Ahead(0)).look()
    gone: list[tuple[int, bool]] = []
    clock = Running(100)
    for _ in range(5):
        # Without a gateway, whose own upkeep would note what another clock shows.
        async with open_store(tmp_path / "db", clock=clock, ids=SystemIds(clock), version="test") as store:
            one = Upkeep(store, clock, Keep(), FilePlaces(tmp_path / "workspaces"), 50)
            await one.look()
            clock.ran += 6.5 * 3600
            tally = await one.look()
            gone.append((tally.journals, tally.doubted))
    assert gone == [(0, True), (0, True), (0, True), (3, False), (0, False)]


async def test_records_of_conversations_that_are_over_go_last(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        for number in range(4):
            await rig.say(f"{number}", session=f"s{number}")
        await rig.say("stay", session="stays")
        await rig.store.sessions.change(*(await _owner(rig, "stays")), SessionChange(policy="{}"))
        await ended(rig, tmp_path, 100)
        assert (await ended(rig, tmp_path, 399)).records == 0
        tally = await ended(rig, tmp_path, 500)
        assert tally.records >= 3  # the last message stays, and with it its conversation
        assert len(await turns_of(rig, "stays")) == 1
        assert (await rig.say("hello again", session="s0")).view.text == "There are 2 messages."


async def test_what_a_clock_that_ran_ahead_may_have_stamped_too_early_is_kept_whatever_it_is(tmp_path: Path) -> None:
    def doubted() -> Upkeep:
        one = upkeep(rig, tmp_path, 500)
        now = one.clock.now_ms()
        one._reckoning = Reckoning(now, leaps=((0, now),))
        return one

    def gone(tally: Tally) -> list[bool]:
        counts = (tally.journals, tally.messages, tally.workspaces, tally.spooled, tally.records)
        return [count > 0 for count in counts]

    async with gateway(tmp_path, echo) as rig:
        rig.store.writing.clock = Ahead(500)
        for number in range(2):
            await rig.say(f"{number}", session=f"s{number}")
        for folder in ("workspaces", "outbox"):
            (tmp_path / folder / "left").mkdir(parents=True)
        assert gone(await doubted().look()) == [False] * 5
        assert gone(await upkeep(rig, tmp_path, 500, Keep(records_days=0)).look()) == [True] * 4 + [False]
        assert gone(await doubted().look()) == [False] * 5
        assert (await upkeep(rig, tmp_path, 500).look()).records > 0


async def test_what_cannot_be_read_of_one_kind_keeps_no_other_from_being_removed(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        for number in range(3):
            await rig.say(f"{number} {CANARY} " * 40, session=f"s{number}")
    assert damage(tmp_path / "db", "inbox")
    folder = tmp_path / "workspaces" / "left"
    folder.mkdir(parents=True)
    clock = Ahead(500)
    async with open_store(tmp_path / "db", clock=clock, ids=SystemIds(clock), version="test") as store:
        one = Upkeep(store, clock, Keep(), FilePlaces(tmp_path / "workspaces"), 50)
        one._reckoning = Reckoning(clock.now_ms())
        one._began = one._seen = clock.monotonic()
        with capture_logs() as said:
            tally = await one.look()
        assert (tally.journals, tally.workspaces) == (3, 1)
        assert {line["event"] for line in said if line["log_level"] != "info"} >= {"upkeep.not_done"}
    assert not folder.exists()


async def test_the_room_of_what_was_removed_goes_back_to_the_disk(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        words = [random.Random(n).randbytes(100_000).hex() for n in range(10)]
        for number, one in enumerate(words):
            await rig.say(one, session=f"s{number}")
        before = await rig.store.retaining.database_bytes()
        tally = await ended(rig, tmp_path, 100)
        assert tally.journals == 10
        assert tally.database_bytes < before / 3
    assert (tmp_path / "db").stat().st_size < before / 3


async def test_turns_go_on_while_much_is_removed(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        for number in range(30):
            await rig.say(f"{number}", session=f"s{number}")
        removing = asyncio.create_task(ended(rig, tmp_path, 100, keep=replace(Keep(), journals_days=30)))
        said = [await rig.say("meanwhile", session="now") for _ in range(3)]
        assert [one.view.text for one in said] == [f"There are {n} messages." for n in (2, 4, 6)]
        assert (await removing).journals >= 30


async def test_room_goes_back_many_pages_at_a_time(tmp_path: Path) -> None:
    """One page a transaction takes hours where a year's pictures go."""
    async with gateway(tmp_path, echo) as rig:
        await rig.say(random.Random(1).randbytes(300_000).hex(), session="large")

        def drop(conn: Any) -> int:
            conn.execute(t.pieces.delete())
            return int(conn.exec_driver_sql("PRAGMA page_count").scalar_one())

        before = await rig.store.keeping.remove(drop)
        counts = [0]
        while freed := (await rig.store.keeping.remove_some(retaining.give_back)).count:
            counts.append(freed)
        after = await rig.store.keeping.remove(lambda conn: int(conn.exec_driver_sql("PRAGMA page_count").scalar_one()))
        assert before - after >= 250
        assert max(counts) > 20
        assert sum(counts) <= before - after + len(counts)


async def test_a_look_that_removes_nothing_leaves_what_is_kept_of_conversations(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        for number in range(2):
            await rig.say(f"hello {number}", session="kept")
        key, pasts = rig.inbound("", session="kept").session.text(), rig.hub.queues.pasts
        async with asyncio.timeout(10):
            while pasts.whose(key) is None:
                await asyncio.sleep(0.01)
        assert not (await ended(rig, tmp_path, 0)).removed
        assert pasts.whose(key) is not None
        assert (await ended(rig, tmp_path, 91)).removed
        assert pasts.whose(key) is None
