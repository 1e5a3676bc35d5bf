"""Takes out of a continuation what is on screen already, so that nobody reads a sentence twice. Pure, incremental.

A stream broke after `partial`; the model was asked to go on, and often repeats the end of what it had said, or all of it.
`OverlapRemover` holds text back as long as it may still be a repetition, decides for the longest one, and passes on the rest.

What counts as a repetition: an end of `partial` (the latest 8,192 characters) with which the continuation begins, if it has at
least 16 characters, or begins at a word and has at least two words or four letters; or the whole of `partial`. Shorter
coincidences are left alone. White space before the repetition is passed over. A continuation that begins like `partial` for at
least 40 characters and then says something else is a new version of the reply: it is shown whole, as a new paragraph.

Laws (tests/agent_core/test_overlap.py): output only grows; the cutting never matters; ``partial[i:] + rest`` gives ``rest`` if
the overlap counts; without one, the continuation comes out as it is.
"""

from __future__ import annotations

LOOK_BACK = 8_192
SURE_CHARS = 16
NEW_VERSION_CHARS = 40


class OverlapRemover:
    """Feed the continuation; get what is new."""

    def __init__(self, partial: str) -> None:
        self._partial = partial
        self._tail = partial[-LOOK_BACK:]
        self._held = ""
        self._decided = False

    def feed(self, text: str) -> str:
        """What can be shown now, to be appended to the partial text."""
        if self._decided:
            return text
        self._held += text
        said = self._held.lstrip()
        if not said or self._may_still_repeat(said):
            return ""
        return self._decide()

    def finish(self) -> str:
        """The continuation is over: what was held back and is new."""
        return "" if self._decided else self._decide()

    def _may_still_repeat(self, said: str) -> bool:
        """Whether a longer continuation could still turn out to be a (longer) repetition."""
        if len(said) < len(self._partial) and self._partial.startswith(said):
            return True
        if len(said) >= len(self._tail):
            return False
        at = self._tail.find(said)  # it stands before the very end: the end may still be reached
        return at >= 0 and at + len(said) < len(self._tail)

    def _decide(self) -> str:
        self._decided = True
        held, self._held = self._held, ""
        said = held.lstrip()
        if not said:
            return held
        if said.startswith(self._partial):
            return said[len(self._partial) :]
        length = self._longest_repetition(said)
        if length:
            return said[length:]
        common = _common_beginning(self._partial, said)
        if common >= NEW_VERSION_CHARS and common < len(self._partial):
            return f"\n\n{said}"
        return held

    def _longest_repetition(self, said: str) -> int:
        """Length of the longest beginning of `said` that is an end of the partial text and counts; 0 if there is none."""
        window = said[: len(self._tail)]
        borders = _borders(f"{window}\0{self._tail}")
        length = borders[-1]
        while length:
            if self._counts(length):
                return length
            length = borders[length - 1]
        return 0

    def _counts(self, length: int) -> bool:
        if length >= min(SURE_CHARS, len(self._partial)):
            return True
        start = len(self._tail) - length
        at_word = start == 0 or not (self._tail[start - 1].isalnum() and self._tail[start].isalnum())
        words = self._tail[start:].split()
        letters = sum(character.isalnum() for character in self._tail[start:])
        return at_word and (len(words) >= 2 or letters >= 4)


def _common_beginning(first: str, second: str) -> int:
    """How many characters two texts have in common from the beginning (bisection on slices)."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _borders(text: str) -> list[int]:
    """For each prefix of `text`, the length of its longest proper border (Knuth, Morris and Pratt). Linear."""
    table = [0] * len(text)
    length = 0
    for index in range(1, len(text)):
        while length and text[index] != text[length]:
            length = table[length - 1]
        if text[index] == text[length]:
            length += 1
        table[index] = length
    return table
