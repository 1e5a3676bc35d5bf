"""A loop is told from what is honestly the same again and again, in little time and memory."""

from __future__ import annotations

import base64
import json
import random
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.stream.repeats import PERIOD_CHARS, WINDOW_CHARS, Repeats

HONEST: dict[str, str] = {
    "a table of equal rows": "| item | yes | no |\n" * 400,
    "a numbered list": "".join(f"{n}. The same sentence stands in each row of this list.\n" for n in range(2_000)),
    "a sentence written two hundred times": "I will not talk in class.\n" * 200,
    "the same with numbers": "".join(f"{n}: I will not talk in class.\n" for n in range(3_000)),
    "all work and no play": "All work and no play makes Jack a dull boy.\n" * 150,
    "laughter": "ha " * 4_000,
    "zeros": "[" + ", ".join(["0"] * 10_000) + "]",
    "a matrix of zeros": json.dumps([[0] * 100] * 100),
    "truth values": json.dumps([True] * 1_500),
    "a blank picture in base64": base64.b64encode(bytes(30_000)).decode(),
    "a red picture in base64": base64.b64encode(b"\xff\x00\x00" * 10_000).decode(),
    "random base64": base64.b64encode(bytes(range(256)) * 200).decode()[:1_000] * 5,
    "equal objects": json.dumps([{"id": None, "name": "", "tags": [], "active": False}] * 500),
    "cards with one text": '<div class="card">\n  <p>Lorem ipsum dolor sit amet, consectetur adipiscing elit.</p>\n</div>\n'
    * 40,
    "closing tags": "</div>\n" * 300,
    "ASCII art": ("=" * 78 + "\n" + "|" + " " * 76 + "|\n") * 60,
    "indentation": "".join(f"{' ' * 40}x{n} = f(x{n}, y)\n" for n in range(2_000)),
    "a poem with a refrain": "".join(
        f"Verse {n}: what it says is new, and so is {n * 7919} of it.\nRow, row, row your boat,\ngently down the stream.\n"
        * 2
        for n in range(200)
    ),
    "bottles of beer": "".join(
        f"{n} bottles of beer on the wall, {n} bottles of beer. Take one down, pass it around, {n - 1} bottles of beer on the wall.\n"
        for n in range(99, 0, -1)
    ),
    "generated code": "".join(f"    case {n}:\n        return handle(event, context);\n" for n in range(1_500)),
    "time series": "".join(f"2026-01-{n % 28 + 1:02d},0.0,0.0,ok,{n}\n" for n in range(2_000)),
    "Chinese, with a phrase that comes often": "".join(
        f"第{n}条：本合同自双方签字之日起生效。\n" for n in range(1_000)
    ),
    "DNA": "".join(random.Random(1).choices("ACGT", k=60_000)),
}
LOOPS: dict[str, str] = {
    "the the the (kimi-k3, 79 222 characters)": "The ",
    "court (32 000 times)": "court ",
    "not called": "not called ",
    "one line, 21 000 times": "I'll run the tests now and report the result.\n",
    "exclamation marks (token 0 of a broken server)": "!",
    "G (llama.cpp)": "G",
    "line breaks in JSON mode": "\n",
    "blanks and tabs": " \t",
    "zero-width characters": "\u200b",
    "a paragraph of thought": "Wait, let me reconsider the problem. The user wants the file renamed, so I should call the tool. But first I need to check. " * 6,
    "two thousand characters": "".join(f"Step {n} of the plan is to look at part {n * 31} again. " for n in range(45)),
    "emoji": "😀",
    "Chinese": "好的，我来检查一下。",
    "a token of a template": "<|im_start|>",
    "an object in arguments": '{"path": "a.txt", "content": ""}, ',
}  # fmt: skip


def fed(text: str, step: int) -> tuple[Repeats, int]:
    """The state after `text`, and how much of it was read before it was a loop."""
    repeats = Repeats()
    for at in range(0, len(text), step):
        repeats.feed(text[at : at + step])
        if repeats.looping:
            return repeats, at + step
    return repeats, len(text)


@pytest.mark.parametrize("step", [3, 17, 1_000, 1_000_000])
@pytest.mark.parametrize("name", HONEST)
def test_honest_repetition_is_no_loop(name: str, step: int) -> None:
    repeats, read = fed(HONEST[name], step)
    assert not repeats.looping, f"a loop after {read} characters: {repeats.run} of period {repeats.period}"


