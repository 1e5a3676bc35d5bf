"""Footnotes as models write them, `[^1]` and `[^1]: what it says`: raised numbers, which every platform shows and no later text can change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from markdown_it.common.utils import normalizeReference
from markdown_it.rules_inline import StateInline

_MARK = re.compile(r"\[\^(\d{1,3})\](:[ \t]?)?")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LABEL = re.compile(r"\^\d{1,3}")


def raised(label: str) -> str:
    """A number as a footnote's; anything else as it is."""
    return label[1:].translate(_RAISED) if _LABEL.fullmatch(label) else label


def footnote(state: StateInline, silent: bool) -> bool:
    """The rule: a mark in a text, or, where a line begins with it and a colon follows, what it says. One with an address is a link (`raised`)."""
    if state.src[state.pos] != "[" or (found := _MARK.match(state.src, state.pos, state.posMax)) is None:
        return False
    known = cast("Mapping[str, object]", state.env.get("references") or {})
    if normalizeReference(f"^{found[1]}") in known:
        return False
    begins = state.pos == 0 or state.src[state.pos - 1] == "\n"
    defines = begins and found[2] is not None
    if not silent:
        state.push("text", "", 0).content = raised(f"^{found[1]}") + (" " if defines else "")
    state.pos = found.end() if defines else found.end(1) + 1
    return True
