"""The way in: it comes back once what came is in a table, whatever is raised on the way, and raises as long as it is in none."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract import intake
from adapters.contract.chat import Raw
from adapters.contract.intake import WAITING_MOST, WayIn, Whence, raw_of
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.retry import INTAKE, Retry
from tests.store.support import FakeClock

CURSOR = ("room", "41")
PASSES = [code for code in NotAcceptedCode if code.passes]
LASTS = [code for code in NotAcceptedCode if not code.passes]


class Table:
    """What is stored: as a message, or as it came."""

    def __init__(
        self, fails: list[Exception | None], *, half: bool = False, kept_fails: Exception | None = None
    ) -> None:
        self.fails, self.half, self.kept_fails = fails, half, kept_fails
        self.acts = 0
        self.stored: set[str] = set()
        self.kept: list[tuple[str, bytes, tuple[str, str] | None]] = []

    async def act(self, key: str) -> bool:
        self.acts += 1
        error = self.fails.pop(0) if self.fails else None
        if error is None or self.half:
            self.stored.add(key)
        if error is not None:
            raise error
        return True

    async def known(self, account: str, key: str) -> bool:
        assert account == "bot"
        return key in self.stored

    async def keep(self, account: str, raw: Raw, words: str, cursor: tuple[str, str] | None) -> None:
        assert account == "bot"
        assert words
        if self.kept_fails is not None:
            raise self.kept_fails
        self.kept.append((raw.key, raw.body, cursor))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "INTAKE", Retry(0.0, factor=1.0, attempts=INTAKE.attempts))


async def take(table: Table, *, unreadable: bool = False) -> WayIn:
    def read() -> str:
        if unreadable:
            raise KeyError("text")
        return "m1"

    way = WayIn("bot", cast("Any", table), FakeClock())
    await way.take(lambda: raw_of("m1", {"text": "x"}, Whence), read, table.act, key=lambda key: key, cursor=CURSOR)
    assert way.age_seconds is not None
    return way


KEPT = [("m1", b'{"text": "x"}', CURSOR)]


async def test_what_was_stored_is_taken_once_and_not_kept_as_it_came() -> None:
    table = Table([])
    await take(table)
    assert (table.acts, table.kept) == (1, [])


async def test_what_waits_for_its_turn_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "ACT_SECONDS", 0.05)
    table, held = Table([]), list[str]()

    @asynccontextmanager
    async def turn() -> AsyncGenerator[None]:
        await asyncio.sleep(0.15)
        held.append("taken")
        yield
        held.append(f"given after {table.acts}")

    way = WayIn("bot", cast("Any", table), FakeClock())
    await way.take(lambda: raw_of("m1", {}, Whence), lambda: "m1", table.act, key=lambda key: key, turn=turn)
    assert (table.acts, table.kept, held) == (1, [], ["taken", "given after 1"])


async def test_what_cannot_be_read_is_kept_with_its_position_and_not_tried_again() -> None:
    table = Table([])
    await take(table, unreadable=True)
    assert (table.acts, table.kept) == (0, KEPT)


@pytest.mark.parametrize("failures", range(1, INTAKE.attempts + 2))
async def test_what_cannot_be_taken_in_is_tried_again_and_kept_at_last(failures: int) -> None:
    table = Table([RuntimeError("odd")] * failures)
    await take(table)
    given_up = failures >= INTAKE.attempts
    assert table.acts == (INTAKE.attempts if given_up else failures + 1)
    assert table.kept == (KEPT if given_up else [])


async def test_what_is_stored_although_something_failed_is_not_taken_again() -> None:
    table = Table([RuntimeError("odd")], half=True)
    await take(table)
    assert (table.acts, table.kept) == (1, [])


@pytest.mark.parametrize("code", PASSES)
@pytest.mark.parametrize("where", ["act", "keep"])
async def test_what_no_table_takes_now_is_not_confirmed(code: NotAcceptedCode, where: str) -> None:
    refused = NotAccepted("not now", code)
    table = Table([refused]) if where == "act" else Table([], kept_fails=refused)
    with pytest.raises(NotAccepted) as raised:
        await take(table, unreadable=where == "keep")
    assert raised.value is refused
    assert table.acts == (where == "act"), "the platform brings it again, and nobody else does"
    assert (table.stored, table.kept) == (set(), [])


@pytest.mark.parametrize("code", LASTS)
async def test_what_is_refused_whatever_the_moment_is_kept(code: NotAcceptedCode) -> None:
    table = Table([NotAccepted("never", code)] * INTAKE.attempts)
    await take(table)
    assert table.kept == KEPT


async def test_what_cannot_even_be_kept_is_not_confirmed() -> None:
    table = Table([], kept_fails=OSError("odd"))
    with pytest.raises(NotAccepted) as raised:
        await take(table, unreadable=True)
    assert raised.value.code.passes


def test_it_is_looked_ahead_only_so_far_however_much_waits() -> None:
    told, looked = list[object](), itertools.count()
    message: Any = SimpleNamespace()

    def waits(one: object, _: NotAccepted) -> None:
        told.append(one)

    way = WayIn("bot", cast("Any", SimpleNamespace(waits=waits)), FakeClock())

    def read() -> Any:
        if next(looked) % 2:
            raise ValueError("odd")
        return message

    way.waiting(NotAccepted("away", NotAcceptedCode.STORAGE_AWAY), itertools.repeat(read, 2 * WAITING_MOST))
    assert (next(looked), len(told)) == (WAITING_MOST, WAITING_MOST // 2)


@pytest.mark.parametrize("theirs", [True, False])
async def test_only_what_a_person_did_counts_as_heard(*, theirs: bool) -> None:
    async def act(_: str) -> bool:
        return theirs

    clock = FakeClock()
    way = WayIn("bot", cast("Any", Table([])), clock)
    await way.take(lambda: raw_of("k", {}, Whence), lambda: "k", act, key=str)
    clock.now += 5_000
    assert way.age_seconds == (5.0 if theirs else None)
