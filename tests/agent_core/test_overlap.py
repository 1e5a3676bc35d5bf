"""Continuations: nobody reads a sentence twice, and nothing that is no repetition is dropped."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agent_core.rules.overlap import WINDOW_CHARS, OverlapRemover


def added(partial: str, continuation: str, size: int | None = None) -> str:
    remover = OverlapRemover(partial)
    step = size or max(1, len(continuation))
    shown = [remover.feed(continuation[at : at + step]) for at in range(0, len(continuation), step)]
    return "".join(shown) + remover.finish()


SENTENCE = "The quick brown fox jumps over the lazy dog and runs away"
LINE = "Row, row, row your boat"
CASES = [
    # partial, continuation, what is added
    pytest.param(SENTENCE, " into the wood.", " into the wood.", id="it goes straight on"),
    pytest.param(SENTENCE, "the lazy dog and runs away into the wood.", " into the wood.", id="a long end is repeated"),
    pytest.param(SENTENCE, "\n\n the lazy dog and runs away, quick.", ", quick.", id="after white space"),
    pytest.param(SENTENCE, SENTENCE + ". The end.", ". The end.", id="it starts again from the beginning"),
    pytest.param(SENTENCE, "\n" + SENTENCE + "!", "!", id="it starts again after a line break"),
    pytest.param(SENTENCE, SENTENCE, "", id="it says all of it again and stops"),
    pytest.param(SENTENCE, SENTENCE[:45], "", id="it starts again and stops half-way"),
    pytest.param(
        SENTENCE, SENTENCE[:45] + "cat.", f"\n\n{SENTENCE[:45]}cat.", id="it starts again and goes another way"
    ),
    pytest.param(SENTENCE + ".\n", SENTENCE[:45] + "cat.", f"\n{SENTENCE[:45]}cat.", id="no more blank lines than one"),
    pytest.param(SENTENCE, SENTENCE[:20] + "cat.", SENTENCE[:20] + "cat.", id="a common beginning under 40 characters"),
    pytest.param("It was the quick bro", "quick brown fox", "wn fox", id="two words, the last one cut"),
    pytest.param("See the brow", "brown fox", "n fox", id="a cut word of four letters said again in full"),
    pytest.param("We saw the fox over", "over there", " there", id="one word of four letters"),
    pytest.param("That is the", "the end", "the end", id="a short word is no repetition"),
    pytest.param("I think that", " that is good", " that is good", id="the same word after white space may be meant"),
    pytest.param("It is a", "a dog", "a dog", id="one letter is no repetition"),
    pytest.param("A schoolwork", "workers of all", "workers of all", id="not at a word boundary"),
    pytest.param("The row is 1 0 1 0", "1 0 1 0 1", "1 0 1 0 1", id="figures may repeat by chance"),
    pytest.param("|" + "-" * 20, "-" * 20 + "|", "-" * 20 + "|", id="a ruled line is no repetition"),
    pytest.param("He said: to be", "to be or not", " or not", id="two short words"),
    pytest.param("I", "In fact", "n fact", id="all of a tiny text"),
    pytest.param("very", " very good", " very good", id="all of a tiny text after white space is meant"),
    pytest.param(
        "Results are below.\n\n", "Results are below. Done.", "Done.", id="white space of another kind after it"
    ),
    pytest.param("def f():\n    ", "def f():\n    return 1", "return 1", id="the same white space after it"),
    pytest.param("Results are below.\n", "Results are below.\n\n\nDone.", "\n\nDone.", id="more white space after it"),
    pytest.param("It is all over\n\n", "overall, yes", "overall, yes", id="a finished line is not a cut word"),
    pytest.param("今天天气很好我们一起去公园散步", "我们一起去公园散步吧。", "吧。", id="a script without spaces"),
    pytest.param("He laughed: ha ha ha ", "ha ha ha and stopped.", "ha ha ha and stopped.", id="a laugh goes on"),
    pytest.param(f"{LINE}\n{LINE}\n", f"{LINE}\nGently.", f"{LINE}\nGently.", id="a refrain is sung again"),
    pytest.param("- ok\n- ok\n- ok\n", "- ok\n- ok\n- bad", "- ok\n- ok\n- bad", id="the same in a list"),
    pytest.param("no no no no", " no no no yes", " no no no yes", id="all of it is the same word"),
    pytest.param("no no " * 20, "no no " * 20 + "yes", "no no " * 20 + "yes", id="and a long one"),
    pytest.param(
        f"{SENTENCE}\n\n{SENTENCE}",
        f"\n\n{SENTENCE}\n\nEnd.",
        f"\n\n{SENTENCE}\n\nEnd.",
        id="a paragraph for the third time",
    ),
    pytest.param(f"First. {LINE}\n", f"{LINE}\nGently.", "Gently.", id="what was said once is repeated"),
    pytest.param("", "anything", "anything", id="nothing was said before"),
    pytest.param(" \n", "\nanything", "\nanything", id="only white space was said before"),
    pytest.param(SENTENCE, "", "", id="nothing came"),
    pytest.param(SENTENCE, " \n", " \n", id="only white space came"),
]


@pytest.mark.parametrize(("partial", "continuation", "expected"), CASES)
def test_the_continuation_is_added_without_what_it_repeats(partial: str, continuation: str, expected: str) -> None:
    for size in (None, 1, 2, 5):
        assert added(partial, continuation, size) == expected


def test_text_is_shown_as_soon_as_no_repetition_can_come_of_it() -> None:
    remover = OverlapRemover(SENTENCE)
    assert remover.feed("run") == ""
    assert remover.feed("s aw") == ""
    assert remover.feed("ay f") == " f"
    assert remover.feed("ar") == "ar"
    assert OverlapRemover(SENTENCE).feed("Zebras") == "Zebras"


def test_finishing_twice_adds_nothing() -> None:
    remover = OverlapRemover(SENTENCE)
    remover.feed("The qui")
    assert remover.finish() == "The qui"
    assert remover.finish() == ""


words = st.sampled_from(
    ["over", "the", "a", "lazy", "dogs", "dog", "go", "1", "x", "\n", "  ", ".", "über", "今天天气很好", "-" * 6]
)
prose = st.lists(words, max_size=14).flatmap(lambda items: st.sampled_from(["", " "]).map(lambda gap: gap.join(items)))


@st.composite
def continued(draw: st.DrawFn) -> tuple[str, str]:
    partial = draw(prose)
    at = draw(st.integers(0, len(partial)))
    end = draw(st.just(len(partial)) | st.integers(at, len(partial)))
    return partial, draw(st.sampled_from(["", " ", "\n"])) + partial[at:end] + draw(prose)


@given(continued(), st.lists(st.integers(0, 500), max_size=6))
def test_every_way_of_cutting_the_continuation_adds_the_same(case: tuple[str, str], cuts: list[int]) -> None:
    partial, continuation = case
    whole = added(partial, continuation)
    assert added(partial, continuation, 1) == whole
    remover = OverlapRemover(partial)
    places = [0, *sorted(cut % (len(continuation) + 1) for cut in cuts), len(continuation)]
    assert "".join(remover.feed(continuation[a:b]) for a, b in pairwise(places)) + remover.finish() == whole


@given(continued())
def test_only_true_repetitions_are_dropped(case: tuple[str, str]) -> None:
    partial, continuation = case
    result = added(partial, continuation)
    if result.endswith(continuation):
        assert result[: len(result) - len(continuation)] in ("", "\n", "\n\n")
        return
    if result.strip() and result.lstrip("\n") == continuation.lstrip():
        return  # a new version of the reply, as a paragraph
    assert continuation.endswith(result)
    dropped = continuation[: len(continuation) - len(result)].strip()
    assert partial.strip().endswith(dropped) or (partial.strip().startswith(dropped) and not result)
    assert dropped == partial.strip() or len(set(dropped)) >= 4 or sum(map(str.isalpha, dropped)) >= 4


@given(st.text("abc é.\n", max_size=60), st.text("xyz -\n", max_size=60))
@example("abc ", " xyz")
def test_without_a_repetition_the_continuation_is_added_verbatim(partial: str, continuation: str) -> None:
    assert added(partial, continuation, 3) == continuation


@given(st.permutations([f"{a}{b}{c}" for a in "abc" for b in "de" for c in ("gh", "ijkl", "m")]), st.data())
def test_a_repeated_end_of_sixteen_characters_or_two_words_is_dropped_and_the_rest_stays(
    order: list[str], data: st.DataObject
) -> None:
    partial = " ".join(order)
    certain = data.draw(st.booleans())
    starts = [at for at in range(len(partial)) if partial[at - 1 : at] == " "]
    at = data.draw(st.integers(0, len(partial) - 16) if certain else st.sampled_from(starts[:-1]))
    assume(not partial[at].isspace())
    rest = data.draw(st.text("XYZ \n.", max_size=20))
    assert added(partial, partial[at:] + rest, data.draw(st.sampled_from([None, 1, 7]))) == rest


@given(
    st.lists(st.sampled_from(["a", "b\nc", "d", "ef", "gh  i"]), min_size=1, unique=True).map(" ".join),
    st.text("xyz \n", max_size=20),
)
def test_all_of_the_partial_text_is_dropped_at_any_length(partial: str, rest: str) -> None:
    assert added(partial, partial + rest, 2) == rest


def test_a_restart_is_seen_however_long_the_partial_text_is() -> None:
    chance = random.Random(5)
    partial = "".join(chance.choice("abcdefgh ,.\n") for _ in range(200_000)) + "."
    for size in (4, 70_000, None):
        assert added(partial, partial + " And more.", size) == " And more."
        assert added(partial, partial[:-100] + "!", size) == "\n\n" + partial[:-100] + "!"
        assert added(partial, partial[-WINDOW_CHARS:] + " And more.", size) == " And more."


@pytest.mark.parametrize(
    ("partial", "continuation"),
    [
        ("ab" * 50_000, "ab" * 50_000 + "c"),
        ("a" * 100_000 + "b", "a" * 100_000),
        ("word " * 20_000, "word " * 20_000),
        ("a" * 100_000, "a" * 4000 + "b" + "a" * 100_000),
        (" " * 100_000 + "x" + " " * 100_000, " " * 100_000 + "x" + " " * 100_000),
        ("the cat and " * 9000 + "the dog", "the cat and " * 680 + "the end"),
    ],
)
def test_texts_full_of_near_repetitions_take_little_time(partial: str, continuation: str) -> None:
    for size in (1, None):
        begin = time.process_time()
        added(partial, continuation, size)
        seconds = time.process_time() - begin
        print(f"{len(partial)} + {len(continuation)} characters in pieces of {size}: {seconds * 1000:.0f} ms")
        assert seconds < 5  # some tenths of a second; quadratic would take minutes
