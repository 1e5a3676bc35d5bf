"""Whose conversation is taken: nobody's is, and no dead node's, where a living one has its slice; and what cannot be had is not charged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.store.database.ownership import Who
from agent_core.store.sessions import takeups
from agent_core.store.slices.rows import ANYBODY, Right
from tests.agent_core.turns import gives

ME, DEAD, LIVES = 1, 2, 3


class Rows:
    """A connection that has one session, and keeps what is written of it."""

    def __init__(self, owner: int | None, epoch: int) -> None:
        self.owner, self.epoch = owner, epoch
        self.written: list[tuple[int, int]] = []

    def execute(self, query: Any, values: Any) -> Any:
        if isinstance(values, list):
            rows = cast("list[dict[str, int]]", values)
            self.written += [(one["new_owner"], one["new_epoch"]) for one in rows]
        return SimpleNamespace(all=lambda: [("s1", self.owner, self.epoch, "telegram/1/a/")])


@pytest.mark.parametrize("owner", [None, ME, DEAD, LIVES])
@pytest.mark.parametrize("right", [None, ANYBODY, Right(ours=True), Right(other=LIVES)])
def test_a_conversation_is_had_by_its_slice_or_else_from_whom_is_dead(
    owner: int | None, right: Right | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeups, "rights", gives({"telegram/1/a/": right} if right is not None else {}))
    monkeypatch.setattr(takeups.budgets, "holders", gives(frozenset[int]()))
    conn: Any = Rows(owner, 7)
    who = Who(ME, lambda _, nodes: frozenset(nodes) & {DEAD})
    epochs = takeups._own(conn, who, ["s1"])
    free = owner in (None, DEAD) and right in (None, ANYBODY)
    taken = owner != ME and (right == Right(ours=True) or free)
    assert conn.written == ([(ME, 8)] if taken else [])
    assert epochs == ({"s1": 8} if taken else {"s1": 7} if owner == ME else {})
