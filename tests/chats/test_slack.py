"""What only Slack has: doubled events, acknowledgement after storing, signed calls, gaps, read-back."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from adapters.slack.inbound import read_message, unescaped
from tests.chats.harness import answer, quiet, running, texts
from tests.chats.slack_harness import SlackHarness, slack_harness
from tests.chats.test_telegram import free_port
from tests.fakes.common import LoseAnswer
from tests.fakes.slack import SIGNING_SECRET, Tamper


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


async def test_events_are_acknowledged_in_time(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "say hi")
        await answer(slack, chat, "hi")
        await slack.fake.until_settled()
        assert all(envelope.acked for envelope in slack.fake.told("message"))


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
    async with running(slack):
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
        posted = slack.fake.log.of("chat.postMessage")[-1].params["text"]
        assert "<!channel>" not in str(posted)


async def test_commands_in_words(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    group = slack.group(ada)
    async with running(slack):
        slack.say(group, ada, "!help", mention=True)
        await answer(slack, group, "/stop")


def test_entities_and_links_are_read_as_they_were_written() -> None:
    assert unescaped("a &lt;b&gt; &amp; <https://e.org|e.org>") == "a <b> & https://e.org"


def test_what_is_no_message_of_a_person_is_nothing() -> None:
    base = {"type": "message", "channel": "D1", "channel_type": "im", "ts": "1.0", "text": "hi", "user": "U1"}
    assert read_message(base, "UBOT", "a", "Ada") is not None
    assert read_message({**base, "bot_id": "B1"}, "UBOT", "a", "Ada") is None
    assert read_message({**base, "user": "UBOT"}, "UBOT", "a", "Ada") is None
    assert read_message({**base, "subtype": "channel_join"}, "UBOT", "a", "Ada") is None
