"""What a port asks of its platform: whatever is shown goes to the place that it is meant for, calls nobody who is not meant, loses nothing to a message that is
gone, and can be found again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import (
    Button,
    CallFailed,
    Cause,
    ChatAddress,
    ChatPort,
    Content,
    ContentKind,
    Doing,
    Fate,
    Flow,
)
from adapters.contract.files import UPLOAD_SECONDS, FileHosts, FileSource
from adapters.discord.library import discord
from adapters.discord.port import NONCE, DiscordPort, nonce_of
from adapters.slack.port import SlackPort
from adapters.telegram.port import TelegramPort
from adapters.text.styled import Styled
from agent_core.messages import VOICE_STEM
from gateway.delivery import calls as sender
from tests.adapters.test_fates import said
from tests.agent_core.turns import gives

FILES = FileSource(FileHosts(()))
TEXT = Content(ContentKind.TEXT, Styled("hello @everyone"), reply_to="5", silent=True)


def file(name: str) -> Content:
    return Content(ContentKind.FILE, Styled(), file_text="words", file_name=name)


class Told:
    """A library's object: whatever it is asked is noted, and answered alike."""

    def __init__(self, answer: Any, fails: Mapping[str, Exception] | None = None) -> None:
        self.answer = answer
        self.fails: Mapping[str, Exception] = fails or {}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("__"):
            raise AttributeError(name)

        async def asked(*_: Any, **told: Any) -> Any:
            self.calls.append((name, told))
            if (error := self.fails.get(name)) is not None:
                raise error
            return self.answer

        return asked

    @property
    def last(self) -> dict[str, Any]:
        return self.calls[-1][1]


# ---------------------------------------------------------------------- Telegram


def on_telegram(fails: Mapping[str, Exception] | None = None) -> tuple[TelegramPort, Told]:
    bot = Told(SimpleNamespace(message_id=8), fails)
    return TelegramPort(cast("Any", bot), FILES, drafts=True), bot


SHOWN: dict[str, Callable[[ChatPort, ChatAddress], Awaitable[object]]] = {
    "words": lambda port, at: port.create(at, TEXT, "k"),
    "a draft": lambda port, at: port.draft(at, 3, Styled("hel")),
    "typing": lambda port, at: port.typing(at),
    "a picture": lambda port, at: port.create(at, file("a.png"), "k"),
    "a voice": lambda port, at: port.create(at, file(f"{VOICE_STEM}.ogg"), "k"),
    "a file": lambda port, at: port.create(at, file("a.csv"), "k"),
}


@pytest.mark.parametrize("thread", ["", "9"])
@pytest.mark.parametrize("what", SHOWN)
async def test_on_telegram_all_that_is_shown_is_shown_in_its_topic(what: str, thread: str) -> None:
    port, bot = on_telegram()
    await SHOWN[what](port, ChatAddress("telegram", "1", "-2", thread))
    assert bot.last["message_thread_id"] == (9 if thread else None)


@pytest.mark.parametrize("name", ["a.png", f"{VOICE_STEM}.ogg"])
async def test_on_telegram_what_is_refused_in_its_own_form_goes_as_a_file(name: str) -> None:
    from telegram.error import BadRequest

    at = ChatAddress("telegram", "1", "-2", "9")
    for refused in ("PHOTO_INVALID_DIMENSIONS", "something new", "can't parse entities"):
        port, bot = on_telegram({"send_photo": BadRequest(refused), "send_voice": BadRequest(refused)})
        assert await port.create(at, file(name), "k") == "8"
        assert bot.calls[-1][0] == "send_document"
        assert bot.last["message_thread_id"] == 9
    port, bot = on_telegram({"send_photo": BadRequest("chat not found"), "send_voice": BadRequest("chat not found")})
    with pytest.raises(CallFailed) as failed:
        await port.create(at, file(name), "k")
    assert (failed.value.cause, len(bot.calls)) == (Cause.NO_CHAT, 1)


@pytest.mark.parametrize("name", ["a.png", f"{VOICE_STEM}.ogg", "a.csv"])
async def test_on_telegram_a_file_answers_to_whom_it_is_for_and_is_as_quiet_as_words(name: str) -> None:
    port, bot = on_telegram()
    await port.create(ChatAddress("telegram", "1", "-2"), replace(file(name), reply_to="5", silent=True), "k")
    assert bot.last["reply_parameters"].message_id == 5
    assert bot.last["disable_notification"] is True


