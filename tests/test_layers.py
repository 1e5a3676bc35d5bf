"""The shape of the house, held by looking at the source: who may import whom, how long things are, and what no file may hold.

Each check is a function of text or of a syntax tree, so that it can be tried on small planted examples as well.
"""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests.source import nodes

ROOT = Path(__file__).parents[1]
PACKAGES = ("agent_core", "adapters", "gateway", "migrations")

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "agent_core": frozenset({"agent_core"}),
    "adapters": frozenset({"adapters", "agent_core"}),
    "gateway": frozenset({"gateway", "adapters", "agent_core", "migrations"}),
    "migrations": frozenset({"migrations"}),
}
"""Which of our packages each of them may import."""
MIGRATIONS_IN_THE_CORE = "agent_core/store/"
"""The store runs the migrations, and nobody else in the core knows that they are there."""

PLATFORM_LIBRARIES = frozenset({"discord", "telegram", "slack_bolt", "slack_sdk", "prompt_toolkit", "rich", "click"})
NOT_IN: Mapping[str, frozenset[str]] = {
    "agent_core": PLATFORM_LIBRARIES,
    "adapters": frozenset({"sqlalchemy", "alembic", "asyncpg", "sqlite3"}),
}
RECORDS = "agent_core/records.py"
AIOHTTP_IN_THE_CORE = ("agent_core/model/", "agent_core/tools/")

PURE = (
    "adapters/delivery/reconcile.py",
    "agent_core/messages.py",
    "agent_core/turn/transcript.py",
    "agent_core/explain/why.py",
    "agent_core/journal/export.py",
    "agent_core/journal/ordinary.py",
    "agent_core/journal/replay.py",
    "agent_core/journal/replaywords.py",
    "agent_core/judging/compaction.py",
    "agent_core/judging/ends.py",
    "agent_core/rules/loops.py",
    "agent_core/rules/masking.py",
    "agent_core/rules/overlap.py",
    "agent_core/rules/promises.py",
    "agent_core/rules/promising/language.py",
    "agent_core/rules/promising/underway.py",
    "agent_core/rules/promising/tongue.py",
    "agent_core/failures/remedies.py",
    "agent_core/rules/consents.py",
    "agent_core/rules/replies.py",
    "agent_core/rules/taint.py",
    "agent_core/learning/stalls.py",
    "agent_core/limits/budgets.py",
    "agent_core/limits/spend.py",
    "agent_core/model/families/bare.py",
    "agent_core/model/families/grammar/jsoncalls.py",
    "agent_core/model/families/grammar/marks.py",
    "agent_core/model/families/grammar/notation.py",
    "agent_core/model/families/grammar/steps.py",
    "agent_core/model/families/grammar/tagged.py",
    "agent_core/model/families/grammar/values.py",
    "agent_core/model/families/registry.py",
    "agent_core/model/knownbad.py",
    "agent_core/model/stream/arriving.py",
    "agent_core/model/stream/chunks.py",
    "agent_core/model/stream/content.py",
    "agent_core/model/stream/markdown.py",
    "agent_core/model/stream/mentions.py",
    "agent_core/model/stream/nativecalls.py",
    "agent_core/model/stream/openthought.py",
    "agent_core/model/stream/text_calls.py",
    "agent_core/model/stream/thoughts.py",
    "agent_core/model/stream/visible.py",
    "agent_core/text/redaction.py",
    "agent_core/causes.py",
    "agent_core/turn/effects.py",
    "agent_core/turn/events.py",
    "agent_core/failures/exits.py",
    "agent_core/machine/turn.py",
    "agent_core/failures/notices.py",
    "agent_core/settings.py",
    "agent_core/turn/state.py",
    "agent_core/machine/taking.py",
    "agent_core/turn/timeline.py",
    "agent_core/turn/view.py",
    "gateway/observe/logcatalogue.py",
    "gateway/operate/triage/grouping.py",
    "gateway/operate/triage/lines.py",
    "gateway/operate/triage/report.py",
    "gateway/operate/triage/issues.py",
)
"""Modules that only decide."""
IMPURE_LIBRARIES = frozenset(
    {
        "asyncio",
        "time",
        "random",
        "uuid",
        "socket",
        "sqlalchemy",
        "os",
        "secrets",
        "subprocess",
        "threading",
        "aiohttp",
        "httpx2",
    }
)

