"""What a disk may hold after the power went: pure, from a recording, a position in it and a seed.

The model. What was synced is there. Of what was written to a file since its last sync, each write is there, or is not, or is torn
at 512-byte sectors; a later write may be there and an earlier one not. A truncation that was not synced happened or did not.
Bytes outside a write are never touched by it (SQLite's "powersafe overwrite", which it assumes of every file system by default).
The log is in its folder from its first sync on, because SQLite syncs the folder then. The shared-memory file is gone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.power.recorder import Kind, Op

SECTOR = 512


@dataclass
class Disk:
    """One file as it is known to be on the disk, and what is under way to it."""

    synced: bytearray = field(default_factory=bytearray)
    ever_synced: bool = False
    pending: list[Op] = field(default_factory=list[Op])

    def after_cut(self, draw: random.Random) -> bytes:
        """What may be found."""
        data = bytearray(self.synced)
        keep = draw.choice((0.0, 0.3, 0.7, 1.0))
        for op in self.pending:
            if draw.random() >= keep:
                continue
            if op.kind is Kind.TRUNCATE:
                del data[op.at :]
            elif draw.random() < 0.7:
                put(data, op.at, op.data)
            else:
                for at, piece in _sectors(op):
                    if draw.random() < 0.5:
                        put(data, at, piece)
        return bytes(data)


def put(data: bytearray, at: int, piece: bytes) -> None:
    """Write `piece` at `at`; a gap before it is zeros."""
    if len(data) < at:
        data.extend(bytes(at - len(data)))
    data[at : at + len(piece)] = piece


def _sectors(op: Op) -> Iterator[tuple[int, bytes]]:
    """The parts of a write that lie in different sectors of the file."""
    start = op.at
    end = op.at + len(op.data)
    while start < end:
        border = min(end, (start // SECTOR + 1) * SECTOR)
        yield start, op.data[start - op.at : border - op.at]
        start = border


def apply(disks: dict[str, Disk], op: Op) -> None:
    """Take note of one more operation."""
    match op.kind:
        case Kind.WRITE | Kind.TRUNCATE:
            disks.setdefault(op.file, Disk()).pending.append(op)
        case Kind.SYNC:
            disk = disks.setdefault(op.file, Disk())
            for pending in disk.pending:
                if pending.kind is Kind.TRUNCATE:
                    del disk.synced[pending.at :]
                else:
                    put(disk.synced, pending.at, pending.data)
            disk.pending.clear()
            disk.ever_synced = True
        case Kind.DELETE:
            disks.pop(op.file, None)
        case Kind.ACKNOWLEDGED:
            pass


def cut(ops: Sequence[Op], positions: Sequence[int], seed: int) -> Iterator[tuple[int, dict[str, bytes]]]:
    """For each of the (ascending) positions: the position, and the files as they may be found after a cut just before it."""
    disks: dict[str, Disk] = {}
    done = 0
    for position in positions:
        while done < position:
            apply(disks, ops[done])
            done += 1
        draw = random.Random(seed * 1_000_003 + position)
        found: dict[str, bytes] = {}
        for name, disk in disks.items():
            if disk.ever_synced or draw.random() < 0.5:
                found[name] = disk.after_cut(draw)
        yield position, found
