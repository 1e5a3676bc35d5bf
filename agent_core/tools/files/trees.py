"""Folders in folders, as deep as they come: what lies in them, and their removal.

A command of the agent makes folders that no path reaches (the kernel takes paths of 4096 bytes) and that are deeper than Python calls itself. What
walks by paths or recursion does not see what lies there, or fails: it would be of no account, and nobody could remove it. So a walk goes by
descriptors, a folder at a time, and keeps two open however deep it is; a removal brings folders up to the top before it takes them away. Links are
never followed.

Laws (tests/agent_core/tools/test_trees.py): a walk finds what was made, once, and opens no more than it closes; after a removal nothing is left,
and nothing outside is touched.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_LOOK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GOING = ".going-"


class Below(NamedTuple):
    """Something in a folder."""

    folder: int
    """A descriptor of that folder, good until the next one is asked for."""
    name: str
    above: str
    """Where that folder is, from the top; with a slash at its end, or empty."""
    about: os.stat_result

    @property
    def path(self) -> str:
        """Where it is, from the top. Longer than the kernel takes, perhaps."""
        return f"{self.above}{self.name}"

    @property
    def is_folder(self) -> bool:
        """Whether more may lie in it."""
        return stat.S_ISDIR(self.about.st_mode)


def below(top: Path) -> Generator[Below]:
    """What lies in a folder, each folder before what is in it; nothing if there is none. What goes meanwhile is passed over."""
    try:
        root = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        yield from _below(root)
    finally:
        os.close(root)


def _below(root: int) -> Generator[Below]:
    here, names, above = os.dup(root), list[str](), ""
    way: list[tuple[tuple[int, int], list[str]]] = []
    """Of each folder from the top down to here: which it is, and what in it was not looked into yet."""
    try:
        while True:
            folders: list[str] = []
            way.append((_which(here), folders))
            for name, about in _in(here):
                if stat.S_ISDIR(about.st_mode):
                    folders.append(name)
                yield Below(here, name, above, about)
            there = -1
            while there < 0:
                if waiting := way[-1][1]:
                    with suppress(OSError):
                        names.append(waiting.pop())
                        there = opened(names[-1], here)
                        above = f"{above}{names[-1]}/"
                    if there < 0:
                        names.pop()
                    continue
                way.pop()
                if not way:
                    return
                above = above[: -len(names.pop()) - 1]
                up = _up(root, here, names, way[-1][0])
                if up < 0:  # it was moved meanwhile, and is looked at next time
                    way[-1][1].clear()
                    continue
                os.close(here)
                here = up
            os.close(here)
            here = there
    finally:
        os.close(here)


def _in(here: int) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, os.stat_result]] = []
    with suppress(OSError), os.scandir(here) as entries:
        for entry in entries:
            with suppress(OSError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return found


def _which(folder: int) -> tuple[int, int]:
    about = os.fstat(folder)
    return about.st_dev, about.st_ino


def _up(root: int, here: int, names: list[str], wanted: tuple[int, int]) -> int:
    """A descriptor of the folder above, which is `names` below the top; -1 if it cannot be found."""
    for way in ([".."], names):
        at = os.dup(here if way != names else root)
        try:
            for name in way:
                there = os.open(name, _LOOK, dir_fd=at)
                os.close(at)
                at = there
            if _which(at) == wanted:
                return at
        except OSError:
            pass
        os.close(at)
    return -1


def opened(name: str, folder: int) -> int:
    """A descriptor of a folder in a folder, which is opened if its owner has closed it. Raises `OSError` if it is none any more."""
    try:
        return os.open(name, _LOOK, dir_fd=folder)
    except PermissionError:
        closed = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{closed}", 0o700)  # noqa: PTH101 - of that very folder
        finally:
            os.close(closed)
        return os.open(name, _LOOK, dir_fd=folder)


def remove_tree(top: Path) -> None:
    """Remove a folder with all that is in it. Raises `FileNotFoundError` if there is none, `OSError` if something is left."""
    empty_tree(top)
    top.rmdir()


def empty_tree(top: Path) -> None:
    """Remove all that is in a folder, as far as that can be. Raises `FileNotFoundError` if there is none."""
    root = os.open(top, _LOOK)
    stays, number, mark = set[str](), 0, os.urandom(6).hex()
    try:
        while going := [(name, about) for name, about in _in(root) if name not in stays]:
            for name, about in going:
                try:
                    if stat.S_ISDIR(about.st_mode):
                        number = _raised(root, name, number, mark)
                        os.rmdir(name, dir_fd=root)
                    else:
                        os.unlink(name, dir_fd=root)
                except FileNotFoundError:
                    continue
                except OSError:
                    stays.add(name)
    finally:
        os.close(root)


def _raised(root: int, name: str, number: int, mark: str) -> int:
    """Remove what is in a folder at the top; the folders in it come up beside it, under numbers that go on. Raises `OSError`."""
    here = opened(name, root)
    try:
        for inner, about in _in(here):
            with suppress(OSError):  # the folder stays then
                if not stat.S_ISDIR(about.st_mode):
                    os.unlink(inner, dir_fd=here)
                    continue
                number += 1
                os.close(opened(inner, here))  # only what may be written to can be moved
                os.rename(inner, f"{_GOING}{mark}-{number}", src_dir_fd=here, dst_dir_fd=root)
    finally:
        os.close(here)
    return number
