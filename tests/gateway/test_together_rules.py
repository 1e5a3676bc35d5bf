"""What makes a gateway one of several, each rule by itself: what it collects, what it asks of others, what it may give away, and when it is cut off."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, SessionKey, StopOutcome, Ticket
from agent_core.bell import Bell
from agent_core.messages import InputMessage
from agent_core.ports import SystemIds
from agent_core.rules.consents import Lasting
from agent_core.signals import TurnClosed
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.sessions.takeups import LeftMessage
from agent_core.store.slices.rows import HOUSE, slice_of
from agent_core.store.store import Conflict, StorageUnavailable
from agent_core.store.turns.rows import JournalRow
from agent_core.turn.events import Verdict
from gateway.limits.rates import MINUTE_MS, KeyMeters
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE, NORMAL_LANE
from gateway.several import far, telling, together
from gateway.several.collecting import Collecting
from gateway.several.far import FarControl, FarWish, carry_out
from gateway.several.files import told_number
from gateway.several.together import Together
from gateway.sharing.afar import FarTurn
from gateway.sharing.portion import Portion
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

KEY = SessionKey("telegram", "1", "2")
NONE: Any = None


# ---------------------------------------------------------------------- collecting

SAID = FromApi(
    account="web", platform_key="k", session=KEY, input=(InputMessage("hi"),), surface="web", memory_scope=""
)  # fmt: skip


def row(number: int, lane: str = NORMAL_LANE) -> InboxRow:
    return InboxRow(
        id=number, account="web", platform_key=f"k{number}", session="s1", arrival=number, lane=lane, body=inbox.encode(SAID),
        state=InboxState.NEW, reason=None, received_at=1,
    )  # fmt: skip


def left(number: int, *, owner: int | None = 1, lane: str = NORMAL_LANE, session: str = "s1") -> LeftMessage:
    stored = row(number) if lane == NORMAL_LANE else None
    return LeftMessage(number, session, KEY.text(), owner, lane, 0, 0, stored)


class Collector:
    """This gateway is the first; what is stored is looked through once."""

    def __init__(self, *found: LeftMessage) -> None:
        self.found, self.keeper_looks, self.closing = [*found], 0, False
        self.did: list[object] = []
        self.known: set[int] = set()
        self.carried: set[int] = set()
        self.conflicts: set[int] = set()
        self.above: list[int] = []
        self.portion = Portion(whole=False)
        self.portion.change({slice_of(KEY.text())}, {})
        queue: Any = SimpleNamespace(blocked=False, knows=self.knows, epoch=4)
        accepting = SimpleNamespace(
            runner=SimpleNamespace(closing=False), queues=SimpleNamespace(of=gives(queue)), left=SimpleNamespace(known={}),
            coming=gives(False), owned=self.owned, collect=self.collect,
        )  # fmt: skip
        self.runner, self.queue = accepting.runner, queue
        commands = SimpleNamespace(carries_out=self.carries_out, carry_out=self.carry_out)
        store = SimpleNamespace(node=1, left=self, inbox=SimpleNamespace(one=self.one))
        self.collecting = Collecting(
            self.portion, cast("Any", store), cast("Any", accepting), cast("Any", commands),
            cast("Any", SimpleNamespace(announce=self.announce)), self.keeper, Bell(),
        )  # fmt: skip

    def knows(self, number: int) -> bool:
        return number in self.known

    def carries_out(self, number: int) -> bool:
        return number in self.carried

    def keeper(self) -> None:
        self.keeper_looks += 1

    async def brought(self, _held: object, above: int) -> list[LeftMessage]:
        self.above.append(above)
        return self.found

    async def one(self, number: int) -> InboxRow:
        return row(number, next(one.lane for one in self.found if one.inbox_id == number))

    async def owned(self, *_: object) -> Any:
        return self.queue

    async def carry_out(self, number: int, _owner: object) -> None:
        self.did.append(("command", number))

    async def collect(self, one: InboxRow, _inbound: object, _key: str, sure: Any) -> bool:
        if one.id in self.conflicts:
            raise Conflict("It is somebody else's.")
        self.did.append(("queued", one.id, sure()))
        return True

    async def announce(self, _inbound: object, number: int, _session: str) -> None:
        self.did.append(("told", number))


async def test_what_others_have_stored_is_queued_once_in_its_order_and_its_place_told() -> None:
    one = Collector(left(1), left(2), left(3, lane=COMMAND_LANE))
    await one.collecting.look()
    assert one.did == [("queued", 1, True), ("told", 1), ("queued", 2, True), ("told", 2), ("command", 3)]
    one.known, one.carried = {1, 2}, {3}
    one.did.clear()
    await one.collecting.look()
    assert (one.did, one.above) == ([], [0, 3])


async def test_what_a_gateway_that_is_gone_had_is_the_keepers() -> None:
    one = Collector(left(1, owner=2), left(2, owner=None))
    await one.collecting.look()
    assert (one.did, one.keeper_looks) == ([("queued", 2, True), ("told", 2)], 1)


async def test_what_comes_behind_something_that_could_not_be_had_is_not_sure_to_be_next() -> None:
    one = Collector(left(1), left(2), replace(left(3), session="s2"))
    one.conflicts = {1}
    await one.collecting.look()
    assert one.did == [("queued", 2, False), ("told", 2), ("queued", 3, True), ("told", 3)]
    assert one.keeper_looks == 1


@pytest.mark.parametrize("why", ["it ends", "nothing is held"])
async def test_nothing_more_is_collected_by_who_may_not_run_it(why: str) -> None:
    one = Collector(left(1))
    if why == "it ends":
        one.runner.closing = True
    else:
        one.portion.change(())
    await one.collecting.look()
    assert (one.did, one.above) == ([], [])


# ---------------------------------------------------------------------- what is asked of others


class Asked:
    """What is wanted of a conversation elsewhere is stored, and its owner answers or not."""

    def __init__(self, said: str | None, *, early: bool = False) -> None:
        self.said = said
        self.early = early
        self.stored: list[str] = []
        accepting = SimpleNamespace(new_message=self.new, put=self.put)
        clock = FakeClock()
        self.control = FarControl(cast("Any", accepting), clock, SystemIds(clock), {})

    def new(self, inbound: FromApi, lane: str, *_: object) -> str:
        assert lane == COMMAND_LANE
        return str(inbound.input[0].content)

    async def put(self, words: str) -> Any:
        self.stored.append(words)
        if self.early:
            self.control.heard(f"5:{self.said}")
            self.control.heard("6:true")
            await asyncio.sleep(0)
        elif self.said is not None:
            asyncio.get_running_loop().call_soon(self.control.heard, f"5:{self.said}")
            asyncio.get_running_loop().call_soon(self.control.heard, "6:true")  # another one's
        return SimpleNamespace(inbox_id=5)


@pytest.mark.parametrize(
    ("said", "stopped"),
    [('[true, "Stopped."]', True), ('[false, "It is over."]', False), ("null", False), (None, False)],
)
async def test_a_stop_elsewhere_is_what_its_owner_says_and_nothing_is_waited_for_any_more(
    monkeypatch: pytest.MonkeyPatch, said: str | None, *, stopped: bool
) -> None:
    monkeypatch.setattr(far, "ANSWER_SECONDS", 0.01 if said is None else 10.0)
    one = Asked(said)
    assert (await one.control.stop(KEY.text())).stopped is stopped
    assert (await one.control.withdraw(KEY.text(), Ticket(3, "s1", duplicate=False))) is False
    assert await one.control.approve(KEY.text(), "t", "c", Verdict.GIVEN, "by", Lasting.ALWAYS) is False
    assert one.control.waiting == {}
    assert one.stored == [
        '/control ["stop"]', '/control ["withdraw",3,"s1"]', f'/control ["approve","t","c","{Verdict.GIVEN.value}","by","{Lasting.ALWAYS.value}"]',
    ]  # fmt: skip


async def test_an_answer_that_is_quicker_than_the_news_of_what_was_stored_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(far, "ANSWER_SECONDS", 0.01)
    one = Asked('[true, "Stopped."]', early=True)
    assert (await one.control.stop(KEY.text())).stopped
    assert (one.control.waiting, one.control.early) == ({}, {})
    one.control.heard("7:true")  # nobody here asks anything
    assert one.control.early == {}


async def test_who_asked_and_has_the_conversation_by_then_hears_what_it_says_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No gateway hears its own words."""

    async def stop(_: SessionKey) -> StopOutcome:
        return StopOutcome(stopped=True, words="Stopped.")

    monkeypatch.setattr(far, "ANSWER_SECONDS", 0.01)
    one, told = Asked(None), list[str]()
    stopping = SimpleNamespace(stop=stop)
    asked = asyncio.create_task(one.control.stop(KEY.text()))
    await asyncio.sleep(0)
    hub = cast("Any", SimpleNamespace(stopping=stopping))
    await carry_out(hub, told.append, one.control.heard, KEY, 5, '["stop"]')
    assert (await asked).words == "Stopped."


