"""Who works on what, decided by each node for itself from what all can see. Pure.

Theory. A node takes what nobody alive has, up to its share, and gives away only what is its own: so nothing is taken from whoever works on it,
and no two nodes need to agree. The shares of chats are even within one, and so are those of the connections of an account that has several; those that
hold most have the odd ones, so that nothing moves for the sake of order. What is one thing (the only connection of an account, the house) stays where it
is until its node goes: to move it is dear, and it is small.

Whoever has a connection stores what comes by it for all, which is a part of the work of a turn. So it counts as some slices, and its node has fewer
chats by that. It counts for nothing while gateways of different versions serve: an older one may weigh otherwise, and the two would give the same slices
to and fro.

A node is given what it can answer: a connection, if it has the account; chats and the house, if it has every account that any node has. While an account
is added or removed node by node, those with fewer have no chats, and where each lacks one of another's, those that have most do.

Laws (tests/gateway/test_shares.py): every slice comes to be a living node's that can answer it; what nobody gives stays where it is; chats with what connections
weigh, and connections of one account, are even within one as far as they are idle and there are enough of them; once all is so, nothing moves any more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from agent_core.records import changed
from agent_core.store.slices.rows import ACCOUNT, Division, PeerNode, account_of

CHATS = "chats/"
CONNECTIONS = 8
"""As many slices as the connections of all accounts together weigh: to store a message for another gateway takes a sixth of the processor time of its turn
(docs/scale.md)."""


def divided(me: int, seen: Division, *, leaving: bool, busy: Collection[str] = ()) -> dict[str, int]:
    """Which slices this node takes or gives now, each with its new owner. What is `busy` is not given away."""
    if not leaving and all(one.node != me for one in seen.taking_part):
        return {}
    moved: dict[str, int] = {}
    peers = [one for one in seen.taking_part if not leaving or one.node != me]
    for names, able, even in _kinds(seen.owners, peers):
        beside = (
            _beside(changed(seen, owners={**seen.owners, **moved}), peers)
            if names[0].startswith(CHATS)
            else Counter[int]()
        )
        free = [name for name in names if seen.owners[name] not in seen.living]
        mine = [name for name in names if seen.owners[name] == me]
        idle = [name for name in mine if name not in busy]
        held = Counter({node: beside[node] for node in able})
        held.update(owner for name in names if (owner := seen.owners[name]) is not None and owner in able)
        if me not in able:
            moved |= _given(idle, able, held)
            continue
        share = _shares(able, held, len(names), beside)
        moved |= dict.fromkeys(free[: max(0, share[me] - held[me])], me)
        if even and held[me] > share[me]:
            needy = {node for node in able if held[node] < share[node]}
            room = sum(share[node] - held[node] for node in needy)
            most = min(held[me] - share[me], max(0, room - len(free)))
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
    """What is shared by itself, among whom, and whether evenly. Chats are the last: they are shared by what is had beside them."""
    names, everywhere = sorted(owners), answering(peers)
    several = {account_of(name) for name in names if "#" in name}
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
    if chats := [name for name in names if name.startswith(CHATS)]:
        yield chats, everywhere, True


def _by_account(names: Iterable[str]) -> Iterable[tuple[str, list[str]]]:
    """The connections of each, and whatever else is no chat."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        if not name.startswith(CHATS):
            found[account_of(name)].append(name)
    return found.items()


def _beside(seen: Division, peers: Sequence[PeerNode]) -> Counter[int]:
    """As how many slices the connections of each node count. An account that nobody alive has counts for nothing: it may be gone for good."""
    if len({one.version for one in peers}) != 1:
        return Counter()
    accounts: list[tuple[Counter[int], int]] = []
    for account, names in _by_account(seen.owners):
        owners = Counter(owner for name in names if (owner := seen.owners[name]) is not None and owner in seen.living)
        if owners and account.startswith(ACCOUNT):
            accounts.append((owners, len(names)))
    found = Counter[int]()
    for owners, of in accounts:
        found.update({node: CONNECTIONS * count // (len(accounts) * of) for node, count in owners.items()})
    return found


def _shares(nodes: Collection[int], held: Mapping[int, int], count: int, beside: Counter[int]) -> dict[int, int]:
    """How much each node should have, with what it has `beside` the `count` that are shared: as much as the others, unless that is more by itself."""
    below = sorted(nodes, key=lambda node: (beside[node], node))
    while True:
        even, odd = divmod(count + sum(beside[node] for node in below), len(below))
        if beside[below[-1]] <= even:
            break
        below.pop()
    order = sorted(below, key=lambda node: (-held[node], node))
    full = {node: beside[node] for node in nodes}
    return full | {node: even + (place < odd) for place, node in enumerate(order)}


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
