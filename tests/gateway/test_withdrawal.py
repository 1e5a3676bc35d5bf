"""Which accounts are said to be served where: the laws of `gateway.sharing.withdrawal`, with platforms that come and go at each gateway."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_core.retry import ACCOUNT_AWAY
from agent_core.store.slices.rows import Division, PeerNode, account_slice, account_slices, chat_slices
from gateway.sharing.shares import divided
from gateway.sharing.withdrawal import FAILING_SECONDS, LATER_SECONDS, Withdrawal, Withdrawals, served, withdrawn

TELEGRAM, DISCORD = "telegram/1", "discord/2"
ACCOUNTS = frozenset({TELEGRAM, DISCORD})
POLL, SHARDS = account_slice(TELEGRAM), account_slices(DISCORD, 3)
STEP = 1.0


class World:
    """Gateways that look each second, one after the other, and ask a platform at which they have no connection whether it is there."""

    def __init__(self, nodes: int) -> None:
        self.now = 0.0
        self.owners: dict[str, int | None] = dict.fromkeys((*chat_slices(), POLL, *SHARDS))
        self.living = [*range(1, nodes + 1)]
        self.told = dict.fromkeys(self.living, ACCOUNTS)
        self.known: dict[int, Withdrawals] = {node: {} for node in self.living}
        self.away: set[tuple[int, str]] = set()
        """Which platforms are not reached where."""
        self.connects = True
        """What is reached can be connected to as well."""
        self.since: dict[tuple[int, str], float] = {}
        self.moves: list[tuple[float, str]] = []

    def seen(self) -> Division:
        return Division(tuple(PeerNode(n, "here", serves=self.told[n]) for n in self.living), dict(self.owners))

    def _failing(self, node: int) -> dict[str, float]:
        for account in ACCOUNTS:
            has = any(self.owners[name] == node for name in ((POLL,) if account == TELEGRAM else SHARDS))
            if (node, account) in self.away or (has and not self.connects):
                self.since.setdefault((node, account), self.now)
            else:
                self.since.pop((node, account), None)
        return {account: self.now - at for (one, account), at in self.since.items() if one == node and at < self.now}

    def look(self, node: int) -> None:
        seen = self.seen()
        self.known[node] = after = withdrawn(
            node, ACCOUNTS, self._failing(node), seen.taking_part, self.known[node], self.now
        )
        self.told[node] = served(ACCOUNTS, after)
        moved = divided(node, self.seen(), leaving=False)
        self.moves += [(self.now, name) for name in moved if self.owners[name] in self.living]
        self.owners |= moved

    def goes_on(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            for node in [*self.living]:
                self.look(node)
            for account in ACCOUNTS:
                assert any(account in self.told[node] for node in self.living), "somebody serves it"
            self.now += STEP

    def connected(self, account: str) -> set[int | None]:
        return {self.owners[name] for name in ((POLL,) if account == TELEGRAM else SHARDS)}


SETTLED = 3 * (FAILING_SECONDS + 3 * LATER_SECONDS) + ACCOUNT_AWAY.most


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([*ACCOUNTS]), st.floats(0.0, 40.0)), max_size=5),
    st.integers(0, 3),
)
def test_connections_come_to_who_reaches_the_platform_and_then_nothing_moves(
    nodes: int, changes: list[tuple[int, str, float]], deaths: int
) -> None:
    world = World(nodes)
    world.goes_on(5)
    for node, account, seconds in changes:
        world.away ^= {(min(node, nodes), account)}
        world.goes_on(seconds)
    for node in world.living[: min(deaths, nodes - 1)]:
        world.living.remove(node)
    world.goes_on(SETTLED)
    for account in ACCOUNTS:
        reach = {node for node in world.living if (node, account) not in world.away}
        if reach:
            assert world.connected(account) <= reach
    everywhere = {node for node in world.living if not any((node, account) in world.away for account in ACCOUNTS)}
    if everywhere:
        assert {world.owners[name] for name in chat_slices()} <= everywhere
    before = len(world.moves)
    world.goes_on(100)
    assert len(world.moves) == before, "nothing moves any more"


def test_who_does_not_reach_a_platform_has_given_up_all_of_it_soon() -> None:
    world = World(2)
    world.goes_on(5)
    (first,) = world.connected(TELEGRAM)
    assert isinstance(first, int)
    world.away.add((first, TELEGRAM))
    world.goes_on(FAILING_SECONDS + LATER_SECONDS + 2)
    theirs = {world.owners[name] for name in (*chat_slices(), POLL)}
    assert theirs == {3 - first}, "what is said in its chats could not be answered from there"
    assert first in world.connected(DISCORD), "which it does reach"
    world.away.clear()
    world.goes_on(ACCOUNT_AWAY.first + 2)
    assert {world.owners[name] for name in chat_slices()} == {1, 2}
    assert world.connected(TELEGRAM) == {3 - first}, "what is one thing stays where it is"


def test_a_platform_that_nobody_reaches_moves_nothing_more_than_once() -> None:
    world = World(3)
    world.goes_on(5)
    world.away = {(node, account) for node in world.living for account in ACCOUNTS}
    world.goes_on(100)
    before = len(world.moves)
    world.goes_on(1_500)
    assert len(world.moves) == before


def test_what_is_reached_and_cannot_be_connected_to_goes_round_ever_more_seldom() -> None:
    world = World(2)
    world.goes_on(5)
    world.connects = False
    world.goes_on(2 * 3600)
    times = sorted({at for at, name in world.moves if name == POLL})
    pauses = [after - before for before, after in pairwise(times)]
    assert times, "another one tries it"
    assert pauses[-1] >= ACCOUNT_AWAY.most / 2
    assert min(pauses) >= FAILING_SECONDS


def test_who_is_left_alone_with_an_account_serves_it_at_once() -> None:
    world = World(2)
    world.goes_on(5)
    (first,) = world.connected(TELEGRAM)
    assert isinstance(first, int)
    world.away.add((first, TELEGRAM))
    world.goes_on(40)
    world.living.remove(3 - first)
    world.goes_on(2)
    assert world.connected(TELEGRAM) == {first}


def test_an_older_version_that_does_not_say_what_it_serves_is_taken_to_serve_all() -> None:
    peers = [PeerNode(1, "here", serves=ACCOUNTS), PeerNode(2, "there")]
    found = withdrawn(1, ACCOUNTS, {TELEGRAM: FAILING_SECONDS + LATER_SECONDS}, peers, {}, 100.0)
    assert served(ACCOUNTS, found) == {DISCORD}
    assert not withdrawn(1, ACCOUNTS, {TELEGRAM: 1_000.0}, peers[:1], {}, 100.0)


@given(st.integers(2, 5), st.integers(0, 6), st.booleans())
def test_of_those_that_fail_together_one_after_the_other_withdraws(nodes: int, passed: int, just: bool) -> None:
    """So that whoever reaches the platform after all still serves it when it is known that the others do not."""
    peers = [PeerNode(node, "here", serves=ACCOUNTS) for node in range(1, nodes + 1)]
    seconds = FAILING_SECONDS + passed * LATER_SECONDS - (0.5 if just else 0)
    gone = [node for node in range(1, nodes + 1) if withdrawn(node, [TELEGRAM], {TELEGRAM: seconds}, peers, {}, 9.0)]
    assert gone == [*range(1, min(nodes, passed + (0 if just else 1)) + 1)]


def test_an_account_that_is_served_again_is_tried_anew_before_it_is_withdrawn_once_more() -> None:
    peers = (PeerNode(1, "here", serves=ACCOUNTS), PeerNode(2, "there", serves=ACCOUNTS))
    before = {TELEGRAM: Withdrawal(1, 100.0, away=False)}  # since when it is served again
    for now, withdrawal in ((101.0, False), (100.0 + FAILING_SECONDS - 1, False), (100.0 + FAILING_SECONDS, True)):
        found = withdrawn(1, ACCOUNTS, {TELEGRAM: 500.0}, peers, before, now)
        assert (TELEGRAM not in served(ACCOUNTS, found)) is withdrawal
        assert found[TELEGRAM].times == 1 + withdrawal
