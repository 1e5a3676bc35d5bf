"""What programs and the page see of stored conversations and do with them: what is told, shown, branched and decided. Beside rows that are made up."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import SessionKey
from adapters.contract.sessions import (
    CHAINED,
    NAMED,
    PAGES,
    SUGGESTED,
    TITLE,
    DecisionFate,
    SessionSight,
    SessionState,
    StillRunning,
)
from adapters.delivery.parts import call_mark
from agent_core.journal.rows import encode
from agent_core.messages import InputMessage
from agent_core.rules.consents import Lasting
from agent_core.store.sessions.copies import SessionCopy
from agent_core.store.sessions.rows import SessionChange, SessionFigures, SessionRow, settings_with
from agent_core.store.turns.rows import TAKEN_BACK, JournalRow, TurnPlace, TurnRow, TurnState
from agent_core.turn.events import ApprovalAnswered, ApprovalAsked, Event, Verdict
from agent_core.turn.state import PersonItem
from gateway.conversations import access as accessing
from gateway.conversations import sights
from gateway.conversations.access import OF_PAGE, GatewaySessions
from gateway.conversations.deciding import STORED_SECONDS, Deciding
from gateway.conversations.sights import SessionSights
from gateway.queues.prefs import Prefs
from tests.agent_core.turns import Rig, gives, opened
from tests.store.support import FakeClock

REALM = "ada"
KEY = SessionKey("api", "key", "c", person=REALM)
ROW = SessionRow("s_1", KEY.text(), 1, 1)
TURN = TurnRow("t_1", "s_1", 1, TurnState.OPEN, None, 5, None, 9)


# ---------------------------------------------------------------------- what is decided


class Asking:
    """A turn with its journal; what is answered stands there after so many looks, or never."""

    def __init__(
        self, *events: Event, later: int = 0, row: TurnRow | None = TURN, session: SessionRow | None = ROW
    ) -> None:
        self.events, self.later, self.row, self.session = [*events], later, row, session
        self.clock, self.takes = FakeClock(), True
        self.told: list[tuple[object, ...]] = []
        self.looks = 0
        self.askers_decide, self.approvers = True, ("admins",)
        self.turns = self.sessions = self

    async def one(self, name: str) -> Any:
        return self.row if name.startswith("t_") else self.session

    async def journal(self, _: str) -> list[JournalRow]:
        self.looks += 1
        self.clock.now += 1_000
        for answer in [one for one in self.told if len(one) == 2]:  # what the driver has stored by now
            if self.looks > self.later:
                self.told.remove(answer)
                self.events.append(cast("Event", answer[1]))
        rows = [encode(one) for one in self.events]
        return [JournalRow(number, one.kind, one.body, 5) for number, one in enumerate(rows)]

    async def approve(self, key: SessionKey, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting) -> bool:
        assert (key.text(), turn) == (KEY.text(), "t_1")
        self.told.append((call, verdict, by, lasts))
        if self.takes:
            self.told.append(("later", ApprovalAnswered(at=7, call=call, verdict=verdict, by=by, lasts=lasts)))
        return self.takes

    async def decides(self, *, realm: str = REALM, call: str = "c1", verdict: Verdict = Verdict.GIVEN) -> Any:
        store, none = cast("Any", self), cast("Any", None)
        return await Deciding(store, cast("Any", self), none).decide(
            realm, "t_1", call_mark(call), verdict, "bob", Lasting.ALWAYS
        )


ASKED, ANOTHER = ApprovalAsked(at=5, call="c1", seconds=60), ApprovalAsked(at=5, call="c2", seconds=60)


def answered(verdict: Verdict, call: str = "c1", by: str = "ann") -> ApprovalAnswered:
    return ApprovalAnswered(at=6, call=call, verdict=verdict, by=by)


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(_: float) -> None: ...

    monkeypatch.setattr("gateway.conversations.deciding.asyncio", SimpleNamespace(sleep=sleep))


@pytest.mark.parametrize("later", [0, 1, 4])
@pytest.mark.parametrize("verdict", [Verdict.GIVEN, Verdict.DENIED])
async def test_an_answer_is_told_as_soon_as_it_stands_in_the_journal_with_all_that_was_said(
    verdict: Verdict, later: int
) -> None:
    asking = Asking(ASKED, ANOTHER, answered(Verdict.DENIED, "c2"), later=later)
    decision = await asking.decides(verdict=verdict)
    assert (decision.fate, decision.verdict, decision.by, decision.at) == (DecisionFate.DECIDED, verdict, "bob", 7)
    assert asking.told == [("c1", verdict, "bob", Lasting.ALWAYS)]


@pytest.mark.parametrize("asked", [Verdict.GIVEN, Verdict.DENIED])
@pytest.mark.parametrize("before", Verdict)
async def test_what_was_decided_before_is_told_and_not_decided_again(before: Verdict, asked: Verdict) -> None:
    asking = Asking(ASKED, answered(before))
    decision = await asking.decides(verdict=asked)
    over = before is Verdict.EXPIRED
    fate = DecisionFate.OVER if over else DecisionFate.DECIDED if before is asked else DecisionFate.OTHERWISE
    assert (decision.fate, decision.by, asking.told) == (fate, "ann", [])


async def test_of_a_call_that_was_asked_about_twice_the_latest_answer_counts() -> None:
    asking = Asking(ASKED, answered(Verdict.DENIED), ASKED, answered(Verdict.GIVEN, by="cyd"))
    decision = await asking.decides(verdict=Verdict.GIVEN)
    assert (decision.fate, decision.by) == (DecisionFate.DECIDED, "cyd")


@pytest.mark.parametrize(
    ("state", "takes", "fate"),
    [
        (TurnState.OPEN, False, DecisionFate.ELSEWHERE),
        (TurnState.CLOSED, False, DecisionFate.OVER),
        (TurnState.CLOSED, True, DecisionFate.OVER),
        (TurnState.OPEN, True, DecisionFate.ELSEWHERE),
    ],
)
async def test_an_answer_that_nobody_takes_or_nobody_stores_is_not_told_as_given(
    state: TurnState, *, takes: bool, fate: DecisionFate
) -> None:
    asking = Asking(ASKED, later=10**6, row=replace(TURN, state=state))
    asking.takes = takes
    assert (await asking.decides()).fate is fate
    assert asking.looks <= STORED_SECONDS + 4


@pytest.mark.parametrize(
    ("made", "realm"),
    [
        (Asking(ASKED), "bob"),
        (Asking(ASKED), ""),
        (Asking(ANOTHER), REALM),
        (Asking(ASKED, row=None), REALM),
        (Asking(ASKED, session=None), REALM),
        (Asking(ASKED, session=replace(ROW, key="telegram/1/2//ada")), REALM),
        (Asking(ASKED, session=replace(ROW, key="odd")), REALM),
    ],
)
async def test_what_is_not_asked_in_ones_own_conversations_is_not_there(made: Asking, realm: str) -> None:
    assert (await made.decides(realm=realm)).fate is DecisionFate.UNKNOWN
    assert made.told == []


async def test_where_askers_do_not_decide_they_are_told_who_does_and_nothing_is_decided() -> None:
    asking = Asking(ASKED)
    asking.askers_decide = False
    decision = await asking.decides()
    assert (decision.fate, bool(decision.by), asking.told) == (DecisionFate.FORBIDDEN, True, [])


# ---------------------------------------------------------------------- what there is to see


class Stored:
    """A conversation's rows."""

    def __init__(
        self, *turns: TurnRow, since: int = 0, figures: SessionFigures | None = None, places: tuple[TurnPlace, ...] = ()
    ) -> None:
        self.rows, self.row = turns, replace(ROW, since=since)
        self._figures, self._places = figures, places
        self.copied: list[SessionCopy] = []
        self.turns = self.sessions = self

    async def behind(self, session: str, number: int, limit: int, *, newest_first: bool) -> list[TurnRow]:
        assert session == "s_1"
        found = [one for one in self.rows if (one.number < number if newest_first else one.number > number)]
        return (found[::-1] if newest_first else found)[:limit]

    async def some(self, turns: Any) -> list[TurnRow]:
        return [one for one in self.rows if one.turn in turns]

    async def journals(self, _: object) -> dict[str, Any]:
        return {}

    async def openings(self, _: object) -> dict[str, Any]:
        return {}

    async def one(self, _: str) -> SessionRow:
        return self.row

    async def by_key(self, key: str) -> SessionRow | None:
        return self.row if key == self.row.key else None

    async def figures(self, _: object) -> dict[str, SessionFigures]:
        return {"s_1": self._figures} if self._figures is not None else {}

    async def places(self, _: str) -> tuple[TurnPlace, ...]:
        return self._places

    async def copy(self, what: SessionCopy) -> None:
        self.copied.append(what)

    def sights(self, queue: Any = None) -> SessionSights:
        return SessionSights(cast("Any", self), cast("Any", SimpleNamespace(of=gives(queue))), FakeClock())

    def access(self) -> GatewaySessions:
        none: Any = None
        ids: Any = SimpleNamespace(new=self._new)
        self._made = 0
        return GatewaySessions(cast("Any", self), none, none, none, self.sights(), none, ids, Path(), OF_PAGE)

    def _new(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}_new{self._made}"


