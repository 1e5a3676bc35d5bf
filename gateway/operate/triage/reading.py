"""``outspoken triage``: reads failures from the database or from log lines, and prints their groups. It decides nothing.

The database is opened for reading only, beside a running gateway or without one.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import re
import select
import stat
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path

from adapters.contract.chat import Cause
from agent_core.explain.why import asker_words
from agent_core.failures.errors import UnreadableJournal
from agent_core.failures.exits import ExitCode
from agent_core.failures.troubles import RemedyOutcome
from agent_core.journal.rows import decode
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import FailedPart
from agent_core.store.reading import open_reads
from agent_core.store.reads import Reads
from agent_core.store.troubles.rows import FailedTurn
from agent_core.turn.events import TurnOpened
from gateway.operate.triage.grouping import Group, Groups, SeenFailure, grouped, ranked
from gateway.operate.triage.issues import (
    NO_FAILURE,
    PUT_BACK,
    SET_ASIDE,
    cause_of,
    delivery_issue,
    dropped_issue,
    turn_issue,
)
from gateway.operate.triage.lines import LogReading, ended_well, sift, stamp_of
from gateway.operate.triage.report import Report, as_json, moment, text

NOTHING_WRONG, WRONG, CANNOT_TELL = 0, 1, 2
"""Exit statuses."""
DATABASE_MS = 7 * 24 * 3_600_000
"""How far back the database is read if nothing else is asked."""
MOST_NAMED = 20
"""In so many groups it is looked up who asked."""
LOOK_SECONDS = 1.0
ASK_SECONDS = 5.0
CHUNK = 1 << 20
_PACKED = b"\x1f\x8b"
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SPAN = re.compile(r"(\d{1,6})\s*([smhdw])")


class CannotTriage(Exception):
    """There is nothing to look at, in words for a person."""


@dataclass(frozen=True, slots=True)
class TriageRequest:
    """What was asked for."""

    sources: tuple[str, ...] = ()
    """Files, or ``-``; none: the database."""
    since: str = ""
    as_json: bool = False
    follow: bool = False
    limit: int = 10


def since_ms(words: str, now: int) -> int:
    """``2h``, ``30m``, ``7d`` before now, or an ISO 8601 time (UTC if it names no zone). Raises `CannotTriage`."""
    span = _SPAN.fullmatch(words.strip())
    if span is not None:
        return max(0, now - int(span[1]) * _UNITS[span[2]])
    try:
        found = datetime.fromisoformat(words.strip())
    except ValueError as error:
        raise CannotTriage(
            f"--since {words}: write a span such as 30m, 2h or 7d, or a time such as 2026-11-20T14:00."
        ) from error
    return max(0, round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000))


async def run(
    asked: TriageRequest, database: Callable[[], str | Path], now_ms: Callable[[], int], say: Callable[[str], None]
) -> int:
    """Print the groups; the exit status. `database` is only asked if no source is named. Raises `CannotTriage`."""
    since = since_ms(asked.since, now_ms()) if asked.since else None
    if asked.sources:
        return await _from_lines(asked, since, say)
    where = database()
    since = now_ms() - DATABASE_MS if since is None else since
    teller = Teller(asked, say)
    while True:
        report = await from_database(where, since, now_ms())
        teller.tell(report)
        if not asked.follow:
            return WRONG if report.groups else NOTHING_WRONG
        await asyncio.sleep(ASK_SECONDS)


@dataclass(slots=True)
class Teller:
    """Prints a report, and later ones only if failures were added."""

    asked: TriageRequest
    say: Callable[[str], None]
    _told: dict[str, int] | None = None

    def tell(self, report: Report) -> None:
        found = {key: group.times for key, group in report.groups.items()}
        if found == self._told:
            return
        if self.asked.as_json:
            self.say(as_json(report, self.asked.limit).decode())
        else:
            self.say(("" if self._told is None else "\n") + text(report, self.asked.limit))
        self._told = found


# ---------------------------------------------------------------------- the database


async def from_database(where: str | Path, since: int, now: int) -> Report:
    """What the database tells of failures since a time. Raises `CannotOpen` and `StorageUnavailable`, as every command that asks it."""
    async with open_reads(where) as reads:
        groups = await _groups(reads, since)
        await _name_askers(reads, ranked(groups, now)[:MOST_NAMED])
        turns = await reads.turns.count_closed(since)
    notes = (
        "The database knows nothing of connections: for those, give the log (journalctl -u outspoken -o cat | outspoken triage -).",
        "Nor is this a look for damage in the database itself: outspoken db check is.",
    )
    return Report(groups, f"the database, since {moment(since)}", now, turns, notes)


async def _groups(reads: Reads, since: int) -> Groups:
    clean = [code.value for code in ExitCode if ended_well(code.value)]
    dropped = await reads.inbox.dropped(since)
    restores = {row.at for row in dropped if row.reason == PUT_BACK}
    found = [_of_turn(row, restores) for row in await reads.troubles.failures(since, clean)]
    found += [_of_part(row) for row in await reads.deliveries.failed_parts(since)]
    found += [
        SeenFailure(dropped_issue(row.reason), row.at, conversation=row.session, surface=row.account.partition("/")[0])
        for row in dropped
        if row.reason not in NO_FAILURE
    ]
    return grouped(found)


async def _name_askers(reads: Reads, groups: Sequence[Group]) -> None:
    """Say with which key and of which agent the turns were asked that are shown: it stands in the first line of each journal."""
    for group in groups:
        for turn in group.examples:
            with suppress(UnreadableJournal):
                rows = await reads.turns.journal(turn, -1)
                opened = decode(rows[0].kind, rows[0].body) if rows else None
                if isinstance(opened, TurnOpened) and (words := asker_words(opened.key, opened.agent)):
                    group.askers[turn] = words


def _of_part(row: FailedPart) -> SeenFailure:
    platform, cause = row.surface.partition("/")[0], cause_of(row.cause)
    return SeenFailure(
        delivery_issue(platform, cause), row.at, cause != Cause.BLOCKED.value, row.surface, row.origin, platform,
        words=row.cause,
    )  # fmt: skip


def _of_turn(row: FailedTurn, restores: Collection[int]) -> SeenFailure:
    """`restores` is when backups were put back: what ended then was ended by that."""
    hurt = row.ended or not row.fingerprint
    by_restore = row.at in restores and not row.fingerprint and row.exit == ExitCode.INTERRUPTED_BY_RESTART
    issue = SET_ASIDE if by_restore else turn_issue(row.fingerprint or row.exit)
    outcome = RemedyOutcome.NOT_HELPED.value if row.ended else row.outcome
    return SeenFailure(
        issue, row.at, hurt, row.session, row.turn, row.key.partition("/")[0],
        row.remedy, outcome, row.cause.replace("_", " "),
    )  # fmt: skip


# ---------------------------------------------------------------------- lines


async def _from_lines(asked: TriageRequest, since: int | None, say: Callable[[str], None]) -> int:
    stamp = stamp_of(since) if since is not None else ""
    found = LogReading()
    teller = Teller(asked, say)
    tails = [Tail(source) for source in asked.sources]
    try:
        for tail in tails:
            sift(found, tail.more() if asked.follow else tail.all(), stamp)
        if not _is_no_log(found):  # of what else it is, nobody knows whether anything went wrong
            teller.tell(_report(found, asked))
        while asked.follow and not all(tail.over for tail in tails):
            await asyncio.sleep(LOOK_SECONDS)
            for tail in tails:
                sift(found, tail.more(), stamp)
            if not _is_no_log(found):
                teller.tell(_report(found, asked))
    except (OSError, EOFError, zlib.error) as error:
        raise CannotTriage(f"The log cannot be read: {error}.") from error
    finally:
        for tail in tails:
            tail.close()
    if _is_no_log(found):
        raise CannotTriage(
            f'None of the {found.lines} lines is a log event in JSON. Set [log] format = "json", and take journalctl with -o cat.'
        )
    return WRONG if found.groups else NOTHING_WRONG


def _is_no_log(found: LogReading) -> bool:
    """There are lines, and none of them is a log event."""
    return bool(found.lines) and found.unread == found.lines


def _report(found: LogReading, asked: TriageRequest) -> Report:
    words = f"{found.unread} lines are no log events in JSON, and were passed over."
    names = "standard input" if asked.sources == ("-",) else ", ".join(asked.sources)
    source = f"{found.lines:,} lines of {names}".replace(",", " ")
    return Report(found.groups, source, found.newest_ms, found.turns, (words,) if found.unread else ())


@dataclass(slots=True)
class Tail:
    """Lines of a file (plain or gzipped) or of standard input, and those that come to it. Raises OSError."""

    source: str
    over: bool = False
    """Nothing can come any more."""
    _file: io.BufferedReader | None = None
    _rest: bytes = field(default=b"")

    def all(self) -> Iterator[bytes]:
        """Every line until the end."""
        file = self._opened()
        # Looked at, and not taken: what is taken from a pipe comes from nowhere again.
        yield from gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == _PACKED else file
        self.over = True

    def more(self) -> Iterator[bytes]:
        """The whole lines that are there by now; a gzipped file is read to its end."""
        if self.over:
            return
        file = self._opened()
        lasts = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        if lasts and os.pread(file.fileno(), 2, 0) == _PACKED:
            yield from self.all()
            return
        while True:
            if not select.select([file], [], [], 0)[0]:
                return
            chunk = os.read(file.fileno(), CHUNK)
            if not chunk:
                break
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            yield from lines
        if not lasts:
            self.over = True  # a pipe that was closed
        elif self._stays(file):
            return
        if self._rest:
            yield self._rest
        self.close()

    def _stays(self, file: io.BufferedReader) -> bool:
        """Whether the file is still the one of that name, and was not cut: if not, it is opened anew at the next look."""
        if self.source == "-":
            return True
        ours = os.fstat(file.fileno())
        try:
            now = Path(self.source).stat()
        except FileNotFoundError:
            return True  # between two names
        return ours.st_ino == now.st_ino and now.st_size >= os.lseek(file.fileno(), 0, os.SEEK_CUR)

    def _opened(self) -> io.BufferedReader:
        if self._file is None:
            # Standard input is not ours to close.
            self._file = io.BufferedReader(
                io.FileIO(0, closefd=False) if self.source == "-" else io.FileIO(self.source)
            )
        return self._file

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest = None, b""
