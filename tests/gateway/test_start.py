"""What a start loads is counted and stands in `start.toml`: what creeps in is found here, and not by a stopwatch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUDGET: dict[str, Any] = tomllib.loads((Path(__file__).parent / "start.toml").read_text("utf-8"))
OURS = ("agent_core", "adapters", "gateway")
TESTS_OWN = {"rich", "pygments", "markdown_it", "mdurl"}
"""structlog loads rich where it finds it; the lock does not name it."""
SLACK = 25
"""A module that is cut in two is no creep."""
SERVE = """
import asyncio, json, sys
import gateway.cli.command
import gateway.daemon as daemon

async def run():
    from gateway.operate.context import configure_logs, load_all

    loaded, paths = load_all(None)
    configure_logs(loaded.config)
    async with daemon.serving(loaded.config, paths):
        print(json.dumps(sorted(sys.modules)))

asyncio.run(run())
"""


def loaded(folder: Path) -> set[str]:
    """The modules of a daemon that serves the API alone, the moment that it is ready."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OUTSPOKEN_", "OPENAI_"))},
        "OUTSPOKEN_HOME": str(folder),
        "OUTSPOKEN_SERVER__PORT": "0",
        "OUTSPOKEN_LOG__FORMAT": "json",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_KEY": "none",
        "OUTSPOKEN_MODEL__NAME": "none",
    }
    ran = subprocess.run([sys.executable, "-c", SERVE], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    modules: list[str] = json.loads(ran.stdout.splitlines()[-1])
    return {name for name in modules if name.partition(".")[0] not in TESTS_OWN}


def counts(modules: set[str]) -> dict[str, int]:
    """How many of each package that is not Python's own."""
    found: dict[str, int] = {}
    for name in modules:
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top != "__main__" and not top.startswith(("_", "sitecustomize")):
            found[top] = found.get(top, 0) + 1
    return found


def test_a_start_loads_what_its_budget_names_and_nothing_else(tmp_path: Path) -> None:
    loaded(tmp_path)  # makes the database
    found = counts(loaded(tmp_path))
    assert set(found) <= {*OURS, *BUDGET["packages"]}, "a package that no start loaded so far"
    ours = sum(number for name, number in found.items() if name in OURS)
    for kind, number in (("ours", ours), ("others", sum(found.values()) - ours)):
        allowed: int = BUDGET["modules"][kind]
        assert number <= allowed, f"{kind}: load them where they are first needed, or say in start.toml why not"
        assert number > allowed - SLACK, f"{kind}: fewer than ever: write it down, so that it stays"
