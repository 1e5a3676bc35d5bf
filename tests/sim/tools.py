"""Tools for the simulation: one of each class of effect, slow and faulty. They remember their runs beyond any process.

`put` is *keyed* as the file tools are: all turns add to one shelf, and each call puts down first what it found there.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_core.jsonvalue import Json
from agent_core.settings import ToolFacts
from agent_core.tools.base import EffectClass, Tool, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.files.changes import Change, ChangeVerdict, decide, found_of, read_change, state_of, written

PUT = "It is on the shelf."

EFFECTS = {
    "look": EffectClass.PURE,
    "put": EffectClass.KEYED,
    "send": EffectClass.EFFECT,
    "danger": EffectClass.EFFECT,
}
FACTS = tuple(ToolFacts(name, effect, needs_approval=name == "danger") for name, effect in EFFECTS.items())


@dataclass
class Runs:
    """What was run, in the world outside."""

    begun: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(tool, idempotency key)."""
    shelf: bytes = b""
    """What `put` has put there: the keys of its calls, a line each."""

    def twice(self) -> list[str]:
        """Keys of tools with effects that were begun more than once."""
        seen: set[str] = set()
        repeated: list[str] = []
        for tool, key in self.begun:
            if EFFECTS[tool] is EffectClass.EFFECT:
                if key in seen:
                    repeated.append(f"{tool} {key}")
                seen.add(key)
        return repeated


class SimTool:
    """Takes its time, and comes back as it is drawn."""

    def __init__(self, name: str, draw: random.Random, runs: Runs) -> None:
        self._draw = draw
        self._runs = runs
        parameters: dict[str, Json] = {"type": "object", "properties": {"n": {"type": "integer"}}}
        self.spec = ToolSpec(name, "a tool", parameters, EFFECTS[name], deadline_seconds=8.0)

    async def prepare(self, _: Mapping[str, Json], context: ToolContext) -> Json:
        if self.spec.name != "put":
            return None
        await asyncio.sleep(self._draw.choice((0.0, 0.0, 0.01)))
        return written(self._planned(context))

    def _planned(self, context: ToolContext) -> Change:
        shelf = self._runs.shelf
        return Change(state_of(shelf), state_of(shelf + f"{context.key}\n".encode()), grows=True)

    async def _put(self, context: ToolContext) -> None:
        """Put the key on the shelf, once, however often this is begun."""
        change, again = read_change(context.intention), context.again
        assert change is not None
        while True:
            await asyncio.sleep(self._draw.choice((0.0, 0.01)))
            if again and decide(change, found_of(self._runs.shelf)) is not ChangeVerdict.DO:
                return
            if (now := self._planned(context)) == change:
                self._runs.shelf += f"{context.key}\n".encode()
                return
            await context.intend(written(now))
            change, again = now, False

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        self._runs.begun.append((self.spec.name, context.key))
        draw = self._draw
        await asyncio.sleep(draw.choice((0.0, 0.0, 0.01, 0.3, 2.0)))
        kind = draw.random()
        if self.spec.name == "put" and kind > 0.18:
            await self._put(context)
            await asyncio.sleep(draw.choice((0.0, 0.01, 0.3)))
            return ToolOutcome(ToolStatus.OK, PUT)
        if kind < 0.05:
            raise ValueError("a bug of the tool")
        if kind < 0.09:
            await asyncio.sleep(1e6)
        if kind < 0.18:
            return ToolOutcome(ToolStatus.FAILED, "no such thing")
        if kind < 0.22:
            return ToolOutcome(ToolStatus.OK, "x" * 40_000)
        return ToolOutcome(ToolStatus.OK, "same as ever" if kind < 0.5 else f"result {draw.randint(0, 10**6)}")


def tools(draw: random.Random, runs: Runs) -> list[Tool]:
    return [SimTool(name, draw, runs) for name in EFFECTS]
