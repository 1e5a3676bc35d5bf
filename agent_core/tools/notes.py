"""Housekeeping tools: the memory (`remember`, `recall`, `forget`) and the to-do list (`todo`). All are keyed or pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from agent_core.tools.base import EffectClass, Json, MemoryStore, ToolContext, ToolOutcome, ToolSpec, ToolStatus

MEMORY = "memory"
LISTS = "todo"
MAX_CHARS = 4_000
MAX_SHOWN = 30


def _ok(text: str) -> ToolOutcome:
    return ToolOutcome(ToolStatus.OK, text)


def _failed(text: str) -> ToolOutcome:
    return ToolOutcome(ToolStatus.FAILED, text)


def _object(required: list[Json], **properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


_REMEMBER = ToolSpec(
    "remember",
    "Keep a fact for later, also for later conversations. The same name replaces what was kept under it.",
    _object(
        ["text"],
        text={"type": "string", "minLength": 1, "maxLength": MAX_CHARS},
        name={"type": "string", "minLength": 1, "maxLength": 100, "description": "A short name, if it has one"},
    ),
    EffectClass.KEYED,
    housekeeping=True,
    deadline_seconds=15,
)


@dataclass(frozen=True, slots=True)
class Remember:
    """Keeps one thing for later conversations."""

    memory: MemoryStore
    spec: ToolSpec = _REMEMBER

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        text = str(arguments["text"])
        name = str(arguments.get("name") or hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest())
        await self.memory.put(context.memory_scope, MEMORY, name, text, at_ms=context.clock.now_ms())
        return _ok(f"Remembered as {name!r}.")


_RECALL = ToolSpec(
    "recall",
    f"What was remembered: all of it, newest first, or what fits the query best. At most {MAX_SHOWN} entries.",
    _object([], query={"type": "string", "maxLength": 500}),
    EffectClass.PURE,
    housekeeping=True,
    deadline_seconds=15,
)


@dataclass(frozen=True, slots=True)
class Recall:
    """Gives back what was kept."""

    memory: MemoryStore
    spec: ToolSpec = _RECALL

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        entries = await self.memory.entries(context.memory_scope, MEMORY)
        chosen = ranked(entries, str(arguments.get("query") or ""))
        if not chosen:
            return _ok("Nothing is remembered." if not entries else "Nothing that is remembered fits.")
        lines = [f"- {name}: {value}" for name, value, _ in chosen[:MAX_SHOWN]]
        if len(chosen) > MAX_SHOWN:
            lines.append(f"(and {len(chosen) - MAX_SHOWN} more; ask with a query)")
        return _ok("\n".join(lines))


def ranked(entries: list[tuple[str, str, int]], query: str) -> list[tuple[str, str, int]]:
    """Entries by how many words of the query they hold, newest first among equals; all of them for an empty query. Pure."""
    words = {word for word in query.casefold().split() if len(word) > 1}
    newest = sorted(entries, key=lambda entry: -entry[2])
    if not words:
        return newest
    scored = [
        (sum(word in f"{name} {value}".casefold() for word in words), entry)
        for entry in newest
        for name, value, _ in [entry]
    ]
    return [entry for score, entry in sorted(scored, key=lambda pair: -pair[0]) if score]


_FORGET = ToolSpec(
    "forget",
    "Remove what was remembered under a name.",
    _object(["name"], name={"type": "string", "minLength": 1, "maxLength": 100}),
    EffectClass.KEYED,
    housekeeping=True,
    deadline_seconds=15,
)


@dataclass(frozen=True, slots=True)
class Forget:
    """Removes one kept thing."""

    memory: MemoryStore
    spec: ToolSpec = _FORGET

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        name = str(arguments["name"])
        if await self.memory.delete(context.memory_scope, MEMORY, name):
            return _ok(f"Forgot {name!r}.")
        return _failed(f"Nothing is remembered under {name!r}.")


_TODO = ToolSpec(
    "todo",
    "Write the to-do list: the whole list each time, in order. Without items it only shows the list.",
    _object(
        [],
        items={
            "type": "array",
            "maxItems": 100,
            "items": {
                "anyOf": [
                    {"type": "string", "minLength": 1, "maxLength": 500},
                    _object(
                        ["text"],
                        text={"type": "string", "minLength": 1, "maxLength": 500},
                        state={"type": "string", "enum": ["pending", "doing", "done"]},
                    ),
                ]
            },
        },
    ),
    EffectClass.KEYED,
    housekeeping=True,
    deadline_seconds=15,
)


@dataclass(frozen=True, slots=True)
class Todo:
    """Keeps the session's to-do list."""

    memory: MemoryStore
    spec: ToolSpec = _TODO

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        scope = f"{context.memory_scope}/{context.workspace.name}"
        items = arguments.get("items")
        if isinstance(items, list):
            await self.memory.put(scope, LISTS, "list", orjson.dumps(items).decode(), at_ms=context.clock.now_ms())
        else:
            stored = await self.memory.entries(scope, LISTS)
            kept: Json = orjson.loads(stored[-1][1]) if stored else []
            items = kept if isinstance(kept, list) else []
        return _ok(rendered(items))


_MARKS = {"pending": "[ ]", "doing": "[>]", "done": "[x]"}


def rendered(items: list[Json]) -> str:
    """The list as text. Pure."""
    lines = [
        f"{_MARKS.get(str(item.get('state')), '[ ]')} {item.get('text')}" if isinstance(item, dict) else f"[ ] {item}"
        for item in items
    ]
    return "\n".join(lines) or "(The list is empty.)"
