"""What is kept of a login at a server: tokens, who we are there, and where they are refreshed. One file a server, for the gateway's user alone.

Nothing of it is ever logged or shown, but until when it is good.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import orjson

from agent_core.jsonvalue import Json
from agent_core.records import dataclass

MOST_BYTES = 1024 * 1024
DAY_SECONDS = 24 * 3600


@dataclass(frozen=True)
class LoginFile:
    """The file of one server."""

    path: Path

    @staticmethod
    def of(folder: Path, server: str) -> LoginFile:
        """Of the server with this name."""
        return LoginFile(folder / f"{server}.login.json")

    def read(self) -> Mapping[str, Json]:
        """What is kept; empty if nothing is, or if it cannot be read."""
        try:
            with self.path.open("rb") as file:
                found: Json = orjson.loads(file.read(MOST_BYTES))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def keep(self, **more: Json) -> None:
        """Keep this as well. Raises OSError."""
        data = orjson.dumps({**self.read(), **more})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f".{self.path.name}.part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)

    def forget(self) -> None:
        """Nobody is logged in any more."""
        self.path.unlink(missing_ok=True)


def login_words(kept: Mapping[str, Json], server: str, now: float) -> str:
    """How a login stands at `now` (seconds since 1970), for operators. Pure."""
    tokens = kept.get("tokens")
    if not isinstance(tokens, dict) or not tokens.get("access_token"):
        return f"nobody has logged in there: outspoken mcp login {server}"
    until = kept.get("expires_at")
    if not isinstance(until, int | float):
        return "logged in, without a time at which that ends"
    moment = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if tokens.get("refresh_token"):
        return f"logged in; the token is good until {moment} and is renewed by itself"
    if until <= now:
        return f"its login ended at {moment}: outspoken mcp login {server}"
    soon = f"; then it needs: outspoken mcp login {server}" if until - now < DAY_SECONDS else ""
    return f"logged in until {moment}{soon}"
