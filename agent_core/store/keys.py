"""Lists for ``IN``, padded to a power of two: the number of different statements stays small, and so do the caches of prepared ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
CHUNK_KEYS = 4096
"""Most keys of one ``IN`` list: both engines allow about 32 000 parameters a statement."""


def padded(keys: Iterable[K]) -> Iterable[list[K]]:
    """`keys` in chunks, each filled up to a power of two by repeating its last key."""
    every = list(keys)
    for begin in range(0, len(every), CHUNK_KEYS):
        chunk = every[begin : begin + CHUNK_KEYS]
        size = 1 << (len(chunk) - 1).bit_length()
        yield chunk + [chunk[-1]] * (size - len(chunk))
