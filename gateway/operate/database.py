"""``outspoken db``: is the database sound, a copy of it while it is used, and putting a copy back.

A database that is put back believes what was true when it was copied. What has happened since is not in it: messages that were answered
wait again, parts that were sent are to be sent, history that was read is to be read. So whatever was open then is set aside (or, with
`resume`, taken up as after a crash), and reading goes on where the replaced database was, if that can still be read, else from now.
"""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from adapters.checks.findings import Finding, Seen, Severity, note, ok, problem, warning
from adapters.platforms import platform_of
from agent_core.driver.closing import TurnIdentity, closing_of
from agent_core.failures.exits import InterruptedByRestart
from agent_core.failures.notices import RESTORED
from agent_core.limits.quotas import size_words
from agent_core.records import dataclass
from agent_core.store.database.lines import prepare_file
from agent_core.store.database.look import DatabaseSeen, holder_of, look
from agent_core.store.database.ownership import FileLock
from agent_core.store.database.place import SqlitePlace, parse_place
from agent_core.store.database.shape import not_whole, not_whole_on, upgrade_copy
from agent_core.store.errors import CannotOpen, DatabaseTooNew, NotOurDatabase, StorageUnavailable
from agent_core.store.keeping.backup import CannotCopy, back_up, must_be_apart, put_back
from agent_core.store.keeping.checking import Soundness, check
from agent_core.store.reading import open_reads
from agent_core.store.sessions.asides import Aside
from agent_core.store.tables import row_id
from agent_core.store.turns.rows import ROWS_A_TURN
from gateway.config.paths import Paths
from gateway.config.sections import Config
from gateway.operate.triage.issues import PUT_BACK
from gateway.schedule.schedules import UnreadablePlan, doubted

NUMBER_GAP = 1_000_000
"""By so much the numbers of messages go on behind a restore: names that are made of them were used since the backup was made."""
POSTGRES_BACKUP = (
    "This database is PostgreSQL's: use its own tools, which copy while the gateway runs:\n"
    "  pg_dump --format=custom --file=outspoken.dump {shown}\n"
    "and to put it back, with all gateways stopped, into an empty database:\n"
    "  pg_restore --single-transaction --no-owner --dbname={shown} outspoken.dump\n"
    "Then outspoken db check, and start the gateway: it goes on with what was open as after a crash, so restore only what is recent."
)


@dataclass(frozen=True, slots=True)
class Restored:
    """What putting a backup back has done."""

    kept: Path | None
    """The database that was there before; None if there was none."""
    turns: int = 0
    messages: int = 0
    parts: int = 0
    reminders: int = 0
    """Reminders and scheduled prompts that were due since the backup was made."""
    marks: str = ""
    """From where chats' history is read on, in words."""


@dataclass(slots=True)
class _Counts:
    turns: int = 0
    messages: int = 0
    parts: int = 0
    reminders: int = 0
    read: bool = False
    """Some history of chats was read."""
    cursors: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])


def _where(config: Config, paths: Paths) -> str | Path:
    return config.storage.url or paths.database


# ---------------------------------------------------------------------- check


async def checked(config: Config, paths: Paths, *, thorough: bool) -> list[Finding]:
    """Everything that can be said of the database without changing it. Raises CannotOpen if it cannot even be opened."""
    where = _where(config, paths)
    seen = await look(where)
    holder = await asyncio.to_thread(holder_of, seen.file) if seen.file is not None else None
    if not seen.exists:
        raise CannotOpen(_none_there(seen.shown, runs=holder != 0))
    findings = [judged_schema(seen, runs=holder != 0)]
    findings += await _judged_shape(seen, where)
    findings += judged_soundness(seen, await check(where, thorough=thorough), thorough=thorough)
    if seen.revision == seen.newest and all(one.level.value in ("ok", "note") for one in findings):
        runs = holder != 0
        async with open_reads(where) as reads:
            aside = await reads.asides.all()
            lying = 0 if runs else len(await reads.deliveries.lying())
        findings += judged_asides(seen, aside)
        if runs:
            findings.append(
                note("database.deliveries", "What is being delivered was not looked at: a gateway may be running.")
            )
        elif lying:
            what = f"{lying} part(s) of answers are still to be sent or changed; the next start does that."
            findings.append(note("database.deliveries", what))
        else:
            findings.append(ok("database.deliveries", "Every part of every answer is as it should be."))
    return findings


