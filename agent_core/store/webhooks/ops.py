"""What is written of webhooks.

Law: what tells of something is stored in the commit of that something, once, however often it is repeated (`tell`).
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, Op
from agent_core.store.webhooks.rows import HookRow, ReceiverRow


def tell(facts: Facts, rows: Sequence[HookRow]) -> None:
    """These are to be sent. What is stored already stays as it is."""
    for row in rows:
        facts.put(t.HOOK, row)


@dataclass(frozen=True, slots=True)
class PutHooks(Op[None]):
    rows: tuple[HookRow, ...]

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        tell(facts, self.rows)

    def weight(self) -> int:
        return hooks_bytes(self.rows)


@dataclass(frozen=True, slots=True)
class SettleHooks(Op[None]):
    """What became of attempts, and how their receivers are doing now."""

    rows: tuple[HookRow, ...]
    receivers: tuple[ReceiverRow, ...] = ()

    def need(self, wanted: Needs) -> None:
        """Nothing: who sends is the only one who writes them."""

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        for row in self.rows:
            facts.hooks_settled[row.message] = row
        for receiver in self.receivers:
            facts.put(t.RECEIVER, receiver)


def hooks_bytes(rows: Sequence[HookRow]) -> int:
    """How large they are."""
    return sum(len(row.body) for row in rows)
