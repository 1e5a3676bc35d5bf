"""Entities of a text: what they are, checking those that a bot gives, finding those that everybody sees, and trimming.

Offsets and lengths count UTF-16 code units (https://core.telegram.org/bots/api#messageentity).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.fakes.common import Json, JsonObject
from tests.fakes.telegram.errors import bad

MAX_ENTITIES = 100


class Kind(StrEnum):
    """What an entity is; the order decides which of two over the same characters is the outer one."""

    BLOCKQUOTE = "blockquote"
    EXPANDABLE_BLOCKQUOTE = "expandable_blockquote"
    PRE = "pre"
    CODE = "code"
    TEXT_LINK = "text_link"
    TEXT_MENTION = "text_mention"
    CUSTOM_EMOJI = "custom_emoji"
    DATE_TIME = "date_time"
    BOLD = "bold"
    ITALIC = "italic"
    UNDERLINE = "underline"
    STRIKETHROUGH = "strikethrough"
    SPOILER = "spoiler"
    MENTION = "mention"
    HASHTAG = "hashtag"
    CASHTAG = "cashtag"
    BOT_COMMAND = "bot_command"
    URL = "url"
    EMAIL = "email"
    PHONE_NUMBER = "phone_number"


FOUND = frozenset(
    {Kind.MENTION, Kind.HASHTAG, Kind.CASHTAG, Kind.BOT_COMMAND, Kind.URL, Kind.EMAIL, Kind.PHONE_NUMBER},
)
"""What the server finds by itself; a bot that names them is not heard."""
QUOTES = frozenset({Kind.BLOCKQUOTE, Kind.EXPANDABLE_BLOCKQUOTE})
_ORDER = {kind: index for index, kind in enumerate(Kind)}
_WHOLE = frozenset(
    {Kind.PRE, Kind.CODE, Kind.TEXT_LINK, Kind.TEXT_MENTION, Kind.CUSTOM_EMOJI, Kind.DATE_TIME},
)
"""Nothing is found by itself inside these."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity. Only a text_link has a `url`, only a text_mention a `user_id`, and so on."""

    kind: Kind
    offset: int
    length: int
    url: str | None = None
    user_id: int | None = None
    language: str | None = None
    custom_emoji_id: str | None = None

    @property
    def end(self) -> int:
        """The offset behind the last code unit."""
        return self.offset + self.length

    def of(self, text: str) -> str:
        """The characters that it covers."""
        return utf16_slice(text, self.offset, self.end)


def utf16_length(text: str) -> int:
    """The length in UTF-16 code units."""
    return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)


def utf16_slice(text: str, start: int, end: int) -> str:
    """The characters between two offsets in UTF-16 code units."""
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def byte_offset(text: str, index: int) -> int:
    """The offset in UTF-8 bytes of a character's index, as the server's complaints name it."""
    return len(text[:index].encode("utf-8"))


def _boundaries(text: str) -> set[int]:
    """The offsets at which a character begins, and the end."""
    found = {0}
    offset = 0
    for character in text:
        offset += 2 if ord(character) > 0xFFFF else 1
        found.add(offset)
    return found


def _bytes_at(text: str, offset: int) -> int:
    return len(text.encode("utf-16-le")[: 2 * offset].decode("utf-16-le", "ignore").encode("utf-8"))


def check(text: str, entities: Sequence[Entity]) -> None:
    """Raise what the server says if entities do not fit the text, or are too many."""
    length = utf16_length(text)
    starts = _boundaries(text)
    for entity in entities:
        if entity.offset < 0:
            raise bad("receive an entity with incorrect offset")
        if entity.length < 0:
            raise bad("receive an entity with incorrect length")
        if entity.offset > length:
            raise bad(f"entity begins after the end of the text at UTF-16 offset {entity.offset}")
        if entity.offset not in starts:
            at = _bytes_at(text, entity.offset)
            raise bad(f"entity begins in a middle of a UTF-16 symbol at byte offset {at}")
        beginning = f"entity beginning at UTF-16 offset {entity.offset}"
        if entity.end > length:
            raise bad(f"{beginning} ends after the end of the text at UTF-16 offset {entity.end}")
        if entity.end not in starts:
            raise bad(f"{beginning} ends in a middle of a UTF-16 symbol at byte offset {_bytes_at(text, entity.end)}")
    if len([entity for entity in entities if entity.length]) > MAX_ENTITIES:
        raise bad("ENTITIES_TOO_LONG")


def _object_field(item: JsonObject, name: str) -> int:
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad(f'can\'t parse MessageEntity: Field "{name}" must be of type Number')
    return value


def _given(item: Json) -> Entity | None:
    """One entity as a bot gives it; None if it is of a kind that the server finds by itself."""
    if not isinstance(item, dict):
        raise bad("can't parse MessageEntity: expected an Object")
    try:
        kind = Kind(str(item.get("type", "")))
    except ValueError:
        raise bad("can't parse MessageEntity: Unsupported type specified") from None
    entity = Entity(kind, _object_field(item, "offset"), _object_field(item, "length"))
    match kind:
        case Kind.TEXT_LINK:
            url = good_url(str(item.get("url", "")))
            if url is None:
                raise bad(f"wrong message entity: URL '{item.get('url', '')}' is invalid")
            user_id = mentioned_user(url)
            return replace(entity, kind=Kind.TEXT_MENTION, user_id=user_id) if user_id else replace(entity, url=url)
        case Kind.TEXT_MENTION:
            user = item.get("user")
            if not isinstance(user, dict):
                raise bad("can't parse MessageEntity: Can't find field \"user\"")
            return replace(entity, user_id=_object_field(user, "id"))
        case Kind.PRE:
            language = item.get("language")
            return replace(entity, language=language if isinstance(language, str) and language else None)
        case Kind.CUSTOM_EMOJI:
            return replace(entity, custom_emoji_id=str(item.get("custom_emoji_id", "")))
        case _:
            return None if kind in FOUND else entity


