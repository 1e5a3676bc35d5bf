"""A driver's journal and what it takes over: nothing is written twice or with a hole, and what was begun and told before goes on counting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.causes import BreakCause
from agent_core.driver import closing
from agent_core.driver.closing import (
    FLUSH_CHARS,
    FLUSH_SECONDS,
    LEAVE_PATIENCE_SECONDS,
    SOON_SECONDS,
    Closer,
    NoHerald,
    TurnIdentity,
    TurnJournal,
)
from agent_core.driver.driver import QUEUE_LIMIT, Overtaken, TurnDriver, TurnLeftOpen
from agent_core.driver.watcher import NobodyAfar
from agent_core.driver.work import World, unheard
from agent_core.failures.exits import Exit, ExitCode
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.sessions.asides import Fresh
from agent_core.store.store import Conflict, StorageUnavailable
from agent_core.store.turns.rows import IntendedCall, JournalRow
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.registry import ToolRegistry
from agent_core.turn.events import (
    ApprovalAnswered,
    CallBroke,
    ReplyFinished,
    Steered,
    StopRequested,
    TakenOver,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    Verdict,
)
from agent_core.turn.state import ToolItem
from agent_core.turn.view import BubbleKind
from tests.agent_core.test_closer import PART, end_of
from tests.agent_core.test_closer import World as Chat
from tests.agent_core.turns import Rig, gives, opened
from tests.store.support import FakeClock

CLOCK = SystemClock()
ME = TurnIdentity("t", "s", 7)


class Stored:
    """A store that notes what it is given, and does first what is next of `does`."""

    def __init__(self, *does: Exception) -> None:
        self.turns = self.deliveries = self
        self.does = list(does)
        self.rows: list[int] = []
        self.kinds: list[str] = []
        self.parts: list[tuple[Any, ...]] = []

    async def append(self, _s: str, _e: int, _t: str, rows: Sequence[JournalRow], _hooks: object) -> None:
        if self.does:
            raise self.does.pop(0)
        self.rows += [row.seq for row in rows]
        self.kinds += [row.kind for row in rows]

    async def put(self, *what: Any) -> None:
        self.parts.append(what)


class Of:
    """Whose journal it is."""

    def __init__(self) -> None:
        self.active_at, self.turn, self.soon = 0.0, Rig().turn, 0

    def write_soon(self) -> None:
        self.soon += 1


def journal_of(store: Stored, of: Of, afar: Any = None) -> TurnJournal:
    seen: Any = SimpleNamespace(storage_away=False, ring=lambda: None)
    return TurnJournal(cast("Any", store), CLOCK, ME, seen, of, NoHerald(), afar or NobodyAfar())


def said(text: str) -> TextArrived:
    return TextArrived(at=5, text=text)


async def test_each_thing_is_written_once_and_what_could_not_be_leaves_no_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "STORING", SimpleNamespace(seconds=gives(0.0)))
    store, of = Stored(StorageUnavailable("away"), Conflict("odd")), Of()
    journal = journal_of(store, of)
    journal.note([said("a"), said("b")])
    with pytest.raises(Conflict):
        await journal.commit()
    journal.note([said("c"), ToolStarted(at=6, call="c1")])
    await journal.commit()
    journal.note([said("d")])
    await journal.commit()
    assert store.rows == [0, 1, 2], "what came next takes the places of what was not stored"
    assert store.kinds == ["TextArrived", "ToolStarted", "TextArrived"]


@pytest.mark.parametrize("everything", [False, True])
async def test_what_is_dropped_is_dropped_with_the_calls_that_begin_in_it(everything: bool) -> None:
    store, of = Stored(), Of()
    journal = journal_of(store, of)
    for call in ("c1", "c2"):
        journal.note([said(call), ToolStarted(at=6, call=call)])
        journal.intend(IntendedCall(call, "read", "pure", call))
        if call == "c1":
            journal.keep_back()
    journal.drop(everything=everything)
    kept = [event for event in journal.unwritten if isinstance(event, ToolStarted)]
    assert [one.call for one in kept] == [one.call for one in journal.intended] == ([] if everything else ["c1"])
    journal.stop()


async def test_what_was_streamed_and_is_written_is_not_written_soon_once_more() -> None:
    store, of = Stored(), Of()
    journal = journal_of(store, of)
    journal.note([said("a")])
    journal.streamed([said("a")])
    assert journal._timer is not None
    await journal.commit()
    assert journal._timer is None


@pytest.mark.parametrize(("watched", "seconds"), [(False, FLUSH_SECONDS), (True, SOON_SECONDS)])
async def test_text_is_stored_sooner_where_somebody_sees_nothing_else(watched: bool, seconds: float) -> None:
    of = Of()
    journal = journal_of(Stored(), of, SimpleNamespace(watched=gives(watched)))
    journal.note([said("a")])
    journal.streamed([said("a")])
    assert journal._timer is not None
    left = journal._timer.when() - asyncio.get_running_loop().time()
    assert seconds - 0.1 < left <= seconds
    journal.stop()


async def test_with_a_turn_that_is_left_goes_what_its_chat_is_told() -> None:
    store, of = Stored(), Of()
    journal, chat = journal_of(store, of), Chat()
    journal.note([said("a")])
    assert await journal.leave(cast("Any", chat), cast("Any", None))
    assert (store.rows, store.parts) == ([0], [("s", 7, (PART,))])


async def test_what_a_chat_is_told_of_a_damaged_turn_belongs_to_the_conversation_that_goes_on() -> None:
    given: list[tuple[object, ...]] = []

    async def put(*what: object) -> None:
        given.append(what)

    chat = Chat()
    store: Any = SimpleNamespace(asides=chat, hooks=chat, deliveries=SimpleNamespace(put=put))
    rig = Rig()
    rig.says("Hello.")
    closer = Closer(store, chat.tell, chat.troubled, cast("Any", chat))
    await closer.close(end_of(rig), cast("Any", chat), instead=Fresh("fresh", "k", 1))
    assert given == [("fresh", 1, (PART,))]


async def test_by_when_a_turn_is_to_be_over_is_stored_as_the_turn_itself_counts_it() -> None:
    driver = driver_of()
    stored = driver.opening(opened())
    assert (stored.opened_at, stored.deadline) == (driver.opened_at, driver.turn.deadline_at)


# ---------------------------------------------------------------------- taken over


def driver_of() -> TurnDriver:
    none = cast("Any", None)
    closer: Any = SimpleNamespace(herald=NoHerald())
    world = World(
        none, ToolRegistry([]), CLOCK, SystemIds(CLOCK), gives(None), gives(None), closer,
    )  # fmt: skip
    caller: Any = SimpleNamespace(silence=None, silence_seconds=1.0, offered=gives(()))
    return TurnDriver(world, ME, caller, none)


def acting() -> Rig:
    rig = Rig()
    rig.calls_tool("read")
    (call,) = [one.call for one in rig.tools_run]
    rig.feed(ToolStarted(at=rig.tick(), call=call))
    return rig


async def test_what_was_begun_before_is_known_to_the_laws_and_a_turns_time_goes_on() -> None:
    rig, now = acting(), CLOCK.now_ms()
    call = rig.tools_run[0].call
    driver = driver_of()
    driver.resume(rig.turn, 5, TakenOver(at=now, epoch=2), now + 60_000)
    assert driver._begun == {call}
    assert driver.turn.phase_since >= now + 60_000
    assert driver._time.now_ms() >= now + 60_000
    assert driver._journal.seq == 5


async def test_how_far_a_tool_was_is_not_shown_when_it_has_returned() -> None:
    rig = acting()
    call = rig.tools_run[0].call
    driver = driver_of()
    driver.turn = driver.seen.turn = rig.turn
    driver._begun = frozenset({call})
    driver.seen.progress[call] = "half"
    driver._feed(ToolReturned(at=rig.tick(), call="another", status=ToolStatus.OK, text=""))
    assert driver.seen.progress == {call: "half"}, "what comes late is not fed"
    driver._feed(ToolReturned(at=rig.tick(), call=call, status=ToolStatus.OK, text=""))
    assert driver.seen.progress == {}


# ---------------------------------------------------------------------- from its beginning to its end


class Reader:
    """The tool of a run."""

    spec = ToolSpec("send", "for tests", {"type": "object"}, EffectClass.EFFECT)

    def __init__(self, of: Run) -> None:
        self._of = of

    async def run(self, arguments: object, context: object) -> ToolOutcome:
        return await self._of.reads()


class Run:
    """A turn that calls a tool and then answers; everything that happens to it is noted in its order."""

    def __init__(self, *close_fails: Exception) -> None:
        self.log: list[str] = []
        self.close_fails = list(close_fails)
        self.may_return, self.begun = asyncio.Event(), asyncio.Event()
        self.may_return.set()
        self.may_reply, self.asked = asyncio.Event(), asyncio.Event()
        self.may_reply.set()
        self.tool = "send"
        self.turns = self.deliveries = self.hooks = self.ownership = self
        self.calls = 0
        self.refused = False
        closer = Closer(cast("Any", self), gives(None), gives(None))
        world = World(
            cast("Any", self), ToolRegistry([Reader(self)]), CLOCK, SystemIds(CLOCK), self._aside, gives(None), closer,
        )  # fmt: skip
        caller: Any = SimpleNamespace(silence=None, silence_seconds=60.0, offered=gives(("send",)), call=self._call)
        self.driver = TurnDriver(world, ME, caller, self._context, cast("Any", self))
        self.driver.opening(opened())

    # the store

    def lease_ok(self) -> bool:
        return True

    async def append(self, _s: str, _e: int, _t: str, rows: Sequence[JournalRow], _hooks: object) -> None:
        self.log += [f"stored {row.kind}" for row in rows]

    async def intend(self, s: str, e: int, t: str, rows: Sequence[JournalRow], _calls: object, hooks: object) -> None:
        await self.append(s, e, t, rows, hooks)

    async def close(self, *what: Any) -> None:
        if self.close_fails:
            raise self.close_fails.pop(0)
        self.log.append(f"closed {what[4]}")

    async def put(self, *_: object) -> None:
        self.log.append("stored parts")

    # the chat

    async def prepare(self, view: object) -> None: ...

    def closing(self, view: object) -> Sequence[Any]:
        return (PART,)

    def closed(self) -> None:
        self.log.append("shown")

    def left(self) -> None: ...

    # the model and its tool

    def _aside(self, credential: str, seconds: float, why: str) -> None:
        self.log.append(f"set aside {credential} for {seconds:g} s: {why}")

    async def _call(self, turn: object, effect: object, content: Any) -> ReplyFinished | CallBroke:
        self.calls += 1
        if self.refused:
            return CallBroke(at=5, cause=BreakCause.PAYMENT_REQUIRED, status=402)
        self.asked.set()
        await self.may_reply.wait()
        if self.calls == 1:
            content(
                [
                    ToolCallNamed(at=5, index=0, call="c1", name=self.tool),
                    ToolArgumentsArrived(at=5, index=0, text="{}"),
                ]
            )
            return ReplyFinished(at=5, reason="tool_calls")
        content([TextArrived(at=6, text="Well.")])
        return ReplyFinished(at=6, reason="stop")

    async def reads(self) -> ToolOutcome:
        self.log.append("ran")
        self.begun.set()
        try:
            await self.may_return.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.log.append("cancelled")
            raise
        return ToolOutcome(ToolStatus.OK, "done")

    def _context(self) -> ToolContext:
        return ToolContext("t", "", "", Path("nowhere"), "m", CLOCK, unheard)


async def test_what_is_begun_is_stored_before_and_what_comes_late_changes_nothing() -> None:
    run = Run()
    late = ToolReturned(at=5, call="nobody's", status=ToolStatus.OK, text="")
    assert run.driver.tell(late)
    ending = await run.driver.run()
    assert ending.code is ExitCode.ANSWERED
    assert run.log.index("stored ToolStarted") < run.log.index("ran")
    assert run.log[-2:] == ["closed answered", "shown"]


async def test_a_key_that_is_no_good_is_left_alone_also_where_the_turn_ends_for_it() -> None:
    run = Run()
    run.refused = True
    assert (await run.driver.run()).code is ExitCode.PAYMENT_REQUIRED
    assert [one for one in run.log if one.startswith("set aside")] == ["set aside k1 for 3600 s: payment_required"]


class Watched(Run):
    """What there is to see of the turn's calls while rows are stored."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[str]]] = []

    async def append(self, _s: str, _e: int, _t: str, rows: Sequence[JournalRow], _hooks: object) -> None:
        await asyncio.sleep(0)
        found = self.driver.seen.current_view().bubbles
        states = [one.state for one in found if one.kind is BubbleKind.ACTIVITY]
        self.seen += [(row.kind, states) for row in rows]


