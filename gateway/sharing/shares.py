"""Who works on what, decided by each node for itself from what all can see. Pure.

Theory. A node takes what nobody alive has, up to its share, and gives away only what is its own: so nothing is taken from whoever works on it,
and no two nodes need to agree. The shares of chats are even within one, and so are those of the connections of an account that has several; those that
hold most have the odd ones, so that nothing moves for the sake of order. What is one thing (the only connection of an account, the house) stays where it
is until its node goes: to move it is dear, and it is small.

Laws (tests/gateway/test_shares.py): every slice comes to be a living node's; what nobody gives stays where it is; chats, and connections of one account,
are even within one as far as they are idle; once all is so, nothing moves any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from agent_core.store.slices.rows import Division, account_of

CHATS = "chats/"


def divided(me: int, seen: Division, *, leaving: bool, busy: Collection[str] = ()) -> dict[str, int]:
    """Which slices this node takes or gives now, each with its new owner. What is `busy` is not given away."""
    nodes = seen.taking_part - {me} if leaving else seen.taking_part
    if not nodes or (me not in nodes and not leaving):
        return {}
    moved: dict[str, int] = {}
    for names, even in _kinds(seen.owners):
        free = [name for name in names if seen.owners[name] not in seen.living]
        mine = [name for name in names if seen.owners[name] == me]
        idle = [name for name in mine if name not in busy]
        held = Counter(owner for name in names if (owner := seen.owners[name]) is not None and owner in nodes)
        if leaving:
            moved |= _given(idle, nodes, held)
            continue
        share = _shares(nodes, held, len(names))
        moved |= dict.fromkeys(free[: max(0, share[me] - len(mine))], me)
        if even and len(mine) > share[me]:
            needy = {node for node in nodes if held[node] < share[node]}
            room = sum(share[node] - held[node] for node in needy)
            most = min(len(mine) - share[me], max(0, room - len(free)))
            moved |= _given(idle[:most], needy, held, share)
    return moved


def _kinds(owners: Mapping[str, int | None]) -> Iterable[tuple[list[str], bool]]:
    """What is shared by itself, and whether evenly."""
    names = sorted(owners)
    several = {account_of(name) for name in names if "#" in name}
    yield [name for name in names if name.startswith(CHATS)], True
    for account in sorted(several):
        yield [name for name in names if account_of(name) == account], True
    yield [name for name in names if not name.startswith(CHATS) and account_of(name) not in several], False


def _shares(nodes: Collection[int], held: Mapping[int, int], count: int) -> dict[int, int]:
    """How many each node should have."""
    even, odd = divmod(count, len(nodes))
    order = sorted(nodes, key=lambda node: (-held.get(node, 0), node))
    return {node: even + (place < odd) for place, node in enumerate(order)}


def _given(
    names: Iterable[str], nodes: Collection[int], held: Mapping[int, int], share: Mapping[int, int] | None = None
) -> dict[str, int]:
    """Each goes to whoever has least by then, and no more than its share, if there is one."""
    have, moved = Counter({node: held.get(node, 0) for node in nodes}), dict[str, int]()
    for name in names:
        open_ = [node for node in nodes if share is None or have[node] < share[node]]
        if not open_:
            break
        to = min(open_, key=lambda node: (have[node], node))
        have[to] += 1
        moved[name] = to
    return moved
