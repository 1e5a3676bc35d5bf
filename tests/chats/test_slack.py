"""What only Slack has: doubled events, acknowledgement after storing, signed calls, gaps, read-back."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.inbound import read_message
from adapters.slack.written import unescaped
from tests.chats.audited import lies
from tests.chats.harness import answer, answers, process, quiet, running, starting, status, status_until, texts
from tests.chats.slack_harness import WRITES, SlackHarness, Where, slack_harness
from tests.fakes.common import LoseAnswer, Pause
from tests.fakes.slack import (
    SIGNING_SECRET,
    Farewell,
    StreamState,
    Tamper,
    TokenState,
    gateway_page,
    ratelimited,
    refusal,
)
from tests.ports import free_port


def several(words: int) -> str:
    """So many words, none of them twice: what repeats itself is shown later."""
    return " ".join(f"word{number}" for number in range(words))


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncGenerator[SlackHarness]:
    async with slack_harness(tmp_path) as harness:
        yield harness


async def test_a_mention_comes_twice_and_is_answered_once(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    group = slack.group(ada)
    async with running(slack):
        slack.say(group, ada, "say once", mention=True)
        await answer(slack, group, "once")
        await quiet(slack, group)
        assert slack.fake.told("app_mention")
        assert texts(slack, group) == ["once"]


async def test_an_edit_that_adds_the_name_is_a_message_once(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    group = slack.group(ada)
    name = f"<@{slack.fake.world.bot.id}>"
    async with running(slack):
        said = slack.say(group, ada, "say forgotten name")
        slack.edit(group, said, f"{name} say with it")
        await answer(slack, group, "with it")
        slack.edit(group, said, f"{name} say it again")
        await quiet(slack, group)
        assert texts(slack, group) == ["with it"]


async def test_events_are_acknowledged_in_time(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "say hi")
        await answer(slack, chat, "hi")
        await slack.fake.until_settled()
        assert all(envelope.acked for envelope in slack.fake.told("message"))


async def test_calls_share_their_connections(slack: SlackHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its own would be begun with all that belongs to that: at Slack, two more ways there and back, and a key for each."""
    made: list[str] = []
    plain: Any = aiohttp.TCPConnector._create_connection

    async def noted(self: object, request: Any, *more: object) -> Any:
        if str(request.url).startswith(slack.fake.base_url):
            made.append(request.url.path)
        return await plain(self, request, *more)

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", noted)
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        for number in range(4):
            slack.say(chat, ada, f"say answer{number}")
            await answer(slack, chat, f"answer{number}")
    assert 0 < len(made) <= 3, made
    assert len(slack.fake.log) > 10


