"""Mistakes that somebody has planted by hand: a change of some lines, and what it means (`named.toml`, or a file of one's own)."""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutants.making import Mutant, outermost

FILE = Path(__file__).with_name("named.toml")
"""Those that tests have let through once. Each has its test now."""


@dataclass(frozen=True)
class Named:
    """A change of some lines."""

    what: str
    path: str
    before: str
    after: str


def planted(file: Path = FILE) -> list[Named]:
    """All that are in a file."""
    return [Named(**one) for one in tomllib.loads(file.read_text("utf-8"))["planted"]]


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def named(one: Named, root: Path) -> Mutant:
    """The whole module with it."""
    source = (root / one.path).read_text("utf-8")
    assert one.before in source, f"{one.what}: the source has changed; plant it anew"
    line = source[: source.index(one.before)].count("\n") + 1
    line += len(one.before) - len(one.before.lstrip("\n"))
    within = outermost(_parsed(source), line)
    before, after = (" ".join(each.split())[:60] for each in (one.before, one.after))

    def build() -> ast.Module:
        return ast.parse(source.replace(one.before, one.after, 1))

    return Mutant(one.path, line, one.what, before, after, build, within)