def given(items: Json) -> list[Entity]:
    """The entities of a request's `entities` parameter.

    Raises:
        ApiError: it does not have the form of a list of MessageEntity objects.
    """
    if not isinstance(items, list):
        raise bad("can't parse entities JSON object: Expected an Array")
    return [entity for item in items if (entity := _given(item)) is not None]


def in_order(entities: Iterable[Entity]) -> list[Entity]:
    """Sorted as the server does, without what it drops: empty ones, and whatever lies within code."""
    kept: list[Entity] = []
    code_end = -1
    for entity in sorted(entities, key=lambda one: (one.offset, -one.length, _ORDER[one.kind])):
        if entity.length <= 0 or entity.end <= code_end:
            continue
        if entity.kind in {Kind.PRE, Kind.CODE}:
            code_end = entity.end
        kept.append(entity)
    return kept


def trimmed(text: str, entities: Iterable[Entity]) -> tuple[str, list[Entity]]:
    """Without blanks at both ends, as a message is shown; entities move and shrink with the text."""
    without = text.strip()
    lead = utf16_length(text[: len(text) - len(text.lstrip())])
    length = utf16_length(without)
    moved: list[Entity] = []
    for entity in entities:
        start = max(0, entity.offset - lead)
        end = min(length, entity.end - lead)
        moved.append(replace(entity, offset=start, length=max(0, end - start)))
    return without, in_order(moved)


_URL = r"(?:https?://|tg://|(?<![\w@./-]))(?:[\w-]+\.)+(?:com|org|net|io|dev|example|me|app|de|test)\b(?::\d+)?(?:[/?#][^\s<>\"]*)?"
_FINDERS: Sequence[tuple[Kind, re.Pattern[str]]] = (
    (Kind.EMAIL, re.compile(r"[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}")),
    (Kind.URL, re.compile(rf"https?://[^\s<>\"]+[^\s<>\".,;:!?)']|{_URL}")),
    (Kind.BOT_COMMAND, re.compile(r"(?<![\w/<>@])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/])")),
    (Kind.MENTION, re.compile(r"(?<![\w@/.])@[A-Za-z0-9_]{4,32}\b")),
    (Kind.HASHTAG, re.compile(r"(?<![\w#&/])#\w*[^\W\d]\w*")),
)


def found(text: str, beside: Sequence[Entity] = ()) -> list[Entity]:
    """What the server finds by itself in a text, where nothing in `beside` forbids it. All of it together, in order."""
    taken = [(entity.offset, entity.end) for entity in beside if entity.kind in _WHOLE]
    extra: list[Entity] = []
    for kind, pattern in _FINDERS:
        for match in pattern.finditer(text):
            start = utf16_length(text[: match.start()])
            end = start + utf16_length(match.group())
            if all(end <= left or start >= right for left, right in taken):
                taken.append((start, end))
                extra.append(Entity(kind, start, end - start))
    return in_order([*beside, *extra])


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?(.*)", re.DOTALL)
_HOST = re.compile(r"(?:[^\s/?#@]*@)?((?:[\w-]+\.)+[\w-]*\w{2,}|\d+(?:\.\d+){3})(:\d+)?(?=[/?#]|$)")


def good_url(url: str) -> str | None:
    """A link's address in full, or None if the server would not make a link of it."""
    url = url.strip()
    match = _SCHEME.fullmatch(url)
    scheme, rest = ("http", url) if match is None or "." in match.group(1) else (match.group(1).lower(), match.group(3))
    if scheme in {"tg", "ton", "tonsite", "mailto"}:
        return f"{scheme}://{rest}" if rest else None
    if scheme not in {"http", "https"}:
        return None
    host = _HOST.match(rest)
    if host is None or re.search(r"\s", rest):
        return None
    return f"{scheme}://{rest}" if len(rest) > host.end() else f"{scheme}://{rest}/"


def mentioned_user(url: str) -> int | None:
    """The user that `tg://user?id=…` means."""
    match = re.fullmatch(r"tg:(?://)?user/?\?id=(\d+)", url, re.IGNORECASE)
    return int(match.group(1)) if match else None


def to_json(entity: Entity, user: Callable[[int], Json]) -> JsonObject:
    """The MessageEntity object; `user` gives a User object by its number."""
    item: JsonObject = {"type": entity.kind.value, "offset": entity.offset, "length": entity.length}
    if entity.url is not None:
        item["url"] = entity.url
    if entity.user_id is not None:
        item["user"] = user(entity.user_id)
    if entity.language is not None:
        item["language"] = entity.language
    if entity.custom_emoji_id is not None:
        item["custom_emoji_id"] = entity.custom_emoji_id
    return item
