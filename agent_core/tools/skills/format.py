"""What a skill is: the head of its ``SKILL.md``, by the published format (agentskills.io). Pure.

Known to be weak: `allowed-tools` is experimental in the format, and is not obeyed here; which tools an agent has is the operator's to say.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import cast

from agent_core.records import dataclass

READ_SKILL = "read_skill"
"""The tool that reads one."""
FILE = "SKILL.md"
NAME_CHARS = 64
DESCRIPTION_CHARS = 1024


@dataclass(frozen=True, slots=True)
class Skill:
    """What stands in every request, so that the model knows when to read the rest."""

    name: str
    description: str


class NoSkill(Exception):
    """A folder holds no skill; the words say why, for whoever wrote it."""


def skill_of(folder: str, text: str) -> Skill:
    """The skill of a folder of this name with this ``SKILL.md``. Raises `NoSkill`."""
    head = _head(text)
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not name:
        raise NoSkill("its head has no name")
    if not isinstance(description, str) or not description.strip():
        raise NoSkill("its head has no description, and that is all by which the model knows when to read it")
    name = unicodedata.normalize("NFKC", name)
    if wrong := wrong_with(name):
        raise NoSkill(wrong)
    if name != unicodedata.normalize("NFKC", folder):
        raise NoSkill(f"it is called {name}, and its folder {folder}: they have to have one name")
    if len(description) > DESCRIPTION_CHARS:
        raise NoSkill(f"its description has {len(description)} characters, and at most {DESCRIPTION_CHARS} are allowed")
    return Skill(name, " ".join(description.split()))


def wrong_with(name: str) -> str:
    """What is wrong with a name; empty if nothing is."""
    if len(name) > NAME_CHARS:
        return f"its name has more than {NAME_CHARS} characters"
    parts = name.split("-")
    if name != name.lower() or not all(part and part.isalnum() for part in parts):
        return f"{name!r} is no name of a skill: small letters, digits, and single hyphens between them"
    return ""


def _head(text: str) -> dict[str, object]:
    """The fields between the two lines of hyphens with which the file begins."""
    lines = text.removeprefix("\ufeff").splitlines()
    ends = [place for place, line in enumerate(lines) if line.rstrip() == "---"]
    if len(ends) < 2 or ends[0] != 0:
        raise NoSkill("it does not begin with a head: a line ---, the name and the description, another line ---")
    import yaml

    try:
        found: object = yaml.safe_load("\n".join(lines[1 : ends[1]]))
    except (
        yaml.YAMLError,
        ValueError,
        RecursionError,
    ) as error:  # the latter two of dates that there are not, and of depth
        raise NoSkill(f"its head is no YAML: {(str(error).splitlines() or ['?'])[0]}") from error
    if not isinstance(found, dict):
        raise NoSkill("its head has no fields")
    return cast("dict[str, object]", found)


def told(skills: Iterable[Skill]) -> str:
    """What the model reads of them with each request."""
    listed = "\n".join(f"- {one.name}: {one.description}" for one in skills)
    return (
        "Read a skill: instructions that were written for you, for one kind of task. Where one of these fits what you are asked, read it before "
        f"you begin:\n{listed}"
    )
