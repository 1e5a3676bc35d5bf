"""Which chat platforms there are: a folder of ours with a `platform.py`, and what other packages declare.

Another package adds one by an entry point of the group `outspoken.platforms` that leads to its `adapters.contract.platforms.Platform`:

    [project.entry-points."outspoken.platforms"]
    toy = "outspoken_toy.platform:PLATFORM"

Law: a package that cannot be used takes nothing else with it. It is left out, and `broken` says why.

Known to be weak: it is found out once in a process; a package that is installed later is seen at the next start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from adapters.contract.platforms import Platform
from agent_core.packages import declared
from agent_core.records import dataclass

GROUP = "outspoken.platforms"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
RESERVED = frozenset({
    "api", "web", "terminal", "key", "page", "once",
    "model", "server", "session", "tools", "budgets", "quota", "storage", "retention", "log", "people", "schedule", "guardrails",
    "recovery", "incidents", "operators", "telemetry", "audit",
})  # fmt: skip
"""Surfaces and sections of our own."""


@dataclass(frozen=True, slots=True)
class BrokenPlatform:
    """A platform that was declared and cannot be used."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class FoundPlatforms:
    """What there is."""

    platforms: tuple[Platform, ...]
    broken: tuple[BrokenPlatform, ...]


@cache
def found() -> FoundPlatforms:
    """All of it, looked for once. (Tests that install something look again: ``found.cache_clear()``.)"""
    known: dict[str, Platform] = {}
    broken: list[BrokenPlatform] = []
    for name, load in (*_ours(), *_of_others()):
        try:
            one = load()
            why = _unusable(one, known)
        except Exception as error:  # noqa: BLE001 - whatever another package does wrong, the rest goes on
            one, why = None, f"{type(error).__name__}: {error}"
        if isinstance(one, Platform) and not why:
            known[one.name] = one
        else:
            broken.append(BrokenPlatform(name, why))
    return FoundPlatforms(tuple(sorted(known.values(), key=lambda one: (one.place, one.name))), tuple(broken))


def platforms() -> tuple[Platform, ...]:
    """Every platform that can be used, in their order."""
    return found().platforms


def platform_of(name: str) -> Platform | None:
    """The platform of this name; None if there is none (any more)."""
    return next((one for one in platforms() if one.name == name), None)


def names() -> tuple[str, ...]:
    """What they are called in the configuration."""
    return tuple(one.name for one in platforms())


def titles() -> tuple[str, ...]:
    """What people call them."""
    return tuple(one.title for one in platforms())


def any_of(words: Sequence[str]) -> str:
    """One of these, in words: ``telegram, discord or slack``."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def platform_names() -> frozenset[str]:
    """The names of all that can be used."""
    return frozenset(one.name for one in found().platforms)


def _ours() -> Iterator[tuple[str, Callable[[], object]]]:
    for file in sorted(Path(__file__).parent.glob("*/platform.py")):
        name = file.parent.name
        yield name, lambda name=name: import_module(f"adapters.{name}.platform").PLATFORM


def _of_others() -> Iterator[tuple[str, Callable[[], object]]]:
    for entry in declared(GROUP):
        yield entry.name, entry.load


def _unusable(one: object, known: dict[str, Platform]) -> str:
    """Why a record cannot be used; empty if it can."""
    if not isinstance(one, Platform):
        return "it is no adapters.contract.platforms.Platform"
    if not _NAME.fullmatch(one.name) or one.name in RESERVED:
        return f"{one.name!r} cannot be the name of a platform"
    if one.name in known:
        return f"there is already a platform {one.name!r}"
    strange = [event.name for event in one.events if not event.name.startswith(f"{one.name}.")]
    if strange:
        return f"its log events have to begin with {one.name!r} and a dot: {', '.join(strange)}"
    try:
        re.compile(one.chat_id)
    except re.error as error:
        return f"chat_id is no regular expression ({error})"
    return ""
