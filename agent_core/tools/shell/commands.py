"""The commands of this gateway: begun, followed to their ends, and told of; those that an earlier process left are gone on with.

What is known of a command stands in its folder (`record`), so a gateway that was killed and begun again knows what the one before knew. A command goes on
when its turn is over, and when the gateway dies; an orderly stop ends it, and says so.

Laws (tests/shell/test_commands.py): the same call begins one command, however often it is carried out; a command's end is told, to the call that waits for
it or to the conversation, once; with no command nothing runs here.

Known to be weak: a command belongs to the machine that it was begun on. Another node that takes over the conversation cannot look into it, and says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from pathlib import Path

import structlog

from agent_core.patience import Limit
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.errors import StorageUnavailable
from agent_core.tools.base import UNLIMITED, NotPossible, Space
from agent_core.tools.files.workspace import gone, made
from agent_core.tools.followup import FOLLOW_UP_CHARS, FollowUps
from agent_core.tools.sandbox.ends import CommandEnd, EndCause
from agent_core.tools.sandbox.terms import ENGINES, ShellTerms
from agent_core.tools.shell.output import SHOWN_BYTES, both_ends
from agent_core.tools.shell.record import (
    BEGAN,
    COMMAND,
    END,
    OUTPUT,
    OWNER,
    STOP,
    TOLD,
    CommandRecord,
    container_of,
    encoded,
    encoded_end,
    end_of,
    is_watched,
    put_whole,
    record_of,
    sync_folder,
)
from agent_core.tools.shell.trial import watching
from agent_core.tools.shell.words import ended_title

log = structlog.get_logger("shell")

LOOK_SECONDS = 1.0
"""Between two looks at a command that another process began."""
STOPPING_SECONDS = 8.0
"""A stop waits for so long until what watches over a command has ended it."""
BEGIN_SECONDS = 30.0
"""So long it may take from a command's being asked for to its beginning."""
AWAY_SECONDS = 5.0
TOGETHER = 32
"""ShellCommands that run at once, of all conversations."""
KEPT_MS = 3 * 24 * 3_600_000
"""So long it can be asked for what a command printed."""
SWEEP_SECONDS = 3_600.0
PLACE = "place"
NO_PROCESS = "The machine let no process begin that watches over the command, so nothing was run. An operator has to look; do without it for now."

Open = Callable[[str], Awaitable[bool]]
"""Whether a turn is open. Raises `StorageUnavailable`."""


@dataclass(eq=False, slots=True)
class LiveCommand:
    """A command that is followed."""

    folder: Path
    record: CommandRecord
    process: asyncio.subprocess.Process | None = None
    space: Space = UNLIMITED
    attended: int = 0
    """So many calls wait for its end."""
    left_behind: bool = False
    """The call that began it was cancelled before anybody knew its id."""
    over: asyncio.Event = field(default_factory=asyncio.Event)


def command_id(key: str) -> str:
    """The id of the command that a call asks for. Pure."""
    return f"c{hashlib.blake2b(key.encode(), digest_size=4).hexdigest()}"


