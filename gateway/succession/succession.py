"""Who serves a database after whom: what a gateway does while another one has it, and while nobody can have it.

Theory. One gateway serves a database at a time. A second one that waits turns the first one's end (a kill, a stopped machine, a new version) from an
outage into seconds: it asks for the lock again and again, and takes up what was left as any start does. Nothing of the database is touched
before. A gateway that lost its database begins anew in the same process: it waits for the server, or for the one that has taken over.

Laws: what waits ends when it is told to stop; a first start that finds no server ends with an error, as ever, unless it stands by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from agent_core.store.database.ownership import Waits
from agent_core.store.database.place import SqlitePlace, parse_place
from agent_core.store.errors import AlreadyRunning, CannotOpenNow, StoppedWaiting
from gateway.config.paths import Paths
from gateway.config.reading import CannotServe
from gateway.config.sections import Config

if TYPE_CHECKING:
    from gateway.succession.closeddoor import ClosedDoor
    from gateway.succession.takeover import Takeover

log = structlog.get_logger("gateway")

AGAIN_SECONDS = 0.2
"""How soon a lock is asked for again that another gateway has."""
AWAY_SECONDS = 1.0
"""How soon a database is tried again that cannot be had."""
STANDBY = "This gateway stands by: another one serves. It takes over when that one is gone."
AWAY = "The gateway's database cannot be reached. Nothing is lost; it goes on when the database is back."


class Succession:
    """Of one process, over all of its lives."""

    def __init__(
        self, config: Config, paths: Paths, asked: asyncio.Event, tell: Callable[[str], None], *, takeover: bool
    ) -> None:
        """`asked` says that it is told to stop; `tell` gets a line for the service manager. Raises CannotServe."""
        self._asked, self._tell = asked, tell
        self._standby, self._lives = config.storage.standby, 0
        self._place = (config.server.host, config.server.port)
        self._door: ClosedDoor | None = None
        self._shown = ""
        place = parse_place(config.storage.url or paths.database)
        self._takeover: Takeover | None = None
        if takeover:
            if not isinstance(place, SqlitePlace):
                raise CannotServe(
                    "--takeover ends the gateway of this machine, and what has a PostgreSQL database may run on another. Start this one "
                    "with [storage] standby = true and then stop the other: it takes over at once."
                )
            from gateway.succession.takeover import Takeover

            self._takeover = Takeover(place.path)

    @property
    def has_served(self) -> bool:
        """The database was its own before."""
        return self._lives > 0

    @property
    def waits(self) -> Waits | None:
        """What a store that is opened asks while another process has the database; None: then it is an error."""
        return self._wait if self._standby or self._takeover is not None else None

    async def _wait(self, taken: AlreadyRunning) -> None:
        if self._takeover is not None and not self._lives:
            self._takeover.step(taken)
        else:
            await self._show("standby", STANDBY)
        if await self._stopped_within(AGAIN_SECONDS):
            raise StoppedWaiting("It was told to stop while it waited for another gateway.") from taken

    async def opened(self) -> None:
        """The database is ours: the gateway's own door may open."""
        self._lives += 1
        self._shown = ""
        await self.close()

    async def cannot_open(self, error: CannotOpenNow) -> None:
        """Wait until the database may be tried again. Raises `error` where that is nobody's wish."""
        if not self._lives and (not self._standby or isinstance(error, AlreadyRunning)):
            raise error
        if self._shown != "no_database":
            log.warning("gateway.no_database", error=str(error))
        await self._show("no_database", AWAY)
        await self._stopped_within(AWAY_SECONDS)

    async def close(self) -> None:
        """Nothing answers any more."""
        if self._door is not None:
            await self._door.away()

    async def _show(self, phase: str, words: str) -> None:
        if self._shown != phase:
            self._shown = phase
            log.info("gateway.waiting", phase=phase)
            self._tell(words)
            if self._door is None:
                from gateway.succession.closeddoor import ClosedDoor

                self._door = ClosedDoor(*self._place)
            await self._door.show(phase, words)

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        except TimeoutError:
            return False
        return True
