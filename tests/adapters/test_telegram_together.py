"""Updates of one poll: what is of one chat, or of one person, is taken in its order, the rest at once; what cannot be stored holds up what is behind it there,
and nothing else."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.inbound import parties
from adapters.telegram.platform import Telegram
from agent_core.ports import SystemClock


def update(number: int, chat: int, person: int) -> dict[str, Any]:
    said = {
        "message_id": number,
        "chat": {"id": chat, "type": "group"},
        "from": {"id": person, "first_name": "P"},
        "text": "x",
    }
    return {"update_id": number, "message": said}


def adapter() -> TelegramAdapter:
    return TelegramAdapter(
        Telegram(token=SecretStr("7:x")), cast("Any", SimpleNamespace(ours=None, several=False)), SystemClock()
    )


ADAPTER = adapter()


def patched(monkeypatch: pytest.MonkeyPatch, bad: set[int], chance: random.Random) -> tuple[list[int], list[int]]:
    """What is stored, in its order; and how many are under way at each beginning."""
    stored, under_way, busy = list[int](), list[int](), set[int]()

    async def take(_: object, one: dict[str, Any]) -> None:
        number = one["update_id"]
        busy.add(number)
        under_way.append(len(busy))
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        busy.discard(number)
        if number in bad:
            raise NotAccepted("not now", NotAcceptedCode.STORAGE_AWAY)
        stored.append(number)

    monkeypatch.setattr(TelegramAdapter, "_take", take)

    def tell_nobody(*_: object) -> None:
        pass

    monkeypatch.setattr(TelegramAdapter, "_waiting", tell_nobody)
    monkeypatch.setattr("adapters.telegram.adapter.AGAIN_SECONDS", 0.0)
    return stored, under_way


CAME = st.lists(st.none() | st.tuples(st.integers(1, 4), st.integers(5, 7)), max_size=14)
"""The chat and the person of each update; None: it says neither."""


@given(CAME, st.sets(st.integers(0, 13)), st.integers(0, 1_000))
def test_each_chat_and_each_person_has_its_order_and_nothing_is_confirmed_that_is_not_stored(
    came: list[tuple[int, int] | None], bad: set[int], seed: int
) -> None:
    updates = [{"update_id": n} if whose is None else update(n, *whose) for n, whose in enumerate(came)]
    with pytest.MonkeyPatch.context() as patch:
        stored, _ = patched(patch, bad, random.Random(seed))
        one = ADAPTER
        one._taken.clear()

        async def both() -> tuple[bool, bool]:
            first = await one._all_taken(updates)
            before = list(stored)
            bad.clear()
            again = first or await one._all_taken(updates)
            assert not set(stored[len(before) :]) & set(before), "what is in a table is not brought there again"
            return first, again

        failed = bool(bad & set(range(len(came))))
        assert asyncio.run(both()) == (not failed, True)
    assert sorted(stored) == list(range(len(came)))
    order = defaultdict[str, list[int]](list)
    for number in stored:
        for whose in parties(updates[number]) or {""}:
            order[whose].append(number)
    assert all(numbers == sorted(numbers) for numbers in order.values())


def test_others_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    _, under_way = patched(monkeypatch, set(), random.Random(1))
    asyncio.run(adapter()._all_taken([update(number, number, 100 + number) for number in range(10)]))
    assert max(under_way) > 5


def test_a_group_that_moves_is_in_the_order_of_both_of_its_chats() -> None:
    old, new = (
        {"update_id": 1, "message": {"message_id": 1, "chat": {"id": here}, key: there}}
        for here, key, there in ((-5, "migrate_to_chat_id", -1007), (-1007, "migrate_from_chat_id", -5))
    )
    assert parties(old) == parties(new) == {"-5", "-1007"}
    press = {"callback_query": {"from": {"id": 3}, "message": {"chat": {"id": 4}, "from": {"id": 9}}}}
    assert parties(press) == {"3", "4"}, "who presses, and not who wrote"
    assert parties({"update_id": 3}) == parties("odd") == frozenset()
