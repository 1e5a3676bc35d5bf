"""What really lies on the disk, counted; and whose folder each is.

A file counts as what it says it has or as what it takes, whichever is more, in whole blocks: neither holes in files nor many empty ones
are for nothing. A file with several names is counted once; links count as files and are not followed.

Whose a folder is stands in one small file in the state directory. A line is added before anything is written into a folder; lines
of folders that are gone are left out when it is read. Without its line, a folder counts only in the whole, until it is used again.
A folder in the state directory is named from there, so that the directory can be moved; versions before wrote its whole path.

Known to be weak: between two counts, what others write on the disk is not seen.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from pathlib import Path

import orjson

from agent_core.limits.quotas import blocks
from agent_core.records import dataclass
from agent_core.tools.files.trees import below

OWNERS_FILE = "holders.jsonl"


class CountStopped(Exception):
    """The gateway stops: nobody waits for the count any more."""


@dataclass(slots=True)
class DiskUse:
    """What a folder holds."""

    size: int = 0
    """Bytes."""
    files: int = 0
    """Folders are among them, the counted one is not."""


@dataclass(slots=True)
class Counted:
    """What was found in the state directory."""

    whole: int = 0
    folders: dict[Path, DiskUse] = field(default_factory=dict[Path, DiskUse])
    """Of each folder right below one of the roots that were asked for."""


class Stop:
    """Ends a count that runs in a thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def stop(self) -> None:
        self._event.set()

    def look(self) -> None:
        """Raises `CountStopped` if nobody waits any more."""
        if self._event.is_set():
            raise CountStopped


def count_folder(folder: Path, stop: Stop | None = None) -> DiskUse:
    """What lies in a folder; nothing if there is none."""
    return _count(folder, stop or Stop(), set())


def _count(folder: Path, stop: Stop, seen: set[tuple[int, int]]) -> DiskUse:
    use = DiskUse()
    for about in _walk(folder, stop, seen):
        use.files += 1
        use.size += about
    return use


def _walk(folder: Path, stop: Stop, seen: set[tuple[int, int]]) -> Iterator[int]:
    """The sizes of all that lies below."""
    stop.look()
    for one in below(folder):
        if one.is_folder:
            stop.look()
            yield blocks(max(one.about.st_size, 1))
            continue
        if one.about.st_nlink > 1:
            name = (one.about.st_dev, one.about.st_ino)
            if name in seen:
                continue
            seen.add(name)
        yield blocks(max(one.about.st_size, getattr(one.about, "st_blocks", 0) * 512))


def count_all(state: Path, roots: tuple[Path, ...], stop: Stop) -> Counted:
    """Everything in the state directory and in `roots`, wherever these are; what lies in their folders one by one."""
    found, seen = Counted(), set[tuple[int, int]]()
    for root in roots:
        for entry in _folders(root, roots):
            use = _count(entry, stop, seen)
            found.folders[entry] = use
            found.whole += use.size
    waiting = [state]
    while waiting:
        stop.look()
        here = waiting.pop()
        with suppress(OSError), os.scandir(here) as entries:
            for entry in entries:
                with suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    if not entry.is_dir(follow_symlinks=False):
                        found.whole += blocks(max(about.st_size, getattr(about, "st_blocks", 0) * 512))
                    # What else lies right below a root was counted
                    elif here not in roots or Path(entry.path) in roots:
                        waiting.append(Path(entry.path))
    return found


def _folders(root: Path, roots: tuple[Path, ...]) -> list[Path]:
    """Those right below a root that are no roots themselves."""
    with suppress(OSError), os.scandir(root) as entries:
        found = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
        return [folder for folder in found if folder not in roots]
    return []


