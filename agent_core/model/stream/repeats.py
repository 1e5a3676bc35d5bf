"""Whether a text that is arriving still says something, or says again and again what it has said. Pure, incremental.

Theory. A model that has come off its track repeats one word, sentence or paragraph to its output limit (reported at 20 000 to 80 000
characters). Such a text has a *period*: from some place on, each character is the one that stood `period` characters before. What
differs somewhere in each round has none, so lists, tables, poems with a refrain and code are not meant. What has one, and is honest all
the same (rows of zeros, a blank picture in base64, a sentence written a hundred times because somebody asked for it), is short
beside what a loop makes. So the text is a loop only once what repeats is longer than its kind ever is in earnest:

| what repeats | characters beyond its first time |
|---|---|
| nothing that is seen (blanks, zero-width characters) | 4 000 |
| words: letters and blanks are nine tenths of it, three different letters at least | 12 000 |
| anything else of 500 characters or more | 24 000 |
| anything else: numbers, symbols, markup, code, base64 | 48 000 |

and never before it has come five times. Exact repetition only, of at most `PERIOD_CHARS`: a loop that counts, or that says the same in
other words, ends at the model's limit or at the turn's time.

The same look tells whether a piece that arrives slowly is *fresh*: it has something to see, and it did not stand in the text before
(with the words before it, if it is short).

Laws (tests): memory is bounded; time is linear in the text; an aperiodic text is never a loop; whatever is repeated endlessly
becomes one; where the text was cut changes neither.
"""

from __future__ import annotations

import re

from agent_core.text.shown import something_to_see

WINDOW_CHARS = 16_384
PERIOD_CHARS = WINDOW_CHARS // 2
"""The longest part whose repetition is found."""
NEAR_CHARS, CHECK_CHARS = 512, 256
"""Where a piece is looked for, and after how many characters in all that is kept."""
KEY_CHARS = 32
HOLD_CHARS = 64
"""A repetition that is longer than this, and than what it repeats, is worth waiting for how it goes on."""
TIMES = 4
BLANKS, WORDS, LONG, ANYTHING = 4_000, 12_000, 24_000, 48_000
LONG_UNIT_CHARS = 500
_BLOCK_CHARS = 4_096
_LETTERS_OR_BLANKS = re.compile(r"[^\W\d_]|\s")


class Repeats:
    """Feed it one text as it arrives. `run` is how many characters at its end are repetition, `period` of how long a part."""

    __slots__ = ("_limit", "_near", "_pending", "_stale", "_window", "looping", "period", "run")

    def __init__(self) -> None:
        self._window = ""
        self._near = ""
        self._pending = ""
        """What came since the whole window was searched."""
        self._stale = False
        self._limit = 0
        self.period = 0
        """0 if the end of the text is no repetition (or one that is too short to speak of)."""
        self.run = 0
        self.looping = False
        """It is a loop: nothing new is to be hoped for."""

    def ended_in_loop(self) -> bool:
        """The same, of a text that was cut by an output limit: what repeated until then needs to be much less."""
        return self.period > 0 and self.run >= self._limit // 8 and self.run >= TIMES * self.period

    def feed(self, text: str) -> bool:
        """Take the next piece; whether there is something in it that has not been said."""
        if len(text) <= _BLOCK_CHARS:
            return self._block(text) if text else False
        fresh = False
        for at in range(0, len(text), _BLOCK_CHARS):
            fresh = self._block(text[at : at + _BLOCK_CHARS]) or fresh
        return fresh

    def _block(self, text: str) -> bool:
        """As long as all is fresh, most pieces are looked for among the latest words only: a token should cost little."""
        self._pending += text
        if not self._stale and len(self._pending) < CHECK_CHARS:
            near = self._near + self._pending
            if _found_before(near) < 0:
                return something_to_see(text) and not near.endswith(text * 3)
        whole, self._pending = self._window + self._pending, ""
        self._window, self._near = whole[-WINDOW_CHARS:], whole[-NEAR_CHARS:]
        if self.period and whole.endswith(text, 0, len(whole) - self.period):
            self.run += len(text)
            self.looping = self.run >= self._limit
            return False
        self.period, self.run, self.looping = 0, 0, False
        period = _found_before(whole)
        self._stale = period > 0
        if not self._stale:
            return something_to_see(text) and not whole.endswith(text * 3)
        run = _common_end(whole, period)
        if run >= max(HOLD_CHARS, period):
            self.period, self.run = period, run
            self._limit = _limit(whole[-period:])
            self.looping = run >= self._limit
            return False
        # A line that comes at once may end as others did and still be new at its beginning.
        return len(text) > KEY_CHARS and something_to_see(text) and whole.find(text, 0, len(whole) - 1) < 0


def _found_before(text: str) -> int:
    """How long before its end the same end stood in `text` last; -1 if it did not."""
    length = min(KEY_CHARS, 2 * len(text) // 3)
    at = text.rfind(text[-length:], 0, len(text) - 1) if length else -1
    return len(text) - length - at if at >= 0 else -1


def _limit(unit: str) -> int:
    """How long a repetition of `unit` has to be before it is a loop."""
    if not something_to_see(unit):
        kind = BLANKS
    else:
        plain = _LETTERS_OR_BLANKS.findall(unit)
        words = len(plain) >= 0.9 * len(unit) and len({char for char in plain if char.isalpha()}) >= 3
        kind = WORDS if words else LONG if len(unit) >= LONG_UNIT_CHARS else ANYTHING
    return max(kind, TIMES * len(unit))


def _common_end(text: str, period: int) -> int:
    """How many characters at the end of `text` are what stood `period` characters before."""
    low, high = 0, len(text) - period
    while low < high:  # halving compares slices, which is far faster than characters
        middle = (low + high + 1) // 2
        end = len(text) - low
        if text[end - (middle - low) : end] == text[end - (middle - low) - period : end - period]:
            low = middle
        else:
            high = middle - 1
    return low