@given(st.integers(0, 4), st.integers(1, 4), st.sampled_from([0, TAKEN_BACK, 2]), st.sampled_from(["", "old"]))
def test_a_model_is_told_of_what_was_neither_forgotten_nor_taken_back_nor_removed(
    since: int, number: int, undone: int, removed: str
) -> None:
    row = TurnRow("t_1", "s_1", number, TurnState.CLOSED, "answered", 5, 6, 9, undone=undone, removed=removed)
    (seen,) = asyncio.run(Stored(row, since=since).sights().turns("s_1", 0, 9, newest_first=False))
    assert seen.told == (number > since and not undone and not removed)
    assert (seen.turn, seen.number, seen.opened_at, seen.closed_at, seen.removed) == ("t_1", number, 5, 6, removed)


async def test_what_was_said_while_a_turn_ran_is_among_what_was_asked_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = InputMessage("and buy milk")
    turn = Rig().turn
    turn.items += (PersonItem(said),)
    monkeypatch.setattr(sights, "_folded", gives(turn))
    (seen,) = await Stored(TURN).sights().turns("s_1", 0, 9, newest_first=False)
    assert [*seen.asked] == [*opened().input, said]


def _queue(bubbles: tuple[object, ...] | None, waiting: int, *, over: bool = False) -> Any:
    view = SimpleNamespace(bubbles=bubbles)
    driver = SimpleNamespace(over=over, seen=SimpleNamespace(current_view=lambda: view))
    running = SimpleNamespace(driver=driver) if bubbles is not None else None
    return SimpleNamespace(running=running, waiting=[object()] * waiting)