class Owners:
    """Whose each folder is."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._file = state / OWNERS_FILE
        self._known: dict[str, str] = {}
        self._of: dict[str, set[str]] = {}
        self._missing: set[str] = set()
        """Folders that were not there when it was looked last: what is claimed need not be made yet."""
        self._passing: set[str] = set()
        """Folders that are gone after a turn, so that they need not be written down."""
        self._writing = threading.Lock()

    def load(self) -> None:
        """Read what is known, and leave out what is gone. Once, at the beginning."""
        with self._writing:
            self._load()

    def _load(self) -> None:
        lines: list[str] = []
        with suppress(OSError):
            lines = self._file.read_text("utf-8", "replace").split("\n")
        kept: dict[str, str] = {}
        old = False
        for line in lines:
            found = _read(line)
            folder = _whole(self._state, found[0]) if found is not None else None
            if found is not None and folder is not None:
                kept[folder] = found[1]
                old = old or found[0] != _named(self._state, folder)
        if old or len(kept) < sum(map(bool, lines)):
            self._rewrite(kept)
        for folder, holder in kept.items():
            self._note(folder, holder)

    def _rewrite(self, kept: dict[str, str]) -> None:
        with suppress(OSError):
            part = self._file.with_suffix(".part")
            part.write_text("".join(self._line(folder, holder) for folder, holder in kept.items()), "utf-8")
            part.replace(self._file)

    def tidy(self) -> None:
        """Forget the folders that are gone, if they were so the last time as well."""
        missing = {folder for folder in list(self._known) if not os.path.isdir(folder)}  # noqa: PTH112 - many of them
        with self._writing:
            gone = missing & self._missing
            self._missing = missing - gone
            for folder in gone:
                self._of[self._known.pop(folder)].discard(folder)
            self._of = {holder: folders for holder, folders in self._of.items() if folders}
            lasting = gone - self._passing
            self._passing -= gone
            if lasting:
                self._rewrite({f: holder for f, holder in self._known.items() if f not in self._passing})

    def knows(self, folder: Path, holder: str) -> bool:
        return self._known.get(str(folder)) == holder

    def claim(self, folder: Path, holder: str, *, lasting: bool = True) -> bool:
        """Whether there was something in the folder that nobody knew to be the holder's. From now on the folder is the holder's; it need not be there yet. Where that cannot be kept, it is known as long as the process lives."""
        with self._writing:
            if self.knows(folder, holder):
                return False
            self._note(str(folder), holder)
            self._missing.discard(str(folder))
            if not lasting:
                self._passing.add(str(folder))
                return False
            with suppress(OSError), self._file.open("a", encoding="utf-8") as file:
                file.write(self._line(str(folder), holder))
            return folder.is_dir()

    def _line(self, folder: str, holder: str) -> str:
        named = _named(self._state, folder)
        return "\n" + orjson.dumps([named, holder]).decode()  # a new line each, also behind one that was cut

    def _note(self, folder: str, holder: str) -> None:
        before = self._known.get(folder)
        if before is not None:
            self._of[before].discard(folder)
        self._known[folder] = holder
        self._of.setdefault(holder, set()).add(folder)

    def folders(self, holder: str) -> list[Path]:
        """Those of a holder."""
        return [Path(folder) for folder in self._of.get(holder, ())]

    def holder(self, folder: Path) -> str:
        """Whose a folder is; empty if nobody knows."""
        return self._known.get(str(folder), "")


def _named(state: Path, folder: str) -> str:
    """As it stands in the file."""
    return folder.removeprefix(f"{state}{os.sep}")


def _whole(state: Path, named: str) -> str | None:
    """The folder of a line; None if it is gone. One that was written with its whole path may have moved with the state."""
    whole = os.path.join(state, named)  # noqa: PTH118 - many of them; a whole path stays as it is
    if os.path.isdir(whole):  # noqa: PTH112
        return whole
    tail = Path(named).parts[1:] if os.path.isabs(named) else ()  # noqa: PTH117
    ends = (state.joinpath(*tail[first:]) for first in range(len(tail) - 1))
    return next((str(end) for end in ends if end.is_dir()), None)


def _read(line: str) -> tuple[str, str] | None:
    """(folder, holder); None for a line that was cut."""
    with suppress(ValueError):
        match orjson.loads(line):
            case [str(folder), str(holder)]:
                return folder, holder
            case _:
                pass
    return None
