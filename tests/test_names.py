"""What comments and documentation name is there: files, and the parts of modules. And a comment stands where it is read."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

PRODUCT = ("agent_core", "adapters", "gateway", "migrations")
NAMED_FILE = re.compile(
    r"(?<![\w/.@])((?:tests|gateway|adapters|agent_core|docs|deploy)/[\w./-]*\w\.(?:py|md|toml|json|yaml))(?:::(\w+))?"
)
NAMED_PART = re.compile(r"(?<!`)`((?:agent_core|adapters|gateway|tests)(?:\.\w+)+)(?:\(\))?`(?!`)")
SLID = re.compile(r"^[ \t]*[\])}]+[:,]?[ \t]+# (?!fmt:|pyright|noqa|type:)", re.MULTILINE)
OF_OTHERS = {"docs/format.md", "docs/tool_call_guidance.md"}
"""Files of models' own repositories."""
MADE = {"docs/openapi.json"}
"""What is made when it is wanted."""


def test_a_file_or_a_test_that_is_named_is_there() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}" + (f"::{part}" if part else "")
        for path in (*product(), *ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "README.md")
        for name, part in NAMED_FILE.findall(text(path))
        if name not in OF_OTHERS | MADE
        and not ((part and defines(ROOT / name, part)) or (not part and (ROOT / name).exists()))
    ]
    assert found == []


def test_a_module_or_a_part_of_one_that_is_named_is_there() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in product()
        for name in NAMED_PART.findall(text(path))
        if not is_there(name.split("."))
    ]
    assert found == []


def test_no_comment_stands_behind_a_bracket_that_closes_what_it_is_about() -> None:
    """The formatter leaves it there when it breaks a line that has become too long."""
    found = [
        f"{path.relative_to(ROOT)}:{text(path).count(chr(10), 0, one.start()) + 1}"
        for path in (*product(), *ROOT.glob("tests/**/*.py"))
        for one in SLID.finditer(text(path))
    ]
    assert found == []


def product() -> list[Path]:
    return [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]


@cache
def text(path: Path) -> str:
    return path.read_text()


def defines(path: Path, name: str) -> bool:
    return path.exists() and re.search(rf"\b{re.escape(name)}\b", text(path)) is not None


def is_there(parts: list[str]) -> bool:
    """The module, or a module in which the rest is defined or brought in."""
    for end in range(len(parts), 0, -1):
        at = ROOT.joinpath(*parts[:end])
        module = at.with_suffix(".py") if at.with_suffix(".py").exists() else at / "__init__.py"
        if module.exists():
            return all(defines(module, one) for one in parts[end:])
        if at.is_dir():
            return end == len(parts)
    return False