async def test_by_signed_calls_of_slack(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    port = free_port()
    more = {
        "SLACK_APP_TOKEN": "",
        "OUTSPOKEN_SLACK__SIGNING_SECRET": SIGNING_SECRET,
        "OUTSPOKEN_SERVER__PORT": str(port),
    }
    slack.ready = _at_once
    async with running(slack, **more):
        slack.fake.use_http(f"http://127.0.0.1:{port}/slack/events")
        slack.say(chat, ada, "say by call")
        await answer(slack, chat, "by call")
        slack.fake.webhooks.tamper = Tamper.SIGNATURE
        slack.say(chat, ada, "say forged")
        await quiet(slack, chat)
        assert "forged" not in texts(slack, chat)


async def _at_once() -> None:
    return


async def test_a_lost_answer_is_read_back(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    slack.fake.script("chat.postMessage", LoseAnswer())
    async with running(slack, OUTSPOKEN_SLACK__STREAMS="false"):
        slack.say(chat, ada, "say just one")
        await answer(slack, chat, "just one")
        await slack.until(lambda: bool(slack.fake.log.of("conversations.replies")), 15)
        await quiet(slack, chat)
        assert texts(slack, chat) == ["just one"]
        assert len(slack.fake.log.of("chat.postMessage")) == 1


async def test_a_message_taken_back_while_it_waits_is_not_answered(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "hold on")
        await slack.until(slack.model.holding.is_set)
        waiting = slack.say(chat, ada, "say never")
        await answer(slack, chat, "Queued")
        slack.remove(chat, waiting)
        await slack.until(lambda: not [t for t in texts(slack, chat) if "Queued" in t])
        slack.model.release()
        await answer(slack, chat, "on end")
        await quiet(slack, chat)
        assert "never" not in texts(slack, chat)


async def test_nobody_is_pinged_by_the_model(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "say look <!channel>")
        await answer(slack, chat, "look")
        written = [call.params for call in slack.fake.log if call.route.startswith("chat.")]
        assert written
        assert "<!channel>" not in str(written)


async def test_commands_in_words(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    group = slack.group(ada)
    async with running(slack):
        slack.say(group, ada, "!help", mention=True)
        await answer(slack, group, "“!stop all”")  # in a thread, where there are no slash commands
        slack.command(group, ada, "help")
        await answer(slack, group, "“/outspoken stop all”")


def test_entities_and_links_are_read_as_they_were_written() -> None:
    assert unescaped("a &lt;b&gt; &amp; <https://e.org|e.org>") == "a <b> & https://e.org"


def test_what_is_no_message_of_a_person_is_nothing() -> None:
    base = {"type": "message", "channel": "D1", "channel_type": "im", "ts": "1.0", "text": "hi", "user": "U1"}
    assert read_message(base, "UBOT", "a", "Ada") is not None
    assert read_message({**base, "bot_id": "B1"}, "UBOT", "a", "Ada") is None
    assert read_message({**base, "user": "UBOT"}, "UBOT", "a", "Ada") is None
    assert read_message({**base, "subtype": "channel_join"}, "UBOT", "a", "Ada") is None


# ---------------------------------------------------------------------- streams


def called(slack: SlackHarness, method: str) -> int:
    return len(slack.fake.log.of(method))


@pytest.mark.parametrize("where", ["private", "group"])
async def test_an_answer_on_its_way_is_a_stream_that_ends_in_the_final_text(slack: SlackHarness, where: str) -> None:
    ada = slack.person("Ada")
    place = slack.private(ada) if where == "private" else slack.group(ada)
    async with running(slack):
        slack.say(place, ada, "slow " + " ".join(f"word{n}" for n in range(30)), mention=True)
        await answer(slack, place, "word29", 20)
        await quiet(slack, place)
        assert texts(slack, place) == [" ".join(f"word{n}" for n in range(30))]
        assert called(slack, "chat.startStream") == 1
        assert called(slack, "chat.appendStream") >= 1
        assert called(slack, "chat.stopStream") == 1
        assert called(slack, "chat.update") == 0
        shown = [m for m in place.channel.messages.values() if m.stream is not None]
        assert [m.stream.state for m in shown if m.stream is not None] == [StreamState.DONE]
        assert shown[0].metadata is not None


async def test_an_append_whose_answer_is_lost_ends_the_stream_and_the_text_is_whole(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    words = " ".join(f"word{n}" for n in range(30))
    slack.fake.script("chat.appendStream", LoseAnswer())
    async with running(slack):
        slack.say(chat, ada, f"slow {words}")
        await answer(slack, chat, "word29", 20)
        await quiet(slack, chat)
        assert texts(slack, chat) == [words]
        assert called(slack, "chat.appendStream") == 1, "what may stand there is not added to"
        assert called(slack, "chat.update") >= 1


async def test_a_start_whose_answer_is_lost_is_found_again(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    words = " ".join(f"word{n}" for n in range(40))
    slack.fake.script("chat.startStream", LoseAnswer())
    async with running(slack):
        slack.say(chat, ada, f"slow {words}")
        await answer(slack, chat, "word39", 20)
        await quiet(slack, chat)
        assert texts(slack, chat) == [words]
        assert called(slack, "chat.startStream") == 1
        assert called(slack, "chat.postMessage") == 0


@pytest.mark.parametrize("method", ["chat.stopStream", "chat.update"])
async def test_an_end_whose_answer_is_lost_is_settled(slack: SlackHarness, method: str) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    words = " ".join(f"word{n}" for n in range(20))
    slack.fake.script(method, LoseAnswer())
    async with running(slack):
        slack.say(chat, ada, f"slow {words}")
        await answer(slack, chat, "word19", 20)
        await quiet(slack, chat, 2.0)
        assert texts(slack, chat) == [words]
        assert all(m.stream is None or m.stream.state is not StreamState.OPEN for m in chat.channel.messages.values())


async def test_a_stream_that_slack_ended_is_edited(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    words = " ".join(f"word{n}" for n in range(40))
    async with running(slack):
        slack.say(chat, ada, f"slow {words}")
        await slack.until(lambda: called(slack, "chat.startStream") == 1)
        slack.fake.world.settings.stream_seconds = 0.0
        await answer(slack, chat, "word39", 20)
        await quiet(slack, chat)
        assert texts(slack, chat) == [words]


async def test_a_workspace_without_streams_gets_edits_and_is_asked_once(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    slack.fake.script("chat.startStream", *[refusal("unknown_method")] * 9)
    async with running(slack):
        for number in range(2):
            slack.say(chat, ada, f"slow begin {number} " + f"{several(15)} end{number}")
            await answer(slack, chat, f"end{number}", 20)
        assert called(slack, "chat.startStream") == 1
        assert called(slack, "chat.update") >= 2


async def test_a_table_is_readable_and_whole_in_the_end(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "table")
        seen = await answer(slack, chat, "three", 20)
        await quiet(slack, chat)
        assert "one   | 1" in answers(slack, chat)[-1].text, seen.text


async def test_a_stream_that_a_dead_process_left_is_finished_and_edited(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with process(slack) as one:
        slack.say(chat, ada, "hold so far")
        await slack.until(lambda: called(slack, "chat.startStream") == 1, 15)
        await slack.until(lambda: "so far" in "".join(texts(slack, chat)))
        await asyncio.sleep(0.5)
        await one.kill()
    slack.model.release()
    async with process(slack):
        await answer(slack, chat, "end", 30)
        await quiet(slack, chat)
        assert called(slack, "chat.startStream") <= 2
        assert all(m.stream is None or m.stream.state is not StreamState.OPEN for m in chat.channel.messages.values())
        assert len([t for t in texts(slack, chat) if "so far" in t]) == 1


async def test_what_is_wanted_while_a_message_is_taken_away_is_not_taken_away_with_it(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with process(slack) as one:
        slack.say(chat, ada, "hold so far")
        await slack.until(lambda: "so far" in "".join(texts(slack, chat)), 20)
        await one.kill()
    slack.model.begins.clear()  # so that the turn has no text for a while, and what the dead process showed goes
    slack.model.release()
    taken = Pause(after=True)
    slack.fake.faults.always("chat.delete", taken)
    async with running(slack, OUTSPOKEN_MODEL__STALL_SECONDS="30") as up:
        async with asyncio.timeout(60):
            await taken.reached.wait()
        slack.model.begins.set()
        await slack.until(lambda: not up.hub.running(), 20)
        taken.release()
        await answer(slack, chat, "so far end", 20)
        assert await lies(slack.folder) == []


# ---------------------------------------------------------------------- what the agent does


def history(place: Where) -> list[str]:
    """Every status of every thread's session."""
    return [one.value for session in place.channel.sessions.values() for one in session.history]


async def test_the_session_says_what_the_agent_does(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    for place in (slack.private(ada), slack.group(ada)):
        async with running(slack, OUTSPOKEN_TOOLS__APPROVAL="write_file", OUTSPOKEN_MODEL__STALL_SECONDS="20"):
            slack.say(place, ada, "write secret.txt: x", mention=True)
            asked = await answer(slack, place, "May I write")
            await slack.until(lambda p=place: history(p)[-1:] == ["suspended"])
            slack.press(place, ada, asked.id, "✅ Approve")
            await answer(slack, place, "Done: Wrote")
            await slack.until(lambda p=place: history(p)[-1:] == ["active"])
            assert history(place)[0] == "processing"


@pytest.mark.parametrize("word", ["unknown_method", "missing_scope"])
async def test_where_there_are_no_sessions_it_is_given_up_quietly(slack: SlackHarness, word: str) -> None:
    ada, ben = slack.person("Ada"), slack.person("Ben")
    slack.fake.script("agents.sessions.setStatus", *[refusal(word)] * 9)
    async with running(slack):
        for person in (ada, ben):
            slack.say(slack.private(person), person, f"say hi {person.name}")
            await answer(slack, slack.private(person), f"hi {person.name}")
        assert called(slack, "agents.sessions.setStatus") == 1


async def test_a_status_that_hangs_delays_nothing(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    slack.fake.script("agents.sessions.setStatus", Pause())
    async with running(slack):
        slack.say(chat, ada, "say at once")
        await answer(slack, chat, "at once", 4)


async def test_the_stop_button_stops_the_turn_of_its_thread(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    for place in (slack.private(ada), slack.group(ada)):
        async with running(slack, OUTSPOKEN_MODEL__STALL_SECONDS="20"):
            slack.model.released.clear()
            said = slack.say(place, ada, "hold this much", mention=True)
            await slack.until(lambda p=place: "this much" in "".join(texts(slack, p)))
            await slack.until(lambda p=place: history(p)[-1:] == ["processing"])
            event = slack.fake.people.stop(place.channel, ada, said).payload["event"]
            assert isinstance(event, dict)
            assert event["streaming_message_ts"], "Slack has stopped the stream itself"
            await answer(slack, place, "topped")
            await slack.until(lambda p=place: history(p)[-1:] == ["active"])
            slack.model.release()
            await quiet(slack, place)
            assert [t for t in texts(slack, place) if "this much" in t] == ["this much"]


async def test_the_stop_button_of_another_thread_stops_nothing(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack, OUTSPOKEN_MODEL__STALL_SECONDS="20"):
        first = slack.say(chat, ada, "say first")
        await answer(slack, chat, "first")
        slack.say(chat, ada, "hold on")
        await slack.until(slack.model.holding.is_set)
        slack.fake.world.tell(
            {"type": "agent_session_stopped", "channel": chat.channel.id, "thread_ts": first, "user": ada.id,
             "streaming_message_ts": [], "event_ts": slack.fake.world.new_ts()}
        )  # fmt: skip
        await slack.fake.until_settled()
        slack.model.release()
        await answer(slack, chat, "on end")


async def test_whoever_opens_the_messages_gets_suggestions(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack, OUTSPOKEN_SLACK__PROMPTS="Say hello,Say more"):
        slack.fake.people.open_app(ada, "home")
        slack.fake.people.open_app(ada, "messages")
        await slack.until(lambda: bool(slack.fake.shown(chat.channel).prompts))
        assert [p.message for p in slack.fake.shown(chat.channel).prompts] == ["Say hello", "Say more"]
        assert called(slack, "assistant.threads.setSuggestedPrompts") == 1


# ---------------------------------------------------------------------- blocks


async def test_tools_are_cards_with_words_beside_them(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "write notes.txt: milk")
        await answer(slack, chat, "Done: ")
        await quiet(slack, chat)
        ours = [m for m in chat.channel.messages.values() if m.sender is slack.fake.world.bot]
        cards = [b for m in ours for b in m.blocks if b["type"] == "task_card"]
        tasks = [t for m in ours if m.stream is not None for t in m.stream.tasks.values()]
        assert [one.status for one in tasks] + [one["status"] for one in cards] == ["complete"]
        assert all(m.text or m.stream is not None for m in ours)


async def test_a_slow_tool_is_a_card_on_a_stream(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack, OUTSPOKEN_TOOLS__APPROVAL="write_file"):
        slack.say(chat, ada, "write a.txt: x")
        asked = await answer(slack, chat, "May I write")
        slack.press(chat, ada, asked.id, "✅ Approve")
        await answer(slack, chat, "Done: Wrote")
        await quiet(slack, chat)
        assert all(m.stream is None or m.stream.state is not StreamState.OPEN for m in chat.channel.messages.values())


async def test_a_file_whose_sending_got_no_answer_is_looked_for_and_comes_once(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "write notes.txt: milk and bread")
        await answer(slack, chat, "Done")
        slack.fake.script("files.completeUploadExternal", LoseAnswer())
        slack.say(chat, ada, "send notes.txt")
        await slack.until(lambda: any(one.file == "notes.txt" for one in answers(slack, chat)))
        slack.say(chat, ada, "say that is all")
        await answer(slack, chat, "that is all")  # what comes behind it comes when it is settled
        assert called(slack, "files.completeUploadExternal") == 1
        assert len([one for one in answers(slack, chat) if one.file]) == 1


async def test_a_notice_is_an_alert(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "empty")
        notice = await answer(slack, chat, "⚠️", 30)
        message = slack.fake.message(chat.channel, notice.id)
        assert [block["type"] for block in message.blocks] == ["alert", "actions"]
        assert message.text.startswith("⚠️")


async def test_an_answer_can_be_judged(slack: SlackHarness, capsys: pytest.CaptureFixture[str]) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "say a good one")
        await answer(slack, chat, "a good one")
        await slack.until(lambda: answers(slack, chat)[0].buttons == ("Good", "Bad"))
        seen = answers(slack, chat)[0]
        slack.press(chat, ada, seen.id, "Good")
        await answer(slack, chat, "that is noted")
        assert "feedback.given" in capsys.readouterr().out


async def test_where_blocks_are_refused_plain_text_goes(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    for method in ("chat.postMessage", "chat.update", "chat.stopStream"):
        slack.fake.script(method, refusal("invalid_blocks"))
    async with running(slack, OUTSPOKEN_SLACK__STREAMS="false"):
        slack.say(chat, ada, f"slow **bold** {several(15)} more")
        await answer(slack, chat, "more", 20)
        await quiet(slack, chat)
        assert len(texts(slack, chat)) == 1
        assert texts(slack, chat)[0].startswith("bold word0")


@pytest.mark.parametrize("kind", ["say", "slow"])
async def test_nobody_is_pinged_in_any_form(slack: SlackHarness, kind: str) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, f"{kind} look <!channel> `<!here>` <@{ada.id}> and on it goes for a while until here")
        await answer(slack, chat, "until here", 20)
        await quiet(slack, chat)
        sent = [call.params for name in WRITES for call in slack.fake.log.of(name)]
        assert sent
        for params in sent:
            assert not re.search(r"<[!@]", json.dumps(params, ensure_ascii=False, default=str)), params


# ---------------------------------------------------------------------- direct messages


async def test_direct_messages_are_one_conversation_in_many_threads(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        first = slack.say(chat, ada, "say red")
        seen = await answer(slack, chat, "red")
        assert seen.reply_to == first
        second = slack.say(chat, ada, "recall")
        seen = await answer(slack, chat, "I remember")
        assert (seen.reply_to, "red" in seen.text) == (second, True)


async def test_threads_of_direct_messages_can_be_conversations_of_their_own(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack, OUTSPOKEN_SLACK__DIRECT="threads"):
        slack.say(chat, ada, "say red")
        seen = await answer(slack, chat, "red")
        slack.say(chat, ada, "recall")
        assert "red" not in (await answer(slack, chat, "I remember")).text
        slack.say(chat, ada, "recall", reply_to=seen.id)
        await slack.until(lambda: any("I remember" in t and "red" in t for t in texts(slack, chat)))


async def test_direct_messages_can_be_flat(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack, OUTSPOKEN_SLACK__DIRECT="flat"):
        slack.say(chat, ada, f"slow {several(20)} it ends")
        seen = await answer(slack, chat, "it ends", 20)
        assert seen.reply_to == ""
        assert called(slack, "chat.startStream") == 0


# ---------------------------------------------------------------------- sockets


async def test_each_envelope_is_acknowledged_where_it_came_in(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack, OUTSPOKEN_SLACK__SOCKETS="3"):
        await slack.fake.until_connected(3)
        for number in range(6):
            slack.say(chat, ada, f"say number {number}")
        await answer(slack, chat, "number 5", 20)
        await slack.fake.until_settled()
        told = slack.fake.told("message")
        attempts = [attempt for envelope in told for attempt in envelope.attempts]
        assert len({attempt.via for attempt in attempts}) == 3, "all of them are used"
        via = {attempt.envelope_id: attempt.via for attempt in attempts}
        acked = {number: socket.number for socket in slack.fake.sockets.all for number in socket.acked}
        assert all(acked[number] == via[number] for number in via.keys() & acked.keys())
        # On a slow machine one is not taken before the past of its place is read, and told again.
        assert all(any(one.envelope_id in acked for one in envelope.attempts) for envelope in told)


@pytest.mark.parametrize("reason", [Farewell.WARNING, Farewell.REFRESH])
async def test_a_socket_is_replaced_before_it_goes(slack: SlackHarness, reason: Farewell) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack, OUTSPOKEN_SLACK__SOCKETS="1"):
        old = slack.fake.sockets.latest
        await slack.fake.sockets.disconnect(reason, old, close=False)
        slack.fake.sockets.favour(old)
        slack.say(chat, ada, "say by the old one")
        await answer(slack, chat, "by the old one")
        await slack.fake.until_connected(2)
        assert old.open, "the new one is there before the old one goes"
        await slack.fake.until_settled()
        assert all(len(envelope.attempts) == 1 for envelope in slack.fake.told("message"))
        await slack.until(lambda: not old.open, 20)
        slack.say(chat, ada, "say by the new one")
        await answer(slack, chat, "by the new one")


async def test_a_socket_that_is_cut_leaves_no_gap(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        await slack.fake.until_connected(2)
        slack.fake.sockets.cut(slack.fake.sockets.open[0])
        slack.say(chat, ada, "say still here")
        await answer(slack, chat, "still here", 3)
        await slack.fake.until_connected(2)


async def test_what_was_given_to_a_dead_socket_is_looked_up(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "say one")
        await answer(slack, chat, "one")
        await slack.fake.until_connected(2)
        dead = slack.fake.sockets.latest
        dead.deaf = dead.mute = True
        slack.fake.sockets.favour(dead)  # each try to tell it goes there
        slack.say(chat, ada, "say two")
        await answer(slack, chat, "two", 30)
        await quiet(slack, chat)
        assert texts(slack, chat) == ["one", "two"]


async def test_what_a_ghost_ate_comes_again(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        ghost = slack.fake.sockets.ghost()
        slack.fake.sockets.favour(ghost)
        slack.say(chat, ada, "say not lost")
        slack.fake.sockets.favour(None)
        await answer(slack, chat, "not lost", 20)
        await quiet(slack, chat)
        assert texts(slack, chat) == ["not lost"]


async def test_socket_mode_switched_off_needs_a_person(slack: SlackHarness) -> None:
    async with running(slack) as up:
        await slack.fake.sockets.disconnect(Farewell.LINK_DISABLED)
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] == "needs a person")
        assert "Socket Mode is switched off" in told["adapters"][0]["words"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("link_disabled", "Socket Mode is switched off"),
        ("missing_scope", "connections:write"),
        ("not_allowed_token_type", "connections:write"),
    ],
)
async def test_whoever_may_open_no_socket_needs_a_person(slack: SlackHarness, word: str, said: str) -> None:
    slack.fake.faults.always("apps.connections.open", refusal(word))
    async with starting(slack) as up:
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] == "needs a person")
        assert said in told["adapters"][0]["words"]


# ---------------------------------------------------------------------- what was missed


@pytest.mark.parametrize("where", ["private", "group"])
async def test_answers_in_a_thread_that_were_missed_are_read(slack: SlackHarness, where: str) -> None:
    ada = slack.person("Ada")
    place = slack.private(ada) if where == "private" else slack.group(ada)
    async with running(slack):
        slack.say(place, ada, "say hello", mention=True)
        seen = await answer(slack, place, "hello")
        await slack.fake.until_settled()
    slack.fake.unsubscribe("message.channels", "message.im")
    slack.say(place, ada, "say I was away", reply_to=seen.id)
    slack.fake.script("conversations.replies", ratelimited(1))
    slack.fake.subscribe("message.channels", "message.im")
    await asyncio.sleep(1.2)  # what has come only just now is not called late
    async with running(slack):
        await answer(slack, place, "I was away", 20)
        await quiet(slack, place)
        assert len([t for t in texts(slack, place) if "I was away" in t]) == 1
        assert "[Sent while I was offline]" in str(slack.model.requests[-1][-1]["content"])


async def test_a_stream_is_not_given_up_because_one_answer_has_no_thread(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.command(chat, ada, "queue", f"slow {several(15)} by command")
        assert (await answer(slack, chat, "by command", 20)).reply_to == ""
        assert called(slack, "chat.startStream") == 0
        slack.say(chat, ada, f"slow {several(15)} by message")
        await answer(slack, chat, "by message", 20)
        assert called(slack, "chat.startStream") == 1


async def test_a_second_gateway_with_the_same_token_is_told(
    slack: SlackHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.contract.supervision.SETTLED_SECONDS", 0.0)
    monkeypatch.setattr("adapters.slack.adapter.ANSWERED_SECONDS", 0.5)
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack) as up:
        slack.say(chat, ada, "say one")
        await answer(slack, chat, "one")
        await quiet(slack, chat)
        await asyncio.sleep(1)
        assert (await status(up.url))["adapters"][0]["state"] == "up", "what we sent ourselves is ours"
        web: Any = AsyncWebClient(token=slack.fake.bot_token, base_url=slack.fake.base_url)
        metadata = {"event_type": "outspoken_part", "event_payload": {"key": "a part of another gateway"}}
        await web.chat_postMessage(channel=slack.chat_of(chat), text="two", metadata=metadata)
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] == "needs a person")
        assert "Another gateway" in told["adapters"][0]["words"]


async def test_while_no_socket_is_open_status_does_not_say_up(slack: SlackHarness) -> None:
    async with running(slack) as up:
        slack.fake.faults.always("apps.connections.open", gateway_page(503))
        slack.fake.sockets.cut()
        await status_until(up.url, lambda told: told["adapters"][0]["state"] != "up")


async def test_words_behind_the_slash_command_that_are_none_of_ours_mean_what_was_typed(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    group = slack.group(ada)
    async with running(slack):
        slack.command(group, ada, "What", "is that")
        await answer(slack, group, "You said: ada: What is that")
        slack.say(group, ada, "!important look here", mention=True)
        await answer(slack, group, "!important look here")


async def test_a_command_where_the_app_is_not_is_answered_in_private_with_what_to_do(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    alien = slack.fake.people.channel("alien", ada)
    alien.members.remove(slack.fake.world.bot.id)
    async with running(slack):
        slack.fake.people.command(alien, ada, "/outspoken", "status")
        await answer(slack, slack.private(ada), "the app is not in that channel")


async def test_a_token_that_is_taken_back_is_told_though_what_is_said_still_comes(slack: SlackHarness) -> None:
    """The sockets are the app-level token's, so they stay."""
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack) as up:
        slack.say(chat, ada, "say hello")
        await answer(slack, chat, "hello", 20)
        slack.fake.tokens(TokenState.REVOKED)
        slack.say(chat, ada, "say anything")
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] == "needs a person")
        assert "token" in told["adapters"][0]["words"]
        assert slack.fake.sockets.open
        slack.fake.tokens(TokenState.GOOD)
        await status_until(up.url, lambda told: told["adapters"][0]["state"] == "up")
