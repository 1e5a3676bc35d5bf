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
ABOVE = (
    "tests/postgres/test_chats.py",
    *(
        f"tests/chats/test_{name}.py"
        for name in (
            "agents",
            "approvals",
            "budgets",
            "hands",
            "later",
            "memory",
            "odd_moments",
            "questions",
            "quotas",
            "schedule",
        )
    ),
    *(
        f"tests/chats/test_conformance_talk.py::test_{name}["
        for name in (
            "answers_come_in_the_order_of_the_questions",
            "nothing_from_the_model_ends_in_a_notice",
            "a_model_that_is_down_ends_in_a_notice",
            "the_retry_button_answers_again_without_what_failed",
            "what_is_in_a_document_is_before_the_model_and_in_the_workspace",
            "an_approval_that_is_denied_runs_nothing",
        )
    ),
    *(
        f"tests/chats/test_conformance_ways.py::test_{name}["
        for name in (
            "an_edit_of_an_answered_message_starts_nothing",
            "who_has_to_wait_is_told_so_and_the_word_goes",
            "who_comes_when_everything_is_full_is_told_so_once_and_answered_when_there_is_room",
            "what_was_queued_is_run_after_a_kill",
            "the_word_of_a_killed_process_about_the_queue_goes_when_its_message_begins",
            "a_message_can_be_put_into_the_running_answer",
            "a_message_interrupts_where_that_is_the_rule",
            "what_a_full_queue_has_no_room_for_is_kept_and_answered_in_its_order",
            "status_answers_at_once_whatever_the_model_does",
            "stop_says_one_thing",
            "stop_does_not_eat_the_next_message",
            "stop_keeps_what_waits",
            "stop_all_empties_the_queue",
            "stop_without_anything_running_says_so",
            "undo_forgets_the_last_exchange",
            "undo_and_retry_say_what_they_can_of_a_message_that_is_not_kept_as_it_came",
            "retry_answers_the_last_message_again",
            "why_tells_what_happened",
            "the_model_can_be_chosen",
            "usage_says_what_was_used",
            "an_approval_survives_a_restart",
            "a_person_who_is_too_fast_is_told",
            "only_admins_have_admins_commands",
            "silence_in_groups_can_be_configured",
        )
    ),
    *(
        f"tests/chats/test_conformance_trouble.py::test_{name}["
        for name in (
            "a_kill_in_the_middle_is_told_and_nothing_is_lost",
            "a_kill_between_message_and_answer_answers_once",
            "each_chat_that_writes_while_nothing_can_be_stored_is_told_so_once",
        )
    ),
    *(
        f"tests/chats/test_last_words.py::test_{name}["
        for name in (
            "answers_that_nobody_can_read_hold_no_chat_up",
            "nothing_old_is_carried_out_after_a_restart",
            "a_turn_that_ends_within_a_stop_has_its_answer_in_the_chat_before_the_process_ends",
            "a_status_that_was_over_before_it_was_sent_is_over_in_the_database",
            "a_text_file_that_is_refused_is_there_as_text",
            "of_another_file_that_is_refused_the_chat_is_told_how_else_to_get_it",
        )
    ),
    *(
        f"tests/chats/test_voice.py::test_{name}["
        for name in ("without_ears_it_is_said_by_name", "the_rehearsal_model_hears_speaks_and_tells_what_is_in_a_file")
    ),
)
"""These prove rules that stand above the platforms, and each platform is proved to be like the others elsewhere: each time one of them runs
each test, always the same, another for another test and for another case of it."""
EVERYWHERE = bool(os.environ.get("TESTS_ALL_CHATS"))
"""Everything on every platform: `make soak`."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Part of the suite is not run for each platform, unless it is asked for.

    Slack's library leaves connections to the collector when it is closed; what it leaves is no fault of the code under test.
    """
    spared = [] if EVERYWHERE else spared_of(items)
    if spared:
        config.hook.pytest_deselected(items=spared)
        items[:] = [item for item in items if item not in set(spared)]
    for item in items:
        if "slack" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


def spared_of(items: list[pytest.Item]) -> list[pytest.Item]:
    """What need not be run each time: of a test in `ABOVE` each case runs on one of the platforms that it was collected for."""
    spared: list[pytest.Item] = []
    above: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        test, _, parameters = item.nodeid.partition("[")
        platform = platform_of(parameters)
        if platform == "toy" and item.name.partition("[")[0] not in TOY:
            spared.append(item)
        elif platform in REAL and item.nodeid.startswith(ABOVE):
            above.setdefault(test, {}).setdefault(parameters.removeprefix(platform), []).append(item)
    for test, cases in above.items():
        first = crc32(test.rpartition("::")[2].encode())
        for number, those in enumerate(cases.values()):
            one = sorted(those, key=lambda item: item.nodeid)[(first + number) % len(those)]
            spared += [item for item in those if item is not one]
    return spared


def platform_of(parameters: str) -> str:
    """The platform that a test is run on; empty if it is not run on each of them."""
    return next((each for each in HARNESSES if parameters.startswith((f"{each}-", f"{each}]"))), "")


@pytest.fixture(params=sorted(HARNESSES))
async def platform(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Harness]:
    async with HARNESSES[request.param](tmp_path) as harness:
        yield harness
