"""What only Telegram has: webhook, 409, supergroups, lost topics, drafts, servers that know less."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.contract.chat import ChatMessage
from adapters.telegram.inbound import Me, Moved, Pressed, read_update
from gateway.chats.arrival import Arrivals
from tests import elsewhere
from tests.chats.harness import answer, process, quiet, running, status, status_until, texts
from tests.chats.telegram_harness import TelegramHarness, Where, telegram_harness
from tests.fakes.common import Answer
from tests.fakes.telegram import Pause, conflict, refusal
from tests.ports import free_port


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


async def test_by_webhook_with_its_secret(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    port = free_port()
    more = {
        "OUTSPOKEN_SERVER__PORT": str(port),
        "OUTSPOKEN_TELEGRAM__WEBHOOK_URL": f"http://127.0.0.1:{port}",
        "OUTSPOKEN_TELEGRAM__WEBHOOK_SECRET": "a-long-secret",
    }
    async with running(telegram, **more) as up:
        await telegram.until(lambda: bool(telegram.fake.log.of("setWebhook")))
        telegram.say(chat, ada, "say by webhook")
        await answer(telegram, chat, "by webhook")
        async with aiohttp.ClientSession() as http:
            url = f"{up.url}/telegram/{telegram.fake.token.partition(':')[0]}"
            for headers in ({}, {"X-Telegram-Bot-Api-Secret-Token": "wrong"}):
                async with http.post(url, json={"update_id": 1}, headers=headers) as response:
                    assert response.status == 403
        assert telegram.fake.log.of("getUpdates") == []
    # Back to polling: the webhook is taken away first.
    telegram.say(chat, ada, "say by polling")
    async with running(telegram):
        await answer(telegram, chat, "by polling")
        assert telegram.fake.log.of("deleteWebhook")


async def test_a_webhook_that_somebody_sets_while_we_poll_is_taken_away(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram) as up:
        telegram.say(chat, ada, "say before")
        await answer(telegram, chat, "before")
        async with aiohttp.ClientSession() as http:
            there = {"url": f"http://127.0.0.1:{free_port()}/elsewhere"}
            await http.post(f"{telegram.fake.base_url}{telegram.fake.token}/setWebhook", json=there)
        telegram.say(chat, ada, "say all the same")
        await answer(telegram, chat, "all the same", 15)
        assert (await status(up.url))["adapters"][0]["state"] == "up"


async def test_two_pollers_are_told_of_in_words(telegram: TelegramHarness) -> None:
    telegram.fake.script("getUpdates", conflict(), conflict())
    async with running(telegram) as up:
        await status_until(up.url, lambda told: "409" in told["adapters"][0]["words"])


async def test_a_poll_that_ends_ours_once_costs_a_moment_and_nobody_is_told_to_stop_anything(
    telegram: TelegramHarness,
) -> None:
    """It was the last one of whoever had the connection before."""
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    telegram.fake.script("getUpdates", conflict())
    async with running(telegram) as up:
        telegram.say(chat, ada, "say one")
        began = time.monotonic()
        await answer(telegram, chat, "one")
        assert time.monotonic() - began < 10
        assert (await status(up.url))["adapters"][0]["state"] == "up"


async def test_that_two_poll_stays_told_although_a_poll_goes_well(
    telegram: TelegramHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.telegram.polling.CONFLICT_SECONDS", 0.1)
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    telegram.fake.script("getUpdates", conflict(), conflict())
    async with running(telegram) as up:
        telegram.say(chat, ada, "say one")
        await answer(telegram, chat, "one")
        assert "409" in (await status(up.url))["adapters"][0]["words"]


async def test_while_updates_cannot_be_asked_for_status_does_not_say_up(telegram: TelegramHarness) -> None:
    async with running(telegram) as up:
        await status_until(up.url, lambda told: told["adapters"][0]["state"] == "up")
        telegram.fake.faults.always("getUpdates", Answer(502, b"<html>bad gateway</html>", "text/html"))
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] != "up")
        assert "cannot be asked" in told["adapters"][0]["words"]
        telegram.fake.faults.always("getUpdates", None)
        await status_until(up.url, lambda told: told["adapters"][0]["state"] == "up")


async def test_a_command_in_an_answer_to_somebody_is_a_command(telegram: TelegramHarness) -> None:
    ada, ben = telegram.person("Ada"), telegram.person("Ben")
    group = telegram.group(ada, ben)
    async with running(telegram):
        said = telegram.say(group, ben, "what is it about?")
        telegram.say(group, ada, "/model", reply_to=said)
        await answer(telegram, group, "Choose one: /model NAME")


async def test_who_blocked_us_in_the_middle_of_an_answer_and_comes_back_is_told_that_it_was_cut(
    telegram: TelegramHarness,
) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram) as up:
        telegram.say(chat, ada, "hold on")
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
        telegram.block(chat)
        telegram.model.release()
        await status_until(up.url, lambda told: bool(told["troubled_chats"]))
        telegram.fake.people.unblock(chat.chat)
        for words in ("back", "once more"):
            telegram.say(chat, ada, f"say {words}")
            await answer(telegram, chat, words)
        await quiet(telegram, chat)
        missed = "⚠️ A part of the answer could not be sent: bot was blocked by the user"
        assert texts(telegram, chat) == ["back", missed, "once more"]


async def test_an_edit_that_adds_the_name_is_a_message_once(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    group = telegram.group(ada)
    name = f"@{telegram.fake.bot.username}"
    async with running(telegram):
        said = telegram.say(group, ada, "say forgotten name")
        telegram.edit(group, said, f"{name} say with it")
        await answer(telegram, group, "with it")
        telegram.edit(group, said, f"{name} say it again")
        await quiet(telegram, group)
        assert texts(telegram, group) == ["with it"]


async def test_a_group_that_becomes_a_supergroup_goes_on(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    group = telegram.group(ada)
    async with running(telegram):
        telegram.say(group, ada, "say blue", mention=True)
        await answer(telegram, group, "blue")
        telegram.say(group, ada, "hold on", mention=True)
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
        new = Where(telegram.fake.people.migrate(group.chat, ada))
        telegram.model.release()
        await answer(telegram, new, "on end", 20)
        telegram.say(new, ada, "recall", mention=True)
        seen = await answer(telegram, new, "I remember", 20)
        assert "blue" in seen.text


@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_a_group_that_moves_to_itself_or_in_circles_holds_nobody_up(
    telegram: TelegramHarness, method: str
) -> None:
    ada = telegram.person("Ada")
    group, other, private = telegram.group(ada), telegram.group(ada), telegram.private(ada)
    words = "Bad Request: group chat was upgraded to a supergroup chat"
    to = [refusal(400, words, migrate_to_chat_id=where.chat.id) for where in (group, other, group, group)]
    async with running(telegram):
        telegram.fake.script(method, *to)
        telegram.say(group, ada, "slow " + " ".join(f"w{n}" for n in range(40)), mention=True)
        both = (group, other)
        await telegram.until(lambda: any("w39" in one for where in both for one in texts(telegram, where)), 40)
        telegram.say(private, ada, "say blue")
        await answer(telegram, private, "blue", 20)


async def test_an_answer_for_a_topic_that_is_gone_comes_without_it(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    whole, one, _ = telegram.topics(ada)
    async with running(telegram):
        telegram.say(one, ada, "hold on", mention=True)
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
        telegram.fake.script("sendMessage", refusal(400, "Bad Request: message thread not found"))
        telegram.model.release()
        seen = await answer(telegram, whole, "on end", 20)
        assert "topic" in seen.text


async def test_a_server_without_drafts_gets_edited_messages(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    telegram.fake.script("sendMessageDraft", *[refusal(404, "Not Found")] * 50)
    async with running(telegram):
        telegram.say(chat, ada, "slow " + " ".join(f"w{n}" for n in range(40)))
        seen = await answer(telegram, chat, "w39", 20)
        await quiet(telegram, chat)
        assert len(texts(telegram, chat)) == 1
        assert seen.edits > 0
        assert len(telegram.fake.log.of("sendMessageDraft")) == 1


async def test_a_server_that_knows_neither_menu_nor_webhooks_is_enough(telegram: TelegramHarness) -> None:
    for method in ("getWebhookInfo", "getMyCommands", "setMyCommands"):
        telegram.fake.script(method, refusal(404, "Not Found"))
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.say(chat, ada, "say fine")
        await answer(telegram, chat, "fine")


async def test_a_late_draft_never_follows_its_final(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    held = Pause(after=True)
    telegram.fake.script("sendMessageDraft", held)
    async with running(telegram):
        telegram.say(chat, ada, "hold so far")
        await asyncio.wait_for(held.reached.wait(), 60)
        telegram.model.release()
        await asyncio.sleep(0.5)
        assert texts(telegram, chat) == [], "while a draft is under way, its final waits"
        held.release()
        await answer(telegram, chat, "so far end")
        await asyncio.sleep(1.5)
        order = [call.route for call in telegram.fake.log if call.route in ("sendMessage", "sendMessageDraft")]
        assert order[-1] == "sendMessage"


@pytest.mark.parametrize("far", [True, False])
async def test_ids_that_begin_anew_lower_are_answered_once_and_confirmed(telegram: TelegramHarness, far: bool) -> None:
    """With Telegram's own server, which answers a far offset from the head of its queue, and with one that only compares numbers."""
    telegram.fake.world.updates.passes_far_offsets = far
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.say(chat, ada, "say before")
        await answer(telegram, chat, "before")
        await telegram.until(lambda: not telegram.fake.unconfirmed)
        telegram.fake.world.updates.begin_anew(5)
        telegram.say(chat, ada, "say after")
        await answer(telegram, chat, "after", 15)
        await telegram.until(lambda: not telegram.fake.unconfirmed)
        await quiet(telegram, chat)
        assert sum("after" in text for text in texts(telegram, chat)) == 1
        polls = len(telegram.fake.log.of("getUpdates"))
        await asyncio.sleep(2.0)
        assert len(telegram.fake.log.of("getUpdates")) - polls <= 6
    telegram.fake.world.updates.begin_anew(2)
    telegram.say(chat, ada, "say over a restart")
    async with running(telegram):
        await answer(telegram, chat, "over a restart", 15)
        await telegram.until(lambda: not telegram.fake.unconfirmed)


