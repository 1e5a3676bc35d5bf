"""Changes that are put down before they are made: killed anywhere, and begun again any number of times, each is made once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.tools.files.changes import (
    Change,
    ChangeVerdict,
    ContentState,
    decide,
    found_of,
    read_change,
    state_of,
    written,
)
from agent_core.tools.files.workspace import PathRefused
from agent_core.tools.files.writing import Plan, plan_append, plan_edit, plan_write
from tests.examples import MANY

CONTENTS = st.binary(max_size=12) | st.sampled_from([b"", b"a\n", b"b\n", b"a\nb\n"])
MAYBE = st.none() | CONTENTS


def change_of(before: bytes | None, after: bytes | None, grows: bool = False) -> Change:
    return Change(
        None if before is None else state_of(before), None if after is None else state_of(after), grows, {"places": 2}
    )


@given(MAYBE, MAYBE, st.booleans())
def test_a_change_is_read_as_it_was_written(before: bytes | None, after: bytes | None, grows: bool) -> None:
    change = change_of(before, after, grows)
    assert read_change(written(change)) == change


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, {"before": None}, {"refused": "no"}])
def test_what_is_no_change_is_not_read_as_one(value: Json) -> None:
    assert read_change(value) is None


@given(MAYBE, MAYBE, MAYBE)
def test_a_whole_is_done_if_it_is_as_it_is_to_be_and_not_if_it_is_as_it_was(
    before: bytes | None, after: bytes | None, now: bytes | None
) -> None:
    verdict = decide(change_of(before, after), found_of(now))
    expected = ChangeVerdict.DONE if now == after else ChangeVerdict.DO if now == before else ChangeVerdict.CONFLICT
    assert verdict is expected


@given(MAYBE, st.binary(min_size=1, max_size=8), CONTENTS, CONTENTS)
def test_what_others_add_at_the_end_neither_hides_nor_feigns_what_was_added(
    before: bytes | None, piece: bytes, early: bytes, late: bytes
) -> None:
    start = before or b""
    change = change_of(before, start + piece, grows=True)
    assert decide(change, found_of(start + piece + late)) is ChangeVerdict.DONE
    if not (early + late).startswith(piece):
        assert decide(change, found_of(start + early + late)) is ChangeVerdict.DO


@given(st.binary(min_size=1, max_size=8), CONTENTS, MAYBE)
def test_nothing_is_added_to_what_is_not_what_it_was(before: bytes, piece: bytes, now: bytes | None) -> None:
    if now is None or not now.startswith(before):
        assert decide(change_of(before, before + piece, grows=True), found_of(now)) is ChangeVerdict.CONFLICT


def test_what_is_too_large_to_be_read_is_known_by_its_state() -> None:
    large = ContentState(10**9, "7.1")
    assert decide(Change(large, state_of(b"x")), None) is ChangeVerdict.CONFLICT
    assert decide(Change(None, large), None) is ChangeVerdict.DO


# ---------------------------------------------------------------- processes that die


@dataclass
class Call:
    """One call of a tool, as the journal and the dead processes know it."""

    plan: Plan
    arguments: dict[str, Json]
    put_down: Change | None = None
    result: str = ""
    made: int = 0
    """How often it touched the file."""


@dataclass
class Disk:
    """A file, and calls that change it in processes that die at any point: the steps of `WritingTool`, one at a time."""

    content: bytes | None = None
    calls: list[Call] = field(default_factory=list[Call])
    history: list[bytes | None] = field(default_factory=list[bytes | None])

    def planned(self, call: Call) -> tuple[Change, bytes]:
        found = found_of(self.content)
        planned = call.plan(call.arguments, found)
        assert planned.content is not None
        return Change(found.state if found else None, state_of(planned.content), planned.grows), planned.content

    def live(self, call: Call, steps: int) -> None:
        """One process works at the call and is killed after `steps` steps; each step is one commit or one replacement."""
        again = call.put_down is not None
        try:
            while steps > 0 and not call.result:
                steps -= 1
                if call.put_down is None:
                    call.put_down = self.planned(call)[0]
                    continue
                if call.made and not again:
                    call.result = "done"
                    continue
                verdict = decide(call.put_down, found_of(self.content)) if again else ChangeVerdict.DO
                if verdict is not ChangeVerdict.DO:
                    call.result = verdict.value
                    continue
                now, content = self.planned(call)
                if now != call.put_down:
                    call.put_down, again = now, False
                    continue
                self.content, again = content, False
                call.made += 1
        except PathRefused:
            call.result = "refused"


def lines(count: int) -> list[Call]:
    return [Call(plan_append, {"path": "f", "content": f"line {n}\n"}) for n in range(count)]


@MANY
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=25), MAYBE)
def test_each_of_several_appends_is_made_once_whenever_their_processes_are_killed(
    kills: list[tuple[int, int]], before: bytes | None
) -> None:
    disk = Disk(before, lines(4))
    for which, steps in kills:
        disk.live(disk.calls[which], steps)
    for call in disk.calls:
        disk.live(call, 10)
    assert [call.result for call in disk.calls] == ["done"] * 4
    added = (disk.content or b"").removeprefix(before or b"").decode()
    assert sorted(added.splitlines()) == [f"line {n}" for n in range(4)]


@MANY
@given(st.data(), st.lists(st.integers(1, 4), max_size=8), st.sampled_from(["write", "edit"]))
def test_a_file_that_somebody_else_has_changed_is_never_overwritten_by_a_call_that_is_begun_again(
    data: st.DataObject, kills: list[int], kind: str
) -> None:
    arguments: dict[str, Json] = {"path": "f", "content": "new", "old": "old", "new": "new"}
    call = Call(plan_write if kind == "write" else plan_edit, arguments)
    disk = Disk(b"the old text")
    expected = b"new" if kind == "write" else b"the new text"
    somebody = b"the old text, by somebody"
    changed = False
    for steps in kills:
        disk.live(call, steps)
        if not changed and call.put_down is not None and not call.result and data.draw(st.booleans()):
            disk.content, changed = somebody, True
    disk.live(call, 10)
    disk.live(call, 10)
    assert call.made <= 1
    if changed:
        assert disk.content == somebody
        assert call.result == "conflict"
    else:
        assert (disk.content, call.result, call.made) == (expected, "done", 1)