async def test_on_telegram_an_answer_to_what_is_gone_comes_all_the_same_and_shows_no_pages() -> None:
    port, bot = on_telegram()
    at = ChatAddress("telegram", "1", "2")
    await port.create(at, TEXT, "k")
    assert bot.last["reply_parameters"].allow_sending_without_reply
    assert bot.last["disable_notification"] is True
    assert bot.last["link_preview_options"].is_disabled
    await port.edit(at, "8", replace(TEXT, buttons=(Button("Yes", "y"),)))
    assert bot.last["link_preview_options"].is_disabled
    assert bot.last["reply_markup"] is not None
    await port.edit(at, "8", TEXT)
    assert bot.last["reply_markup"] is None


def test_on_telegram_groups_are_written_to_more_slowly_than_people() -> None:
    from adapters.telegram.port import chat_rate

    person, group = (chat_rate(ChatAddress("telegram", "1", chat)) for chat in ("2", "-2"))
    for rate, most, span in ((person, 65, 60_000), (group, 20, 60_000)):
        assert rate.burst + span / rate.interval_ms <= most, "one a second, and twenty a minute"


# ---------------------------------------------------------------------- Discord


class Channel(Told):
    """A channel of Discord's, with one message."""

    id = 2

    def get_partial_message(self, number: int) -> Channel:
        assert number == 8
        return self


def on_discord() -> tuple[DiscordPort, Channel, list[str]]:
    channel, sent = Channel(SimpleNamespace(id=8)), list[str]()
    port = DiscordPort(FILES, sent.append)
    port.client = cast("Any", SimpleNamespace(http=SimpleNamespace(token="t"), get_partial_messageable=gives(channel)))
    return port, channel, sent


async def test_on_discord_nobody_is_called_and_an_answer_to_what_is_gone_comes_all_the_same() -> None:
    port, channel, sent = on_discord()
    at = ChatAddress("discord", "1", "2")
    nobody = discord.AllowedMentions.none().to_dict()
    assert await port.create(at, TEXT, "k") == "8"
    told = channel.last
    assert told["allowed_mentions"].to_dict() == nobody
    assert (told["silent"], told["suppress_embeds"]) == (True, True)
    assert told["reference"].fail_if_not_exists is False
    assert told["nonce"] == nonce_of("k") == sent[0]
    await port.create(at, replace(TEXT, silent=False, reply_to=""), "k")
    assert channel.last["silent"] is False
    assert "reference" not in channel.last
    await port.edit(at, "8", TEXT)
    assert channel.last["allowed_mentions"].to_dict() == nobody


async def test_on_discord_buttons_stand_as_long_as_there_are_any() -> None:
    port, channel, _ = on_discord()
    at = ChatAddress("discord", "1", "2")
    await port.edit(at, "8", replace(TEXT, buttons=(Button("Yes", "y"),)))
    (button,) = channel.last["view"].children
    assert (button.label, button.custom_id) == ("Yes", "y")
    await port.edit(at, "8", TEXT)
    assert channel.last["view"] is None, "not there to be pressed any more"


ARCHIVED, LOCKED, FORBIDDEN, TOO_FAST = 50083, 160005, 50013, discord.RateLimited(7)


class Thread(Channel):
    """One that refuses words at first, and what is asked about it."""

    def __init__(self, *answers: object) -> None:
        super().__init__(None)
        self.answers = [*answers]

    async def send(self, *_: Any, **told: Any) -> Any:
        self.calls.append(("send", told))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(id=answer)


async def in_thread(thread: Thread, about: Told) -> CallFailed | str:
    port = DiscordPort(FILES)
    port.client = cast("Any", SimpleNamespace(http=about, get_partial_messageable=gives(thread)))
    try:
        return await port.create(ChatAddress("discord", "1", "2", "3"), replace(TEXT, reply_to=""), "k")
    except CallFailed as error:
        return error


