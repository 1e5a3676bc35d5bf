"""What every command needs before it can do anything: configuration, places, logs, and the daemon that may be running."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr
from pydantic_core import PydanticCustomError

from adapters.contract.settings import revealed, sendable
from agent_core.records import dataclass
from gateway.config.operatorkey import with_operator_key
from gateway.config.paths import CONFIG_NAME, Paths, find_paths, prepare, working_directory
from gateway.config.reading import ConfigError, Loaded, load, redactor_of
from gateway.config.sections import Config
from gateway.config.sources import ConfigProblem, UnreadableSource, is_there
from gateway.config.types import LogLevel

if TYPE_CHECKING:
    from adapters.terminal.operator import Remote
    from gateway.observe.lifesign import RunningGateway


def load_all(config_file: Path | None) -> tuple[Loaded, Paths]:
    """The configuration and the places. Raises `ConfigError` and `PathsError`."""
    paths = find_paths(os.environ)
    named = config_file is not None or paths.config_named
    loaded = load(config_file or paths.config_file, os.environ, required=named)
    config, warnings = with_operator_key(loaded.config, paths), loaded.warnings
    passed = [] if named else passed_over(paths, working_directory())
    return replace(loaded, config=config, warnings=(*warnings, *passed)), paths


def passed_over(paths: Paths, here: Path | None) -> list[str]:
    """That a configuration file lies where somebody stands and is not read: the usual place is elsewhere."""
    if here is None:
        return []
    beside = here / CONFIG_NAME
    with suppress(UnreadableSource, OSError):  # whoever may not look there (sudo -u, in root's home) has no file there
        if not is_there(beside) or not beside.is_file():
            return []
        if is_there(paths.config_file) and beside.samefile(paths.config_file):
            return []
        return [
            f"{beside} is not read: the configuration file is {paths.config_file}. To use the one here: --config {CONFIG_NAME}"
        ]
    return []


def prepare_places(paths: Paths) -> None:
    """Make the directories that a gateway writes to. Raises `PathsError`."""
    prepare(paths)


def configure_logs(config: Config, *, quiet: bool = False) -> None:
    """Logs go to standard error. A client that runs the gateway inside itself is `quiet`: only what went wrong."""
    from gateway.observe.logging import configure

    level = LogLevel.ERROR if quiet else config.log.level
    configure(level, config.log.format, redactor_of(config), show_text=config.log.show_text)


@dataclass(frozen=True, slots=True)
class Here:
    """What a command works with: the configuration, the places, and the daemon that may be running."""

    config: Config
    paths: Paths
    found: RunningGateway

    def remote(self, so: str = "") -> Remote:
        """The daemon, to be asked as an operator. Raises `GatewayLost` if none answers, with what follows from it (`so`)."""
        from adapters.terminal.ask import GatewayLost
        from adapters.terminal.operator import Remote

        if not self.found.url:
            raise GatewayLost(none_answers(self.found, self.config, so))
        key = self.config.server.operator_key
        return Remote(self.found.url, key.get_secret_value() if key else None, tell=_tell)

    def remote_if_any(self) -> Remote | None:
        """None if no daemon runs. One that runs and does not answer has the database, and nothing can be done without it: `GatewayLost`."""
        return self.remote() if self.found.url or self.found.pid else None


def _tell(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


async def here(config_file: Path | None) -> Here:
    """Look. Raises `ConfigError` and `PathsError`."""
    loaded, paths = load_all(config_file)
    return Here(loaded.config, paths, await find_gateway(loaded.config, paths))


def caller_key(config: Config) -> str | None:
    """The key with which whoever talks from this machine calls the gateway: ``OUTSPOKEN_KEY``, else ``[server] api_key``. Raises `ConfigError`."""
    if not (given := os.environ.get("OUTSPOKEN_KEY", "").strip()):
        return revealed(config.server.api_key) or None
    try:
        return sendable(SecretStr(given)).get_secret_value()
    except PydanticCustomError as error:
        raise ConfigError([ConfigProblem("OUTSPOKEN_KEY (environment)", f"it {error.message()}.")]) from None


EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "*": "127.0.0.1", "": "127.0.0.1"}  # noqa: S104 - a server that listens everywhere is called at loopback
"""Of the same family: a server at ``::`` listens to IPv6 only."""


def configured_url(config: Config) -> str:
    """Where the daemon with this configuration is called from this machine; empty if its port is a free one that nobody knows."""
    server = config.server
    host = EVERYWHERE.get(server.host, server.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{server.port}" if server.port else ""


async def find_gateway(config: Config, paths: Paths) -> RunningGateway:
    """The daemon that runs with this configuration: whether it answers, and if not, whether there is one; known after some seconds."""
    # aiohttp costs a third of the start of a command that needs no network.
    from adapters.checks.probe import Answering, answering_at
    from gateway.observe.lifesign import judge, sign_of

    url = configured_url(config)
    reply = await answering_at(url) if url else Answering.NOBODY
    if reply is Answering.GATEWAY:
        return judge(reply, url, None, None, 0)
    holder = await asyncio.to_thread(holder_of_database, config, paths)
    return judge(reply, url, sign_of(paths.state_dir), holder, time.time())


def holder_of_database(config: Config, paths: Paths) -> int | None:
    """The process that has our SQLite database open; 0 if nobody has, None if that cannot be known (PostgreSQL)."""
    from agent_core.store.database.look import holder_of
    from agent_core.store.database.place import SqlitePlace, parse_place
    from agent_core.store.errors import CannotOpen

    try:
        place = parse_place(config.storage.url or paths.database)
    except CannotOpen:
        return None
    return holder_of(place.path) if isinstance(place, SqlitePlace) else None


def none_answers(found: RunningGateway, config: Config, so: str = "") -> str:
    """That no gateway can be asked, why, what follows from it, and what to do."""
    if found.trouble:
        return " ".join(words for words in (found.trouble, f"So {so}." if so else "", found.fix) if words)
    where = f" at {url.removeprefix('http://')}" if (url := configured_url(config)) else ""
    return f"No gateway runs{where}{f', so {so}' if so else ''}. Start it with: outspoken run"
