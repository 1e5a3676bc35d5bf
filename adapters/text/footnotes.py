"""Footnotes as models write them, `[^1]` and `[^1]: what it says`: raised numbers, which every platform shows and no later text can change.

One with a name, `[^note]`, is that name in brackets. What may be something else, such as the class of characters of a pattern (`[^abc]`), stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from markdown_it.common.utils import normalizeReference
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline

_MARK = re.compile(r"\[\^(?:(\d{1,3})|([^\W\d_][\w-]{1,31}))\](:[ \t]?)?")
OPEN_MARK = re.compile(r"\[\^[\w-]{0,32}\Z")
"""One that may be half-written."""
_BEFORE = re.compile(r"(?:\w\w|[.,;:!\"”’»…。、，！])\Z")
_BEHIND = re.compile(r"[\w*+?{|$(\[]")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LABEL = re.compile(r"\^(?:(\d{1,3})|([^\W\d_][\w-]{1,31}))")
_DEFINES = re.compile(r"[ ]{0,3}\[([^\[\]]+)\]:[ \t]*<?(?:\w{1,6}://|mailto:)", re.IGNORECASE)
_LABELS, _AGAIN = "labels", "duplicate_refs"


def raised(label: str) -> str:
    """A footnote's label as it is shown; anything else as it is."""
    found = _LABEL.fullmatch(label)
    return label if found is None else found[1].translate(_RAISED) if found[1] else f"[{found[2]}]"


def defining(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rule of links that are defined below (`[1]: http://…`). Without an address it is words (`[INFO]: started`), and so is another one of the same name."""
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    again = len(cast("Sequence[object]", state.env.get(_AGAIN, ())))
    before = state.line
    if (found := _DEFINES.match(line)) is None or not reference(state, start, end, silent):
        return False
    if len(cast("Sequence[object]", state.env.get(_AGAIN, ()))) > again:
        state.line = before
        return False
    if not silent:
        cast("dict[str, str]", state.env.setdefault(_LABELS, {}))[normalizeReference(found[1])] = found[1]
    return True


def labels_of(env: Mapping[str, object]) -> Mapping[str, str]:
    """By the names by which links find them: the labels as they were written."""
    return cast("Mapping[str, str]", env.get(_LABELS, {}))


def footnote(state: StateInline, silent: bool) -> bool:
    """The rule: a mark in a text, or, where a line begins with it and a colon follows, what it says. One with an address is a link (`raised`)."""
    if state.src[state.pos] != "[" or (found := _MARK.match(state.src, state.pos, state.posMax)) is None:
        return False
    number, name, _ = found.groups()
    known = cast("Mapping[str, object]", state.env.get("references") or {})
    if normalizeReference(f"^{number or name}") in known:
        return False
    begins = state.pos == 0 or state.src[state.pos - 1] == "\n"
    defines = begins and found[3] is not None
    end = found.end() if defines else found.start() + len(f"[^{number or name}]")
    if name and not defines and not _belongs(state.src, state.pos, end):
        return False
    if not silent:
        state.push("text", "", 0).content = raised(f"^{number or name}") + (" " if defines else "")
    state.pos = end
    return True


def _belongs(text: str, start: int, end: int) -> bool:
    """Whether a mark stands at a word or a sentence, as that of a footnote does, and not in a pattern."""
    return _BEFORE.search(text[max(0, start - 2) : start]) is not None and _BEHIND.match(text, end) is None
