"""Chats: every platform, what goes wrong there, and gateways that are killed."""

from __future__ import annotations

from tests.postgres import suite_of

globals().update(
    {
        **suite_of(
            "tests.chats.test_conformance_talk",
            ["test_a_question_is_answered_once", "test_a_long_answer_is_whole_and_in_order"],
        ),
        **suite_of(
            "tests.chats.test_conformance_trouble",
            ["test_a_lost_answer_is_never_an_unmarked_double", "test_a_limit_survives_a_restart"],
        ),
        **suite_of("tests.chats.test_conformance_ways", ["test_a_redelivered_message_is_answered_once"]),
        **suite_of(
            "tests.chats.test_budgets",
            ["test_a_person_is_warned_once_then_told_and_sees_it_in_usage"],
            of_the_file=["test_a_process_that_is_killed_in_a_call_leaves_it_counted_and_nothing_held"],
        ),
        **suite_of("tests.chats.test_soak", ["test_nothing_is_lost_and_nothing_is_said_twice_unmarked"]),
    }
)
