"""What is stored of a command: the files of its folder, by which any process knows how it stands. Pure but for reading them.

Theory. A command has a folder, named after the call that asked for it, so that the same call has the same one whoever carries it out. `COMMAND` is there before
anything is begun. The process that watches over it takes `LOCK` and then makes `BEGAN`, which can be made once: so no command is run twice. What it
found in the end is in `END`, written whole. A folder with `BEGAN`, without `END`, and whose lock nobody has is one of a command that is over, and nobody knows how.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import orjson

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.tools.sandbox.ends import CommandEnd, EndCause
from agent_core.tools.sandbox.terms import ShellTerms, read_terms, spelled

COMMAND, BEGAN, LOCK, OUTPUT, END = "command.json", "began", "lock", "output", "end.json"
STOP = "stop"
"""Somebody wants it to end; why stands in it."""
OWNER = "owner"
"""The process id of the gateway that goes on with it after the one that began it."""
TOLD = "told"
"""Its end is known to the conversation."""


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A command as it was asked for."""

    command: str
    """Its id, which the model knows."""
    turn: str
    call: str
    workspace: str
    """The whole path of the conversation's folder."""
    shown: str
    """One line of it, for people."""
    argv: tuple[str, ...]
    terms: ShellTerms
    at: int
    """When it was asked for, ms."""


def encoded(record: CommandRecord) -> bytes:
    """The command as its file has it."""
    told: dict[str, Json] = {
        "command": record.command,
        "turn": record.turn,
        "call": record.call,
        "workspace": record.workspace,
        "shown": record.shown,
        "argv": [*record.argv],
        "terms": spelled(record.terms),
        "at": record.at,
    }
    return orjson.dumps(told)


def decoded(body: bytes) -> CommandRecord:
    """What `encoded` wrote. Raises `ValueError`."""
    told = _object(body)
    argv, terms, at = told.get("argv"), told.get("terms"), told.get("at")
    if not isinstance(argv, list) or not isinstance(terms, dict) or not isinstance(at, int):
        raise ValueError("it is no command")  # noqa: TRY004 - as for all that cannot be read
    names = ("command", "turn", "call", "workspace", "shown")
    command, turn, call, workspace, shown = (str(told.get(name) or "") for name in names)
    return CommandRecord(command, turn, call, workspace, shown, tuple(map(str, argv)), read_terms(terms), at)


def encoded_end(end: CommandEnd) -> bytes:
    """The end as its file has it."""
    return orjson.dumps({
        "cause": end.cause.value, "status": end.status, "seconds": end.seconds, "words": end.words,
    })  # fmt: skip


def decoded_end(body: bytes) -> CommandEnd:
    """What `encoded_end` wrote. Raises `ValueError`."""
    told = _object(body)
    status, seconds = told.get("status"), told.get("seconds")
    return CommandEnd(
        EndCause(str(told.get("cause"))),
        status if isinstance(status, int) else None,
        float(seconds) if isinstance(seconds, int | float) else 0.0,
        str(told.get("words") or ""),
    )


def _object(body: bytes) -> Mapping[str, Json]:
    told: Json = orjson.loads(body)
    if not isinstance(told, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - as for all that cannot be read
    return told


# --- the files ---


def put_whole(folder: Path, name: str, body: bytes) -> None:
    """Write a file that is there as a whole or not at all, and stays there when the power goes."""
    part = folder / f"{name}.part"
    with part.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / name)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """What has come into a folder stays there when the power goes."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def record_of(folder: Path) -> CommandRecord | None:
    """The command of a folder; None if none can be read there."""
    with suppress(OSError, ValueError):
        return decoded((folder / COMMAND).read_bytes())
    return None


def container_of(folder: Path) -> str:
    """The name of a command's container, which is nobody else's on this machine. Reads nothing."""
    return f"outspoken-{hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()}"


def is_watched(folder: Path) -> bool:
    """Whether a process watches over the command. Asked of one that has begun: looking takes the lock for a moment."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(lock)


def end_of(folder: Path) -> CommandEnd | None:
    """How a command ended; None while it runs, or if it was not begun."""
    if (end := _end(folder)) is not None:
        return end
    if not (folder / BEGAN).exists() or is_watched(folder):  # in this order: looking takes the lock for a moment
        return None
    return _end(folder) or CommandEnd(EndCause.UNKNOWN)  # its last words may have come between the two looks


def _end(folder: Path) -> CommandEnd | None:
    with suppress(OSError, ValueError):
        return decoded_end((folder / END).read_bytes())
    return None
