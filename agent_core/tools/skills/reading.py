"""The skills of a folder, and the tool that reads one."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.builtin.readers import JOB
from agent_core.tools.offer import Unusable
from agent_core.tools.outside import outside
from agent_core.tools.skills.format import FILE, READ_SKILL, NoSkill, Skill, skill_of, told
from agent_core.workers.pool import Workers

FILE_BYTES = 1_000_000
_LESS = "Ask for one of its other files."


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A skill, and where its files lie."""

    skill: Skill
    folder: Path
    """As it was named: where it leads is looked up at each reading, for a link may lead elsewhere by then."""


def read_skills(folder: Path) -> tuple[Sequence[FoundSkill], Sequence[Unusable]]:
    """Those of a folder, by name, and what is wrong with the rest. Blocks; reads each one's first file."""
    try:
        there = sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith((".", "_")))
    except OSError as error:
        return (), (Unusable(str(folder), f"the folder cannot be read: {_words(error)}"),)
    found: list[FoundSkill] = []
    wrong: list[Unusable] = []
    for one in there:
        try:
            found.append(FoundSkill(skill_of(one.name, _text(*_place(one, FILE))), one.absolute()))
        except NoSkill as error:
            wrong.append(Unusable(one.name, str(error)))
        except OSError as error:
            wrong.append(Unusable(one.name, f"its {FILE} cannot be read: {_words(error)}"))
    return found, wrong


def _text(folder: Path, file: str) -> str:
    if (folder / file).is_symlink():
        raise NoSkill(f"its {FILE} is a link that leads out of its folder")
    # A pipe that nobody writes to would be waited for without an end
    handle = os.open(folder / file, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NoSkill(f"its {FILE} is no regular file")
        with open(handle, "rb", closefd=False) as opened:
            data = opened.read(FILE_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > FILE_BYTES:
        raise NoSkill(f"its {FILE} is larger than {FILE_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NoSkill(f"its {FILE} is not UTF-8 text") from None


def _place(folder: Path, file: str) -> tuple[Path, str]:
    """(the folder as it is now, the file by a name without links). Raises `FileNotFoundError` if the folder is gone. Blocks.

    Links that stay in the folder are its owner's, and are followed: all files of a mounted ConfigMap are such. What leads out of it keeps its
    name, under which it is refused.
    """
    top = folder.resolve(strict=True)
    try:
        target = (top / file).resolve()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, links in a circle
        return top, file
    return top, str(target.relative_to(top)) if top in target.parents else file


def _words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


class SkillReader:
    """`read_skill`."""

    def __init__(self, skills: Sequence[FoundSkill], workers: Workers) -> None:
        self._found = skills
        self._folders = {one.skill.name: one.folder for one in skills}
        self._workers = workers
        self._spec = _spec(skills)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def among(self, names: frozenset[str]) -> ToolSpec:
        return _spec([one for one in self._found if one.skill.name in names])

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        """A file of the skill; with its first one, the names of the others."""
        if context.skills is not None and arguments["skill"] not in context.skills:
            return ToolOutcome(ToolStatus.FAILED, f"You have no skill called {arguments['skill']}.")
        name, file = str(arguments["skill"]), str(arguments.get("file") or FILE)
        try:
            folder, path = await asyncio.to_thread(_place, self._folders[name], file)
        except OSError as error:
            return ToolOutcome(ToolStatus.FAILED, f"The skill {name} is not there any more: {_words(error)}.")
        outcome = await self._look(folder, "read_file", {"path": path}, context)
        if file != FILE or outcome.status is not ToolStatus.OK:
            return outcome
        listed = await self._look(folder, "list_files", {}, context)
        return ToolOutcome(ToolStatus.OK, f"{outcome.text}\n\nFiles of this skill:\n{listed.text}", facts=outcome.facts)

    async def _look(self, folder: Path, tool: str, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        request: dict[str, Json] = {"tool": tool, "arguments": dict(arguments), "workspace": str(folder)}
        return await outside(self._workers, JOB, request, owner=context.workspace, less=_LESS)


def _spec(skills: Sequence[FoundSkill]) -> ToolSpec:
    names: list[Json] = [one.skill.name for one in skills]
    return ToolSpec(
        READ_SKILL,
        told(one.skill for one in skills),
        {
            "type": "object",
            "properties": {
                "skill": {"type": "string", "enum": names},
                "file": {"type": "string", "description": f"One of its files, if not {FILE}", "minLength": 1},
            },
            "required": ["skill"],
            "additionalProperties": False,
        },
        EffectClass.PURE,
        housekeeping=True,
    )
