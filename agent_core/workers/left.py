"""What jobs have begun and left running: found by whose children they are, also those that made themselves daemons, and ended.

A worker that may begin processes is the one to whom orphans below it are given (a child subreaper), so all of them stay below it as long as it
lives: it ends them after each job, and whoever kills it ends them before.

Known to be weak: of a worker that dies by itself, or with a gateway that is killed, nobody can tell any more what had left its process group.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from time import monotonic, sleep

ENDING_SECONDS = 2.0
"""At most: what hangs in the kernel ends when that lets it."""
_BECOME_SUBREAPER = 36
"""``PR_SET_CHILD_SUBREAPER`` of ``prctl``."""


def take_orphans() -> None:
    """From now on what is begun below this process stays below it."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)


def below(process: int) -> list[int]:
    """All that descend from a process, as far as the system tells. Blocks for some milliseconds."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib is slower to import
    except OSError:  # a system without it
        return []
    for name in names:
        if name.isdecimal() and (parent := _parent(name)):
            children.setdefault(parent, []).append(int(name))
    found, open_ = list[int](), [process]
    while open_:
        next_ = children.get(open_.pop(), [])
        found += next_
        open_ += next_
    return found


def _parent(name: str) -> int:
    """Of a process that is no zombie; 0: nobody's."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):  # it has ended meanwhile
        return 0
    return 0 if state == b"Z" else int(parent)


def end_below(process: int) -> None:
    """End all that descend from a process, also what they begin meanwhile. Blocks."""
    until = monotonic() + ENDING_SECONDS
    while (found := below(process)) and monotonic() < until:
        for one in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        sleep(0.01)


def end_own() -> None:
    """End all that this process has begun, and take their exits."""
    if not _has_children():
        return
    end_below(os.getpid())
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
