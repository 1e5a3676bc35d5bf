"""The file tools that write: write, append, edit and delete, inside the session's workspace. All are *keyed*.

Theory. Before a call begins, what it found and what it makes of it are committed (`changes`). A file is replaced as a whole or not at
all, appending included, so what is found later is one or the other. A call replaces only what it has put down: whoever finds the
file otherwise puts down anew what is there, and waits until that is committed, before the file is touched.

Calls for one file take turns in this process (`_turnstile`), so that each comes through however many there are; the lock on the folder
keeps other processes, and threads whose call was cancelled, from writing between the look and the replacement.

Room is held for a change before it is made, and only for what it adds (`context.space`).

The work is done in threads, never on the event loop, and is bounded by the sizes below.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, assert_never
from weakref import WeakValueDictionary

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import BLOCK, Amounts, QuotaKind, blocks
from agent_core.records import dataclass
from agent_core.text.diffs import FileChange, change_of
from agent_core.tools.base import NotPossible, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.files.changes import (
    Change,
    ChangeVerdict,
    ContentState,
    Found,
    decide,
    read_change,
    state_of,
    written,
)
from agent_core.tools.files.workspace import (
    FileMissing,
    PathRefused,
    emptied_folders,
    folder,
    missing_folders,
    names_of,
    open_file,
    remove,
    remove_empty,
    split_file,
)

WRITE_CHARS = 5_000_000
EDIT_BYTES = 2_000_000
APPEND_BYTES = 32 * 1024 * 1024
"""A file may be that large with what is appended. It is copied each time."""
LOCK_SECONDS = 10.0
FOLDER_TRIES = 50
"""So often a folder is made again that others delete at the same moment."""
TRIES = 5
"""So often a call looks anew if somebody outside of this process changes the file at the same moment."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a call makes of a file."""

    content: bytes | None
    """None: it is removed."""
    grows: bool = False
    places: int = 0
    """How many pieces of it are replaced."""


Plan = Callable[[Mapping[str, Json], Found | None], Planned]
"""What a call makes of what it found. Pure; raises `PathRefused` if it can make nothing of it."""
Says = Callable[[Mapping[str, Json], Change], ToolOutcome]
"""The result of a change that was made. Pure: whoever finds it made says the same."""


