"""The platforms under test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.chats.discord_harness import discord_harness
from tests.chats.harness import Harness
from tests.chats.slack_harness import slack_harness
from tests.chats.telegram_harness import telegram_harness

HARNESSES: dict[str, Callable[[Path], AbstractAsyncContextManager[Harness]]] = {
    "discord": discord_harness,
    "slack": slack_harness,
    "telegram": telegram_harness,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slack's library leaves connections to the collector when it is closed; what it leaves is no fault of the code under test."""
    for item in items:
        if "slack" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(params=sorted(HARNESSES))
async def platform(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Harness]:
    async with HARNESSES[request.param](tmp_path) as harness:
        yield harness
