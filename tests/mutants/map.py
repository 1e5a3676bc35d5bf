"""Of which modules mutants are made: of all of the product. And which tests are asked: those that run what is changed in their own process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]

PRODUCT = ("agent_core", "adapters", "gateway")

ASKED = (
    "tests/agent_core",
    "tests/store",
    "tests/adapters",
    "tests/laws",
    "tests/mutants",
    "tests/gateway",
    "tests/webhooks",
    "tests/chats",
    "tests/e2e",
    "tests/several",
    "tests/shell",
    "tests/storage",
    "tests/mcp",
    "tests/mcpserver",
    "tests/incidents",
    "tests/injection",
    "tests/promises",
    "tests/postgres",
    "tests/corpora",
    "tests/docs",
    "tests/explore",
    "tests/sim/test_sim.py",
    "tests/sim/whole",
)


def modules(only: Sequence[str] = ()) -> Sequence[str]:
    """The paths of all modules, or of those with one of these in their path."""
    paths = {str(file.relative_to(ROOT)) for folder in PRODUCT for file in (ROOT / folder).rglob("*.py")}
    some = {path for path in paths if not only or any(piece in path for piece in only)}
    return sorted(path for path in some if not path.endswith("__init__.py"))
