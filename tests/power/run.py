"""``python -m tests.power.run --cuts 10000 --seed 1``: cuts the power under the real store, and looks for what it had promised.

The store runs once a recording, with several sessions at a time; then the recording is cut at drawn places. After each cut
the database must open, be sound, hold every row that was acknowledged, and hold each unacknowledged call wholly or not at
all. Every hundredth is also opened by the store itself, which must then go on working.
``--unsafe`` runs the same without syncs, and must find losses: it shows that they would be seen.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agent_core.store.database.lines as lines
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.store import Store, open_store
from agent_core.store.turns.rows import JournalRow, timed
from tests.power.cuts import cut
from tests.power.recorder import Kind, NotRecordable, Op, Recorder
from tests.sim.bodies import whole
from tests.store.support import take_over

DATABASE = "power.db"
TURNS_A_RECORDING = 60
CUTS_A_RECORDING = 500
SESSIONS = 6


@dataclass(frozen=True, slots=True)
class Message:
    """Promised: this message is stored."""

    key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Rows:
    """Promised: these rows are in the journal of the turn, and with `exit` the turn is closed so."""

    turn: str
    rows: tuple[JournalRow, ...]
    exit: str = ""


@dataclass
class Totals:
    cuts: int = 0
    recordings: int = 0
    operations: int = 0
    promises: int = 0
    opened_by_the_store: int = 0
    lost: list[str] = field(default_factory=list[str])


async def _session(store: Store, recorder: Recorder, session: int, turns: int, draw: random.Random) -> None:
    """Some turns of one session, each call acknowledged in the recording as soon as it returned."""
    for number in range(turns):
        key = f"m{session}.{number}"
        body = b'"' + b"x" * draw.choice((10, 700, 3_000)) + b'"'
        accepted = await store.inbox.accept(NewMessage("a", key, f"s{session}", "n", body, 1, None, f"s_{session}"))
        recorder.acknowledge(Message(key, body))
        epoch = accepted.epoch or await store.sessions.claim(accepted.session)
        turn = f"t{session}.{number}"
        first = JournalRow(0, "TurnOpened", body, 1)
        await store.turns.start(accepted.session, epoch, turn, [accepted.inbox_id], first, 1, 2)
        recorder.acknowledge(Rows(turn, (first,)))
        seq = 1
        for _ in range(draw.choice((0, 1, 3))):
            rows = tuple(JournalRow(seq + i, "TextArrived", body[: 20 + i], 1) for i in range(draw.choice((1, 2, 5))))
            seq += len(rows)
            await store.turns.append(accepted.session, epoch, turn, rows)
            recorder.acknowledge(Rows(turn, rows))
        last = (JournalRow(seq, "TurnEnded", b"{}", 2),)
        await store.turns.close(accepted.session, epoch, turn, last, "answered", 2)
        recorder.acknowledge(Rows(turn, last, "answered"))


async def _record(folder: Path, recorder: Recorder, seed: int) -> None:
    clock = SystemClock()
    draw = random.Random(seed)
    async with (
        open_store(folder / DATABASE, clock=clock, ids=SystemIds(clock), version="power") as store,
        asyncio.TaskGroup() as group,
    ):
        for session in range(SESSIONS):
            group.create_task(_session(store, recorder, session, TURNS_A_RECORDING // SESSIONS, draw))


def _first_acknowledged(ops: list[Op]) -> int:
    return next(index for index, op in enumerate(ops) if op.kind is Kind.ACKNOWLEDGED)


def _losses(path: Path, promises: list[object]) -> list[str]:
    """What the database at `path` does not keep of `promises`."""
    database = sqlite3.connect(path)
    try:
        sound = database.execute("PRAGMA integrity_check").fetchone()[0]
        if sound != "ok":
            return [f"the database is damaged: {sound}"]
        messages = {
            key: whole(database, body) for key, body in database.execute("SELECT platform_key, body FROM inbox")
        }
        journal: dict[tuple[str, int], tuple[str, bytes]] = {
            (row[0], row[1]): (row[2], whole(database, timed(row[3], row[4])))
            for row in database.execute(
                "SELECT t.turn, j.seq, j.kind, j.body, j.at FROM journal j JOIN turns t ON j.id / 1048576 = t.first_message"
            )
        }
        exits = dict(database.execute("SELECT turn, exit FROM turns"))
    except sqlite3.DatabaseError as error:
        return [f"the database cannot be read: {error}"]
    finally:
        database.close()
    lost: list[str] = []
    for promise in promises:
        match promise:
            case Message(key, body):
                if messages.get(key) != body:
                    lost.append(f"message {key} was acknowledged and is gone")
            case Rows(turn, rows, code):
                lost += [
                    f"row {row.seq} of {turn} was acknowledged and is gone"
                    for row in rows
                    if journal.get((turn, row.seq)) != (row.kind, row.body)
                ]
                if code and exits.get(turn) != code:
                    lost.append(f"turn {turn} was closed with {code} and is {exits.get(turn)}")
            case _:
                raise TypeError(promise)
    return lost + _halves(journal, exits)


def _halves(journal: dict[tuple[str, int], Any], exits: dict[str, str | None]) -> list[str]:
    """A call is there wholly or not at all: no hole in a journal, and a turn is closed exactly when its last row is there."""
    found: list[str] = []
    turns: dict[str, list[int]] = {}
    for turn, seq in journal:
        turns.setdefault(turn, []).append(seq)
    for turn, seqs in turns.items():
        if sorted(seqs) != list(range(len(seqs))):
            found.append(f"the journal of {turn} has holes: {sorted(seqs)}")
        ended = any(journal[turn, seq][0] == "TurnEnded" for seq in seqs)
        if ended != (exits.get(turn) is not None):
            found.append(f"half of the end of {turn} is there")
    return found


async def _goes_on(path: Path) -> None:
    """The store opens what was left, and takes another message."""
    clock = SystemClock()
    async with open_store(path, clock=clock, ids=SystemIds(clock), version="power") as store:
        await take_over(store, lambda turn, seq, epoch: JournalRow(seq, "TakenOver", b"{}", 3))
        await store.inbox.accept(NewMessage("a", "after", "after", "n", b'"x"', 3, None, "s_after"))


def run(cuts: int, seed: int, folder: Path) -> Totals:
    """Record and cut until `cuts` cuts were made."""
    recorder = Recorder()
    recorder.install()
    totals = Totals()
    while totals.cuts < cuts and len(totals.lost) < 20:
        place = folder / f"r{totals.recordings}"
        place.mkdir()
        recorder.ops = []
        # In every other recording the log is copied into the file every few turns, so that many cuts fall into that.
        module: Any = lines
        module.CHECKPOINT_BYTES = 4 * 1024 * 1024 if totals.recordings % 2 else 150 * 1024
        asyncio.run(_record(place, recorder, seed + totals.recordings))
        ops, recorder.ops = recorder.ops, []
        totals.recordings += 1
        totals.operations += len(ops)
        _cut_up(ops, min(CUTS_A_RECORDING, cuts - totals.cuts), seed + totals.recordings - 1, place, totals)
    return totals


def _set_pragma(name: str, value: object) -> None:
    """One of the writer's settings, for the connections to come."""
    module: Any = lines
    module.WRITER_PRAGMAS = tuple(
        f"PRAGMA {name} = {value}" if f"PRAGMA {name} " in pragma else pragma for pragma in lines.WRITER_PRAGMAS
    )


