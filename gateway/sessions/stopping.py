"""Stopping a turn that runs, and saying truthfully what came of it."""

from __future__ import annotations

import asyncio

from adapters.contract.base import StopOutcome
from agent_core.driver.driver import TurnDriver
from agent_core.turn.events import StopRequested
from agent_core.turn.exits import ExitCode

STOP_SECONDS = 15.0
"""How long a stop may take until it is answered."""


BY_CLIENT, BY_PERSON = "withdrawn by the client", "withdrawn by the person"
NOT_OPENED = "its turn could not be opened"
"""Why a message was dropped, as it is stored."""


async def stop_turn(driver: TurnDriver, now_ms: int, *, forgotten: bool = False) -> StopOutcome:
    """Ask a turn to stop, and wait for its end; it may have ended by itself meanwhile, or not have ended yet."""
    driver.tell(StopRequested(at=now_ms, forgotten=forgotten))
    with driver.watch() as watcher:
        try:
            async with asyncio.timeout(STOP_SECONDS):
                while not driver.over:
                    await watcher.next(STOP_SECONDS)
        except TimeoutError:
            return StopOutcome(stopped=False, words="The stop was taken, but the turn has not ended yet.")
    ending = driver.turn.exit
    notice = ending.notice() if ending is not None else None
    return StopOutcome(
        stopped=ending is not None and ending.code is ExitCode.STOPPED,
        words=notice.text if notice is not None else "It had just been answered.",
    )
