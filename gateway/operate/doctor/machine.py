"""What `doctor` looks at on this machine: directories, disk, database, certificates, the port."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

from adapters.checks.findings import Finding, Seen, note, ok, problem, warning
from agent_core.store.database.look import DatabaseSeen, look
from agent_core.store.database.ownership import lock_path
from agent_core.store.database.trouble import OWNER
from agent_core.store.database.upgrade import backup_path
from agent_core.store.errors import CannotOpen
from gateway.config.paths import Paths, not_writable, try_writing, written
from gateway.config.sections import Config
from gateway.storage.leftovers import leftovers

LOW_BYTES = 1024**3
EMPTY_BYTES = 100 * 1024**2
MIB = 1024**2


# --- directories and disk ---


async def directories(paths: Paths, workspace: Path | None, spool: Path) -> Seen:
    """Whether the daemon can write where it has to. Tries it; what is not there yet is tried where it would be made."""
    places = [
        *written(paths),
        (spool, "the directory of files on their way to chats"),
        *([(workspace, "the directory of the workspaces")] if workspace else []),
    ]
    return Seen(tuple(await asyncio.to_thread(lambda: [_directory(place, what) for place, what in places])))


def _directory(place: Path, what: str) -> Finding:
    there = next(folder for folder in (place, *place.parents) if os.path.lexists(folder))
    try:
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        try_writing(there)
        mode = there.stat().st_mode
    except OSError as error:
        return problem("directory", *not_writable(there, what, error))
    if not mode & 0o222:
        what = f"{there}, {what}, gives nobody the right to write; only root can, and does now."
        return warning("directory", what, f"If the gateway is to run as somebody else: chmod u+w {there}")
    return ok("directory", f"{place}, {what}, can be {'written' if there == place else 'made'}.")


async def disk(paths: Paths) -> Seen:
    """How much room is left where the state is."""
    there = next(folder for folder in (paths.state_dir, *paths.state_dir.parents) if _is_seen(folder))
    usage = await asyncio.to_thread(shutil.disk_usage, there)
    return Seen((judged_disk(usage.free, there),))


def _is_seen(folder: Path) -> bool:
    """It is there, as far as this user may look."""
    try:
        return folder.exists()
    except OSError:
        return False


def judged_disk(free_bytes: int, where: Path) -> Finding:
    """Whether that much room is enough."""
    words = f"{free_bytes // MIB} MiB are free at {where}."
    fix = "Make room there, or move the state: OUTSPOKEN_HOME, or [storage] url for the database."
    if free_bytes < EMPTY_BYTES:
        return problem("disk", f"Only {words} Without room nothing can be accepted.", fix)
    return warning("disk", f"Only {words}", fix) if free_bytes < LOW_BYTES else ok("disk", words)


# --- certificates ---


async def certificates(env: Mapping[str, str]) -> Seen:
    """Whether the files that replace the list of authorities can be used."""
    return Seen(tuple(await asyncio.to_thread(_certificates, env)))


def _certificates(env: Mapping[str, str]) -> list[Finding]:
    findings: list[Finding] = []
    file, folder = env.get("SSL_CERT_FILE", ""), env.get("SSL_CERT_DIR", "")
    if file:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
        except (OSError, ssl.SSLError) as error:
            why = "it holds no certificate" if isinstance(error, ssl.SSLError) else (error.strerror or "").lower()
            fix = "Name a file of PEM certificates that this user may read, or unset SSL_CERT_FILE."
            findings.append(problem("tls", f"SSL_CERT_FILE names {file}, which cannot be used: {why}.", fix))
        else:
            findings.append(note("tls", f"Certificate authorities come from {file} (SSL_CERT_FILE)."))
    if folder and not Path(folder).is_dir():
        fix = "Name a directory, or unset SSL_CERT_DIR."
        findings.append(problem("tls", f"SSL_CERT_DIR names {folder}, which is no directory.", fix))
    return findings


# --- database ---


async def database(config: Config, paths: Paths, holder: int | None) -> Seen:
    """Whether the database can be opened and is of this program's schema. `holder` is the process that has it open, 0 if nobody has."""
    try:
        seen = await look(config.storage.url or paths.database)
        left = await asyncio.to_thread(leftovers, config, paths)
    except CannotOpen as error:
        what, _, fix = str(error).partition(". ")
        return Seen((problem("database", f"{what}.", fix or "Correct [storage] url."),))
    found = judged_database(seen, left, runs=bool(holder))
    troubles = () if seen.file is None else (lock_trouble(seen.file), None if holder else rights_trouble(seen.file))
    return Seen((*found, *(one for one in troubles if one)))


