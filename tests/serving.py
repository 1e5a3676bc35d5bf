"""A whole gateway on a free port, as the daemon serves it, for tests of the surfaces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from agent_core.ports import Clock
from gateway.config.paths import find_paths
from gateway.config.reading import load
from gateway.daemon import Serving, serving
from tests import elsewhere

QUICK = {
    "OUTSPOKEN_SERVER__PORT": "0",
    "OUTSPOKEN_SERVER__ERRORS": "words",
    "OUTSPOKEN_MODEL__STALL_SECONDS": "1",
    "OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "2",
    "OUTSPOKEN_MODEL__RETRY_MIN_SECONDS": "0.05",
    "OUTSPOKEN_MODEL__RETRY_MAX_SECONDS": "0.2",
    "OUTSPOKEN_MODEL__MAX_STEPS": "8",
}
"""Short limits, so that failures do not take long; and no call of a model that the test does not mean."""


@asynccontextmanager
async def served(
    folder: Path, env: Mapping[str, str] | None = None, clock: Clock | None = None, *, patient: bool = False
) -> AsyncGenerator[Serving]:
    """A gateway with its home in `folder`; the rehearsal model answers unless `env` says otherwise. A patient one waits as long as any."""
    base = {name: value for name, value in QUICK.items() if not (patient and name.startswith("OUTSPOKEN_MODEL"))}
    variables = {**base, "OUTSPOKEN_HOME": str(folder), **elsewhere.settings(), **(env or {})}
    paths = find_paths(variables, folder)
    async with serving(load(paths.config_file, variables).config, paths, clock=clock) as up:
        yield up