@pytest.mark.parametrize("wish", FarWish)
async def test_its_owner_does_what_is_wanted_and_answers_under_its_number(wish: FarWish) -> None:
    did: list[object] = []
    told: list[str] = []
    heard: list[str] = []

    def does(what: str, gives_back: object) -> Any:
        async def done(*given: object) -> object:
            did.append((what, *given))
            return gives_back

        return done

    stopping = SimpleNamespace(
        stop=does("stop", StopOutcome(stopped=True, words="")), stop_message=does("stop_message", StopOutcome(stopped=True, words="")),
        withdraw=does("withdraw", True), approve=does("approve", True), answer=does("answer", "ok"),
    )  # fmt: skip
    reworded: list[object] = []
    queue = SimpleNamespace(reword=reworded.append)
    accepting = SimpleNamespace(
        store=SimpleNamespace(inbox=SimpleNamespace(one=does("one", row(3)))),
        queues=SimpleNamespace(known=gives(queue)),
    )
    hub = cast("Any", SimpleNamespace(stopping=stopping, accepting=accepting))
    ticket = Ticket(3, "s1", duplicate=False)
    words: dict[FarWish, tuple[str, list[object], str]] = {
        FarWish.STOP: ('["stop"]', [("stop", KEY)], '[true,""]'),
        FarWish.STOP_MESSAGE: ('["stop_message",3,"s1"]', [("stop_message", ticket)], '[true,""]'),
        FarWish.WITHDRAW: ('["withdraw",3,"s1"]', [("withdraw", ticket)], "true"),
        FarWish.APPROVE: (
            f'["approve","t","c","{Verdict.DENIED.value}","by","{Lasting.ONCE.value}"]', [("approve", KEY, "t", "c", Verdict.DENIED, "by", Lasting.ONCE)], "true",
        ),
        FarWish.ANSWER: ('["answer","t","c","red","by"]', [("answer", KEY, "t", "c", "red", "by")], '"ok"'),
        FarWish.REWORDED: ('["reworded",3]', [("one", 3)], "true"),
    }  # fmt: skip
    if wish is FarWish.CHANGE:
        return  # in test_changed_afar
    said, done, answer = words[wish]
    await carry_out(hub, told.append, heard.append, KEY, 9, said)
    assert (did, told, heard) == (done, [f"control:9:{answer}"], [f"9:{answer}"])
    assert len(reworded) == (wish is FarWish.REWORDED)


