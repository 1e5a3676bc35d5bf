"""The page in a real browser."""

from __future__ import annotations

from tests.browser.conftest import browser, chromium, up
from tests.browser.test_page import pytestmark
from tests.postgres import suite_of

__all__ = ["browser", "chromium", "pytestmark", "up"]

globals().update(
    {
        **{name: None for name in list(globals()) if name.startswith("test_")},
        **suite_of(
            "tests.browser.test_page",
            [
                "test_a_conversation_with_a_tool_and_a_reload_that_loses_nothing",
                "test_a_message_while_busy_waits_and_is_answered",
            ],
        ),
        **suite_of("tests.browser.test_conversations", ["test_one_is_found_by_its_texts_renamed_pinned_and_deleted"]),
    }
)
