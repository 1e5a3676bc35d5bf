"""Platforms that refuse, in their own words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.chats.discord_harness import DiscordHarness
from tests.chats.harness import Harness
from tests.chats.slack_harness import SlackHarness
from tests.chats.telegram_harness import TelegramHarness
from tests.fakes.common import Answer, Garble, Script, Step
from tests.fakes.discord import Code, Route
from tests.fakes.discord import refusal as discord_refusal
from tests.fakes.slack import refusal as slack_refusal
from tests.fakes.telegram import refusal as telegram_refusal

MANY = 60
GONE: Mapping[str, tuple[Answer, ...]] = {
    "telegram": tuple(
        telegram_refusal(400, f"Bad Request: {words}")
        for words in (
            "message to edit not found", "MESSAGE_ID_INVALID", "message not found", "message can't be edited",
            "message identifier is not specified", "words that nobody has seen before",
        )
    ),
    "discord": (
        discord_refusal(Code.UNKNOWN_MESSAGE),
        Answer(404, b'{"message": "404: Not Found", "code": 0}', headers={"Via": "1.1 google"}),
        Answer(403, b'{"message": "Words that nobody has seen before", "code": 77777}', headers={"Via": "1.1 google"}),
    ),
    "slack": tuple(
        slack_refusal(word) for word in ("message_not_found", "cant_update_message", "edit_window_closed", "a_new_word")
    ),
}  # fmt: skip
"""How an edit is refused, the first because the message is gone."""


def _door(platform: Harness) -> Script:
    assert isinstance(platform, TelegramHarness | DiscordHarness | SlackHarness)
    return platform.fake.faults


def _edits(platform: Harness) -> str:
    return {"telegram": "editMessageText", "discord": str(Route.EDIT_MESSAGE), "slack": "chat.update"}[platform.name]


def _sends(platform: Harness) -> str:
    return {"telegram": "sendMessage", "discord": str(Route.CREATE_MESSAGE), "slack": "chat.postMessage"}[platform.name]


def _text(params: Mapping[str, Any]) -> str:
    return str(params.get("text") or params.get("content") or "")


def refuse_edits(platform: Harness, answer: Answer | None) -> None:
    """From now on no message can be changed, or (None) each can again."""
    _door(platform).always(_edits(platform), answer)


def refuse_files(platform: Harness) -> None:
    """From now on no file is taken, and nothing else is refused."""
    match platform.name:
        case "telegram":
            words = "Bad Request: not enough rights to send documents to the chat"
            _door(platform).always("sendDocument", telegram_refusal(400, words))
        case "discord":
            body = {"message": "Request entity too large", "code": 40005}
            large = Answer(413, json.dumps(body).encode(), headers={"Via": "1.1 google"})
            _door(platform).add(_sends(platform), *[large] * MANY, when=lambda params: bool(params.get("attachments")))
        case _:
            _door(platform).always("files.getUploadURLExternal", slack_refusal("file_uploads_disabled"))


def shorten(platform: Harness, most: int) -> None:
    """From now on only messages of at most so many characters are taken."""
    match platform.name:
        case "telegram":
            answer = telegram_refusal(400, "Bad Request: message is too long")
        case "discord":
            error = {"code": "BASE_TYPE_MAX_LENGTH", "message": f"Must be {most} or fewer in length."}
            body = {"message": "Invalid Form Body", "code": 50035, "errors": {"content": {"_errors": [error]}}}
            answer = Answer(400, json.dumps(body).encode(), headers={"Via": "1.1 google"})
        case _:
            answer = slack_refusal("msg_too_long")
    for route in (_sends(platform), _edits(platform)):
        _door(platform).add(route, *[answer] * MANY, when=lambda params: len(_text(params)) > most)


def garble(platform: Harness, what: str, step: Step) -> None:
    """From now on the answers to sends, edits or everything cosmetic mean nothing, or (None) they are good again."""
    bad = Garble(b'{"ok": true}') if platform.name == "slack" and step is not None else step
    for route in {
        "sends": (_sends(platform),),
        "edits": (_edits(platform),),
        "cosmetics": ("sendChatAction", "sendMessageDraft", str(Route.TYPING), "agents.sessions.setStatus"),
        "deletes": ("deleteMessage", str(Route.DELETE_MESSAGE), "chat.delete"),
    }[what]:
        _door(platform).always(route, bad)
