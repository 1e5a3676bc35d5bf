"""What the documentation promises, and which tests hold it: ``docs/promises.md``, read.

A heading of that page names a page of the documentation; each point below it is a sentence of that page, word for word, and behind it the
tests, as pytest names them. Marks (code, links, emphasis) do not count: a sentence is compared as it is read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "promises.md"
_POINT = re.compile(r"- (.+?)((?: `tests/[\w./]+::\w+`)+)")
_TEST = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Promise:
    """A sentence of a page and the tests that hold it."""

    page: str
    sentence: str
    tests: tuple[str, ...]


def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _words(token: Token) -> str:
    parts = (
        " " if child.type in {"softbreak", "hardbreak"} else child.content
        for child in token.children or []
        if child.type != "html_inline"
    )
    return " ".join("".join(parts).split())


def plain(markdown: str) -> str:
    """A sentence as it is read."""
    return " ".join(_words(token) for token in _reader().parseInline(markdown))


def promises(text: str) -> Iterator[Promise]:
    """All of the page; a line that is neither a point nor a heading says nothing."""
    page = ""
    for line in text.splitlines():
        if line.startswith("## "):
            page = line.removeprefix("## ").strip()
        elif line.startswith("- "):
            found = _POINT.fullmatch(line)
            assert found, f"neither a sentence nor its tests: {line}"
            yield Promise(page, plain(found[1]), tuple(_TEST.findall(found[2])))


@dataclass(frozen=True)
class Section:
    """What stands below a heading: each paragraph, cell and block of its own."""

    heading: str
    pieces: tuple[str, ...]


@cache
def sections(path: Path) -> tuple[Section, ...]:
    """A page's sections; the first has what stands before any heading of the second rank."""
    tokens = _reader().parse(path.read_text("utf-8"))
    found: list[tuple[str, list[str]]] = [("", [])]
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h2":
            found.append((_words(tokens[number + 1]), []))
        elif token.type == "inline":
            found[-1][1].append(_words(token))
        elif token.type in {"fence", "code_block"}:
            found[-1][1].append(" ".join(token.content.split()))
    return tuple(Section(heading, tuple(pieces)) for heading, pieces in found)


@cache
def tests_of(file: str) -> frozenset[str]:
    """The names of a file's tests."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def problems(promise: Promise) -> Iterator[str]:
    """What is wrong with one."""
    path = ROOT / promise.page
    if not path.is_file():
        yield f"there is no page {promise.page}"
        return
    if not any(promise.sentence in piece for section in sections(path) for piece in section.pieces):
        yield f"{promise.page} does not say: {promise.sentence}"
    for test in promise.tests:
        file, _, name = test.partition("::")
        if name not in tests_of(file):
            yield f"there is no test {test} ({promise.page}: {promise.sentence})"
