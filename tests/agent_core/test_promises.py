"""Announcements at the end of a reply: what is given, where it is looked for, and what it costs. Which endings are announcements is measured by
tests/corpora/test_endings.py.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.promises import LOOK_BACK_CHARS, announced_action
from agent_core.promisewords import LANGUAGES
from tests.corpora.endings import endings

ENDINGS = [ending.text for half in ("development", "held_out") for ending in endings(half)]
ANNOUNCING = [ending.text for ending in endings("development") if ending.announces and "`" not in ending.text]


def test_the_announcing_sentence_is_given_and_nothing_else() -> None:
    assert (
        announced_action("Task 4 went well.\n\nIt took 3 s. **Now dispatching task 5:**\n") == "Now dispatching task 5:"
    )
    assert announced_action("I’ll check main.py now. One moment please.") == "I’ll check main.py now."
    assert announced_action("完成。让我检查一下文件。") == "让我检查一下文件。"


def test_each_language_has_its_row_once() -> None:
    codes = [language.code for language in LANGUAGES]
    assert codes == ["en", "de", "es", "fr", "pt", "it", "nl", "pl", "ru", "uk", "tr", "ar", "hi", "zh", "ja", "ko"]
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


@given(st.sampled_from(ENDINGS), st.text(alphabet=" \t\n\r\u00a0\u2003\u3000", max_size=2000))
def test_white_space_behind_it_does_not_matter(ending: str, space: str) -> None:
    assert announced_action(ending + space) == announced_action(ending)


@given(st.lists(st.sampled_from(ENDINGS) | st.text(max_size=8), min_size=1, max_size=6), st.integers(0, 300))
def test_pieces_of_endings_never_raise_and_give_a_part_of_themselves(pieces: list[str], cut: int) -> None:
    text = "".join(pieces)[cut:]
    found = announced_action(text)
    assert found is None or (found in text and 0 < len(found) <= LOOK_BACK_CHARS)


@given(st.text(max_size=900))
def test_any_text_gives_a_part_of_itself_or_nothing(text: str) -> None:
    found = announced_action(text)
    assert found is None or (found in text and 0 < len(found) <= LOOK_BACK_CHARS)


@pytest.mark.parametrize(
    "unit",
    [
        "word ",
        "to ",
        "ok, ",
        "now ",
        "let me ",
        "ik ",
        "je vais ",
        "я ",
        "我",
        "Now. ",
        "`",
        "a: ",
        "，",
        "सा ",
        "سأ ",
        "겠습니다",
        "voy a ",
        "ok: ",
        "\u0301",
    ],
)
def test_a_long_text_takes_no_longer_than_its_end(unit: str) -> None:
    text = unit * (2_000_000 // len(unit))
    begin = time.process_time()
    announced_action(text)
    announced_action(text[: LOOK_BACK_CHARS - 1])
    seconds = time.process_time() - begin
    print(f"{unit!r}: {seconds * 1000:.1f} ms")
    assert seconds < 2  # some milliseconds; looking at the whole text would take far longer
