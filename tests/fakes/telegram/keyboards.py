"""Keyboards: reading and checking `reply_markup`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.fakes.common import Json, JsonObject
from tests.fakes.telegram.entities import good_url
from tests.fakes.telegram.errors import bad

MAX_CALLBACK_DATA_BYTES = 64
MAX_BUTTONS = 100
MAX_BUTTONS_IN_A_ROW = 8


class KeyboardKind(StrEnum):
    """By which field the object is known."""

    INLINE = "inline_keyboard"
    REPLY = "keyboard"
    REMOVE = "remove_keyboard"
    FORCE_REPLY = "force_reply"


@dataclass(frozen=True, slots=True)
class Button:
    """A button as a person sees it."""

    text: str
    data: str | None = None
    """What comes back in a callback query, if it makes one."""
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Keyboard:
    """A checked `reply_markup`. Two are equal if people could not tell them apart."""

    kind: KeyboardKind
    rows: tuple[tuple[Button, ...], ...] = ()

    @property
    def buttons(self) -> Iterator[Button]:
        """All buttons, row by row."""
        return (button for row in self.rows for button in row)

    def to_json(self) -> JsonObject:
        """The object as messages carry it (inline keyboards only are carried)."""
        rows: list[Json] = []
        for row in self.rows:
            line: list[Json] = []
            for button in row:
                item: JsonObject = {"text": button.text}
                if button.data is not None:
                    item["callback_data"] = button.data
                if button.url is not None:
                    item["url"] = button.url
                line.append(item)
            rows.append(line)
        return {"inline_keyboard": rows}


_OTHER_ACTIONS = frozenset(
    {
        "web_app",
        "login_url",
        "switch_inline_query",
        "switch_inline_query_current_chat",
        "switch_inline_query_chosen_chat",
        "copy_text",
        "callback_game",
        "pay",
    }
)


def _inline_button(item: Json) -> Button:
    fault = "can't parse inline keyboard button: "
    if not isinstance(item, dict):
        raise bad(f"{fault}Object expected")
    text, data, url = item.get("text"), item.get("callback_data"), item.get("url")
    if not isinstance(text, str):
        raise bad(f'{fault}Field "text" must be of type String')
    if url is not None:
        address = good_url(url) if isinstance(url, str) else None
        if address is None:
            raise bad(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
        button = Button(text, url=address)
    elif data is not None:
        if not isinstance(data, str) or not 1 <= len(data.encode("utf-8")) <= MAX_CALLBACK_DATA_BYTES:
            raise bad("BUTTON_DATA_INVALID")
        button = Button(text, data=data)
    elif _OTHER_ACTIONS & item.keys():
        button = Button(text)
    else:
        raise bad(f"{fault}Text buttons are unallowed in the inline keyboard")
    if not text.strip():
        # The server's own words for a button without a caption.
        raise bad("BUTTON_INVALID")
    return button


def _reply_button(item: Json) -> Button:
    text = item.get("text") if isinstance(item, dict) else item
    if not isinstance(text, str):
        raise bad('can\'t parse keyboard button: KeyboardButton must be a String or an Object with a String in "text"')
    if not text.strip():
        raise bad("keyboard button text must be non-empty")
    return Button(text)


def _rows(rows: Json, kind: KeyboardKind) -> tuple[tuple[Button, ...], ...]:
    if not isinstance(rows, list):
        raise bad(f'can\'t parse reply markup: Field "{kind.value}" must be of type Array')
    found: list[tuple[Button, ...]] = []
    for row in rows:
        if not isinstance(row, list):
            raise bad(f'can\'t parse reply markup: Field "{kind.value}" must be an Array of Arrays')
        read = _inline_button if kind is KeyboardKind.INLINE else _reply_button
        line = tuple(read(item) for item in row)
        if len(line) > MAX_BUTTONS_IN_A_ROW:
            raise bad("REPLY_MARKUP_BUTTONS_TOO_MANY")
        if line:
            found.append(line)
    if sum(len(line) for line in found) > MAX_BUTTONS:
        raise bad("reply markup is too long")
    return tuple(found)


def read_keyboard(markup: Json, *, inline_only: bool = False) -> Keyboard | None:
    """The keyboard that a request asks for; None for none, and for an inline keyboard without a button.

    Raises:
        ApiError: it is not well formed, or breaks a limit.
    """
    if markup is None or markup == {}:
        return None
    if not isinstance(markup, dict):
        raise bad("object expected as reply markup")
    for kind in KeyboardKind:
        if kind.value not in markup:
            continue
        if inline_only and kind is not KeyboardKind.INLINE:
            raise bad("inline keyboard expected")
        match kind:
            case KeyboardKind.INLINE | KeyboardKind.REPLY:
                rows = _rows(markup[kind.value], kind)
                return Keyboard(kind, rows) if rows else None
            case KeyboardKind.REMOVE | KeyboardKind.FORCE_REPLY:
                return Keyboard(kind)
    raise bad("can't parse reply markup: unknown kind of keyboard")