@dataclass(frozen=True, slots=True)
class WritingTool:
    """A declaration, what the tool makes of a file, and what it says then."""

    spec: ToolSpec
    plan: Plan
    says: Says
    removes: bool = False
    """It takes whatever lies under the name, not only files; folders that it leaves empty go as well."""

    async def prepare(self, arguments: Mapping[str, Json], context: ToolContext) -> Json:
        """What is there, and what is to be there. Only looks. Raises `NotPossible`."""
        return written(await asyncio.to_thread(self._look, arguments, context.workspace))

    async def change(self, arguments: Mapping[str, Json], context: ToolContext) -> FileChange | None:
        """What the file would be, against what it is. Only looks. Raises `NotPossible`."""
        return await asyncio.to_thread(self._compare, arguments, context.workspace)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        """Make the change, once, however often this is begun. Raises `NotPossible`."""
        path = _text(arguments, "path")
        change, again = read_change(context.intention), context.again
        if again and change is None:
            return _unknown(self.spec.name, path)
        async with _turnstile(context.workspace, path):
            if change is None:
                change = await asyncio.to_thread(self._look, arguments, context.workspace)
                await context.intend(written(change))
            for _ in range(TRIES):
                made = await self._try(change, arguments, context, again=again)
                match made:
                    case ChangeVerdict.DONE:
                        if self.removes:
                            await asyncio.to_thread(remove_empty, context.workspace, self._split(path)[0])
                        return self.says(arguments, change)
                    case ChangeVerdict.CONFLICT:
                        return _unknown(self.spec.name, path)
                    case Change():
                        await context.intend(written(made))
                        change, again = made, False
                    case _:
                        assert_never(made)
        raise PathRefused(f"{path} is being changed by somebody else all the time. Nothing was done; try again later.")

    async def _try(
        self, change: Change, arguments: Mapping[str, Json], context: ToolContext, *, again: bool
    ) -> Literal[ChangeVerdict.DONE, ChangeVerdict.CONFLICT] | Change:
        """One try, with room for it. What was begun before may be done already: then no room is asked for."""
        if again:
            judged = await asyncio.to_thread(self._judge, change, arguments, context.workspace)
            if judged is not ChangeVerdict.DO:
                return judged
        adding = await asyncio.to_thread(_adding, change, _text(arguments, "path"), context.workspace)
        try:
            async with context.space.hold(adding):
                made = await asyncio.to_thread(self._make, change, arguments, context, again)
                if made is not ChangeVerdict.DONE:
                    raise _NotMade(made)  # noqa: TRY301 - so that the room is let go
        except _NotMade as found:
            return found.why
        return made

    def _judge(self, change: Change, arguments: Mapping[str, Json], workspace: Path) -> ChangeVerdict:
        """What has become of a change that was begun before."""
        path = _text(arguments, "path")
        folders, name = self._split(path)
        with _told():
            try:
                with folder(workspace, folders) as directory, _alone(directory, path):
                    return decide(change, self._found(directory, name, path))
            except FileMissing:
                return decide(change, None)

    def _look(self, arguments: Mapping[str, Json], workspace: Path) -> Change:
        with _told():
            return self._planned(arguments, self._there(arguments, workspace))[0]

    def _compare(self, arguments: Mapping[str, Json], workspace: Path) -> FileChange | None:
        with _told():
            found = self._there(arguments, workspace)
        if found is not None and found.state.size != len(found.head):
            return None  # not all of it was read, or it is no file
        return change_of(found.head if found is not None else None, self.plan(arguments, found).content)

    def _there(self, arguments: Mapping[str, Json], workspace: Path) -> Found | None:
        path = _text(arguments, "path")
        folders, name = self._split(path)
        try:
            with folder(workspace, folders) as directory:
                return self._found(directory, name, path)
        except FileMissing:
            return None

    def _planned(self, arguments: Mapping[str, Json], found: Found | None) -> tuple[Change, bytes | None]:
        planned = self.plan(arguments, found)
        facts: dict[str, Json] = {"places": planned.places} if planned.places else {}
        before = found.state if found is not None else None
        after = state_of(planned.content) if planned.content is not None else None
        return Change(before, after, planned.grows, facts), planned.content

    def _make(
        self, change: Change, arguments: Mapping[str, Json], context: ToolContext, again: bool
    ) -> Literal[ChangeVerdict.DONE, ChangeVerdict.CONFLICT] | Change:
        """One try: it is done, nobody can tell, or this is the change that has to be put down first."""
        path = _text(arguments, "path")
        folders, name = self._split(path)
        with _told():
            for _ in range(FOLDER_TRIES):
                try:
                    with (
                        folder(context.workspace, folders, create=not self.removes) as directory,
                        _alone(directory, path),
                    ):
                        return self._make_in(directory, name, change, arguments, context, again)
                except (FileNotFoundError, FileMissing):
                    if self.removes:
                        break
                    # somebody has deleted the last file of the folder meanwhile, and the folder with it
                except OSError:
                    remove_empty(context.workspace, folders)  # those that were made for a file that cannot be written
                    raise
            if not self.removes:
                raise PathRefused(
                    f"The folder of {path} is being removed all the time. Nothing was done; try again later."
                )
            if again and decide(change, None) is ChangeVerdict.DONE:
                return ChangeVerdict.DONE
            return self._planned(arguments, None)[0]

    def _make_in(
        self,
        directory: int,
        name: str,
        change: Change,
        arguments: Mapping[str, Json],
        context: ToolContext,
        again: bool,
    ) -> Literal[ChangeVerdict.DONE, ChangeVerdict.CONFLICT] | Change:
        path = _text(arguments, "path")
        found = self._found(directory, name, path)
        verdict = decide(change, found) if again else ChangeVerdict.DO
        if verdict is not ChangeVerdict.DO:
            return verdict
        now, content = self._planned(arguments, found)
        if now != change:
            return now
        if content is None:
            remove(directory, name, path)
            os.fsync(directory)
            return ChangeVerdict.DONE
        beside = f".{hashlib.blake2b(context.key.encode(), digest_size=8).hexdigest()}.part"
        _replace(directory, name, beside, content, found.mode if found is not None else 0o600)
        return ChangeVerdict.DONE

    def _split(self, path: str) -> tuple[list[str], str]:
        return split_file(path, folders=self.removes)

    def _found(self, directory: int, name: str, shown: str) -> Found | None:
        return _found_anything(directory, name, shown) if self.removes else _found(directory, name, shown)


