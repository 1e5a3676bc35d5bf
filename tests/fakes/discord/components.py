"""Buttons and selects under a message (https://docs.discord.com/developers/components/reference). No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.forms import Form

MAX_ROWS = 5
MAX_BUTTONS = 5
MAX_OPTIONS = 25
MAX_CUSTOM_ID = 100


class Kind(IntEnum):
    """Component types."""

    ROW = 1
    BUTTON = 2
    STRING_SELECT = 3
    TEXT_INPUT = 4
    USER_SELECT = 5
    ROLE_SELECT = 6
    MENTIONABLE_SELECT = 7
    CHANNEL_SELECT = 8


SELECTS = frozenset(
    {Kind.STRING_SELECT, Kind.USER_SELECT, Kind.ROLE_SELECT, Kind.MENTIONABLE_SELECT, Kind.CHANNEL_SELECT}
)
LINK = 5
"""The style of a button that opens an address and tells the bot nothing."""


@dataclass(frozen=True, slots=True)
class Button:
    """A button."""

    label: str
    custom_id: str | None
    url: str | None
    style: int
    disabled: bool


@dataclass(frozen=True, slots=True)
class Select:
    """A menu to choose from."""

    kind: Kind
    custom_id: str
    placeholder: str
    options: tuple[tuple[str, str], ...]
    """Labels and values, of a string select."""
    least: int
    most: int
    disabled: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A row of buttons, or a menu."""

    items: tuple[Button | Select, ...]
    source: JsonObject
    """As it was sent."""


def read_rows(form: Form, name: str = "components") -> list[Row]:
    """The rows of a message. What is wrong is noted in the form."""
    rows: list[Row] = []
    seen: set[str] = set()
    items = form.items(name, most=MAX_ROWS)
    for item in items:
        kind = item.integer("type", required=True)
        item.integer("id")
        if kind != Kind.ROW:
            item.flaw("type", "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (1,).')
            continue
        inner = [_read_item(one, seen) for one in item.items("components", least=1, most=MAX_BUTTONS, required=True)]
        found = tuple(one for one in inner if one is not None)
        if len(found) > 1 and any(isinstance(one, Select) for one in found):
            item.flaw(
                "components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width"
            )
        rows.append(Row(found, item.values))
    return rows


def _read_item(form: Form, seen: set[str]) -> Button | Select | None:
    kind = form.integer("type", required=True)
    form.integer("id")
    if kind == Kind.BUTTON:
        return _read_button(form, seen)
    if kind in SELECTS:
        return _read_select(form, Kind(kind), seen)
    form.flaw("type", "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (2, 3, 5, 6, 7, 8).')
    return None


def _read_custom_id(form: Form, seen: set[str], *, required: bool) -> str | None:
    value = form.text("custom_id", least=1, most=MAX_CUSTOM_ID, required=required)
    if value is not None:
        if value in seen:
            form.flaw("custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
        seen.add(value)
    return value


def _read_button(form: Form, seen: set[str]) -> Button:
    style = form.integer("style", least=1, most=LINK, required=True) or 1
    label = form.text("label", most=80) or ""
    emoji = form.object("emoji")
    disabled = form.flag("disabled")
    url = form.text("url", most=512, required=style == LINK)
    custom_id = _read_custom_id(form, seen, required=style != LINK)
    if not label and emoji is None:
        form.flaw("label", "BUTTON_COMPONENT_INVALID_FIELDS", "A button must have a label or emoji")
    if (url is None) == (custom_id is None) and not form.flawed:
        form.flaw("custom_id", "BUTTON_COMPONENT_INVALID_FIELDS", "A custom id and url cannot both be specified")
    return Button(label, custom_id, url, style, disabled)


def _read_select(form: Form, kind: Kind, seen: set[str]) -> Select:
    options: list[tuple[str, str]] = []
    if kind is Kind.STRING_SELECT:
        for option in form.items("options", least=1, most=MAX_OPTIONS, required=True):
            label = option.text("label", least=1, most=100, required=True) or ""
            value = option.text("value", least=1, most=100, required=True) or ""
            option.text("description", most=100)
            option.object("emoji")
            option.flag("default")
            if value in {known for _, known in options}:
                option.flaw(
                    "value", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used"
                )
            options.append((label, value))
    else:
        form.items("default_values")
        form.numbers("channel_types")
    form.flag("required")
    least, most = form.integer("min_values", least=0, most=25), form.integer("max_values", least=1, most=25)
    return Select(
        kind,
        _read_custom_id(form, seen, required=True) or "",
        form.text("placeholder", most=150) or "",
        tuple(options),
        1 if least is None else least,
        1 if most is None else most,
        form.flag("disabled"),
    )


def buttons(rows: Sequence[Row]) -> list[Button]:
    """All buttons."""
    return [item for row in rows for item in row.items if isinstance(item, Button)]


def selects(rows: Sequence[Row]) -> list[Select]:
    """All menus."""
    return [item for row in rows for item in row.items if isinstance(item, Select)]


def rows_json(rows: Sequence[Row]) -> list[Json]:
    """The rows as the server tells them: every component has a number."""
    number = 0
    told: list[Json] = []
    for row in rows:
        number += 1
        body: JsonObject = {**row.source, "id": number}
        inner: list[Json] = []
        items = row.source.get("components")
        for item in items if isinstance(items, list) else []:
            number += 1
            inner.append({**item, "id": number} if isinstance(item, dict) else item)
        body["components"] = inner
        told.append(body)
    return told