@pytest.mark.parametrize(
    ("queue", "open_turn", "state"),
    [
        (None, "", SessionState.IDLE),
        (None, "t_9", SessionState.RUNNING),
        (_queue(None, 0), "", SessionState.IDLE),
        (_queue(None, 2), "", SessionState.QUEUED),
        (_queue(None, 2), "t_9", SessionState.RUNNING),
        (_queue((), 2), "t_9", SessionState.RUNNING),
        (_queue((), 2, over=True), "", SessionState.QUEUED),
    ],
)
async def test_a_conversation_does_what_it_does_wherever_it_is_run(
    queue: Any, open_turn: str, state: SessionState
) -> None:
    figures = SessionFigures(3, 40, 5, open_turn, "", "")
    stored = Stored(figures=figures)
    (sight,) = await stored.sights(queue).of([ROW])
    assert (sight.state, sight.turns, sight.input_tokens, sight.output_tokens) == (state, 3, 40, 5)
    assert sight.waiting == (len(queue.waiting) if queue is not None else 0)


# ---------------------------------------------------------------------- branches and links


SIGHT = SessionSight("s_1", KEY, 1, 2)


def places(count: int, undone: dict[int, int] | None = None, removed: tuple[int, ...] = ()) -> tuple[TurnPlace, ...]:
    """One line of turns."""
    gone = undone or {}
    return tuple(TurnPlace(f"t_{n}", n, -1, gone.get(n, 0), "old" if n in removed else "") for n in range(1, count + 1))


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5))
def test_a_branch_takes_the_turns_before_it_along_the_latest_if_there_are_many(
    count: int, upto: int, most: int
) -> None:
    stored = Stored(places=places(count))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accessing, "MOST_BRANCHED", most)
        done = asyncio.run(stored.access().branch("bob", SIGHT, f"t_{upto}", "c-other", "A title"))
    assert done is (upto <= count)
    if done:
        (copy,) = stored.copied
        wanted = [f"t_{n}" for n in range(max(1, upto - most + 1), upto + 1)]
        assert [turn for turn, _ in copy.turns] == wanted
        assert len({new for _, new in copy.turns}) == len(wanted)
        assert SessionKey.of(copy.key) == SessionKey("web", "page", "c-other", person="bob")
    else:
        assert stored.copied == []


