"""What every command needs before it can do anything: configuration, places, logs, and the daemon that may be running."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from agent_core.redaction import Redactor
from gateway.config import Loaded, load, secret_values
from gateway.configmodel import Config
from gateway.configtypes import LogLevel
from gateway.operatorkey import with_operator_key
from gateway.paths import Paths, find_paths, prepare


class CannotServe(Exception):
    """The daemon cannot start; the words say why and what to do."""


def load_all(config_file: Path | None) -> tuple[Loaded, Paths]:
    """The configuration and the places. Raises `ConfigError` and `PathsError`."""
    paths = find_paths(os.environ)
    named = config_file is not None or paths.config_named
    loaded = load(config_file or paths.config_file, os.environ, required=named)
    return replace(loaded, config=with_operator_key(loaded.config, paths)), paths


def prepare_places(paths: Paths) -> None:
    """Make the directories that a gateway writes to. Raises `PathsError`."""
    prepare(paths)


def redactor_of(config: Config) -> Redactor:
    """Knows every secret of the configuration."""
    return Redactor.of(secret_values(config))


def configure_logs(config: Config, *, quiet: bool = False) -> None:
    """Logs go to standard error. A client that runs the gateway inside itself is `quiet`: only what went wrong."""
    from gateway.ops.logging import configure

    level = LogLevel.ERROR if quiet else config.log.level
    configure(level, config.log.format, redactor_of(config), show_text=config.log.show_text)


EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - a server that listens everywhere is called at loopback
"""Of the same family: a server at ``::`` listens to IPv6 only."""


def configured_url(config: Config) -> str:
    """Where the daemon with this configuration is called from this machine; empty if its port is a free one that nobody knows."""
    server = config.server
    host = EVERYWHERE.get(server.host, server.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{server.port}" if server.port else ""


async def running_url(config: Config) -> str:
    """The address of the daemon that runs with this configuration, or an empty text."""
    from adapters.probe import answers  # aiohttp costs a third of the start of a command that needs no network

    url = configured_url(config)
    return url if url and await answers(url) else ""
