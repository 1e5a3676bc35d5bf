"""The page ``docs/house.md``: every room of the house with its files, printed from the source. ``python -m tests.house > docs/house.md``."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.source import nodes, tree

ROOT = Path(__file__).parents[1]
FLOORS = ("gateway", "adapters", "agent_core")

HEAD = """# The house

Every room and every file, with its first sentence. Printed from the source by `python -m tests.house > docs/house.md`; a test compares it.
Imports go down: `gateway` → `adapters` → `agent_core`, and no module imports itself by way of others. What a room *uses* are the rooms
of its own floor; what lies below it may use as well. The idea behind it is in [architecture.md](architecture.md).
"""


def sentence(source: str) -> str:
    """The first sentence of a module, on one line."""
    words = " ".join((ast.get_docstring(tree(source)) or "").split("\n\n")[0].split())
    end = words.find(". ")
    return words if end < 0 else words[: end + 1]


def cell(words: str) -> str:
    return words.replace("|", r"\|")


def room_of(module: str) -> str:
    """The folder of a module, as a dotted name."""
    path = ROOT / module.replace(".", "/")
    return module if path.is_dir() else module.rpartition(".")[0]


def used(path: Path) -> Iterator[str]:
    """The rooms that a file imports from."""
    for node in nodes(path.read_text()):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                known = (ROOT / f"{name.replace('.', '/')}.py").exists() or (ROOT / name.replace(".", "/")).is_dir()
                yield room_of(name if known else node.module)


def page() -> str:
    """The whole page."""
    out = [HEAD]
    for floor in FLOORS:
        for folder in sorted({path.parent for path in (ROOT / floor).rglob("*.py")}):
            name = folder.relative_to(ROOT).as_posix()
            files = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
            dotted = name.replace("/", ".")
            near = sorted({room for path in files for room in used(path) if room.startswith(f"{floor}.")} - {dotted})
            out += [f"## `{name}/`", "", sentence((folder / "__init__.py").read_text()), ""]
            if near:
                names = ", ".join(f"`{room.removeprefix(floor + '.')}`" for room in near)
                out += [f"Uses {names}.", ""]
            if files:
                out += ["| file | what it is |", "|---|---|"]
                out += [f"| `{path.name}` | {cell(sentence(path.read_text()))} |" for path in files]
                out.append("")
    return "\n".join(out)


if __name__ == "__main__":
    sys.stdout.write(page())