LONGEST_FUNCTION = 70
LONGEST_FILE = 900

# Put together from pieces, so that this file does not hold what it looks for.
DEVELOPERS_PATHS = re.compile(r"(?<![\w.~-])/(?:" + "work" + r"/|" + "root" + r"/|home/[a-z])")
INDEX_HOST = re.compile(r"https?://|--(?:extra-)?index-url|--find-links", re.IGNORECASE)


# --- the checks ---


def imported(source: str, module: str) -> Iterator[tuple[int, str]]:
    """The line and the full name of everything that a module imports, at any depth, also by name at run time."""
    package = module.rpartition(".")[0].split(".")
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield node.lineno, ".".join([*base, *((node.module or "").split("."))]).strip(".")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {
            "import_module",
            "importlib.import_module",
            "__import__",
        }:
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, name.value


def forbidden_imports(source: str, path: str) -> list[str]:
    """What a file imports although its place in the house forbids it."""
    package = path.split("/")[0]
    module = path.removesuffix(".py").replace("/", ".")
    found: list[str] = []
    for line, name in imported(source, module):
        top = name.split(".")[0]
        runs_migrations = top == "migrations" and path.startswith(MIGRATIONS_IN_THE_CORE)
        if top in PACKAGES and top not in MAY_IMPORT[package] and not runs_migrations:
            found.append(f"{path}:{line}: {package} must not know {top}")
        if top in NOT_IN.get(package, frozenset()):
            found.append(f"{path}:{line}: {package} must not know the library {top}")
        if top == "aiohttp" and package == "agent_core" and not path.startswith(AIOHTTP_IN_THE_CORE):
            found.append(f"{path}:{line}: aiohttp belongs to {' and '.join(AIOHTTP_IN_THE_CORE)}")
        if path in PURE and top in IMPURE_LIBRARIES:
            found.append(f"{path}:{line}: a module that only decides must not import {top}")
    return found


def circles(sources: Mapping[str, str]) -> list[list[str]]:
    """The modules (by path) that import each other in a circle, however late in a function they do it."""
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in sources}
    wanted: dict[str, set[str]] = {}
    for module, path in modules.items():
        names = {name for _, name in imported(sources[path], module)}
        for node in nodes(sources[path]):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
        wanted[module] = {name for name in names if name in modules and name != module}
    while free := {module for module, names in wanted.items() if not names & wanted.keys()}:
        wanted = {module: names for module, names in wanted.items() if module not in free}
    while used := {module for module in wanted if not any(module in names for names in wanted.values())}:
        wanted = {module: names for module, names in wanted.items() if module not in used}
    return [sorted(wanted)] if wanted else []


def dataclasses_at_once(source: str, path: str) -> list[str]:
    """Where a file takes the standard decorator, which compiles six functions a class at each start (`agent_core/records.py`)."""
    return [
        f"{path}:{node.lineno}: take dataclass from agent_core.records"
        for node in nodes(source)
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if path != RECORDS and any(alias.name == "dataclass" for alias in node.names)
    ]


