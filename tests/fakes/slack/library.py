"""Slack's own libraries before the stand-in."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import SlackFake


def library(fake: SlackFake) -> Any:
    """A client that does not try again by itself."""
    return AsyncWebClient(token=fake.bot_token, base_url=fake.base_url, retry_handlers=[])


@asynccontextmanager
async def connected(
    fake: SlackFake, app: AsyncApp, ping_interval: float = 5.0
) -> AsyncGenerator[AsyncSocketModeHandler]:
    """A Bolt app with a socket."""
    before = len(fake.sockets.open)
    handler = AsyncSocketModeHandler(app, fake.app_token, ping_interval=ping_interval)
    await handler.connect_async()
    await fake.until_connected(before + 1)
    try:
        yield handler
    finally:
        await handler.close_async()
        # What the library cancels it does not wait for.
        tasks = [
            handler.client.message_processor,
            handler.client.current_session_monitor,
            handler.client.message_receiver,
        ]
        await asyncio.wait([asyncio.ensure_future(task) for task in tasks if task is not None], timeout=1)
