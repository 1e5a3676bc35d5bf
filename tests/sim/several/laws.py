"""What must hold when several gateways have served: what holds for one, and what it would have to keep from another. Each broken law is a sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from agent_core.machine.turn import Turn
from tests.sim.laws import FORBIDDEN, of_a_message, of_a_turn, of_the_order
from tests.sim.people import Said
from tests.sim.scenario import Result
from tests.sim.world import EPOCH_MS

MOST_SECONDS = 200.0
"""From a message's being stored to its end, whatever happens to gateways meanwhile."""
LATE_MS = 2_200
"""A look each second, and what it costs."""
HEARD_MS = 10_000
"""Where nothing looks more often than each minute, and every word is heard: longer than any honest way takes, somebody's who does not look for three
seconds among them."""
SETTLED_MS = 3_000
"""After the last start it is settled whose a conversation is."""
EXPECTED = frozenset({"tool.crashed", "turn.overtaken"})
"""What the simulated tools do on purpose; and that a gateway which comes too late notices it."""


def broken(result: Result, *, within_ms: int | None) -> list[str]:
    """The laws that `result` breaks, in words; and how soon what is wanted has to be done, where nothing is in its way."""
    with closing(sqlite3.connect(f"file:{result.path}?mode=ro", uri=True)) as database:
        found = [*result.violations, *_of_the_whole(database, result)]
        turns: dict[str, Turn] = {}
        for (turn,) in database.execute("SELECT turn FROM turns").fetchall():
            found += of_a_turn(database, turn, turns, result)
        found += of_the_order(database)
        found += _of_the_beginnings(database, within_ms) if within_ms else ()
        for said in result.plan.said:
            found += of_a_message(database, said, turns)
            found += _of_the_ends(database, said, within_ms) if within_ms == HEARD_MS else ()
            if said.ended is not None and said.ended_at - said.accepted_at > MOST_SECONDS:
                found.append(f"message {said.key} had its end after {said.ended_at - said.accepted_at:.0f} s")
    return found


def _of_the_whole(database: sqlite3.Connection, result: Result) -> Iterator[str]:
    yield from (f"a tool with effects was run twice: {repeated}" for repeated in result.runs.twice())
    yield from (words for (words,) in database.execute("SELECT DISTINCT words FROM wrong"))
    (polled,) = database.execute("SELECT count(*) FROM cursors").fetchone()
    if not polled:
        yield "nobody reads the platform"
    for event in result.logged:
        if event["event"] in FORBIDDEN - EXPECTED or ("exception" in event and event["event"] not in EXPECTED):
            yield f"logged {event['event']}: {event}"
    (waiting,) = database.execute("SELECT count(*) FROM inbox WHERE state = 'new'").fetchone()
    if waiting:
        yield f"{waiting} messages wait, and nobody runs them"


def _of_the_beginnings(database: sqlite3.Connection, within_ms: int) -> Iterator[str]:
    """Whoever took a message, its turn begins as soon as its owner hears of it, or looks, where nobody heard, and the one before is over."""
    over: dict[str, int] = {}
    (settled,) = database.execute(
        "SELECT max(started_at) + ? FROM nodes WHERE ended_at IS NULL",
        (SETTLED_MS,),  # who made the empty database lived in another time
    ).fetchone()
    for session, message, stored, opened, closed in database.execute(
        "SELECT i.session, i.platform_key, i.received_at, t.opened_at, t.closed_at FROM turns t JOIN inbox i ON i.turn = t.turn"
        " WHERE i.lane = 'normal' ORDER BY i.session, t.number, i.arrival"
    ):
        late = opened - max(stored, over.get(session, 0))
        if stored > settled and late > within_ms:
            yield f"message {message} of {session} was begun {late} ms after it could have been"
        over[session] = max(over.get(session, 0), closed or 0)


def _of_the_ends(database: sqlite3.Connection, said: Said, within_ms: int) -> Iterator[str]:
    """Wherever somebody looks, they see the end soon after it is stored."""
    if said.ended is None or not said.ended.turn:
        return
    (closed,) = database.execute("SELECT closed_at FROM turns WHERE turn = ?", (said.ended.turn,)).fetchone()
    late = round(said.ended_at * 1000) - (closed - EPOCH_MS)
    if late > within_ms:
        yield f"message {said.key} was shown its end {late} ms after it was stored"
