"""Fencing, claims, take-over, and the two liveness locks, tried with real processes that are killed and stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from agent_core.store.database import ownership
from agent_core.store.database.ownership import PulseLock, running_pid
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.store import (
    AlreadyRunning,
    CannotOpen,
    Conflict,
    Fenced,
    LeaseLost,
    OwnedElsewhere,
    StorageUnavailable,
    Store,
)
from agent_core.store.turns.rows import OpenTurn
from tests.databases import connected
from tests.store.support import child, message, opened, row, session_of, take_over, taken_over, turn_of
from tests.store.test_writer import make_faulty
from tests.wire import cable

PATIENCE_SECONDS = 60.0


async def _taken_over_from(store: Store, since: float) -> OpenTurn:
    """Try until the one open turn is ours. Fails after the time that a stopped holder may cost."""
    while True:
        found = await take_over(store)
        if found:
            assert len(found) == 1
            return found[0]
        assert time.monotonic() - since < PATIENCE_SECONDS
        await asyncio.sleep(0.05)


async def test_a_claimed_session_keeps_its_epoch_and_a_new_owner_gets_the_next(where: str) -> None:
    async with opened(where) as store:
        session, epoch = await session_of(store)
        assert epoch == 1
        assert await store.sessions.claim(session) == 1
    async with opened(where) as store:
        assert await store.sessions.claim(session) == 2
        assert await store.sessions.claim(session) == 2


async def test_an_old_epoch_can_write_nothing(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
    async with opened(where) as store:
        assert await take_over(store) == [OpenTurn(turn, session, epoch + 1)]
        fresh = await store.inbox.accept(message("fresh"))
        wanted = DeliveryRow("s", turn, "answer", 0, 1, b"", "h", "k")
        for late in (
            store.turns.append(session, epoch, turn, [row(2)]),
            store.turns.append(session, epoch, turn, [row(0)]),  # even what is stored already
            store.turns.intend(session, epoch, turn, [row(2)], []),
            store.turns.close(session, epoch, turn, [row(2)], "answered", 1, [wanted]),
            store.turns.start(session, epoch, "t_2", [fresh.inbox_id], row(0), 1, 2),
        ):
            with pytest.raises(Fenced, match=f"epoch {epoch + 1}"):
                await late
        assert [one.kind for one in await store.turns.journal(turn)] == ["TextArrived", "TakenOver"]
        assert len(await store.inbox.pending(session)) == 1
        await store.turns.append(session, epoch + 1, turn, [row(2)])


async def test_taking_over_appends_to_open_turns_before_it_tells_of_them(where: str) -> None:
    async with opened(where) as store:
        open_turns = [await turn_of(store, f"open{number}") for number in range(3)]
        await store.turns.append(*open_turns[1], [row(1), row(2)])
        idle, idle_epoch = await session_of(store, "idle")
        waiting = await store.inbox.accept(message("w", "waiting"))
        await store.sessions.claim(waiting.session)
    async with opened(where) as store:
        found = await take_over(store)
        assert {(one.session, one.epoch, one.turn) for one in found} == {(s, e + 1, turn) for s, e, turn in open_turns}
        for one in found:
            last = (await store.turns.journal(one.turn))[-1]
            assert last == taken_over(one.turn, last.seq, one.epoch)
        assert len(await store.turns.journal(open_turns[1][2])) == 4
        taken = await store.sessions.one(waiting.session)
        assert taken is not None
        assert taken.owner == store.node
        assert await store.sessions.claim(idle) == idle_epoch + 1
        assert await store.sessions.claim(waiting.session) == 2
        assert await take_over(store) == []
        for one in found:
            await store.turns.close(one.session, one.epoch, one.turn, [], "interrupted_by_restart", 1)


async def test_a_take_over_whose_answer_was_lost_tells_the_same_turns_once(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
    async with opened(where) as store:
        make_faulty(store, after=2)
        assert await take_over(store) == [OpenTurn(turn, session, epoch + 1)]
        assert len(await store.turns.journal(turn)) == 2


async def test_a_second_process_is_refused_and_told_who_holds_the_file(sqlite: str) -> None:
    assert running_pid(Path(sqlite)) is None
    async with child("hold", sqlite) as holder:
        assert await holder.line() == "open"
        assert running_pid(Path(sqlite)) == holder.pid
        with pytest.raises(AlreadyRunning, match=f"Process {holder.pid}") as refused:
            async with opened(sqlite):
                pass
        assert refused.value.pid == holder.pid
        assert "OUTSPOKEN_HOME=" in str(refused.value)
        async with child("hold", sqlite) as third:
            assert (await third.line()).startswith("refused AlreadyRunning")
        await holder.say()
        assert await holder.line() == ""
        assert running_pid(Path(sqlite)) is None
    async with opened(sqlite):
        assert running_pid(Path(sqlite)) == os.getpid()


async def test_a_stopped_process_keeps_its_file_and_a_killed_one_frees_it(sqlite: str) -> None:
    async with child("own", sqlite) as holder:
        words = (await holder.line()).split()
        holder.send(signal.SIGSTOP)
        with pytest.raises(AlreadyRunning):
            async with opened(sqlite):
                pass
        holder.send(signal.SIGKILL)
        holder.send(signal.SIGCONT)
        assert await holder.line() == ""
    async with opened(sqlite) as store:
        assert await take_over(store) == [OpenTurn(words[2], words[0], int(words[1]) + 1)]


async def test_looking_who_runs_does_not_disturb_a_start(sqlite: str) -> None:
    async with opened(sqlite):
        pass
    looking = True

    async def look() -> None:
        while looking:
            await asyncio.to_thread(running_pid, Path(sqlite))

    looker = asyncio.create_task(look())
    for _ in range(20):
        async with opened(sqlite):
            pass
    looking = False
    await looker


async def test_a_living_node_keeps_its_sessions(postgres: str) -> None:
    async with child("claim", postgres) as other, opened(postgres) as store:
        session = (await other.line()).split()[0]
        with pytest.raises(OwnedElsewhere, match="alive"):
            await store.sessions.claim(session)
        assert await take_over(store) == []
        await other.say()
        assert await other.line() == ""
        assert await store.sessions.claim(session) == 2


async def test_a_killed_node_is_taken_over_at_once(postgres: str) -> None:
    async with opened(postgres) as store, child("own", postgres) as other:
        session, epoch, turn, _ = (await other.line()).split()
        assert await take_over(store) == []
        other.send(signal.SIGKILL)
        # Within less time than the lease of this one.
        assert await _taken_over_from(store, time.monotonic()) == OpenTurn(turn, session, int(epoch) + 1)


async def test_a_stopped_node_is_taken_over_and_writes_nothing_when_it_wakes(postgres: str) -> None:
    async with opened(postgres) as store, child("own", postgres, "short") as other:
        session, epoch, turn, _ = (await other.line()).split()
        other.send(signal.SIGSTOP)
        try:
            assert await _taken_over_from(store, time.monotonic()) == OpenTurn(turn, session, int(epoch) + 1)
        finally:
            other.send(signal.SIGCONT)
        await other.say()
        assert await other.line() == "False Fenced"
        assert [one.kind for one in await store.turns.journal(turn)] == ["TextArrived", "TakenOver"]


async def kill_pulse(store: Store) -> None:
    kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'outspoken pulse {store.node}' AND datname = current_database()"
    await store.writer.alone(lambda conn: conn.exec_driver_sql(kill).scalar_one())


class Held:
    """No node (or not this one) finds the way back to its server before it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, only: Store | None = None) -> None:
        self.tried, self.may = asyncio.Event(), asyncio.Event()
        plain = PulseLock.connect

        async def connect(one: PulseLock) -> None:
            if only is None or one is only.ownership:
                self.tried.set()
                await self.may.wait()
            await plain(one)

        monkeypatch.setattr(PulseLock, "connect", connect)


