"""Texts with markup, read into plain text and entities: HTML, MarkdownV2 and the old Markdown.

The rules are those of https://core.telegram.org/bots/api#formatting-options; the complaints and the offsets in them (in UTF-8 bytes)
are worded as the server words them, because clients show them to whoever must mend the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from tests.fakes.telegram.entities import Entity, Kind, byte_offset, good_url, mentioned_user, utf16_length
from tests.fakes.telegram.errors import bad

Parsed = tuple[str, list[Entity]]


def _fail(words: str) -> NoReturn:
    raise bad(f"can't parse entities: {words}")


def parse(text: str, mode: str) -> Parsed:
    """Plain text and entities of a text with markup. An empty `mode` means plain.

    Raises:
        ApiError: the markup is broken, or nobody knows the mode.
    """
    match mode.lower():
        case "":
            return text, []
        case "html":
            return _Html(text).read()
        case "markdownv2":
            return _MarkdownV2(text).read()
        case "markdown":
            return _old_markdown(text)
        case _:
            raise bad("unsupported parse_mode")


class _Output:
    """Text that grows, with its length in UTF-16 code units."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.length = 0

    def add(self, characters: str) -> None:
        self._parts.append(characters)
        self.length += utf16_length(characters)

    def text(self) -> str:
        return "".join(self._parts)


def _link(start: int, end: int, address: str) -> Entity | None:
    """The entity of a link; none if the address is no good."""
    user_id = mentioned_user(address)
    if user_id is not None:
        return Entity(Kind.TEXT_MENTION, start, end - start, user_id=user_id)
    url = good_url(address)
    return None if url is None else Entity(Kind.TEXT_LINK, start, end - start, url=url)


# --- HTML ---

_TAGS = {
    "b": Kind.BOLD,
    "strong": Kind.BOLD,
    "i": Kind.ITALIC,
    "em": Kind.ITALIC,
    "u": Kind.UNDERLINE,
    "ins": Kind.UNDERLINE,
    "s": Kind.STRIKETHROUGH,
    "strike": Kind.STRIKETHROUGH,
    "del": Kind.STRIKETHROUGH,
    "span": Kind.SPOILER,
    "tg-spoiler": Kind.SPOILER,
    "tg-emoji": Kind.CUSTOM_EMOJI,
    "a": Kind.TEXT_LINK,
    "code": Kind.CODE,
    "pre": Kind.PRE,
    "blockquote": Kind.BLOCKQUOTE,
}
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_REFERENCE = re.compile(r"&(?:#(?:x([0-9a-fA-F]{1,6})|(\d{1,7}))|(lt|gt|amp|quot));")
_ATTRIBUTE = re.compile(r"\s*([^\s=>/]*)\s*(?:=\s*(?:\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9.-]+)))?\s*/?", re.DOTALL)


def _unescaped(text: str) -> str:
    """With the few references replaced that the server knows: four names, and numbers."""

    def character(match: re.Match[str]) -> str:
        if match.group(3):
            return _NAMED[match.group(3)]
        number = int(match.group(1), 16) if match.group(1) else int(match.group(2))
        usable = 0 < number < 0x110000 and not 0xD800 <= number < 0xE000
        return chr(number) if usable else match.group()

    return _REFERENCE.sub(character, text)


@dataclass(slots=True)
class _Tag:
    name: str
    start: int
    """UTF-16 offset in the output."""
    text_from: int
    """Character index in the source behind the tag."""
    attributes: dict[str, str]


