"""The platforms under test."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from zlib import crc32

import pytest

from tests.chats.discord_harness import discord_harness
from tests.chats.harness import Harness
from tests.chats.slack_harness import slack_harness
from tests.chats.telegram_harness import telegram_harness
from tests.toy.harness import toy_harness

HARNESSES: dict[str, Callable[[Path], AbstractAsyncContextManager[Harness]]] = {
    "discord": discord_harness,
    "slack": slack_harness,
    "telegram": telegram_harness,
    "toy": toy_harness,
}
REAL = sorted(HARNESSES.keys() - {"toy"})

TOY = (
    "test_a_question_is_answered_once",
    "test_a_long_answer_is_whole_and_in_order",
    "test_markdown_is_shown_as_it_is_meant",
    "test_a_file_from_a_person_is_in_the_workspace",
    "test_a_redelivered_message_is_answered_once",
    "test_what_came_while_the_gateway_was_away_is_answered",
    "test_an_odd_event_hides_no_other",
    "test_the_menu_has_the_commands",
    "test_topics_are_conversations_of_their_own",
    "test_a_lost_answer_is_never_an_unmarked_double",
    "test_a_wrong_token_is_said_in_words_and_harms_nothing_else",
    "test_status_tells_of_the_platform",
)
"""What the toy platform is held to each time. It passes all of it (an example need not cost minutes)."""
ABOVE = tuple(
    f"tests/chats/test_{name}.py"
    for name in ("agents", "approvals", "budgets", "later", "memory", "odd_moments", "questions", "quotas", "schedule")
)
"""These prove rules that stand above the platforms, and each platform is proved to be like the others elsewhere: each time one of them runs
each test, always the same, another for another test."""
EVERYWHERE = bool(os.environ.get("OUTSPOKEN_ALL_CHATS"))
"""Everything on every platform: `make soak`."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Part of the suite is not run for each platform, unless it is asked for.

    Slack's library leaves connections to the collector when it is closed; what it leaves is no fault of the code under test.
    """
    spared = [] if EVERYWHERE else [item for item in items if is_spared(item)]
    if spared:
        config.hook.pytest_deselected(items=spared)
        items[:] = [item for item in items if item not in set(spared)]
    for item in items:
        if "slack" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


def is_spared(item: pytest.Item) -> bool:
    """Whether a platform need not run this each time."""
    name, _, parameters = item.name.partition("[")
    platform = next((each for each in HARNESSES if parameters.startswith(each)), "")
    if platform == "toy":
        return name not in TOY
    return item.nodeid.startswith(ABOVE) and platform not in ("", REAL[crc32(name.encode()) % len(REAL)])


@pytest.fixture(params=sorted(HARNESSES))
async def platform(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Harness]:
    async with HARNESSES[request.param](tmp_path) as harness:
        yield harness
