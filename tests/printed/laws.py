"""The laws in ``docs/audit.md``, printed from their source: ``python -m tests.printed.laws``."""

from __future__ import annotations

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path

from gateway.laws import law
from gateway.laws.law import Law

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
BETWEEN = re.compile(r"(<!-- printed: laws -->\n).*?(<!-- /printed -->)", re.DOTALL)


def meanings() -> dict[Law, str]:
    """What is wrong where a law is broken, as the source says it below its name."""
    tree = ast.parse(inspect.getsource(law))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Law")
    found: dict[Law, str] = {}
    for before, after in pairwise(body):
        named = isinstance(before, ast.Assign) and isinstance(before.targets[0], ast.Name)
        if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            assert isinstance(before, ast.Assign)
            assert isinstance(before.targets[0], ast.Name)
            found[Law[before.targets[0].id]] = str(after.value.value)
    return found


def table() -> str:
    """All laws, a row each."""
    told = meanings()
    return "\n".join(
        ["", "| finding | what it means | what to do |", "|---|---|---|"]
        + [f"| `{one.value}` | {told[one]} | {one.advice} |" for one in Law]
        + ["", ""]
    )


def page() -> str:
    """The page as it is to be."""
    return BETWEEN.sub(lambda found: found.group(1) + table() + found.group(2), PAGE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
