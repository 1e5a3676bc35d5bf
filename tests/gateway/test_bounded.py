"""What a process remembers has a bound, and what goes is the oldest: it runs for months, and whoever writes to it does not choose how much it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.supervision import KNOWN_KEYS, OtherGateway
from adapters.discord.client import MOST_BUCKETS, _kept
from adapters.slack.owed import MOST_EVENTS, Owed
from agent_core.store.deliveries.rows import AdapterStateRow
from gateway.chats import arrival
from gateway.chats.arrival import Outage
from gateway.chats.enclosed import REMEMBERED, Enclosed, EnclosedFiles
from gateway.chats.supervisor import MOST_KEPT, AdapterLog
from gateway.delivery.troubles import MOST, SurfaceTroubles
from gateway.queues.pasts import EACH_BYTES, Pasts
from gateway.queues.queue import MOST_BEGUN, Begun
from tests.store.support import FakeClock

SOMEBODY, CHATS = ChatPerson("7", "Ada"), 50
Keeps = tuple[int, Callable[[int], None], Callable[[], list[int]]]
"""How much may be held; what holds one more (they are counted from 0 on); and which are held."""


def _slack() -> Keeps:
    owed = Owed(cast("Any", None), lambda _: None, lambda work: work.close())
    events = [{"type": "message", "channel": f"C{n % 7}", "ts": f"{n}.0"} for n in range(2 * MOST_EVENTS)]

    def held() -> list[int]:
        kept = (bodies for channel in owed._channels.values() for bodies, _ in channel.values())
        return sorted(cast("Iterator[int]", kept))

    return MOST_EVENTS, lambda n: owed.put(events[n], n), held


def _twins() -> Keeps:
    other = OtherGateway("Slack", 0.0)
    return KNOWN_KEYS, lambda n: other.sends(str(n)), lambda: [n for n in range(2 * KNOWN_KEYS) if other.sent(str(n))]


def _outages() -> Keeps:
    outage = Outage(cast("Any", SimpleNamespace(unstored=SimpleNamespace(say=lambda *_: True))), FakeClock())  # pyright: ignore[reportUnknownLambdaType]
    away = NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)

    def tell(n: int) -> None:
        outage.tell(ChatOrigin(ChatAddress("slack", "T1", str(n)), ChatKind.GROUP, SOMEBODY), away)

    def held() -> list[int]:
        return sorted({int(ChatAddress.of(one).chat) for one in (*outage._told, *outage._now)})

    return CHATS, tell, held


def _troubles() -> Keeps:
    troubles = SurfaceTroubles(FakeClock(), cast("Any", None))
    return (
        MOST,
        lambda n: troubles.note(str(n), cast("Any", SimpleNamespace(value="x")), "w"),
        lambda: [*map(int, troubles.known)],
    )


def _begun() -> Keeps:
    begun = Begun()
    return MOST_BEGUN, begun.add, lambda: [n for n in range(2 * MOST_BEGUN) if n in begun]


def _pasts() -> Keeps:
    pasts, most = Pasts(EACH_BYTES * 10), 10
    memory: Any = SimpleNamespace(size=0)

    def keep(n: int) -> None:
        pasts.keep(str(n), f"s{n}", 1, memory)
        pasts.keep(str(n), f"s{n}", 1, memory)  # who comes and goes is held once

    return most, keep, lambda: [n for n in range(2 * most) if pasts.whose(str(n)) is not None]


def _states() -> Keeps:
    log = AdapterLog(cast("Any", None))
    return (
        MOST_KEPT,
        lambda n: log.note(AdapterStateRow("discord/1", n, "up", "")),
        lambda: [row.at for row in log._rows],
    )


@pytest.mark.parametrize("made", [_twins, _outages, _troubles, _begun, _pasts, _states])
def test_the_oldest_goes_when_there_is_more_than_may_be_held(
    made: Callable[[], Keeps], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "KNOWN_MOST", CHATS)
    most, keep, held = made()
    for n in range(most):
        keep(n + 1)
    assert held() == [*range(1, most + 1)], "so much is held"
    for n in range(most + 1, most + 4):
        keep(n)
    assert held() == [*range(4, most + 4)]


def test_what_there_is_no_room_for_is_left_to_slack_and_nothing_that_was_kept_goes() -> None:
    most, keep, held = _slack()
    for n in range(most + 3):
        keep(n)
    assert held() == [*range(most)]


def test_limits_of_channels_that_are_in_use_are_kept() -> None:
    async def kept() -> None:
        buckets: dict[str, Any] = {}
        made = _kept(buckets)
        for n in range(MOST_BUCKETS):
            made(str(n))
        for n in range(0, MOST_BUCKETS, 2):
            buckets[str(n)].is_inactive = lambda: True
            buckets[str(n + 1)].is_inactive = lambda: False
        used = buckets["1"]
        made("new")
        assert [*buckets] == [*(str(n) for n in range(1, MOST_BUCKETS, 2)), "new"]
        assert made("1") is used

    asyncio.run(kept())


async def test_files_that_clients_bring_along_are_read_once_and_each_by_what_is_in_it() -> None:
    asked: list[str] = []

    async def read(data: bytes, name: str, mime: str, owner: object) -> Any:
        del mime, owner
        asked.append(name)
        return SimpleNamespace(about="a text", text=data.decode(), native=False, why="")

    files = EnclosedFiles(None, cast("Any", SimpleNamespace(read=read)))
    texts = [(await files._known(Enclosed("a.txt", "", data)))[0].text for data in (b"one", b"two", b"one")]
    assert (texts, len(asked)) == (["one", "two", "one"], 2)
    for n in range(REMEMBERED):
        await files._known(Enclosed(f"{n}.txt", "", b"x"))
    assert len(files._earlier) == REMEMBERED