def too_long(source: str, path: str) -> list[str]:
    """The functions over `LONGEST_FUNCTION` lines (signature to last line), and the file if it is over `LONGEST_FILE`."""
    found = [
        f"{path}:{node.lineno}: {node.name} has {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in nodes(source)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    lines = len(source.splitlines())
    return [*found, f"{path}: the file has {lines} lines"] if lines > LONGEST_FILE else found


def lines_with(pattern: re.Pattern[str], text: str, path: str) -> list[str]:
    """Where a pattern stands in a text."""
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


# --- the repository ---


def _listed() -> list[str]:
    """Every file that belongs to the project, with or without git."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            timeout=30,
        )
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        hidden = {".git", ".venv", "__pycache__", ".hypothesis", ".pytest_cache", ".ruff_cache", "dist", "build"}
        paths = [path for path in ROOT.rglob("*") if path.is_file() and not hidden & set(path.relative_to(ROOT).parts)]
        return sorted(path.relative_to(ROOT).as_posix() for path in paths)
    return sorted(name for name in listing.stdout.decode().split("\0") if name and (ROOT / name).is_file())


@cache
def texts() -> Mapping[str, str]:
    """Path and content of every text file of the project."""
    found: dict[str, str] = {}
    for name in _listed():
        raw = (ROOT / name).read_bytes()
        if b"\0" not in raw:
            found[name] = raw.decode("utf-8", "replace")
    return found


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Path and content of the Python files below these folders."""
    return ((path, text) for path, text in texts().items() if path.startswith(folders) and path.endswith(".py"))


SOURCE_FOLDERS = tuple(f"{package}/" for package in PACKAGES)


def test_there_is_something_to_look_at() -> None:
    paths = [path for path, _ in sources(*SOURCE_FOLDERS)]
    assert len(paths) > 20
    assert {PurePosixPath(path).parts[0] for path in paths} == set(PACKAGES)
    assert "agent_core/machine/turn.py" in paths


def test_every_import_keeps_to_the_layers() -> None:
    assert [found for path, text in sources(*SOURCE_FOLDERS) for found in forbidden_imports(text, path)] == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(dict(sources("agent_core/", "adapters/", "gateway/"))) == []


def test_no_class_of_the_product_has_its_methods_made_before_somebody_asks() -> None:
    assert [found for path, text in sources(*SOURCE_FOLDERS) for found in dataclasses_at_once(text, path)] == []
    assert dataclasses_at_once("from dataclasses import dataclass, field", "gateway/daemon.py")


MOST_SIBLINGS = 16


def test_no_folder_holds_more_files_than_one_can_look_through() -> None:
    folders = Counter(path.rpartition("/")[0] for path, _ in sources(*SOURCE_FOLDERS) if "/versions/" not in path)
    full = {name: number for name, number in folders.items() if number > MOST_SIBLINGS + 1}
    assert full == {}


def test_no_function_and_no_file_is_too_long() -> None:
    assert [found for path, text in sources(*SOURCE_FOLDERS) for found in too_long(text, path)] == []


def test_no_file_holds_a_path_of_somebodys_machine() -> None:
    assert [found for path, text in texts().items() for found in lines_with(DEVELOPERS_PATHS, text, path)] == []


def left_open(source: str, path: str) -> list[str]:
    """SQLite's own ``with`` ends a transaction and closes nothing; what the collector closes is a ResourceWarning since Python 3.13."""
    return [
        f"{path}:{one.context_expr.lineno}: closing(sqlite3.connect(...)) closes it"
        for block in nodes(source)
        if isinstance(block, ast.With)
        for one in block.items
        if isinstance(one.context_expr, ast.Call) and ast.unparse(one.context_expr.func) == "sqlite3.connect"
    ]


def test_no_connection_is_left_for_the_collector_to_close() -> None:
    written = ((path, source) for path, source in sources("") if "sqlite3.connect" in source)
    assert [found for path, source in written for found in left_open(source, path)] == []


def test_a_planted_connection_that_nobody_closes_is_found() -> None:
    assert left_open("with sqlite3.connect(path) as conn:\n    pass", "a.py") == [
        "a.py:1: closing(sqlite3.connect(...)) closes it"
    ]
    assert left_open("with closing(sqlite3.connect(path)) as conn, conn:\n    pass", "a.py") == []


def words_of_nothing(source: str, path: str) -> list[str]:
    """Words that stand below something say what that is: those that stand below nothing have lost it."""
    found: list[str] = []
    for node in nodes(source):
        body = node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else []
        for before, words in itertools.pairwise(body):
            named = isinstance(before, ast.Assign | ast.AnnAssign) and before.end_lineno == words.lineno - 1
            match words:
                case ast.Expr(ast.Constant(str())) if not named:
                    found.append(f"{path}:{words.lineno}: what is this about?")
                case _:
                    pass
    return found


def test_words_stand_below_what_they_are_about() -> None:
    assert [found for path, source in sources("") for found in words_of_nothing(source, path)] == []


@pytest.mark.parametrize(
    "planted", ['A = 1\n"""a"""\n"""b"""', 'A = 1\n\n"""a"""', 'class A:\n    """a"""\n    """b"""']
)
def test_planted_words_that_are_about_nothing_are_found(planted: str) -> None:
    assert words_of_nothing(planted, "x.py")
    assert not words_of_nothing('"""a"""\nA = 1\n"""b"""', "x.py")


def test_no_lock_file_names_the_host_of_an_index() -> None:
    locks = {
        path: text for path, text in texts().items() if path.endswith((".lock", "requirements.txt", "pylock.toml"))
    }
    assert "requirements.lock" in locks
    assert [found for path, text in locks.items() for found in lines_with(INDEX_HOST, text, path)] == []


# --- the checks themselves ---


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("agent_core/turn/view.py", "import adapters.contract.base"),
        ("agent_core/turn/view.py", "from gateway import hub"),
        ("agent_core/turn/view.py", "def f():\n    import discord"),
        ("agent_core/driver/driver.py", "import aiohttp"),
        ("agent_core/driver/driver.py", "from aiohttp.web import Request"),
        ("agent_core/store/x.py", "import importlib\nimportlib.import_module('telegram.ext')"),
        ("agent_core/machine/turn.py", "import time"),
        ("agent_core/machine/turn.py", "from os import path"),
        ("agent_core/machine/turn.py", "if TYPE_CHECKING:\n    import sqlalchemy.ext.asyncio"),
        ("adapters/http/web.py", "from sqlalchemy import select"),
        ("adapters/http/web.py", "import gateway.sessions.hub as hub"),
        ("adapters/text/split.py", "from ...gateway import hub"),
        ("adapters/delivery/reconcile.py", "import asyncio"),
        ("migrations/env.py", "from gateway.config.paths import Paths"),
        ("migrations/env.py", "from agent_core.store import tables"),
        ("agent_core/driver/driver.py", "import migrations"),
    ],
)
def test_a_planted_import_is_found(path: str, source: str) -> None:
    assert len(forbidden_imports(source, path)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("agent_core/model/client.py", "import aiohttp\nimport asyncio"),
        ("agent_core/store/database/upgrade.py", "from migrations import REVISIONS"),
        ("agent_core/driver/driver.py", "import asyncio\nfrom agent_core.machine.turn import Turn"),
        ("agent_core/machine/turn.py", "from agent_core.turn.events import Event\nimport hashlib"),
        ("agent_core/machine/turn.py", "from . import time, os"),
        (
            "adapters/http/web.py",
            "import aiohttp\nfrom agent_core.turn.view import view\nfrom adapters.contract.base import Inbound",
        ),
        ("gateway/daemon.py", "import sqlalchemy, aiohttp, adapters, agent_core"),
    ],
)
def test_an_allowed_import_is_let_through(path: str, source: str) -> None:
    assert forbidden_imports(source, path) == []


