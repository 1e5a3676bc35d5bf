"""Rare situations: a simulation that never reaches one of them proves nothing about it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing

from tests.sim.whole.scenario import Result

RARE = (
    "killed",
    "event told twice",
    "event told out of order",
    "connection cut",
    "same key, nothing done",
    "looked up",
    "call: lost after",
    "call: hangs",
    "call: too fast",
    "said again with a word",
    "killed while a call was under way",
    "taken over",
    "set aside",
    "storage away",
    "approved",
    "answered in several parts",
    "stopped",
    "a word in the queue was taken away",
    "a message waited through a death",
)

_COUNTED: Mapping[str, str] = {
    "said again with a word": "SELECT count(*) FROM deliveries WHERE labelled = 1",
    "taken over": "SELECT count(*) FROM journal WHERE kind = 'TakenOver'",
    "answered in several parts": "SELECT count(*) FROM deliveries WHERE part > 0 AND state = 'sent' AND bubble LIKE 'text%'",
    "stopped": "SELECT count(*) FROM turns WHERE exit = 'stopped'",
    "a word in the queue was taken away": "SELECT count(*) FROM deliveries WHERE origin LIKE 'queue:%' AND gone = 1",
    "approved": "SELECT count(*) FROM journal WHERE kind = 'ApprovalAnswered'",
}


def met(result: Result) -> Counter[str]:
    """How often each was reached in a scenario."""
    found = Counter(result.met)
    with closing(sqlite3.connect(f"file:{result.path}?mode=ro", uri=True)) as database:
        for what, query in _COUNTED.items():
            found[what] += database.execute(query).fetchone()[0]
    logged = Counter(event["event"] for event in result.logged)
    found["set aside"] += logged["keeper.set_aside"]
    found["storage away"] += logged["storage.failing"]
    return found


def missing(found: Mapping[str, int]) -> list[str]:
    """Those that were never reached."""
    return [what for what in RARE if not found.get(what)]
