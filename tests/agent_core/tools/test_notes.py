"""Memory and to-do list, on a store that is just a dictionary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.tools.base import ToolContext, ToolStatus
from agent_core.tools.builtin.notes import Forget, Recall, Remember, Todo, ranked
from agent_core.tools.builtin.sendfile import SendFile


class Shelf:
    """Implements `MemoryStore` without durability."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], tuple[str, int]] = {}

    async def put(self, scope: str, kind: str, name: str, value: str, *, at_ms: int) -> None:
        self.kept[scope, kind, name] = (value, at_ms)

    async def delete(self, scope: str, kind: str, name: str) -> bool:
        return self.kept.pop((scope, kind, name), None) is not None

    async def entries(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        found = [(n, v, at) for (s, k, n), (v, at) in self.kept.items() if (s, k) == (scope, kind)]
        return sorted(found, key=lambda entry: entry[2])


def context(scope: str = "me") -> ToolContext:
    return ToolContext("t", "c", "k", Path("w"), scope, SystemClock(), lambda _: None)


async def test_what_is_remembered_is_recalled_by_its_owner_alone_until_it_is_forgotten():
    shelf = Shelf()
    await Remember(shelf).run({"text": "the dog is called Rex", "name": "dog"}, context())
    await Remember(shelf).run({"text": "tea, not coffee"}, context())
    everything = (await Recall(shelf).run({}, context())).text
    assert "Rex" in everything
    assert "tea" in everything
    assert (await Recall(shelf).run({"query": "dog name"}, context())).text == "- dog: the dog is called Rex"
    assert "Nothing" in (await Recall(shelf).run({}, context("somebody else"))).text
    assert (await Forget(shelf).run({"name": "dog"}, context())).status is ToolStatus.OK
    assert (await Forget(shelf).run({"name": "dog"}, context())).status is ToolStatus.FAILED


async def test_remembering_twice_keeps_one():
    shelf = Shelf()
    for _ in range(2):
        await Remember(shelf).run({"text": "once"}, context())
    assert len(shelf.kept) == 1


async def test_the_list_is_kept_as_a_whole_and_shown():
    shelf = Shelf()
    items: Json = [{"text": "a", "state": "done"}, {"text": "b"}, "c"]
    assert (await Todo(shelf).run({"items": items}, context())).text == "[x] a\n[ ] b\n[ ] c"
    assert (await Todo(shelf).run({}, context())).text == "[x] a\n[ ] b\n[ ] c"


def test_ranking_prefers_more_words_then_newer_entries():
    entries = [("a", "red car", 1), ("b", "red bike", 2), ("c", "blue car", 3)]
    assert [name for name, _, _ in ranked(entries, "red car")] == ["a", "c", "b"]
    assert [name for name, _, _ in ranked(entries, "")] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (Remember, {"text": "Rex", "name": "dog"}),
        (Forget, {"name": "dog"}),
        (Forget, {"name": "cat"}),
        (Todo, {"items": ["a", "b"]}),
    ],
)
@pytest.mark.parametrize("killed", ["before", "behind"])
async def test_a_call_that_is_begun_again_after_a_kill_says_the_same_and_leaves_the_same(
    tool: type[Remember] | type[Forget] | type[Todo], arguments: dict[str, Json], killed: str
):
    shelf = Shelf()
    await Remember(shelf).run({"text": "old", "name": "dog"}, context())
    first = replace(context(), intention=await tool(shelf).prepare(arguments, context()))
    if killed == "behind":
        outcome = await tool(shelf).run(arguments, first)
        kept = {key: value for key, (value, _) in shelf.kept.items()}
        for _ in range(2):
            assert await tool(shelf).run(arguments, replace(first, again=True)) == outcome
        assert {key: value for key, (value, _) in shelf.kept.items()} == kept
    else:
        outcome = await tool(shelf).run(arguments, replace(first, again=True))
    found = "cat" in arguments.values()
    assert outcome.status is (ToolStatus.FAILED if found else ToolStatus.OK)


@pytest.mark.parametrize(("tool", "arguments"), [(Remember, {"text": "Rex", "name": "dog"}), (Forget, {"name": "dog"})])
async def test_what_another_conversation_kept_since_is_left_alone_by_a_call_that_is_begun_again(
    tool: type[Remember] | type[Forget], arguments: dict[str, Json]
):
    shelf = Shelf()
    await Remember(shelf).run({"text": "old", "name": "dog"}, context())
    first = replace(context(), intention=await tool(shelf).prepare(arguments, context()))
    await Remember(shelf).run({"text": "by somebody else", "name": "dog"}, context())
    outcome = await tool(shelf).run(arguments, replace(first, again=True))
    assert outcome.status is ToolStatus.UNKNOWN
    assert shelf.kept["me", "memory", "dog"][0] == "by somebody else"


async def test_a_file_that_is_sent_again_after_a_kill_is_the_one_that_was_meant(tmp_path: Path):
    (tmp_path / "f.txt").write_text("meant")
    here = replace(context(), workspace=tmp_path)
    tool = SendFile(tmp_path / "spool")
    first = await tool.run({"path": "f.txt"}, here)
    (tmp_path / "f.txt").write_text("changed since")
    assert await tool.run({"path": "f.txt"}, replace(here, again=True)) == first
    assert Path(str(first.facts["sent_file"])).read_text() == "meant"
