"""The one writer: grouping, order, isolation of faults, repetition after lost answers, back-pressure."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from sqlalchemy import Connection, update
from sqlalchemy.exc import IntegrityError, OperationalError

from agent_core.bell import Bell
from agent_core.retry import STORAGE_REOPENED
from agent_core.store import tables as t
from agent_core.store.database import writer
from agent_core.store.database.lines import PAGE_BYTES, Line
from agent_core.store.database.writer import BATCH_OPS, MOMENT_TRIES, QUEUE_OPS, Writer
from agent_core.store.inbox.ops import Accept
from agent_core.store.inbox.rows import Accepted
from agent_core.store.keeping.checking import check
from agent_core.store.store import Conflict, Damaged, Fenced, Rejected, StorageUnavailable, Store
from tests.storage.harm import leaves
from tests.store.support import IDS, child, message, opened, row, session_of, turn_of

T = TypeVar("T")


class FaultyLine:
    """The real line, on which a storage error comes before or after the next commits."""

    def __init__(self, line: Line, *, before: int = 0, after: int = 0) -> None:
        self._line = line
        self.before = before
        self.after = after
        self.used_after_error = False
        self._sound = True

    @property
    def shown(self) -> str:
        return self._line.shown

    async def open(self) -> None:
        await self._line.open()

    async def transact(self, body: Callable[[Connection], T]) -> T:
        return await self._faulty(lambda: self._line.transact(body))

    async def at_length(self, body: Callable[[Connection], T]) -> T:
        return await self.transact(body)

    async def briefly(self, body: Callable[[Connection], bool]) -> bool:
        if self.shown.startswith("/"):
            return False  # a file: it is a transaction that fails
        return await self._faulty(lambda: self._line.briefly(body))

    async def _faulty(self, work: Callable[[], Awaitable[T]]) -> T:
        self.used_after_error |= not self._sound
        if self.before:
            self.before -= 1
            self._sound = False
            raise OSError(errno.EIO, "Input/output error")
        done = await work()
        if self.after:
            self.after -= 1
            self._sound = False
            raise OSError(errno.EIO, "Input/output error")
        return done

    async def reopen(self) -> None:
        await self._line.reopen()
        self._sound = True

    async def close(self) -> None:
        await self._line.close()


def make_faulty(store: Store, *, before: int = 0, after: int = 0) -> FaultyLine:
    faulty = FaultyLine(store.writer._line, before=before, after=after)
    store.writer._line = faulty
    return faulty


async def test_whoever_waits_at_the_same_time_shares_a_commit(where: str) -> None:
    async with opened(where) as store:
        turns = [await turn_of(store, f"chat{number}") for number in range(40)]
        batches = store.figures.batches
        for seq in (1, 2, 3):
            await asyncio.gather(*(store.turns.append(s, e, turn, [row(seq)]) for s, e, turn in turns))
        assert store.figures.batches - batches == 3
        for _, _, turn in turns:
            assert len(await store.turns.journal(turn)) == 4


async def test_writes_queued_together_are_carried_out_in_order(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        more = await store.inbox.accept(message("more"))
        async with asyncio.TaskGroup() as group:
            for seq in range(1, 50):
                group.create_task(store.turns.append(session, epoch, turn, [row(seq, str(seq).encode())]))
            group.create_task(store.turns.close(session, epoch, turn, [row(50)], "answered", 1))
            group.create_task(store.turns.start(session, epoch, "t_next", [more.inbox_id], row(0), 1, 2))
            group.create_task(store.turns.append(session, epoch, "t_next", [row(1)]))
            again = group.create_task(store.inbox.accept(message("more")))
        assert [one.seq for one in await store.turns.journal(turn)] == list(range(51))
        assert len(await store.turns.journal("t_next")) == 2
        assert again.result().duplicate


async def test_more_than_a_batch_holds_is_written_in_several(sqlite: str) -> None:
    async with opened(sqlite) as store:
        await asyncio.gather(
            *(store.inbox.accept(message(f"m{number}", f"c{number}")) for number in range(BATCH_OPS + 10))
        )
        assert store.figures.largest_batch == BATCH_OPS
        assert len(await store.inbox.sessions_with_pending()) == BATCH_OPS + 10


async def test_a_refused_operation_leaves_its_batch_alone(where: str) -> None:
    async with opened(where) as store:
        turns = [await turn_of(store, f"chat{number}") for number in range(5)]
        batches = store.figures.batches
        writes = [store.turns.append(s, e + (number == 2), turn, [row(1)]) for number, (s, e, turn) in enumerate(turns)]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(answer) for answer in answers] == [type(None), type(None), Fenced, type(None), type(None)]
        assert store.figures.batches - batches == 1


async def test_what_the_database_refuses_fails_only_its_own_caller(where: str) -> None:
    async with opened(where) as store:
        turns = [await turn_of(store, f"chat{number}") for number in range(5)]
        bad = row(1, at=2**70)  # no column of either engine holds it
        writes = [
            store.turns.append(s, e, turn, [bad if number == 2 else row(1)])
            for number, (s, e, turn) in enumerate(turns)
        ]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(answer) for answer in answers] == [type(None), type(None), Rejected, type(None), type(None)]
        stored = [len(await store.turns.journal(turn)) for _, _, turn in turns]
        assert stored == [2, 2, 1, 2, 2]


@pytest.mark.parametrize("lost", [1, 2])
async def test_a_batch_whose_answer_was_lost_is_repeated_without_doubling(where: str, lost: int) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        await store.memory.put("me", "fact", "a", "x", at_ms=1)
        waiting = await store.inbox.accept(message("waiting"))
        line = make_faulty(store, after=lost)
        async with asyncio.TaskGroup() as group:
            accepted = group.create_task(store.inbox.accept(message("new", "new chat")))
            twin = group.create_task(store.inbox.accept(message("new", "new chat")))
            group.create_task(store.turns.append(session, epoch, turn, [row(1), row(2)]))
            group.create_task(store.turns.close(session, epoch, turn, [row(3)], "answered", 1))
            group.create_task(store.turns.start(session, epoch, "t_next", [waiting.inbox_id], row(0), 1, 2))
            deleted = group.create_task(store.memory.delete("me", "fact", "a"))
        assert not accepted.result().duplicate
        assert twin.result().duplicate
        assert deleted.result()
        assert len(await store.turns.journal(turn)) == 4
        assert [one.turn for one in await store.turns.latest(session, 9)] == [turn, "t_next"]
        assert len(await store.inbox.pending(accepted.result().session)) == 1
        assert store.figures.reopened == lost
        assert not line.used_after_error


async def test_a_claim_whose_answer_was_lost_keeps_its_epoch(where: str) -> None:
    async with opened(where) as store:
        accepted = await store.inbox.accept(message())
        make_faulty(store, after=1)
        assert await store.sessions.claim(accepted.session) == 1
        assert await store.sessions.claim(accepted.session) == 1


async def test_a_storage_that_stays_away_is_told_and_a_later_write_gets_through(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        line = make_faulty(store, before=10**6)
        with pytest.raises(StorageUnavailable, match="cannot be written") as told:
            await store.turns.append(session, epoch, turn, [row(1)])
        assert store.shown in str(told.value)
        assert "hush" not in str(told.value)
        async with asyncio.timeout(30):  # while it is known to be away, nobody waits for it
            with pytest.raises(StorageUnavailable):
                await store.check()
        line.before = 0
        await store.turns.append(session, epoch, turn, [row(1)])
        assert not line.used_after_error
        assert len(await store.turns.journal(turn)) == 2
        line.before = 1  # it is back: a batch is tried again as before it was away
        await store.turns.append(session, epoch, turn, [row(2)])
        assert len(await store.turns.journal(turn)) == 3


async def test_while_the_storage_is_known_to_be_away_a_write_is_tried_once(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        line = make_faulty(store, before=10**6)
        tried = list[int]()
        for _ in range(3):
            before = line.before
            with pytest.raises(StorageUnavailable):
                await store.turns.append(session, epoch, turn, [row(1)])
            tried.append(before - line.before)
        assert tried == [STORAGE_REOPENED.attempts, 1, 1]


async def test_what_is_written_alone_is_seen_by_all_that_comes_behind_it(where: str) -> None:
    """What is known of rows, so that they need not be read, is not known any more."""
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.append(session, epoch, turn, [row(1)])
        await store.writer.alone(lambda conn: conn.execute(update(t.sessions).values(epoch=epoch + 1)).close())
        with pytest.raises(Fenced):
            await store.turns.append(session, epoch, turn, [row(2)])


async def test_when_the_writer_is_ended_from_outside_nobody_waits_for_it() -> None:
    begun = asyncio.Event()

    class Slow:
        shown = "somewhere"

        async def transact(self, body: object) -> None:
            del body
            begun.set()
            await asyncio.Event().wait()

    writer = Writer(cast("Any", Slow()), cast("Any", None))
    writer.start()
    waiting = [asyncio.create_task(writer.alone(lambda _: None)) for _ in range(3)]
    await begun.wait()
    assert writer._task is not None
    writer._task.cancel()
    async with asyncio.timeout(20):
        answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(one) for one in answers} == {StorageUnavailable}


async def test_a_full_disk_is_told_in_words_and_survived(sqlite: str) -> None:
    async with child("fill", sqlite) as process:
        away = await process.line()
        assert away.startswith("away ")
        assert sqlite in away
        reached = int(away.split()[1])
        assert await process.line() == "still away"
        back = await process.line()
        assert back.startswith(f"back {reached} ")
        assert await process.line() == ""
    async with opened(sqlite) as store:
        assert [one.seq for one in await store.turns.journal(back.split()[2])] == list(range(reached + 1))
        assert await store.inbox.by_key("bot", "back") is not None


async def test_a_write_behind_which_nobody_stands_any_more_is_left_out(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        given_up = asyncio.create_task(store.turns.append(session, epoch, turn, [row(1, b"given up")]))
        await asyncio.sleep(0)  # it is queued now, and the writer has not run yet
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        await store.turns.append(session, epoch, turn, [row(1, b"meant")])
        assert [one.body for one in await store.turns.journal(turn, after=0)] == [b"meant"]


async def test_a_full_queue_makes_callers_wait_and_drops_nothing(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        writes = [
            asyncio.create_task(store.turns.append(session, epoch, turn, [row(seq)]))
            for seq in range(1, QUEUE_OPS + 500)
        ]
        await asyncio.sleep(0)
        assert len(store.writer._queue) == QUEUE_OPS
        await asyncio.gather(*writes)
        assert len(await store.turns.journal(turn)) == QUEUE_OPS + 500


async def test_after_closing_nothing_is_taken_and_what_was_queued_is_written(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        last = [asyncio.create_task(store.turns.append(session, epoch, turn, [row(seq)])) for seq in range(1, 20)]
        await asyncio.sleep(0)
    await asyncio.gather(*last)
    with pytest.raises(StorageUnavailable, match="closed"):
        await store.check()
    async with opened(where) as again:
        assert len(await again.turns.journal(turn)) == 20


async def test_every_sqlite_commit_is_safe_against_a_power_cut(sqlite: str) -> None:
    def settings(conn: Connection) -> list[object]:
        names = ("synchronous", "journal_mode", "foreign_keys", "fullfsync")
        return [conn.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names]

    async with opened(sqlite) as store:
        assert await store.writer.alone(settings) == [2, "wal", 1, 1]
        await store.writer._line.reopen()
        assert await store.writer.alone(settings) == [2, "wal", 1, 1]


async def test_postgres_commits_are_safe_too(postgres: str) -> None:
    async with opened(postgres) as store:
        # Fsync is the server's, and off in that of the tests
        names = (
            "synchronous_commit",
            "idle_in_transaction_session_timeout",
        )
        shown = await store.writer.alone(
            lambda conn: [conn.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names]
        )
        assert shown == ["on", "4s"]


async def test_readers_cannot_write_and_do_not_checkpoint(sqlite: str) -> None:
    async with opened(sqlite) as store:
        readers = store.asks.readers
        pragma = "PRAGMA wal_autocheckpoint"
        assert await readers.run(lambda conn: conn.exec_driver_sql(pragma).scalar_one()) == 0
        with pytest.raises(OperationalError, match="readonly"):
            await readers.run(lambda conn: conn.execute(t.cursors.delete()))


async def test_damaged_pages_are_found_by_a_look_and_hold_up_nobody_who_needs_others(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.append(session, epoch, turn, [row(seq, b"x" * 900) for seq in range(1, 60)])
    assert (await check(sqlite)).complaints == ()
    pages = leaves(Path(sqlite), "journal")
    with Path(sqlite).open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE_BYTES)
            file.write(b"\xff" * PAGE_BYTES)
    found = await check(sqlite)
    assert found.broken == ("journal",)
    async with opened(sqlite) as store:
        with pytest.raises(Damaged):
            await store.turns.journal(turn)
        answers = await asyncio.gather(
            store.turns.append(session, epoch, turn, [row(60)]),
            store.inbox.accept(message("new")),
            return_exceptions=True,
        )
        assert isinstance(answers[0], Damaged | Fenced)
        assert isinstance(answers[1], Accepted)


async def test_a_plain_turn_writes_at_most_32_kib_of_log(sqlite: str) -> None:
    log = Path(f"{sqlite}-wal")
    async with opened(sqlite) as store:
        session, epoch = await session_of(store)

        async def turn() -> None:
            name = IDS.new("t")
            accepted = await store.inbox.accept(message(IDS.new("m"), cursor=("room", name)))
            await store.turns.start(session, epoch, name, [accepted.inbox_id], row(0, b"x" * 1024), 1, 2)
            await store.turns.close(session, epoch, name, [row(1, b"y" * 1024), row(2, b"z" * 1024)], "answered", 3)

        for _ in range(5):
            await turn()
        before = log.stat().st_size
        for _ in range(40):
            await turn()
        assert (log.stat().st_size - before) / 40 <= 32 * 1024


async def test_a_defect_in_a_lone_transaction_goes_to_its_caller_and_the_writer_goes_on(where: str) -> None:
    async with opened(where) as store:

        def broken(_conn: Connection) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.writer.alone(broken)
        await store.check()


async def test_who_is_outrun_by_others_again_and_again_is_told_so_in_the_end(where: str) -> None:
    tries = 0

    def outrun(_: Connection) -> None:
        nonlocal tries
        tries += 1
        if tries <= 4 * MOMENT_TRIES:
            raise IntegrityError("INSERT", None, ValueError("a key that another node has written"))

    async with opened(where) as store:
        with pytest.raises((IntegrityError, Rejected, Conflict)):
            await store.writer.alone(outrun)
        assert tries == MOMENT_TRIES
        await store.inbox.accept(message("after"))


async def test_an_unknown_session_is_a_conflict_in_words(where: str) -> None:
    async with opened(where) as store:
        with pytest.raises(Conflict, match="no session s_none"):
            await store.sessions.claim("s_none")
        with pytest.raises(Conflict, match="no session s_none"):
            await store.turns.append("s_none", 1, "t", [row(0)])


async def test_what_would_be_written_into_a_file_that_is_gone_is_refused_until_it_is_back(sqlite: str) -> None:
    path, away = Path(sqlite), Path(f"{sqlite}.away")
    async with opened(sqlite) as store:
        await store.inbox.accept(message("before"))
        path.rename(away)
        with pytest.raises(StorageUnavailable, match="removed"):
            await store.inbox.accept(message("while it is away"))
        path.write_bytes(b"")
        with pytest.raises(StorageUnavailable, match="another file"):
            await store.inbox.accept(message("beside another"))
        assert path.read_bytes() == b""
        away.replace(path)
        await store.inbox.accept(message("after"))
    async with opened(sqlite) as store:
        assert await store.inbox.by_key("bot", "after") is not None


async def test_what_is_written_is_counted_before_it_is_answered_and_a_mere_proof_is_not(where: str) -> None:
    async with opened(where) as store:
        counts = [store.changes.count]
        bell = Bell()
        store.changes.subscribe(bell)
        await store.inbox.accept(message("one", "s"))
        counts.append(store.changes.count)
        assert await bell.wait(0)
        await store.check()
        counts.append(store.changes.count)
        assert not await bell.wait(0)
        await store.writer.alone(lambda _: None)
        counts.append(store.changes.count)
        assert await bell.wait(0)
        store.changes.unsubscribe(bell)
        bell.close()
        assert counts == sorted(counts)
        assert [later > before for before, later in pairwise(counts)] == [True, False, True]


async def test_a_write_that_failed_is_counted_too(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be there, and who shows what is stored tells that it cannot be read."""
    async with opened(where) as store:
        before = store.changes.count

        async def away(_: object) -> object:
            raise OSError("gone")

        with monkeypatch.context() as gone:
            gone.setattr(store.writer.line, "transact", away)
            gone.setattr(store.writer.line, "briefly", away)
            with pytest.raises(StorageUnavailable):
                await store.check()
        assert store.changes.count > before


@pytest.mark.parametrize(("most", "batches"), [(1_000, 1), (170, 3)])
async def test_a_commit_holds_so_many_bytes_and_no_operation_waits_for_ever(
    sqlite: str, monkeypatch: pytest.MonkeyPatch, most: int, batches: int
) -> None:
    monkeypatch.setattr(writer, "BATCH_BYTES", most)
    async with opened(sqlite) as store:
        ops = [Accept(message(f"m{number}", f"c{number}", body=b"x" * 100)) for number in range(6)]
        before = store.figures.batches
        await asyncio.gather(*(store.writer.submit(one) for one in ops))
        assert store.figures.batches - before == batches
        assert store.figures.largest_batch == 6 // batches
