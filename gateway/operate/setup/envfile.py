"""Changes a ``.env`` file: values are set or taken out, every other line stays as it is. `edited` is pure; `put` writes whole or not at all.

Laws: reading back what `edited` made gives the old values with the changes; comments and foreign lines are kept, in their order;
a file that `put` made can be read by its owner only, and a process that dies leaves the old one.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

_NAME = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,~-]+")
HEAD = "# Written by outspoken setup. Holds secrets: keep it to yourself (chmod 600).\n"


def quoted(value: str) -> str:
    """A value as it stands behind ``=``. Raises ValueError for one that no line can hold."""
    if not value.isprintable():
        raise ValueError("A value must be one line of printable characters.")
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def edited(text: str, changes: Mapping[str, str | None]) -> str:
    """`text` with each name set to its value, where it stood or at the end; None takes it out."""
    out: list[str] = []
    left = dict(changes)
    for line in text.splitlines(keepends=True):
        found = _NAME.match(line)
        name = found.group(1) if found else ""
        if name not in changes:
            out.append(line)
        elif (value := left.pop(name, None)) is not None:
            out.append(f"{name}={quoted(value)}\n")
    new = [f"{name}={quoted(value)}\n" for name, value in left.items() if value is not None]
    if new and out and not out[-1].endswith(("\n", "\r")):
        out.append("\n")
    head = [HEAD] if new and not out else []
    return "".join([*out, *head, *new])


def put(path: Path, text: str) -> None:
    """Write the file whole, for its owner only. Raises OSError. A link stays a link; an owner stays the owner, where that is allowed."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if target.exists():
                before = target.stat()
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