async def test_nothing_is_seen_before_it_is_stored() -> None:
    run = Watched()
    assert (await run.driver.run()).code is ExitCode.ANSWERED
    while_stored = dict(run.seen)
    assert while_stored["ToolStarted"] == [], "nobody sees it begin"
    assert while_stored["ToolReturned"] == ["running"], "nobody sees its end"


async def in_a_call() -> tuple[Run, asyncio.Task[Exit]]:
    """A turn whose call runs until it may return."""
    run = Run()
    run.may_return.clear()
    running = asyncio.create_task(run.driver.run())
    await run.begun.wait()
    return run, running


async def test_a_turn_that_is_stopped_has_stopped_all_that_runs_before_that_is_stored() -> None:
    run, running = await in_a_call()
    run.driver.tell(StopRequested(at=9))
    assert (await running).code is ExitCode.STOPPED
    assert run.log[-3:] == ["cancelled", "closed stopped", "shown"]


class StoppedAsItAsks(Run):
    """It is stopped in the very moment in which the model has asked for a call."""

    def __init__(self) -> None:
        super().__init__()
        self.intended: object = None

    async def _call(self, turn: object, effect: object, content: Any) -> ReplyFinished | CallBroke:
        reply = await super()._call(turn, effect, content)
        asyncio.get_running_loop().call_soon(self.driver.tell, StopRequested(at=9))
        return reply

    async def close(self, *what: Any) -> None:
        self.intended = what[-1]
        await super().close(*what)


