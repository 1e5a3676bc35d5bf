"""A gateway that runs as root runs no command as root: each conversation's commands belong to a user who is nobody else.

The kernel holds the number of processes for users, but not for root; and what root may do without any rights is still more than a command needs. The
conversation's folder is given to that user, and shown where that user finds it: the folders above it are closed to others.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent_core.tools.files.trees import below

_NEW_MOUNTS = 0x00020000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_FIRST, _MANY = 1_000_000_000, 1_000_000_000
"""Numbers of users that no system gives to people or services."""
PLACES = ("/mnt", "/media", "/srv", "/opt")
"""Folders that are there on every system; one is covered, for this process and its children only."""


class NoPlace(Exception):
    """The conversation's folder cannot be shown to its user."""


def user_of(workspace: str) -> int:
    """The number of the user that a conversation's commands run as. Pure."""
    return (
        _FIRST + int.from_bytes(hashlib.blake2b(workspace.encode("utf-8", "replace"), digest_size=8).digest()) % _MANY
    )


def shown_to(user: int, workspace: str, read: tuple[str, ...]) -> str:
    """Where the user finds the folder, which is theirs from now on. Only as root, in a process that nobody else needs. Raises `NoPlace`, `OSError`."""
    given_to(workspace, user)
    place = next(
        (one for one in PLACES if Path(one).is_dir() and not any(f"{each}/".startswith(f"{one}/") for each in read)),
        None,
    )
    if place is None:
        raise NoPlace(f"none of {', '.join(PLACES)} is there and free")
    library = ctypes.CDLL(None, use_errno=True)
    for done in (
        lambda: library.unshare(_NEW_MOUNTS),
        lambda: library.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None),
        lambda: library.mount(os.fsencode(workspace), place.encode(), None, _BIND, None),
    ):
        if done() != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return place


def done_as(user: int, work: Callable[[], None]) -> None:
    """Have something done by that user, who may not reach our own modules: it has to import nothing. Only in a process with one thread. Raises `OSError` if it was not done."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if status:
        raise OSError("the limits of the sandbox could not be set")


def given_to(workspace: str, user: int) -> None:
    """Everything in the folder is the user's. Links are not followed, and nothing outside is touched, whatever is moved meanwhile."""
    here = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(here).st_uid != user:
            os.fchown(here, user, user)
    finally:
        os.close(here)
    for one in below(Path(workspace)):
        with suppress(FileNotFoundError):
            if one.about.st_uid != user:
                os.chown(one.name, user, user, dir_fd=one.folder, follow_symlinks=False)
