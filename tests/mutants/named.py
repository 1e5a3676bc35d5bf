"""Mistakes that somebody else has planted, and that the tests of their time let through. Each has its test now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.mutants.making import Mutant


@dataclass(frozen=True)
class Named:
    """A change of some lines."""

    what: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]


NAMED = (
    Named(
        "a lease is not asked before a send",
        "gateway/delivery/sender.py",
        "        if not self._shared.records.may_send():\n            ledger.not_begun(before)\n            return\n",
        "",
        ("tests/mutants/test_outbox.py",),
    ),
    Named(
        "a lease is not asked before the next step of a chat",
        "gateway/delivery/surface.py",
        "may_send = self._shared.records.may_send()",
        "may_send = True",
        ("tests/mutants/test_outbox.py",),
    ),
    Named(
        "a notice is not stored with the close",
        "agent_core/store/turns/ops.py",
        "        deliver(facts, self.session, self.epoch, self.deliveries)\n",
        "",
        ("tests/store/test_transactions.py",),
    ),
    Named(
        "what a chat shows is asked for after the close",
        "agent_core/driver/closing.py",
        "            parts = await _parts(outlet, end.shown)\n            whose",
        "            parts = await _parts(None, end.shown)\n            whose",
        ("tests/mutants/test_outbox.py",),
    ),
    Named(
        "a platform's offset is confirmed early",
        "adapters/telegram/polling.py",
        "            if not await self._take(updates):\n                asking",
        "            if not await self._take(updates) and not updates:\n                asking",
        ("tests/mutants/test_offset.py",),
    ),
    Named(
        "a steered message is forgotten",
        "agent_core/driver/closing.py",
        "heard=heard_in(turn) if turn is not None else ()",
        "heard=()",
        ("tests/mutants/test_outbox.py",),
    ),
    Named(
        "a deadline starts anew at a takeover",
        "agent_core/machine/taking.py",
        "    left, turn.left = turn.left, False\n",
        "    left, turn.left = turn.left, False\n    turn.opened = replace(turn.opened, at=event.at) if turn.opened else None\n",
        ("tests/agent_core/test_turn.py", "tests/mutants/test_deadline.py"),
    ),
)


def named(one: Named, root: Path) -> Mutant:
    """The whole module with it."""
    source = (root / one.path).read_text("utf-8")
    assert one.before in source, f"{one.what}: the source has changed; plant it anew"
    line = source[: source.index(one.before)].count("\n") + 1
    return Mutant(
        one.path,
        line,
        one.what,
        one.before.strip()[:60],
        one.after.strip()[:60],
        lambda: source.replace(one.before, one.after, 1),
    )
