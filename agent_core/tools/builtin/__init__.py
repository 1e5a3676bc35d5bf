"""The tools that the gateway offers: each module of this folder brings its own (`OFFER`), and nothing else names it.

Known to be weak: the models read the tools in the order of `Offer.place`, so a new place in the middle changes what every request begins with,
and with it what providers have cached.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path

from agent_core.remembered import UNKNOWN_SOURCE, MemorySource, Remembered
from agent_core.tools.base import MemoryStore, Tool
from agent_core.tools.followup import NOBODY_FOLLOWS, FollowUps
from agent_core.tools.offer import Offer, ToolParts
from agent_core.workers.pool import Workers


def builtin_tools(
    memory: MemoryStore, spool: Path, workers: Workers, follow_ups: FollowUps = NOBODY_FOLLOWS
) -> list[Tool]:
    """All of them, in their order; `memory` keeps what `remember` and `todo` are told, `spool` the files that are to be sent; `workers` read;
    `follow_ups` tell of what ends after its turn."""
    parts = ToolParts(memory, spool, workers, follow_ups)
    offers: list[Offer] = []
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        offer: object = getattr(importlib.import_module(module.name), "OFFER", None)
        if not isinstance(offer, Offer):
            raise TypeError(f"{module.name} offers no tool: it needs an OFFER.")
        offers.append(offer)
    return [tool for offer in sorted(offers, key=lambda one: one.place) for tool in offer.make(parts)]


class _NoMemory:
    """Implements `MemoryStore` for whoever only wants to know what there is."""

    async def entries(self, scope: str, kind: str) -> list[tuple[str, str, int]]:  # noqa: ARG002
        return []

    async def put(
        self, scope: str, kind: str, name: str, value: str, *, at_ms: int, source: MemorySource = UNKNOWN_SOURCE
    ) -> None: ...

    async def remembered(self, scopes: Sequence[str], query: str = "") -> tuple[list[Remembered], int]:  # noqa: ARG002
        return [], 0

    async def delete(self, scope: str, kind: str, name: str) -> bool:  # noqa: ARG002
        return False


def own_tools() -> list[Tool]:
    """All of them, to be looked at; none of them can be run."""
    return builtin_tools(_NoMemory(), Path(), Workers())


def tool_names() -> tuple[str, ...]:
    """What they are called."""
    return tuple(tool.spec.name for tool in own_tools())
