"""How nodes became others: `patch(before, now)` is what has to be sent for it. Pure.

A patch is a list: how many children stay; what becomes of the one behind them (null: nothing, it is not kept; a text: so much is added to its own; a
patch: of its children); and the children that follow. All others are gone. As text grows at its end, a patch of an answer that grows goes down its right
edge, and is short however long the answer is.

Law (tests/adapters/test_written.py): a page that has `before` and is given the patch has `now`.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.jsonvalue import Json

HEAD = 2
"""A node's name and facts; its children come behind."""


def patch(before: Sequence[Json], now: Sequence[Json]) -> list[Json]:
    """What makes `now` of `before`."""
    keep, most = 0, min(len(before), len(now))
    while keep < most and (before[keep] is now[keep] or before[keep] == now[keep]):
        keep += 1
    inner = _inner(before[keep], now[keep]) if keep < most else None
    return [keep, inner, *now[keep + (inner is not None) :]]


def _inner(before: Json, now: Json) -> Json:
    if isinstance(before, str) and isinstance(now, str):
        return now[len(before) :] if before and now.startswith(before) else None
    if isinstance(before, list) and isinstance(now, list) and before[:HEAD] == now[:HEAD]:
        return patch(before[HEAD:], now[HEAD:])
    return None


def patched(nodes: Sequence[Json], change: Sequence[Json]) -> list[Json]:
    """What a page makes of it."""
    keep, inner, *more = change
    assert isinstance(keep, int)
    if inner is None:
        return [*nodes[:keep], *more]
    old = nodes[keep]
    if isinstance(inner, str):
        assert isinstance(old, str)
        return [*nodes[:keep], old + inner, *more]
    assert isinstance(old, list)
    assert isinstance(inner, list)
    return [*nodes[:keep], [*old[:HEAD], *patched(old[HEAD:], inner)], *more]