async def test_what_is_not_kept_is_not_branched_from() -> None:
    stored = Stored(places=places(3, removed=(2,)))
    assert not await stored.access().branch("bob", SIGHT, "t_2", "c-other", "")
    assert stored.copied == []


@given(st.integers(0, 5), st.sets(st.integers(1, 5)), st.sets(st.integers(1, 5)), st.integers(0, 5))
def test_the_tip_is_the_latest_turn_that_is_shown_and_over(
    count: int, undone: set[int], removed: set[int], closed: int
) -> None:
    rows = tuple(
        TurnRow(f"t_{n}", "s_1", n, TurnState.CLOSED if n <= closed else TurnState.OPEN, None, 5, 6 if n <= closed else None, 9)
        for n in range(1, count + 1)
    )  # fmt: skip
    stored = Stored(*rows, places=places(count, dict.fromkeys(undone, TAKEN_BACK), tuple(removed)))
    shown = [n for n in range(1, count + 1) if n not in undone and n not in removed][-accessing.LATEST :]
    assert asyncio.run(stored.access().tip(SIGHT)) == max((n for n in shown if n <= closed), default=0)


@given(st.integers(1, 6), st.integers(0, 6), st.integers(1, 6), st.sets(st.integers(1, 6)), st.sets(st.integers(1, 6)))
def test_of_a_line_is_shown_what_was_neither_taken_back_nor_removed(
    upto: int, behind: int, limit: int, undone: set[int], removed: set[int]
) -> None:
    rows = tuple(TurnRow(f"t_{n}", "s_1", n, TurnState.CLOSED, "answered", 5, 6, 9) for n in range(1, 7))
    stored = Stored(*rows, places=places(6, {n: TAKEN_BACK if n % 2 else 2 for n in undone}, tuple(removed)))
    found = asyncio.run(stored.access().line(SIGHT, upto, behind, limit))
    kept = [n for n in range(1, upto + 1) if n > behind and not (n in undone and n % 2) and n not in removed]
    assert [one.number for one in found] == kept[:limit]


# ---------------------------------------------------------------------- whose it is


@pytest.mark.parametrize(
    ("key", "theirs"),
    [
        (SessionKey("web", "page", "c-1", person="ada"), True),
        (SessionKey("web", "page", "c-1", person="bob"), False),
        (SessionKey("web", "page", "c-1"), False),
        (SessionKey("web", "key", "c-1", person="ada"), False),
        (SessionKey("api", "page", "c-1", person="ada"), False),
        (SessionKey("telegram", "page", "c-1", person="ada"), False),
    ],
)
async def test_an_id_finds_what_a_name_would_have_found_and_nothing_of_anybody_else(
    key: SessionKey, *, theirs: bool
) -> None:
    stored = Stored()
    stored.row = replace(ROW, key=key.text())
    access = stored.access()
    for realm in ("ada", ""):
        found = await access.find(realm, "s_1")
        of_page = (key.platform, key.account) == ("web", "page")
        assert (found is not None) is (of_page and realm == key.person)
    found = await access.find("ada", "c-1")
    assert (found is not None) is theirs
    linked = await access.linked("s_1")
    assert (linked is not None) is ((key.platform, key.account) == ("web", "page")), "whoever has the link has it"


