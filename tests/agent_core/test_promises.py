"""Announcements at the end of a reply: found in eleven languages, and not seen where there are none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.promises import LANGUAGES, LOOK_BACK_CHARS, announced_action
from tests.agent_core.promises_corpus import ANNOUNCING, HELD_OUT_ANNOUNCING, HELD_OUT_NOT_ANNOUNCING, NOT_ANNOUNCING


def figures(announcing: tuple[str, ...], others: tuple[str, ...]) -> tuple[float, float]:
    """Precision and recall; prints what went wrong."""
    missed = [text for text in announcing if announced_action(text) is None]
    false = [text for text in others if announced_action(text) is not None]
    for what, texts in (("missed", missed), ("seen where there is none", false)):
        for text in texts:
            print(f"{what}: {text!r}")
    hits = len(announcing) - len(missed)
    precision, recall = hits / (hits + len(false)), hits / len(announcing)
    print(f"{len(announcing)} announcing, {len(others)} others: precision {precision:.3f}, recall {recall:.3f}")
    return precision, recall


def test_announcements_are_told_from_other_endings() -> None:
    assert len(ANNOUNCING) + len(NOT_ANNOUNCING) >= 120
    precision, recall = figures(ANNOUNCING, NOT_ANNOUNCING)
    assert precision >= 0.97
    assert recall >= 0.85


def test_endings_that_the_patterns_were_not_made_from_are_told_apart_too() -> None:
    precision, recall = figures(HELD_OUT_ANNOUNCING, HELD_OUT_NOT_ANNOUNCING)
    assert precision >= 0.97
    assert recall >= 0.85


def test_the_announcing_sentence_is_given_and_nothing_else() -> None:
    assert (
        announced_action("Task 4 went well.\n\nIt took 3 s. **Now dispatching task 5:**\n") == "Now dispatching task 5:"
    )
    assert announced_action("I’ll check main.py now. One moment please.") == "I’ll check main.py now."
    assert announced_action("完成。让我检查一下文件。") == "让我检查一下文件。"


def test_each_language_has_its_row_once() -> None:
    assert [language.code for language in LANGUAGES] == [
        "en",
        "de",
        "es",
        "fr",
        "pt",
        "it",
        "nl",
        "pl",
        "ru",
        "zh",
        "ja",
    ]
    assert all(language.requests and language.patience for language in LANGUAGES), (
        "an empty pattern would be found anywhere"
    )


@pytest.mark.parametrize(
    "content", ["\n\n```sh\nls\n```", "\n\n- one\n- two", "\n\n| a |\n|---|", "\n\nIt is empty.", " It is empty."]
)
@pytest.mark.parametrize(
    "announcing", ["Now dispatching task 5:", "Let me check the file.", "我现在运行测试：", "Voy a revisar el archivo."]
)
def test_an_announcement_that_is_followed_by_content_is_not_the_end(announcing: str, content: str) -> None:
    assert announced_action(announcing) is not None
    assert announced_action(announcing + content) is None


@given(st.text(), st.sampled_from(ANNOUNCING))
def test_what_stands_in_earlier_paragraphs_does_not_matter(before: str, announcing: str) -> None:
    before = before.replace("`", "")
    assert announced_action(f"{before}\n\n{announcing}") == announced_action(announcing)


@given(st.text(max_size=900))
def test_any_text_gives_a_part_of_itself_or_nothing(text: str) -> None:
    found = announced_action(text)
    assert found is None or (found in text and 0 < len(found) <= LOOK_BACK_CHARS)


@pytest.mark.parametrize(
    "unit", ["word ", "to ", "ok, ", "now ", "let me ", "ik ", "je vais ", "я ", "我", "Now. ", "`", "a: ", "，"]
)
def test_a_long_text_takes_no_longer_than_its_end(unit: str) -> None:
    text = unit * (2_000_000 // len(unit))
    begin = time.process_time()
    announced_action(text)
    announced_action(text[: LOOK_BACK_CHARS - 1])
    seconds = time.process_time() - begin
    print(f"{unit!r}: {seconds * 1000:.1f} ms")
    assert seconds < 2  # some milliseconds; looking at the whole text would take far longer
