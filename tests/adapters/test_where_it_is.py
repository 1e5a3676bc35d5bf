"""Where a message is: what a platform does not say is not guessed in a way that would show it to others, or tie it to a topic that there is none of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adapters.contract.chat import ChatKind, ChatMessage
from adapters.discord.adapter import _removed_keys
from adapters.discord.inbound import address_of
from adapters.telegram.inbound import Me, read_update
from agent_core.jsonvalue import Json


@pytest.mark.parametrize("topic", [None, False, True])
def test_a_reply_in_a_group_without_topics_is_in_none(topic: bool | None) -> None:
    """Telegram gives the thread of replies a number as well, into which nobody can write."""
    said: dict[str, Json] = {
        "message_id": 9, "date": 1, "chat": {"id": -5, "type": "supergroup"}, "from": {"id": 1, "first_name": "Ada"},
        "text": "/stop@outie_bot", "entities": [{"type": "bot_command", "offset": 0, "length": 15}], "message_thread_id": 4,
    }  # fmt: skip
    if topic is not None:
        said["is_topic_message"] = topic
    read = read_update({"update_id": 1, "message": said}, Me("7", "outie_bot"))
    assert isinstance(read, ChatMessage)
    assert read.origin.address.thread == ("4" if topic else "")


@pytest.mark.parametrize(
    ("channel", "kind"),
    [
        ({"guild": None}, ChatKind.PRIVATE),
        ({}, ChatKind.PRIVATE),
        ({"guild": object()}, ChatKind.GROUP),
        ({"guild": None, "guild_id": 3}, ChatKind.GROUP),
        ({"guild_id": 3}, ChatKind.GROUP),
    ],
)
def test_a_channel_of_a_server_that_is_not_known_yet_is_no_private_chat(
    channel: dict[str, Any], kind: ChatKind
) -> None:
    address, found = address_of(SimpleNamespace(id=2, **channel), "1")
    assert (address.chat, address.thread, found) == ("2", "", kind)


def test_of_messages_that_were_deleted_together_each_is_withdrawn() -> None:
    assert _removed_keys({"channel_id": "2", "ids": ["5", "6", "7"]}) == ["2:5", "2:6", "2:7"]
    assert _removed_keys({"channel_id": "2", "id": "5"}) == ["2:5"]
