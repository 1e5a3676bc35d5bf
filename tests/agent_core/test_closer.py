"""The end of a turn is stored, then seen, then told; of what could not be stored nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from agent_core.driver.closing import Closer, Closing, TurnIdentity, closing_of, heard_in
from agent_core.failures.exits import Exit, ExitClass, ExitCode, ending
from agent_core.messages import InputMessage
from agent_core.signals import Signal
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.sessions.asides import Fresh
from agent_core.store.store import Fenced, StorageUnavailable
from agent_core.store.webhooks.rows import HookRow
from agent_core.tools.base import ToolStatus
from agent_core.turn.events import Refusal, Steered, StopRequested
from agent_core.turn.view import View
from tests.agent_core.turns import Rig

ME = TurnIdentity("t", "s", 7)
PART = DeliveryRow("api/x", "t", "text0", 0, 1, b"{}", "h", "k")
HOOK = HookRow("m", "r", "turn.ended", "s", "t", b"{}", 1)


class World:
    """Store, chat, and all who are told: they note in which order."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails, self.heard = fails, list[str]()
        self.turns = self.asides = self.hooks = self.deliveries = self
        self.stored: tuple[object, ...] = ()

    async def close(self, *values: object) -> None:
        self._do("stored")
        self.stored = values

    async def end_turn(self, turn: str, ending: str) -> None:
        self._do(f"ended {turn} {ending}")

    async def put(self, *values: object) -> None:
        self._do(f"put {len(values)}")

    def _do(self, what: str) -> None:
        self.heard.append(what)
        if self.fails is not None:
            raise self.fails

    async def prepare(self, view: View) -> None:
        self.heard.append("prepared")

    def closing(self, view: View) -> Sequence[DeliveryRow]:
        return (PART,)

    def closed(self) -> None:
        self.heard.append("shown")

    async def ended(self, end: Closing) -> Sequence[HookRow]:
        return (HOOK,)

    def tell(self, signal: Signal) -> None:
        self.heard.append("told")

    def troubled(self, session: str, rows: object) -> None:
        assert session == "s"
        self.heard.append("troubled")

    @property
    def closer(self) -> Closer:
        return Closer(cast("Any", self), self.tell, self.troubled, cast("Any", self))


def answered() -> Rig:
    rig = Rig()
    rig.feed(Steered(at=rig.tick(), input=InputMessage("and in French"), inbox=8))
    rig.says("Hello.")
    rig.feed(Steered(at=rig.tick(), input=InputMessage("and now"), inbox=9))
    rig.says("Bonjour.")
    rig.says("Et voilà.")
    return rig


def end_of(rig: Rig, *, stored: bool = False) -> Closing:
    return closing_of(ME, rig.turn, rig.now, 5, stored=stored)


async def test_the_end_is_stored_whole_then_shown_then_told() -> None:
    world, rig = World(), answered()
    end = end_of(rig)
    await world.closer.close(end, cast("Any", world), told=(HOOK,))
    assert world.heard == ["prepared", "stored", "troubled", "shown", "told"]
    assert world.stored[:5] == ("s", 7, "t", end.rows, "answered")
    assert world.stored[6:11] == ((PART,), end.used, (8, 9), end.troubles, (HOOK, HOOK))
    assert [row.seq for row in end.rows] == [5]


@pytest.mark.parametrize("error", [StorageUnavailable("away"), Fenced("another's")])
async def test_of_an_end_that_could_not_be_stored_nobody_hears(error: Exception) -> None:
    world = World(error)
    with pytest.raises(type(error)):
        await world.closer.close(end_of(answered()), cast("Any", world))
    assert world.heard == ["prepared", "stored"]


async def test_an_end_that_is_stored_already_is_only_told() -> None:
    world = World()
    await world.closer.close(end_of(answered(), stored=True), cast("Any", world))
    assert world.heard == ["troubled", "shown", "told"]


@pytest.mark.parametrize("fails", [None, StorageUnavailable("damaged")])
async def test_of_a_turn_whose_rows_are_damaged_each_step_is_tried_and_all_are_told(fails: Exception | None) -> None:
    world = World(fails)
    closing = world.closer.close(end_of(answered()), cast("Any", world), instead=Fresh("s2", "chat", 1))
    if fails is None:
        await closing
    else:
        with pytest.raises(StorageUnavailable):
            await closing
    assert world.heard == ["prepared", "ended t answered", "put 1", "put 3", "troubled", "shown", "told"]


def test_what_the_model_was_told_is_heard_and_what_it_was_not_told_is_not() -> None:
    assert heard_in(answered().turn) == (8, 9)
    rig = Rig()
    rig.feed(Steered(at=rig.tick(), input=InputMessage("too late"), inbox=8))
    rig.feed(StopRequested(at=rig.tick()))
    assert heard_in(rig.turn) == ()


@pytest.mark.parametrize("code", ExitCode)
def test_a_turn_is_clean_that_was_answered_handed_on_or_stopped_and_no_other(code: ExitCode) -> None:
    end = replace(end_of(answered()), exit=ending(code, Exit)())
    clean = end.exit.kind in (ExitClass.CLEAN, ExitClass.HANDED, ExitClass.STOPPED)
    assert (end.clean, end.signal.clean, replace(end, turn=None).signal.clean) == (clean, clean, False)


def test_the_line_of_a_turn_counts_what_ran_and_what_failed_and_nothing_that_was_refused() -> None:
    rig = Rig()
    for name, status, refusal in (
        ("read", ToolStatus.OK, ""),
        ("send", ToolStatus.FAILED, ""),
        ("nope", ToolStatus.FAILED, Refusal.UNKNOWN_TOOL.value),
        ("write", ToolStatus.OK, ""),
    ):
        rig.calls_tool(name)
        rig.returns("done", status=status, refusal=refusal)
    rig.says("Well.")
    with capture_logs() as lines:
        Closer._say(end_of(rig))
    (line,) = [one for one in lines if one["event"] == "turn.ended"]
    assert (line["tool_calls"], line["tools_failed"], line["exit"]) == (3, 1, "answered")
