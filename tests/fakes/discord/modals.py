"""Forms that a person fills in (https://docs.discord.com/developers/interactions/receiving-and-responding). No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.common import JsonObject
from tests.fakes.discord.components import MAX_CUSTOM_ID, MAX_ROWS, Kind
from tests.fakes.discord.forms import Form

LABEL = 18
"""The component type of a label around a field."""


def read_modal(form: Form) -> JsonObject:
    """The form of a callback. Its fields are text inputs, in rows or under labels.

    Raises:
        ApiError: 50035.
    """
    form.text("custom_id", least=1, most=MAX_CUSTOM_ID, required=True)
    form.text("title", least=1, most=45, required=True)
    for row in form.items("components", least=1, most=MAX_ROWS, required=True):
        row.integer("id")
        match row.integer("type", required=True):
            case Kind.ROW.value:
                for field in row.items("components", least=1, most=1, required=True):
                    _read_field(field, labelled=False)
            case 18:
                row.text("label", least=1, most=45, required=True)
                row.text("description", most=100)
                field = row.object("component", required=True)
                if field is not None:
                    _read_field(field, labelled=True)
            case _:
                row.flaw("type", "FAKE_DOES_NOT_KNOW", "This stand-in for Discord knows rows and labels.")
    form.check()
    return form.values


def _read_field(form: Form, *, labelled: bool) -> None:
    form.integer("id")
    if form.integer("type", required=True) != Kind.TEXT_INPUT:
        form.flaw("type", "FAKE_DOES_NOT_KNOW", "This stand-in for Discord knows text inputs.")
        return
    form.text("custom_id", least=1, most=MAX_CUSTOM_ID, required=True)
    form.integer("style", least=1, most=2, required=True)
    form.text("label", least=1, most=45, required=not labelled)
    form.integer("min_length", least=0, most=4000)
    form.integer("max_length", least=1, most=4000)
    form.flag("required")
    form.text("value", most=4000)
    form.text("placeholder", most=100)


def fields_of(modal: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Every field of a form, with the row or label that it is in."""
    rows = modal.get("components")
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict):
            continue
        inner = row.get("components")
        field = row.get("component") if row.get("type") == LABEL else inner[0] if isinstance(inner, list) else None
        if isinstance(field, dict):
            yield row, field
