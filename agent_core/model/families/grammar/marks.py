"""Finding literal marks in text that comes in pieces, without ever giving away half of one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from agent_core.records import dataclass
from agent_core.text.patterns import late


def _trie_pattern(literals: Iterable[str]) -> str:
    """One expression for many literals that tries each character once: alternatives never begin alike."""
    tree: dict[str, list[str]] = {}
    ends = False
    for literal in literals:
        if literal:
            tree.setdefault(literal[0], []).append(literal[1:])
        else:
            ends = True
    branches = [re.escape(char) + _trie_pattern(rest) for char, rest in sorted(tree.items())]
    if not branches:
        return ""
    body = branches[0] if len(branches) == 1 else "|".join(branches)
    if ends:
        return f"(?:{body})?"
    return body if len(branches) == 1 else f"(?:{body})"


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Some literals: where the next one is, and what may yet become one."""

    pattern: re.Pattern[str]
    prefixes: frozenset[str]
    """Every beginning of a literal that is shorter than it."""
    beginnings: frozenset[str]
    """The first characters of these."""
    longest: int
    folded: bool
    """Upper and lower case are the same."""

    def may_grow(self, text: str, start: int) -> bool:
        """Whether all of `text` from `start` on is the beginning of a literal."""
        if len(text) - start >= self.longest:
            return False
        rest = text[start:]
        return (rest.lower() if self.folded else rest) in self.prefixes

    def held_from(self, text: str, start: int) -> int:
        """Where a literal begins that `text` may end with the beginning of; its length if there is none."""
        size = len(text)
        first = max(start, size - self.longest + 1)
        tail = text[first:].lower() if self.folded else text[first:]
        if self.beginnings.isdisjoint(tail):  # nearly always, and asked of each piece of text
            return size
        for at in range(len(tail)):
            if tail[at:] in self.prefixes:
                return first + at
        return size


def marks_of(literals: Iterable[str], *, folded: bool = False) -> Marks:
    """The marks of these literals; the longest that fits counts. Without any, marks that never come."""
    listed = sorted({literal.lower() if folded else literal for literal in literals})
    prefixes = frozenset(literal[:length] for literal in listed for length in range(1, len(literal)))
    return Marks(
        late(_trie_pattern(listed) or "(?!)", re.IGNORECASE if folded else 0),
        prefixes,
        frozenset(one for one in prefixes if len(one) == 1),
        max(map(len, listed), default=1),
        folded,
    )


@lru_cache(maxsize=512)
def marks(*literals: str) -> Marks:
    """The marks of these literals, made once. For literals that stand in the source."""
    return marks_of(literals)
