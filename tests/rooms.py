"""Which room imports from which, as a picture: ``python -m tests.rooms`` prints what stands in ``docs/architecture.md``.

A room is a folder of a floor with all that lies in it; a file that stands on a floor itself is a room of its own.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.source import nodes

ROOT = Path(__file__).parents[1]
FLOORS = ("gateway", "adapters", "agent_core")
Rooms = Mapping[str, Set[str]]
"""Each room with those that it imports from."""


def modules(root: Path = ROOT) -> dict[str, Path]:
    """All modules of the house, by their dotted names."""
    files = (path for floor in FLOORS for path in (root / floor).rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def imported(path: Path, known: Set[str]) -> Iterator[str]:
    """The modules of the house that a file imports, also late in a function."""
    for node in nodes(path.read_text()):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room_of(module: str, known: Mapping[str, Path]) -> str:
    """``gateway.chats.arrival`` is in ``gateway/chats``; ``gateway.daemon`` is its own room."""
    parts = module.split(".")
    alone = len(parts) < 3 and known[module].name != "__init__.py"
    return "/".join(parts[:2]) + (".py" if alone else "")


def rooms(root: Path = ROOT) -> Rooms:
    """Every room of the house with those that it uses."""
    known = modules(root)
    uses: dict[str, set[str]] = {}
    for module, path in known.items():
        room = room_of(module, known)
        into = {room_of(name, known) for name in imported(path, set(known)) if name in known}
        uses.setdefault(room, set()).update(into - {room})
    return {room: uses[room] for room in sorted(uses)}


def circle(uses: Rooms) -> list[str]:
    """Rooms that use each other in a circle, the first again at the end; empty if there are none."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def needed(uses: Rooms) -> Rooms:
    """The same without what follows: who uses a room that uses a third needs no arrow to the third.

    :raises graphlib.CycleError: rooms use each other in a circle.
    """
    below: dict[str, set[str]] = {}
    for room in TopologicalSorter(uses).static_order():
        below[room] = set(uses[room]).union(*(below[other] for other in uses[room]))
    return {
        room: {other for other in into if not any(other in below[third] for third in into)}
        for room, into in uses.items()
    }


def picture(uses: Rooms | None = None) -> str:
    """The rooms in their floors and the arrows between them, as Mermaid's flowchart."""
    arrows = needed(rooms() if uses is None else uses)
    out = ["```mermaid", "flowchart TD"]
    for floor in FLOORS:
        own = [room for room in arrows if room.startswith(f"{floor}/")]
        out += [f"  subgraph {floor}", *(f'    {_node(room)}["{room.partition("/")[2]}"]' for room in own), "  end"]
    out += [f"  {_node(room)} --> {_node(other)}" for room in arrows for other in sorted(arrows[room])]
    return "\n".join([*out, "```"])


def _node(room: str) -> str:
    return room.replace("/", "_").removesuffix(".py")


if __name__ == "__main__":
    sys.stdout.write(picture() + "\n")