@pytest.mark.parametrize(
    ("answers", "fails", "kind", "fate", "cause"),
    [
        ((said(400, ARCHIVED), TOO_FAST), {}, 11, Fate.TOO_FAST, Cause.NONE),
        ((said(400, ARCHIVED), OSError("gone")), {}, 11, Fate.UNKNOWN, Cause.NONE),
        ((said(400, ARCHIVED),), {"edit_channel": TOO_FAST}, 11, Fate.TOO_FAST, Cause.NONE),
        ((said(400, ARCHIVED),), {"edit_channel": OSError("gone")}, 11, Fate.NOT_SENT, Cause.NONE),
        ((said(400, LOCKED),), {"get_channel": TOO_FAST}, 11, Fate.TOO_FAST, Cause.NONE),
        ((said(400, LOCKED),), {"get_channel": OSError("gone")}, 11, Fate.NOT_SENT, Cause.NONE),
        ((said(400, ARCHIVED),), {"edit_channel": said(403, FORBIDDEN)}, 11, Fate.REFUSED, Cause.NO_THREAD),
        ((said(400, ARCHIVED), said(400, LOCKED)), {}, 12, Fate.REFUSED, Cause.NO_RIGHTS),
        ((said(400, LOCKED),), {"get_channel": said(403, FORBIDDEN)}, 11, Fate.REFUSED, Cause.NO_RIGHTS),
    ],
)
async def test_on_discord_a_thread_is_closed_only_where_discord_says_so(
    answers: tuple[object, ...], fails: dict[str, Exception], kind: int, fate: Fate, cause: Cause
) -> None:
    """What is too fast, or fails on its way, says nothing of a thread: else its words would go astray into the channel, or nowhere."""
    failed = await in_thread(Thread(*answers), Told({"type": kind}, fails))
    assert isinstance(failed, CallFailed)
    assert (failed.fate, failed.cause) == (fate, cause)


async def test_on_discord_a_thread_that_was_archived_is_opened_again() -> None:
    thread, about = Thread(said(400, ARCHIVED), 8), Told({"type": 11})
    assert await in_thread(thread, about) == "8"
    assert about.calls == [("edit_channel", {"archived": False})]


def test_another_part_has_another_nonce_which_is_as_long_as_it_may_be() -> None:
    nonces = {nonce_of(f"chat/turn/{n}") for n in range(2_000)}
    assert len(nonces) == 2_000
    assert all(NONCE.fullmatch(one) for one in nonces)


# ---------------------------------------------------------------------- Slack


class Answer(dict[str, Any]):
    """What Slack's library gives back."""

    @property
    def data(self) -> dict[str, Any]:
        return self


def on_slack(**answer: Any) -> tuple[SlackPort, Told, list[str]]:
    web, sent = Told(Answer({"ts": "8.0", **answer})), list[str]()
    port = SlackPort(cast("Any", web), FILES, sends=sent.append)
    port.team = "T1"
    return port, web, sent


HERE = ChatAddress("slack", "T1", "C1", "4.0")


async def test_on_slack_what_is_sent_can_be_found_by_its_key_and_calls_nobody() -> None:
    port, web, sent = on_slack()
    assert await port.create(HERE, TEXT, "k") == "8.0"
    told = web.last
    assert told["metadata"]["event_payload"] == {"key": "k"}
    assert told["thread_ts"] == "4.0"
    assert {told["unfurl_links"], told["unfurl_media"], told["link_names"]} == {False}
    assert sent == ["k", "8.0"], "what comes back by the events is known as ours"
    first = told["client_msg_id"]
    await port.create(HERE, TEXT, "k")
    assert web.last["client_msg_id"] == first, "the same is made once"
    await port.create(HERE, TEXT, "k2")
    assert web.last["client_msg_id"] != first
    web.answer = Answer({"messages": [{"ts": "8.0", "metadata": told["metadata"]}]})
    assert await port.find(HERE, TEXT, "k", 0) == "8.0"
    assert web.last["include_all_metadata"] is True, "without it Slack tells no keys"
    assert await port.find(HERE, TEXT, "k2", 0) is None
    assert await port.key_at("C1", "4.0", "8.0") == "k"
    assert web.last["include_all_metadata"] is True


async def test_on_slack_a_stream_of_ours_is_one_that_grows_still_and_bears_no_key() -> None:
    port, web, _ = on_slack()
    grows = {"ts": "9.0", "text": "hel", "bot_id": "B1", "streaming_state": "in_progress"}
    other = {"event_type": "outspoken_part", "event_payload": {"key": "k2"}}
    answer = replace(TEXT, body=Styled("hello"))
    for message, found in (
        (grows, True),
        (grows | {"metadata": other}, False),
        (grows | {"streaming_state": "completed"}, False),
        (grows | {"text": "else"}, False),
        (grows | {"text": ""}, False),
        ({**grows, "bot_id": ""}, False),
    ):
        web.answer = Answer({"messages": [message]})
        assert (await port.find(HERE, answer, "k", 0) is not None) is found, message
    web.answer = Answer({"messages": [grows | {"text": ""}]})
    assert await port.find(HERE, replace(TEXT, body=Styled("")), "k", 0) is not None, "one that has only begun"


