"""The settings of an ordinary turn, written down once: a turn's first row says only what is otherwise with it. Pure.

Nearly all turns of a gateway have the same settings, a kilobyte of them. So the row holds `SAME_AS`, the number of a table of `ORDINARY`, and
whatever differs from that table. What a table says never changes: rows of a journal mean what they meant. Where the ordinary comes to be
another, it gets a table of its own, with the next number.

Laws (tests/agent_core/test_ordinary.py): whatever the settings, what was shortened is filled to the same; a value is left out only if the
table names it, field by field; a row that was never shortened stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, cast

import orjson

from agent_core import storedjson
from agent_core.jsonvalue import Json
from agent_core.settings import TurnSettings

SAME_AS = "as"
_FIRST: Mapping[str, Json] = {
    "tools": [
        {"name": "read_file", "effect": "pure"},
        {"name": "list_files", "effect": "pure"},
        {"name": "search_files", "effect": "pure"},
        {"name": "write_file", "effect": "keyed"},
        {"name": "append_file", "effect": "keyed"},
        {"name": "edit_file", "effect": "keyed"},
        {"name": "delete_file", "effect": "keyed"},
        {"name": "fetch_url", "effect": "pure"},
    ],
    "client_tools": [],
    "first_content_seconds": 120,
    "stall_seconds": 120,
    "remedy_seconds": 60,
    "turn_seconds": 1800,
    "max_steps": 50,
    "retry_min_seconds": 1.0,
    "retry_max_seconds": 30.0,
    "retry_after_max_seconds": 120,
    "approval_seconds": 600,
    "can_approve": False,
    "client_output_limit": False,
    "rules": 16,
    "most_calls": 0,
    "most_tool_calls": 0,
    "restarts_a_step": 8,
    "ladder": {
        "retry": 3,
        "continue_text": 2,
        "tool_call_retry": 1,
        "tool_call_advice": 1,
        "empty_retry": 1,
        "empty_nudge": 2,
        "continue_thinking": 2,
        "promise_nudge": 1,
        "promise_question": 1,
        "continue_length": 3,
        "tool_call_length_advice": 2,
        "unknown_tool": 3,
        "unreadable_arguments": 3,
        "compact": 1,
        "leave_out": 6,
        "same_stall_rounds": 3,
    },
    "guards": {
        "repeating_failing_warn": 2,
        "repeating_failing_stop": 4,
        "failing_tool_warn": 3,
        "failing_tool_stop": 7,
        "no_progress_warn": 2,
        "no_progress_stop": 4,
        "circles_warn": 2,
        "circles_stop": 4,
    },
}
_ASKS_BY_ADDRESS: Json = {"name": "fetch_url", "effect": "pure", "reach": "address", "links": True}
ORDINARY: Mapping[int, Mapping[str, Json]] = {
    1: _FIRST,
    2: {**_FIRST, "rules": 17, "tools": [*cast("list[Json]", _FIRST["tools"])[:-1], _ASKS_BY_ADDRESS]},
}
NEWEST = max(ORDINARY)
_NAMES = tuple(field.name for field in fields(TurnSettings))
_MARK = f'"{SAME_AS}":'.encode()
_KNOWN_MOST = 64


@lru_cache(_KNOWN_MOST)
def short(settings: TurnSettings) -> bytes:
    """The same as it is written. Most turns of a gateway have the same."""
    return storedjson.dumps(shortened(settings))


def shortened(settings: TurnSettings) -> dict[str, object]:
    """What is otherwise with these settings than with ordinary ones."""
    told: dict[str, object] = {SAME_AS: NEWEST}
    for name in _NAMES:
        value = getattr(settings, name)
        if not is_ordinary(name, value):
            told[name] = value
    return told


@lru_cache(8 * _KNOWN_MOST)
def is_ordinary(name: str, value: object) -> bool:
    """Written out it is what the table says, to the last field."""
    return name in ORDINARY[NEWEST] and orjson.loads(storedjson.dumps(value)) == ORDINARY[NEWEST][name]


def filled(body: bytes) -> bytes:
    """The body of a turn's first row with all of its settings. Raises ValueError if it names a table that there is not."""
    if _MARK not in body:
        return body
    tree: Any = orjson.loads(body)
    settings: Any = cast("dict[str, Any]", tree).get("settings") if isinstance(tree, dict) else None
    if not isinstance(settings, dict) or SAME_AS not in settings:
        return body
    told = cast("dict[str, Json]", settings)
    number = told.pop(SAME_AS)
    table = ORDINARY.get(number) if isinstance(number, int) else None
    if table is None:
        raise ValueError("the settings are told by a table that this version does not have")
    return orjson.dumps({**tree, "settings": {**table, **told}})
