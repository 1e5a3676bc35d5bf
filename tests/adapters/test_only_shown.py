"""What a platform tells beside people's words, as they would be told: a preview of a link, where somebody is, where a topic begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adapters.contract.chat import ChatMessage
from adapters.discord.adapter import DiscordAdapter
from adapters.slack.inbound import read_message
from adapters.telegram.inbound import Me, read_update
from agent_core.jsonvalue import Json
from agent_core.rules.taint import QUOTED

ME = Me("7", "outie_bot")


# ------------------------------------------------------------------ no edit


@pytest.mark.parametrize("mention", ["", "<@UBOT> "])
def test_a_preview_of_a_link_on_slack_is_no_edit_and_another_text_is(mention: str) -> None:
    before = {"type": "message", "ts": "1.0", "text": f"{mention}see https://e.org", "user": "U1"}
    shown = {"attachments": [{"from_url": "https://e.org", "text": "A page", "original_url": "https://e.org"}]}

    def changed(**after: object) -> ChatMessage | None:
        event: dict[str, Any] = {"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "2.0"}
        event |= {"message": {**before, **after}, "previous_message": before}
        return read_message(event, "UBOT", "T1", "Ada")

    assert changed(**shown) is None
    for more in ({}, shown):
        read = changed(text=f"{mention}see https://e.org/b", **more)
        assert read is not None
        assert (read.edited, read.key, "https://e.org/b" in read.text) == (True, "C1:1.0", True)


@pytest.mark.parametrize("edited_at", [None, "2026-01-01T00:00:00+00:00"])
async def test_a_preview_of_a_link_on_discord_is_no_edit_and_what_was_edited_is(edited_at: str | None) -> None:
    taken: list[object] = []

    async def take(*_: object, **__: object) -> None:
        taken.append("an edit")

    client = SimpleNamespace(user=SimpleNamespace(id=7))
    adapter = SimpleNamespace(_way=SimpleNamespace(take=take), account="7")
    told = {"id": "1", "channel_id": "2", "author": {"id": "3"}, "content": "see e.org", "edited_timestamp": edited_at}
    assert await vars(DiscordAdapter)["_take"](adapter, client, "MESSAGE_UPDATE", told) is None
    assert taken == ([] if edited_at is None else ["an edit"])


def on_telegram(kind: str, **more: Json) -> ChatMessage | None:
    told: dict[str, Json] = {"message_id": 9, "date": 1, "chat": {"id": -5, "type": "supergroup"}, **more}
    told.setdefault("from", {"id": 1, "first_name": "Ada"})
    read = read_update({"update_id": 1, kind: told}, ME)
    assert read is None or isinstance(read, ChatMessage)
    return read


def test_where_somebody_is_by_now_on_telegram_is_no_edit_and_another_text_is() -> None:
    assert on_telegram("edited_message", location={"latitude": 1.5, "longitude": 2.5}) is None
    for words in ("text", "caption"):
        read = on_telegram("edited_message", **{words: "see e.org"})
        assert read is not None
        assert (read.edited, read.text) == (True, "see e.org")


# ------------------------------------------------------------------ no answer


@pytest.mark.parametrize("opened_by", [7, 1, 2])
def test_what_is_said_in_a_topic_answers_nobody_unless_somebody_is_answered(opened_by: int) -> None:
    theirs: dict[str, Json] = {"is_topic_message": True, "message_thread_id": 4, "text": "hello"}
    begins: dict[str, Json] = {"message_id": 4, "from": {"id": opened_by, "first_name": "Bob"}, "text": ""}
    in_topic = on_telegram("message", **theirs, reply_to_message={**begins, "forum_topic_created": {"name": "Plans"}})
    assert in_topic is not None
    assert (in_topic.text, in_topic.reply_to_us, in_topic.origin.foreign) == ("hello", False, "")
    answers = on_telegram("message", **theirs, reply_to_message={**begins, "text": "the plan is blue"})
    assert answers is not None
    to_us = opened_by == 7
    assert answers.reply_to_us is to_us
    assert (answers.text == "hello") is to_us, "what is ours the model knows"
    assert answers.origin.foreign == (QUOTED if opened_by == 2 else "")
    assert in_topic.origin.address == answers.origin.address
    assert in_topic.origin.address.thread == "4"