async def test_a_call_that_was_asked_for_as_the_turn_was_stopped_is_not_stored_as_begun() -> None:
    run = StoppedAsItAsks()
    assert (await run.driver.run()).code is ExitCode.STOPPED
    assert "ran" not in run.log
    assert run.intended == ()


async def test_a_driver_that_holds_begins_nothing_and_is_over_when_what_runs_is() -> None:
    run, running = await in_a_call()
    run.driver.hold()
    await asyncio.sleep(0.01)
    assert not running.done(), "what runs may come to its end"
    run.may_return.set()
    with pytest.raises(TurnLeftOpen):
        await asyncio.wait_for(running, 10)
    assert run.calls == 1
    assert run.log[-3:] == ["stored TurnLeft", "stored parts", "shown"]


async def test_a_driver_that_is_told_to_leave_waits_for_nothing_that_runs() -> None:
    run, running = await in_a_call()
    run.driver.leave()
    with pytest.raises(TurnLeftOpen):
        await asyncio.wait_for(running, 10)
    assert "cancelled" in run.log
    assert not [one for one in run.log if one.startswith("closed")]


class StoppedAsItIsLeft(Run):
    """Somebody says stop while what runs is being cancelled, and once more while it is stored that the turn is left."""

    def __init__(self) -> None:
        super().__init__()
        self.says_stop = True
        self.heard: list[bool] = []

    async def reads(self) -> ToolOutcome:
        try:
            return await super().reads()
        finally:
            if self.says_stop:
                self.heard.append(self.driver.tell(StopRequested(at=9)))

    async def put(self, *_: object) -> None:
        await super().put()
        self.heard.append(self.driver.tell(StopRequested(at=9)))


