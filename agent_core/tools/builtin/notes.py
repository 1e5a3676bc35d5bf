"""Housekeeping tools: the memory (`remember`, `recall`, `forget`) and the to-do list (`todo`). All are keyed or pure.

What was kept under a name, and what is to be kept there, is put down before it is changed (`changes`): a call that is begun again after
a kill says what it would have said, and leaves alone what another conversation has kept there since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import orjson

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import QuotaKind
from agent_core.records import dataclass
from agent_core.tools.base import EffectClass, MemoryStore, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.files.changes import Change, ChangeVerdict, Found, decide, found_of, read_change, written
from agent_core.tools.offer import Offer

MEMORY = "memory"
LISTS = "todo"
MAX_CHARS = 4_000
MAX_SHOWN = 30
ENTRY_BYTES = 64
"""What an entry takes beside its name and its text."""


async def _kept(memory: MemoryStore, scope: str, kind: str, name: str) -> Found | None:
    entries = await memory.entries(scope, kind)
    value = next((value for known, value, _ in entries if known == name), None)
    return found_of(None if value is None else value.encode("utf-8", "replace"))


def _put_down(now: Found | None, after: str | None) -> Json:
    then = found_of(None if after is None else after.encode("utf-8", "replace"))
    return written(Change(now.state if now is not None else None, then.state if then is not None else None))


async def _begun(memory: MemoryStore, scope: str, kind: str, name: str, context: ToolContext) -> ChangeVerdict:
    """What is to be done about an entry: it may have been changed already by this very call."""
    change = read_change(context.intention)
    if not context.again or change is None:
        return ChangeVerdict.DO
    return decide(change, await _kept(memory, scope, kind, name))


def _adding(name: str, text: str | None, context: ToolContext) -> int:
    """What a change of an entry adds to the memory, bytes; None: the entry goes."""
    change = read_change(context.intention)
    before = (
        ENTRY_BYTES + len(name.encode("utf-8", "replace")) + change.before.size
        if change is not None and change.before is not None
        else 0
    )
    after = (
        ENTRY_BYTES + len(name.encode("utf-8", "replace")) + len(text.encode("utf-8", "replace"))
        if text is not None
        else 0
    )
    return after - before


def _unknown(what: str) -> ToolOutcome:
    words = (
        f"The gateway was restarted while this was at work, and {what} has been changed by another conversation since. The call may or may "
        "not have been done; nothing was done now. Look at it first."
    )
    return ToolOutcome(ToolStatus.UNKNOWN, words)


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

    async def prepare(self, arguments: Mapping[str, Json], context: ToolContext) -> Json:
        text, name = _named(arguments)
        return _put_down(await _kept(self.memory, context.memory_scope, MEMORY, name), text)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        text, name = _named(arguments)
        verdict = await _begun(self.memory, context.memory_scope, MEMORY, name, context)
        if verdict is ChangeVerdict.CONFLICT:
            return _unknown(f"what is remembered as {name!r}")
        if verdict is ChangeVerdict.DO:
            async with context.space.hold({QuotaKind.MEMORY: _adding(name, text, context)}):
                await self.memory.put(context.memory_scope, MEMORY, name, text, at_ms=context.clock.now_ms())
        return _ok(f"Remembered as {name!r}.")


def _named(arguments: Mapping[str, Json]) -> tuple[str, str]:
    """(the text, its name)"""
    text = str(arguments["text"])
    return text, str(
        arguments.get("name") or hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    )


_RECALL = ToolSpec(
    "recall",
    f"What was remembered: all of it, newest first, or what fits the query best. At most {MAX_SHOWN} entries.",
    _object([], query={"type": "string", "maxLength": 500}),
    EffectClass.PURE,
    housekeeping=True,
    deadline_seconds=15,
    foreign=True,  # who wrote an entry is not known
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

    async def prepare(self, arguments: Mapping[str, Json], context: ToolContext) -> Json:
        return _put_down(await _kept(self.memory, context.memory_scope, MEMORY, str(arguments["name"])), None)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        name = str(arguments["name"])
        verdict = await _begun(self.memory, context.memory_scope, MEMORY, name, context)
        if verdict is ChangeVerdict.CONFLICT:
            return _unknown(f"what is remembered as {name!r}")
        change = read_change(context.intention)
        was_there = change is not None and change.before is not None
        gone = verdict is ChangeVerdict.DONE and was_there
        if verdict is ChangeVerdict.DO:
            async with context.space.hold({QuotaKind.MEMORY: _adding(name, None, context)}):
                gone = await self.memory.delete(context.memory_scope, MEMORY, name)
        if gone:
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
    foreign=True,  # of a list that was written before
)


@dataclass(frozen=True, slots=True)
class Todo:
    """Keeps the session's to-do list."""

    memory: MemoryStore
    spec: ToolSpec = _TODO

    async def prepare(self, arguments: Mapping[str, Json], context: ToolContext) -> Json:
        items = arguments.get("items")
        if not isinstance(items, list):
            return None
        return _put_down(await _kept(self.memory, _list_of(context), LISTS, "list"), orjson.dumps(items).decode())

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        scope = _list_of(context)
        items = arguments.get("items")
        if isinstance(items, list):
            verdict = await _begun(self.memory, scope, LISTS, "list", context)
            if verdict is ChangeVerdict.CONFLICT:
                return _unknown("the list")
            if verdict is ChangeVerdict.DO:
                text = orjson.dumps(items).decode()
                async with context.space.hold({QuotaKind.MEMORY: _adding("list", text, context)}):
                    await self.memory.put(scope, LISTS, "list", text, at_ms=context.clock.now_ms())
            return ToolOutcome(ToolStatus.OK, rendered(items), foreign=False)  # what the model has just said itself
        stored = await self.memory.entries(scope, LISTS)
        kept: Json = orjson.loads(stored[-1][1]) if stored else []
        return _ok(rendered(kept if isinstance(kept, list) else []))


def _list_of(context: ToolContext) -> str:
    return f"{context.memory_scope}/{context.workspace.name}"


OF_MEMORY = frozenset({_REMEMBER.name, _RECALL.name, _FORGET.name, _TODO.name})
"""The tools that use what outlives a turn."""

_MARKS = {"pending": "[ ]", "doing": "[>]", "done": "[x]"}


def rendered(items: list[Json]) -> str:
    """The list as text. Pure."""
    lines = [
        f"{_MARKS.get(str(item.get('state')), '[ ]')} {item.get('text')}" if isinstance(item, dict) else f"[ ] {item}"
        for item in items
    ]
    return "\n".join(lines) or "(The list is empty.)"


OFFER = Offer(5, lambda parts: [kind(parts.memory) for kind in (Remember, Recall, Forget, Todo)])
