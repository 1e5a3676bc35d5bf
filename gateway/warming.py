"""What the first turn would wait for is made once the port is open, beside the loop: then the first turn is as cheap as the second.

A plain turn makes objects of some eighty records, whose methods are written when they are first used (`agent_core.records`): half a
millisecond each; some of them are stored as JSON, which is planned once. Which they are stands in `everyturn.txt`, printed by `python -m tests.gateway.test_first_turn`; of a line that names nothing
any more, nothing is made.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from agent_core import storedjson
from agent_core.model.client import ModelClient
from agent_core.records import fields_taken
from agent_core.rules.promises import read_ending
from agent_core.store.store import Store
from agent_core.text.patterns import compile_all

WARM_SECONDS = 0.5
"""So long after the port is open: those who waited for it come first."""
BREATH_SECONDS = 0.001
"""Between two of them, so that whoever else has work to do goes first."""
STORED, CHANGED = "stored", "changed"
"""In the place of a method: it is stored as JSON, or another is made of it."""
EVERY_TURN = Path(__file__).with_name("everyturn.txt")


async def warmed(client: ModelClient, store: Store) -> None:
    """Load and make it. What cannot be had just now (no module, no free descriptor) is had when it is needed, or told then."""
    await asyncio.sleep(WARM_SECONDS)
    with suppress(ImportError, OSError):
        await client.warm()
        await asyncio.to_thread(_make, store.preparing())


def _make(statements: Iterator[Callable[[], object]]) -> None:
    make_records()
    for prepare in statements:
        prepare()
        time.sleep(BREATH_SECONDS)


def make_records() -> None:
    """What is the same for every store: the methods of records, patterns, and what tells languages."""
    for line in EVERY_TURN.read_text("utf-8").splitlines():
        module, name, method = line.split()
        record = getattr(sys.modules.get(module), name, None)
        if method not in (STORED, CHANGED):
            getattr(record, method, None)
        elif isinstance(record, type):
            (storedjson.plan if method == STORED else fields_taken)(record)
        time.sleep(BREATH_SECONDS)
    compile_all()
    read_ending("That is done. Now I'll look at the rest:")  # the forms of languages, and English
