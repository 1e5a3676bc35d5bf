"""A person's text as they wrote it: what a client shows as a link, as code, as a quotation or struck out, in Markdown. Pure.

Telegram takes these signs out of a text and tells of them beside it, in UTF-16 units (https://core.telegram.org/bots/api#messageentity). Without them
the model would see a link's words and not its address, and what is struck out as if it were said.

Laws (tests/adapters/test_telegram_written.py): no character of the text is lost or changes its place, whatever is told beside it; what is only a
matter of looks (bold, a spoiler) adds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from adapters.telegram.beside import Table, string, table
from adapters.text.links import is_bare
from agent_core.jsonvalue import Json
from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class _Sign:
    """Written before the character at `at`; what ends stands before what begins, the inner within the outer."""

    at: int
    rank: tuple[int, int]
    words: str


def written(message: Table) -> str:
    """A message's text or caption; also of a quotation, which has the same fields."""
    if text := string(message.get("text")):
        return as_markdown(text, message.get("entities"))
    return as_markdown(string(message.get("caption")), message.get("caption_entities"))


def as_markdown(text: str, entities: Json) -> str:
    """The text with its links, code and quotations in Markdown; an entity that does not fit it adds nothing."""
    if not isinstance(entities, list) or not entities:
        return text
    places = _places(text)
    signs = sorted(
        (sign for entity in entities for sign in _signs(text, table(entity), places)),
        key=lambda sign: (sign.at, sign.rank),
    )
    pieces, done = list[str](), 0
    for sign in signs:
        pieces += (text[done : sign.at], sign.words)
        done = sign.at
    return "".join((*pieces, text[done:]))


def _places(text: str) -> dict[int, int]:
    """Where each character begins, by its offset in UTF-16 units; and the end."""
    places, offset = dict[int, int](), 0
    for place, char in enumerate(text):
        places[offset] = place
        offset += 2 if ord(char) > 0xFFFF else 1
    places[offset] = len(text)
    return places


def _signs(text: str, entity: Table, places: dict[int, int]) -> Iterator[_Sign]:
    offset, length = entity.get("offset"), entity.get("length")
    if not isinstance(offset, int) or not isinstance(length, int):
        return
    start, end = places.get(offset), places.get(offset + length)
    if start is None or end is None or start >= end:
        return
    inside = text[start:end]
    match string(entity.get("type")):
        case "text_link":
            url = string(entity.get("url"))
            if not url or is_bare(inside, url):
                return
            around = "[", f"]({url})"
        case "code":
            around = _code(inside)
        case "strikethrough":
            around = "~~", "~~"
        case "pre":
            first, last = _block(inside, string(entity.get("language")))
            before = "" if start == 0 or text[start - 1] == "\n" else "\n"
            behind = "" if end == len(text) or text[end] == "\n" else "\n"
            around = before + first, last + behind
        case "blockquote" | "expandable_blockquote":
            for place in (start, *(start + found.end() for found in re.finditer("\n", inside[:-1]))):
                yield _Sign(place, (1, start - end - 1), "> ")
            return
        case _:
            return
    yield _Sign(start, (1, start - end), around[0])
    yield _Sign(end, (0, end - start), around[1])


def _code(inside: str) -> tuple[str, str]:
    ticks = "`" * (_longest(inside) + 1)
    room = " " if inside.startswith("`") or inside.endswith("`") else ""
    return ticks + room, room + ticks


def _block(inside: str, language: str) -> tuple[str, str]:
    fence = "`" * max(3, _longest(inside) + 1)
    return f"{fence}{language}\n", ("" if inside.endswith("\n") else "\n") + fence


def _longest(inside: str) -> int:
    """The longest run of backticks."""
    return max((len(run) for run in re.findall("`+", inside)), default=0)