@pytest.mark.parametrize("in_time", [True, False])
async def test_what_is_said_while_a_turn_is_being_left_counts_or_is_known_not_to(in_time: bool) -> None:
    run = StoppedAsItIsLeft()
    run.says_stop = in_time
    run.may_return.clear()
    running = asyncio.create_task(run.driver.run())
    await run.begun.wait()
    run.driver.leave()
    if in_time:
        assert (await asyncio.wait_for(running, 10)).code is ExitCode.STOPPED
        assert run.heard == [True]
        return
    with pytest.raises(TurnLeftOpen):
        await asyncio.wait_for(running, 10)
    assert run.heard == [False]


async def test_who_decides_second_about_a_call_is_told_so_and_the_first_word_counts() -> None:
    run = Run()
    run.tool = "danger"
    running = asyncio.create_task(run.driver.run())
    async with asyncio.timeout(10):
        while not run.driver.waits_for_person:
            await asyncio.sleep(0.001)
    said = [ApprovalAnswered(at=7, call="c1", verdict=one) for one in (Verdict.DENIED, Verdict.GIVEN)]
    assert [run.driver.tell(one) for one in said] == [True, False]
    async with asyncio.timeout(10):
        await running
    assert "ran" not in run.log


async def test_who_leaves_waits_for_a_storage_that_is_away_for_a_while_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()

    class Away(Stored):
        tries = 0

        async def append(self, _s: str, _e: int, _t: str, rows: Sequence[JournalRow], _hooks: object) -> None:
            self.tries += 1
            if self.tries < 100:
                clock.now += 1_000
                raise StorageUnavailable("away")

    monkeypatch.setattr(closing, "STORING", SimpleNamespace(seconds=gives(0.0)))
    store, seen = Away(), cast("Any", SimpleNamespace(storage_away=False, ring=lambda: None))
    of = Of()  # whoever has a journal lives as long
    journal = TurnJournal(cast("Any", store), clock, ME, seen, of, NoHerald(), NobodyAfar())
    journal.note([said("a")])
    assert not await journal.leave(None, Rig().view())
    assert 1 < store.tries <= LEAVE_PATIENCE_SECONDS + 1
    assert not seen.storage_away


