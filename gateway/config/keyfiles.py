"""Keys that nobody chose: each is made when it is first needed, and lies beside the database, readable for the gateway's user alone."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from pathlib import Path

SEALING = "sealing.key"
"""With which clients' thoughts are sealed."""


def key_in(path: Path) -> str:
    """The key in a file; empty if there is none, or if it is not for this user."""
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""  # another user's, or none yet: whoever needs it is refused in words


def made_key(path: Path) -> str:
    """A new key, in a file of its own. Raises OSError if that cannot be done, or if something is there already: it may be a key that this user cannot read, and
    what was made with it would be lost."""
    if path.exists() and path.stat().st_size:
        raise FileExistsError(errno.EEXIST, f"{path.name} is there, and this user can read no key in it", str(path))
    key = secrets.token_urlsafe(32)
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(f"{key}\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return key


def sealing_key(state_dir: Path) -> bytes:
    """64 bytes that are always the same; made if they are not there. Raises OSError if that cannot be done."""
    path = state_dir / SEALING
    return hashlib.blake2b((key_in(path) or made_key(path)).encode()).digest()
