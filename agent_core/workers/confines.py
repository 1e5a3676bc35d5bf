"""What a worker process may use, and what it is given. Pure."""

from __future__ import annotations

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.workers.wire import json_of, value_of

MIB = 1024 * 1024
SURROUNDINGS = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
"""Environment variables that no program can do well without, and that hold nothing secret."""


@dataclass(frozen=True, slots=True)
class Confines:
    """The limits of a worker process. Bytes, counts."""

    memory_bytes: int = 512 * MIB
    """Of its address space."""
    file_bytes: int = 0
    """The longest file that it may write."""
    open_files: int = 64
    processes: bool = False
    """Whether it may begin processes and threads of its own."""
    environment: tuple[str, ...] = SURROUNDINGS
    """The names of the variables that it is given."""


OWN = Confines()
"""For what is ours: it reads what it is handed, and gives back values."""


def spelled(confines: Confines) -> str:
    """For the command line of a worker. Nothing in it is secret: of the environment only names are known here."""
    told: dict[str, Json] = {
        "memory": confines.memory_bytes,
        "file": confines.file_bytes,
        "files": confines.open_files,
        "processes": confines.processes,
    }
    return json_of(told).decode()


def read(spelling: str) -> Confines:
    """What `spelled` wrote, without the environment, which a worker has by then."""
    told = value_of(spelling.encode())
    memory, file, files = told["memory"], told["file"], told["files"]
    assert isinstance(memory, int)
    assert isinstance(file, int)
    assert isinstance(files, int)
    return Confines(memory, file, files, bool(told["processes"]))