async def test_a_node_that_lost_its_pulse_claims_nothing_until_it_has_its_lock_again(
    postgres: str, short_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres) as store:
        session, epoch = await session_of(store)
        assert 2 < store.ownership.lease_left() <= 3
        held = Held(monkeypatch)
        await kill_pulse(store)
        await asyncio.wait_for(held.tried.wait(), PATIENCE_SECONDS)
        assert (store.ownership.lease_ok(), store.ownership.may_return()) == (False, True)
        for claims in (store.sessions.claim(session), take_over(store), store.check()):
            with pytest.raises(StorageUnavailable):
                await claims
        held.may.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not store.ownership.lease_ok():
                await asyncio.sleep(0.01)
        assert await store.sessions.claim(session) == epoch
        assert not store.ownership.lost.is_set()
        assert store.way is not None
        assert (store.way.breaks, store.way.away_seconds) == (1, 0)


async def test_a_loop_that_stood_still_is_not_taken_for_a_server_that_is_away(postgres: str, short_lease: None) -> None:
    async with opened(postgres) as store:
        session, epoch = await session_of(store)
        for _ in range(2):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while store.ownership.lease_left() < 2.9:
                    await asyncio.sleep(0.01)
            time.sleep(3.1)
            assert store.ownership.may_return()
            assert await store.sessions.claim(session) == epoch
        assert store.way is not None
        assert (store.way.breaks, store.ownership.lost.is_set()) == (0, False)


