"""A command is one whatever keyboard it is typed on: those for Chinese, Japanese and Korean write ／ｓｔｏｐ　ａｌｌ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.discord.inbound import read_message as discord_message
from adapters.discord.library import discord
from adapters.slack.inbound import read_command
from adapters.slack.inbound import read_message as slack_message
from adapters.telegram.inbound import Me, read_update
from agent_core.text.typed import as_command
from gateway.chats.onpage import CommandsOnPage

TYPED = [
    ("／stop", "stop", ""),
    ("／ｓｔｏｐ　all of it", "stop", "all of it"),
    ("/Ｓtop", "stop", ""),
    ("／ＮＥＷ\nwords", "new", "words"),
]
WORDS = ["／", "はい／いいえ", "１／２", "／ はい", "stop", "／／stop", "はい"]


def on_telegram(text: str, kind: str = "private", **more: object) -> Any:
    sender = {"id": 7, "first_name": "Ada", "is_bot": False}
    message = {"message_id": 5, "date": 1, "chat": {"id": 7, "type": kind}, "from": sender, "text": text, **more}
    return read_update(cast("Any", {"update_id": 1, "message": message}), Me("99", "ourbot"))


def on_slack(text: str) -> Any:
    event = {"type": "message", "channel": "D1", "channel_type": "im", "ts": "5.0", "user": "U1", "text": text}
    return slack_message(event, "UBOT", "1", "Ada")


def on_discord(text: str) -> Any:
    channel = SimpleNamespace(id=3, guild=None)
    author = SimpleNamespace(id=7, bot=False, display_name="Ada", name="ada")
    message: Any = SimpleNamespace(
        author=author, channel=channel, content=text, id=5, reference=None, type=discord.MessageType.default, attachments=[], embeds=[],
        stickers=[], poll=None, message_snapshots=[], mentions=[], role_mentions=[], channel_mentions=[], guild=None,
        created_at=SimpleNamespace(timestamp=lambda: 1.0), flags=SimpleNamespace(voice=False, forwarded=False), components=[],
    )  # fmt: skip
    return discord_message(message, 99, "1")


@pytest.mark.parametrize("read", [on_telegram, on_slack, on_discord])
@pytest.mark.parametrize(("text", "command", "words"), TYPED)
def test_a_command_is_known_in_whatever_width_it_is_typed(read: Any, text: str, command: str, words: str) -> None:
    found = read(text)
    assert (found.command, found.text) == (command, words)


@pytest.mark.parametrize("read", [on_telegram, on_slack, on_discord])
@pytest.mark.parametrize("text", WORDS)
def test_what_only_looks_like_one_is_words_as_they_were_written(read: Any, text: str) -> None:
    found = read(text)
    assert (found.command, found.text) == ("", text)


def test_on_telegram_one_for_another_bot_is_none_of_ours() -> None:
    assert on_telegram("／stop＠otherbot", "group").for_others
    ours = on_telegram("／ｓｔｏｐ＠ourbot", "group")
    assert (ours.command, ours.for_us, ours.for_others) == ("stop", True, False)
    forwarded = on_telegram("／stop", forward_origin={"type": "hidden_user", "sender_user_name": "Bo", "date": 1})
    assert forwarded.command == "", "whoever wrote it did not talk to us"


def test_in_a_thread_of_slack_and_behind_its_own_command_as_well() -> None:
    assert on_slack("！ｓｔｏｐ").command == "stop"
    found = read_command({"channel_id": "D1", "text": "ｓｔｏｐ　all", "user_id": "U1", "trigger_id": "1"}, "1")
    assert (found.command, found.text) == ("stop", "all")


@pytest.mark.parametrize(("text", "command", "words"), TYPED)
def test_on_the_page_as_well(text: str, command: str, words: str) -> None:
    assert CommandsOnPage(cast("Any", None), agents=False).named(text) == (command, words)


@given(st.text())
def test_nothing_else_of_a_text_is_changed(text: str) -> None:
    found = as_command(text)
    assert found == text or (found.lstrip()[0] == "/" and found.split()[1:] == text.split()[1:])