async def pages(config: Config, paths: Paths) -> Seen:
    """For `doctor`: whether what is stored can be read, and what was set aside because it could not."""
    where = _where(config, paths)
    try:
        seen = await look(where)
        if seen.revision != seen.newest:
            return Seen(())  # whether there is one, and of which schema, is said by others
        findings = judged_soundness(seen, await check(where), thorough=False)
    except CannotOpen:
        return Seen(())  # why it cannot be opened is said by others
    try:
        if all(one.level is not Severity.PROBLEM for one in findings):
            findings += await _judged_shape(seen, where)
        async with open_reads(where) as reads:
            findings += judged_asides(seen, await reads.asides.all())
    except CannotOpen:
        pass  # said by others
    except StorageUnavailable as error:
        findings.append(problem("database.damage", f"The database could not be looked through: {error}", _fix(seen)))
    return Seen(tuple(findings))


async def _judged_shape(seen: DatabaseSeen, where: str | Path) -> list[Finding]:
    """Whether it has the tables, columns and indexes of its revision."""
    if seen.revision is None:
        return []
    if seen.file is not None:
        why = await asyncio.to_thread(not_whole, seen.file)
        return [problem("database.schema", f"{seen.shown} is not whole: {why}.", DAMAGED_FIX)] if why else []
    if seen.revision != seen.newest:
        return []
    async with open_reads(where) as reads:
        why = await reads.asks.readers.run(not_whole_on)
    return (
        [problem("database.schema", f"{seen.shown} was changed by somebody else: {why}.", CHANGED_FIX)] if why else []
    )


def judged_asides(seen: DatabaseSeen, found: Sequence[Aside]) -> list[Finding]:
    """What was set aside."""
    if not found:
        return []
    named = ", ".join(f"{one.key} ({one.session})" for one in found[:5])
    what = f"{len(found)} conversation(s) were set aside, because they cannot be read: {named}. A new one was begun in the chat of each."
    return [warning("database.aside", what, _fix(seen))]


CHANGED_FIX = (
    "Undo that, or put a backup back (outspoken db restore says how): what is stored there may fail, for everybody. "
    "Programs that want to be told of changes find them in the server's log (logical replication), without a trigger."
)
DAMAGED_FIX = (
    "Keep a copy of the file, look at the disk, and restore a backup (outspoken db restore), or run SQLite's '.recover' on the copy. "
    "outspoken status says whether the gateway takes messages meanwhile."
)

SERVER_FIX = (
    "Look at the disk and at the log of the PostgreSQL server, and keep a copy of its data directory, made while it is stopped. Then put a backup back "
    "(outspoken db restore says how). outspoken status says whether the gateway takes messages meanwhile."
)


def _fix(seen: DatabaseSeen) -> str:
    """What to do about what cannot be read."""
    return DAMAGED_FIX if seen.file is not None else SERVER_FIX


def _none_there(shown: str, *, runs: bool) -> str:
    if runs:
        return (
            f"There is no database at {shown}, and a gateway that works on it runs: it was removed or moved. Put it back; the gateway then goes "
            "on by itself. If it is gone, stop the gateway and restore a backup: outspoken db restore."
        )
    return f"There is no database at {shown} yet."


