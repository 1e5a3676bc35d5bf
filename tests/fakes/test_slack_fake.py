"""The stand-in for Slack, driven by the real libraries: messages, edits, threads, what is asked for, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import SlackFake


@pytest.fixture
async def fake() -> AsyncGenerator[SlackFake]:
    async with SlackFake() as running:
        yield running


@pytest.fixture
async def client(fake: SlackFake) -> AsyncGenerator[AsyncWebClient]:
    yield AsyncWebClient(token=fake.bot_token, base_url=fake.base_url)
    # Everything that the library sent is known to the fake.
    assert {(call.route, name) for call in fake.log for name in call.ignored} == set()


async def test_a_bolt_app_hears_answers_and_edits(fake: SlackFake, client: AsyncWebClient) -> None:
    app = AsyncApp(client=client)

    async def on_message(message, say, client) -> None:
        said = await say("thinking", thread_ts=message["ts"])
        await client.chat_update(channel=message["channel"], ts=said["ts"], text="you said " + message["text"])

    app.event("message")(on_message)
    handler = AsyncSocketModeHandler(app, fake.app_token)
    await handler.connect_async()
    try:
        ada = fake.people.user("Ada")
        dm = fake.people.dm(ada)
        asked = fake.people.say(dm, ada, "a < b")
        seen = await fake.until_shown(dm, lambda now: "you said a < b" in now.texts, thread=asked)
        assert seen.answers[0].earlier == ("thinking",)
        await fake.until_settled()
    finally:
        await handler.close_async()
