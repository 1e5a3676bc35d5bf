"""The judge finds what it is there for, each law by itself, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.several.history import Chat, History, Watched, judged

SOUND = Chat("telegram 1", keyed=False, said=["1", "2", "3"], shown=["hello #1", "well #2", "so #3"])


def test_what_is_sound_is_let_through() -> None:
    noticed = replace(SOUND, shown=["hello #1", "⚠️ It did not work.", "so #3"])
    marked = replace(SOUND, shown=["hello #1", "hello #1 (you may see this twice)", "well #2", "so #3"])
    streams = [Watched("a", ["he", "llo"], "hello")]
    assert judged(History([SOUND, noticed, marked], streams)) == []


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (["hello #1", "so #3"], "lost ['2'], 0 notices"),
        (["hello #1", "hello #1", "well #2", "so #3"], "1 is said 2 times"),
        (["well #2", "hello #1", "so #3"], "order ['2', '1', '3']"),
        (["hello #1", "well #2", "so #3", "what #4"], "answered ['4'], which nobody said there"),
    ],
)
def test_what_is_wrong_with_a_chat_is_found(shown: list[str], words: str) -> None:
    (found,) = judged(History([replace(SOUND, shown=shown)]))[:1]
    assert words in found


def test_a_platform_with_a_key_has_no_excuse() -> None:
    twice = replace(SOUND, keyed=True, shown=["hello #1", "hello #1 (you may see this twice)", "well #2", "so #3"])
    assert judged(History([twice])) == ["telegram 1: 1 is said 2 times"]


@pytest.mark.parametrize("pieces", [["he"], ["hello", "hello"], ["he", "lo"]])
def test_a_gap_or_a_repeat_of_a_stream_is_found(pieces: list[str]) -> None:
    assert len(judged(History(streams=[Watched("a", pieces, "hello")]))) == 1


def test_what_is_left_open_is_found() -> None:
    assert judged(History(open_turns=2)) == ["2 turns are still open"]