def judged_schema(seen: DatabaseSeen, *, runs: bool) -> Finding:
    """What the revision of the schema amounts to."""
    if seen.revision == seen.newest:
        return ok("database.schema", f"{seen.shown} has the schema of this version ({seen.newest}); {seen.engine}.")
    if seen.revision is None:
        what = f"{seen.shown} holds nothing of this program: no table, or not which schema it has."
        fix = f"If a gateway has run with it, its content is gone, or was in a log that was removed ({seen.shown}-wal): outspoken db restore."
        if runs:
            fix = "A gateway runs on it: its log was removed or replaced. It notices that within seconds, and saves what it can: look again."
        return problem("database.schema", what, fix)
    what = f"{seen.shown} has an older schema ({seen.revision}; this version's is {seen.newest})."
    return note("database.schema", what, "The next start of the gateway upgrades it.")


def judged_soundness(seen: DatabaseSeen, found: Soundness, *, thorough: bool) -> list[Finding]:
    """What a look at the pages amounts to."""
    findings: list[Finding] = []
    if found.complaints:
        named = "; ".join(found.complaints[:3])
        more = f", and {len(found.complaints) - 3} more" if len(found.complaints) > 3 else ""
        what = f"{seen.shown} is damaged in {', '.join(found.broken)}: {named}{more}."
        findings.append(problem("database.damage", what, _fix(seen)))
    if found.not_looked:
        findings.append(note("database.damage", found.not_looked))
    elif not found.complaints and found.tables:
        how = "all pages, indexes and references" if thorough else "all pages"
        findings.append(ok("database.damage", f"{found.tables} tables were looked at ({how}), and are sound."))
    return findings


# ---------------------------------------------------------------------- backup


def sqlite_path(config: Config, paths: Paths) -> Path | None:
    """The file of the database; None if it is PostgreSQL's."""
    place = parse_place(_where(config, paths))
    return place.path if isinstance(place, SqlitePlace) else None


def postgres_words(config: Config, paths: Paths) -> str:
    """What to do in place of a backup of ours."""
    return POSTGRES_BACKUP.format(shown=parse_place(_where(config, paths)).shown)


async def backup(database: Path, to: Path, paths: Paths, workspaces: Path) -> Sequence[str]:
    """Make a backup; what was done, in lines. Raises `CannotCopy`, CannotOpen."""
    await look(database)  # that it is ours, in words if not
    made = await asyncio.to_thread(back_up, database, to)
    return (
        f"{made.to} is a whole copy of {database} ({size_words(made.size)}), looked at and readable by you only.",
        "In it: conversations, answers on their way, memories, reminders, people, budgets, pictures of messages.",
        (
            f"Not in it: the files of workspaces ({workspaces}), files on their way ({paths.state_dir / 'outbox'}), the configuration and its "
            "keys. Copy these folders with whatever copies your files."
        ),
    )


# ---------------------------------------------------------------------- restore


async def restore(backup_file: Path, database: Path, now_ms: int, *, resume: bool) -> Restored:
    """Put a backup in the place of the database. Raises `CannotCopy`, CannotOpen; then everything is as it was."""
    await _whole(backup_file, database)
    stamp = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    kept = database.with_name(f"{database.name}.before-restore-{stamp}")
    missing = await asyncio.to_thread(_prepared, database)
    lock = await FileLock.acquire(database)
    try:
        counts = _Counts(cursors=[] if missing else await asyncio.to_thread(cursors_of, database))
        settle = _settling(counts, now_ms, resume=resume)
        await asyncio.to_thread(put_back, backup_file, database, kept, upgrade_copy, settle)
    finally:
        lock.release()
        if missing:
            await asyncio.to_thread(_emptied, database, kept)
    marks = (
        ""
        if not counts.read
        else "from where the replaced database was"
        if counts.cursors
        else "from now on, because the replaced database could not tell how far it was read: what was written to the bot since it stopped "
        "is not answered"
    )
    return Restored(None if missing else kept, counts.turns, counts.messages, counts.parts, counts.reminders, marks)