async def test_a_node_that_was_taken_for_dead_meanwhile_knows_it(
    postgres: str, short_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres) as store, opened(postgres) as other:
        session, epoch, turn = await turn_of(store)
        held = Held(monkeypatch)
        await kill_pulse(store)
        await asyncio.wait_for(held.tried.wait(), PATIENCE_SECONDS)
        assert await take_over(other) == [OpenTurn(turn, session, epoch + 1)]
        held.may.set()
        await asyncio.wait_for(store.ownership.lost.wait(), PATIENCE_SECONDS)
        assert not store.ownership.lease_ok()
        with pytest.raises(LeaseLost):
            await store.sessions.claim(session)
        with pytest.raises(LeaseLost):
            await take_over(store)


async def test_who_only_looks_whether_a_node_is_dead_takes_nothing_from_it(
    postgres: str, short_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres) as store, opened(postgres) as other:
        held = Held(monkeypatch)
        await kill_pulse(store)
        await asyncio.wait_for(held.tried.wait(), PATIENCE_SECONDS)
        assert await other.dead_among({store.node}) == {store.node}
        held.may.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not store.ownership.lease_ok():
                await asyncio.sleep(0.01)
        assert await other.dead_among({store.node}) == set()


async def back(store: Store) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while store.way is None or not store.way.breaks or not store.ownership.lease_ok():
            await asyncio.sleep(0.01)


