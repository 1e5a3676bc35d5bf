"""Who is let in, who makes place for whom, and what is counted again when somebody goes: the keeper of connections, without a socket."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.signals import ConnectionCut, Signal
from gateway.http.connections import YOUNG_SECONDS, Door, Doorkeeper
from gateway.limits.patience import HEALTH_PLACES, LEAVE_SECONDS, ConnectionStage, CutOff, DoorLimits

PROXY = "192.0.2.1"
LIMITS = DoorLimits(
    connections=4, per_peer=2, trusted=(ipaddress.ip_network(f"{PROXY}/32"),), header_seconds=5, body_seconds=50,
    stalled_seconds=10, idle_seconds=20,
)  # fmt: skip


class Socket:
    """A transport that does as it is told, and keeps what was written."""

    def __init__(self, peer: str) -> None:
        self.peer, self.said, self.over, self.waiting = peer, b"", False, 0

    def get_extra_info(self, _: str) -> tuple[str, int]:
        return (self.peer, 1)

    def write(self, data: bytes) -> None:
        self.said += data

    def is_closing(self) -> bool:
        return self.over

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def abort(self) -> None:
        self.over = True

    close = abort


class House:
    """A keeper whose clock is moved by hand."""

    def __init__(self, limits: DoorLimits = LIMITS) -> None:
        self.time, self.told = 100.0, list[str]()
        self.keeper = Doorkeeper(limits, self._tell)
        self.keeper.now = lambda: self.time
        self.doors: list[tuple[Door, Socket]] = []

    def _tell(self, signal: Signal) -> None:
        assert isinstance(signal, ConnectionCut)
        self.told.append(signal.why)

    def comes(self, peer: str, begins: bytes = b"GET / HTTP/1.1") -> tuple[Door, Socket]:
        """Where there is no place for it, it says what it asks."""
        door, socket = self.keeper.door(), Socket(peer)
        door.connection_made(cast("Any", socket))
        self.doors.append((door, socket))
        if door.inner is None:
            door.data_received(begins)
        return door, socket

    def asks(self, door: Door, *, whole: bool = True) -> Any:
        """The headers of a request are there, and all of its body or not yet."""
        request = SimpleNamespace(
            content=SimpleNamespace(is_eof=lambda: whole, set_exception=self._late), headers={}, protocol=door.inner
        )
        door.data_received(b"GET / HTTP/1.1")
        door.begins(cast("Any", request))
        return request

    def _late(self, error: Exception) -> None:
        self.told.append(type(error).__name__)

    @property
    def inside(self) -> int:
        return sum(door.inner is not None and not socket.over for door, socket in self.doors)


def code(socket: Socket) -> int:
    """Of what was said to who was turned away."""
    return int(socket.said.split()[1]) if socket.said else 0


def test_so_many_of_one_address_are_let_in_and_who_goes_gives_his_place_back() -> None:
    house = House()
    (first, _), _ = house.comes("203.0.113.1"), house.comes("203.0.113.1")
    third, told = house.comes("203.0.113.1")
    assert (third.inner, code(told)) == (None, 429)
    house.comes("203.0.113.2")
    first.connection_lost(None)
    again, _ = house.comes("203.0.113.1")
    assert again.inner is not None
    assert house.told == [CutOff.PEER.value]


def test_only_a_few_who_are_turned_away_are_kept_until_they_have_read_why() -> None:
    """Each of them takes a descriptor: who comes again and again is not to take all that there are."""
    house = House()
    for _ in range(20):
        house.comes("203.0.113.1")
    away = [socket for door, socket in house.doors if door.inner is None]
    kept = [socket for socket in away if not socket.over]
    assert (len(away), len(kept)) == (18, LIMITS.connections // 8 + 1)
    assert house.keeper.count == 2 + len(kept)
    assert [code(one) for one in kept] == [429] * len(kept)


@pytest.mark.parametrize("peer", [PROXY, "127.0.0.1", "::1", "::ffff:127.0.0.1", f"::ffff:{PROXY}"])
def test_a_proxy_of_ours_and_this_machine_have_no_bound_of_their_own(peer: str) -> None:
    house = House()
    for _ in range(LIMITS.connections):
        door, _ = house.comes(peer)
        assert door.inner is not None


def test_who_has_been_waited_for_longest_makes_place_and_nobody_who_came_just_now_or_is_answered() -> None:
    house = House()
    doors = [house.comes(f"203.0.113.{number}")[0] for number in range(LIMITS.connections)]
    house.time += YOUNG_SECONDS / 2
    assert code(house.comes("198.51.100.1")[1]) == 503, "all came just now"
    house.time += YOUNG_SECONDS
    house.asks(doors[0])
    served = house.doors[0][1]
    assert house.comes("198.51.100.2")[0].inner is not None
    assert [socket.over for _, socket in house.doors[: LIMITS.connections]] == [False, True, False, False]
    assert not served.over
    for door in doors[2:]:
        house.asks(door)
    house.time += YOUNG_SECONDS
    assert house.comes("198.51.100.3")[0].inner is not None, "of the one that has asked nothing yet"
    house.asks(house.doors[-1][0])
    house.time += 60
    assert house.comes("198.51.100.4")[0].inner is None, "all are answered"


def test_who_was_answered_is_waited_for_from_then_on() -> None:
    house = House()
    doors = [house.comes(f"203.0.113.{number}")[0] for number in range(LIMITS.connections)]
    house.asks(doors[0])
    house.time += 5
    doors[0].ends()
    house.comes("198.51.100.1")
    assert [socket.over for _, socket in house.doors] == [False, True, False, False, False]


MOVES = st.lists(st.tuples(st.sampled_from(["comes", "goes", "asks", "answered", "later"]), st.integers(0, 9)), max_size=60)  # fmt: skip


@given(MOVES)
def test_what_is_counted_is_what_is_there_whatever_happens(moves: Sequence[tuple[str, int]]) -> None:
    house = House()
    served: set[int] = set()
    for move, number in moves:
        there = [at for at, (door, socket) in enumerate(house.doors) if door.inner is not None and not socket.over]
        match move:
            case "comes":
                house.comes(f"203.0.113.{number % 3}")
            case "goes" if there:
                at = there[number % len(there)]
                door, socket = house.doors[at]
                socket.over = True
                door.connection_lost(None)
                served.discard(at)
            case "asks" if idle := [at for at in there if at not in served]:
                at = idle[number % len(idle)]
                house.asks(house.doors[at][0])
                served.add(at)
            case "answered" if served:
                at = sorted(served)[number % len(served)]
                house.doors[at][0].ends()
                served.discard(at)
            case _:
                house.time += 0.4 * number
        peers = [socket.peer for door, socket in house.doors if door.inner is not None and not socket.over]
        assert len(peers) <= LIMITS.connections
        assert all(peers.count(peer) <= LIMITS.per_peer for peer in peers)
        assert not any(house.doors[at][1].over for at in served), "who is answered makes no place"
    for door, socket in house.doors:
        if not socket.over or door.inner is None:
            socket.over = True
            door.connection_lost(None)
    assert house.keeper.count == 0
    assert house.comes("203.0.113.0")[0].inner is not None


@pytest.mark.parametrize(
    ("cut", "begins", "let_in"),
    [
        (CutOff.PEER, b"GET /healthz HTTP/1.1", True),
        (CutOff.PEER, b"HEAD /healthz?from=here HTTP/1.1", True),
        (CutOff.PEER, b"GET /readyz HTTP/1.1", True),
        (CutOff.FULL, b"GET /healthz HTTP/1.1", True),
        (CutOff.FULL, b"GET /readyz HTTP/1.1", False),
        (CutOff.FULL, b"POST /healthz HTTP/1.1", False),
        (CutOff.PEER, b"GET /healthz/x HTTP/1.1", False),
        (CutOff.PEER, b"GET /v1/models HTTP/1.1", False),
        (CutOff.PEER, b"\xff\xff /healthz", False),
        (CutOff.PEER, b"", False),
    ],
)
def test_whether_it_lives_is_told_also_where_there_is_no_place_and_what_is_full_is_not_ready(
    cut: CutOff, begins: bytes, *, let_in: bool
) -> None:
    house = House()
    ours = "203.0.113.1"
    others = (
        [ours] * LIMITS.per_peer if cut is CutOff.PEER else [f"198.51.100.{at}" for at in range(LIMITS.connections)]
    )
    for peer in others:
        house.comes(peer)
    door, socket = house.comes(ours, begins)
    assert (door.inner is not None, door.once) == (let_in, let_in)
    assert house.told == ([] if let_in else [cut.value])
    assert code(socket) == (0 if let_in else 429 if cut is CutOff.PEER else 503)


def test_so_few_are_let_in_beyond_all_bounds_and_each_gives_its_place_back() -> None:
    house = House()
    peer, asks = "203.0.113.1", b"GET /healthz HTTP/1.1"
    for _ in range(LIMITS.per_peer):
        house.comes(peer)
    beyond = [house.comes(peer, asks) for _ in range(HEALTH_PLACES + 1)]
    assert [code(socket) for _, socket in beyond] == [0] * HEALTH_PLACES + [429]
    beyond[0][0].connection_lost(None)
    turned_away = beyond[-1][0]
    turned_away.connection_lost(None)
    assert house.comes(peer, asks)[0].inner is not None
    for door, socket in house.doors:
        socket.over = True
        door.connection_lost(None)
    assert house.keeper.count == 0
    assert house.comes(peer)[0].inner is not None


def test_who_asks_beyond_all_bounds_makes_no_place_for_others() -> None:
    """Else each of them would leave one more inside than there may be."""
    house = House()
    for at in range(LIMITS.connections):
        house.asks(house.comes(f"198.51.100.{at}")[0])
    beyond, _ = house.comes("203.0.113.1", b"GET /healthz HTTP/1.1")
    house.time += YOUNG_SECONDS + 0.1
    other, told = house.comes("203.0.113.2")
    assert beyond.inner is not None
    assert (other.inner, code(told)) == (None, 503)
    assert house.inside == LIMITS.connections + 1


def test_who_says_nothing_where_there_is_no_place_is_told_so_and_goes() -> None:
    house = House(DoorLimits(connections=1, per_peer=9))
    house.comes("203.0.113.1")
    door, socket = house.keeper.door(), Socket("203.0.113.2")
    door.connection_made(cast("Any", socket))
    house.time += LEAVE_SECONDS / 2
    door.look(house.time)
    assert (code(socket), house.told) == (0, [])
    house.time += LEAVE_SECONDS
    door.look(house.time)
    assert (code(socket), socket.over, house.told) == (503, False, [CutOff.FULL.value])
    house.time += LEAVE_SECONDS + 1
    door.look(house.time)
    assert (socket.over, house.told) == (True, [CutOff.FULL.value])


@pytest.mark.parametrize("reads", [True, False])
def test_who_reads_however_slowly_is_not_cut_and_who_does_not_is(*, reads: bool) -> None:
    house = House()
    door, socket = house.comes("203.0.113.1")
    house.asks(door)
    socket.waiting = 1_000_000
    door.pause_writing()
    for _ in range(5):
        house.time += LIMITS.stalled_seconds * 0.9
        socket.waiting -= 100 * reads
        if not socket.over:
            door.look(house.time)
    assert socket.over is not reads
    assert house.told == ([] if reads else [CutOff.READER.value])


@pytest.mark.parametrize("whole", [True, False])
def test_a_body_that_comes_is_waited_for_and_one_that_is_whole_is_ours_to_answer(*, whole: bool) -> None:
    house = House()
    door, socket = house.comes("203.0.113.1")
    house.asks(door, whole=whole)
    for _ in range(3):
        house.time += LIMITS.stalled_seconds * 0.9
        door.data_received(b"x")
        door.look(house.time)
    assert house.told == []
    house.time += LIMITS.stalled_seconds + 1
    door.look(house.time)
    assert house.told == ([] if whole else [CutOff.BODY.value, "SlowBody"])
    assert door.standing.stage is ConnectionStage.SERVED
    assert not socket.over


async def test_it_looks_after_those_that_were_turned_away_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(DoorLimits(connections=1, per_peer=9))
    house.comes("203.0.113.1")
    refused = house.comes("203.0.113.2")[1]
    looked = asyncio.Event()

    async def sleep(_: float) -> None:
        if house.time > 105:
            looked.set()
            await asyncio.Event().wait()
        house.time += 3

    monkeypatch.setattr("gateway.http.connections.asyncio", SimpleNamespace(sleep=sleep))
    async with house.keeper.looking(), asyncio.timeout(10):
        await looked.wait()
    assert refused.over
    assert house.keeper.count == 2, "until it is gone"
