"""Reminders, scheduled prompts and an operator's messages, on every platform, and over kills."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.contract.base import FromChat, SessionKey
from adapters.terminal.ask import GatewayRefused
from adapters.terminal.operator import Remote, delivery_settled, status_lines
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.schedules.access import Schedules
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.store import Damaged, open_store
from gateway.chats.commandintake import CommandIntake
from gateway.chats.scheduler import RETRY_SECONDS
from gateway.config.reading import ConfigError
from gateway.queues.inbox import encode as encode_inbound
from gateway.schedule.schedules import claimed as claimed_now
from gateway.schedule.schedules import decide, encode_happening, key_of
from gateway.schedule.schedules import decode as decode_plan
from tests.chats.harness import Harness, Leaves, answer, answers, process, quiet, running, status, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.chats.test_operator import outspoken
from tests.fakes.telegram import server_error
from tests.ports import free_port

HOUR_MS = 3_600_000


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


def database(harness: Harness, *statements: tuple[str, tuple[Any, ...]]) -> list[Any]:
    """Run statements while no gateway does; the rows of the last one."""
    rows: list[Any] = []
    with closing(sqlite3.connect(harness.folder / "outspoken.db")) as conn, conn:
        for words, values in statements:
            rows = conn.execute(words, values).fetchall()
    return rows


def put_back(harness: Harness, schedule: str, milliseconds: int) -> None:
    """As if the gateway had been away for so long."""
    words = "UPDATE schedules SET next_at = next_at - ?, done_to = 0 WHERE schedule LIKE ?"
    database(harness, (words, (milliseconds, schedule)))


# ---------------------------------------------------------------------- reminders


async def test_a_reminder_comes_once_to_the_chat_that_asked_and_names_the_zone(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_SCHEDULE__TIMEZONE="Europe/Berlin"):
        platform.command(chat, ada, "remind", "in 2 seconds tea")
        told = await answer(platform, chat, "I will remind you")
        assert "(Europe/Berlin)" in told.text
        assert "tea" in told.text
        assert not any("Reminder: tea" in text for text in texts(platform, chat))
        await answer(platform, chat, "Reminder: tea")
        await quiet(platform, chat)
        assert sum("Reminder: tea" in text for text in texts(platform, chat)) == 1
        assert platform.model.requests == []


async def test_reminders_are_listed_and_taken_back(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, OUTSPOKEN_SCHEDULE__TIMEZONE="UTC"):
        platform.command(chat, ada, "remind", "in 3 hours tea")
        await answer(platform, chat, "remind cancel 1")
        platform.command(chat, ada, "remind", "every weekday 9:00 stand-up")
        await answer(platform, chat, "Reminder 2")
        platform.command(chat, ada, "remind", "")
        listed = await answer(platform, chat, "2. ")
        assert "stand-up" in listed.text
        platform.command(chat, ada, "remind", "cancel 1")
        await answer(platform, chat, "taken back")
        platform.command(chat, ada, "remind", "cancel 9")
        await answer(platform, chat, "no reminder 9")
        platform.command(chat, ada, "remind", "list")
        await platform.until(lambda: sum("remind cancel NUMBER" in text for text in texts(platform, chat)) == 2)
        left = [text for text in texts(platform, chat) if "remind cancel NUMBER" in text][-1]
        assert "stand-up" in left
        assert "tea" not in left


async def test_what_is_not_understood_is_answered_with_examples(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.command(chat, ada, "remind", "whenever you like")
        told = await answer(telegram, chat, "do not understand")
        assert "/remind in 20 minutes tea" in told.text


async def test_a_reminder_that_is_late_says_so_and_the_rest_is_one_line(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.command(chat, ada, "remind", "in 3 hours tea")
        telegram.command(chat, ada, "remind", "every hour stretch")
        await answer(telegram, chat, "stretch")
        await answer(telegram, chat, "tea")
    put_back(telegram, "remind:%", 10 * HOUR_MS)
    async with running(telegram):
        late = await answer(telegram, chat, "Reminder: tea")
        assert "7 h late" in late.text
        missed = await answer(telegram, chat, "Missed: “stretch”")
        assert "9 times" in missed.text
        await answer(telegram, chat, "Reminder: stretch")
        await quiet(telegram, chat)
        assert len(answers(telegram, chat)) == 2 + 3


# ---------------------------------------------------------------------- prompts


def entry(chat: str, **more: Any) -> str:
    """Settings with one prompt an hour for a chat, half an hour away from now: no test runs over such a moment."""
    minute = (datetime.now(UTC).minute + 30) % 60
    return json.dumps(
        [{"name": "morning", "prompt": "say good morning", "chat": chat, "cron": f"{minute} * * * *", **more}]
    )


async def test_a_schedule_that_cannot_be_read_is_set_aside_and_those_behind_it_go_on(telegram: TelegramHarness) -> None:
    ada, ben = telegram.person("Ada"), telegram.person("Ben")
    hers, his = telegram.private(ada), telegram.private(ben)
    async with running(telegram):
        telegram.command(hers, ada, "remind", "in 3 hours tea")
        await answer(telegram, hers, "tea")
        telegram.command(his, ben, "remind", "in 3 hours coffee")
        await answer(telegram, his, "coffee")
    put_back(telegram, "remind:%", 10 * HOUR_MS)
    ((lost,),) = database(telegram, ("SELECT schedule FROM schedules ORDER BY next_at LIMIT 1", ()))
    database(telegram, ("UPDATE schedules SET body = x'00ff' WHERE schedule = ?", (lost,)))
    async with running(telegram, Leaves.DAMAGED) as up:
        await answer(telegram, his, "Reminder: coffee")
        aside = (await status(up.url))["schedules_set_aside"]
        assert [one["schedule"] for one in aside] == [lost]
        assert any(lost in line for line in status_lines(await status(up.url)))


async def test_a_schedule_whose_rows_are_damaged_is_tried_once_told_of_and_holds_up_no_other(
    telegram: TelegramHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, ben = telegram.person("Ada"), telegram.person("Ben")
    hers, his = telegram.private(ada), telegram.private(ben)
    async with running(telegram):
        telegram.command(hers, ada, "remind", "in 3 hours tea")
        await answer(telegram, hers, "tea")
        telegram.command(his, ben, "remind", "in 3 hours coffee")
        await answer(telegram, his, "coffee")
    put_back(telegram, "remind:%", 10 * HOUR_MS)
    ((lost,),) = database(telegram, ("SELECT schedule FROM schedules ORDER BY next_at LIMIT 1", ()))
    take, put, tried = CommandIntake.take, Schedules.put, list[str]()

    async def taken(self: CommandIntake, inbound: FromChat, command: Any, cursor: Any = None, claim: Any = None) -> Any:
        if claim is not None and claim.schedule.schedule == lost:
            tried.append(lost)
            raise Damaged("planted", writing=True)
        return await take(self, inbound, command, cursor, claim)

    async def written(self: Schedules, schedule: ScheduleRow) -> None:
        if schedule.schedule == lost:
            raise Damaged("planted", writing=True)
        await put(self, schedule)

    monkeypatch.setattr(CommandIntake, "take", taken)
    monkeypatch.setattr(Schedules, "put", written)
    async with running(telegram, Leaves.DAMAGED) as up:
        await answer(telegram, his, "Reminder: coffee")
        await answer(telegram, hers, "what is stored of it cannot be used")
        await asyncio.sleep(RETRY_SECONDS + 1)
        assert tried == [lost]
        assert [one["schedule"] for one in (await status(up.url))["schedules_set_aside"]] == [lost]
        assert (await status(up.url))["set_aside"] == []
        telegram.say(hers, ada, "say apricots")
        await answer(telegram, hers, "apricots")


async def test_a_scheduled_prompt_is_answered_in_its_chat_and_is_nobodys_words(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    settings = {"OUTSPOKEN_SCHEDULE__ENTRIES": entry(f"telegram/{ada.id}")}
    async with running(telegram, **settings):
        telegram.say(chat, ada, "say hello")
        await answer(telegram, chat, "hello", 30)
        await scheduled(telegram, "config:morning")
    put_back(telegram, "config:morning", 5 * HOUR_MS)
    async with running(telegram, **settings):
        await answer(telegram, chat, "good morning")
        await quiet(telegram, chat)
        said = texts(telegram, chat)
        assert next(text for text in said if "hello" not in text).startswith("⏰ Missed: “morning”, 4 times")
        assert "late" in next(text for text in said if text.startswith("⏰ Scheduled: morning"))
        assert said[-1] == "good morning"
        assert len(said) == 4
        asked = telegram.model.requests[-1][-1]
        assert asked["role"] == "user"
        assert "no person wrote this" in str(asked["content"])
        telegram.say(chat, ada, "recall")  # it is the chat's own conversation
        await answer(telegram, chat, "say good morning")
    outcomes = database(telegram, ("SELECT outcome, count FROM occurrences ORDER BY due_at", ()))
    assert outcomes == [("missed", 4), ("run", 1)]


async def test_what_is_to_be_skipped_is_told_and_starts_nothing(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    settings = {"OUTSPOKEN_SCHEDULE__ENTRIES": entry(f"telegram/{ada.id}", if_missed="skip")}
    async with running(telegram, **settings):
        telegram.say(chat, ada, "say hello")
        await answer(telegram, chat, "hello", 30)
        await scheduled(telegram, "config:morning")
    # Long ago, so that it is late whatever the clock says.
    words = "UPDATE schedules SET rule = 'once 1000000', next_at = 1000000"
    database(telegram, (words, ()))
    async with running(telegram, **settings):
        await answer(telegram, chat, "Missed: “morning”")
        await quiet(telegram, chat)
        assert not any("good morning" in text for text in texts(telegram, chat))
        assert len(telegram.model.requests) == 1


async def scheduled(harness: Harness, schedule: str) -> None:
    """Come back when the schedule is stored."""

    def there() -> bool:
        conn = sqlite3.connect(f"file:{harness.folder / 'outspoken.db'}?mode=ro", uri=True)
        try:
            return bool(conn.execute("SELECT 1 FROM schedules WHERE schedule = ?", (schedule,)).fetchall())
        finally:
            conn.close()

    await harness.until(there)


def claimed(harness: Harness) -> int:
    """How many claims are stored."""
    conn = sqlite3.connect(f"file:{harness.folder / 'outspoken.db'}?mode=ro", uri=True)
    try:
        return int(conn.execute("SELECT count(*) FROM occurrences").fetchone()[0])
    finally:
        conn.close()


async def test_a_kill_between_claim_and_delivery_loses_and_doubles_nothing(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    settings = {"OUTSPOKEN_SCHEDULE__ENTRIES": entry(f"telegram/{ada.id}", prompt="hold the line")}
    async with running(telegram, **settings):
        telegram.command(chat, ada, "remind", "in 2 hours tea")
        await answer(telegram, chat, "I will remind you")
        await scheduled(telegram, "config:morning")
    put_back(telegram, "%", 3 * HOUR_MS)
    telegram.fake.faults.always("sendMessage", server_error())  # what is claimed cannot be delivered
    async with process(telegram, **settings) as one:
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
        await telegram.until(lambda: claimed(telegram) >= 3)
        await one.kill()
    assert not any("Reminder: tea" in text for text in texts(telegram, chat))
    telegram.fake.faults.clear()
    telegram.model.release()
    async with running(telegram, **settings):
        await answer(telegram, chat, "Reminder: tea", 30)
        await answer(telegram, chat, "the line end", 30)
        await quiet(telegram, chat, 1.5)
    said = texts(telegram, chat)
    assert sum("Reminder: tea" in text for text in said) == 1
    assert sum("the line end" in text for text in said) == 1
    assert sum("Scheduled: morning" in text for text in said) == 1
    rows = database(telegram, ("SELECT schedule, due_at, count(*) FROM occurrences GROUP BY 1, 2", ()))
    assert all(count == 1 for *_, count in rows)
    left = database(telegram, ("SELECT count(*) FROM inbox WHERE state = 'new'", ()))
    assert left == [(0,)]


async def test_what_died_right_after_its_claim_is_carried_out_by_the_next_process(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.command(chat, ada, "remind", "in 1 hour tea")
        await answer(telegram, chat, "I will remind you", 30)
    clock = SystemClock()
    async with open_store(telegram.folder / "outspoken.db", clock=clock, ids=SystemIds(clock), version="t") as store:
        (row,) = await store.schedules.due(clock.now_ms() + 2 * HOUR_MS)
        plan, rule = decode_plan(row)
        claim = decide(rule, row.next_at, plan.if_missed, 0, clock.now_ms() + HOUR_MS)
        assert claim is not None
        found, happening = claimed_now(row, plan, claim, clock.now_ms() + HOUR_MS)
        words = InputMessage(f"/happen {encode_happening(happening)}")
        inbound = FromChat(
            account=row.session_key.rsplit("/", 3)[0], platform_key=key_of(happening), session=SessionKey.of(row.session_key),
            input=(words,), surface="telegram", memory_scope="x", chat=plan.origin,
        )  # fmt: skip
        body = encode_inbound(inbound)
        await store.inbox.accept(
            NewMessage(
                inbound.account, inbound.platform_key, row.session_key, "command", body, 1, None, "s", claim=found
            )
        )
    async with running(telegram):
        await answer(telegram, chat, "Reminder: tea", 30)
        await quiet(telegram, chat)
        assert sum("Reminder: tea" in text for text in texts(telegram, chat)) == 1


async def test_an_entry_for_a_platform_that_is_not_there_is_told_at_the_start(telegram: TelegramHarness) -> None:
    with pytest.raises(ConfigError, match="no discord account"):
        async with running(telegram, OUTSPOKEN_SCHEDULE__ENTRIES=entry("discord/1")):
            pass


# ---------------------------------------------------------------------- the operator's words


async def test_an_operators_message_is_formatted_split_and_sent_once_under_its_key(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform) as up:
        remote = Remote(up.url, None)
        platform.say(chat, ada, "say hello")
        await answer(platform, chat, "hello", 30)
        to = known_chat(platform)
        words = "The backup is **done**."
        first = await remote.send(to, words, (), "backup-1")
        await sent(remote, first)
        seen = await answer(platform, chat, "The backup is")
        assert seen.bold == ("done",) or "*done*" in seen.text
        assert (await remote.send(to, words, (), "backup-1"))["id"] == first["id"]
        with pytest.raises(GatewayRefused, match="used before"):
            await remote.send(to, "Something else", (), "backup-1")
        await sent(remote, await remote.send(to, "x " * 6_000, [("report.txt", b"all is well")], ""))
        mine = answers(platform, chat)
        assert sum("The backup is" in one.text for one in mine) == 1
        assert sum(one.text.count("x") for one in mine if set(one.text) <= {"x", " ", "\n"}) == 6_000
        assert [one.data for one in mine if one.file == "report.txt"] == [b"all is well"]
        assert len(platform.model.requests) == 1
        assert (await status(up.url))["unsent_parts"] == 0


async def sent(remote: Remote, delivery: Mapping[str, Any]) -> None:
    """Come back when a delivery is settled, and hold that it was sent."""
    async with asyncio.timeout(60):
        while not delivery_settled(delivery):
            delivery = await remote.delivery(str(delivery["id"]), 10)
    assert delivery["state"] == "sent", delivery


def known_chat(harness: Harness) -> str:
    """The chat of the only conversation, as an operator names it."""
    conn = sqlite3.connect(f"file:{harness.folder / 'outspoken.db'}?mode=ro", uri=True)
    try:
        ((key,),) = conn.execute("SELECT key FROM sessions").fetchall()
    finally:
        conn.close()
    name, _, chat, thread, _ = key.split("/")
    return f"{name}/{chat}/{thread}".rstrip("/")


async def test_an_operators_message_goes_to_a_person_by_name_and_what_is_wrong_is_said(
    telegram: TelegramHarness,
) -> None:
    port = free_port()
    eve = telegram.person("Eve")
    chat = telegram.private(eve)
    closed = {"OUTSPOKEN_TELEGRAM__OPEN": "false", "OUTSPOKEN_SERVER__PORT": str(port)}
    async with running(telegram, **closed) as up:
        telegram.say(chat, eve, "say hello")
        await answer(telegram, chat, "outspoken access approve")
        remote = Remote(up.url, None)
        for to in ("telegram/Eve", "telegram/@eve", f"telegram/{eve.id}"):
            await sent(remote, await remote.send(to, f"for {to}", (), ""))
            await answer(telegram, chat, f"for {to}")
        for to, words in (("irc/1", "no platform"), ("telegram/nobody", "nobody is known"), ("telegram", "no chat")):
            with pytest.raises(GatewayRefused, match=words):
                await remote.send(to, "x", (), "")
        path = telegram.folder / "report.txt"
        path.write_text("all is well")
        words = ("send", "--to", "telegram/Eve", "--wait", "--file", str(path), "-")
        code, said = await outspoken(telegram.folder, *words, port=port, typed="from a **pipe**")
        assert (code, said.split()[0].isdigit(), "Delivered." in said) == (0, True, True), said
        await answer(telegram, chat, "from a pipe")
        code, said = await outspoken(telegram.folder, "send", "--to", "telegram/999999", "--wait", "x", port=port)
        assert (code, "could not be delivered" in said) == (1, True), said
    code, said = await outspoken(telegram.folder, "send", "--to", "telegram/Eve", "x", port=port)
    assert (code, "nothing was sent" in said) == (75, True)


async def test_an_operators_message_survives_a_kill(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with process(telegram) as one:
        telegram.say(chat, ada, "say hello")
        await answer(telegram, chat, "hello", 30)
        await quiet(telegram, chat)
        telegram.fake.faults.always("sendMessage", server_error())
        found = await Remote(one.url, None).send(f"telegram/{ada.id}", "still here", (), "")
        assert found["state"] == "pending"
        await one.kill()
    telegram.fake.faults.clear()
    async with running(telegram):
        await answer(telegram, chat, "still here", 20)
        await quiet(telegram, chat)
        assert sum("still here" in text for text in texts(telegram, chat)) == 1


async def test_nobody_can_type_the_gateways_own_commands(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.command(chat, ada, "post", '{"text":"forged"}')
        await answer(telegram, chat, "You said: /post")
        assert "forged" not in texts(telegram, chat)
