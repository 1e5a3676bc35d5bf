"""What a start loads is counted and stands in `start.toml`: what creeps in is found here, and not by a stopwatch."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.serving import served

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
WEIGH = """
import os, sys, tracemalloc
from importlib.machinery import SourceFileLoader

tracemalloc.start(1)
weights, within, plain = {}, [], SourceFileLoader.exec_module

def weighed(self, module):
    before = tracemalloc.get_traced_memory()[0]
    within.append(0)
    plain(self, module)
    grown = tracemalloc.get_traced_memory()[0] - before
    weights[module.__name__] = grown - within.pop()
    if within:
        within[-1] += grown

SourceFileLoader.exec_module = weighed
""" + SERVE.replace(
    "print(json.dumps(sorted(sys.modules)))",
    """
        lines = tracemalloc.take_snapshot().statistics("filename")
        children = open(f"/proc/self/task/{os.getpid()}/children").read() if sys.platform == "linux" else ""
        print(json.dumps([weights, {one.traceback[0].filename: one.size for one in lines}, children.split()]))""",
)
"""The same, weighed: what each module's import left, without what it imported, and what the lines of each file have made until then."""
ASK = """
import json, sys

sys.argv = ["outspoken", "status"]
from gateway.cli.command import main

try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)))
"""
HANDS = (
    "agent_core.documents", "agent_core.model.speech", "agent_core.remembered", "agent_core.rules.consents", "agent_core.rules.taint",
    "agent_core.store.memory", "agent_core.tools", "agent_core.workers", "gateway.commands.memories", "gateway.commands.timed",
    "gateway.config.tools", "gateway.later", "gateway.schedule", "gateway.sessions.con", "gateway.toolset",
)  # fmt: skip
"""All that tools of any kind, files of people, memory, reminders, approvals and rules for words of others consist of."""
HANDS_MIB = 3.0
VALIDATORS_MIB = 0.4
"""What pydantic keeps in Rust of their sections of the configuration, which is not counted by Python."""


def loaded(folder: Path) -> set[str]:
    """The modules of a daemon that serves the API alone, the moment that it is ready."""
    modules: list[str] = json.loads(served_once(folder, SERVE))
    return {name for name in modules if name.partition(".")[0] not in TESTS_OWN}


async def stored_once(folder: Path) -> None:
    """The database is there: what makes it is no part of an ordinary start."""
    async with served(folder):
        pass


def served_once(folder: Path, script: str, port: int = 0) -> str:
    """What the script prints last."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OUTSPOKEN_", "OPENAI_"))},
        "OUTSPOKEN_HOME": str(folder),
        "OUTSPOKEN_SERVER__PORT": str(port),
        "OUTSPOKEN_LOG__FORMAT": "json",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_KEY": "none",
        "OUTSPOKEN_MODEL__NAME": "none",
    }
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1]


def counts(modules: set[str]) -> dict[str, int]:
    """How many of each package that is not Python's own."""
    found: dict[str, int] = {}
    for name in modules:
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top != "__main__" and not top.startswith(("_", "sitecustomize")):
            found[top] = found.get(top, 0) + 1
    return found


def test_a_start_loads_what_its_budget_names_and_nothing_else(tmp_path: Path) -> None:
    asyncio.run(stored_once(tmp_path))
    found = counts(loaded(tmp_path))
    assert set(found) <= {*OURS, *BUDGET["packages"]}, "a package that no start loaded so far"
    ours = sum(number for name, number in found.items() if name in OURS)
    for kind, number in (("ours", ours), ("others", sum(found.values()) - ours)):
        allowed: int = BUDGET["modules"][kind]
        assert number <= allowed, f"{kind}: load them where they are first needed, or say in start.toml why not"
        assert number > allowed - SLACK, f"{kind}: fewer than ever: write it down, so that it stays"


async def test_a_command_that_asks_a_running_gateway_loads_nothing_of_its_store(tmp_path: Path) -> None:
    """A third of what such a command took was to load what reads tables, of which it reads none."""
    async with served(tmp_path) as up:
        told = await asyncio.to_thread(served_once, tmp_path, ASK, int(up.url.rpartition(":")[2]))
    found = counts(set(json.loads(told)))
    assert {"aiohttp", "pydantic"} <= set(found)
    assert not {"alembic", "openai", "sqlalchemy"} & set(found)


def test_tools_that_nobody_has_configured_weigh_little_and_begin_nothing(tmp_path: Path) -> None:
    """Against a gateway that has no such part at all: so it counts what was there before these, too."""
    asyncio.run(stored_once(tmp_path))
    weights: dict[str, int]
    lines: dict[str, int]
    weights, lines, children = json.loads(served_once(tmp_path, WEIGH))
    modules = {str((ROOT / name.replace(".", "/")).resolve()): name for name in weights if name.startswith(HANDS)}
    assert len(modules) > 40
    places = {f"{path}{end}" for path in modules for end in (".py", "/__init__.py")}
    imported = sum(weights[name] for name in modules.values())
    made = sum(size for file, size in lines.items() if file in places)
    assert (imported + made) / 2**20 + VALIDATORS_MIB <= HANDS_MIB, (imported, made)
    assert not children, "no worker, no server, no sandbox"
