"""A store of a million turns, made of a few hundred real ones: each copy is as if the same had been said later, by others.

    python -m tests.bench.grown HOME --turns 1000000

What `tests.bench.played` left in the database of HOME is copied until there are so many turns, over a year that ends now. What an id, a time or a number becomes in a copy is told by its form; so every
table that grows with turns grows, nothing needs to know what its rows are for, and `outspoken audit` can say whether all of it is sound. A conversation goes on in `CHAPTERS` of the copies; a request that
belongs to none is another one in each. Bodies that are packed are packed anew, with words of their own.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from agent_core.limits.retention import DAY_MS
from agent_core.ports import SystemClock, time_mark
from agent_core.store.keeping.packing import MARK, Piece, missing, needed, pack, piece_of, squeezed, unpacked
from agent_core.store.tables import row_id
from agent_core.store.turns.rows import timed, untimed
from gateway.explain.ids import time_in
from tests.bench.played import SALT

CHAPTERS = 3
DAYS = 365
SPREAD = 0.9
"""So much of the time between two copies is filled."""
AT_ONCE = 20
"""Copies of one transaction."""
COPIED = (
    "sessions", "inbox", "turns", "journal", "tool_calls", "deliveries", "troubles", "incidents", "reservations", "hooks", "schedules", "occurrences",
    "memory", "people", "places", "cursors", "audit", "adapter_states",
)  # fmt: skip
MADE_ANEW = ("budgets", "pieces")
NUMBERS = {
    ("inbox", "id"), ("inbox", "arrival"), ("turns", "first_message"), ("turns", "last_message"), ("deliveries", "id"), ("deliveries", "place"), ("hooks", "number"), ("occurrences", "inbox"),
}  # fmt: skip
PLACES = {("turns", "number"), ("sessions", "since"), ("sessions", "tip")}
"""Where a turn stands in its conversation."""
TIMES = re.compile(r"(.*_)?(at|until)|deadline|done_to")
TOKEN = re.compile(
    r"\b(?:(?P<ours>[a-z]+_[0-9a-z]{20})|(?P<hook>msg_[0-9a-z]{32})|(?P<number>(?:inbox|remind):\d+)|(?P<person>555[09]\d{5})|(?P<message>777\d{6})|(?P<snow>1[1-9]\d{17})"
    r"|(?P<slack>[CDUG]0000\d{6})|(?P<file>F0000\d{6})|(?P<stamp>1[78]\d{8}\.\d{6})|(?P<time>1[78]\d{11})|(?P<page>c-page-of-\d{4}(?:-\d+)?)|(?P<name>(?:caller|talk)-\d{4})|(?P<browser>browser:[0-9a-f]{24}))\b"
    rf"|(?P<salt>{SALT})"
)
"""Everything by which one copy differs from another."""

Value: TypeAlias = "str | bytes | int | float | None"
Row: TypeAlias = "tuple[Value, ...]"


@dataclass(frozen=True)
class Template:
    """What is copied."""

    began: int
    """When, ms."""
    over: int
    width: int
    """Between the number of a row and that of its copy."""
    lasting: dict[str, int]
    """Conversations that go on from chapter to chapter, with the number of their turns; and the chats and people of Discord."""
    step: int
    """From copy to copy, ms."""
    first: int
    """When the first copy begins, ms."""
    groups: int

    @property
    def stretch(self) -> float:
        return self.step * SPREAD / (self.over - self.began)


class Copy(dict[str, str]):
    """What each id, time and number of the template is in the copy with the number `k`; found out when it is first asked for."""

    def __init__(self, template: Template, k: int) -> None:
        super().__init__()
        self.template, self.k = template, k
        self.chapter, self.group = divmod(k, template.groups)
        self.last = self.chapter == CHAPTERS - 1
        self.shift = k * template.width

    def at(self, then: int, k: int = -1) -> int:
        """When that is. What is meant to be long after all of it stays as long after."""
        made = self.template
        base = made.first + (self.k if k < 0 else k) * made.step
        if then < made.began:  # the day in which it is
            return base // DAY_MS * DAY_MS + then - made.began // DAY_MS * DAY_MS
        return base + round((min(then, made.over) - made.began) * made.stretch) + max(0, then - made.over)

    def __missing__(self, whole: str) -> str:
        found = TOKEN.fullmatch(whole)
        assert found is not None
        self[whole] = made = self._made(whole, str(found.lastgroup))
        return made

    def _made(self, whole: str, kind: str) -> str:
        group, lasts = self.group, whole in self.template.lasting
        match kind:
            case "ours":
                head, mark = whole.split("_")
                return f"{head}_{time_mark(self.at(time_in(whole) or 0, group if lasts else -1))}{mark[10:]}"
            case "hook":
                return f"{whole[:-6]}{self.k:06}"
            case "number":
                head, number = whole.split(":")
                return f"{head}:{int(number) + self.shift}"
            case "person":
                return str(int(whole) + group * 10**10)
            case "message":
                return str(int(whole) + self.k * 10_000)
            case "snow":
                at = time_in(whole) or 0
                return str(int(whole) + (group * 1_000 if lasts else self.at(at) - at << 22))
            case "slack":
                return f"{whole[0]}{group:04}{whole[5:]}"
            case "file":
                return f"F{self.k:04}{whole[5:]}"
            case "stamp":
                seconds, rest = whole.split(".")
                now = self.at(int(seconds) * 1000 + int(rest[:3]))
                return f"{now // 1000}.{now % 1000:03}{rest[3:]}"
            case "time":
                return str(self.at(int(whole)))
            case "page":
                return f"{whole[:14]}{group:04}{whole[14:]}{f'{self.chapter}' * (len(whole) > 14)}"
            case "name":
                return f"{whole}{group:04}"
            case "browser":
                return f"{whole[:-8]}{group:08x}"
            case _:
                return f"nr-{self.k:04}"


Cell: TypeAlias = Callable[[Copy], Value]


def written(text: str) -> Callable[[Copy], str] | None:
    """Makes the text of a copy; None if it is the same in all."""
    names = [found[0] for found in TOKEN.finditer(text)]
    if not names:
        return None
    pattern = TOKEN.sub("%s", text.replace("%", "%%"))
    return lambda copy: pattern % tuple([copy[name] for name in names])


def always(text: str) -> Callable[[Copy], str]:
    """The same, also of a text that is the same in all."""

    def unchanged(_: Copy) -> str:
        return text

    return written(text) or unchanged


@dataclass
class Pieces:
    """All that is beside the bodies: those of the template, and what is stored of the copies."""

    known: dict[bytes, Piece]
    stored: dict[bytes, list[int]] = field(default_factory=dict[bytes, "list[int]"])
    """How many gaps each fills, and when it was last used."""
    new: list[Row] = field(default_factory=list[Row])

    def whole(self, body: bytes) -> bytes:
        assert not missing([body], self.known)
        return unpacked(body, self.known)

    def pack(self, body: bytes, at: int) -> bytes:
        made = pack(body)
        offered = {piece.digest: piece for piece in made.pieces}
        pending = list(needed(made.body))
        while pending:
            digest = pending.pop()
            if (known := self.stored.get(digest)) is not None:
                known[0], known[1] = known[0] + 1, max(known[1], at)
                continue
            piece = offered[digest]
            self.stored[digest] = [1, at]
            content, compressed = squeezed(piece)
            self.new.append((digest, piece.form.value, content, "zlib" if compressed else "plain", len(piece.content)))
            pending += piece.below
        return made.body


@dataclass
class Rows:
    """The rows of one table, as they are made for each copy."""

    table: str
    columns: list[str]
    rows: list[Row]
    template: Template
    pieces: Pieces

    def __post_init__(self) -> None:
        self.plans = [(list(row), list(self._changes(row))) for row in self.rows]
        marks = ", ".join("?" * len(self.columns))
        names = ", ".join(f'"{one}"' for one in self.columns)
        self.insert = f"INSERT OR REPLACE INTO {self.table} ({names}) VALUES ({marks})"

    def _changes(self, row: Row) -> Iterator[tuple[int, Cell]]:
        named = dict(zip(self.columns, row, strict=True))
        for place, (column, value) in enumerate(named.items()):
            change = self._change(column, value, named)
            if change is not None:
                yield place, change

    def _change(self, column: str, value: Value, row: dict[str, Value]) -> Cell | None:
        match value:
            case int() if (self.table, column) in NUMBERS:
                return (lambda copy: value + copy.shift) if value > 0 else None
            case int() if (self.table, column) == ("journal", "id"):
                return lambda copy: value + row_id(copy.shift, 0)
            case int() if (self.table, column) in PLACES:
                turns = self.template.lasting.get(str(row["session"]), 0)
                return (lambda copy: value + copy.chapter * turns) if value > 0 and turns else None
            case int() if column == "created_at":
                lasts = str(row.get("session")) in self.template.lasting
                return lambda copy: copy.at(value, copy.group if lasts else -1)
            case int() if TIMES.fullmatch(column):
                return (lambda copy: copy.at(value)) if value > 10**12 else None
            case str():
                return written(value)
            case bytes() if self.table in ("journal", "inbox") and value.startswith(MARK):
                return self._packed(value, int(str(row.get("at") or row.get("received_at"))))
            case bytes():
                made = written(value.decode())
                return made and (lambda copy: made(copy).encode())
            case _:
                return None

    def _packed(self, value: bytes, at: int) -> Cell:
        text = self.pieces.whole(timed(value, at) if self.table == "journal" else value).decode()
        made = always(text)

        def cell(copy: Copy) -> bytes:
            now = copy.at(at)
            body = self.pieces.pack(made(copy).encode(), now)
            return untimed(body, now) if self.table == "journal" else body

        return cell

    def of(self, copy: Copy) -> list[list[Value]]:
        """The rows of this copy."""
        made: list[list[Value]] = []
        for constant, changes in self.plans:
            row = constant.copy()
            for place, change in changes:
                row[place] = change(copy)
            made.append(row)
        match self.table:
            case "deliveries":
                want, printed = self.columns.index("want"), self.columns.index("want_hash")
                for row in made:
                    row[printed] = hashlib.blake2b(bytes(row[want]), digest_size=8).hexdigest()  # type: ignore[arg-type]
            case "incidents" if copy.k < self.template.groups * CHAPTERS - 1:  # one of a kind is open at a time
                state, closed, latest = (self.columns.index(one) for one in ("state", "closed_at", "last_at"))
                for row in made:
                    row[state], row[closed] = "closed", row[latest]
            case "schedules" if not copy.last:  # a time that is to come is one of the last months
                made = [row for row in made if row[self.columns.index("state")] != "active"]
            case _:
                pass
        return made


def budgets(rows: Iterable[Row], copies: Iterable[Copy]) -> Iterator[Row]:
    """What was spent, by whom, on which day: a day has several copies."""
    plans = [(always(str(row[0])), row) for row in rows]
    pots: dict[tuple[str, int], list[int]] = {}
    for copy in copies:
        for scope, (_, window, until, *used, warned, at) in plans:
            day = copy.at(int(str(window))) if window else 0
            pot = pots.setdefault(
                (scope(copy), day), [day and day + int(str(until)) - int(str(window)), *[0] * len(used), 0, 0]
            )
            pot[1:-2] = [a + int(str(b)) for a, b in zip(pot[1:-2], used, strict=True)]
            pot[-2:] = [int(str(warned)), copy.at(int(str(at)))]
    return ((scope, day, *pot) for (scope, day), pot in pots.items())


def template_of(database: sqlite3.Connection, turns: int, now: int) -> Template:
    """What is to be copied how often."""

    def ask(query: str) -> list[Any]:
        return database.execute(query).fetchall()

    ((began, over),) = ask(
        "SELECT (SELECT min(received_at) FROM inbox) - 1000, max((SELECT max(closed_at) FROM turns), (SELECT max(at) FROM deliveries), (SELECT max(done_at) FROM hooks)) + 1000"
    )
    ((width,),) = ask(
        "SELECT max((SELECT max(id) FROM inbox), (SELECT max(id) FROM deliveries), (SELECT max(number) FROM hooks)) + 1"
    )
    ((played,),) = ask("SELECT count(*) FROM turns")
    groups = max(1, round(turns / played / CHAPTERS))
    step = DAYS * DAY_MS // (groups * CHAPTERS)
    lasting: dict[str, int] = {}
    for query in ("SELECT key FROM sessions", "SELECT person FROM inbox", "SELECT person FROM people"):
        lasting |= {one: 0 for (text,) in ask(query) for one in re.findall(r"\b1[1-9]\d{17}\b", text)}
    made = Template(began, over, width, lasting, step, now - groups * CHAPTERS * step, groups)
    first, later = Copy(made, 0), Copy(made, groups)
    for session, key, count in ask(
        "SELECT s.session, s.key, (SELECT count(*) FROM turns AS t WHERE t.session = s.session) FROM sessions AS s"
    ):
        if (one := written(key)) is None or one(first) == one(later):
            lasting[session] = count
    return made


def pieces_of(database: sqlite3.Connection) -> Pieces:
    rows = database.execute("SELECT digest, form, stored, how FROM pieces")
    return Pieces(
        {digest: piece_of(digest, form, stored, compressed=how == "zlib") for digest, form, stored, how in rows}
    )


def nodes(database: sqlite3.Connection, template: Template) -> None:
    """Earlier starts: one each day."""
    day = [
        (number + 2, f"n{number}", template.first + number * DAY_MS, template.first + (number + 1) * DAY_MS)
        for number in range(DAYS)
    ]
    database.executemany(
        "INSERT INTO nodes (node, name, started_at, version, boot_id, ended_at) VALUES (?, ?, ?, 'bench', '', ?)", day
    )
    database.execute("UPDATE nodes SET ended_at = started_at WHERE ended_at IS NULL")


def grow(path: Path, turns: int) -> None:
    """Copy what is stored there. The indexes are made when the rows are there."""
    with closing(sqlite3.connect(path)) as database, database:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1500000"):
            database.execute(f"PRAGMA {setting}")
        template, pieces = template_of(database, turns, SystemClock().now_ms()), pieces_of(database)
        kept: list[Rows] = []
        for table in COPIED:
            read = database.execute(f"SELECT * FROM {table}")
            kept.append(Rows(table, [one[0] for one in read.description], read.fetchall(), template, pieces))
        pots = database.execute("SELECT * FROM budgets").fetchall()
        indexes = database.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        ).fetchall()
        for name, _ in indexes:
            database.execute(f'DROP INDEX "{name}"')
        for table in (*COPIED, *MADE_ANEW):
            database.execute(f"DELETE FROM {table}")
        for k in range(template.groups * CHAPTERS):
            copy = Copy(template, k)
            for rows in kept:
                database.executemany(rows.insert, rows.of(copy))
            database.executemany(
                "INSERT INTO pieces (digest, form, stored, how, size, refs, at) VALUES (?, ?, ?, ?, ?, 0, 0)",
                pieces.new,
            )
            pieces.new.clear()
            if k % AT_ONCE == 0:
                database.commit()
                print(f"{k} of {template.groups * CHAPTERS}", end="\r", flush=True)
        finish(database, template, pots, pieces, indexes)


def finish(
    database: sqlite3.Connection,
    template: Template,
    pots: Sequence[Row],
    pieces: Pieces,
    indexes: Sequence[tuple[str, str]],
) -> None:
    """What is known at the end."""
    for pot in budgets(pots, (Copy(template, k) for k in range(template.groups * CHAPTERS))):
        database.execute(f"INSERT INTO budgets VALUES ({', '.join('?' * len(pot))})", pot)
    used = [(refs, at, digest) for digest, (refs, at) in pieces.stored.items()]
    database.executemany("UPDATE pieces SET refs = ?, at = ? WHERE digest = ?", used)
    nodes(database, template)
    database.commit()
    for _, sql in indexes:
        database.execute(sql)
    database.commit()
    database.execute("PRAGMA journal_mode = WAL")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--turns", type=int, default=1_000_000)
    given = parser.parse_args()
    began = time.monotonic()
    grow(given.home / "outspoken.db", given.turns)
    print(f"{given.turns} turns made in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
