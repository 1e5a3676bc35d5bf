"""The skills of a folder, and the tool that reads one."""

from __future__ import annotations

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
            found.append(FoundSkill(skill_of(one.name, _text(one / FILE)), one.resolve()))
        except NoSkill as error:
            wrong.append(Unusable(one.name, str(error)))
        except OSError as error:
            wrong.append(Unusable(one.name, f"its {FILE} cannot be read: {_words(error)}"))
    return found, wrong


def _text(file: Path) -> str:
    with file.open("rb") as opened:
        data = opened.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise NoSkill(f"its {FILE} is larger than {FILE_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NoSkill(f"its {FILE} is not UTF-8 text") from None


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
        folder, file = self._folders[str(arguments["skill"])], str(arguments.get("file") or FILE)
        outcome = await self._look(folder, "read_file", {"path": file}, context)
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
