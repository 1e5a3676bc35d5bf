"""The documentation, read: its links, anchors and blocks of code."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
RUN = "<!-- run -->"
"""Stands on the line before a block that is run by the tests."""


@dataclass(frozen=True)
class Block:
    """A block of code."""

    page: str
    line: int
    language: str
    text: str
    run: bool


@dataclass(frozen=True)
class Page:
    """One file of Markdown."""

    path: Path
    links: tuple[tuple[int, str], ...]
    """Line and target; pictures too."""
    anchors: frozenset[str]
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))


def pages() -> list[Page]:
    """All of them."""
    top = [*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md")]
    return [read(path) for path in sorted([*top, *(ROOT / "docs").rglob("*.md")])]


@cache
def read(path: Path) -> Page:
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text("utf-8"))
    links = [(line, target) for line, token in _inline(tokens) for target in _targets(token)]
    return Page(path, tuple(links), frozenset(_anchors(tokens)), tuple(_blocks(tokens, name)))


def _inline(tokens: list[Token]) -> Iterator[tuple[int, Token]]:
    for token in tokens:
        for child in token.children or []:
            yield (token.map or [0])[0] + 1, child


def _targets(token: Token) -> Iterator[str]:
    for key in ("href", "src"):
        value = token.attrGet(key)
        if isinstance(value, str):
            yield value


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub makes it; the site's generator makes the same of ours."""
    text = unicodedata.normalize("NFKC", heading).lower().strip()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def _anchors(tokens: list[Token]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            words = "".join(child.content for child in token.children or [])
            found = slug(words)
            seen[found] = seen.get(found, -1) + 1
            yield f"{found}-{seen[found]}" if seen[found] else found


def _blocks(tokens: list[Token], name: str) -> Iterator[Block]:
    marked = False
    for token in tokens:
        if token.type in {"fence", "code_block"}:
            yield Block(name, (token.map or [0])[0] + 1, token.info.strip(), token.content, marked)
        marked = token.type == "html_block" and token.content.strip() == RUN
