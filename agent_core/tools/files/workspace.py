"""Confines file tools to the session's workspace folder: no way out by ``..``, absolute paths or links.

Theory. A path is split into plain names first; what is no plain name is refused. Then it is walked from the workspace, one
folder at a time, with a directory descriptor and ``O_NOFOLLOW``: a link anywhere on the way is refused by the kernel at the very
moment of opening, so nothing can be swapped between a check and a use. Only regular files are read or replaced. Whatever counts can be
removed (`remove`), and folders that this leaves empty go with it (`remove_empty`); whoever makes a folder may find it gone, and makes it
again.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from agent_core.tools.base import NotPossible

MAX_DEPTH = 32
MAX_NAME_BYTES = 200
ELSEWHERE = "files-are-elsewhere.txt"
"""Lies in a workspace whose conversation was run on another machine, and whose files from there are not here."""


LEFT_OVER = re.compile(r"\.[0-9a-f]{16}\.part")
"""What a file is called until it is whole. A process that is killed may leave it; a call that is begun again goes on with it."""


class PathRefused(NotPossible):
    """The path or the file cannot be used; the words are for the model."""


class FileMissing(PathRefused):
    """The file, or a folder on the way to it, is not there."""


class FolderNotEmpty(PathRefused):
    """It holds something, and is not removed with that."""


GUARDED: dict[Path, Callable[[], bool]] = {}
"""Where workspaces lie, each with what says whether it is there: what stands in the place of a disk that was taken away is none."""
AWAY = "Files cannot be used just now: the disk or share on which they lie is not there. Say so to the person, and go on without them."


def made(workspace: Path) -> None:
    """Make a workspace's folder, where there is none. Raises `PathRefused` where those of all are not there."""
    if not workspace.is_dir():
        for root in workspace.parents[:2]:
            if (there := GUARDED.get(root)) is not None and not there():
                raise PathRefused(AWAY)
    workspace.mkdir(parents=True, exist_ok=True, mode=0o700)


def gone(workspace: Path) -> bool:
    """Whether there is no such workspace any more; where those of all are not there, nobody knows."""
    return not workspace.is_dir() and all(GUARDED[root]() for root in workspace.parents[:2] if root in GUARDED)


def elsewhere(workspace: Path) -> str:
    """What is to be said besides, where a file is missing."""
    if not (workspace / ELSEWHERE).is_file():
        return ""
    return f" Files that this conversation had on another machine are not here: {ELSEWHERE} says more. Say so to the person if it matters."


def names_of(path: str) -> list[str]:
    """The plain names of a relative path, none for the workspace itself. Raises `PathRefused`."""
    if "\0" in path:
        raise PathRefused("A path cannot hold a NUL character.")
    if "\\" in path:
        raise PathRefused("Use / between the names of a path, not a backslash.")
    if path.startswith(("/", "~")):
        raise PathRefused(f"{path!r} is not inside the workspace: give a path relative to it, such as notes/today.txt.")
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names:
        raise PathRefused("A path cannot leave the workspace: '..' is not allowed.")
    if len(names) > MAX_DEPTH:
        raise PathRefused(
            f"The path has {len(names)} names, and files can lie {MAX_DEPTH} deep at most. Use fewer folders in one another."
        )
    for name in names:
        try:
            size = len(name.encode())
        except UnicodeEncodeError:
            raise PathRefused("The path holds characters that no file name can have.") from None
        if size > MAX_NAME_BYTES:
            raise PathRefused(f"A name in the path is longer than {MAX_NAME_BYTES} bytes.")
    return names


@contextmanager
def folder(workspace: Path, names: list[str], *, create: bool = False) -> Generator[int]:
    """A descriptor of the folder `names` below the workspace. Raises `PathRefused`; with `create`, makes what is missing."""
    if create:
        made(workspace)
    try:
        here = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        raise FileMissing("The workspace is empty.") from None
    try:
        for position, name in enumerate(names):
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=here)
                    os.fsync(here)
            shown = "/".join(names[: position + 1])
            try:
                there = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            except FileNotFoundError:
                raise FileMissing(f"There is no folder {shown}.") from None
            except OSError:
                raise PathRefused(f"{shown} is not a folder that can be used (links are not followed).") from None
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


def open_file(directory: int, name: str, shown: str) -> int:
    """A descriptor for reading a regular file. Raises `PathRefused`."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except FileNotFoundError:
        raise FileMissing(f"There is no file {shown}.") from None
    except OSError:
        raise PathRefused(f"{shown} cannot be opened (links are not followed).") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise PathRefused(f"{shown} is not a regular file.")
    return file


def put_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet. Raises `FileExistsError` for whatever lies there, also for a link that leads nowhere: a command of the model's may
    have made it, and the gateway can write where the command cannot. Nothing is left of what could be written in part only; then `OSError`."""
    file = path.open("xb")
    try:
        with file:
            file.write(data)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def remove(directory: int, name: str, shown: str) -> None:
    """Remove what lies under a name, whatever it is; of folders only an empty one. Raises `PathRefused`, `FileNotFoundError`, `OSError`."""
    try:
        os.unlink(name, dir_fd=directory)
    except (IsADirectoryError, PermissionError):  # both are said of folders
        if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise
        try:
            os.rmdir(name, dir_fd=directory)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise FolderNotEmpty(
                f"{shown} is a folder that is not empty: delete what is in it, and it goes with the last of that."
            ) from None


def remove_empty(workspace: Path, names: list[str]) -> None:
    """Remove these folders, one below the other, as far as they are empty: they count, and are of no use to anybody."""
    for depth in range(len(names), 0, -1):
        try:
            with folder(workspace, names[: depth - 1]) as above:
                os.rmdir(names[depth - 1], dir_fd=above)
                os.fsync(above)
        except (OSError, PathRefused):
            return


def emptied_folders(workspace: Path, names: list[str]) -> int:
    """How many of these folders, one below the other, are empty once the one thing is gone that lies in the last of them."""
    for count in range(len(names)):
        try:
            with folder(workspace, names[: len(names) - count]) as here, os.scandir(here) as entries:
                if len(list(islice(entries, 2))) > 1:
                    return count
        except (OSError, PathRefused):
            return count
    return len(names)


def missing_folders(workspace: Path, names: list[str]) -> int:
    """How many of these folders, one below the other, are not there yet."""
    here = workspace
    for position, name in enumerate(names):
        here = here / name
        if not os.path.lexists(here):
            return len(names) - position
    return 0


def split_file(path: str, *, folders: bool = False) -> tuple[list[str], str]:
    """(folders, file name). Raises `PathRefused` if there is no name; with `folders`, the name may be that of a folder."""
    names = names_of(path)
    if not names or (path.endswith("/") and not folders):
        raise PathRefused("The path must name a file.")
    return names[:-1], names[-1]