class _Html:
    def __init__(self, source: str) -> None:
        self._source = source
        self._out = _Output()
        self._open: list[_Tag] = []
        self._entities: list[Entity] = []

    def read(self) -> Parsed:
        source = self._source
        index = 0
        while index < len(source):
            bracket = source.find("<", index)
            if bracket < 0:
                bracket = len(source)
            if bracket > index:
                self._out.add(_unescaped(source[index:bracket]))
            index = bracket
            if index < len(source):
                index = self._end_tag(index) if source.startswith("</", index) else self._start_tag(index)
        if self._open:
            _fail(f'Can\'t find end tag corresponding to start tag "{self._open[-1].name}"')
        return self._out.text(), self._entities

    def _start_tag(self, begin: int) -> int:
        source = self._source
        at = byte_offset(source, begin)
        match = re.compile(r"<([^\s>/]*)").match(source, begin)
        assert match is not None
        name = match.group(1).lower()
        if match.end() >= len(source):
            _fail(f"Unclosed start tag at byte offset {at}")
        if name not in _TAGS:
            _fail(f'Unsupported start tag "{name}" at byte offset {at}')
        attributes: dict[str, str] = {}
        index = match.end()
        while not source.startswith(">", index):
            found = _ATTRIBUTE.match(source, index)
            if found is None or found.end() == index or found.end() >= len(source):
                _fail(f'Unclosed start tag "{name}" at byte offset {at}')
            if not found.group(1) and "=" in found.group():
                _fail(f'Empty attribute name in the tag "{name}" at byte offset {at}')
            if found.group(1):
                value = next((text for text in found.groups()[1:] if text is not None), "")
                attributes.setdefault(found.group(1).lower(), _unescaped(value))
            index = found.end()
        if name == "span" and attributes.get("class") != "tg-spoiler":
            _fail(f'Tag "span" must have class "tg-spoiler" at byte offset {at}')
        self._open.append(_Tag(name, self._out.length, index + 1, attributes))
        return index + 1

    def _end_tag(self, begin: int) -> int:
        source = self._source
        at = byte_offset(source, begin)
        if not self._open:
            _fail(f"Unexpected end tag at byte offset {at}")
        match = re.compile(r"</([^\s>]*)\s*").match(source, begin)
        assert match is not None
        if not source.startswith(">", match.end()):
            _fail(f"Unclosed end tag at byte offset {at}")
        tag = self._open.pop()
        name = match.group(1).lower()
        if name not in {"", tag.name}:
            _fail(f'Unmatched end tag at byte offset {at}, expected "</{tag.name}>", found "</{name}>"')
        if self._out.length > tag.start:
            self._close(tag, source[tag.text_from : begin])
        return match.end() + 1

    def _close(self, tag: _Tag, inside: str) -> None:
        start, length = tag.start, self._out.length - tag.start
        entity: Entity | None
        match _TAGS[tag.name]:
            case Kind.TEXT_LINK:
                entity = _link(start, self._out.length, tag.attributes.get("href") or _unescaped(inside))
            case Kind.CODE:
                language = tag.attributes.get("class", "").removeprefix("language-")
                entity = Entity(Kind.CODE, start, length, language=language or None)
            case Kind.PRE:
                entity = self._pre(start, length)
            case Kind.BLOCKQUOTE if "expandable" in tag.attributes:
                entity = Entity(Kind.EXPANDABLE_BLOCKQUOTE, start, length)
            case Kind.CUSTOM_EMOJI:
                number = tag.attributes.get("emoji-id", "")
                if not number.isdigit():
                    _fail("Invalid custom emoji identifier specified")
                entity = Entity(Kind.CUSTOM_EMOJI, start, length, custom_emoji_id=number)
            case kind:
                entity = Entity(kind, start, length)
        if entity is not None:
            self._entities.append(entity)

    def _pre(self, start: int, length: int) -> Entity:
        """A `<pre>`; a `<code class="language-…">` that fills it gives it its language and is gone."""
        last = self._entities[-1] if self._entities else None
        if last is not None and last.kind is Kind.CODE and (last.offset, last.length) == (start, length):
            self._entities.pop()
            return Entity(Kind.PRE, start, length, language=last.language)
        return Entity(Kind.PRE, start, length)


