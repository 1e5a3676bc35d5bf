"""What the machine has none left of, as far as what was raised tells: files and connections, room on its disk, memory. Pure.

That is no mistake of anybody's program, and nothing that an address, a key or other words would change: it passes, or whoever runs the gateway allows it more.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import cast

from agent_core.text.tongue import sentence

NO_FILES = sentence("this gateway can open no more files or connections")
NO_DISK = sentence("the disk of the gateway is full")
NO_MEMORY = sentence("the machine of the gateway has no memory left")
SHORTAGES = (NO_FILES, NO_DISK, NO_MEMORY)
_OF = {
    errno.EMFILE: NO_FILES,
    errno.ENFILE: NO_FILES,
    errno.ENOSPC: NO_DISK,
    errno.EDQUOT: NO_DISK,
    errno.ENOMEM: NO_MEMORY,
}
DEEPEST = 10


def shortage(error: BaseException) -> str:
    """Of what there was none left, in words; empty if that is not why this was raised."""
    for one in _behind(error, DEEPEST):
        if isinstance(one, MemoryError):
            return NO_MEMORY
        if isinstance(one, OSError) and one.errno in _OF:
            return _OF[one.errno]
    return ""


def _behind(error: BaseException, deeper: int) -> Iterator[BaseException]:
    """It, what it came of, and what it holds."""
    yield error
    if not deeper:
        return
    held = cast("BaseExceptionGroup[BaseException]", error).exceptions if isinstance(error, BaseExceptionGroup) else ()
    for one in (error.__cause__, None if error.__suppress_context__ else error.__context__, *held):
        if one is not None:
            yield from _behind(one, deeper - 1)
