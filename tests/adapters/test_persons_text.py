"""What a person wrote, as they see it, on the platforms whose signs stand in the text itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.discord.written import written
from adapters.slack.written import unescaped, with_names

if TYPE_CHECKING:
    import discord

ADA = SimpleNamespace(id=7, display_name="Ada")


def message(content: str) -> discord.Message:
    made = SimpleNamespace(content=content, mentions=[ADA], role_mentions=[], channel_mentions=[], guild=None)
    return cast("discord.Message", made)


@given(st.lists(st.sampled_from(["&", "lt;", "gt;", "amp;", "<", ">", "a"]), max_size=12).map("".join))
def test_on_slack_what_a_person_typed_is_read_as_they_typed_it(text: str) -> None:
    """A client escapes three signs, and nothing else."""
    sent = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert unescaped(sent) == text


@given(st.text("abc <>@7&`", max_size=20))
def test_on_discord_nothing_in_code_is_a_name(text: str) -> None:
    for code in (f"`{text.replace('`', '')}<@7>`", f"```\n{text.replace('`', '')}<@7>\n```"):
        assert written(f"see {code} and <@7>", message("")) == f"see {code} and @Ada"


def test_who_is_not_known_stays_as_they_are() -> None:
    assert written("<@7> <@8> <#9>", message("")) == "@Ada <@8> <#9>"
    assert with_names("<@U7> <@U8>", {"U7": "Ada"}) == "@Ada <@U8>"


@pytest.mark.parametrize(
    "seconds", [0, -1, 1_700_000_000, 253_402_300_800, -62_135_596_801, 999_999_999_999, -999_999_999_999]
)
def test_on_discord_a_time_that_no_calendar_has_is_said_in_seconds(seconds: int) -> None:
    """A person's program sends what it likes, and the message is taken in all the same."""
    text = written(f"at <t:{seconds}:R>", message(f"at <t:{seconds}:R>"))
    assert text == (f"at second {seconds}" if not 0 < seconds + 62_135_596_801 < 315_537_897_601 else text)
    assert text.startswith("at ")
    assert "<t:" not in text
