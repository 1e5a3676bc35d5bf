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
from gateway.sharing.shares import divided

SHARDS = account_slices("discord/3", 5)
ACCOUNTS = ("discord/2", "discord/3", "telegram/1")
NAMES = (*chat_slices(), HOUSE, account_slice("telegram/1"), account_slice("discord/2"), *SHARDS)


class World:
    """Nodes that look one after the other."""

    def __init__(self) -> None:
        self.owners: dict[str, int | None] = dict.fromkeys(NAMES)
        self.nodes: dict[int, bool] = {}
        """Those that live; whether they leave."""
        self.serves: dict[int, frozenset[str] | None] = {}
        self.numbers = 0

    def seen(self) -> Division:
        peers = tuple(
            PeerNode(node, "" if leaving else "here", serves=self.serves[node]) for node, leaving in self.nodes.items()
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

    def join(self, serves: Collection[str] | None = ACCOUNTS) -> None:
        self.numbers += 1
        self.nodes[self.numbers] = False
        self.serves[self.numbers] = None if serves is None else frozenset(serves)


@given(st.lists(st.tuples(st.sampled_from(["join", "die", "leave", "look"]), st.integers(0, 9)), max_size=40))
def test_every_slice_comes_to_a_living_node_evenly_and_stays(steps: list[tuple[str, int]]) -> None:
    world = World()
    world.join()
    for what, which in steps:
        living = sorted(world.nodes)
        node = living[which % len(living)] if living else 0
        match what:
            case "join":
                world.join()
            case "die" if living:
                del world.nodes[node]
            case "leave" if living:
                world.nodes[node] = True
            case "look" if living:
                world.look(node)
            case _:
                pass
    if not any(not leaving for leaving in world.nodes.values()):
        world.join()
    for _ in range(len(world.nodes) + 3):
        world.all_look()
    staying = {node for node, leaving in world.nodes.items() if not leaving}
    assert set(world.owners.values()) <= staying
    for names in (chat_slices(), SHARDS):
        counts = Counter(world.owners[name] for name in names)
        each = [counts[node] for node in staying]
        assert max(each) - min(each) <= 1
    assert world.all_look() == 0, "nothing moves any more"


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
    for names, most in ((chat_slices(), 32), (SHARDS, 2)):
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
    assert Counter(world.owners[name] for name in chat_slices()) == {3: 32, 4: 32}


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
