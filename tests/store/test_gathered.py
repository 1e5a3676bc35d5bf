"""Questions of one kind that are asked in one moment are one, and each is answered as if it were alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest

from agent_core.store.database.asks import Always, StoreAsks
from agent_core.store.errors import Damaged, StorageUnavailable
from tests.store.support import message, opened

PLACE = "telegram/1/2//"


async def test_all_who_ask_in_one_moment_are_answered_by_one_question(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    plain = StoreAsks.each

    async def each(self: StoreAsks, *questions: Always) -> object:
        asked.append(len(questions))
        return await plain(self, *questions)

    async with opened(where) as store:
        for number in range(5):
            await store.inbox.accept(message(f"m{number}", PLACE))
        account = message("m0", PLACE).account
        monkeypatch.setattr(StoreAsks, "each", each)
        names = ["m3", "none", "m1", "m3", "m4"]
        found = await asyncio.gather(*(store.inbox.by_key(account, name) for name in names))
        assert [row.platform_key if row is not None else None for row in found] == ["m3", None, "m1", "m3", "m4"]
        assert asked == [1]
        gone = asyncio.create_task(store.inbox.by_key(account, "m1"))
        stays = asyncio.create_task(store.inbox.by_key(account, "m2"))
        await asyncio.sleep(0)
        gone.cancel()
        row = await stays
        assert row is not None, "who leaves takes nobody along"
        assert row.platform_key == "m2"


async def test_what_is_damaged_of_one_is_told_to_that_one_alone(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, tries = StoreAsks.each, Counter[str]()

    async def each(self: StoreAsks, *questions: Always) -> object:
        keys = [name for one in questions for _, name in cast("Sequence[tuple[str, str]]", one.keys)]
        tries.update(keys)
        if "bad" in keys:
            raise Damaged("a row")
        return await plain(self, *questions)

    async with opened(where) as store:
        await store.inbox.accept(message("good", PLACE))
        account = message("good", PLACE).account
        monkeypatch.setattr(StoreAsks, "each", each)
        found = await asyncio.gather(
            *(store.inbox.by_key(account, name) for name in ("good", "bad")), return_exceptions=True
        )
        assert isinstance(found[1], StorageUnavailable)
        assert not isinstance(found[0], BaseException | None)
        assert found[0].platform_key == "good"
        assert tries["good"] == 2