def _cut_up(ops: list[Op], count: int, seed: int, place: Path, totals: Totals) -> None:
    draw = random.Random(seed)
    first = _first_acknowledged(ops)
    positions = sorted(draw.randint(first, len(ops)) for _ in range(count))
    promises: list[object] = []
    told = 0
    for number, (position, files) in enumerate(cut(ops, positions, seed)):
        promises += [op.promise for op in ops[told:position] if op.kind is Kind.ACKNOWLEDGED]
        told = position
        after = place / f"cut{number}"
        after.mkdir()
        for name, data in files.items():
            if name.startswith(DATABASE) and not name.endswith("-shm"):
                (after / name).write_bytes(data)
        lost = _losses(after / DATABASE, promises)
        if not lost and number % 100 == 0:
            asyncio.run(_goes_on(after / DATABASE))
            totals.opened_by_the_store += 1
        totals.lost += [f"recording {seed}, cut before operation {position}: {what}" for what in lost[:3]]
        totals.cuts += 1
        totals.promises += len(promises)
        for file in after.iterdir():
            file.unlink()
        after.rmdir()


def main() -> None:
    """Entry point; exits with 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unsafe", action="store_true")
    asked = parser.parse_args()
    if asked.unsafe:
        _set_pragma("synchronous", "OFF")
    began = time.monotonic()
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="outspoken-power-", dir=shm if shm.is_dir() else None) as name:
        try:
            totals = run(asked.cuts, asked.seed, Path(name))
        except NotRecordable as reason:
            sys.exit(f"not possible here: {reason}")
    print(
        f"{totals.cuts} cuts in {totals.recordings} recordings of {totals.operations} file operations, {totals.promises} promises "
        f"looked up, {totals.opened_by_the_store} opened by the store itself, {time.monotonic() - began:.0f} s"
    )
    print(f"losses: {len(totals.lost)}")
    print("\n".join(totals.lost[:10]))
    sys.exit(bool(totals.lost))


if __name__ == "__main__":
    main()
