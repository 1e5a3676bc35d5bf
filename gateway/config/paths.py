"""Where everything lies: configuration, state, cache, run-time files, logs. `resolve` is pure; `prepare` makes the directories.

For each place the first that is set wins:

1. ``OUTSPOKEN_HOME``: one directory for everything (``OUTSPOKEN_CONFIG`` may still name another configuration file);
2. what systemd made for the unit: ``CONFIGURATION_DIRECTORY``, ``STATE_DIRECTORY``, ``CACHE_DIRECTORY``, ``RUNTIME_DIRECTORY``,
   ``LOGS_DIRECTORY`` (several are separated by colons; the first one is meant);
3. the XDG variables (a relative path in them is ignored, as their specification demands);
4. the usual directories of the operating system.

The working directory never matters, but for a relative ``OUTSPOKEN_HOME`` or ``OUTSPOKEN_CONFIG``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agent_core.records import dataclass

NAME = "outspoken"
CONFIG_NAME = "outspoken.toml"
DATABASE_NAME = "outspoken.db"
SHARED_SPOOL = ".outbox"
"""The spool of several gateways, among the workspaces; no conversation's folder has such a name."""


class PathsError(Exception):
    """A directory cannot be used; `str` says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the gateway's files lie, absolute. Nothing of it needs to exist yet."""

    config_file: Path
    config_named: bool
    """Somebody named the configuration file, so it must exist."""
    state_dir: Path
    database: Path
    workspaces: Path
    cache_dir: Path
    runtime_dir: Path
    """For sockets and locks; may be emptied at each boot."""
    log_dir: Path

    @property
    def spool(self) -> Path:
        """Files on their way to people, unless several gateways share them."""
        return self.state_dir / "outbox"


@dataclass(frozen=True, slots=True)
class UsualPaths:
    """The operating system's usual directories for this program."""

    config: Path
    state: Path
    cache: Path
    logs: Path


def xdg(home: Path) -> UsualPaths:
    """The defaults of the XDG Base Directory Specification 0.8."""
    state = home / ".local" / "state" / NAME
    return UsualPaths(home / ".config" / NAME, state, home / ".cache" / NAME, state / "logs")


def resolve(env: Mapping[str, str], home: Path, *, cwd: Path | None = None, usual: UsualPaths | None = None) -> Paths:
    """All places, from the environment and the home directory alone.

    `usual` replaces the XDG defaults on other systems. `cwd` is what a relative ``OUTSPOKEN_HOME`` or ``OUTSPOKEN_CONFIG`` is
    relative to; without it, or without an absolute `home`, such a path raises `PathsError`.
    """
    usual = usual or xdg(home)
    named = _directory(env, "OUTSPOKEN_CONFIG", home, cwd)
    if (base := _directory(env, "OUTSPOKEN_HOME", home, cwd)) is not None:
        config, state, cache, runtime, logs = base, base, base / "cache", base / "run", base / "logs"
    else:
        config = _systemd(env, "CONFIGURATION_DIRECTORY") or _xdg(env, "XDG_CONFIG_HOME") or usual.config
        given_state = _systemd(env, "STATE_DIRECTORY") or _xdg(env, "XDG_STATE_HOME")
        state = given_state or usual.state
        cache = _systemd(env, "CACHE_DIRECTORY") or _xdg(env, "XDG_CACHE_HOME") or usual.cache
        runtime = _systemd(env, "RUNTIME_DIRECTORY") or _xdg(env, "XDG_RUNTIME_DIR") or state / "run"
        logs = _systemd(env, "LOGS_DIRECTORY") or (given_state / "logs" if given_state else usual.logs)
    return Paths(
        config_file=named or config / CONFIG_NAME,
        config_named=named is not None,
        state_dir=state,
        database=state / DATABASE_NAME,
        workspaces=state / "workspaces",
        cache_dir=cache,
        runtime_dir=runtime,
        log_dir=logs,
    )


def find_paths(env: Mapping[str, str], home: Path | None = None) -> Paths:
    """The places of this process: `resolve` with this machine's home, working directory and usual directories."""
    return resolve(
        env,
        home or Path(env.get("HOME") or Path.home()),
        cwd=working_directory(),
        usual=None if sys.platform.startswith("linux") else _of_the_platform(),
    )


def working_directory() -> Path | None:
    """Where this process stands; None if that was removed meanwhile, as in a folder that an upgrade has put away."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _of_the_platform() -> UsualPaths:
    import platformdirs

    dirs = platformdirs.PlatformDirs(NAME, appauthor=False)
    return UsualPaths(dirs.user_config_path, dirs.user_state_path, dirs.user_cache_path, dirs.user_log_path)


def _directory(env: Mapping[str, str], name: str, home: Path, cwd: Path | None) -> Path | None:
    value = env.get(name, "").strip()
    if not value:
        return None
    if value == "~" or value.startswith("~/"):
        return home / value[2:]
    path = Path(value)
    if path.is_absolute():
        return path
    if cwd is None:
        raise PathsError(f"{name} is {value}, a relative path. Write the whole path, beginning with a slash.")
    return cwd / path


def _systemd(env: Mapping[str, str], name: str) -> Path | None:
    first = env.get(name, "").split(":")[0].strip()
    return Path(first) if first.startswith("/") else None


def _xdg(env: Mapping[str, str], name: str) -> Path | None:
    path = Path(env.get(name, "").strip())
    return path / NAME if path.is_absolute() else None


def written(paths: Paths) -> tuple[tuple[Path, str], ...]:
    """The directories that the daemon writes to, each with what it is."""
    return (
        (paths.state_dir, "the state directory"),
        (paths.workspaces, "the directory of the workspaces"),
        (paths.runtime_dir, "the directory for the socket"),
    )


def prepare(paths: Paths) -> None:
    """Make the directories that the daemon writes to, for this user only, and try whether they can be written.

    Raises `PathsError` in words. Directories that exist keep their permissions.
    """
    for directory, what in written(paths):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            try_writing(directory)
        except OSError as error:
            raise PathsError(" ".join(not_writable(directory, what, error))) from None


def try_writing(directory: Path) -> None:
    """Write a file that is gone at once: permissions alone do not say whether that works. Raises OSError."""
    with tempfile.TemporaryFile(dir=directory):
        pass


def not_writable(directory: Path, what: str, error: OSError) -> tuple[str, str]:
    """In words that a directory cannot be written, and what to do."""
    why = (error.strerror or type(error).__name__).lower()
    user = f" (user {os.getuid()})" if hasattr(os, "getuid") else ""
    fix = f"Let this user{user} write there, or name another place: OUTSPOKEN_HOME=/some/directory"
    return f"{directory}, {what}, cannot be written: {why}.", fix