def rights_trouble(database: Path) -> Finding | None:
    """That this user may read the database and no more; None if it may write it. A gateway that it starts would end at once."""
    beside = (database, *(database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm")))
    shut = [str(path) for path in beside if path.exists() and not os.access(path, os.R_OK | os.W_OK)]
    if not shut:
        return None
    what = f"This user may not write {', '.join(shut)}."
    return problem(
        "database.rights", what, "Give it to the user that the gateway runs as (chown); or ask as that user: sudo -u."
    )


def lock_trouble(database: Path) -> Finding | None:
    """Why no gateway can lock the database; None if it can, or one does."""
    lock = lock_path(database)
    if not os.path.lexists(lock) or (lock.is_file() and os.access(lock, os.R_OK | os.W_OK)):
        return None
    what = f"{lock}, which is locked while a gateway runs, is {'a file that this user may not write' if lock.is_file() else 'no file'}."
    return problem("database.lock", what, "Stop the gateway, if one runs, and remove it: the next start makes it.")


def judged_database(seen: DatabaseSeen, left: str, *, runs: bool) -> list[Finding]:
    """What a database that can be opened amounts to. `left` is what is there of an earlier one, if this one is missing or empty."""
    if (not seen.exists or seen.revision is None) and runs:
        gone = "is gone" if not seen.exists else "holds no table of this program"
        what = f"The database {seen.shown} {gone}, and a gateway that works on it runs: it, or its log, was removed."
        fix = (
            "Put it back, then the gateway goes on by itself; else stop it and restore a backup: outspoken db restore."
        )
        findings = [problem("database", what, fix)]
    elif left:
        what = f"There is no content at {seen.shown}, and {left} of an earlier database: it was removed, or its disk is not mounted."
        fix = "Put it back, or restore a backup (outspoken db restore); the next start would begin a new one."
        findings = [problem("database", what, fix)]
    elif not seen.may_make and seen.revision != seen.newest:
        findings = [problem("database.rights", f"This user may not make and change tables in {seen.shown}.", OWNER)]
    elif not seen.exists:
        findings = [note("database", f"There is no database at {seen.shown} yet; the first start makes it.")]
    elif seen.revision is None:
        findings = [note("database", f"{seen.shown} is empty; the first start makes its tables. {seen.engine}.")]
    elif seen.revision == seen.newest:
        findings = [ok("database", f"{seen.shown} has the schema of this version ({seen.newest}); {seen.engine}.")]
    else:
        copied = f" (it first copies it to {backup_path(seen.file, seen.revision).name})" if seen.file else ""
        what = f"{seen.shown} has an old schema: {seen.revision}; this version's is {seen.newest}."
        fix = f"outspoken run upgrades it when it starts{copied}. If an older gateway still runs on it, stop that one first."
        findings = [problem("database.schema", what, fix)]
    if seen.unread:
        what = f"{seen.unread} message(s) that came cannot be taken in because of a mistake of the program; they are kept as they came."
        fix = "Update to the newest version, which tries them again, and report it: the log has the traceback (intake.kept)."
        findings.append(warning("database.unread", what, fix))
    if seen.older_sqlite:
        what = f"{seen.engine} has a known defect (WAL reset, mended in 3.51.3). The gateway keeps clear of it: one connection writes."
        fix = "So let no other program write to the file, or vacuum it, while the gateway runs."
        findings.append(note("database.sqlite", what, fix))
    return findings


# --- the port ---


async def port(config: Config, url: str, holder: int | None) -> Seen:
    """Whether the daemon could listen, and who listens in its place. `url` is where a gateway answers; empty if none does.

    `holder` is the process that has our database open, 0 if nobody has, None if that is not known.
    """
    server = config.server
    if not server.port:
        return Seen((ok("port", "A free port is taken at the start."),))
    failure = await asyncio.to_thread(_bindable, server.host, server.port)
    who = await asyncio.to_thread(listener_of, server.port) if failure == errno.EADDRINUSE else None
    return Seen((judged_port(server.host, server.port, failure, url, who, holder),))


def judged_port(
    host: str, number: int, failure: int, url: str, who: tuple[int, str] | None, holder: int | None
) -> Finding:
    """What the outcome of trying to listen means. `failure` is an errno, 0 if it went well; `who` is process and name."""
    place = f"{host}:{number}"
    if not failure:
        return ok("port", f"{place} is free.")
    named = f" by {who[1]} (process {who[0]})" if who else ""
    if failure == errno.EADDRINUSE and url:
        if holder == 0 or (who and holder is not None and who[0] != holder):
            other = f"another outspoken{f' (process {who[0]})' if who else ''}"
            what = f"{place} is taken by {other}, which works on another database than this configuration's."
            return problem("port", what, "Give one of them another port: [server] port, or OUTSPOKEN_SERVER__PORT.")
        return ok("port", f"An outspoken gateway answers at {url}{f' (process {who[0]})' if who else ''}.")
    if failure == errno.EADDRINUSE:
        fix = "Stop that program, or choose another port: [server] port, or OUTSPOKEN_SERVER__PORT=8788."
        return problem("port", f"{place} is in use{named}, and that is no outspoken gateway.", fix)
    why = os.strerror(failure).lower() if failure > 0 else "there is no such address"
    fix = "Ports below 1024 need rights of their own: take a higher one ([server] port)."
    if failure != errno.EACCES:
        fix = 'Correct [server] host; "127.0.0.1" is this machine only, "0.0.0.0" all its addresses.'
    return problem("port", f"Nothing can listen at {place}: {why}.", fix)


def _bindable(host: str, number: int) -> int:
    """Try to listen; the errno, 0 if it works, -1 if the host is not known."""
    try:
        found = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return -1
    for family, kind, proto, _, address in found:
        with socket.socket(family, kind, proto) as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                made.bind(address)
                made.listen(1)
            except OSError as error:
                return error.errno or -1
    return 0


# --- who listens at a port (Linux only; elsewhere, and for other users' processes, nobody is found) ---

LISTENING = "0A"
PROC = Path("/proc")


def listener_of(port: int, proc: Path = PROC) -> tuple[int, str] | None:
    """(process, its name) of whoever listens at `port` over TCP; None if that cannot be seen."""
    sockets = {f"socket:[{inode}]" for inode in listening_inodes(_tables(proc), port)}
    if not sockets:
        return None
    for folder in proc.glob("[0-9]*"):
        try:
            if any(_leads_to(link) in sockets for link in (folder / "fd").iterdir()):
                return int(folder.name), (folder / "comm").read_text("utf-8", "replace").strip()
        except OSError:  # another user's, or gone by now
            continue
    return None


def _leads_to(link: Path) -> str:
    """Where a link leads; empty if it is gone by now, which says nothing of the others."""
    try:
        return str(link.readlink())
    except OSError:
        return ""


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
