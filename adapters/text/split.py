"""Styled text in parts, each within a platform's limit.

Theory. One pass from left to right. At each start, the window is the longest text within the limit; the cut is looked for in
it, from its end: at a blank line, a line's end, a sentence's end, a space (each only in the window's second half, then
anywhere), and else between two grapheme clusters. A code block that the window would tear, although it fits into a part,
is moved to the next part if at least half of this one is filled without it. White space at a cut goes.

Laws (tests hold them): the texts of the parts, joined, are the text, apart from white space; each part holds something and
is within the limit (a limit must have room for any code point); no grapheme cluster is torn that would fit into a part;
spans go on in the next part, are in bounds, sorted, and begin and end with no white space outside code; a part has at most
`most_spans` spans, if no place has more; time is linear in the length of the text.

The measure must count each code point at least once, and must not count a text less than its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import IntEnum

from adapters.text.clusters import is_glued, last_boundary
from adapters.text.styled import Span, Style, Styled, cut, units
from agent_core.records import dataclass

Measure = Callable[[str], int]


class _Break(IntEnum):
    """Where a text may be cut; the greater, the better."""

    SPACE = 0
    SENTENCE = 1
    LINE = 2
    BLANK_LINE = 3


_GAP = re.compile(r"(?<=\S)\s+|(?<=[。！？；])(?=\S)")
_WHITE = re.compile(r"\s*")
_CLOSING = "\"'”’»)]*"
_SENTENCE_ENDS = ".!?…:;。！？；"
_LOOK_BEYOND = 64


def split(
    styled: Styled,
    limit: int,
    units: Measure = units,
    *,
    most_spans: int | None = None,
) -> tuple[Styled, ...]:
    """The parts, in order; none if the text is only white space."""
    if limit < 2:
        raise ValueError(f"a limit of {limit} has no room for every character")
    return tuple(_parts(_Window(styled, limit, units, most_spans)))


@dataclass(slots=True)
class _Window:
    """The text, and the spans around the place where the next part begins."""

    styled: Styled
    limit: int
    units: Measure
    most_spans: int | None
    start: int = 0
    next_span: int = 0
    """The first span that begins after `start`."""
    active: tuple[Span, ...] = ()
    """The spans that have begun at `start` or before, and go on."""

    def move(self, start: int) -> None:
        """Begin the next part here."""
        self.start = start
        spans = self.styled.spans
        begun = self.next_span
        while self.next_span < len(spans) and spans[self.next_span].start <= start:
            self.next_span += 1
        self.active = tuple(span for span in (*self.active, *spans[begun : self.next_span]) if span.end > start)

    def part(self, end: int) -> Styled:
        """From the start to an end, with its spans."""
        inside = list(self.active)
        for place in range(self.next_span, len(self.styled.spans)):
            if self.styled.spans[place].start >= end:
                break
            inside.append(self.styled.spans[place])
        return Styled(self.styled.text[self.start : end], cut(inside, self.start, end)).strip()

    def pre_at(self, place: int) -> Span | None:
        """The code block that holds the characters on both sides of a place."""
        for span in self.active:
            if span.style is Style.PRE and span.start < place < span.end:
                return span
        for number in range(self.next_span, len(self.styled.spans)):
            span = self.styled.spans[number]
            if span.start >= place:
                return None
            if span.style is Style.PRE and place < span.end:
                return span
        return None


def _parts(window: _Window) -> Iterator[Styled]:
    text = window.styled.text
    window.move(0)
    while window.start < len(text):
        end = _end_of_window(window)
        if end < len(text):
            end = _cut_place(window, end)
        part = window.part(end)
        if part.text:
            yield part
        window.move(_next_start(window, end))


def _end_of_window(window: _Window) -> int:
    """The end of the longest text within the limits, from the start on."""
    text, start = window.styled.text, window.start
    low, high = start + 1, min(len(text), start + window.limit)
    if window.units(text[start:high]) <= window.limit:
        low = high
    while low < high:
        middle = (low + high + 1) // 2
        if window.units(text[start:middle]) <= window.limit:
            low = middle
        else:
            high = middle - 1
    if window.most_spans is not None:
        first_over = window.next_span + max(0, window.most_spans - len(window.active))
        if first_over < len(window.styled.spans):
            low = min(low, max(start + 1, window.styled.spans[first_over].start))
    return low


def _cut_place(window: _Window, end: int) -> int:
    """Where the part that begins at the start ends, at `end` at the latest."""
    text, start = window.styled.text, window.start
    code = window.pre_at(end)
    if code is not None and code.start > start and window.units(text[code.start : code.end]) <= window.limit:
        filled = window.units(text[start : code.start].strip())
        if filled and 2 * filled >= window.limit:
            return code.start
    best = _best_gap(text, start, end)
    return best if best > start else last_boundary(text, start, end)


def _best_gap(text: str, start: int, end: int) -> int:
    """The end of what stands before the best gap; `start` if there is none."""
    late: dict[_Break, int] = {}
    early: dict[_Break, int] = {}
    for found in _GAP.finditer(text, start, min(len(text), end + _LOOK_BEYOND)):
        place = found.start()
        if place > end:
            break
        if place > start and not is_glued(text, place):
            kind = _kind(text, place, found.group())
            (late if 2 * (place - start) >= end - start else early)[kind] = place
    chosen = late or early
    return chosen[max(chosen)] if chosen else start


def _kind(text: str, place: int, gap: str) -> _Break:
    match gap.count("\n"):
        case 0:
            before = text[max(0, place - 8) : place].rstrip(_CLOSING)
            return _Break.SENTENCE if before[-1:] and before[-1] in _SENTENCE_ENDS else _Break.SPACE
        case 1:
            return _Break.LINE
        case _:
            return _Break.BLANK_LINE


def _next_start(window: _Window, end: int) -> int:
    """Where the next part begins: behind the white space, but at the line's beginning in a code block."""
    text = window.styled.text
    found = _WHITE.match(text, end)
    start = found.end() if found else end
    if start == end or start == len(text):
        return start
    code = window.pre_at(start)
    if code is None:
        return start
    line = max(end, code.start, text.rfind("\n", end, start) + 1)
    return line if 2 * (start - line) < window.limit else start
