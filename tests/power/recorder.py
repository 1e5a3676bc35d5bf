"""Records what SQLite writes, syncs, cuts and deletes, by a layer of ours between SQLite and its own file system layer.

It is registered as the default VFS of the very library that Python's ``sqlite3`` uses, so the real writer runs unchanged. The
structures are those of ``sqlite3.h`` (``sqlite3_vfs``, ``sqlite3_io_methods``); everything but the calls that change a file goes
straight through. Use it in a process of its own: there is no way back.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, cast
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any


class Kind(Enum):
    WRITE = auto()
    TRUNCATE = auto()
    SYNC = auto()
    DELETE = auto()
    ACKNOWLEDGED = auto()
    """Not SQLite's: the store answered a caller."""


@dataclass(frozen=True, slots=True)
class Op:
    """One thing that happened."""

    kind: Kind
    file: str = ""
    """The file's name without its folder."""
    at: int = 0
    """Offset of a write, or size after a truncation, in bytes."""
    data: bytes = b""
    promise: object = None
    """With ACKNOWLEDGED: what may not be lost from here on."""


class NotRecordable(Exception):
    """This Python's SQLite is not a shared library that can be found."""


_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)


class _Methods(Structure):
    _fields_ = [
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("rest", c_void_p * 13),  # file size, locks, control, sector size, characteristics, shared memory, fetch
    ]


class _Vfs(Structure):
    _fields_ = [
        ("version", c_int),
        ("file_bytes", c_int),
        ("path_bytes", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _Open),
        ("delete", _Delete),
        ("rest", c_void_p * 14),
    ]


def _library() -> ctypes.CDLL:
    """The SQLite that is loaded into this process by Python's own module."""
    import sqlite3

    assert sqlite3.sqlite_version
    for line in Path("/proc/self/maps").read_text().splitlines():
        found = re.search(r"(/\S*libsqlite3\S*)$", line)
        if found is not None:
            return ctypes.CDLL(found[1])
    raise NotRecordable("this Python has SQLite built in, so its writes cannot be recorded")


class Recorder:
    """The list of operations, from `install` on."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._files: dict[int, tuple[str, _Methods]] = {}
        self._patched: dict[int, _Methods] = {}
        self._kept: list[object] = []

    def acknowledge(self, promise: object) -> None:
        """The store has answered."""
        self.ops.append(Op(Kind.ACKNOWLEDGED, promise=promise))

    def install(self) -> None:
        """Become the default VFS. Raises `NotRecordable`."""
        library = _library()
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        below: _Vfs = library.sqlite3_vfs_find(None).contents
        layer = _Vfs.from_buffer_copy(below)
        layer.name = b"recording"

        # Names go on as the pointers that they came as: SQLite keeps them, and looks behind them for more.
        def opened(_vfs: int, name: int | None, file: int, flags: int, out: Any) -> int:
            return self._open(below, name, file, flags, out)

        def deleted(_vfs: int, name: bytes, sync: int) -> int:
            return self._delete(below, name, sync)

        layer.open = _Open(opened)
        layer.delete = _Delete(deleted)
        self._kept += [layer, below, library]
        if library.sqlite3_vfs_register(byref(layer), 1) != 0:
            raise NotRecordable("SQLite did not take another VFS")

    def _open(self, below: _Vfs, name: int | None, file: int, flags: int, out: Any) -> int:
        status = below.open(ctypes.addressof(below), name, file, flags, out)
        if status == 0 and name:
            slot = cast(file, POINTER(c_void_p))
            address = slot[0]
            if address is not None:
                original = _Methods.from_address(address)
                self._files[file] = (Path(ctypes.string_at(name).decode()).name, original)
                slot[0] = ctypes.addressof(self._layer(address, original))
        return status

    def _layer(self, address: int, original: _Methods) -> _Methods:
        if address not in self._patched:
            methods = _Methods.from_buffer_copy(original)
            methods.write = _Write(self._write)
            methods.truncate = _Truncate(self._truncate)
            methods.sync = _Sync(self._sync)
            self._patched[address] = methods
        return self._patched[address]

    def _write(self, file: int, data: int, size: int, offset: int) -> int:
        name, original = self._files[file]
        self.ops.append(Op(Kind.WRITE, name, offset, ctypes.string_at(data, size)))
        return original.write(file, data, size, offset)

    def _truncate(self, file: int, size: int) -> int:
        name, original = self._files[file]
        self.ops.append(Op(Kind.TRUNCATE, name, size))
        return original.truncate(file, size)

    def _sync(self, file: int, flags: int) -> int:
        name, original = self._files[file]
        status = original.sync(file, flags)
        self.ops.append(Op(Kind.SYNC, name))
        return status

    def _delete(self, below: _Vfs, name: bytes, sync: int) -> int:
        self.ops.append(Op(Kind.DELETE, Path(name.decode()).name))
        return below.delete(ctypes.addressof(below), name, sync)
