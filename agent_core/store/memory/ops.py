"""What is written of memory."""

from __future__ import annotations

from agent_core.records import dataclass
from agent_core.remembered import UNKNOWN_SOURCE, MemorySource
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, Op
from agent_core.store.memory.rows import MemoryRow


@dataclass(frozen=True, slots=True)
class PutMemory(Op[None]):
    scope: str
    kind: str
    name: str
    value: bytes
    at: int
    source: MemorySource = UNKNOWN_SOURCE

    def need(self, wanted: Needs) -> None:
        wanted.memory.add((self.scope, self.kind, self.name))

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.memory.add((self.scope, self.kind, self.name))
        source = self.source
        facts.put(
            t.MEMORY,
            MemoryRow(
                self.scope,
                self.kind,
                self.name,
                self.value,
                self.at,
                source.turn,
                source.author,
                source.writer,
                source.foreign,
            ),
        )

    def weight(self) -> int:
        return len(self.value)


@dataclass(frozen=True, slots=True)
class DeleteMemory(Op[bool]):
    """The answer is whether it was there."""

    scope: str
    kind: str
    name: str

    def need(self, wanted: Needs) -> None:
        wanted.memory.add((self.scope, self.kind, self.name))

    def decide(self, facts: Facts, previous: object) -> bool:
        entry = (self.scope, self.kind, self.name)
        there = entry in facts.memory
        facts.memory.discard(entry)
        facts.puts.get(t.MEMORY, {}).pop(entry, None)
        if there:
            facts.memory_gone.add(entry)
        return previous if isinstance(previous, bool) else there