async def test_when_the_first_word_came_is_known_and_no_later_word_is_the_first() -> None:
    run = Run()
    run.driver._time.ahead = 5_000
    run.driver.content([said("a")])
    first = run.driver.first_content_at
    assert first >= CLOCK.now_ms() + 4_000, "as the turn counts time"
    run.driver._time.ahead = 9_000
    run.driver.content([said("b")])
    assert run.driver.first_content_at == first
    run.driver._journal.stop()


async def test_what_the_model_says_is_life() -> None:
    run = Run()
    run.driver.active_at -= 1e6
    assert run.driver.overdue_seconds > 0
    run.driver.content([said("a")])
    assert run.driver.overdue_seconds < 0
    run.driver._journal.stop()


async def test_a_driver_that_holds_runs_no_tool_that_its_model_asks_for_meanwhile() -> None:
    run = Run()
    run.may_reply.clear()
    running = asyncio.create_task(run.driver.run())
    await run.asked.wait()
    run.driver.hold()
    run.may_reply.set()
    with pytest.raises(TurnLeftOpen):
        await asyncio.wait_for(running, 10)
    assert "ran" not in run.log


async def test_a_driver_that_waits_for_a_person_and_holds_is_woken_by_that() -> None:
    run = Run()
    run.tool = "danger"
    running = asyncio.create_task(run.driver.run())
    async with asyncio.timeout(10):
        while not run.driver.waits_for_person:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    run.driver.hold()
    with pytest.raises(TurnLeftOpen):
        await asyncio.wait_for(running, 10)


