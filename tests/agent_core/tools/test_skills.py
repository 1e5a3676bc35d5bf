"""Skills: what is one by the published format, what is said of what is none, and that nothing outside of its folder is read."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.tools.base import ToolContext, ToolStatus
from agent_core.tools.registry import ArgumentsUnreadable, Runnable, ToolRegistry
from agent_core.tools.skills.format import DESCRIPTION_CHARS, NoSkill, skill_of, wrong_with
from agent_core.tools.skills.reading import SkillReader, read_skills
from agent_core.workers.pool import Workers
from tests.gateway.test_toolset import answer, model_that_calls
from tests.serving import served

PAGE = Path(__file__).parents[3] / "docs" / "skills.md"
SKILL = "---\nname: release-notes\ndescription: How notes are written.\n---\n\nBegin with what people notice.\n"


def head(**fields: str) -> str:
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in fields.items()) + "---\nBody\n"


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    (folder / "release-notes" / "references").mkdir(parents=True)
    (folder / "release-notes" / "SKILL.md").write_text(SKILL)
    (folder / "release-notes" / "references" / "words.md").write_text("Say gateway.")
    (tmp_path / "secret.txt").write_text("canary")
    return folder


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin with a head"),
        ("# Notes\n", "does not begin with a head"),
        ("---\nname: x\n", "does not begin with a head"),
        ("# Notes\n" + SKILL, "does not begin with a head"),
        ("---\n- a\n---\n", "has no fields"),
        ("---\nname: [x\n---\n", "is no YAML"),
        ("---\nname: x\nsince: 2026-99-99\n---\n", "is no YAML"),
        ("---\nname: " + "[" * 5_000 + "\n---\n", "is no YAML"),
        (head(description="What."), "has no name"),
        (head(name="x"), "has no description"),
        (head(name="x", description='"  "'), "has no description"),
        (head(name="X-y", description="What."), "is no name of a skill"),
        (head(name="other", description="What."), "they have to have one name"),
        (head(name="x", description="w" * (DESCRIPTION_CHARS + 1)), "at most 1024"),
        (head(name="1", description="What."), "has no name"),
    ],
)
def test_what_is_no_skill_is_said(text: str, why: str):
    with pytest.raises(NoSkill, match=why):
        skill_of("x", text)


def test_a_head_may_have_more_fields_and_a_description_several_lines():
    text = "\ufeff" + head(name="x", description=">\n  Two\n  lines.", license="MIT", metadata="{a: b}")
    assert skill_of("x", text).description == "Two lines."


@given(st.text(alphabet="abAB09-_ .é", max_size=70))
def test_names_are_those_of_the_format(name: str):
    ascii_only = re.fullmatch(r"[a-zé0-9]+(-[a-zé0-9]+)*", name)
    assert (wrong_with(name) == "") == (ascii_only is not None and len(name) <= 64)


@given(st.text(max_size=200))
def test_whatever_stands_in_a_file_it_is_a_skill_or_told(text: str):
    try:
        skill = skill_of("x", f"---\n{text}\n---\n")
    except NoSkill:
        return
    assert skill.name == "x"


def test_one_that_cannot_be_used_takes_no_other_with_it(skills: Path):
    (skills / "empty").mkdir()
    (skills / "odd").mkdir()
    (skills / "odd" / "SKILL.md").write_bytes(b"\xff\xfe")
    (skills / ".git").mkdir()
    found, wrong = read_skills(skills)
    assert [one.skill.name for one in found] == ["release-notes"]
    assert {one.source: one.why for one in wrong} == {
        "empty": "its SKILL.md cannot be read: no such file or directory",
        "odd": "its SKILL.md is not UTF-8 text",
    }
    assert "cannot be read" in read_skills(skills / "nowhere")[1][0].why


async def test_a_skill_is_read_with_the_names_of_its_files_and_nothing_beside_it(skills: Path, tmp_path: Path):
    (skills / "release-notes" / "link.md").symlink_to(tmp_path / "secret.txt")
    async with Workers() as workers:
        registry = ToolRegistry([SkillReader(read_skills(skills)[0], workers)])
        (spec,) = registry.specs()
        assert "- release-notes: How notes are written." in spec.description

        async def read(**arguments: Json) -> tuple[ToolStatus, str]:
            where = ToolContext("t", "c", "t:c", tmp_path / "work", "m", SystemClock(), lambda _: None)
            outcome = await registry.run(Runnable(spec, arguments), where)
            return outcome.status, outcome.text

        status, text = await read(skill="release-notes")
        assert status is ToolStatus.OK
        assert "Begin with what people notice." in text
        assert "references/words.md" in text
        assert "Say gateway." in (await read(skill="release-notes", file="references/words.md"))[1]
        for way in ("../../secret.txt", "/etc/passwd", "link.md", "references/../../../secret.txt"):
            status, text = await read(skill="release-notes", file=way)
            assert status is ToolStatus.FAILED, way
            assert "canary" not in text
        assert isinstance(registry.check("read_skill", '{"skill": "another"}'), ArgumentsUnreadable)


async def test_files_of_a_mounted_config_map_are_read_also_after_it_was_changed(skills: Path, tmp_path: Path):
    def mounted(version: str, words: str) -> None:
        (skills / "tea" / version).mkdir(parents=True)
        (skills / "tea" / version / "SKILL.md").write_text(head(name="tea", description="Tea.") + words)
        (skills / "tea" / "..next").symlink_to(version)
        (skills / "tea" / "..next").rename(skills / "tea" / "..data")

    mounted("..2026_1", "Green.")
    (skills / "tea" / "SKILL.md").symlink_to("..data/SKILL.md")
    (skills / "folder").symlink_to(skills / "release-notes", target_is_directory=True)
    (skills / "leads-out").mkdir()
    (skills / "leads-out" / "SKILL.md").symlink_to(skills / "release-notes" / "SKILL.md")
    found, wrong = read_skills(skills)
    assert [one.skill.name for one in found] == ["release-notes", "tea"]
    assert {one.source: one.why for one in wrong} == {
        "folder": "it is called release-notes, and its folder folder: they have to have one name",
        "leads-out": "its SKILL.md is a link that leads out of its folder",
    }
    where = ToolContext("t", "c", "t:c", tmp_path / "work", "m", SystemClock(), lambda _: None)
    async with Workers() as workers:
        reader = SkillReader(found, workers)
        assert "Green." in (await reader.run({"skill": "tea"}, where)).text
        mounted("..2026_2", "Black.")
        assert "Black." in (await reader.run({"skill": "tea"}, where)).text
        shutil.rmtree(skills / "tea")
        gone = await reader.run({"skill": "tea"}, where)
        assert (gone.status, gone.text) == (
            ToolStatus.FAILED,
            "The skill tea is not there any more: no such file or directory.",
        )


def test_what_would_never_end_is_not_waited_for(skills: Path):
    for name, device in (("pipe", None), ("zero", "/dev/zero")):
        (skills / name).mkdir()
        if device is None:
            os.mkfifo(skills / name / "SKILL.md")
        else:
            (skills / name / "SKILL.md").symlink_to(device)
    found, wrong = read_skills(skills)
    assert [one.skill.name for one in found] == ["release-notes"]
    assert {one.source: one.why for one in wrong} == {
        "pipe": "its SKILL.md is no regular file",
        "zero": "its SKILL.md is a link that leads out of its folder",
    }


async def test_an_agent_with_skills_is_told_of_them_and_reads_one(tmp_path: Path):
    (block,) = re.findall(r"```markdown\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "skills" / "release-notes").mkdir(parents=True)
    (tmp_path / "skills" / "release-notes" / "SKILL.md").write_text(block)
    async with model_that_calls("read_skill", '{"skill": "release-notes"}') as (url, asked):
        env = {
            "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "OUTSPOKEN_MODEL__NAME": "m",
            "OUTSPOKEN_TOOLS__SKILLS": str(tmp_path / "skills"),
        }  # fmt: skip
        async with served(tmp_path / "home", env, patient=True) as up:
            assert "One line each, in the present tense." in await answer(up.url, "write the release notes")
    (tool,) = [one["function"] for one in asked[0]["tools"] if one["function"]["name"] == "read_skill"]
    assert "Use it when somebody asks for release notes" in tool["description"]


async def test_an_agent_is_told_of_its_own_skills_and_reads_no_others(tmp_path: Path):
    for name in ("release-notes", "refunds"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: About {name}.\n---\nAll of {name}.\n"
        )
    agents: dict[str, Json] = {"writer": {"skills": ["release-notes"]}, "bare": {"skills": []}}
    for model, reads, told in (
        ("writer", "release-notes", "All of release-notes."), ("writer", "refunds", "You have no skill called refunds."),
        ("outspoken", "refunds", "All of refunds."), ("bare", "refunds", "There is no tool called"),
    ):  # fmt: skip
        async with model_that_calls("read_skill", f'{{"skill": "{reads}"}}') as (url, asked):
            env = {
                "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "OUTSPOKEN_MODEL__NAME": "m", "OUTSPOKEN_AGENTS__EACH": json.dumps(agents),
                "OUTSPOKEN_TOOLS__SKILLS": str(tmp_path / "skills"),
            }  # fmt: skip
            async with served(tmp_path / f"home-{model}-{reads}", env, patient=True) as up:
                assert told in await answer(up.url, "do it", model), (model, reads)
        offered = [one["function"] for one in asked[0]["tools"] if one["function"]["name"] == "read_skill"]
        listed = {name for one in offered for name in one["parameters"]["properties"]["skill"]["enum"]}
        assert listed == {"writer": {"release-notes"}, "outspoken": {"refunds", "release-notes"}, "bare": set()}[model]
        assert all(name in one["description"] for one in offered for name in listed)
