"""What the processes of one sandbox take, and what its folder holds: read from outside, several times a second.

Where the kernel keeps a limit for all of them together, this is the second line; where it does not, the first one. Between two looks more may be taken.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent_core.records import dataclass
from agent_core.tools.files.trees import opened

SCARCE_SHARE = 0.04
"""Of the machine's memory: with less than this free, what a command takes is taken back, even what counts for no process (pipes, sockets)."""
KIB = 1024


def family(init: int, most: int) -> list[int]:
    """The processes below the first one of a sandbox, itself among them; not many more than `most` are looked for."""
    found, waiting = list[int](), [init]
    while waiting and len(found) <= most:
        one = waiting.pop()
        found.append(one)
        waiting += _children(one)
    return found


def _children(process: int) -> Iterator[int]:
    place = f"/proc/{process}/task"
    with suppress(OSError):
        for thread in os.listdir(place):  # noqa: PTH208 - several times a second
            with suppress(OSError), open(f"{place}/{thread}/children", "rb") as file:  # noqa: PTH123
                yield from map(int, file.read().split())


def memory_of(processes: list[int], most: int) -> int:
    """Bytes that they have to themselves. What several share is counted once, if it would matter."""
    whole = sum(map(_resident, processes))
    return whole if whole <= most else sum(map(_proportional, processes))


def _resident(process: int) -> int:
    return _figure(f"/proc/{process}/status", (b"RssAnon:", b"RssShmem:"))


def _proportional(process: int) -> int:
    return _figure(f"/proc/{process}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) or _resident(process)


def _figure(place: str, names: tuple[bytes, ...]) -> int:
    with suppress(OSError, ValueError), open(place, "rb") as file:  # noqa: PTH123
        return sum(int(line.split()[1]) * KIB for line in file if line.startswith(names))
    return 0


def memory_is_scarce() -> bool:
    """The whole machine has hardly any left."""
    found: dict[bytes, int] = {}
    with suppress(OSError, ValueError), open("/proc/meminfo", "rb") as file:  # noqa: PTH123
        found = {name: int(rest.split()[0]) for name, _, rest in (line.partition(b":") for line in file)}
    total, free = found.get(b"MemTotal", 0), found.get(b"MemAvailable")
    return free is not None and free < total * SCARCE_SHARE


@dataclass(slots=True)
class FolderUse:
    """What lies in a folder. Bytes, in whole blocks; and how many."""

    size: int = 0
    files: int = 0


DEEPEST = 300
"""Folders in folders; whoever goes deeper hides something, and counts as one who has written too much."""
HIDDEN = 1 << 50


def folder_use(folder: Path, most_files: int) -> FolderUse:
    """Count it, by descriptors, so that nothing leads out of it; it ends when there are more files than `most_files`.

    A folder that its owner has closed is opened: what is in it counts.
    """
    use = FolderUse()
    with suppress(OSError):
        _count(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), 0, most_files, use)
    return use


def _count(here: int, depth: int, most_files: int, use: FolderUse) -> None:
    """What lies in the folder of a descriptor, which is closed."""
    try:
        with os.scandir(here) as entries:
            for entry in entries:
                if use.files > most_files:
                    return
                with suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    use.files += 1
                    use.size += max(-(-about.st_size // 4096) * 4096, about.st_blocks * 512)
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    if depth >= DEEPEST:
                        use.size += HIDDEN
                        continue
                    _count(opened(entry.name, here), depth + 1, most_files, use)
    finally:
        os.close(here)


def open_again(folder: Path) -> None:
    """A conversation's folder that a command has closed, to itself and to all that come after it, is opened."""
    with suppress(OSError):
        mode = stat.S_IMODE(folder.lstat().st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            folder.chmod(mode | stat.S_IRWXU)


class FolderWatch:
    """How much a folder has grown since the watch began. It counts seldom, and at once when the disk's room has shrunk by a lot."""

    REST = 20
    """It counts for no more than one part in so many of the time."""
    SECONDS = 2.0

    def __init__(self, folder: Path, most_bytes: int, most_files: int) -> None:
        self._folder, self._most_bytes, self._most_files = folder, most_bytes, most_files
        self._count = 10 * most_files + 1_000_000
        self._before = folder_use(folder, self._count)
        self._free = self._room()
        self._next = time.monotonic() + self.SECONDS

    def _room(self) -> tuple[int, int]:
        with suppress(OSError):
            room = os.statvfs(self._folder)
            return room.f_bavail * room.f_frsize, room.f_favail
        return 0, 0

    def over(self) -> bool:
        """Whether it has grown by more than it may."""
        now, (free, inodes) = time.monotonic(), self._room()
        shrunk = self._free[0] - free > self._most_bytes // 4 or self._free[1] - inodes > self._most_files // 4
        return self.look() if now >= self._next or shrunk else False

    def look(self) -> bool:
        """Count it now."""
        began = time.monotonic()
        self._free = self._room()
        use = folder_use(self._folder, self._before.files + self._most_files)
        self._next = time.monotonic() + max(self.SECONDS, self.REST * (time.monotonic() - began))
        return use.size - self._before.size > self._most_bytes or use.files - self._before.files > self._most_files