async def _whole(backup_file: Path, database: Path) -> None:
    """What is put back is looked at as a whole before anything is touched. Raises `CannotCopy`, CannotOpen."""
    await asyncio.to_thread(_looked_at, backup_file, database)
    try:
        await look(backup_file)  # that it is ours, in words if not
        found = await check(backup_file, thorough=True)
    except (DatabaseTooNew, NotOurDatabase):
        raise
    except CannotOpen as error:
        what = str(error).partition(". ")[0]  # what to do about a database is nothing to do about a copy of it
        raise CannotCopy(f"{what}. So it is not put back, and nothing was changed. Take another backup.") from error
    if found.complaints:
        raise CannotCopy(
            f"{backup_file} is damaged itself ({found.complaints[0]}), so it is not put back. Take an older one."
        )
    if why := await asyncio.to_thread(not_whole, backup_file):
        raise CannotCopy(f"{backup_file} is not whole: {why}. It is not put back. Take another backup.")


def _looked_at(backup_file: Path, database: Path) -> None:
    """It is a file of its own that holds something; a pipe would be waited for, for ever."""
    must_be_apart(backup_file, database)
    try:
        kind = backup_file.stat()
    except OSError as error:
        why = "" if isinstance(error, FileNotFoundError) else f" that can be read ({error.strerror})"
        raise CannotCopy(f"There is no backup{why} at {backup_file}.") from error
    if not stat.S_ISREG(kind.st_mode):
        raise CannotCopy(f"{backup_file} is no file, so it is no backup.")
    if not kind.st_size:
        raise CannotCopy(f"The file {backup_file} is empty, so it is no backup.")


def _prepared(database: Path) -> bool:
    """There is something to lock; whether there was nothing before."""
    missing = not database.exists()
    if missing:
        prepare_file(database)
    return missing


def _emptied(*files: Path) -> None:
    """What was made to be locked, and holds nothing, goes."""
    for file in files:
        if file.exists() and not file.stat().st_size:
            file.unlink()


