"""What every command needs before it can do anything: configuration, places, logs, and the daemon that may be running."""

from __future__ import annotations

import os
from pathlib import Path

from gateway.config import Loaded, load
from gateway.configmodel import Config
from gateway.configtypes import LogLevel
from gateway.ops.logging import configure
from gateway.paths import Paths, find_paths
from gateway.secrets import redactor_of


class CannotServe(Exception):
    """The daemon cannot start; the words say why and what to do."""


def load_all(config_file: Path | None) -> tuple[Loaded, Paths]:
    """The configuration and the places. Raises `ConfigError`."""
    paths = find_paths(os.environ, Path.home())
    return load(config_file or paths.config_file, os.environ), paths


def configure_logs(config: Config, *, quiet: bool = False) -> None:
    """Logs go to standard error. A client that runs the gateway inside itself is `quiet`: only what went wrong."""
    level = LogLevel.ERROR if quiet else config.log.level
    configure(level, config.log.format, redactor_of(config))


async def running_url(config: Config, paths: Paths) -> str:
    """The address of the daemon that runs with this configuration, or an empty text."""
    from adapters.probe import answers

    del paths
    host = config.server.host if config.server.host not in ("0.0.0.0", "::", "") else "127.0.0.1"  # noqa: S104
    url = f"http://{f'[{host}]' if ':' in host else host}:{config.server.port}"
    return url if config.server.port and await answers(url) else ""
