"""What cannot be taken in: kept once, tried within bounds, told once, for ever safe from a clock that jumps; on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.chat import ChatAddress, ChatKind, ChatMessage, ChatOrigin, ChatPerson, Raw
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.retry import UNREAD
from agent_core.store.inbox.rows import UnreadRow, UnreadState
from agent_core.store.store import StorageUnavailable
from gateway.chats.arrival import storable
from gateway.chats.unread import KEEP_MS, WORDS, TakesAgain, UnreadBox, UnreadStep, UnreadTries, next_step, taken_up
from tests.store.support import FakeClock, opened

ADA = ChatAddress("telegram", "7", "3")
ROW = UnreadRow("telegram/7", "update:1", b"{}", "IndexError: x", "1.0", 0, tried_at=0)


@given(st.lists(st.integers(0, 4 * 3_600_000), max_size=200), st.booleans())
def test_it_is_tried_so_often_with_a_version_and_then_given_up(waits: list[int], restarts: bool) -> None:
    row, now, started, tries = replace(ROW, received_at=10**12, tried_at=10**12), 10**12, 10**12, 1
    for wait in waits:
        now += wait
        started = now if restarts else started
        match next_step(row, now, "1.0", started):
            case UnreadStep.TRY:
                row, tries = taken_up(row, now, "1.0"), tries + 1
            case UnreadStep.GIVE_UP:
                row = replace(row, state=UnreadState.GIVEN_UP)
            case UnreadStep.WAIT:
                pass
    assert tries <= UNREAD.attempts
    assert row.tries == tries
    if row.state is UnreadState.GIVEN_UP:
        assert tries == UNREAD.attempts or now - row.received_at > KEEP_MS
        assert next_step(row, now, "1.0", now + 1) is UnreadStep.WAIT


def test_a_restart_and_another_version_try_at_once_and_a_pause_is_kept() -> None:
    row = replace(ROW, received_at=10**12, tried_at=10**12)
    soon = 10**12 + 1_000
    assert next_step(row, soon, "1.0", 0) is UnreadStep.WAIT
    assert next_step(row, soon, "1.0", soon) is UnreadStep.TRY
    assert next_step(row, 10**12 + UNREAD.ms(1), "1.0", 0) is UnreadStep.TRY
    given_up = replace(row, tries=UNREAD.attempts, state=UnreadState.GIVEN_UP)
    assert next_step(given_up, soon, "1.0", soon) is UnreadStep.WAIT
    assert next_step(given_up, soon, "1.1", 0) is UnreadStep.TRY
    assert taken_up(given_up, soon, "1.1") == replace(row, version="1.1", tries=1, tried_at=soon)


def test_what_is_old_is_not_answered_out_of_the_blue() -> None:
    late = ROW.received_at + KEEP_MS + 1
    assert next_step(ROW, late, "1.1", late) is UnreadStep.GIVE_UP
    assert next_step(replace(ROW, state=UnreadState.GIVEN_UP), late, "1.1", late) is UnreadStep.WAIT


def test_a_clock_that_is_put_back_delays_nothing() -> None:
    row = replace(ROW, received_at=10**12, tried_at=10**12)
    assert next_step(row, 10**12 - 3_600_000, "1.0", 0) is UnreadStep.TRY


async def test_it_is_kept_once_with_the_position_and_its_person_is_told_once(where: str) -> None:
    said: list[tuple[str, str, str]] = []

    async def tell(address: ChatAddress, key: str, words: str) -> None:
        said.append((address.chat, key, words))

    clock = FakeClock()
    async with opened(where, clock) as store:
        kept = UnreadBox(store, clock)
        tries = UnreadTries(kept, {}, store, clock, tell)
        raw = Raw(key="update:1", body=b'{"a": "\\ud800\\u0000"}', address=ADA, person="3", for_us=True)
        for number in ("1", "2"):
            await kept.keep("telegram/7", raw, "IndexError: x", ("updates", number), tell=True)
        assert kept.counts == {"telegram/7": 1}
        assert await store.inbox.cursor("telegram/7", "updates") == "2"
        await tries.look()
        await tries.look()
        assert said == [("3", "unread:update:1", WORDS)]


async def test_how_often_it_was_tried_is_stored_before_it_is_tried(where: str) -> None:
    clock, seen = FakeClock(), list[int]()
    async with opened(where, clock) as store:
        kept = UnreadBox(store, clock)

        async def again(_: bytes) -> None:
            row = await store.unread.one("telegram/7", "update:1")
            assert row is not None
            seen.append(row.tries)
            raise IndexError("still")

        tries = UnreadTries(kept, {"telegram/7": TakesAgain(lambda: True, again)}, store, clock)
        await kept.keep("telegram/7", Raw(key="update:1", body=b"{}"), "IndexError: x", None, tell=False)
        for _ in range(20):
            clock.now += UNREAD.ms(4)
            await tries.look()
        assert seen == [2, 3, 4, 5]
        row = await store.unread.one("telegram/7", "update:1")
        assert row is not None
        assert row.state is UnreadState.GIVEN_UP
        assert kept.counts == {"telegram/7": 1}, "the operators see it until somebody has done something"


async def test_what_is_taken_in_after_all_is_done_with(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, taken = FakeClock(), list[bytes]()
    async with opened(where, clock) as store:
        first = UnreadBox(store, clock)
        await first.keep("telegram/7", Raw(key="update:1", body=b"{}"), "IndexError: x", None, tell=False)
        await store.unread.change(replace(ROW, received_at=clock.now, state=UnreadState.GIVEN_UP, tries=5, version="0"))

        async def again(body: bytes) -> None:
            taken.append(body)

        monkeypatch.setattr("gateway.chats.unread.program_version", lambda: "upgraded")
        second = UnreadBox(store, clock)
        await UnreadTries(second, {"telegram/7": TakesAgain(lambda: False, again)}, store, clock).look()
        assert taken == [], "its adapter is not connected"
        tries = UnreadTries(second, {"telegram/7": TakesAgain(lambda: True, again)}, store, clock)
        await tries.look()
        await tries.look()
        assert taken == [b"{}"]
        assert second.counts == {}


async def test_what_cannot_be_stored_just_now_stays(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        kept = UnreadBox(store, clock)

        async def again(_: bytes) -> None:
            raise NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)

        tries = UnreadTries(kept, {"telegram/7": TakesAgain(lambda: True, again)}, store, clock)
        await kept.keep("telegram/7", Raw(key="update:1", body=b"{}"), "x", None, tell=False)
        clock.now += UNREAD.ms(1)
        await tries.look()
        assert kept.counts == {"telegram/7": 1}


@pytest.mark.parametrize("error", [NotAccepted("full", NotAcceptedCode.GATEWAY_FULL), StorageUnavailable("away")])
async def test_a_moment_at_which_nothing_was_taken_counts_as_no_try(where: str, error: Exception) -> None:
    clock, errors = FakeClock(), [error] * (UNREAD.attempts + 3)
    async with opened(where, clock) as store:
        kept = UnreadBox(store, clock)

        async def again(_: bytes) -> None:
            if errors:
                raise errors.pop()

        tries = UnreadTries(kept, {"telegram/7": TakesAgain(lambda: True, again)}, store, clock)
        await kept.keep("telegram/7", Raw(key="update:1", body=b"{}"), "x", None, tell=False)
        for _ in list(errors):
            clock.now += UNREAD.ms(1)
            await tries.look()
        row = await store.unread.one("telegram/7", "update:1")
        assert row is not None
        assert (row.state, row.tries) == (UnreadState.WAITING, 1), "the first try was when it came"
        assert errors == [], "it was tried each time"
        await tries.look()
        assert kept.counts, "not without a pause"
        clock.now += UNREAD.ms(1)
        await tries.look()
        assert kept.counts == {}


@example("\ud800 and \x00")
@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_whatever_a_person_writes_can_be_stored(text: str) -> None:
    origin = ChatOrigin(replace(ADA, thread=text), ChatKind.PRIVATE, ChatPerson("3", text, text), text)
    clean = storable(ChatMessage(origin=origin, key=text, text=text))
    for one in (clean.text, clean.key, clean.origin.person.name, clean.origin.address.thread, clean.origin.message):
        assert "\x00" not in one
        assert one.encode().decode() == one
        assert len(one) == len(text)


async def test_what_was_given_up_waits_for_another_version_and_what_is_done_for_none(sqlite: str) -> None:
    async with opened(sqlite) as store:
        assert await store.unread.keep(ROW, ("updates", "1"))
        assert not await store.unread.keep(ROW, ("updates", "2")), "it is kept already"
        assert await store.inbox.cursor("telegram/7", "updates") == "2"
        for state, waits in (
            (UnreadState.WAITING, ["1.0", "1.1"]),
            (UnreadState.GIVEN_UP, ["1.1"]),
            (UnreadState.DONE, []),
        ):
            await store.unread.change(replace(ROW, state=state))
            assert [version for version in ("1.0", "1.1") if await store.unread.waiting(version)] == waits
