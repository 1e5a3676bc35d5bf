"""Thirty-six faults of tools, of each kind, through the front door of a gateway: no turn is silent, no effect happens twice, each reason is told.

Known to be weak: the reasons are found by their words, so whoever changes a sentence changes `tests.faults.cells` as well.
"""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.faults.cells import CELLS, NOT_THERE
from tests.faults.clients import CLIENT, ClientSeen, play_client
from tests.faults.kinds import Fault, Kind
from tests.faults.rig import Seen, cells_of, faulty_gateway, played
from tests.shell.sandboxes import needs_sandbox

MOST_DESCRIPTORS = 8
"""More than before, when all of it is over: what the process itself keeps."""


def descriptors() -> int:
    """How many this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def said(words: str, text: str) -> bool:
    """Whether a text has one of the wordings."""
    return any(one in text for one in words.split("|"))


def wrong_with(seen: Seen) -> list[str]:
    """What of a turn breaks a law."""
    cell, everything = seen.cell, "\n".join((seen.text, seen.story, *seen.told))
    found = [
        (seen.exit != "answered", f"it ended with {seen.exit}"),
        ("That is all." not in seen.text, f"it is silent: {seen.text!r}"),
        (len(seen.told) != len(cell.told), f"the model was told {seen.told}"),
        (bool(seen.notes) != bool(cell.doubt), f"the person reads {seen.notes!r}"),
        (not said(cell.doubt, seen.notes), f"the person is not told “{cell.doubt}”: {seen.notes!r}"),
        (bool(cell.doubt) and not said(cell.doubt, seen.story) and "timed out" not in seen.story, f"the story does not tell it: {seen.story}"),
        (seen.effects != cell.effects, f"it was done {seen.effects} times"),
        *((not said(words, told), f"the model is not told “{words}”: {told[:300]!r}") for words, told in zip(cell.told, seen.told, strict=False)),
        *((one in everything, f"{one} is shown") for one in cell.absent),
    ]  # fmt: skip
    return [f"{cell.name}: {words}" for bad, words in found if bad]


def client_wrong(seen: ClientSeen) -> list[str]:
    """The same of a client's own tool: it is answered, or refused in words before anything is asked."""
    cell = seen.cell
    good = (400, 0) if cell.refused else (200, 1)
    fine = cell.refused in seen.said if cell.refused else cell.told in seen.told and "That is all." in seen.said
    if fine and (seen.status, seen.asked) == good:
        return []
    return [f"{cell.fault}: HTTP {seen.status}, asked {seen.asked} times: {seen.said[:200]} {seen.told[:200]}"]


def test_each_fault_of_each_kind_is_played_or_it_is_said_why_there_is_none():
    played_ones = {*((one.fault, one.kind) for one in CELLS), *((one.fault, Kind.CLIENT) for one in CLIENT)}
    missing = {(fault, kind) for fault in Fault for kind in Kind} - played_ones - {*NOT_THERE}
    assert missing == set()
    assert played_ones & {*NOT_THERE} == set()
    assert len([*Fault]) >= 30
    wordless = [one.name for one in CELLS if not all(words.strip() for told in one.told for words in told.split("|"))]
    assert wordless == [], "each is told with its reason"


async def test_no_fault_of_a_client_with_a_call_of_its_own_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with faulty_gateway(tmp_path, [], monkeypatch) as rig:
        seen = [await play_client(rig.up.url, rig.model, cell, number) for number, cell in enumerate(CLIENT)]
    wrong = [words for one in seen for words in client_wrong(one)]
    assert wrong == []


def end_children(folder: Path) -> None:
    """What has left the process group of a worker that died by itself, of which nobody can tell any more (`agent_core.workers.left`)."""
    for file in folder.rglob("children"):
        for pid in file.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("kind", [one for one in Kind if one is not Kind.CLIENT])
async def test_no_fault_of_a_tool_is_silent_or_done_twice_and_each_is_told_with_its_reason(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if kind is Kind.SHELL:
        needs_sandbox()
    before, children = descriptors(), {one.pid for one in psutil.Process().children(recursive=True)}
    async with faulty_gateway(tmp_path, cells_of(kind), monkeypatch) as rig:
        assert [wrong for seen in await played(rig, cells_of(kind)) for wrong in wrong_with(seen)] == []
        end_children(tmp_path)
    gc.collect()
    left = [
        one
        for one in psutil.Process().children(recursive=True)
        if one.pid not in children and one.status() != psutil.STATUS_ZOMBIE
    ]
    assert left == []
    assert descriptors() <= before + MOST_DESCRIPTORS
