"""Rare situations of a gateway, or of several: a simulation that never reaches one of them proves nothing about it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing

from tests.sim.scenario import Result

_COUNTED: Mapping[str, str] = {
    "taken over": "SELECT count(*) FROM journal WHERE kind = 'TakenOver'",
    "taken over twice": "SELECT count(*) FROM journal WHERE kind = 'TakenOver' AND seq > 1 AND EXISTS (SELECT * FROM journal AS other"
    " WHERE other.kind = 'TakenOver' AND other.id < journal.id AND other.id >> 20 = journal.id >> 20)",
    "left open at an end in order": "SELECT count(*) FROM journal WHERE kind = 'TurnLeft'",
    "a message ended what ran": "SELECT count(*) FROM journal WHERE kind = 'Superseded'",
    "refused by a budget": "SELECT count(*) FROM journal WHERE kind = 'SpendRefused'",
    "approval decided": "SELECT count(*) FROM journal WHERE kind = 'ApprovalAnswered'",
    "another remedy": "SELECT count(*) FROM journal WHERE kind = 'RungClimbed'",
    "stopped": "SELECT count(*) FROM turns WHERE exit = 'stopped'",
    "dropped before its turn": "SELECT count(*) FROM inbox WHERE state = 'dropped'",
    "the conversation changed hands": "SELECT count(*) FROM sessions WHERE epoch > 1",
    "a process died": "SELECT count(*) FROM nodes WHERE ended_at IS NULL",
}
_LOGGED: Mapping[str, str] = {
    "storage.reopening": "storage away",
    "keeper.set_aside": "set aside",
    "keeper.suspect": "suspected",
    "turn.late": "an event too late",
}
RARE = (*_COUNTED, *_LOGGED.values())


def met(result: Result) -> Counter[str]:
    """How often each was reached in a scenario."""
    found: Counter[str] = Counter()
    with closing(sqlite3.connect(f"file:{result.path}?mode=ro", uri=True)) as database:
        for what, query in _COUNTED.items():
            found[what] = database.execute(query).fetchone()[0]
    for event in result.logged:
        if (what := _LOGGED.get(event["event"])) is not None:
            found[what] += 1
    return found


def missing(found: Mapping[str, int]) -> list[str]:
    """Those that were never reached."""
    return [what for what in RARE if not found.get(what)]