@pytest.mark.parametrize("step", [4, 50])
@pytest.mark.parametrize("name", LOOPS)
def test_what_was_seen_in_the_wild_is_a_loop_before_fifty_thousand_characters(name: str, step: int) -> None:
    unit = LOOPS[name]
    before = "Here is what I found. " * 2
    repeats, read = fed(before + unit * (80_000 // len(unit)), step)
    assert repeats.looping
    assert read <= 50_000 + len(before) + 6 * len(unit)
    assert repeats.period <= len(unit)


def test_words_are_a_loop_sooner_than_numbers_and_blanks_sooner_still() -> None:
    lengths = [fed(unit * 20_000, 10)[1] for unit in (" \n", "and then again ", "0, ")]
    assert lengths == sorted(lengths)
    assert lengths[0] <= 4_100
    assert lengths[1] <= 12_100


@given(st.text(min_size=1, max_size=200), st.text(max_size=300))
def test_whatever_is_repeated_endlessly_becomes_a_loop(unit: str, before: str) -> None:
    repeats, _ = fed(before + unit * (60_000 // len(unit)), 997)
    assert repeats.looping


@pytest.mark.parametrize("unit", ["a", "ab", "no, "])
def test_the_shortest_repetition_is_found(unit: str) -> None:
    repeats = Repeats()
    repeats.feed(unit * (3_000 // len(unit)))
    assert repeats.period == len(unit)


@given(st.text(min_size=1, max_size=40), st.integers(1, 90), st.lists(st.integers(1, 400), min_size=1, max_size=20))
def test_where_a_text_was_cut_does_not_matter(unit: str, times: int, cuts: list[int]) -> None:
    text = "Something else first. " + unit * times * 40
    whole, _ = fed(text, len(text))
    cut = Repeats()
    at = 0
    while at < len(text):
        size = cuts[at % len(cuts)]
        cut.feed(text[at : at + size])
        at += size
    assert cut.looping == whole.looping


@given(st.lists(st.integers(0, 10**9), min_size=300, max_size=600, unique=True))
def test_what_never_comes_twice_is_never_a_repetition(numbers: list[int]) -> None:
    repeats = Repeats()
    for number in numbers:
        assert repeats.feed(f"{number:010d} is one of them; ")
        assert repeats.period == 0


def test_a_repetition_that_ends_is_forgotten() -> None:
    repeats = Repeats()
    repeats.feed("no, " * 500)
    assert repeats.period == 4
    assert repeats.feed("but then something else is said, and it is new")
    assert repeats.period == 0
    assert not repeats.looping


def test_drips_that_say_nothing_new_are_stale_and_others_are_fresh() -> None:
    repeats = Repeats()
    assert repeats.feed("Working")
    assert [repeats.feed(".") for _ in range(20)][3:] == [False] * 17
    assert repeats.feed(" on the second part now")
    assert not repeats.feed("  \u200b\n")
    sentences = ("I am looking at the file. ", "One moment, please, it takes time. ", "It is nearly done by now. ")
    for sentence in sentences * 3:
        for word in sentence.split():
            repeats.feed(f"{word} ")
    assert not any(repeats.feed(sentence) for sentence in sentences * 3)


def test_memory_is_bounded_and_time_is_linear() -> None:
    hard = ("a" * 31 + "b" + "a" * 33 + "b") * 20_000
    times: list[float] = []
    for length in (200_000, 400_000):
        repeats = Repeats()
        began = time.process_time()
        for at in range(0, length, 40):
            repeats.feed(hard[at : at + 39] + str(at % 7))
        times.append(time.process_time() - began)
        held = sum(sys.getsizeof(getattr(repeats, name)) for name in Repeats.__slots__)
        assert held < 8 * WINDOW_CHARS
    assert times[1] < 6 * times[0] + 0.5
    assert PERIOD_CHARS * 2 == WINDOW_CHARS


def test_lines_that_differ_only_at_their_beginning_are_new_each_time() -> None:
    """A model's side that sends whole lines: each ends as those before it, and is no repetition."""
    heard = Repeats()
    lines = [f"print({number}, {'x' * 50!r})\n" for number in range(100)]
    assert {heard.feed(line) for line in lines} == {True}
    assert heard.period == 0
    assert {heard.feed(line) for line in lines} == {False}, "the same lines again are"