async def test_who_has_just_had_its_own_lock_again_takes_nobody_for_dead_that_may_have_lost_it_as_well(
    postgres: str, short_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that was restarted has taken the locks of all: the first to be back waits for the others."""
    async with opened(postgres) as store, opened(postgres) as other:
        session, epoch, turn = await turn_of(store)
        held = Held(monkeypatch, only=store)
        await kill_pulse(store)
        await asyncio.wait_for(held.tried.wait(), PATIENCE_SECONDS)
        await kill_pulse(other)
        await back(other)
        assert await take_over(other) == []
        held.may.set()
        await back(store)
        await store.turns.append(session, epoch, turn, [row(1)])


async def test_whose_pulse_was_heard_since_is_dead_as_soon_as_it_ends(
    postgres: str, short_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has cut this one off has not cut off that one: it was there when this one was back."""
    async with opened(postgres) as store, opened(postgres) as other:
        session, epoch, turn = await turn_of(store)
        await kill_pulse(other)
        await back(other)
        held = Held(monkeypatch, only=store)
        await kill_pulse(store)
        await asyncio.wait_for(held.tried.wait(), PATIENCE_SECONDS)
        assert await take_over(other) == [OpenTurn(turn, session, epoch + 1)]
        held.may.set()


async def test_who_is_back_from_a_cut_waits_no_longer_for_one_that_was_killed_meanwhile_than_that_one_would_need(
    postgres: str, short_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot know whether that one was cut off as well: that it was refused itself, and was not left without an answer, tells how soon it would be back."""
    monkeypatch.setattr(ownership, "SILENT_GRACE_SECONDS", 10 * PATIENCE_SECONDS)
    with cable(postgres) as (url, way):
        async with opened(url) as store, child("own", postgres) as other:
            session, epoch, turn, _ = (await other.line()).split()
            way.refusing = True
            way.cut()
            async with asyncio.timeout(PATIENCE_SECONDS):
                while store.ownership.lease_ok():
                    await asyncio.sleep(0.01)
            other.send(signal.SIGKILL)
            await other.line()
            way.refusing = False
            await back(store)
            assert await _taken_over_from(store, time.monotonic()) == OpenTurn(turn, session, int(epoch) + 1)


async def test_a_lostwriter_connection_is_replaced_without_anybody_noticing(postgres: str) -> None:
    async with opened(postgres) as store, opened(postgres) as other:
        session, epoch, turn = await turn_of(store)
        await killed(store, other)
        await store.turns.append(session, epoch, turn, [row(1)])
        assert store.figures.reopened == 1
        assert len(await store.turns.journal(turn)) == 2


async def test_a_connection_whose_last_words_came_before_its_end_is_replaced_too(postgres: str) -> None:
    with cable(postgres) as (url, way):
        way.endless = True
        async with opened(url) as store, opened(postgres) as other:
            session, epoch, turn = await turn_of(store)
            await killed(store, other)
            await asyncio.sleep(0.1)
            await store.turns.append(session, epoch, turn, [row(1)])
            assert store.figures.reopened == 1
            way.endless = False


async def killed(store: Store, other: Store) -> None:
    """The server ends the connection by which `store` writes."""
    pid = await store.writer.alone(lambda conn: int(conn.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()))
    kill = f"SELECT pg_terminate_backend({pid})"
    assert await other.writer.alone(lambda conn: bool(conn.exec_driver_sql(kill).scalar_one()))


async def test_two_nodes_that_get_the_same_messages_store_each_once(postgres: str) -> None:
    async with opened(postgres) as one, opened(postgres) as two:
        for turn in range(5):
            offers = [
                store.inbox.accept(message(f"m{turn}.{number}", f"chat{turn}.{number % 3}"))
                for number in range(20)
                for store in (one, two)
            ]
            answers = await asyncio.gather(*offers)
            for first, second in zip(answers[::2], answers[1::2], strict=True):
                assert first.inbox_id == second.inbox_id
                assert first.session == second.session
                assert first.duplicate != second.duplicate


async def test_two_nodes_cannot_both_take_a_dead_ones_turns(postgres: str) -> None:
    async with child("own", postgres) as other, opened(postgres) as one, opened(postgres) as two:
        await other.line()
        other.send(signal.SIGKILL)
        await other.line()
        await asyncio.sleep(0.2)
        found = await asyncio.gather(*(take_over(store) for store in (one, two)))
        assert sum(map(len, found)) == 1


async def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(CannotOpen) as told:
        async with opened("postgresql://me:hush-hush@127.0.0.1:1/none"):
            pass
    assert "127.0.0.1:1/none" in str(told.value)
    assert "hush" not in str(told.value)


async def test_only_the_owner_starts_turns(where: str) -> None:
    async with opened(where) as store:
        accepted = await store.inbox.accept(message())
        with pytest.raises(Fenced):
            await store.turns.start(accepted.session, 0, "t", [accepted.inbox_id], row(0), 1, 2)
        epoch = await store.sessions.claim(accepted.session)
        with pytest.raises(Conflict, match="row 0"):
            await store.turns.start(accepted.session, epoch, "t", [accepted.inbox_id], row(1), 1, 2)


async def test_a_connection_that_has_sent_half_of_a_statement_and_stopped_is_ended(
    postgres: str, short_lease: None
) -> None:
    """The server waits for the other half without a limit, and holds what the transaction has locked."""
    stopped, busy, strange = [
        await connected(postgres, server_settings={"application_name": name})
        for name in ("outspoken writer", "outspoken reader", "somebody else's")
    ]
    for conn in (stopped, strange):
        await conn.execute("BEGIN")
        await conn.prepare("SELECT 1")  # the first half
    working = asyncio.create_task(busy.execute("SELECT pg_sleep(8)"))
    async with opened(postgres):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not stopped.is_closed():
                await asyncio.sleep(0.1)
        await working  # longer than the patience, and at work
        await strange.execute("COMMIT")
    await busy.close()
    await strange.close()


async def test_suspicion_goes_with_progress_since_a_turn_was_taken_up_last_and_not_with_earlier_progress(
    sqlite: str,
) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.append(session, epoch, turn, [row(1, kind="ToolReturned")])
    for restart in (1, 2):
        async with opened(sqlite) as store:
            (left,) = await store.left.turns()
            assert left.suspicion == (0 if restart == 1 else 1)
            (taken,) = await take_over(store)
            assert [one.suspicion for one in await store.left.turns()] == [1]
            seq = len(await store.turns.journal(turn))
            await store.turns.append(session, taken.epoch, turn, [row(seq, kind="ReplyFinished")])
            assert [one.suspicion for one in await store.left.turns()] == [1], "it may ask for the same tool again"
    async with opened(sqlite) as store:
        (taken,) = await take_over(store)
        await store.turns.append(
            session, taken.epoch, turn, [row(len(await store.turns.journal(turn)), kind="ToolReturned")]
        )
        assert [one.suspicion for one in await store.left.turns()] == [0]
