"""docs/incidents.md, read: the tests run the commands that it names, and look for the words that it promises."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "incidents.md"
MOST_COMMANDS = 3
_ROW = re.compile(r"^\| (?P<cells>.+) \|$")
_CODE = re.compile(r"`([^`]+)`")
_PHRASE = re.compile(r"“([^”]+)”")


@dataclass(frozen=True)
class Incident:
    """One row of the table."""

    name: str
    commands: tuple[str, ...]
    phrases: tuple[str, ...]
    """What the commands say, in any of their outputs. ``1. …`` is the first group of a triage."""


def incidents() -> dict[str, Incident]:
    """The rows of the page, by their names."""
    found: dict[str, Incident] = {}
    for line in PAGE.read_text("utf-8").splitlines():
        row = _ROW.match(line)
        cells = [cell.strip() for cell in row["cells"].split(" | ")] if row else []
        if len(cells) != 5 or not cells[0].startswith("**"):
            continue
        name = cells[0].strip("*")
        assert name not in found, f"{name} stands in the table twice"
        found[name] = Incident(name, tuple(_CODE.findall(cells[2])), tuple(_PHRASE.findall(cells[3])))
    return found
