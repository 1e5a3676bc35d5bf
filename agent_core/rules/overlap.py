"""Removes what a continued reply says again.

Theory. A stream broke after the text `partial`; the model was asked to go on from there and sends a continuation. It may go
straight on, repeat the last words first, or start again from the very beginning. What people have read stays as it is
(output is only ever appended to `partial`), so the repetition must go and nothing else may.

What counts as a repetition, the longest one first. White space at its edges is no part of it.

1. The end of `partial`, if it is long enough that it cannot be chance:
   a. 16 characters with at least four different ones among them (scripts written without spaces count double), or
   b. two words from a word boundary on, with four letters in them, or
   c. one word of at least four letters from a word boundary on, if the continuation has no white space before it. Two
      such words glued together are no text ("browbrown"), while " that" after "that" may well be meant.
   The last word may itself be cut ("the quick bro" + "quick brown"). Shorter repetitions ("the", "a", "1, 0") stay.
2. All of `partial`, at any length: what is left is what the continuation adds to it.
3. A continuation that has begun like `partial` for 40 characters and then goes another way is a new version of the reply.
   It is shown whole, as a new paragraph. If it ends before it goes another way, it says nothing new, and is dropped.

   One that breaks off before it goes another way is dropped at any length, as is one that breaks off where it may still grow
   into a repetition of the end: it was never shown, and the model is asked again.

4. What is said over and over is no repetition: a refrain, "ha ha ha", the same line of a list. Where the end of `partial` has said the same twice or
   more, another time may well be meant, and nobody could tell what is missing if it were dropped; so it stays.

If `partial` ends with white space, a repetition counts only if it is followed by white space too (or by the end), and
as much of that as `partial` has is dropped.

Laws (tests hold them): the outputs, joined, are the same for every way of cutting the continuation; without a repetition
they are the continuation, verbatim; with one they are what follows it. Text is held back only while a repetition that is
still growing may be the longest; time is linear in the continuation. Only the last 8192 characters of `partial` are searched
for rule 1, and its beginning for 2 and 3.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import assert_never

from agent_core.text.patterns import late

WINDOW_CHARS = 8192
"""How far before the end of the partial text a repetition may begin, unless it begins at the very beginning."""
CERTAIN_CHARS = 16
CERTAIN_DIFFERENT = 4
WORD_LETTERS = 4
RESTART_CHARS = 40
RHYTHM_WORDS = 64
"""What is said over and over is looked for up to this length."""

_WHITE = " \t\r\n"
_WORD = re.compile(r"\w+")
# Han, kana, hangul, Thai, Lao, Khmer: no spaces between words, or much said in one character.
_WIDE = late(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


class _Removing(Enum):
    HOLDING = auto()
    TRIMMING = auto()
    """A repetition is gone; the white space after it may be on screen already."""
    PASSING = auto()


class OverlapRemover:
    """Feed it a continuation of `partial`, cut anywhere; it returns what is to be appended to `partial`."""

    __slots__ = (
        "_body",
        "_held",
        "_lead",
        "_length",
        "_mode",
        "_restart_open",
        "_same_start",
        "_tail_at",
        "_tail_start",
        "_trailing",
        "_trim_at",
    )

    def __init__(self, partial: str) -> None:
        text = partial.rstrip(_WHITE)
        self._trailing = partial[len(text) :]
        self._body = text.lstrip(_WHITE)
        self._tail_start = max(0, len(self._body) - WINDOW_CHARS)
        """First place at which a repetition of the end may begin."""
        self._tail_at = self._tail_start
        """First place in the body at which all of the continuation so far is found; -1 if there is none."""
        self._same_start = 0
        """How many characters the continuation and the body have in common at their beginnings."""
        self._restart_open = True
        self._lead: list[str] = []
        """The white space that the continuation begins with."""
        self._held: list[str] = []
        self._length = 0
        """Of the continuation so far, without white space before it."""
        self._trim_at = 0
        """How much of the trailing white space was dropped from the continuation; -1: all white space is."""
        self._mode = _Removing.HOLDING if self._body else _Removing.PASSING

    def feed(self, text: str) -> str:
        """The text that can be appended now that `text` has come; empty while that is undecided."""
        match self._mode:
            case _Removing.PASSING:
                return text
            case _Removing.TRIMMING:
                return self._trim(text)
            case _Removing.HOLDING:
                return self._hold(text)
            case _:
                assert_never(self._mode)

    def finish(self, *, cut: bool = False) -> str:
        """The continuation is over, or was `cut` off: what was held back and is no repetition."""
        if self._mode is not _Removing.HOLDING:
            self._mode = _Removing.PASSING
            return ""
        result = "" if cut else self._decide(ended=True)
        self._mode = _Removing.PASSING
        return result

    def _hold(self, text: str) -> str:
        if not self._length:
            rest = text.lstrip(_WHITE)
            self._lead.append(text[: len(text) - len(rest)])
            text = rest
        if not text:
            return ""
        self._held.append(text)
        self._follow_restart(text)
        before = self._length
        self._length += len(text)
        self._follow_tail(text, before)
        return "" if self._restart_open or self._tail_at >= 0 else self._decide(ended=False)

    @property
    def _room(self) -> int:
        """1 if a repetition is only one once the character after it is known."""
        return 1 if self._trailing else 0

    def _follow_restart(self, text: str) -> None:
        """See how far the continuation and the partial text begin alike."""
        if not self._restart_open:
            return
        same = _common_start(self._body, self._length, text)
        self._same_start += same
        reached_end = self._same_start == len(self._body) and (same < len(text) or not self._room)
        self._restart_open = same == len(text) and not reached_end

    def _follow_tail(self, text: str, before: int) -> None:
        """Find the first place that may still grow into a repetition of the end."""
        if self._tail_at < 0:
            return
        latest = len(self._body) - self._length - 1 + self._room
        if self._tail_at <= latest and self._body.startswith(text, self._tail_at + before):
            return
        self._tail_at = -1 if self._tail_at > latest else self._find(self._tail_at + 1, latest)

    def _find(self, start: int, latest: int) -> int:
        if start > latest:
            return -1
        self._held = ["".join(self._held)]
        return self._body.find(self._held[0], start, latest + self._length)

    def _decide(self, *, ended: bool) -> str:
        said, lead = "".join(self._held), "".join(self._lead)
        self._held = []
        end = self._end_of_repetition(said, lead, ended=ended)
        if end is None:
            self._mode = _Removing.PASSING
            return lead + said
        if end:
            self._mode = _Removing.TRIMMING if self._trailing else _Removing.PASSING
            return self._trim(said[end:]) if self._trailing else said[end:]
        self._mode = _Removing.PASSING
        if self._same_start < RESTART_CHARS:
            return lead + said
        if ended and self._same_start == len(said):
            return ""
        return "\n" * max(0, 2 - self._trailing.count("\n")) + said

    def _end_of_repetition(self, said: str, lead: str, *, ended: bool) -> int | None:
        """Where in the continuation its new text begins; 0 if it repeats nothing, None if it may be meant to be said again."""
        body, size = self._body, len(self._body)
        whole = said.startswith(body) and self._is_followed_well(said, size, ended=ended)
        if whole and (not lead or self._counts(0, lead)):
            return None if _over_and_over(body) else size
        key = said[:WORD_LETTERS]
        at = body.find(key, self._tail_start) if len(key) == WORD_LETTERS else -1
        while at >= 0:
            repeated = said.startswith(body[at:]) and self._is_followed_well(said, size - at, ended=ended)
            if repeated and self._counts(at, lead):
                meant = _over_and_over(body[at:]) or body[:at].rstrip(_WHITE).endswith(body[at:])
                return None if meant else size - at
            at = body.find(key, at + 1)
        return 0

    def _is_followed_well(self, said: str, length: int, *, ended: bool) -> bool:
        if not self._trailing:
            return True
        return said[length] in _WHITE if length < len(said) else ended and length == len(said)

    def _counts(self, at: int, lead: str) -> bool:
        """Whether the body's end from `at` on is more than a chance repetition (rule 1)."""
        body = self._body
        text = body[at:]
        before = 0  # white space that both sides have before it belongs to what is alike
        while before < min(len(lead), at) and body[at - 1 - before] == lead[-1 - before]:
            before += 1
        weight = len(text) + before + len(_WIDE.findall(text))
        if weight >= CERTAIN_CHARS and len(set(text)) >= CERTAIN_DIFFERENT and any(map(str.isalnum, text)):
            return True
        if at and _is_word(body[at - 1]) and _is_word(body[at]):
            return False
        words = len(_WORD.findall(text))
        return sum(map(str.isalpha, text)) >= WORD_LETTERS and (words >= 2 or (words == 1 and not lead))

    def _trim(self, text: str) -> str:
        """Drop the white space that `partial` ends with already; if it is of another kind, drop all of it."""
        for place, char in enumerate(text):
            if char not in _WHITE or self._trim_at == len(self._trailing):
                self._mode = _Removing.PASSING
                return text[place:]
            if self._trim_at >= 0:
                self._trim_at = self._trim_at + 1 if char == self._trailing[self._trim_at] else -1
        return ""


def _over_and_over(text: str) -> bool:
    """It says the same twice or more, and nothing else."""
    words = text.split()
    if len(words) < 2:
        return len(text) > 1 and (text + text).find(text, 1) < len(text)
    return any(words[period:] == words[:-period] for period in range(1, min(len(words) // 2, RHYTHM_WORDS) + 1))


def _common_start(body: str, start: int, text: str) -> int:
    """How many characters `text` has in common with `body` from `start` on."""
    if body.startswith(text, start):
        return len(text)
    low, high = 0, min(len(text), len(body) - start)
    while low < high:  # halving compares slices, which is far faster than characters
        middle = (low + high + 1) // 2
        if body.startswith(text[low:middle], start + low):
            low = middle
        else:
            high = middle - 1
    return low
