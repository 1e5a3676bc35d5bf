"""What the model sets for later by its tools, on every platform, with the rehearsal model; and what becomes of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import aiohttp

from adapters.contract.base import Ended, FromApi, MessageState, SessionKey, TurnSight
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.tools.base import ToolContext
from gateway.later.reminders import SetLater
from gateway.schedule import toolspecs
from gateway.schedule.schedules import ScheduleKind
from tests.chats.harness import Harness, answer, process, quiet, running, texts
from tests.chats.telegram_harness import telegram_harness
from tests.chats.test_schedule import HOUR_MS, database, put_back

REHEARSAL = {
    "OPENAI_BASE_URL": "",
    "OPENAI_API_KEY": "",
    "OUTSPOKEN_MODEL__NAME": "",
    "OUTSPOKEN_SCHEDULE__TIMEZONE": "UTC",
}


async def test_remind_me_sets_one_which_is_listed_comes_once_and_is_taken_back(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **REHEARSAL):
        platform.say(chat, ada, "remind me in 3 seconds to drink tea")
        told = await answer(platform, chat, "drink tea")  # its end: the toy's people see an answer grow
        assert "Stored. Reminder 1" in told.text
        assert ("(Europe/Berlin)" if platform.name == "slack" else "(UTC)") in told.text  # Slack says where a person is
        await answer(platform, chat, "⏰ Reminder: drink tea")
        platform.say(chat, ada, "schedule every day 9:00: count to 3")
        await answer(platform, chat, "Scheduled prompt 1")
        platform.say(chat, ada, "list reminders")
        listed = await answer(platform, chat, "I do this: count to 3")
        assert "Now it is" in listed.text
        platform.say(chat, ada, "pause reminder 1")
        await answer(platform, chat, "Paused: 1. paused")
        platform.say(chat, ada, "cancel reminder 1")
        await answer(platform, chat, "Taken back: 1.")
        platform.say(chat, ada, "remind me in 3 fortnights to drink tea")
        await answer(platform, chat, "not understood as a time")
        await quiet(platform, chat)
        assert sum("Reminder: drink tea" in text for text in texts(platform, chat)) == 1


async def test_a_prompt_comes_late_after_an_outage_and_says_whose_wish_it_was(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada = telegram.person("Ada")
        chat = telegram.private(ada)
        async with running(telegram, **REHEARSAL):
            telegram.say(chat, ada, "my time zone is Asia/Kolkata")
            await answer(telegram, chat, "Kept:")
            telegram.say(chat, ada, "schedule every day 9:00: count to 3")
            told = await answer(telegram, chat, "Scheduled prompt 1")
            assert "(Asia/Kolkata)" in told.text
            telegram.command(chat, ada, "timezone", "")
            await answer(telegram, chat, "The time zone is Asia/Kolkata, as it was set here.")
            telegram.command(chat, ada, "timezone", "Mars/Olympus")
            await answer(telegram, chat, "There is no time zone 'Mars/Olympus'")
            telegram.command(chat, ada, "remind", "")
            await answer(telegram, chat, "1. ")
        put_back(telegram, "remind:%", 26 * HOUR_MS)
        async with running(telegram, **REHEARSAL):
            await answer(telegram, chat, "⏰ Scheduled: count to 3")
            await answer(telegram, chat, "1, 2, 3.")
        ((asked,),) = database(telegram, ("SELECT body FROM inbox WHERE platform_key LIKE 'scheduled:%'", ()))
        assert b"had you set this earlier" in asked


async def test_a_call_that_is_begun_again_stores_no_second_and_a_page_is_told_on_itself(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada = telegram.person("Ada")
        chat = telegram.private(ada)
        async with running(telegram, **REHEARSAL) as up:
            telegram.say(chat, ada, "count to 3")
            await answer(telegram, chat, "1, 2, 3.")
            ((turn,),) = database(telegram, ("SELECT turn FROM turns", ()))
            remind = SetLater(up.follow_ups.later, toolspecs.REMIND, ScheduleKind.REMINDER)
            call = ToolContext(turn, "1", f"{turn}:1", tmp_path, "", SystemClock(), lambda _: None)
            wish = {"when": "in 2 hours", "what": "tea"}
            first, again = await remind.run(wish, call), await remind.run(wish, call)
            assert first.text.partition(", that is in")[0] == again.text.partition(", that is in")[0]
            assert len(database(telegram, ("SELECT * FROM schedules", ()))) == 1
            telegram.command(chat, ada, "remind", "cancel 1")
            await answer(telegram, chat, "taken back")
            assert "cancelled now. Nothing new" in (await remind.run(wish, call)).text

            page = FromApi(
                account="web", platform_key="k1", session=SessionKey("web", "browser", "one"), surface="web", memory_scope="web", browser="b",
                input=(InputMessage("remind me in 1 second to drink tea"),),
            )  # fmt: skip
            await up.hub.accept(page)
            async with asyncio.timeout(20), up.hub.follow_session(page.session) as follower:
                seen: dict[str, TurnSight] = {}
                while not any(
                    "drink tea" in one.view.text and one.state is MessageState.CLOSED
                    for key, one in seen.items()
                    if key != "k1"
                ):
                    seen |= {one.key: one for one in await follower.next(20) or ()}
            assert "on this page" in seen["k1"].view.text
            await up.follow_ups.later.parts.post_on_page(page, "said:task:1", "Task 1 has *ended*.")
            async with asyncio.timeout(20), up.hub.follow_session(page.session) as follower:
                while "said:task:1" not in seen:
                    seen |= {one.key: one for one in await follower.next(20) or ()}
            assert (seen["said:task:1"].person, seen["said:task:1"].view.text) == ("", "Task 1 has *ended*.")
            program = replace(
                page, account="api", surface="api", platform_key="k2", session=SessionKey("api", "key", "s")
            )
            ticket = await up.hub.accept(program)
            async with asyncio.timeout(20), up.hub.follow(ticket) as one:
                while not isinstance(ended := await one.next(20), Ended):
                    pass
            assert "nobody would see it here" in ended.view.text


async def test_a_task_runs_beside_the_conversation_which_is_told_its_end(platform: Harness) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    async with running(platform, **REHEARSAL, OUTSPOKEN_TASKS__AT_ONCE="1", OUTSPOKEN_TASKS__STATUS_SECONDS="5"):
        platform.say(chat, ada, "in the background: count to 999 slowly")
        await answer(platform, chat, "Stored and begun as number 1")
        platform.say(chat, ada, "in the background: count to 4")
        await answer(platform, chat, "1 tasks run here already")
        platform.say(chat, ada, "list reminders")
        await answer(platform, chat, "1. running for")
        await answer(platform, chat, "⏳ Task 1 (count to 999 slowly) goes on", 20)
        platform.command(chat, ada, "tasks", "")
        listed = await answer(platform, chat, "1. count to 999 slowly: ")
        assert " steps, " in listed.text
        assert "tokens" in listed.text
        platform.command(chat, ada, "tasks", "stop 7")
        await answer(platform, chat, "No such task runs here")
        platform.command(chat, ada, "tasks", "stop 1")
        await answer(platform, chat, "Being stopped: 1. The end of each is told here.")
        await answer(platform, chat, "🔔 Task 1 (count to 999 slowly) has ended without its result")
        platform.say(chat, ada, "in the background: count to 4")
        await answer(platform, chat, "🔔 Task 1 (count to 4) is done")
        await quiet(platform, chat)
        assert sum(text.startswith("🔔 Task 1 (count to 4)") for text in texts(platform, chat)) == 1


async def test_a_task_outlasts_a_kill_and_its_end_is_told_once(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada = telegram.person("Ada")
        chat = telegram.private(ada)
        async with process(telegram, **REHEARSAL) as up:
            telegram.say(chat, ada, "in the background: write notes.txt: milk and then count to 60 slowly")
            await answer(telegram, chat, "Stored and begun as number 1")
            await up.kill()
        async with process(telegram, **REHEARSAL) as up:
            ended = await answer(telegram, chat, "🔔 Task 1", 30)
            assert "is done" in ended.text
            telegram.say(chat, ada, "read notes.txt")
            await answer(telegram, chat, "milk")
            await up.kill()
        async with running(telegram, **REHEARSAL):
            await quiet(telegram, chat)
        assert sum(text.startswith("🔔 Task 1") for text in texts(telegram, chat)) == 1


async def test_a_message_to_another_chat_is_told_as_it_was_delivered(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada, ben = telegram.person("Ada"), telegram.person("Ben")
        hers, his = telegram.private(ada), telegram.private(ben)
        telegram.say(his, ben, "count to 3")
        allowed = {"OUTSPOKEN_SEND__ALLOW": f"ben=telegram/{telegram.chat_of(his)},gone=telegram/424242"}
        async with running(telegram, **REHEARSAL, **allowed):
            await answer(telegram, his, "1, 2, 3.")
            telegram.say(hers, ada, "send to ben: the **tea** is ready")
            await answer(telegram, hers, "Sent: the platform has taken the message to ben.")
            await answer(telegram, his, "the tea is ready")
            telegram.say(hers, ada, "send to gone: hello")
            await answer(telegram, hers, "Not delivered: the platform refused the message to gone")


async def test_other_agents_write_where_ours_may_and_nowhere_else(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada, ben = telegram.person("Ada"), telegram.person("Ben")
        hers, his = telegram.private(ada), telegram.private(ben)
        for chat, who in ((hers, ada), (his, ben)):
            telegram.say(chat, who, "count to 3")
        allowed = {"OUTSPOKEN_SEND__ALLOW": f"ben=telegram/{telegram.chat_of(his)}"}
        async with running(telegram, **REHEARSAL, **allowed) as up, aiohttp.ClientSession() as http:
            await answer(telegram, hers, "1, 2, 3.")
            await answer(telegram, his, "1, 2, 3.")

            async def send(to: str, **more: bool) -> tuple[int, str]:
                async with http.post(f"{up.url}/api/send", json={"to": to, "text": f"for {to}", **more}) as told:
                    return told.status, await told.text()

            assert (await send("ben", agents=True))[0] == 200
            assert (await send(f"telegram/{telegram.chat_of(his)}", agents=True))[0] == 200
            status, words = await send(f"telegram/{telegram.chat_of(hers)}", agents=True)
            assert status == 403
            assert "[send] allow names: ben." in words
            assert (await send(f"telegram/{telegram.chat_of(hers)}"))[0] == 200  # the operator's own words go anywhere
            await answer(telegram, his, "for ben")
            await answer(telegram, his, f"for telegram/{telegram.chat_of(his)}")
            assert sum("for telegram" in text for text in texts(telegram, hers)) <= 1


async def test_what_a_page_had_set_for_later_needs_a_persons_word_when_it_comes(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada, ben = telegram.person("Ada"), telegram.person("Ben")
        hers, his = telegram.private(ada), telegram.private(ben)
        telegram.say(his, ben, "count to 3")
        telegram.say(hers, ada, "count to 3")
        allowed = {"OUTSPOKEN_SEND__ALLOW": f"ben=telegram/{telegram.chat_of(his)}"}
        async with running(telegram, **REHEARSAL, **allowed) as up:
            await answer(telegram, his, "1, 2, 3.")
            await answer(telegram, hers, "1, 2, 3.")
            ((turn,),) = database(
                telegram,
                (
                    "SELECT turn FROM turns JOIN sessions USING (session) WHERE sessions.key LIKE ?",
                    (f"%{telegram.chat_of(hers)}%",),
                ),
            )
            later = SetLater(up.follow_ups.later, toolspecs.SCHEDULE, ScheduleKind.PROMPT)
            call = ToolContext(turn, "1", f"{turn}:1", tmp_path, "", SystemClock(), lambda _: None, tainted=True)
            assert "Stored." in (await later.run({"when": "every day 9:00", "prompt": "send to ben: hello"}, call)).text
        put_back(telegram, "remind:%", 26 * HOUR_MS)
        async with running(telegram, **REHEARSAL, **allowed):
            asked = await answer(telegram, hers, "🔐")
            assert "what was set after words of others had been read" in asked.text
            await quiet(telegram, his)
            assert not any("hello" in text for text in texts(telegram, his))


async def test_whoever_reads_what_a_page_had_set_has_read_the_pages_words(tmp_path: Path) -> None:
    """In a chat for each way to read it, at once: to a chat, Telegram takes a message a second."""
    async with telegram_harness(tmp_path) as telegram:
        ben = telegram.person("Ben")
        his = telegram.private(ben)
        telegram.say(his, ben, "count to 3")
        allowed = {"OUTSPOKEN_SEND__ALLOW": f"ben=telegram/{telegram.chat_of(his)}"}
        async with running(telegram, **REHEARSAL, **allowed) as up:
            await answer(telegram, his, "1, 2, 3.")
            remind = SetLater(up.follow_ups.later, toolspecs.REMIND, ScheduleKind.REMINDER)

            async def reads(name: str, words: str, shows: str, *, planted: bool) -> None:
                person = telegram.person(name)
                chat = telegram.private(person)
                telegram.say(chat, person, "count to 3")
                await answer(telegram, chat, "1, 2, 3.")
                of_chat = f"%{telegram.chat_of(chat)}%"
                asked = "SELECT turn FROM turns JOIN sessions USING (session) WHERE sessions.key LIKE ?"
                ((turn,),) = database(telegram, (asked, (of_chat,)))
                call = ToolContext(turn, "1", f"{turn}:1", tmp_path, "", SystemClock(), lambda _: None, tainted=planted)
                assert "Stored." in (await remind.run({"when": "in 3 hours", "what": "obey"}, call)).text
                telegram.say(chat, person, words)
                await answer(telegram, chat, shows)
                telegram.say(chat, person, f"send to ben: {name} wrote")
                if planted:
                    assert "🔐" in (await answer(telegram, chat, f"{name} wrote")).text
                    telegram.command(chat, person, "stop", "")
                    await answer(telegram, chat, "Stopped")
                else:
                    await answer(telegram, his, f"{name} wrote")

            await asyncio.gather(
                reads("Ada", "list reminders", "obey", planted=True),
                reads("Cyd", "cancel reminder 1", "Taken back: 1.", planted=True),
                reads("Dan", "list reminders", "obey", planted=False),  # his own words taint nothing
            )
            assert [text for text in texts(telegram, his) if "wrote" in text and "Dan" not in text] == []


async def test_a_task_asks_for_approval_in_its_chat_and_the_conversation_goes_on(platform: Harness) -> None:
    ada, ben = platform.person("Ada"), platform.person("Ben")
    group = platform.group(ada, ben)
    async with running(platform, **REHEARSAL, OUTSPOKEN_TOOLS__APPROVAL="write_file"):
        platform.say(group, ada, "in the background: write notes.txt: milk", mention=True)
        asked = await answer(platform, group, "Task 1 (write notes.txt: milk): May I write")
        assert "+milk" in asked.text
        platform.say(group, ada, "count to 3", mention=True)
        await answer(platform, group, "1, 2, 3.")
        platform.press(group, ben, asked.id, "✅ Approve")
        await answer(platform, group, "Only Ada or an admin may decide that")
        assert not list(platform.folder.rglob("notes.txt"))
        platform.press(group, ada, asked.id, "✅ Approve")
        await answer(platform, group, "✅ Approved: write")
        await answer(platform, group, "🔔 Task 1 (write notes.txt: milk) is done")
        alone = platform.private(ada)  # where a platform takes more messages a minute than in a group
        platform.say(alone, ada, "in the background: write other.txt: milk")
        asked = await answer(platform, alone, 'May I write "other.txt"')
        platform.press(alone, ada, asked.id, "🚫 Deny")
        await answer(platform, alone, "⛔ Not approved")
        await answer(platform, alone, "🔔 Task 1 (write other.txt: milk)")
    assert not list(platform.folder.rglob("other.txt"))


async def test_what_a_task_asks_outlasts_a_kill_and_an_end_without_a_decision_is_told(tmp_path: Path) -> None:
    asks = {**REHEARSAL, "OUTSPOKEN_TOOLS__APPROVAL": "write_file"}
    async with telegram_harness(tmp_path) as telegram:
        ada = telegram.person("Ada")
        chat = telegram.private(ada)
        async with process(telegram, **asks) as up:
            telegram.say(chat, ada, "in the background: write notes.txt: milk")
            asked = await answer(telegram, chat, "May I write")
            telegram.command(chat, ada, "tasks", "")
            await answer(telegram, chat, "waits for an approval")
            await up.kill()
        async with process(telegram, **asks) as up:
            telegram.press(chat, ada, asked.id, "✅ Approve")
            await answer(telegram, chat, "🔔 Task 1 (write notes.txt: milk) is done", 30)
            await up.kill()
        async with running(telegram, **asks, OUTSPOKEN_TOOLS__APPROVAL_SECONDS="10"):
            telegram.say(chat, ada, "in the background: write other.txt: milk")
            await answer(telegram, chat, 'May I write "other.txt"')
            await answer(telegram, chat, "🔔 Task 1 (write other.txt: milk) has ended without its result", 30)
    assert [path.name for path in tmp_path.rglob("*.txt") if path.parent != tmp_path] == ["notes.txt"]
