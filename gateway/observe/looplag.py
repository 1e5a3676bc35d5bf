"""How late the event loop is, and what holds it.

Theory. A task of the loop beats twice a second; a thread looks whether it did. If the loop is late by a second, the thread writes the stack
of the loop's thread into the log: once for each time that it is held, and its length when it is over. Python code and waiting calls are
seen while they hold it. C code that keeps the interpreter's lock stops that thread as well, which is first when the lock is let go: it
then finds the loop's thread where it called that code.

Law: nobody reads a stack without the interpreter's lock while the program runs. `faulthandler` can, from its alarm or from a signal, and
where the stack moves meanwhile the process dies of it (https://github.com/python/cpython/issues/140815). So it only writes where the process
dies anyway: of a fault in C, or of SIGABRT, which service managers send to what hangs. What it wrote is told by the next process.

A stack is made of places in the program, never of values.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import re
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

import structlog

from agent_core.beside import beside
from agent_core.records import dataclass
from agent_core.text.patterns import late

log = structlog.get_logger("loop")

BEAT_SECONDS = 0.5
HELD_SECONDS = 1.0
FRAMES = 30
"""How many of the innermost calls are told."""
MOST_CHARS = 100_000
_CAUSE = late(r"^Fatal Python error: (.{1,100})$", re.MULTILINE)
_PLACE = late(r'^  File "([^"\n]{1,500})", line (\d{1,9}) in (.{1,200})$')


@dataclass(frozen=True, slots=True)
class LoopLate:
    """A beat was late by so much."""

    seconds: float


class LoopWatch:
    """Looks how late the loop is while `watching` lasts. `observe` is called with each beat's lateness, in seconds."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self.longest = 0.0
        """Seconds that the loop was held at most, since the start."""
        self._due = 0.0
        """When the next beat is to come, by the monotonic clock."""
        self._told = False
        """The stack of what holds the loop now is in the log."""
        self._over = threading.Event()

    @asynccontextmanager
    async def watching(self, notes: Path | None = None) -> AsyncGenerator[None]:
        """Watch for the block. `notes`: the file for the stack that a dying process leaves."""
        file = _opened(notes) if notes is not None else None
        noting = not faulthandler.is_enabled()  # else somebody else wants it
        if file is not None and noting:
            faulthandler.enable(file, all_threads=False)
        self._due = time.monotonic() + BEAT_SECONDS
        self._over.clear()
        thread = threading.Thread(target=self._look, args=(threading.get_ident(),), name="loop lag", daemon=True)
        thread.start()
        try:
            async with beside(self._beat, "loop lag"):
                yield
        finally:
            self._over.set()
            thread.join(1)
            if file is not None:
                if noting:
                    faulthandler.disable()
                file.close()

    async def _beat(self) -> None:
        worked = time.thread_time()
        while True:
            self._due = time.monotonic() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)
            late = max(0.0, time.monotonic() - self._due)
            self._observe(late)
            self.longest = max(self.longest, late)
            before, worked = worked, time.thread_time()
            if late >= HELD_SECONDS:
                if not self._told:  # the whole process was stopped, and the loop was quicker
                    log.warning("loop.held", seconds=round(late, 1), frames=[])
                log.warning("loop.went_on", seconds=round(late, 1), cpu_seconds=round(worked - before, 1))
            self._told = False

    def _look(self, loop_thread: int) -> None:
        """The thread's work."""
        while not self._over.wait(BEAT_SECONDS):
            late = time.monotonic() - self._due
            if late >= HELD_SECONDS and not self._told:
                frame = sys._current_frames().get(loop_thread)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - there is no other way
                self._told = True
                log.warning("loop.held", seconds=round(late, 1), frames=_frames(frame))


def _frames(frame: FrameType | None) -> list[str]:
    """The places of a stack, the innermost first."""
    found: list[str] = []
    while frame is not None and len(found) < FRAMES:
        found.append(_place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return found


def stack_of(noted: str) -> list[str]:
    """The places of the last stack in what `faulthandler` wrote, the innermost first. Pure."""
    found: list[str] = []
    begun = False
    for line in noted.splitlines():
        if line.endswith("(most recent call first):"):
            begun = True
        elif (place := _PLACE.match(line)) is not None:
            if begun:
                found, begun = [], False
            if len(found) < FRAMES:
                found.append(_place(place.group(1), int(place.group(2)), place.group(3)))
    return found


def cause_of(noted: str) -> str:
    """Of what the process died that wrote this; empty if somebody ended it. Pure."""
    cause = _CAUSE.search(noted)
    return "" if cause is None or cause.group(1) == "Aborted" else cause.group(1)


def _place(file: str, line: int, function: str) -> str:
    return f"{'/'.join(file.split('/')[-3:])}:{line}:{function}"


def _opened(notes: Path) -> TextIO | None:
    """The file for notes, empty; what an earlier process noted in it goes to the log."""
    try:
        # for this user alone, whatever the process leaves to others: what it holds goes into the log
        handle = os.open(notes, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        file = os.fdopen(handle, "a+", encoding="utf-8", errors="replace")  # a disk may have made anything of it
        left = _taken(file)
    except OSError as error:
        log.warning("loop.not_noted", error=error.strerror or type(error).__name__)
        return None
    if left and (cause := cause_of(left)):
        log.error("process.crashed", error=cause, frames=stack_of(left))
    elif left:
        log.warning("loop.was_held", frames=stack_of(left))
    return file


def _taken(file: TextIO) -> str:
    """What is in the file, which is empty then."""
    file.seek(0)
    noted = file.read(MOST_CHARS)
    file.seek(0)
    file.truncate()
    return noted
