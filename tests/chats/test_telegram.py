"""Telegram, end to end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.daemon import Serving
from tests.fakes.telegram import TelegramFake
from tests.serving import served


@asynccontextmanager
async def bot(folder: Path, telegram: TelegramFake, **more: str) -> AsyncGenerator[Serving]:
    env = {
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin,
        "OUTSPOKEN_TELEGRAM__OPEN": "true",
        "OUTSPOKEN_TELEGRAM__POLL_SECONDS": "1",
        **more,
    }
    async with served(folder, env) as up:
        yield up


async def test_a_question_is_answered(tmp_path: Path) -> None:
    async with TelegramFake() as telegram, bot(tmp_path, telegram):
        ada = telegram.people.user("Ada")
        chat = telegram.people.private(ada)
        question = telegram.people.say(chat, ada, "hello")
        answer = await telegram.answer_to(question)
        print(answer.text)
        print(telegram.log.routes())
        question = telegram.people.say(chat, ada, "/help")
        answer = await telegram.answer_to(question)
        print(answer.text)