@pytest.mark.parametrize("team", ["", "T1"])
@pytest.mark.parametrize("chat", ["C1", "D1"])
@pytest.mark.parametrize("thread", ["", "4.0"])
def test_on_slack_text_grows_in_a_channel_only_in_a_thread_and_once_the_workspace_is_known(
    thread: str, chat: str, team: str
) -> None:
    """Slack refuses a stream in a channel without the workspace's id."""
    port, _, _ = on_slack()
    port.team = team
    assert port.traits(replace(HERE, chat=chat, thread=thread)).streams is (chat == "D1" or bool(thread and team))


@pytest.mark.parametrize(
    ("word", "stays"), [("thread_not_found", True), ("unknown_method", False), ("missing_scope", False)]
)
async def test_on_slack_streams_and_sessions_are_given_up_only_where_the_workspace_has_none(
    word: str, stays: bool
) -> None:
    from slack_sdk.errors import SlackApiError

    port, web, _ = on_slack()
    refused = SlackApiError("no", cast("Any", SimpleNamespace(status_code=200, data={"error": word}, headers={})))
    web.fails = {"chat_startStream": refused, "agents_sessions_setStatus": refused}
    with pytest.raises(CallFailed):
        await port.start(HERE, TEXT, Flow("hel"), "U1")
    with pytest.raises(CallFailed):
        await port.doing(HERE, "4.0", Doing.WORKING, "U1")
    assert (port.traits(HERE).streams, port.traits(HERE).sessions) == (stays, stays)


async def test_on_slack_a_file_goes_to_its_thread_is_not_changed_and_is_taken_away_as_a_file() -> None:
    port, web, _ = on_slack(files=[{"id": "F1"}])
    sent = await port.create(HERE, file("a.csv"), "k")
    assert web.last["thread_ts"] == "4.0"
    with pytest.raises(CallFailed) as failed:
        await port.edit(HERE, sent, TEXT)
    assert failed.value.fate is Fate.REFUSED
    await port.delete(HERE, sent)
    assert web.calls[-1] == ("files_delete", {"file": "F1"})
    await port.delete(HERE, "8.0")
    assert web.calls[-1] == ("chat_delete", {"channel": "C1", "ts": "8.0"})
    web.answer = Answer()
    await port.edit(HERE, "8.0", TEXT)
    assert web.last["blocks"] == [], "those that stood there go"


async def test_on_slack_what_can_be_pressed_can_be_told_apart_by_slack() -> None:
    """It refuses a block in which two have one name, and the question would stand there without any button."""
    port, web, _ = on_slack()
    choices = tuple(
        Button(label, f"answer:t_1:0f{place}") for place, label in enumerate(("inside", "garden", "decline"))
    )
    await port.create(HERE, Content(ContentKind.APPROVAL, Styled("Where?"), choices), "k")
    (elements,) = [block["elements"] for block in web.last["blocks"] if block["type"] == "actions"]
    assert len({one["action_id"] for one in elements}) == len(choices)
    assert [one["value"] for one in elements] == [one.data for one in choices]


class Slow(Told):
    """A library whose calls take their time."""

    id = 2

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        asked = super().__getattr__(name)

        async def slowly(*given: Any, **told: Any) -> Any:
            await asyncio.sleep(0.1)
            return await asked(*given, **told)

        return slowly


async def test_a_file_may_take_longer_than_words_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the outbox gives it: else what is large, or goes a slow way, would begin anew for ever."""
    assert sender.CALL_SECONDS < UPLOAD_SECONDS < sender.UPLOAD_SECONDS
    monkeypatch.setattr("adapters.slack.port.CALL_SECONDS", 0.02)
    monkeypatch.setattr("adapters.discord.port.CALL_SECONDS", 0.02)
    slack = SlackPort(cast("Any", Slow(Answer({"ts": "8.0", "files": [{"id": "F1"}]}))), FILES)
    channel = Slow(SimpleNamespace(id=8))
    on_it = DiscordPort(FILES)
    on_it.client = cast("Any", SimpleNamespace(http=SimpleNamespace(token="t"), get_partial_messageable=gives(channel)))
    for port, at in ((slack, HERE), (on_it, ChatAddress("discord", "1", "2"))):
        await port.create(at, file("a.csv"), "k")
        with pytest.raises(CallFailed) as failed:
            await port.create(at, replace(TEXT, reply_to=""), "k")
        assert failed.value.fate is Fate.UNKNOWN