def test_a_planted_circle_is_found_also_one_that_is_late() -> None:
    late = {"a/x.py": "from a import y", "a/y.py": "def f():\n    from a.z import g", "a/z.py": "import a.x"}
    assert circles(late) == [["a.x", "a.y", "a.z"]]
    assert circles({**late, "a/z.py": "import b", "a/w.py": "import a.x"}) == []


def test_a_planted_long_function_and_a_long_file_are_found() -> None:
    body = "\n".join("        x = 1" for _ in range(LONGEST_FUNCTION - 1))
    fits = f"class A:\n    async def f(self):\n{body}\n"
    assert too_long(fits, "a.py") == []
    assert too_long(fits + "        x = 2\n", "a.py") == [f"a.py:2: f has {LONGEST_FUNCTION + 1} lines"]
    assert too_long("x = 1\n" * LONGEST_FILE, "a.py") == []
    assert too_long("x = 1\n" * (LONGEST_FILE + 1), "a.py") == [f"a.py: the file has {LONGEST_FILE + 1} lines"]


def test_a_planted_path_of_a_machine_is_found_and_others_are_not() -> None:
    for planted in ("work/main/x", "root/.cache", "home/ada/src"):
        assert lines_with(DEVELOPERS_PATHS, f'open("/{planted}")', "a.py")
    for fine in (
        "frame" + "work/x",
        "https://host.example/~ada",
        "/workspaces/x",
        "~/work",
        "docs/roots/x",
        "/homes",
        "$HOME/x",
    ):
        assert lines_with(DEVELOPERS_PATHS, fine, "a.py") == []


def test_a_planted_index_host_is_found() -> None:
    assert lines_with(INDEX_HOST, "--index-url=x\na==1 \\\n    --hash=sha256:00", "a.lock")
    assert lines_with(INDEX_HOST, "a @ https://files.example.org/a.whl", "a.lock")
    assert lines_with(INDEX_HOST, "a==1 ; sys_platform == 'linux' \\\n    --hash=sha256:00", "a.lock") == []
