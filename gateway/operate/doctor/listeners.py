"""Which process of this machine listens at a port. Linux only; elsewhere, and for other users' processes, nobody is found."""

from __future__ import annotations

from pathlib import Path

LISTENING = "0A"
PROC = Path("/proc")


def listener_of(port: int, proc: Path = PROC) -> tuple[int, str] | None:
    """(process, its name) of whoever listens at `port` over TCP; None if that cannot be seen."""
    sockets = {f"socket:[{inode}]" for inode in listening_inodes(_tables(proc), port)}
    if not sockets:
        return None
    for folder in proc.glob("[0-9]*"):
        try:
            if any(str(link.readlink()) in sockets for link in (folder / "fd").iterdir()):
                return int(folder.name), (folder / "comm").read_text("utf-8", "replace").strip()
        except OSError:  # another user's, or gone by now
            continue
    return None


def listening_inodes(table: str, port: int) -> set[str]:
    """The inodes of sockets that listen at `port`, from the text of ``/proc/net/tcp`` and ``tcp6``."""
    found: set[str] = set()
    for line in table.splitlines():
        fields = line.split()
        if len(fields) > 9 and fields[3] == LISTENING and fields[1].rpartition(":")[2] == f"{port:04X}":
            found.add(fields[9])
    return found


def _tables(proc: Path) -> str:
    texts: list[str] = []
    for name in ("tcp", "tcp6"):
        try:
            texts.append((proc / "net" / name).read_text("ascii", "replace"))
        except OSError:
            continue
    return "\n".join(texts)