class _NotMade(Exception):
    """Nothing was written, and this is why."""

    def __init__(self, why: Literal[ChangeVerdict.CONFLICT] | Change) -> None:
        super().__init__()
        self.why: Literal[ChangeVerdict.CONFLICT] | Change = why


def _adding(change: Change, path: str, workspace: Path) -> Amounts:
    """What a change adds to the workspace; less than nothing if it removes."""
    before, after = change.before, change.after
    size = (blocks(after.size) if after is not None else 0) - (blocks(before.size) if before is not None else 0)
    files = int(after is not None) - int(before is not None)
    if before is None and after is not None:
        folders = missing_folders(workspace, split_file(path)[0])
        return {QuotaKind.WORKSPACE: size + folders * BLOCK, QuotaKind.FILES: files + folders}
    if after is None:
        folders = emptied_folders(workspace, split_file(path, folders=True)[0])
        return {QuotaKind.WORKSPACE: size - folders * BLOCK, QuotaKind.FILES: files - folders}
    return {QuotaKind.WORKSPACE: size, QuotaKind.FILES: files}


def _unknown(tool: str, path: str) -> ToolOutcome:
    words = (
        f"The gateway was restarted while {tool} was at work, and {path} has been changed by somebody else since: it is neither as it was "
        "before the call nor as the call makes it. The call may or may not have been done; nothing was done now. Read the file first."
    )
    return ToolOutcome(ToolStatus.UNKNOWN, words, facts={"path": path})


# ---------------------------------------------------------------------- one at a time

_turnstiles: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()


def _turnstile(workspace: Path, path: str) -> asyncio.Lock:
    """Calls for one file of this process take turns here. Gone when nobody holds it."""
    key = (str(workspace), "/".join(names_of(path)))
    lock = _turnstiles.get(key)
    if lock is None:
        lock = _turnstiles[key] = asyncio.Lock()
    return lock


