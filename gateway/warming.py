"""What the first turn would wait for is made once the port is open, beside the loop: then the first turn is as cheap as the second.

A plain turn makes objects of some eighty records, whose methods are written when they are first used (`agent_core.records`): half a
millisecond each. Which they are stands in `everyturn.txt`, printed by `python -m tests.gateway.test_first_turn`; of a line that names nothing
any more, nothing is made.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress
from pathlib import Path

from agent_core.model.client import ModelClient
from agent_core.rules.promises import read_ending
from agent_core.text.patterns import compile_all

WARM_SECONDS = 0.5
"""So long after the port is open: those who waited for it come first."""
BREATH_SECONDS = 0.001
"""Between two of them, so that whoever else has work to do goes first."""
EVERY_TURN = Path(__file__).with_name("everyturn.txt")


async def warmed(client: ModelClient) -> None:
    """Load and make it."""
    await asyncio.sleep(WARM_SECONDS)
    with suppress(ImportError):  # the first call says so
        await client.warm()
    await asyncio.to_thread(_make)


def _make() -> None:
    for line in EVERY_TURN.read_text("utf-8").splitlines():
        module, record, method = line.split()
        getattr(getattr(sys.modules.get(module), record, None), method, None)
        time.sleep(BREATH_SECONDS)
    compile_all()
    read_ending("That is done. Now I'll look at the rest:")  # the forms of languages, and English
