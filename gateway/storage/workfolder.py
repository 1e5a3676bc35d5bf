"""Whether the folder of the workspaces is still the one with which this gateway began: its disk may be unmounted, and its share vanish or hang.

A directory is known by a number that lies in it. Where that is missing, something else stands in its place (the bare directory on which the disk was
mounted): what is written there is hidden as soon as the disk is back. So no workspace is begun in it, and whoever asks how the gateway is doing is told.

Loaded where `[tools] workspace` names a place, or several gateways share one; what lies beside the state goes with it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import structlog

from agent_core.beside import beside
from agent_core.ports import Clock
from agent_core.tools.files.workspace import GUARDED

log = structlog.get_logger("storage")

NUMBER = ".outspoken-directory"
MOST_BYTES = 100
LOOK_SECONDS = 5.0
PATIENCE_SECONDS = 3.0
"""A share that hangs keeps a thread: one, however often it is looked."""
NOT_THERE = (
    "The folder for files ({root}) is not the one with which this gateway began: is its disk or share mounted? No new folder is made in it, and files "
    "that people send are not taken."
)
SILENT = "The folder for files ({root}) does not answer: does its disk or share hang?"


def number_of(root: Path) -> str:
    """The number of a directory; made, if nobody has. Empty if it cannot be read."""
    try:
        return _number(root)
    except (OSError, ValueError) as error:
        log.warning("slices.directory_not_known", folder=str(root), error=str(error))
        return ""


def _number(root: Path) -> str:
    """The same. Raises OSError, ValueError."""
    with suppress(FileNotFoundError):  # first: where it is there, nothing need be written
        return _read(root)
    root.mkdir(parents=True, exist_ok=True)
    made = root / f"{NUMBER}.{secrets.token_hex(4)}"
    try:
        made.write_text(secrets.token_hex(8))
        with suppress(FileExistsError):
            (root / NUMBER).hardlink_to(made)  # whole, or not at all: others begin at the same moment
    finally:
        made.unlink(missing_ok=True)
    return _read(root)


def _read(root: Path) -> str:
    with (root / NUMBER).open() as file:
        return file.read(MOST_BYTES).strip()


class WorkFolder:
    """`words` say what is wrong with it; empty if nothing is."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self.words = ""
        self._root = root
        self._clock = clock
        self._number = ""
        self._since = 0.0
        self._looking: asyncio.Future[bool] | None = None

    def there(self) -> bool:
        """Whether it is there, by asking it. From any thread."""
        try:
            if not self._number:  # nobody could tell at the start: it is the one that is there first
                self._number = _number(self._root)
            return _read(self._root) == self._number != ""
        except (OSError, ValueError):
            return False

    async def look(self) -> None:
        """Bring `words` up to date, and tell the log if they are others."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().run_in_executor(None, self.there)
        done, _ = await asyncio.wait({self._looking}, timeout=PATIENCE_SECONDS)
        words = "" if done and self._looking.result() else (NOT_THERE if done else SILENT).format(root=self._root)
        before, self.words = self.words, words
        if words and words != before:
            self._since = self._since or self._clock.monotonic()
            log.error("workspace.away", folder=str(self._root), words=words)
        elif before and not words:
            log.warning("workspace.back", folder=str(self._root), seconds=round(self._clock.monotonic() - self._since))
            self._since = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """It is looked after for the block."""
        self._number = await asyncio.to_thread(number_of, self._root)
        GUARDED[self._root] = self.there
        try:
            async with beside(self._look_again, "workspaces"):
                yield
        finally:
            GUARDED.pop(self._root, None)

    async def _look_again(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)