async def test_whom_the_watchdog_has_ended_counts_no_more() -> None:
    run, running = await in_a_call()
    run.driver.give_up(Rig().turn)
    running.cancel()
    with pytest.raises((Overtaken, asyncio.CancelledError)):
        await running
    assert run.driver.overtaken
    assert not [one for one in run.log if one.startswith("closed")]


@pytest.mark.parametrize("fails", [1, 2])
async def test_an_end_that_cannot_be_stored_for_what_it_says_is_stored_as_one_that_says_nothing(fails: int) -> None:
    run = Run(*[ValueError("odd")] * fails)
    ending = await run.driver.run()
    assert ending.code is ExitCode.INTERNAL_ERROR
    assert run.log[-2:] == ["closed internal_error", "shown"]


@pytest.mark.parametrize(("chars", "at_once"), [(FLUSH_CHARS, False), (FLUSH_CHARS + 1, True)])
async def test_a_lot_of_text_is_stored_at_once(chars: int, at_once: bool) -> None:
    of = Of()
    journal = journal_of(Stored(), of)
    for text in ("x" * (chars - 10), "y" * 10):
        journal.note([said(text)])
        journal.streamed([said(text)])
    assert (of.soon, journal._timer is None) == ((1, True) if at_once else (0, False))
    journal.stop()


class Slow(Run):
    """While its storage is away, its model says all that it has to say, in many small pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.away, self.stores = asyncio.Event(), asyncio.Event()
        self.away.set()
        self.waited: list[object] = []
        """For the loop, at the model's end."""

    async def append(self, s: str, e: int, t: str, rows: Sequence[JournalRow], hooks: object) -> None:
        self.stores.set()
        await self.away.wait()
        await super().append(s, e, t, rows, hooks)

    async def _call(self, turn: object, effect: object, content: Any) -> ReplyFinished | CallBroke:
        content([TextArrived(at=5, text="x" * (FLUSH_CHARS + 1))])
        self.away.clear()
        await self.stores.wait()
        content([TextArrived(at=6, text="y" * (FLUSH_CHARS + 1))])
        for _ in range(QUEUE_LIMIT):
            content([TextArrived(at=6, text=".")])
        self.waited = [*self.driver._events]
        asyncio.get_running_loop().call_later(0.01, self.away.set)
        return ReplyFinished(at=6, reason="stop")


async def test_what_a_model_says_while_the_storage_is_away_comes_to_its_end_however_much_it_is() -> None:
    run = Slow()
    async with asyncio.timeout(10):
        assert (await run.driver.run()).code is ExitCode.ANSWERED
    assert len(run.waited) == 1, "to write is asked for once"


async def test_a_driver_that_many_words_of_people_wait_for_misses_nothing_that_its_own_work_brings() -> None:
    run, running = await in_a_call()
    for number in range(QUEUE_LIMIT):
        assert run.driver.tell(Steered(at=6, input=InputMessage(f"{number}")))
    assert not run.driver.tell(Steered(at=6, input=InputMessage("one more")))
    run.driver.put(lambda at: StopRequested(at=at))
    async with asyncio.timeout(10):
        assert (await running).code is ExitCode.STOPPED


@pytest.mark.parametrize(
    ("offered", "words"), [(("send",), "The tools are: send."), ((), "There are none now: answer without.")]
)
async def test_a_model_that_asks_for_a_tool_that_is_not_there_is_told_what_there_is(
    offered: tuple[str, ...], words: str
) -> None:
    run = Run()
    run.tool = "nonsense"
    cast("Any", run.driver)._caller.offered = gives(offered)
    await run.driver.run()
    (told,) = [item.text for item in run.driver.turn.items if isinstance(item, ToolItem)]
    assert told.endswith(words)
