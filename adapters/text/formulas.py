r"""Formulas in TeX, as models write them between marks. Pure.

Theory. A page draws what stands between marks. A chat draws no formula: there it is shown as it was written, or its backslashes
would be read as Markdown's (`x\,dx` as `x,dx`). Between `\(` and `\)`, `\[` and `\]` or two dollars it is code, without its marks; between single
dollars it is text with them, as a price may begin there. In a chat a formula has a sign of TeX in it: `\[sic\]` is a word in brackets.
"""

from __future__ import annotations

import re

from agent_core.records import dataclass

LONGEST = 2000
"""Characters; a mark that has been open for longer begins no formula."""
LONGEST_BESIDE_MONEY = 500

_ENDS = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_BETWEEN_DOLLARS = re.compile(rf"\$(?![\s$])([^$\n]{{1,{LONGEST_BESIDE_MONEY}}}?)(?<![\s\\])\$(?![\d$])")
"""What costs money (`$5 and $6`) is none: a closing sign follows no space, and no digit follows it."""
_SIGN = re.compile(r"[\\^_={}]")
_SIGN_BESIDE_MONEY = re.compile(r"\\[A-Za-z,;:!{}|\\]|\^|_\{")


@dataclass(frozen=True, slots=True)
class TexFound:
    """A formula in a text."""

    tex: str
    end: int
    """Where the text goes on."""
    display: bool
    """It stands alone."""
    beside_money: bool
    """It stands between single dollars."""


def drawn(text: str, start: int, end: int) -> TexFound | None:
    """The formula that begins at `start`, for who draws it."""
    mark = text[start : start + 2]
    if (closing := _ENDS.get(mark)) is not None:
        at = text.find(closing, start + 3, min(end, start + LONGEST + 4))
        if at >= 0:
            return TexFound(text[start + 2 : at].strip(), at + 2, display=mark != "\\(", beside_money=False)
    if (found := _BETWEEN_DOLLARS.match(text, start, end)) is not None:
        return TexFound(found[1].strip(), found.end(), display=False, beside_money=True)
    return None


def written(text: str, start: int, end: int) -> TexFound | None:
    """The formula that begins at `start`, for who shows it as it was written."""
    found = drawn(text, start, end)
    if found is None:
        return None
    sign = _SIGN_BESIDE_MONEY if found.beside_money else _SIGN
    return found if sign.search(found.tex) else None


def open_at(text: str, start: int) -> int | None:
    """Where begins what is not sure yet, if the mark at `start` may open a formula whose end has not come; None if it opens none."""
    if text[start : start + 2] in _ENDS:
        return start if len(text) - start <= LONGEST and drawn(text, start, len(text)) is None else None
    rest = text[start + 1 :] if len(text) - start <= LONGEST_BESIDE_MONEY else "\n"
    if text[start] != "$" or rest[:1].isspace() or "\n" in rest or "$" in rest:
        return None
    at = text.find("\\", start) if rest else start  # a dollar at the very end may be the first of two
    return at if at >= 0 else None