@pytest.mark.parametrize(
    ("words", "number"), [('{"directory":"7"}', "7"), ("{}", ""), ("", ""), ("[1]", ""), ("{", "")]
)
def test_a_directory_is_known_by_what_was_told_of_it(words: str, number: str) -> None:
    assert told_number(words) == number


# ---------------------------------------------------------------------- giving away, being cut off, ending


@pytest.mark.parametrize("leaving", [True, False])
def test_a_slice_is_busy_while_anything_is_done_in_it_and_what_only_waits_goes_with_who_leaves(
    *, leaving: bool
) -> None:
    def queue(name: str, **more: object) -> Any:
        accepting = SimpleNamespace(wanted=more.pop("wanted", False))
        given = {"running": None, "task": None, "blocked": False, "waiting": (), **more}
        return SimpleNamespace(key=SessionKey("telegram", "1", name).text(), accepting=accepting, **given)

    queues = [
        queue("idle"), queue("runs", running=1), queue("begins", task=1), queue("blocked", blocked=True), queue("enters", wanted=True),
        queue("queued", waiting=(1,)),
    ]  # fmt: skip
    supervisors = [
        SimpleNamespace(adapter=SimpleNamespace(name="telegram/1"), failing_seconds=0.0),
        SimpleNamespace(adapter=SimpleNamespace(name="slack/1"), failing_seconds=20.0),
    ]
    chats: Any = SimpleNamespace(
        commands=SimpleNamespace(busy=gives([SessionKey("telegram", "1", "command").text()])), supervisors=supervisors,
        outbox=SimpleNamespace(surfaces=SimpleNamespace(busy=gives(["telegram/1/sends/", "slack/1/stuck/"]))),
    )  # fmt: skip
    busy = together._busy(cast("Any", SimpleNamespace(queues=queues)), chats, leaving)
    names = {"runs", "begins", "blocked", "enters", "command", "sends", *([] if leaving else ["queued"])}
    wanted = {slice_of(SessionKey("telegram", "1", name).text()) for name in names}
    assert len(wanted) == len(names), "two of them are in one slice, and hide each other"
    wanted |= {slice_of(name) for name in ([] if leaving else ["slack/1/stuck/"])}
    assert busy == wanted


