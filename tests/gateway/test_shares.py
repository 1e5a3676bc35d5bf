"""Who works on what: the laws of `gateway.sharing.shares`, with nodes that come, go and die in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from agent_core.store.slices.rows import (
    ACCOUNT,
    HOUSE,
    Division,
    PeerNode,
    account_of,
    account_slice,
    account_slices,
    chat_slices,
    single,
    slice_of,
)
from gateway.sharing.portion import Portion
from gateway.sharing.shares import CONNECTIONS, divided

SHARDS = account_slices("discord/3", 5)
SINGLE = (account_slice("telegram/1"), account_slice("discord/2"))
ACCOUNTS = ("discord/2", "discord/3", "telegram/1")
NAMES = (*chat_slices(), HOUSE, *SINGLE, *SHARDS)


class World:
    """Nodes that look one after the other."""

    def __init__(self) -> None:
        self.owners: dict[str, int | None] = dict.fromkeys(NAMES)
        self.nodes: dict[int, bool] = {}
        """Those that live; whether they leave."""
        self.serves: dict[int, frozenset[str] | None] = {}
        self.versions: dict[int, str] = {}
        self.numbers = 0

    def seen(self) -> Division:
        peers = tuple(
            PeerNode(node, "" if leaving else "here", self.versions[node], serves=self.serves[node])
            for node, leaving in self.nodes.items()
        )
        return Division(peers, dict(self.owners))

    def look(self, node: int, busy: frozenset[str] = frozenset()) -> int:
        before = self.seen()
        moved = divided(node, before, leaving=self.nodes[node], busy=busy)
        for name, owner in moved.items():
            held = before.owners[name]
            assert held == node or held not in before.living, "nothing is taken from who lives"
            assert owner in {one.node for one in before.taking_part}
            assert not (held == node and name in busy)
        self.owners |= moved
        return len(moved)

    def all_look(self) -> int:
        return sum(self.look(node) for node in list(self.nodes))

    @property
    def staying(self) -> set[int]:
        return {node for node, leaving in self.nodes.items() if not leaving}

    def brings(self, node: int) -> int:
        """What its connections weigh: those of each of three accounts together a third of all."""
        each = [Counter(self.owners[name] for name in names) for names in ((SINGLE[0],), (SINGLE[1],), SHARDS)]
        return sum(CONNECTIONS * counts[node] // (3 * counts.total()) for counts in each)

    def even(self, names: Collection[str], *, weighing: bool) -> bool:
        """Nobody who has any of them carries more than one more than anybody else."""
        counts = Counter(self.owners[name] for name in names)
        full = {node: counts[node] + (self.brings(node) if weighing else 0) for node in self.staying}
        return all(full[one] - other <= 1 for one in full if counts[one] for other in full.values())

    def join(self, serves: Collection[str] | None = ACCOUNTS, version: str = "1") -> None:
        self.numbers += 1
        self.nodes[self.numbers] = False
        self.versions[self.numbers] = version
        self.serves[self.numbers] = None if serves is None else frozenset(serves)


@given(st.lists(st.tuples(st.sampled_from(["join", "new", "die", "leave", "look"]), st.integers(0, 9)), max_size=40))
def test_every_slice_comes_to_a_living_node_evenly_and_stays(steps: list[tuple[str, int]]) -> None:
    """Each with what its connections weigh; among gateways of several versions, by number alone."""
    world = World()
    world.join()
    for what, which in steps:
        living = sorted(world.nodes)
        node = living[which % len(living)] if living else 0
        match what:
            case "join":
                world.join()
            case "new":
                world.join(version="2")
            case "die" if living:
                del world.nodes[node]
            case "leave" if living:
                world.nodes[node] = True
            case "look" if living:
                world.look(node)
            case _:
                pass
    if not world.staying:
        world.join()
    for _ in range(len(world.nodes) + 3):
        world.all_look()
    assert set(world.owners.values()) <= world.staying
    alike = len({world.versions[node] for node in world.staying}) == 1
    assert world.even(chat_slices(), weighing=alike)
    assert world.even(SHARDS, weighing=False)
    assert world.all_look() == 0, "nothing moves any more"


@given(st.integers(1, 20), st.data())
def test_what_is_even_once_was_moved_once(nodes: int, data: st.DataObject) -> None:
    """No slice goes to and fro: what comes to be more than a node's share is not given to it before."""
    world = World()
    for _ in range(nodes):
        world.join()
    while world.all_look():
        pass
    before = dict(world.owners)
    world.join()
    order = data.draw(st.permutations(sorted(world.nodes)))
    moves = Counter[str]()
    for _ in range(nodes + 3):
        for node in order:
            then = dict(world.owners)
            world.look(node)
            moves.update(name for name in NAMES if world.owners[name] != then[name])
    assert world.even(chat_slices(), weighing=True)
    assert world.all_look() == 0
    assert set(moves) == {name for name in NAMES if world.owners[name] != before[name]}
    assert max(moves.values(), default=1) == 1


