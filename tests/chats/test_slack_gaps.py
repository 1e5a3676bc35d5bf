"""Gaps in what Slack tells: sockets that are cut, histories that cannot be read, threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from adapters.slack import missed
from adapters.slack.missed import LIVE_SECONDS, number_of, place_of, ts_of
from agent_core.store.inbox.rows import Accepted
from agent_core.store.store import StorageUnavailable
from gateway.sessions.accepting import Accepting
from tests.chats.harness import answer, quiet, running, texts
from tests.chats.slack_harness import SlackHarness, slack_harness
from tests.fakes.common import LoseAnswer, Pause
from tests.fakes.slack import gateway_page, ratelimited

MARK = "[Sent while I was offline]"


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncGenerator[SlackHarness]:
    async with slack_harness(tmp_path) as harness:
        harness.fake.outbox.retries_seconds = ()  # what is not heard at once is not told again
        yield harness


def asked(slack: SlackHarness, words: str) -> str:
    """What the model was asked, of the message with these words."""
    return next(one for one in reversed(slack.model.asked) if words in one)


async def test_after_a_cut_it_answers_within_30_seconds(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "say one")
        await answer(slack, chat, "one")
        slack.fake.sockets.cut()
        slack.say(chat, ada, "say two")
        await answer(slack, chat, "two", 30)
        slack.say(chat, ada, "say three")
        await answer(slack, chat, "three")
        await quiet(slack, chat)
        assert texts(slack, chat) == ["one", "two", "three"]
        assert MARK in asked(slack, "two")
        assert MARK not in asked(slack, "three")


@pytest.mark.parametrize("trouble", ["too fast", "server error", "lost"])
async def test_a_history_that_cannot_be_read_is_read_later(slack: SlackHarness, trouble: str) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    fault = {"too fast": ratelimited(1), "server error": gateway_page(503), "lost": LoseAnswer()}[trouble]
    async with running(slack):
        slack.say(chat, ada, "say one")
        await answer(slack, chat, "one")
    slack.fake.script("conversations.history", fault)
    slack.say(chat, ada, "say two")
    async with running(slack):
        slack.say(chat, ada, "say three")
        await answer(slack, chat, "two", 20)
        await answer(slack, chat, "three", 20)
        assert slack.fake.faults.left("conversations.history") == 0


async def test_what_is_said_while_the_past_is_read_comes_after_it_and_before_what_follows(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "say one")
        await answer(slack, chat, "one")
    pause = Pause(after=True)
    slack.fake.script("conversations.history", pause)
    async with running(slack):
        await pause.reached.wait()
        slack.say(chat, ada, "say two")  # too late for the call under way, which lasts longer than Slack waits
        await asyncio.sleep(2 * LIVE_SECONDS + 1)
        pause.release()
        await asyncio.sleep(0.3)
        slack.say(chat, ada, "say three")
        await answer(slack, chat, "three", 20)
        await slack.until(lambda: texts(slack, chat) == ["one", "two", "three"], 5)


async def test_what_waits_for_the_past_of_its_place_waits_no_longer_than_that_though_it_is_not_told_again(
    slack: SlackHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missed, "HOLD_SECONDS", 2.0)
    ada = slack.person("Ada")
    chat = slack.private(ada)
    async with running(slack):
        slack.say(chat, ada, "say one")
        await answer(slack, chat, "one")
    pause = Pause(after=True)
    slack.fake.script("conversations.history", pause)
    async with running(slack):
        await pause.reached.wait()
        read = slack.fake.log.routes().count("conversations.history")
        slack.say(chat, ada, "say two")
        slack.say(chat, ada, "say three")
        await answer(slack, chat, "three", 10)
        assert slack.fake.log.routes().count("conversations.history") == read, "it still is being read"
        assert texts(slack, chat) == ["one", "two", "three"]
        pause.release()


async def test_what_could_not_be_stored_is_stored_before_what_is_said_later(
    slack: SlackHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [slack.person(name) for name in ("Ada", "Bob")]
    chats = [slack.private(one) for one in people]
    away = True
    put = Accepting.put

    async def stumbles(self: Accepting, *more: Any) -> Accepted:
        if away:
            raise StorageUnavailable("The database is away.")
        return await put(self, *more)

    async with running(slack):
        monkeypatch.setattr(Accepting, "put", stumbles)
        for chat, ada in zip(chats, people, strict=True):
            slack.say(chat, ada, "say one")
            slack.say(chat, ada, "say two")
        await asyncio.sleep(1)
        away = False
        for chat, ada in zip(chats, people, strict=True):
            slack.say(chat, ada, "say three")
        for chat in chats:
            await answer(slack, chat, "three")
            await answer(slack, chat, "two")
            said = ["one", "two", "three"]
            assert [one for one in texts(slack, chat) if one in said] == said


async def test_threads_have_gaps_of_their_own(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    group = slack.group(ada)
    async with running(slack):
        first = slack.say(group, ada, "say one", mention=True)
        await answer(slack, group, "one")
    slack.say(group, ada, "say two", reply_to=first)
    later = slack.say(group, ada, "say three", mention=True)
    slack.say(group, ada, "say four", reply_to=later)
    stray = slack.say(group, ada, "this is not for you")
    slack.say(group, ada, "nor is this", reply_to=stray)
    async with running(slack):
        for words in ("two", "three", "four"):
            await answer(slack, group, words, 20)
        await slack.until(lambda: sorted(texts(slack, group)) == ["four", "one", "three", "two"], 20)
        await quiet(slack, group)
        assert sorted(texts(slack, group)) == ["four", "one", "three", "two"]


async def test_the_first_message_of_a_place_has_one_before_it_that_nobody_heard(slack: SlackHarness) -> None:
    ada, bob = slack.person("Ada"), slack.person("Bob")
    chat, thread = slack.private(ada), slack.topics(bob)[1]
    slack.say(chat, ada, "say one")
    slack.say(thread, bob, "say two", mention=True)
    async with running(slack):
        slack.say(chat, ada, "say three")
        slack.say(thread, bob, "say four", mention=True)
        await answer(slack, chat, "three", 20)
        await answer(slack, thread, "four", 20)
        await slack.until(lambda: texts(slack, chat) == ["one", "three"], 20)  # and the word that one waits has gone
        await slack.until(lambda: texts(slack, thread) == ["two", "four"], 20)
        assert MARK in asked(slack, "one")
        assert MARK not in asked(slack, "three")


@pytest.mark.parametrize("leisure", [60.0, 1.0])
async def test_where_not_everything_can_be_looked_into_at_once_the_rest_is_later_or_when_somebody_writes(
    slack: SlackHarness, monkeypatch: pytest.MonkeyPatch, leisure: float
) -> None:
    monkeypatch.setattr(missed, "MOST_THREADS", 1)
    monkeypatch.setattr("adapters.contract.backlog.LEISURE_SECONDS", leisure)
    ada, bob, eve = slack.person("Ada"), slack.person("Bob"), slack.person("Eve")
    one, quieter, other = (slack.topics(person)[1] for person in (ada, eve, bob))

    # One place at leisure is read at once, which the lot draws: here it draws this one last.
    def lot(place: str, _since_ms: int, _chance: float) -> int:
        return not place.startswith(one.channel.id)

    monkeypatch.setattr("adapters.contract.backlog.lot", lot)
    async with running(slack):
        chat = slack.private(ada)
        slack.say(chat, ada, "say what opens a thread that nobody answers in")
        await answer(slack, chat, "what opens a thread that nobody answers in")
        for thread, person in ((one, ada), (quieter, eve), (other, bob)):
            slack.say(thread, person, "say begun", mention=True)
            await answer(slack, thread, "begun")
    slack.say(one, ada, "say two")
    slack.say(other, bob, "say three")
    async with running(slack):
        await answer(slack, other, "three", 20)
        if leisure < 10:
            await answer(slack, one, "two", 20)
            return
        await quiet(slack, one)
        assert texts(slack, one) == ["begun"]
        slack.say(one, ada, "say four")
        await answer(slack, one, "four", 20)
        await slack.until(lambda: texts(slack, one) == ["begun", "two", "four"], 5)


async def test_a_long_gap_is_read_to_its_end(slack: SlackHarness) -> None:
    ada = slack.person("Ada")
    group = slack.group(ada)
    async with running(slack):
        slack.say(group, ada, "say one", mention=True)
        await answer(slack, group, "one")
    slack.say(group, ada, "say two", mention=True)
    for number in range(250):
        slack.say(group, ada, f"not for you {number}")
    slack.say(group, ada, "say three", mention=True)
    async with running(slack):
        await answer(slack, group, "two", 20)
        await answer(slack, group, "three", 20)


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_gap_that_is_too_long_to_be_taken_at_once_is_taken_all_the_same(
    slack: SlackHarness, monkeypatch: pytest.MonkeyPatch, *, threaded: bool
) -> None:
    monkeypatch.setattr(missed, "PAGE", 2)
    monkeypatch.setattr(missed, "MOST_PAGES", 2)
    monkeypatch.setattr("adapters.contract.backlog.LEISURE_SECONDS", 0.3)
    ada = slack.person("Ada")
    group = slack.topics(ada)[1] if threaded else slack.group(ada)
    async with running(slack):
        slack.say(group, ada, "say begun", mention=True)
        await answer(slack, group, "begun")
    missed_words = ["two", "three", "four", "five", "six", "seven", "eight"]
    for words in missed_words:
        slack.say(group, ada, f"say {words}", mention=True)
        if not threaded:  # who writes in a thread with us is meant for us
            slack.say(group, ada, f"not for you, {words}")
    async with running(slack):
        for words in missed_words:
            await answer(slack, group, words, 60)
        if threaded:  # else each opens a thread of its own, and these have no order
            assert [one for one in texts(slack, group) if one in missed_words] == missed_words


def test_time_stamps_are_compared_as_numbers() -> None:
    assert number_of("1700000000.000100") == 1_700_000_000_000_100
    assert number_of("1700000000.1") == 1_700_000_000_100_000
    assert ts_of(number_of("1700000000.000100")) == "1700000000.000100"
    assert number_of("999999999.999999") < number_of("1000000000.000000")


def test_answers_in_threads_stand_in_their_thread() -> None:
    assert place_of({"channel": "C1", "ts": "2.0"}) == "C1"
    assert place_of({"channel": "C1", "ts": "2.0", "thread_ts": "2.0"}) == "C1"
    assert place_of({"channel": "C1", "ts": "2.0", "thread_ts": "1.0"}) == "C1:1.0"