def test_what_one_lets_through_in_a_minute_counts_at_all() -> None:
    clock, said = FakeClock(), list[tuple[str, ...]]()
    portion, meters = Portion(whole=False), KeyMeters()

    def met(*given: str) -> None:
        said.append(given)

    members: Any = SimpleNamespace(told=None, met=met)
    together._rates_together(portion, meters, members, clock)
    portion.hear_of_rate('[0,"key","laptop"]')
    portion.hear_of_rate('[1,"person","telegram/1","5","m1"]')
    steady = round(clock.monotonic() * 1000)
    assert meters.early("laptop", 1, steady) == MINUTE_MS
    assert said == [("telegram/1", "5", "m1")]


@pytest.mark.parametrize("others", [True, False])
async def test_who_follows_something_looks_when_the_database_is_away_for_long_and_others_are_there(
    monkeypatch: pytest.MonkeyPatch, *, others: bool
) -> None:
    now, rings, seen = [100.0], list[float](), list[tuple[float, bool]]()
    portion: Any = SimpleNamespace(peers=(1, 2) if others else (1,), cut_off=False)
    away = {float(at) for at in (*range(105, 110), *range(120, 140))}

    async def passes(seconds: float) -> None:
        seen.append((now[0], portion.cut_off))
        now[0] += seconds
        if now[0] > 150:
            raise asyncio.CancelledError

    loop = SimpleNamespace(time=lambda: now[0])
    monkeypatch.setattr(together.asyncio, "sleep", passes)
    monkeypatch.setattr(together.asyncio, "get_running_loop", lambda: loop)
    lives: Any = SimpleNamespace(lease_ok=lambda: now[0] not in away)
    try:
        await together._cut_off(portion, lives, lambda: rings.append(now[0]))
    except asyncio.CancelledError:
        pass
    finally:
        monkeypatch.undo()
    assert rings == ([132.0] if others else []), "not for some seconds, and once"
    assert [at for at, cut in seen if cut] == ([float(at) for at in range(132, 140)] if others else [])


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("seconds", [0.02, 0.0])
async def test_one_of_several_ends_within_its_time_and_gives_away_meanwhile(seconds: float, *, others: bool) -> None:
    drained: list[float] = []
    left_at = [0]

    async def drain(left_over: float, _: object) -> None:
        drained.append(left_over)

    async def leave() -> None:
        left_at[0] += 1

    peers = [SimpleNamespace(node=1), *([SimpleNamespace(node=2)] if others else [])]
    one = Together(
        1, cast("Any", SimpleNamespace(peers=peers)), cast("Any", SimpleNamespace(leave=leave)), cast("Any", SimpleNamespace(drain=drain))
    )  # fmt: skip
    await one.drain(seconds, asyncio.Event())
    assert left_at[0] >= 2, "at once, and as it ends"
    (left_over,) = drained
    a_moment = 0.001  # a loop's clock may stand still for so long
    assert 0 <= left_over <= (seconds / 2 if others else seconds) + a_moment, (
        "who is told to go elsewhere has had some of it"
    )