# ---------------------------------------------------------------------- deleted


class Running:
    """A conversation with a turn and messages behind it, and what is done to it."""

    def __init__(self, *, ends: bool) -> None:
        self.done: list[str] = []
        self.ends, self.row = ends, ROW
        self.running: object | None = object()
        self.task = None
        self.session, self.epoch, self.waiting = "s_1", 4, ["m1", "m2"]
        self.accepting = asyncio.Lock()
        self.queues = SimpleNamespace(at=gives(self), release=gives(None), let_go=self._let_go)
        self.portion = SimpleNamespace(mine=gives(what=True), far=None)
        self.left = self

    def _let_go(self, _: object) -> None:
        self.done.append("let go")

    async def owned(self, *_: object) -> Running:
        return self

    def ticket_of(self, message: str) -> str:
        return message

    async def stop_message(self, message: str) -> None:
        self.done.append(f"stop {message}")
        self.waiting.remove(message)

    async def stop(self, _: SessionKey) -> None:
        self.done.append("stop")
        assert self.running is not None
        if self.ends:
            self.running = None

    async def turns(self, _: str) -> list[object]:
        return [] if self.running is None else [object()]

    async def begin_conversation(self, session: str, key: str, gone: str) -> str:
        assert (session, key) == ("s_1", KEY.text())
        assert gone != key
        self.done.append("forget")
        return "job"

    async def finish(self, job: str) -> None:
        self.done.append(f"end {job}")


@pytest.mark.parametrize("ends", [True, False])
async def test_what_waits_is_taken_back_before_what_runs_is_stopped_and_nothing_is_deleted_before_that_is_over(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    async def sleep(_: float) -> None: ...

    monkeypatch.setattr(accessing, "asyncio", SimpleNamespace(sleep=sleep))
    running, none = Running(ends=ends), cast("Any", None)
    it: Any = running
    access = GatewaySessions(it, it, it, it, none, none, none, Path(), OF_PAGE)
    begun = ["stop m1", "stop m2", "stop"]
    if ends:
        await access.delete(SIGHT)
        assert running.done == [*begun, "forget", "let go", "end job"]
    else:
        with pytest.raises(StillRunning):
            await access.delete(SIGHT)
        assert running.done == begun


# ---------------------------------------------------------------------- changed here


class Settings:
    """One conversation's settings, as they are stored and as it goes by them."""

    def __init__(self, prefs: Prefs) -> None:
        self.row: SessionRow | None = replace(ROW, policy=prefs.encode())
        self.done: list[object] = []
        self.session, self.epoch, self.key = "s_1", 4, KEY.text()
        self.prefs, self.prefs_loaded = Prefs(), False
        self.accepting = asyncio.Lock()
        self.queues = SimpleNamespace(at=gives(self), release=gives(None), forget_memory=self._forgets, of=gives(None))
        self.portion = SimpleNamespace(mine=gives(what=True), far=None)
        self.sessions = self

    def _forgets(self, key: str) -> None:
        self.done.append(("memory", key))

    async def owned(self, *_: object) -> Settings:
        return self

    async def one(self, _: str) -> SessionRow | None:
        return self.row

    async def stop(self, _: SessionKey) -> None:
        self.done.append("stop")

    async def change(self, session: str, epoch: int, change: SessionChange) -> None:
        assert (session, epoch) == ("s_1", 4)
        self.done.append(change)
        if change.policy is not None and self.row is not None:
            self.row = replace(self.row, policy=settings_with(self.row.policy or "{}", change.policy))

    async def of(self, _: object) -> list[SessionSight]:
        return [SIGHT]

    @property
    def stored(self) -> Prefs:
        return Prefs.decode(self.row.policy if self.row is not None else None)

    def access(self) -> GatewaySessions:
        it, none = cast("Any", self), cast("Any", None)
        return GatewaySessions(it, it, it, none, it, none, none, Path(), OF_PAGE)


async def test_what_is_attached_to_a_conversation_leaves_its_other_settings_as_they_are() -> None:
    settings = Settings(Prefs(model="large", language="de", metadata={"a": "b"}))
    sight = await settings.access().describe(replace(SIGHT, metadata={"a": "b"}), {"c": "d"})
    assert sight.metadata == {"c": "d"}
    assert settings.stored == Prefs(model="large", language="de", metadata={"c": "d"})
    assert settings.prefs == settings.stored, "it goes by it at once"


NAMES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))


