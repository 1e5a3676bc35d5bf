"""Buttons that mean nothing any more go with the edit that says so: a platform leaves what it is not told about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adapters.contract.chat import Button, ChatAddress, Content, ContentKind
from adapters.contract.files import FileHosts, FileSource
from adapters.discord.port import DiscordPort
from adapters.slack.port import SlackPort
from adapters.telegram.port import TelegramPort
from adapters.text.styled import Styled
from tests.agent_core.turns import gives

FILES = FileSource(FileHosts(()))
KINDS = (ContentKind.APPROVAL, ContentKind.ASIDE, ContentKind.TEXT)


class Told:
    """What a platform was told by one call."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}

    async def __call__(self, **said: Any) -> None:
        self.said = said


def content(kind: ContentKind, *, pressed: bool) -> Content:
    buttons = () if pressed else (Button("Approve", "approve:1"),)
    return Content(kind, Styled("send it"), buttons=buttons)


@pytest.mark.parametrize("kind", KINDS)
async def test_on_slack_blocks_that_stood_there_are_taken_off(kind: ContentKind) -> None:
    told = Told()
    client: Any = SimpleNamespace(chat_update=told)
    port = SlackPort(client, FILES)
    for pressed in (False, True):
        await port.edit(ChatAddress("slack", "T", "C1"), "7.000000", content(kind, pressed=pressed))
        blocks: list[dict[str, Any]] | None = told.said["blocks"]
        assert blocks is not None, "without any, those that were there would stay"
        assert [one for one in blocks if one["type"] == "actions"] == [] or not pressed


@pytest.mark.parametrize("kind", KINDS)
async def test_on_discord_there_is_no_view_any_more(kind: ContentKind) -> None:
    told = Told()
    port = DiscordPort(FILES)
    place = SimpleNamespace(get_partial_message=gives(SimpleNamespace(edit=told)))
    client: Any = SimpleNamespace(http=SimpleNamespace(token="known"), get_partial_messageable=gives(place))
    port.client = client
    for pressed in (False, True):
        await port.edit(ChatAddress("discord", "1", "9"), "7", content(kind, pressed=pressed))
        assert "view" in told.said, "what is not named stays as it is"
        assert (told.said["view"] is None) is pressed


@pytest.mark.parametrize("kind", KINDS)
async def test_on_telegram_there_is_no_keyboard_any_more(kind: ContentKind) -> None:
    told = Told()
    bot: Any = SimpleNamespace(edit_message_text=told)
    port = TelegramPort(bot, FILES, drafts=False)
    for pressed in (False, True):
        await port.edit(ChatAddress("telegram", "1", "9"), "7", content(kind, pressed=pressed))
        assert (told.said["reply_markup"] is None) is pressed