def test_what_was_handed_over_counts_as_long_as_it_is_had_and_what_was_found_never_does() -> None:
    portion = Portion(whole=False)
    portion.change({"a", "b"}, {"a": 1, "b": 1}, found={"b"})
    assert portion.handed == {"a"}
    portion.change({"b"}, {"b": 1})
    assert portion.handed == frozenset()
    portion.change({"a", "b"}, {"a": 3, "b": 1}, found={"a"})
    assert portion.handed == frozenset()


@pytest.mark.parametrize("here", [True, False])
def test_what_is_done_at_the_house_is_rung_for_here_and_told_where_it_is_another(*, here: bool) -> None:
    portion, rings, told = Portion(whole=False), list[str](), list[str]()

    def tell(word: str, /, *, soon: bool = True) -> None:
        told.append(word)
        assert soon

    portion.tell = tell
    portion.change({HOUSE} if here else (), {HOUSE: 1})
    rung = portion.at_house("due", lambda: rings.append("due"))
    rung()
    assert (rings, told) == (["due"], [] if here else ["due"])
    portion.words["due"]()
    assert len(rings) == 2


async def test_of_a_turn_elsewhere_that_cannot_be_read_nothing_is_shown_and_it_is_read_anew() -> None:
    asked: list[int] = []

    async def journal(_: str, after: int = -1) -> list[JournalRow]:
        asked.append(after)
        return [JournalRow(after + 1, "OfAnotherVersion", b"{", 5)]

    turn = FarTurn(cast("Any", SimpleNamespace(turns=SimpleNamespace(journal=journal))), "t_1")
    turn.last, turn.turn = 3, cast("Any", SimpleNamespace(exit=None, settings=SimpleNamespace(judged=True)))
    await turn.look()
    assert (turn.turn, turn.last, turn.shown(0)) == (None, -1, None)
    await turn.look()
    assert asked == [3, -1]


async def test_what_is_told_of_a_gateway_is_stored_each_time_that_it_is_another_and_again_where_it_could_not_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says = iter(["a", "a", "b", "b", "b", "c", "a"])
    stored: list[str] = []
    away = {"b": 2}
    over = asyncio.Event()

    def told_of(*_: object) -> dict[str, Any]:
        word = next(says, "")
        if not word:
            over.set()
        return {"is": word or "a"}

    async def tell(words: str) -> None:
        word = words[7]
        if away.get(word):
            away[word] -= 1
            raise StorageUnavailable
        stored.append(word)

    monkeypatch.setattr(telling, "told_of", told_of)
    monkeypatch.setattr(telling, "TELL_SECONDS", 0)
    monkeypatch.setattr(telling, "number_of", str)
    store, hub = SimpleNamespace(slices=SimpleNamespace(tell=tell)), SimpleNamespace(workspaces=NONE)
    monkeypatch.setattr(telling, "sums", dict)
    async with (
        telling.telling("u", cast("Any", {}), cast("Any", store), cast("Any", hub), NONE, NONE),
        asyncio.timeout(5),
    ):
        await over.wait()
    assert "".join(stored) == "abca"


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("surface", ["telegram", "web", "api"])
def test_that_a_turn_has_ended_is_told_where_somebody_may_wait_for_it(
    surface: str, *, watched: bool, others: bool
) -> None:
    said: list[str] = []
    portion: Any = SimpleNamespace(
        peers=(1, 2) if others else (1,), platforms={"telegram"}, afar=SimpleNamespace(watched=gives(watched))
    )
    closed = TurnClosed(turn="t", session="s1", surface=surface, exit="answered", clean=True, began_at=1, ended_at=2)
    together._tell_end(portion, said.append, closed)
    together._tell_end(portion, said.append, cast("Any", SimpleNamespace(surface=surface, session="s1")))
    assert said == (["session:s1"] if others and (watched or surface != "telegram") else [])
