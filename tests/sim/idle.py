"""An hour in which nobody says anything, in virtual time: the real hub, store, watchdog and incidents, and an adapter that is well or down.

``python -m tests.sim.idle FOLDER [down]`` prints what was logged in that hour, one JSON object a line.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from adapters.contract.chat import AdapterSight
from adapters.contract.supervision import AdapterDown
from agent_core.store.store import open_store
from agent_core.tools.registry import ToolRegistry
from gateway.chats.supervisor import Supervisor
from gateway.config.types import SessionPolicy
from gateway.recovery.keeper import recovered
from gateway.sessions.hub import Hub
from gateway.sessions.opening import HubSettings
from tests.sim import world
from tests.sim.loop import SimLoop
from tests.sim.model import ENDPOINTS, Script, SimClient
from tests.sim.scenario import TURN

HOUR = 3_600.0


class QuietAdapter:
    """Connected, and nobody writes; or never connected."""

    name = "quiet/main"
    silent_seconds = 0.0
    deaf_after_seconds = 60.0

    def __init__(self, *, down: bool) -> None:
        self._down = down

    async def run(self, up: Callable[[], None]) -> None:
        if self._down:
            raise AdapterDown("There is no route to the platform.")
        up()
        await asyncio.sleep(2 * HOUR)

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        return AdapterSight(self.name, state, words, None, outbound)


async def hour(loop: SimLoop, folder: Path, *, down: bool) -> None:
    """From a minute after the start, an hour long; what was logged before is forgotten."""
    clock, ids = world.SimClock(loop), world.SimIds()
    settings = HubSettings(
        turn=TURN, system_prompt="", connect_seconds=5, queue_limit=20, policy=SessionPolicy.QUEUE, workspaces=folder,
        history_turns=20, rehearsal=False, version="sim",
    )  # fmt: skip
    async with open_store(folder / "sim.db", clock=clock, ids=ids, version="sim") as store:
        client = SimClient(loop, clock, Script(random.Random(1), 0.0), [])
        async with Hub(settings, store, client, ENDPOINTS, ToolRegistry([]), clock, ids) as hub:
            await recovered(hub, store, clock, ids)
            adapter: Any = QuietAdapter(down=down)
            supervisor = Supervisor(adapter, clock, lambda: None, lambda: 0.5, lambda _: None)
            watched = asyncio.ensure_future(supervisor.run())
            await asyncio.sleep(60)
            world.LOGGED.clear()
            await asyncio.sleep(HOUR)
            watched.cancel()
            await asyncio.wait({watched})


def main(folder: Path, *, down: bool) -> None:
    world.install()
    loop = SimLoop(1)
    asyncio.set_event_loop(loop)
    loop.run_until_complete(hour(loop, folder, down=down))
    sys.stdout.buffer.write(b"".join(orjson.dumps(event) + b"\n" for event in world.LOGGED))


if __name__ == "__main__":
    main(Path(sys.argv[1]), down="down" in sys.argv[2:])
