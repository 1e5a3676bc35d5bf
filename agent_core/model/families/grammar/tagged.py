"""The grammar that many families share: a call in tags, each argument a text in tags of its own.

A text argument may hold anything, also tags that look like the family's own. Its end counts only if what must come after it does come:
the next argument, the end of the call, a mark around calls, or the end of the text.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TypeAlias

from agent_core.jsonvalue import Json
from agent_core.model.families.family import Calls
from agent_core.model.families.grammar.steps import END, Grammar, NotACall, Step, one_of, spaces, until
from agent_core.model.families.grammar.values import object_of, parsed
from agent_core.model.families.pieces import BrokenReason
from agent_core.records import dataclass

_ATTRIBUTE = re.compile(r"""([\w.-]{1,64})\s{0,8}=\s{0,8}(?:"([^"]{0,512})"|'([^']{0,512})'|([^\s"'<>/]{1,512}))""")
_NAME = re.compile(r"[\w.:/-]{1,128}")

Values: TypeAlias = dict[str, Json]


class _Unclear(Exception):
    """The text of an argument ends twice, and nothing says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """The tags of a family."""

    opens: tuple[str, ...]
    """What begins an argument; its key follows."""
    header_end: str = ">"
    value_opens: str = ""
    """What stands between the key and the value, if they have tags of their own."""
    value_ends: tuple[str, ...]
    ends: tuple[str, ...]
    """What ends the call."""
    around: tuple[str, ...] = ()
    """What ends the tags around calls."""
    nexts: tuple[str, ...] = ()
    """What begins the next call."""

    @property
    def after_value(self) -> tuple[str, ...]:
        return (*self.opens, *self.ends, *self.around)


def attributes(header: str) -> dict[str, str]:
    """The attributes of a tag."""
    return {found[1]: found[2] or found[3] or found[4] or "" for found in _ATTRIBUTE.finditer(header)}


def clean_name(header: str, *keys: str) -> str:
    """The name in a tag: bare, in quotation marks, or the value of one of these attributes. Empty if it is none."""
    found = attributes(header)
    name = next((found[key] for key in keys if key in found), header).strip().strip("\"'").strip()
    return name if _NAME.fullmatch(name) else ""


def header(end: str) -> Generator[Step, None, tuple[str, bool]]:
    """The inside of a tag up to `end`, and whether it ends. A tag is short, and has no other tag in it."""
    inside, mark = yield from until(end, "\n\n", *(() if end.startswith("<") else ("<",)))
    return inside, mark == end


def trimmed(value: str) -> str:
    """A text without the line breaks that belong to the tags around it."""
    value = value.removeprefix("\r\n") if value.startswith("\r\n") else value.removeprefix("\n")
    return value.removesuffix("\r\n") if value.endswith("\r\n") else value.removesuffix("\n")


def arguments(calls: Calls, tags: Tags, *, first: str | None = None) -> Grammar:
    """All arguments up to the end of the call, which is open. `first` is the mark that has been read already."""
    values: Values = {}
    mark = first
    if mark is None:
        yield from spaces()
        mark = yield from one_of(*tags.after_value)
    while mark is not None and mark in tags.opens:
        inside, well = yield from header(tags.header_end)
        if not well:
            break
        inside = f"name={inside}" if mark.endswith("name=") else inside
        try:
            value = yield from _value(tags)
        except _Unclear as unclear:
            calls.broken(BrokenReason.UNREADABLE, str(unclear))
            return
        if value is None:
            calls.broken(BrokenReason.CUT_OFF)
            return
        text, mark = value
        key = clean_name(inside, "name", "key") or inside.strip()
        values[key] = _meant(calls, key, inside, text)
    else:
        if mark is not None and (mark != END or (calls.ends_well and values)):
            calls.arguments(object_of(values))
            return
        if mark == END:
            calls.broken(BrokenReason.CUT_OFF)
            return
    rest, found = yield from until(*tags.ends)
    calls.broken(BrokenReason.CUT_OFF if found == END else BrokenReason.UNREADABLE, rest.strip() or "…")


def _meant(calls: Calls, key: str, inside: str, text: str) -> Json:
    """What an argument means: its tag may say whether it is text (DeepSeek, Kimi), else the tool's schema does."""
    said = attributes(inside)
    kind = said.get("string", said.get("type", "")).lower()
    if kind in ("true", "string"):
        return text
    if kind:
        try:
            return parsed(text.strip())
        except ValueError:
            return text
    return calls.offered.value(calls.name, key, text)


def _value(tags: Tags) -> Generator[Step, None, tuple[str, str] | None]:
    """The text of an argument, and the mark that comes after it; None if the text ends within it."""
    if tags.value_opens:
        yield from spaces()
        if not (yield from one_of(tags.value_opens)):
            return None
    parts: list[str] = []
    while True:
        text, mark = yield from until(*tags.value_ends, *tags.ends)
        parts.append(text)
        if mark == END:
            return None
        gap = yield from spaces()
        if mark in tags.value_ends:
            follows = yield from one_of(*tags.after_value)
            if follows is not None:
                return trimmed("".join(parts)), follows
        elif (yield from one_of(*tags.around, *tags.nexts, *tags.ends, take=False)) is not None:
            if any(end in parts for end in tags.value_ends):
                raise _Unclear("".join(parts))
            return trimmed("".join(parts)), mark  # the end of the argument was forgotten
        parts += (mark, gap)


def begun(calls: Calls, name: str) -> None:
    """Open the call `name`. Raises `NotACall` if that is no name."""
    if not name:
        raise NotACall
    calls.open(name)