@contextmanager
def _alone(directory: int, shown: str) -> Generator[None]:
    """Nobody else who asks for it writes in this folder. A process that dies lets go."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise PathRefused(
                    f"The folder of {shown} is kept busy by another process. Nothing was done; try again later."
                ) from None
            time.sleep(0.005)
        except OSError:
            break  # a file system without such locks: the look right before has to do
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_UN)


@contextmanager
def _told() -> Generator[None]:
    """What the file system refuses, in words."""
    try:
        yield
    except OSError as error:
        raise NotPossible(f"The file system refused: {error.strerror or type(error).__name__}.") from error


# ---------------------------------------------------------------------- looking and replacing


def _found(directory: int, name: str, shown: str) -> Found | None:
    """What lies under a name. Raises `PathRefused` for what is no regular file."""
    try:
        descriptor = open_file(directory, name, shown)
    except FileMissing:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        head = file.read(APPEND_BYTES + 1)
    mode = stat.S_IMODE(about.st_mode)
    if len(head) > APPEND_BYTES:  # too much to read each time: its place and time stand for its content
        return Found(ContentState(about.st_size, f"{about.st_ino}.{about.st_mtime_ns}"), head[:APPEND_BYTES], mode)
    return Found(state_of(head), head, mode)


def _found_anything(directory: int, name: str, shown: str) -> Found | None:
    """As `_found`, of whatever can be removed. What is no file that can be read stands there by its kind and its place."""
    try:
        about = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(about.st_mode):
        with suppress(PathRefused):
            return _found(directory, name, shown)
    size = BLOCK if stat.S_ISDIR(about.st_mode) else about.st_size
    return Found(ContentState(size, f"{stat.filemode(about.st_mode)[0]}.{about.st_ino}"), b"")


def _replace(directory: int, name: str, beside: str, content: bytes, mode: int) -> None:
    """Write a file as a whole or not at all: beside it first, made durable, then moved over it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(beside, flags, 0o600, dir_fd=directory), "wb") as file:
        try:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            os.replace(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            os.unlink(beside, dir_fd=directory)
            raise
    os.fsync(directory)


# ---------------------------------------------------------------------- what the tools make of a file


def plan_write(arguments: Mapping[str, Json], _: Found | None) -> Planned:
    """The content, whatever was there."""
    text = _text(arguments, "content")
    if len(text) > WRITE_CHARS:
        raise PathRefused(f"The content has {len(text)} characters; at most {WRITE_CHARS} can be written at once.")
    return Planned(_bytes(text))


def says_write(arguments: Mapping[str, Json], _: Change) -> ToolOutcome:
    """What is said of a file that was written."""
    path, text = _text(arguments, "path"), _text(arguments, "content")
    return ToolOutcome(ToolStatus.OK, f"Wrote {path}: {_size(text)}.", facts={"path": path, "chars": len(text)})


def plan_append(arguments: Mapping[str, Json], found: Found | None) -> Planned:
    """What was there, and the content behind it."""
    path, content = _text(arguments, "path"), _bytes(_text(arguments, "content"))
    size = (found.state.size if found is not None else 0) + len(content)
    if size > APPEND_BYTES:
        raise PathRefused(
            f"{path} would have {size} bytes; at most {APPEND_BYTES} can be kept by appending. Begin another file."
        )
    return Planned((found.head if found is not None else b"") + content, grows=True)


def says_append(arguments: Mapping[str, Json], change: Change) -> ToolOutcome:
    """What is said of a file that was added to."""
    path, text = _text(arguments, "path"), _text(arguments, "content")
    size = change.after.size if change.after is not None else 0
    return ToolOutcome(
        ToolStatus.OK, f"Appended {_size(text)} to {path}; it has {size} bytes now.", facts={"path": path}
    )


def plan_edit(arguments: Mapping[str, Json], found: Found | None) -> Planned:
    """What was there, with the old text replaced."""
    path, old, new = (_text(arguments, name) for name in ("path", "old", "new"))
    if found is None:
        raise PathRefused(f"There is no file {path}.")
    if found.state.size > EDIT_BYTES:
        raise PathRefused(f"{path} has {found.state.size} bytes; files of up to {EDIT_BYTES} bytes can be edited.")
    if b"\0" in found.head:
        raise PathRefused(f"{path} is not a text file ({len(found.head)} bytes).")
    here, put = old.encode("utf-8", "surrogatepass"), _bytes(new)  # bytes: not all of it may be UTF-8
    count = found.head.count(here)
    if not count:
        raise PathRefused(f"The old text does not occur in {path}. Read the file and copy the text exactly.")
    everywhere = arguments.get("everywhere") is True
    if count > 1 and not everywhere:
        raise PathRefused(f"The old text occurs {count} times in {path}. Give more of it, or set everywhere to true.")
    size = len(found.head.decode("utf-8", "replace")) + count * (len(new) - len(old))
    if size > WRITE_CHARS:
        raise PathRefused(f"{path} would have {size} characters then; at most {WRITE_CHARS} can be written at once.")
    return Planned(found.head.replace(here, put), places=count)


def says_edit(arguments: Mapping[str, Json], change: Change) -> ToolOutcome:
    """What is said of a file that was edited."""
    path, places = _text(arguments, "path"), change.facts.get("places", 1)
    return ToolOutcome(
        ToolStatus.OK, f"Edited {path}: {places} place{'' if places == 1 else 's'} replaced.", facts={"path": path}
    )


def plan_delete(arguments: Mapping[str, Json], found: Found | None) -> Planned:
    """Nothing."""
    if found is None:
        raise PathRefused(f"There is no file {_text(arguments, 'path')}.")
    return Planned(None)


def says_delete(arguments: Mapping[str, Json], change: Change) -> ToolOutcome:
    """What is said of a file that was removed."""
    path, before = _text(arguments, "path"), change.before
    plain = before is None or before.digest[1:2] != "."
    size = before.size if before is not None else 0
    return ToolOutcome(
        ToolStatus.OK, f"Deleted {path} ({size} bytes)." if plain else f"Deleted {path}.", facts={"path": path}
    )


def _text(arguments: Mapping[str, Json], name: str) -> str:
    value = arguments.get(name, "")
    return value if isinstance(value, str) else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _size(text: str) -> str:
    lines = text.count("\n") + (0 if text.endswith("\n") or not text else 1)
    return f"{lines} line{'' if lines == 1 else 's'}, {len(_bytes(text))} bytes"
