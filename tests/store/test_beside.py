"""The log of a SQLite database that is taken away, replaced or cut while it is used: what it held is saved, or nothing is made worse."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.store.database.beside import Beside, FileState, after, judged
from agent_core.store.database.lines import SqliteLine
from agent_core.store.database.place import parse_place
from agent_core.store.store import StorageUnavailable, Store
from tests.store.support import message, opened, row, turn_of

files = st.none() | st.tuples(st.integers(0, 2), st.integers(0, 5))
found = st.builds(Beside, files, st.integers(0, 4), files)


@given(found, found)
def test_only_what_is_there_as_it_was_or_larger_is_the_same(noted: Beside, now: Beside) -> None:
    kept = now.log is not None and now.log == noted.log and now.size >= noted.size
    assert (judged(noted, now) in (FileState.SAME, FileState.UNINDEXED)) is kept
    assert (judged(noted, now) is FileState.SAME) is (kept and now.index is not None and now.index == noted.index)


@given(found, found)
def test_what_another_put_there_is_never_noted_as_ours(noted: Beside, now: Beside) -> None:
    then = after(noted, now)
    assert (then.log, then.index) == (noted.log, noted.index)
    assert judged(then, now) is judged(noted, now) or now.log == noted.log
    assert judged(None, now) is FileState.SAME
    assert after(None, now) == now


def names(where: str) -> tuple[Path, Path, Path]:
    return Path(where), Path(f"{where}-wal"), Path(f"{where}-shm")


def keys_in(copy: Path) -> set[str]:
    """What another process would find, if this one died now."""
    with closing(sqlite3.connect(copy)) as conn:
        return {str(one[0]) for one in conn.execute("SELECT platform_key FROM inbox")}


def as_left(where: str, tmp_path: Path) -> Path:
    """The files as a kill leaves them, the log's index lost with the machine."""
    left = tmp_path / "left" / "copy.db"
    left.parent.mkdir(exist_ok=True)
    for end in ("", "-wal"):
        shutil.copyfile(f"{where}{end}", f"{left}{end}")
    return left


async def told(store: Store, key: str) -> str:
    await store.inbox.accept(message(key))
    return key


@pytest.mark.parametrize("taken", [("-wal", "-shm"), ("-wal",), ("-shm",), ("replaced",), ("all but the file", "-shm")])
async def test_a_log_that_is_taken_away_is_saved_before_the_next_write(
    sqlite: str, tmp_path: Path, taken: tuple[str, ...]
) -> None:
    database, log, index = names(sqlite)
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        first = await told(store, "before")
        assert not store.astray()
        if "replaced" in taken:
            log.rename(tmp_path / "away")
            shutil.copyfile(tmp_path / "away", log)
        for end in ("-wal", "-shm"):
            if end in taken or (end == "-wal" and "all but the file" in taken):
                Path(f"{sqlite}{end}").unlink()
        assert store.astray()
        second = await told(store, "after")
        assert not store.astray()
        assert log.exists()
        assert index.exists()
        assert {first, second} <= keys_in(as_left(sqlite, tmp_path))
        await store.turns.append(session, epoch, turn, [row(1)])
        assert len(await store.turns.journal(turn)) == 2
        assert store.logs_saved == (0 if taken == ("-shm",) else 1)
    assert {first, second} <= keys_in(database)


async def test_a_log_that_is_cut_is_not_written_on_and_what_is_whole_of_it_stays_whole(
    sqlite: str, tmp_path: Path
) -> None:
    database, log, _ = names(sqlite)
    async with opened(sqlite) as store:
        for number in range(60):  # so many that the tables themselves stand in the first half of the log
            await told(store, f"m{number}")
        with closing(sqlite3.connect(as_left(sqlite, tmp_path))) as conn:
            assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        os.truncate(log, log.stat().st_size // 2)
        with pytest.raises(StorageUnavailable, match="was cut"):
            await told(store, "after")
        with pytest.raises(StorageUnavailable, match="was cut"):
            await told(store, "again")
    with closing(sqlite3.connect(as_left(sqlite, tmp_path))) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    kept = keys_in(as_left(sqlite, tmp_path))
    assert "after" not in kept
    assert kept == {f"m{number}" for number in range(len(kept))}
    assert database.exists()


async def test_a_log_that_another_program_has_copied_into_the_file_is_no_trouble(sqlite: str) -> None:
    async with opened(sqlite) as store:
        await told(store, "before")
        with closing(sqlite3.connect(sqlite)) as other:
            assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        await told(store, "after")
        assert store.logs_saved == 0
    assert {"before", "after"} <= keys_in(Path(sqlite))


async def test_a_log_that_was_emptied_by_hand_is_told_and_nothing_is_written(sqlite: str, tmp_path: Path) -> None:
    async with opened(sqlite) as store:
        await told(store, "before")
        os.truncate(f"{sqlite}-wal", 0)
        with pytest.raises(StorageUnavailable, match="was cut"):
            await told(store, "after")
    with closing(sqlite3.connect(as_left(sqlite, tmp_path))) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_the_file_alone_that_comes_back_without_its_log_has_all_that_was_acknowledged(
    sqlite: str, tmp_path: Path
) -> None:
    database, log, index = names(sqlite)
    async with opened(sqlite) as store:
        await told(store, "before")
        database.rename(tmp_path / "away.db")
        log.unlink()
        index.unlink()
        with pytest.raises(StorageUnavailable, match="removed"):
            await told(store, "while it is away")
        (tmp_path / "away.db").rename(database)
        await told(store, "after")
        assert {"before", "after"} <= keys_in(as_left(sqlite, tmp_path))


def test_what_is_noted_is_of_the_handle() -> None:
    noted = Beside((1, 1), 3, (1, 2))
    assert after(noted, replace(noted, size=1)).size == 1
    assert SqliteLine(parse_place("/nowhere/at/all.db")).astray() is False  # type: ignore[arg-type]


async def test_what_proves_that_a_write_gets_through_is_written(sqlite: str) -> None:
    async with opened(sqlite) as store:
        before = Path(f"{sqlite}-wal").stat().st_size
        for _ in range(3):
            await store.check()
            after = Path(f"{sqlite}-wal").stat().st_size
            assert after > before
            before = after


@pytest.mark.parametrize("end", ["-wal", "-shm"])
async def test_a_directory_in_the_place_of_the_log_or_its_index_is_moved_away(
    sqlite: str, tmp_path: Path, end: str
) -> None:
    async with opened(sqlite) as store:
        keys = {await told(store, "before")}
        Path(f"{sqlite}{end}").unlink()
        Path(f"{sqlite}{end}").mkdir()
        (Path(f"{sqlite}{end}") / "theirs").write_text("kept")
        keys.add(await told(store, "after"))
        assert Path(f"{sqlite}{end}").is_file()
        assert [one.read_text() for one in tmp_path.rglob("theirs")] == ["kept"]
        assert keys_in(as_left(sqlite, tmp_path)) == keys
    async with opened(sqlite) as store:
        assert await told(store, "later") == "later"