async def test_an_update_that_our_own_code_cannot_take_is_kept_told_and_answered_after_a_restart(
    telegram: TelegramHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, ben = telegram.person("Ada"), telegram.person("Ben")
    chat, other = telegram.private(ada), telegram.private(ben)
    receive = Arrivals.receive

    async def broken(self: Arrivals, message: ChatMessage, cursor: tuple[str, str] | None) -> None:
        if message.text == "say poison":
            raise IndexError("a mistake of ours")
        await receive(self, message, cursor)

    with monkeypatch.context() as patched:
        patched.setattr(Arrivals, "receive", broken)
        async with running(telegram) as up:
            telegram.say(chat, ada, "say poison")
            telegram.say(other, ben, "say behind it")
            await answer(telegram, other, "behind it", 15)
            await answer(telegram, chat, "kept me from reading it", 15)
            told = (await status(up.url))["adapters"][0]
            assert told["unread"] == 1
            await telegram.until(lambda: not telegram.fake.unconfirmed)
    async with running(telegram) as up:
        await answer(telegram, chat, "poison", 15)
        await quiet(telegram, chat)
        assert [text for text in texts(telegram, chat) if text == "poison"] == ["poison"]
        assert (await status(up.url))["adapters"][0]["unread"] == 0
    async with running(telegram):
        await quiet(telegram, chat)
        assert [text for text in texts(telegram, chat) if text == "poison"] == ["poison"]


async def test_a_mistake_that_passes_is_not_told(telegram: TelegramHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = telegram.person("Ada")
    chat, receive, left = telegram.private(ada), Arrivals.receive, [1, 1]

    async def broken(self: Arrivals, message: ChatMessage, cursor: tuple[str, str] | None) -> None:
        if left:
            left.pop()
            raise IndexError("a mistake of ours")
        await receive(self, message, cursor)

    monkeypatch.setattr(Arrivals, "receive", broken)
    async with running(telegram) as up:
        telegram.say(chat, ada, "say fine")
        await answer(telegram, chat, "fine")
        assert (await status(up.url))["adapters"][0]["unread"] == 0
        assert len(texts(telegram, chat)) == 1


async def test_a_message_with_what_no_database_takes_is_answered(telegram: TelegramHarness) -> None:
    ada = telegram.fake.people.user("A\x00da")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.say(chat, ada, "say a\x00b")
        await answer(telegram, chat, "a\ufffdb")


async def test_a_webhook_that_somebody_takes_away_is_set_again_and_told(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    port = free_port()
    more = {
        "OUTSPOKEN_SERVER__PORT": str(port),
        "OUTSPOKEN_TELEGRAM__WEBHOOK_URL": f"http://127.0.0.1:{port}",
        "OUTSPOKEN_TELEGRAM__WEBHOOK_SECRET": "a-long-secret",
        "OUTSPOKEN_TELEGRAM__WEBHOOK_LOOK_SECONDS": "1",
    }
    async with running(telegram, **more) as up:
        await telegram.until(lambda: len(telegram.fake.log.of("setWebhook")) == 1)
        async with aiohttp.ClientSession() as http:
            await http.post(f"{telegram.fake.base_url}{telegram.fake.token}/deleteWebhook")
        telegram.say(chat, ada, "say all the same")
        await answer(telegram, chat, "all the same", 15)
        assert len(telegram.fake.log.of("setWebhook")) == 2
        told = (await status(up.url))["adapters"][0]
        assert told["state"] == "up"
        assert "taken away" in told["words"]


async def test_while_telegram_cannot_reach_the_webhook_status_does_not_say_up(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    port = free_port()
    more = {
        "OUTSPOKEN_SERVER__PORT": str(port),
        "OUTSPOKEN_TELEGRAM__WEBHOOK_URL": f"http://127.0.0.1:{free_port()}",
        "OUTSPOKEN_TELEGRAM__WEBHOOK_SECRET": "a-long-secret",
        "OUTSPOKEN_TELEGRAM__WEBHOOK_LOOK_SECONDS": "1",
    }
    async with running(telegram, **more) as up:
        await telegram.until(lambda: len(telegram.fake.log.of("setWebhook")) == 1)
        telegram.say(chat, ada, "say nothing")
        await telegram.until(lambda: len(telegram.fake.log.of("getWebhookInfo")) >= 4)
        told = (await status(up.url))["adapters"][0]
        assert told["state"] == "down"
        assert "cannot deliver to the webhook" in told["words"]


ME = Me("7", "our_bot")


def update(text: str = "hi", entities: list[dict[str, object]] | None = None, **more: object) -> dict[str, object]:
    return {
        "update_id": 1,
        "message": {
            "message_id": 5,
            "chat": {"id": 3, "type": "private"},
            "from": {"id": 3, "first_name": "Ada"},
            "text": text,
            "entities": entities or [],
            **more,
        },
    }


def read(value: dict[str, Any]) -> Any:
    return read_update(value, ME)


def test_a_command_is_read_with_its_words_and_its_bot() -> None:
    command = [{"type": "bot_command", "offset": 0, "length": 14}]
    found = read(update("/stop@our_bot all of it", [{**command[0], "length": 13}]))
    assert (found.command, found.text, found.for_us, found.for_others) == ("stop", "all of it", True, False)
    other = read(update("/stop@other_bot x", [{**command[0], "length": 15}]))
    assert other.for_others


def test_offsets_are_utf_16_units() -> None:
    text = "👩‍👩‍👧 @our_bot hi"
    offset = len("👩‍👩‍👧 ".encode("utf-16-le")) // 2
    found = read(update(text, [{"type": "mention", "offset": offset, "length": 8}]))
    assert found.for_us


def test_what_somebody_else_said_is_quoted() -> None:
    reply = {"message_id": 4, "from": {"id": 9, "first_name": "Ben"}, "text": "the sky is green"}
    found = read(update("is that so?", reply_to_message=reply))
    assert found.text == "[In reply to Ben: “the sky is green”]\nis that so?"


def test_what_is_no_message_is_nothing() -> None:
    by_a_bot = update("hi")
    by_a_bot["message"] = {
        "message_id": 5,
        "chat": {"id": 3, "type": "private"},
        "from": {"id": 3, "is_bot": True},
        "text": "hi",
    }
    assert read({"update_id": 1, "poll": {}}) is None
    assert read(update("", new_chat_title="x")) is None
    assert read(by_a_bot) is None
    assert read(update("", migrate_to_chat_id=-100)) == Moved("3", "-100")


def test_a_press_is_a_message_of_its_own() -> None:
    query = {"id": "q1", "from": {"id": 3, "first_name": "Ada"}, "data": "why:t_1", "message": update()["message"]}
    found = read({"update_id": 2, "callback_query": query})
    assert isinstance(found, Pressed)
    assert (found.message.key, found.message.command, found.message.text) == ("callback:q1", "press", "why:t_1")


async def test_a_person_is_spoken_to_in_their_language(telegram: TelegramHarness) -> None:
    ada = replace(telegram.person("Ada"), language_code="de")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.say(chat, ada, "/stop")
        await telegram.until(lambda: "Hier läuft nichts." in texts(telegram, chat))
        telegram.say(chat, ada, "/language fr")
        await telegram.until(lambda: any("Désormais, je parle Français" in one for one in texts(telegram, chat)))
        telegram.say(chat, ada, "/stop")
        await telegram.until(lambda: "Rien n’est en cours ici." in texts(telegram, chat))
        told = {call.params.get("language_code"): str(call.params) for call in telegram.fake.log.of("setMyCommands")}
        assert "eine neue Unterhaltung" in told["de"]
        assert not [language for language, words in told.items() if "{/" in words], (
            "a command is written as it is typed"
        )
    async with running(telegram):  # another process, the same choice
        telegram.say(chat, ada, "/undo")
        await telegram.until(lambda: "Il n’y a rien à retirer." in texts(telegram, chat))


async def test_an_answer_that_was_under_way_at_two_deaths_comes_before_what_is_said_next(
    telegram: TelegramHarness,
) -> None:
    """It is under suspicion then, and taken up behind everything else; what is new in its chat waits for it."""
    ada, bo = telegram.person("Ada"), telegram.person("Bo")
    chat, other = telegram.private(ada), telegram.private(bo)
    telegram.fake.faults.always("sendMessage", Answer(503, b"<html>away</html>", "text/html"))

    def suspicions(of: str) -> list[int]:
        return [
            row[0] for row in elsewhere.rows(telegram.folder, f"SELECT suspicion FROM {of} ORDER BY suspicion DESC")
        ]

    telegram.say(other, bo, "hold on")
    telegram.say(chat, ada, "say first")
    query = "SELECT 1 FROM deliveries WHERE final = 1 AND failures > 0"
    async with process(telegram) as up:
        await telegram.until(lambda: bool(elsewhere.rows(telegram.folder, query)), 30)
        await up.kill()
    async with process(telegram) as up:
        await telegram.until(lambda: any(suspicions("deliveries")) and any(suspicions("turns")), 30)
        await up.kill()
    telegram.fake.faults.clear()
    telegram.say(chat, ada, "say second")
    async with process(telegram):
        await answer(telegram, chat, "second", 60)
        said = [one for one in texts(telegram, chat) if "first" in one or "second" in one]
        assert ["first" in one for one in said] == [True, False], said
        telegram.model.release()
        await answer(telegram, other, "on end", 60)