# --- MarkdownV2 ---

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
_MARKS = {
    "*": ("Bold", Kind.BOLD),
    "_": ("Italic", Kind.ITALIC),
    "__": ("Underline", Kind.UNDERLINE),
    "~": ("Strikethrough", Kind.STRIKETHROUGH),
    "||": ("Spoiler", Kind.SPOILER),
    "`": ("Code", Kind.CODE),
    "```": ("Pre", Kind.PRE),
    "[": ("TextUrl", Kind.TEXT_LINK),
    "![": ("CustomEmoji", Kind.CUSTOM_EMOJI),
    ">": ("BlockQuote", Kind.BLOCKQUOTE),
}


@dataclass(slots=True)
class _Mark:
    mark: str
    start: int
    """UTF-16 offset in the output."""
    index: int
    """Character index in the source."""
    text_from: int
    language: str | None = None


class _MarkdownV2:
    def __init__(self, source: str) -> None:
        self._source = source
        self._index = 0
        self._out = _Output()
        self._open: list[_Mark] = []
        self._entities: list[Entity] = []
        self._line_begins = True

    def read(self) -> Parsed:
        source = self._source
        while self._index < len(source):
            character = source[self._index]
            following = source[self._index + 1 : self._index + 2]
            if character == "\\" and "\x00" < following < "\x7f":
                self._plain(following)
                self._index += 1
            elif self._in_code() and character != "`":
                self._plain(character)
            elif character == "\n":
                self._newline()
            elif character in _RESERVED:
                self._reserved(character)
            else:
                self._plain(character)
        if self._open and self._open[-1].mark == ">":
            self._end(self._open.pop())
        self._nothing_open()
        return self._out.text(), self._entities

    def _plain(self, character: str) -> None:
        self._out.add(character)
        self._index += 1
        self._line_begins = character == "\r" and self._line_begins

    def _in_code(self) -> bool:
        return bool(self._open) and self._open[-1].mark in {"`", "```"}

    def _in_quote(self) -> bool:
        return any(mark.mark == ">" for mark in self._open)

    def _nothing_open(self) -> None:
        if self._open:
            mark = self._open[-1]
            name = "PreCode" if mark.language else _MARKS[mark.mark][0]
            _fail(f"Can't find end of {name} entity at byte offset {byte_offset(self._source, mark.index)}")

    def _newline(self) -> None:
        self._plain("\n")
        self._line_begins = True
        if self._in_quote() and not self._source.startswith(">", self._index):
            if self._open[-1].mark != ">":
                self._nothing_open()
            self._end(self._open.pop())

    def _reserved(self, character: str) -> None:
        source, index = self._source, self._index
        if character == ">" and self._line_begins:
            if not self._in_quote():
                self._begin(">")
            else:
                self._index += 1
                self._line_begins = False
            return
        if self._quote_expands():
            return
        if self._ends_top(character):
            return
        for mark in ("![", "__", "||", "```", "*", "_", "~", "`", "["):
            if source.startswith(mark, index):
                self._begin(mark)
                return
        _fail(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")

    def _quote_expands(self) -> bool:
        """Whether a quotation ends here with the `||` that makes it expandable."""
        if not self._open or self._open[-1].mark != ">" or not self._source.startswith("||", self._index):
            return False
        if re.compile(r"\|\|\r?(?:\n(?!>)|\Z)").match(self._source, self._index) is None:
            return False
        self._open[-1].language = "expandable"
        self._index += 2
        return True

    def _begin(self, mark: str) -> None:
        begun = _Mark(mark, self._out.length, self._index, self._index + len(mark))
        self._index += len(mark)
        if mark == "```":
            language = re.compile(r"([^\s`]+)(?=\s)").match(self._source, self._index)
            if language:
                begun.language = language.group(1)
                self._index = language.end()
            newline = re.compile(r"\r\n|\n\r|\n|\r").match(self._source, self._index)
            self._index = newline.end() if newline else self._index
        if mark == ">":
            self._line_begins = False
        self._open.append(begun)

    def _ends_top(self, character: str) -> bool:
        """End the innermost entity if that is what stands here."""
        if not self._open:
            return False
        mark = self._open[-1].mark
        if mark in {"[", "!["}:
            if character != "]":
                return False
        elif not self._source.startswith(mark, self._index) or mark == ">":
            return False
        elif mark == "_" and self._source.startswith("__", self._index):
            # Two underscores always mean underline, read from left to right.
            return False
        top = self._open.pop()
        text_to = self._index
        self._index += 1 if mark in {"[", "!["} else len(mark)
        self._end(top, self._source[top.text_from : text_to])
        return True

    def _end(self, mark: _Mark, inside: str = "") -> None:
        start, length = mark.start, self._out.length - mark.start
        entity: Entity | None
        match _MARKS[mark.mark][1]:
            case Kind.TEXT_LINK:
                address = self._address("a URL")
                entity = _link(start, self._out.length, re.sub(r"\\(.)", r"\1", inside) if address is None else address)
            case Kind.CUSTOM_EMOJI:
                entity = self._emoji(start, length)
            case Kind.PRE:
                entity = Entity(Kind.PRE, start, length, language=mark.language)
            case Kind.BLOCKQUOTE if mark.language:
                entity = Entity(Kind.EXPANDABLE_BLOCKQUOTE, start, length)
            case kind:
                entity = Entity(kind, start, length)
        if entity is not None and entity.length:
            self._entities.append(entity)

    def _address(self, what: str) -> str | None:
        """What stands in round brackets behind a link's text; None if there are no brackets."""
        if not self._source.startswith("(", self._index):
            return None
        begin = self._index + 1
        match = re.compile(r"((?:\\.|[^)\\]|\\$)*)\)", re.DOTALL).match(self._source, begin)
        if match is None:
            _fail(f"Can't find end of {what} at byte offset {byte_offset(self._source, begin)}")
        self._index = match.end()
        return re.sub(r"\\([\x01-\x7e])", r"\1", match.group(1))

    def _emoji(self, start: int, length: int) -> Entity:
        address = self._address("a custom emoji URL")
        if address is None:
            _fail("Custom emoji entity must contain a tg://emoji URL")
        match = re.fullmatch(r"tg:(?://)?emoji/?\?(?:[^#]*&)?id=([1-9]\d*)(?:[&#].*)?", address, re.IGNORECASE)
        if match is None:
            _fail("Custom emoji URL must have an emoji identifier")
        return Entity(Kind.CUSTOM_EMOJI, start, length, custom_emoji_id=match.group(1))


# --- the old Markdown ---

_OLD = {"*": Kind.BOLD, "_": Kind.ITALIC, "`": Kind.CODE, "```": Kind.PRE, "[": Kind.TEXT_LINK}


def _old_markdown(source: str) -> Parsed:
    """The old Markdown: no nesting, and only `_`, `*`, `` ` `` and `[` can be escaped."""
    out = _Output()
    entities: list[Entity] = []
    index = 0
    while index < len(source):
        character = source[index]
        if character == "\\" and source[index + 1 : index + 2] in {"_", "*", "`", "["}:
            out.add(source[index + 1])
            index += 2
            continue
        if character not in _OLD:
            out.add(character)
            index += 1
            continue
        mark = "```" if source.startswith("```", index) else character
        closing = "]" if mark == "[" else mark
        end = source.find(closing, index + len(mark))
        if end < 0:
            _fail(f"Can't find end of the entity starting at byte offset {byte_offset(source, index)}")
        start = out.length
        inside = source[index + len(mark) : end]
        language = re.match(r"([^\s`]+)\n", inside) if mark == "```" else None
        out.add(inside[language.end() :] if language else inside.removeprefix("\n") if mark == "```" else inside)
        index = end + len(closing)
        if mark == "[":
            address = re.compile(r"\(([^)]*)\)").match(source, index)
            index = address.end() if address else index
            link = _link(start, out.length, address.group(1)) if address else None
            entities.extend([] if link is None else [link])
        else:
            name = language.group(1) if language else None
            entities.append(Entity(_OLD[mark], start, out.length - start, language=name))
    return out.text(), entities
