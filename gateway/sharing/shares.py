"""Who works on what, decided by each node for itself from what all can see. Pure.

Theory. A node takes what nobody alive has, up to its share, and gives away only what is its own: so nothing is taken from whoever works on it,
and no two nodes need to agree. The shares of chats are even within one, and so are those of the connections of an account that has several; those that
hold most have the odd ones, so that nothing moves for the sake of order. What is one thing (the only connection of an account, the house) stays where it
is until its node goes: to move it is dear, and it is small.

A node is given what it can answer: a connection, if it has the account; chats and the house, if it has every account that any node has. While an account
is added or removed node by node, those with fewer have no chats, and where each lacks one of another's, those that have most do.

Laws (tests/gateway/test_shares.py): every slice comes to be a living node's that can answer it; what nobody gives stays where it is; chats, and connections of one
account, are even within one as far as they are idle; once all is so, nothing moves any more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from agent_core.store.slices.rows import ACCOUNT, Division, PeerNode, account_of

CHATS = "chats/"


def divided(me: int, seen: Division, *, leaving: bool, busy: Collection[str] = ()) -> dict[str, int]:
    """Which slices this node takes or gives now, each with its new owner. What is `busy` is not given away."""
    if not leaving and all(one.node != me for one in seen.taking_part):
        return {}
    moved: dict[str, int] = {}
    for names, able, even in _kinds(seen.owners, [one for one in seen.taking_part if not leaving or one.node != me]):
        free = [name for name in names if seen.owners[name] not in seen.living]
        mine = [name for name in names if seen.owners[name] == me]
        idle = [name for name in mine if name not in busy]
        held = Counter(owner for name in names if (owner := seen.owners[name]) is not None and owner in able)
        if me not in able:
            moved |= _given(idle, able, held)
            continue
        share = _shares(able, held, len(names))
        moved |= dict.fromkeys(free[: max(0, share[me] - len(mine))], me)
        if even and len(mine) > share[me]:
            needy = {node for node in able if held[node] < share[node]}
            room = sum(share[node] - held[node] for node in needy)
            most = min(len(mine) - share[me], max(0, room - len(free)))
            moved |= _given(idle[:most], needy, held, share)
    return moved


def answering(peers: Sequence[PeerNode]) -> frozenset[int]:
    """Those that can answer in every chat, as far as any can."""
    known = [one.serves for one in peers if one.serves is not None]
    every = frozenset[str]().union(*known)
    able = frozenset(one.node for one in peers if one.serves is None or one.serves >= every)
    most = max(known, key=lambda serves: (len(serves), sorted(serves)), default=every)
    return able or frozenset(one.node for one in peers if one.serves == most)


def _kinds(
    owners: Mapping[str, int | None], peers: Sequence[PeerNode]
) -> Iterable[tuple[list[str], Collection[int], bool]]:
    """What is shared by itself, among whom, and whether evenly."""
    names, everywhere = sorted(owners), answering(peers)
    several = {account_of(name) for name in names if "#" in name}
    yield [name for name in names if name.startswith(CHATS)], everywhere, True
    single: defaultdict[frozenset[int], list[str]] = defaultdict(list)
    for account, connections in _by_account(names):
        if not account.startswith(ACCOUNT):
            able = everywhere
        else:
            account_name = account.removeprefix(ACCOUNT)
            able = frozenset(one.node for one in peers if one.serves is None or account_name in one.serves)
        if account in several:
            yield connections, able, True
        else:
            single[able] += connections
    for able, those in single.items():
        yield those, able, False


def _by_account(names: Iterable[str]) -> Iterable[tuple[str, list[str]]]:
    """The connections of each, and whatever else is no chat."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        if not name.startswith(CHATS):
            found[account_of(name)].append(name)
    return found.items()


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