@given(st.sets(st.sampled_from(NAMES)))
def test_what_is_busy_stays(busy: set[str]) -> None:
    world = World()
    world.join()
    world.look(1)
    assert set(world.owners.values()) == {1}
    world.join()
    world.look(1, frozenset(busy))
    assert all(world.owners[name] == 1 for name in busy)
    given_away = [name for name, owner in world.owners.items() if owner == 2]
    mine, theirs = world.brings(1), world.brings(2)
    for names, most in ((chat_slices(), 64 + mine - (64 + mine + theirs + 1) // 2), (SHARDS, 2)):
        assert len({*names} & {*given_away}) == min(most, sum(name not in busy for name in names))


SERVED = st.none() | st.sets(st.sampled_from(ACCOUNTS))
STEPS = st.lists(st.tuples(st.sampled_from(["join", "die", "leave", "look"]), st.integers(0, 9), SERVED), max_size=30)


@given(STEPS)
def test_a_node_is_given_only_what_it_can_answer(steps: list[tuple[str, int, set[str] | None]]) -> None:
    world = World()
    for what, which, serves in steps:
        living = sorted(world.nodes)
        node = living[which % len(living)] if living else 0
        match what:
            case "join":
                world.join(serves)
            case "die" if living:
                del world.nodes[node]
            case "leave" if living:
                world.nodes[node] = True
            case "look" if living:
                world.look(node)
            case _:
                pass
    for node in [node for node, leaving in world.nodes.items() if leaving]:
        world.look(node)
        del world.nodes[node]
    if not world.nodes:
        world.join()
    for _ in range(len(world.nodes) + 3):
        world.all_look()
    served = {node: world.serves[node] for node in world.nodes}
    every = {account for serves in served.values() for account in serves or ()}
    whole = {node for node, serves in served.items() if serves is None or serves >= every}
    for name, owner in world.owners.items():
        account = account_of(name).removeprefix(ACCOUNT)
        if not name.startswith(ACCOUNT):
            assert owner in (whole or world.nodes)
            assert whole or len(served[owner or 0] or ()) == max(len(serves or ()) for serves in served.values())
        elif owner in world.nodes:
            assert served[owner] is None or account in (served[owner] or ())
        else:
            assert all(serves is not None and account not in serves for serves in served.values())
    assert world.all_look() == 0, "nothing moves any more"


def test_chats_go_to_who_has_a_new_account_and_are_shared_again_when_all_have_it() -> None:
    world = World()
    for serves in (["telegram/1"], ["telegram/1"], ["telegram/1", "discord/2"]):
        world.join(serves)
        for _ in range(3):
            world.all_look()
    assert {world.owners[name] for name in chat_slices()} == {3}
    assert world.owners[account_slice("discord/2")] == 3
    assert world.owners[account_slice("telegram/1")] == 1, "what is one thing stays where it is"
    world.join(["telegram/1", "discord/2"])
    world.nodes[1] = True
    for _ in range(3):
        world.all_look()
    assert Counter(world.owners[name] for name in chat_slices()) == {3: 30, 4: 34}, "and the third has a connection"


def test_a_connection_weighs_as_much_as_some_chats_and_not_beside_an_older_version() -> None:
    world = World()
    world.owners = dict.fromkeys((*chat_slices(), HOUSE, SINGLE[0]))

    def shared() -> list[int]:
        while world.all_look():
            pass
        counts = Counter(world.owners[name] for name in chat_slices())
        return [counts[node] for node in sorted(world.staying)]

    world.join()
    assert shared() == [64]
    world.join()
    assert shared() == [28, 36]
    world.join(version="2")
    assert shared() == [21, 22, 21]
    del world.nodes[3]
    assert shared() == [28, 36]
    for each in ([16, 24, 24], [10, 18, 18, 18], [7, 15, 14, 14, 14]):
        world.join()
        assert shared() == each
    for rest in (4, 3, 1, 0):
        world.join()
        assert shared()[0] == rest, "what it stores for all is as much as the others have"


def test_a_node_that_leaves_gives_all_in_one_step() -> None:
    world = World()
    for _ in range(3):
        world.join()
        for _ in range(4):
            world.all_look()
    world.nodes[1] = True
    world.look(1)
    counts = Counter(world.owners.values())
    assert 1 not in counts
    assert abs(counts[2] - counts[3]) <= 4
    world.all_look()
    assert 1 not in world.owners.values()


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_all_conversations_of_a_chat_are_in_one_slice(account: str, chat: str, thread: str, person: str) -> None:
    def plain(text: str) -> str:
        return text.replace("/", "%2F")

    base = f"telegram/{plain(account)}/{plain(chat)}"
    assert slice_of(f"{base}/{plain(thread)}/{plain(person)}") == slice_of(f"{base}//") == slice_of(base)
    assert slice_of(base) in chat_slices()


def test_single_requests_are_in_no_chat() -> None:
    assert single("api/once/abc//")
    assert not single("api/key/abc//")


@given(st.sets(st.sampled_from(chat_slices()), max_size=3), st.integers(0, 99))
def test_a_conversation_is_run_by_who_has_its_slice_and_by_nobody_else(held: set[str], number: int) -> None:
    key = f"telegram/1/{number}//"
    one, other = Portion(whole=False), Portion(whole=False)
    one.change(held)
    other.change(set(chat_slices()) - held)
    assert one.mine(key) is (slice_of(key) in held)
    assert other.mine(key) is not one.mine(key)
    assert (one.slices, Portion().slices) == (held, None)
    assert Portion().mine(key)
    assert [one.has(name) for name in sorted(held)] == [True] * len(held)
