"""Dataclasses as JSON for the database, without the fields that say nothing.

A field whose value is its default is left out, and comes back as the default: most fields of most events are empty, and what
is stored is written to disk twice. So a default must mean "not there". Where it means a number that a later version may want
to change, the class is named in `WHOLE`, and all its fields are written. A field with an `alias` in its metadata is stored under that name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from itertools import compress
from operator import ne
from typing import Any

import orjson

from agent_core.failures.exits import Exit
from agent_core.records import taken
from agent_core.settings import GuardCounts, LadderCounts, TurnSettings

WHOLE: frozenset[type] = frozenset({TurnSettings, LadderCounts, GuardCounts})


def dumps(value: object) -> bytes:
    """`value`, a dataclass instance with JSON-like fields or what holds such, as JSON."""
    return orjson.dumps(value, default=_fields, option=orjson.OPT_PASSTHROUGH_DATACLASS)


@functools.cache
def plan(kind: type) -> tuple[Callable[[object], Sequence[object]], tuple[str, ...], tuple[object, ...]]:
    """What takes the fields' values; their keys; and of each the value that need not be written."""
    name = kind.__name__
    if not is_dataclass(kind):
        raise TypeError(f"{name} cannot be stored as JSON")
    described: tuple[Field[Any], ...] = fields(kind)
    return (
        taken(tuple(field.name for field in described)),
        tuple(field.metadata.get("alias", field.name) for field in described),
        tuple(MISSING if kind in WHOLE else _default(field) for field in described),
    )


def _default(field: Field[Any]) -> object:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


def _fields(value: object) -> dict[str, object]:
    if isinstance(value, Exit):
        told = facts(value)
        return {"code": value.code, "facts": told} if told else {"code": value.code}
    return facts(value)


def facts(value: object) -> dict[str, object]:
    """The fields of a dataclass instance that are written, by their keys."""
    take, keys, defaults = plan(type(value))
    values = take(value)
    return dict(compress(zip(keys, values, strict=True), map(ne, values, defaults)))
