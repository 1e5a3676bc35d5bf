"""What platforms, and what stands before them, answer to a message in their odd moments; each of them seen in the world."""

from __future__ import annotations

from collections.abc import Mapping

from tests.chats.discord_harness import DiscordHarness
from tests.chats.harness import Harness
from tests.chats.slack_harness import SlackHarness
from tests.chats.telegram_harness import TelegramHarness
from tests.fakes.common import Answer
from tests.fakes.discord import Route
from tests.fakes.slack import refusal as slack_refusal
from tests.fakes.telegram import refusal as telegram_refusal

PAGE = b"<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>"
_VIA = {"Via": "1.1 google"}

FORMS: Mapping[str, tuple[Answer, ...]] = {
    "telegram": (
        telegram_refusal(400, "Bad Request: message to be replied not found"),
        telegram_refusal(400, "Bad Request: reply message not found"),
        telegram_refusal(400, "Bad Request: WORDS_THAT_NOBODY_HAS_SEEN"),
    ),
    "discord": (
        Answer(
            400,
            b'{"message": "Cannot reply without permission to read message history", "code": 160002}',
            headers=_VIA,
        ),
        Answer(400, b'{"message": "Words that nobody has seen", "code": 999999}', headers=_VIA),
    ),
    "slack": (slack_refusal("words_that_nobody_has_seen"), slack_refusal("invalid_arguments")),
}
"""Refusals of a message as it is, of which a barer form may be taken."""

PASSING: Mapping[str, tuple[Answer, ...]] = {
    "telegram": (
        Answer(403, PAGE, "text/html"),
        Answer(400, PAGE, "text/html"),
        telegram_refusal(429, "Too Many Requests: retry after 1"),
    ),
    "discord": (
        Answer(403, PAGE, "text/html"),
        Answer(400, b"bad request", "text/plain"),
        Answer(401, PAGE, "text/html"),
    ),
    "slack": (
        Answer(403, PAGE, "text/html"),
        Answer(400, PAGE, "application/json"),
        Answer(200, b'{"ok": false, "error": "rate_limited"}', headers={"Retry-After": "1"}),
    ),
}
"""Nothing was done, and it passes by itself."""


def portal(platform: Harness, step: Answer | None) -> None:
    """From now on the page of a portal answers whoever wants to be let in, with a 200; None takes it away."""
    assert isinstance(platform, TelegramHarness | DiscordHarness | SlackHarness)
    route = {"telegram": "getMe", "discord": str(Route.GET_ME), "slack": "auth.test"}[platform.name]
    platform.fake.faults.always(route, step)


def refuse_next(platform: Harness, *answers: Answer) -> None:
    """The next messages are answered like this. Nothing is shown before it is whole, so that a message is a part of an answer."""
    assert isinstance(platform, TelegramHarness | DiscordHarness | SlackHarness)
    route = {"telegram": "sendMessage", "discord": str(Route.CREATE_MESSAGE), "slack": "chat.postMessage"}[
        platform.name
    ]
    platform.fake.faults.add(route, *answers)
