"""The files that a contributor and an operator look for, and their form."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.schemas import TEXT, YES_NO, many, obj, one

ROOT = Path(__file__).parents[2]
FIELD = {
    "type": "object",
    "required": ["type", "attributes"],
    "properties": {
        "type": one("markdown", "textarea", "input", "dropdown", "checkboxes"),
        "id": TEXT,
        "attributes": obj("", label=TEXT, description=TEXT, value=TEXT, render=TEXT),
        "validations": obj("required", required=YES_NO),
    },
    "additionalProperties": False,
}
FORM = obj("name description body", name=TEXT, description=TEXT, labels=many(TEXT), body=many(FIELD))


def form(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize(
    "name", ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "NOTICE", ".editorconfig", "Makefile"]
)
def test_it_is_there(name: str) -> None:
    assert (ROOT / name).read_text("utf-8").strip()


def test_issue_forms_are_forms() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = [path for path in folder.glob("*.yml") if path.name != "config.yml"]
    assert len(forms) >= 3
    for path in forms:
        read = form(path)
        jsonschema.validate(read, FORM)
        ids = [field["id"] for field in read["body"] if "id" in field]
        assert len(ids) == len(set(ids))
    jsonschema.validate(form(folder / "config.yml"), obj("", blank_issues_enabled=YES_NO))


def test_hooks_run_what_the_environment_has() -> None:
    for repo in form(ROOT / ".pre-commit-config.yaml")["repos"]:
        assert repo["repo"] == "local", "nothing is fetched for a commit"
        for hook in repo["hooks"]:
            assert hook["language"] == "system"
            program = hook["entry"].split()[0]
            assert (ROOT / program).exists(), program


def test_editors_are_told_what_the_formatter_does() -> None:
    assert "line-length = 120" in (ROOT / "pyproject.toml").read_text("utf-8")
    assert "max_line_length = 120" in (ROOT / ".editorconfig").read_text("utf-8")


def test_make_help_lists_every_target_that_people_use() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("run", "chat", "setup", "format", "lint", "test", "soak", "bench", "docs", "lock", "clean"):
        assert f"\n{target}: " in makefile.replace(f"\n{target}:\n", "\n")
        assert any(line.startswith(f"{target}:") and "## " in line for line in makefile.splitlines()), target


def test_a_release_comes_of_a_tag_is_built_from_the_locks_and_says_where_it_comes_from() -> None:
    read = form(ROOT / ".github" / "workflows" / "release.yml")
    # YAML takes the word "on" for a truth value
    assert {str(name): value for name, value in read.items()}["True"] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
    assert read["permissions"] == {}, "each job names what it needs"
    build, publish, release = (read["jobs"][name] for name in ("build", "publish", "release"))
    assert build["permissions"] == {"contents": "read"}, "what builds can publish nothing"
    assert (publish["needs"], release["needs"]) == ("build", "publish")
    steps = [str(step.get("run", "")) for step in build["steps"]]
    assert any("deploy/install.py requirements-pip.lock requirements.lock" in step for step in steps)
    used = [step.get("uses", "") for step in publish["steps"]]
    signed = next(number for number, name in enumerate(used) if name.startswith("actions/attest-build-provenance@"))
    assert signed < next(number for number, name in enumerate(used) if name.startswith("pypa/gh-action-pypi-publish@"))
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")


def test_each_python_that_the_program_says_it_runs_on_is_in_the_matrix() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    named = [one.rpartition(" ")[2] for one in told if one.startswith("Programming Language :: Python :: 3.")]
    job = form(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["test"]
    assert job["strategy"]["matrix"]["python-version"] == named
    assert {"run": "make test"} in job["steps"]
