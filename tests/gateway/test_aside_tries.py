"""A conversation that cannot be read, and not be set aside either, is tried again after pauses, and keeps no other one waiting."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from adapters.contract.chat import ChatOrigin
from agent_core.retry import NOT_SET_ASIDE
from agent_core.store.store import Damaged, StorageUnavailable
from agent_core.store.turns.rows import OpenTurn
from gateway.queues.queues import Queues
from gateway.setaside.setaside import PutAside, outlet_of
from tests.store.support import IDS, FakeClock, opened

ERROR = Damaged("damaged")


async def test_it_is_tried_again_after_growing_pauses_and_others_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, tried, away = FakeClock(), list[str](), [True]
    none = cast("Any", None)
    damage = SimpleNamespace(everybodys=False, times=0)
    aside = PutAside(Queues(), none, none, cast("Any", damage), None, none, clock, IDS)

    async def put(session: str, _: Exception) -> bool:
        tried.append(session)
        if away[0]:
            raise StorageUnavailable("It is away.")
        return True

    monkeypatch.setattr(aside, "_put", put)
    with capture_logs():
        for number in (1, 2, 3):
            assert not await aside.put("s", ERROR)
            pause = round(NOT_SET_ASIDE.seconds(number) * 1000)
            for part in (0, pause - 1):
                clock.now += part
                assert not await aside.put("s", ERROR)
            assert tried.count("s") == number, "not before its pause is over"
            assert not await aside.put(f"another {number}", ERROR)
            assert tried[-1] == f"another {number}"
            clock.now += 1
        assert set(aside.stuck) == {"s", "another 1", "another 2", "another 3"}
        assert aside.recent() == len(aside.stuck), "whoever looks is told of those, too"
        assert damage.times == len(tried)
        away[0] = False
        assert await aside.put("s", ERROR)
    assert "s" not in aside.stuck


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("telegram/1/7//", "telegram/1/7/"), ("telegram/1/-7/42/", "telegram/1/-7/42"), ("slack/T1/C1/17.1/U7", "slack/T1/C1/17.1"),
        ("chat", None),
    ],
)  # fmt: skip
async def test_the_end_of_a_turn_whose_message_cannot_be_read_is_shown_in_the_thread_of_its_conversation(
    key: str, where: str | None, sqlite: str
) -> None:
    shown = list[str]()

    def outlet(chat: ChatOrigin, *_: object) -> None:
        shown.append(chat.address.text())

    chats = SimpleNamespace(outlet=outlet)
    async with opened(sqlite) as store:
        await store.sessions.make("s_1", key, "{}")
        await outlet_of(cast("Any", chats), store, OpenTurn("t_1", "s_1", 1), ())
    assert shown == ([where] if where is not None else [])
