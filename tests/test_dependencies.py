"""Every direct dependency is declared, used, and explained in docs/dependencies.md."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.source import nodes

ROOT = Path(__file__).parents[1]
PACKAGES = ("agent_core", "adapters", "gateway", "migrations")
NEEDED_UNSEEN = {"asyncpg", "opentelemetry-exporter-otlp-proto-http"}
"""SQLAlchemy imports the first two by the name in the database's address; the last shares its top name with the SDK."""

IMPORTED_AS = {
    "dotenv": "python-dotenv",
    "markdown_it": "markdown-it-py",
    "telegram": "python-telegram-bot",
    "discord": "discord.py",
    "yaml": "pyyaml",
    "re2": "google-re2",
    "docx": "python-docx",
    "pptx": "python-pptx",
    "opentelemetry": "opentelemetry-sdk",
}
"""Packages whose name is not that of what they bring."""

APART = {"fuzz", "clients", "installer"}
"""Pinned elsewhere or not at all: one has no wheels for every Python, one is an environment of its own, one installs all others."""

Declared = Mapping[str, Mapping[str, str]]
"""Group → package → version, with extras in front."""

HEADINGS = {"To run": "runtime"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(.*)")
_HEADING = re.compile(r"## (?:Extra|Group) `([a-z]+)`|## (.+)")


def normal(name: str) -> str:
    """A package's name in the spelling of PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(pyproject: str) -> Declared:
    """What pyproject.toml asks for."""
    data = tomllib.loads(pyproject)
    project = cast("dict[str, object]", data["project"])
    groups: dict[str, list[str]] = {
        "runtime": cast("list[str]", project["dependencies"]),
        **cast("dict[str, list[str]]", project.get("optional-dependencies", {})),
        **cast("dict[str, list[str]]", data.get("dependency-groups", {})),
    }
    out: dict[str, dict[str, str]] = {}
    for group, requirements in groups.items():
        for requirement in requirements:
            found = _REQUIREMENT.fullmatch(requirement)
            assert found, requirement
            out.setdefault(group, {})[normal(found.group(1))] = found.group(2)
    return out


def rows(page: str) -> Iterator[tuple[str, list[str]]]:
    """The group and the cells of each row of the page's tables."""
    group = ""
    for line in page.splitlines():
        if heading := _HEADING.fullmatch(line.strip()):
            group = heading.group(1) or HEADINGS.get(heading.group(2), heading.group(2))
        elif line.startswith("| ") and not line.startswith("| package "):
            yield group, [cell.strip() for cell in line.strip().strip("|").split("|")]


def documented(page: str) -> Declared:
    """What the page explains."""
    out: dict[str, dict[str, str]] = {}
    for group, cells in rows(page):
        out.setdefault(group, {})[normal(cells[0])] = cells[1].strip("`")
    return out


@pytest.fixture(scope="module")
def pyproject() -> str:
    return (ROOT / "pyproject.toml").read_text("utf-8")


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "dependencies.md").read_text("utf-8")


def test_the_page_names_every_dependency_with_its_version_and_no_other(pyproject: str, page: str) -> None:
    assert documented(page) == declared(pyproject)


def test_every_row_says_what_for_why_and_under_which_licence(page: str) -> None:
    for _, cells in rows(page):
        assert len(cells) == 5, cells
        assert all(cells), cells


def test_the_lock_files_pin_every_dependency_of_theirs(pyproject: str) -> None:
    wanted = declared(pyproject)
    for lock, groups in (
        ("requirements.lock", ("runtime", "postgres", "build")),
        ("requirements-dev.lock", tuple(group for group in wanted if group not in APART)),
        ("requirements-clients.lock", ("clients",)),
        ("requirements-pip.lock", ("installer",)),
    ):
        pinned = {
            normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", (ROOT / lock).read_text("utf-8"), re.MULTILINE)
        }
        assert {name for group in groups for name in wanted[group]} <= pinned, lock


def imports() -> set[str]:
    """The top-level names that the code which is shipped imports."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in nodes(path.read_text("utf-8")):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.split(".")[0])
    return {IMPORTED_AS.get(name, name) for name in found - set(PACKAGES) - set(sys.stdlib_module_names)}


def test_what_the_code_imports_is_declared_and_not_merely_inherited(pyproject: str) -> None:
    wanted = declared(pyproject)
    known = {name for group in ("runtime", "documents", "postgres", "otlp", "mcp") for name in wanted[group]}
    # Parts of the public interface of pydantic, of openai, and of python-telegram-bot.
    brought = {"pydantic-core", "httpx2", "httpx"}
    assert {normal(name) for name in imports()} <= known | brought


def test_what_is_declared_is_used(pyproject: str) -> None:
    used = {normal(name) for name in imports()} | NEEDED_UNSEEN
    wanted = declared(pyproject)
    assert {name for group in ("runtime", "documents", "postgres", "otlp", "mcp") for name in wanted[group]} <= used


def test_a_difference_between_the_two_is_found() -> None:
    text = '[project]\ndependencies = ["a[x]>=1,<2", "B_c>=2"]\n[dependency-groups]\ntest = ["d"]\n'
    same = "## To run\n\n| package | version |\n|---|---|\n| a | `[x]>=1,<2` |\n| b-c | `>=2` |\n## Group `test`\n| d | |\n"
    assert documented(same) == declared(text) == {"runtime": {"a": "[x]>=1,<2", "b-c": ">=2"}, "test": {"d": ""}}
    assert documented(same.replace("<2", "<3")) != declared(text)
    assert documented(same.replace("| d | |\n", "")) != declared(text)


def test_what_the_house_is_built_on_is_what_runs(pyproject: str) -> None:
    """These are given, also where code of ours would be smaller: a person finds what its library's pages say."""
    given = {
        "aiohttp",
        "alembic",
        "discord-py",
        "openai",
        "python-telegram-bot",
        "slack-bolt",
        "sqlalchemy",
        "structlog",
    }
    assert given <= set(declared(pyproject)["runtime"])