class ShellCommands:
    """All of them. `running` it for the life of the gateway."""

    def __init__(self, folder: Path, terms: ShellTerms, clock: Clock, follow_ups: FollowUps, is_open: Open, at_once: int) -> None:  # fmt: skip
        self.terms = terms
        self.place = ""
        """What tells this machine's folder from another's."""
        self._folder = folder
        self._clock = clock
        self._follow_ups = follow_ups
        self._is_open = is_open
        self._at_once = at_once
        self._live: dict[Path, LiveCommand] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Go on with what is there; at the end of the block the commands are ended."""
        self.place, found = await asyncio.to_thread(self._found)
        for folder, record in found:
            self._follow(LiveCommand(folder, record))
        self._task(self._sweeping(), "commands: sweep")
        try:
            yield
        finally:
            await self._all_ended()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _found(self) -> tuple[str, list[tuple[Path, CommandRecord]]]:
        """The name of this place, and the commands that somebody still has to be told of."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = self._folder / PLACE
        if not place.exists():
            put_whole(self._folder, PLACE, secrets.token_hex(8).encode())
        found: list[tuple[Path, CommandRecord]] = []
        for folder in self._folder.glob("*/c*"):
            record = record_of(folder)
            if record is None or (folder / TOLD).exists():
                continue
            (folder / OWNER).write_text(str(os.getpid()), "utf-8")
            found.append((folder, record))
        return place.read_text("ascii"), found

    async def _all_ended(self) -> None:
        live = [one for one in self._live.values() if not one.over.is_set()]
        for one in live:
            await asyncio.to_thread(_ask, one.folder, EndCause.GATEWAY)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOPPING_SECONDS):
                for one in live:
                    await one.over.wait()

    # ------------------------------------------------------------------ what calls do

    async def begin(
        self, key: str, turn: str, workspace: Path, argv: tuple[str, ...], shown: str, terms: ShellTerms, space: Space
    ) -> LiveCommand:
        """The command that a call asks for: begun, or as it stands if it was begun before. Raises `NotPossible`."""
        command = command_id(key)
        folder = self._folder / workspace.name / command
        if (known := self._live.get(folder)) is not None:
            if known.process is None and not await asyncio.to_thread((folder / BEGAN).exists):
                # The process that asked for it died before; two cannot begin it
                known.process = await _watched_over(known)
            return known
        record = await asyncio.to_thread(record_of, folder)
        new = record is None
        if record is None:
            self._check_room(workspace)
            record = CommandRecord(command, turn, key, str(workspace), shown, argv, terms, self._clock.now_ms())
            await asyncio.to_thread(_put_down, folder, record)
        one = LiveCommand(folder, record, space=space)
        if not (folder / BEGAN).exists():
            try:
                one.process = await _watched_over(one)
            except NotPossible:
                if new:
                    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)  # or it would be said to run
                raise
            log.info("shell.begun", shell_command=command, turn=turn)
        self._follow(one)
        return one

    async def asked_for(self, key: str, workspace: Path) -> bool:
        """Whether the command of a call is there already, however it stands."""
        folder = self._folder / workspace.name / command_id(key)
        return folder in self._live or await asyncio.to_thread(record_of, folder) is not None

    def _check_room(self, workspace: Path) -> None:
        live = [one for one in self._live.values() if not one.over.is_set()]
        here = [one.record.command for one in live if one.record.workspace == str(workspace)]
        if len(here) >= self._at_once:
            raise NotPossible(
                f"{len(here)} commands run here already, and no more may at once: {', '.join(here)}. Wait for one, or stop one. Nothing was done."
            )
        if len(live) >= TOGETHER:
            raise NotPossible("Too many commands run for everybody together. Nothing was done; try again in a while.")

    def known(self, workspace: Path, command: str) -> Path:
        """The folder of a command of this conversation. Raises `NotPossible`."""
        there = self.of(workspace)
        if command not in there:
            told = f"There is: {', '.join(there)}." if there else "None was run here lately."
            raise NotPossible(f"There is no command {command} here. {told}")
        return self._folder / workspace.name / command

    def of(self, workspace: Path) -> list[str]:
        """The commands of a conversation, the latest last."""
        with suppress(OSError):
            found = [(one.stat().st_mtime, one.name) for one in (self._folder / workspace.name).iterdir()]
            return [name for _, name in sorted(found)]
        return []

    async def stop(self, folder: Path) -> CommandEnd | None:
        """Have a command ended; how it ended, None if it does not."""
        await asyncio.to_thread(_ask, folder, EndCause.STOPPED)
        live = self._live.get(folder)
        if live is not None:
            await self.waited(live, STOPPING_SECONDS)
        return await asyncio.to_thread(end_of, folder)

    def live_of(self, workspace: Path) -> list[LiveCommand]:
        """The commands of a conversation that go on; not those that end with the turn that began them."""
        place = self._folder / workspace.name
        live = [one for folder, one in self._live.items() if folder.parent == place and not one.over.is_set()]
        return sorted((one for one in live if not one.left_behind), key=lambda one: one.record.at)

    async def end_all(self, workspace: Path) -> tuple[list[str], list[str]]:
        """End those of a conversation: which are over now, and which are not yet. Nobody is told once more of the first."""
        live, ended, still = self.live_of(workspace), list[str](), list[str]()
        for one in live:
            one.attended += 1
        try:
            for one, end in zip(live, await asyncio.gather(*(self.stop(one.folder) for one in live)), strict=True):
                (still if end is None else ended).append(one.record.command)
                if end is not None:
                    self.told(one.folder)
        finally:
            for one in live:
                one.attended -= 1
        return ended, still

    async def waited(self, one: LiveCommand, seconds: float) -> CommandEnd | None:
        """The end of a command, if it comes in time."""
        one.attended += 1
        try:
            async with Limit(seconds):
                await one.over.wait()
        except TimeoutError:
            return None
        finally:
            one.attended -= 1
        return await asyncio.to_thread(end_of, one.folder)

    def live(self, folder: Path) -> LiveCommand | None:
        """The command of a folder, if it is followed."""
        return self._live.get(folder)

    async def reaches(self, turn: str) -> bool:
        """Whether the end of what a turn began can be told."""
        with suppress(StorageUnavailable):
            return await self._follow_ups.reaches(turn)
        return False

    @staticmethod
    def told(folder: Path) -> None:
        """The model knows how a command ended: nobody else has to be told."""
        with suppress(OSError):
            (folder / TOLD).touch()

    @property
    def count(self) -> int:
        """How many run."""
        return sum(not one.over.is_set() for one in self._live.values())

    # ------------------------------------------------------------------ following

    def _follow(self, one: LiveCommand) -> None:
        self._live[one.folder] = one
        self._task(self._followed(one), f"command {one.record.command}")

    def _task(self, work: Awaitable[None], name: str) -> None:
        async def guarded() -> None:
            try:
                await work
            except Exception:
                log.exception("shell.failed", work=name)

        task = asyncio.get_running_loop().create_task(guarded(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _followed(self, one: LiveCommand) -> None:
        """To its end, and until that is known to whoever asked for it."""
        try:
            end = await self._end(one)
            if one.process is not None:
                with suppress(TimeoutError):  # it has said its last word, and ends
                    async with asyncio.timeout(LOOK_SECONDS):
                        await one.process.wait()
            if end is not None and end.cause is EndCause.UNKNOWN:
                await asyncio.to_thread(_nothing_left, one)
            one.over.set()
            if end is None:
                return
            await one.space.changed()
            log.info(
                "shell.ended", shell_command=one.record.command, turn=one.record.turn, cause=end.cause.value, exit_status=end.status,
                seconds=round(end.seconds, 1),
            )  # fmt: skip
            await self._tell(one, end)
        finally:
            self._live.pop(one.folder, None)

    async def _end(self, one: LiveCommand) -> CommandEnd | None:
        """Its end; None if it was never begun, and nobody does so now."""
        until = self._clock.monotonic() + BEGIN_SECONDS
        while (end := await asyncio.to_thread(end_of, one.folder)) is None:
            if one.process is None:
                await asyncio.sleep(LOOK_SECONDS)
                if self._clock.monotonic() > until and not await asyncio.to_thread((one.folder / BEGAN).exists):
                    return None
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await one.process.wait()
                if one.process.returncode is not None and not is_watched(one.folder):
                    end = await asyncio.to_thread(end_of, one.folder)
                    return end or await asyncio.to_thread(_not_begun, one.folder)
            if one.left_behind and not await self._still_open(one):
                await asyncio.to_thread(_ask, one.folder, EndCause.STOPPED)
        return end

    async def _still_open(self, one: LiveCommand) -> bool:
        try:
            return await self._is_open(one.record.turn)
        except StorageUnavailable:
            return True

    async def _tell(self, one: LiveCommand, end: CommandEnd) -> None:
        """Tell the conversation, unless the turn that began the command comes to know it by itself."""
        while one.attended or await self._still_open(one):  # noqa: ASYNC110 - a turn tells nobody here that it is over
            await asyncio.sleep(LOOK_SECONDS)
        if (one.folder / TOLD).exists() or one.left_behind:
            return
        title = ended_title(one.record, end)
        while True:
            try:
                words = await asyncio.to_thread(shown_output, one.folder, FOLLOW_UP_CHARS // 2)
                heard = await self._follow_ups.begin(one.record.turn, f"command:{self.place}:{one.record.command}", title, words)  # fmt: skip
            except StorageUnavailable:
                await asyncio.sleep(AWAY_SECONDS)
                continue
            log.info("shell.told", shell_command=one.record.command, turn=one.record.turn, heard=heard)
            self.told(one.folder)
            return

    # ------------------------------------------------------------------ what is left

    async def _sweeping(self) -> None:
        while True:
            with suppress(OSError):  # some of it goes while it is looked at; the rest is for the next time
                await asyncio.to_thread(self._sweep)
            await asyncio.sleep(SWEEP_SECONDS)

    def _sweep(self) -> None:
        """Remove what is old, and what belongs to a folder that is gone."""
        for folder in self._folder.glob("*/c*"):
            record = record_of(folder)
            if folder in self._live:
                continue
            if record is None and time.time() - folder.stat().st_mtime < SWEEP_SECONDS:
                continue  # it is being put down
            old = record is None or self._clock.now_ms() - record.at > KEPT_MS or gone(Path(record.workspace))
            if old and not is_watched(folder):
                shutil.rmtree(folder, ignore_errors=True)
                with suppress(OSError):
                    folder.parent.rmdir()


async def _watched_over(one: LiveCommand) -> asyncio.subprocess.Process:
    """What watches over a command, begun. Raises `NotPossible`."""
    try:
        return await watching(one.folder, one.record.terms.kind)
    except OSError as error:
        log.error("shell.no_process", shell_command=one.record.command, error=error.strerror or type(error).__name__)  # noqa: TRY400 - told in words
        raise NotPossible(NO_PROCESS) from error


def _put_down(folder: Path, record: CommandRecord) -> None:
    made(Path(record.workspace))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    put_whole(folder, COMMAND, encoded(record))
    sync_folder(folder.parent)


def _ask(folder: Path, cause: EndCause) -> None:
    """Ask what watches over a command to end it; who asked first is told of."""
    with suppress(FileExistsError), (folder / STOP).open("x", encoding="utf-8") as file:
        file.write(cause.value)


def _nothing_left(one: LiveCommand) -> None:
    """Who watched over it is gone: a container of it may still be there. In another sandbox the kernel has ended all."""
    if one.record.terms.kind in ENGINES:
        from agent_core.tools.sandbox.contained import removed

        removed(one.record.terms.kind, container_of(one.folder))


def _not_begun(folder: Path) -> CommandEnd:
    """What was to watch over a command came to its end before it began."""
    end = CommandEnd(EndCause.SANDBOX, words="the process that watches over it did not begin")
    with suppress(OSError):
        put_whole(folder, END, encoded_end(end))
    return end


def shown_output(folder: Path, most: int) -> str:
    """What a command printed, in at most about `most` characters: its beginning and its end. Reads a file."""
    with suppress(OSError), (folder / OUTPUT).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(SHOWN_BYTES * 2)
        file.seek(max(0, size - SHOWN_BYTES))
        return both_ends(head, file.read(SHOWN_BYTES), size, most)
    return ""