def cursors_of(database: Path) -> list[tuple[str, str, str]]:
    """How far a database has read, if that can still be read."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True, timeout=5)) as conn:
            return [
                (str(a), str(b), str(c)) for a, b, c in conn.execute("SELECT account, channel, last_seen FROM cursors")
            ]
    except sqlite3.Error:
        return []


def moved_on(account: str, last_seen: str, at_ms: int) -> str:
    """A mark of how far a chat was read, moved on to a time; as it is where it is no such mark. Pure."""
    platform = platform_of(account.partition("/")[0])
    return last_seen if platform is None else platform.moved_on(last_seen, at_ms)


def _settling(counts: _Counts, now_ms: int, *, resume: bool) -> Callable[[sqlite3.Connection], None]:
    """Makes a copied database true again, in its transaction."""

    def settle(conn: sqlite3.Connection) -> None:
        known = {(a, c): seen for a, c, seen in counts.cursors}
        for account, channel, last_seen in conn.execute("SELECT account, channel, last_seen FROM cursors").fetchall():
            told = known.pop((account, channel), None)
            after = (
                told
                if told is not None
                else last_seen
                if channel.startswith("dm:")
                else moved_on(account, last_seen, now_ms)
            )
            conn.execute(
                "UPDATE cursors SET last_seen = ? WHERE account = ? AND channel = ?", (after, account, channel)
            )
        counts.read = bool(conn.execute("SELECT 1 FROM cursors").fetchone()) or bool(known)
        conn.executemany("INSERT INTO cursors VALUES (?, ?, ?)", [(*key, seen) for key, seen in known.items()])
        _leave_a_gap(conn, now_ms)
        if not resume:
            _set_aside(conn, counts, now_ms)

    return settle


def _leave_a_gap(conn: sqlite3.Connection, now_ms: int) -> None:
    """Numbers of messages that were given since the backup was made are not given again: calls of platforms are named by them."""
    session = f"s_restored{now_ms}"
    conn.execute(
        "INSERT INTO sessions (session, key, epoch, created_at, last_at) VALUES (?, ?, 0, ?, ?)",
        (session, f"restore/{now_ms}/", now_ms, now_ms),
    )
    conn.execute(
        "INSERT INTO inbox (id, account, platform_key, session, arrival, lane, body, state, reason, received_at) "
        "SELECT coalesce(max(id), 0) + ?1, 'restore', ?2, ?3, coalesce(max(id), 0) + ?1, 'normal', x'', 'dropped', ?4, ?5 FROM inbox",
        (NUMBER_GAP, str(now_ms), session, PUT_BACK, now_ms),
    )


def _set_aside(conn: sqlite3.Connection, counts: _Counts, now_ms: int) -> None:
    ending = InterruptedByRestart(detail=RESTORED)
    open_turns = conn.execute(
        "SELECT t.turn, t.session, s.epoch, t.first_message, (SELECT coalesce(max(seq), -1) FROM journal j "
        "WHERE j.id >= t.first_message * ?1 AND j.id < (t.first_message + 1) * ?1) "
        "FROM turns t JOIN sessions s ON s.session = t.session WHERE t.state = 'open'",
        (ROWS_A_TURN,),
    ).fetchall()
    for turn, session, epoch, first, last in open_turns:
        end = closing_of(TurnIdentity(turn, session, epoch), ending, now_ms, last + 1)
        rows = [(row_id(first, row.seq), row.seq, epoch, row.kind, row.body, row.at) for row in end.rows]
        conn.executemany("INSERT INTO journal (id, seq, epoch, kind, body, at) VALUES (?, ?, ?, ?, ?, ?)", rows)
        conn.execute(
            "UPDATE turns SET state = 'closed', exit = ?, closed_at = ? WHERE turn = ?",
            (end.exit.code.value, end.at, turn),
        )
        conn.execute("UPDATE inbox SET state = 'done' WHERE session = ? AND turn = ?", (session, turn))
    counts.turns = len(open_turns)
    counts.messages = conn.execute(
        "UPDATE inbox SET state = 'dropped', reason = ? WHERE state = 'new'", (RESTORED,)
    ).rowcount
    counts.parts = conn.execute(
        "UPDATE deliveries SET state = 'failed', cause = ?, at = ? WHERE state IN ('wanted', 'sending', 'unknown')",
        (RESTORED, now_ms),
    ).rowcount
    conn.execute("UPDATE deliveries SET final = 1 WHERE state = 'sent' AND final = 0")
    counts.reminders = _doubt(conn, now_ms)


def _doubt(conn: sqlite3.Connection, now_ms: int) -> int:
    """What was due since the backup was made has most likely happened: if it happens again, it says so."""
    due = "SELECT schedule, body FROM schedules WHERE next_at IS NOT NULL AND next_at <= ?"
    for schedule, body in conn.execute(due, (now_ms,)).fetchall():
        with suppress(UnreadablePlan):  # whoever claims it says so
            changed = (doubted(bytes(body), now_ms), schedule)
            conn.execute("UPDATE schedules SET body = ? WHERE schedule = ?", changed)
    waiting = conn.execute("SELECT count(*) FROM schedules WHERE next_at IS NOT NULL AND next_at <= ?", (now_ms,))
    return int(waiting.fetchone()[0])


def restored_lines(done: Restored, database: Path, *, resume: bool) -> Sequence[str]:
    """What was done, for a person."""
    before = f" What was there before is kept as {done.kept}; remove it when all is well." if done.kept else ""
    lines = [f"{database} is the backup now.{before}"]
    if resume:
        lines.append("What was open when the backup was made is taken up at the next start, as after a crash.")
    elif done.turns or done.messages or done.parts:
        lines.append(
            f"Set aside, because they were most likely done since: {done.turns} open turn(s), {done.messages} waiting message(s), "
            f"{done.parts} part(s) of answers. Nobody is told anything twice; outspoken status lists the parts, and the console sends one again."
        )
    lines += [
        *([f"The history of chats is read on {done.marks}."] if done.marks else []),
        (
            "What happened since the backup was made is not in it: conversations, memories and what was spent. Reminders that were due since are "
            f"said at the next start{'' if resume else ', and say that this may be the second time'}: {done.reminders}."
        ),
    ]
    return lines