@given(NAMES, NAMES, NAMES)
def test_who_attaches_something_undoes_nothing_that_others_have_done_since_it_was_seen(
    now: dict[str, str], seen: dict[str, str], wanted: dict[str, str]
) -> None:
    settings = Settings(Prefs(metadata=now))
    sight = asyncio.run(settings.access().describe(replace(SIGHT, metadata=seen), wanted))
    assert settings.stored.metadata == sight.metadata
    for name in "abc":
        touched = seen.get(name) != wanted.get(name)
        assert sight.metadata.get(name) == (wanted if touched else now).get(name)


@pytest.mark.parametrize(
    ("metadata", "title"), [({}, ""), ({"a": "b"}, ""), ({TITLE: "Mine"}, "Mine"), ({SUGGESTED: "Old"}, "")]
)
async def test_a_suggested_title_takes_no_place_of_a_persons(metadata: dict[str, str], title: str) -> None:
    settings = Settings(Prefs(model="large", metadata=metadata))
    await settings.access().suggest(ROW, "Apples")
    assert settings.stored == Prefs(model="large", metadata=metadata if title else {**metadata, SUGGESTED: "Apples"})
    assert len(settings.done) == (not title)


async def test_a_conversation_that_is_gone_meanwhile_is_given_no_title() -> None:
    settings = Settings(Prefs())
    settings.row = None
    await settings.access().suggest(ROW, "Apples")
    assert settings.done == []


async def test_one_that_begins_anew_is_stopped_and_forgets_what_was_said_in_store_and_in_memory() -> None:
    settings = Settings(Prefs())
    await settings.access().reset(SIGHT)
    assert settings.done == ["stop", SessionChange(forget=True), ("memory", KEY.text())]


# ---------------------------------------------------------------------- at several gateways


@pytest.mark.parametrize("whole", [True, False])
async def test_what_waits_for_a_word_is_looked_for_at_others_and_not_once_more_where_it_runs(*, whole: bool) -> None:
    looked: list[str] = []

    async def asking() -> list[TurnRow]:
        return [replace(TURN, turn=name) for name in ("t_here", "t_there")]

    async def journal(turn: str) -> list[JournalRow]:
        looked.append(turn)
        return []

    here = SimpleNamespace(driver=SimpleNamespace(over=True, identity=SimpleNamespace(turn="t_here")))
    stopping = SimpleNamespace(queues=SimpleNamespace(running=gives([here])), portion=SimpleNamespace(whole=whole))
    store = SimpleNamespace(turns=SimpleNamespace(asking=asking, journal=journal))
    none: Any = None
    assert await Deciding(cast("Any", store), cast("Any", stopping), none).everybodys() == []
    assert looked == ([] if whole else ["t_there"])


@pytest.mark.parametrize(("account", "name"), [(NAMED, "c-1"), (PAGES, "c-1"), (CHAINED, "s_1")])
def test_a_conversation_is_called_as_its_client_calls_it_and_by_its_id_where_it_has_no_name(
    account: str, name: str
) -> None:
    assert SessionSight("s_1", SessionKey("api", account, "c-1"), 1, 2).name == name
