"""A stand-in for Telegram: a server on a free loopback port that speaks the Bot API, with people in it who can be made to act.

    async with TelegramFake() as telegram:
        ada = telegram.people.user("Ada")
        chat = telegram.people.private(ada)
        bot = Bot(telegram.token, base_url=telegram.base_url, base_file_url=telegram.file_url)  # of python-telegram-bot
        telegram.script("sendMessage", LoseAnswer(), flood(3))  # the first arrives unanswered, the second is refused, then all is well
        question = telegram.people.say(chat, ada, "hello")
        ...
        answer = await telegram.answer_to(question)
        assert answer.text == "hello yourself"
        assert telegram.log.routes("getUpdates") == ["sendMessage", "sendMessage", "sendMessage"]

Limits and errors are those of the real server as far as its documentation and its answers tell them: texts are counted in UTF-16 units
after their markup was parsed, unknown methods do not exist, updates stay until they are confirmed. Parameters that the fake does not know
are listed in `Call.ignored`; no success is made up for them.

Beside the truth: one bot only, no channels, no inline queries, files are documents and photos, edits are allowed for ever.
"""

from __future__ import annotations

from tests.fakes.common import (
    ANY,
    Answer,
    Call,
    Delay,
    Fault,
    LoseAnswer,
    Pause,
    Reset,
)
from tests.fakes.telegram.entities import Entity, Kind, utf16_length
from tests.fakes.telegram.fake import TOKEN, TelegramFake
from tests.fakes.telegram.faults import conflict, flood, gateway_page, refusal, server_error
from tests.fakes.telegram.objects import Chat, Draft, Message, Press, Role, Toast, User
from tests.fakes.telegram.rates import Rates
from tests.fakes.telegram.screen import Screen, Shown
from tests.fakes.telegram.updates import Update

__all__ = [
    "ANY",
    "TOKEN",
    "Answer",
    "Call",
    "Chat",
    "Delay",
    "Draft",
    "Entity",
    "Fault",
    "Kind",
    "LoseAnswer",
    "Message",
    "Pause",
    "Press",
    "Rates",
    "Reset",
    "Role",
    "Screen",
    "Shown",
    "TelegramFake",
    "Toast",
    "Update",
    "User",
    "conflict",
    "flood",
    "gateway_page",
    "refusal",
    "server_error",
    "utf16_length",
]
