"""What a turn sets going for later: whom it is told, how often it may come, and that its end is told before it counts as over."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import Ended, FromApi, FromChat, LeftOpen, SessionKey, Ticket
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.failures.exits import ExitCode
from agent_core.limits.budgets import Amount
from agent_core.messages import InputMessage
from agent_core.rules.taint import PLANTED
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.schedules.rows import ScheduleRow, ScheduleState
from agent_core.store.store import Conflict
from agent_core.tools.base import NotPossible, ToolStatus
from agent_core.turn.view import View
from gateway.commands.tasks import TaskCommands
from gateway.config.types import SessionPolicy
from gateway.later import followups, tasks
from gateway.later.followups import FollowUpsHere, follow_up
from gateway.later.parts import NOT_YET, Later
from gateway.later.reminders import CancelScheduled, SetLater, rule_of, time_tools
from gateway.later.sending import SendMessage, delivered
from gateway.later.tasks import TaskEnd, TaskLimits, TaskPlan, Tasks, work_of
from gateway.later.zones import ZoneSaid
from gateway.people.access import PersonStanding
from gateway.queues import inbox
from gateway.schedule import toolspecs
from gateway.schedule.schedules import ScheduleKind
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

KEY = SessionKey("telegram", "1", "2")
CHAT = FromChat(
    account="telegram/1", platform_key="77", session=KEY, input=(InputMessage("run it"),), surface="telegram",
    memory_scope=KEY.text(), chat=ChatOrigin(ChatAddress("telegram", "1", "2"), ChatKind.PRIVATE, ChatPerson("5", "Ada"), message="77"),
)  # fmt: skip
PAGE = FromApi(
    account="web", platform_key="k", session=SessionKey("web", "page", "s"), input=(InputMessage("run it"),), surface="web",
    memory_scope="web/ada", key="laptop", browser="b", can_approve=True,
)  # fmt: skip
FULL, AWAY = NotAccepted("full", NotAcceptedCode.QUEUE_FULL), NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)
USED_UP = NotAccepted("Your budget is used up.", NotAcceptedCode.QUOTA)
LIMITS = TaskLimits(2, 3, 60, 7, 30, Amount(900, 5))


def _mine(key: str) -> bool:
    return key == KEY.text()


def _state(rows: list[object]) -> tuple[str, str]:
    return ("sent" if rows else "waiting"), ""


class Gateway:
    """As much of it as a follow-up needs; messages are refused as `refusals` say."""

    def __init__(self, *refusals: NotAccepted, standing: PersonStanding = PersonStanding.ALLOWED) -> None:
        self.refusals, self.standing = [*refusals], standing
        self.accepted: list[tuple[Any, object]] = []
        self.posted: list[tuple[str, str]] = []
        self.rows: dict[str, ScheduleRow] = {}
        self.order: list[str] = []
        self.conflicts = 0
        self.clock = FakeClock()
        members = SimpleNamespace(accounts=("telegram/1",), standing_of=self.stands)
        portion = SimpleNamespace(mine=_mine)
        accepting = SimpleNamespace(accept=self.accept, queues=SimpleNamespace(known=gives(None)), portion=portion)
        self.parts: Any = SimpleNamespace(
            accepting=accepting,
            members=members,
            outbox=None,
            post=self.post,
            alone=self.alone,
            stored=lambda: None,
            post_on_page=self.post,
        )
        store = SimpleNamespace(schedules=self, inbox=self)
        self.later = Later(cast("Any", store), self.clock, lambda: "UTC", 5)
        self.follow_ups = FollowUpsHere(self.later)
        self.tasks = Tasks(self.later, self.follow_ups, LIMITS)

    def stands(self, _: object) -> PersonStanding:
        return self.standing

    def open(self) -> Gateway:
        self.later.open(self.parts)
        return self

    async def accept(self, inbound: Any, *, busy: object = None) -> Ticket:
        if self.refusals:
            raise self.refusals.pop(0)
        self.accepted.append((inbound, busy))
        self.order.append("told")
        return Ticket(7, "s1", duplicate=False)

    async def post(self, _address: object, key: str, words: str) -> int:
        self.posted.append((key, words))
        return 9

    @asynccontextmanager
    async def alone(self, _: str) -> AsyncGenerator[None]:
        yield

    async def nothing_said(self, *_: object) -> list[Any]:
        return []

    # as store.inbox

    async def inputs(self, turn: str) -> list[Any]:
        asked = {"chat": CHAT, "page": PAGE, "api": replace(PAGE, surface="api"), "once": replace(PAGE, own_history=())}
        return [SimpleNamespace(body=inbox.encode(asked[turn]))] if turn in asked else []

    # as store.schedules

    async def one(self, name: str) -> ScheduleRow | None:
        return self.rows.get(name)

    async def of(self, key: str, *kinds: str) -> list[ScheduleRow]:
        return [one for one in self.rows.values() if one.session_key == key and one.kind in kinds]

    async def named(self, _: str) -> list[ScheduleRow]:
        return [*self.rows.values()]

    async def put(self, row: ScheduleRow, _turn: str = "") -> None:
        if row.state is ScheduleState.DONE:
            self.order.append("over")
            if self.conflicts:
                self.conflicts -= 1
                raise Conflict("changed")
        self.rows[row.schedule] = row


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter(range(20))

    async def passes(_: float) -> None:
        assert next(left, None) is not None, "it is tried for ever"

    monkeypatch.setattr(followups.asyncio, "sleep", passes)


# ---------------------------------------------------------------------- follow-ups


@pytest.mark.parametrize(
    ("refusals", "said"),
    [
        ((), ""),
        ((AWAY, AWAY), ""),
        ((FULL,), "Too many messages wait just now"),
        ((AWAY, USED_UP), "Your budget is used up."),
    ],
)
async def test_what_came_of_something_waits_its_turn_and_is_said_at_least(
    refusals: tuple[NotAccepted, ...], said: str
) -> None:
    gateway = Gateway(*refusals).open()
    assert await gateway.follow_ups.begin_for(CHAT, "command:2", "It has ended", "data")
    assert [(one.platform_key, busy) for one, busy in gateway.accepted] == (
        [] if said else [("command:2", SessionPolicy.QUEUE)]
    )
    assert len(gateway.posted) == bool(said)
    if said:
        assert gateway.posted[0][0] == "said:command:2"
        assert said in gateway.posted[0][1]


@pytest.mark.parametrize("otherwise", ["", "It was missed."])
@pytest.mark.parametrize("surface", ["web", "api"])
async def test_where_no_turn_can_be_had_a_page_is_told_so_and_a_program_has_nobody_who_looks(
    surface: str, otherwise: str
) -> None:
    gateway = Gateway(USED_UP).open()
    told = await gateway.follow_ups.begin_for(replace(PAGE, surface=surface), "k", "It has ended", "data", otherwise)
    assert told is (surface == "web")
    said = f"{otherwise} (Your budget is used up.)" if otherwise else "🔔 It has ended\n"
    assert [(key, words.startswith(said)) for key, words in gateway.posted] == ([("said:k", True)] if told else [])


async def test_on_a_page_where_nothing_is_said_but_by_turns_it_waits_for_room() -> None:
    gateway = Gateway(FULL, AWAY, FULL).open()
    with pytest.raises(NotAccepted):
        await gateway.follow_ups.offered(PAGE, "command:2", "It has ended", "data")
    assert await gateway.follow_ups.begin_for(PAGE, "command:2", "It has ended", "data")
    assert [one.platform_key for one, _ in gateway.accepted] == ["command:2"]


@pytest.mark.parametrize("account", ["telegram/1", "telegram/gone"])
@pytest.mark.parametrize("standing", PersonStanding)
async def test_who_may_not_talk_any_more_is_told_nothing(standing: PersonStanding, account: str) -> None:
    gateway = Gateway(standing=standing).open()
    told = await gateway.follow_ups.begin_for(replace(CHAT, account=account), "k", "t", "w")
    assert told is (standing is not PersonStanding.STRANGER and account == "telegram/1")
    assert len(gateway.accepted) == told


@pytest.mark.parametrize("asked", [CHAT, PAGE])
def test_what_came_of_something_is_nobodys_words(asked: Any) -> None:
    found = follow_up(asked, "k", "t", "w")
    assert found is not None
    assert all(one.foreign for one in found.input)


def test_every_tool_that_some_gateway_offers_for_later_is_known_by_its_name() -> None:
    gateway = Gateway()
    there = {tool.spec.name for tool in time_tools(gateway.later, gateway.tasks, {"team": "telegram/1/2/"})}
    assert {"start_task", "send_message"} <= there
    assert {*toolspecs.later_names()} == {*there, "speak"}


async def test_before_the_gateway_is_whole_nothing_is_begun() -> None:
    gateway = Gateway()
    assert not await gateway.follow_ups.begin_for(CHAT, "k", "t", "w")
    with pytest.raises(NotPossible, match=NOT_YET[:20]):
        gateway.later.parts  # noqa: B018 - it raises


@pytest.mark.parametrize(
    ("turn", "sees"), [("chat", True), ("page", True), ("api", False), ("once", False), ("none", False)]
)
async def test_what_comes_later_is_set_where_somebody_sees_it(turn: str, *, sees: bool) -> None:
    gateway = Gateway().open()
    if sees:
        assert (await gateway.later.seen_by(turn)).input
    else:
        with pytest.raises(NotPossible):
            await gateway.later.seen_by(turn)


# ---------------------------------------------------------------------- how often


@pytest.mark.parametrize(
    ("when", "kind", "may"),
    [
        ("every 5 minutes", ScheduleKind.REMINDER, True),
        ("every 5 minutes", ScheduleKind.PROMPT, False),
        ("cron */9 * * * *", ScheduleKind.PROMPT, False),
        ("cron 0,9 12 * * *", ScheduleKind.PROMPT, False),
        ("cron 0,10 12 * * *", ScheduleKind.PROMPT, True),
        ("every 10 minutes", ScheduleKind.PROMPT, True),
        ("in 1 minute", ScheduleKind.PROMPT, True),
    ],
)
def test_a_prompt_comes_every_ten_minutes_at_most(when: str, kind: ScheduleKind, *, may: bool) -> None:
    said = ZoneSaid("UTC", "as it was set here", sure=True)
    if may:
        rule_of(when, FakeClock().now, said, kind)
    else:
        with pytest.raises(NotPossible, match="every 10 minutes at most"):
            rule_of(when, FakeClock().now, said, kind)


async def test_what_is_set_is_looked_at_at_once_and_by_the_same_call_once() -> None:
    gateway = Gateway().open()
    looked: list[str] = []
    gateway.parts.stored = lambda: looked.append("looked")
    vars(gateway.later.store)["memory"] = SimpleNamespace(entries=gateway.nothing_said)
    tool = SetLater(gateway.later, toolspecs.REMIND, ScheduleKind.REMINDER)
    for _ in range(2):
        outcome = await tool.run({"when": "in 20 minutes", "what": "tea"}, context())
        assert "Reminder 1 comes in this chat" in outcome.text
    (row,) = gateway.rows.values()
    assert (row.schedule, row.next_at, looked) == ("remind:t_1:3", gateway.clock.now + 1_200_000, ["looked"])


async def test_so_much_may_be_set_in_a_conversation_whatever_tasks_run_in_it_and_each_has_a_number_of_its_own() -> None:
    gateway = Gateway().open()
    vars(gateway.later.store)["memory"] = SimpleNamespace(entries=gateway.nothing_said)
    for name in "ab":
        await gateway.tasks.start(context(name), "One", "Do it.")
    tool = SetLater(gateway.later, toolspecs.REMIND, ScheduleKind.REMINDER)
    wish = {"when": "in 20 minutes", "what": "tea"}
    for number in range(gateway.later.most):
        await tool.run(wish, context(f"t_1:{number}"))
    with pytest.raises(NotPossible, match="5 things are set here already"):
        await tool.run(wish, context("t_1:99"))
    assert sorted(row.number for row in gateway.rows.values()) == [*range(1, 8)]


# ---------------------------------------------------------------------- writing elsewhere


@pytest.mark.parametrize("state", ["sent", "failed", "waiting"])
@pytest.mark.parametrize("unknown", [True, False])
def test_the_model_is_told_of_a_message_what_is_known(state: str, *, unknown: bool) -> None:
    told = delivered(state, "why", "team", unknown=unknown)
    status = {"sent": ToolStatus.OK, "failed": ToolStatus.FAILED}.get(
        state, ToolStatus.UNKNOWN if unknown else ToolStatus.OK
    )
    assert (told.status, told.text.startswith("Sent: ")) == (status, state == "sent")


async def test_a_call_that_is_begun_again_posts_under_the_same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway().open()

    async def find(_: str) -> ChatAddress:
        return ChatAddress("telegram", "1", "9")

    async def of(origin: str) -> list[Any]:
        return [SimpleNamespace(row=SimpleNamespace(state=DeliveryState.SENT, cause=""))] if origin == "inbox:9" else []

    monkeypatch.setattr("gateway.later.sending.state_of", _state)
    gateway.parts.find = find
    vars(gateway.later.store)["deliveries"] = SimpleNamespace(of=of)
    tool = SendMessage(gateway.later, {"team": "telegram/9"})
    for _ in range(2):
        context: Any = SimpleNamespace(key="t_1:2")
        outcome = await tool.run({"to": "team", "text": "hello"}, context)
        assert outcome.text.startswith("Sent: ")
    assert gateway.posted == [("sent:t_1:2", "hello")] * 2


async def test_a_message_whose_answer_was_lost_is_not_said_to_go_out(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway().open()

    async def of(_: str) -> list[Any]:
        parts = (DeliveryState.SENT, DeliveryState.UNKNOWN)
        return [SimpleNamespace(row=SimpleNamespace(state=state, cause="")) for state in parts]

    async def find(_: str) -> ChatAddress:
        return ChatAddress("telegram", "1", "9")

    def waits(_: object) -> tuple[str, str]:
        return "waiting", "no answer"

    monkeypatch.setattr("gateway.later.sending.state_of", waits)
    monkeypatch.setattr("gateway.later.sending.WAIT_SECONDS", 0.0)
    gateway.parts.find = find
    vars(gateway.later.store)["deliveries"] = SimpleNamespace(of=of)
    context: Any = SimpleNamespace(key="t_1:2")
    outcome = await SendMessage(gateway.later, {"team": "telegram/9"}).run({"to": "team", "text": "hello"}, context)
    assert outcome.status is ToolStatus.UNKNOWN
    assert outcome.text.startswith("Nobody knows")


# ---------------------------------------------------------------------- tasks


def context(key: str = "t_1:3", *, turn: str = "chat", tainted: bool = False) -> Any:
    return SimpleNamespace(turn=turn, key=key, tainted=tainted)


@pytest.mark.parametrize("asked", [CHAT, PAGE, replace(PAGE, surface="api")])
@pytest.mark.parametrize("tainted", [True, False])
def test_a_task_is_paid_asked_and_approved_as_what_began_it(asked: Any, *, tainted: bool) -> None:
    work = work_of(asked, "task:1", 4, "Report", "Write it.", LIMITS, tainted=tainted)
    page = isinstance(asked, FromApi)
    assert (work.key, work.browser, work.memory_scope) == (("laptop", "b", "web/ada") if page else ("", "", KEY.text()))
    assert work.can_approve is (not page or asked.surface == "web")
    assert work.input[0].foreign == (PLANTED if tainted else "")
    terms = work.task
    assert terms is not None
    assert (terms.parent, terms.person, terms.number) == (asked.session.text(), "ada" if page else "5", 4)
    assert (terms.seconds, terms.steps, terms.tokens, terms.nanos) == (60, 7, 900, 5)


async def test_a_call_that_is_begun_again_begins_no_second_task_and_only_so_many_run() -> None:
    gateway = Gateway().open()
    first = await gateway.tasks.start(context("a"), "One", "Do it.")
    assert await gateway.tasks.start(context("a"), "One", "Do it.") == first
    second = await gateway.tasks.start(context("b"), "Two", "Do it.")
    assert (first.number, second.number) == (1, 2)
    with pytest.raises(NotPossible, match="2 tasks run here already"):
        await gateway.tasks.start(context("c"), "Three", "Do it.")
    await gateway.tasks.start(context("d", turn="page"), "Four", "Do it.")
    gateway.rows = {name: row for name, row in gateway.rows.items() if row.schedule != "task:b"}
    await gateway.tasks.start(context("e"), "Five", "Do it.")
    with pytest.raises(NotPossible, match="as many tasks as it may"):
        await gateway.tasks.start(context("f", turn="page"), "Six", "Do it.")


async def test_the_end_of_a_task_is_told_first_and_noted_however_often_its_row_changes_meanwhile() -> None:
    gateway = Gateway().open()
    gateway.conflicts = 2
    row = await gateway.tasks.start(context(), "One", "Do it.")
    plan = tasks._plans().validate_json(row.body)
    await gateway.tasks._tell(row, plan, "Task 1 is done", "42")
    assert gateway.order == ["told", "over", "over", "over"]
    assert gateway.rows[row.schedule].state is ScheduleState.DONE
    assert [one.platform_key for one, _ in gateway.accepted] == [f"{row.schedule}:ended"]


class Follower:
    """Sees one thing of a task."""

    def __init__(self, sight: object) -> None:
        self.sight = sight

    async def __aenter__(self) -> Follower:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def next(self, _: float) -> object:
        return self.sight


@pytest.mark.parametrize("code", [ExitCode.ANSWERED, ExitCode.STOPPED])
async def test_what_a_task_used_and_whether_it_is_done_is_kept_of_it(code: ExitCode) -> None:
    gateway = Gateway().open()
    exit_ = SimpleNamespace(code=code)
    summary = SimpleNamespace(input_tokens=40, output_tokens=2)
    view = SimpleNamespace(bubbles=(), text="42")
    ended = Ended("t_2", cast("Any", view), cast("Any", exit_), (), cast("Any", summary))
    gateway.parts.follow = gives(Follower(ended))
    row = await gateway.tasks.start(context(), "One", "Do it.")
    gateway.clock.now += 90_000
    await gateway.tasks._look_after(row)
    kept = tasks._plans().validate_json(gateway.rows[row.schedule].body).ended
    assert kept == TaskEnd(done=code is ExitCode.ANSWERED, seconds=90, tokens=42)


async def test_what_another_gateway_goes_on_with_is_not_over() -> None:
    gateway = Gateway().open()
    gateway.parts.follow = gives(Follower(LeftOpen("t_1", View((), open=True))))
    row = await gateway.tasks.start(context(), "One", "Do it.")
    gateway.parts.accepting.portion.mine = gives(False)
    await gateway.tasks._look_after(row)
    assert gateway.rows[row.schedule].state is ScheduleState.ACTIVE
    assert gateway.order == ["told"], "it was begun, and no end is told"


async def test_the_end_of_what_was_not_seen_for_a_while_is_told_as_well() -> None:
    """A database may be away for half a minute, and nobody has taken anything over."""
    gateway = Gateway().open()
    summary, view = SimpleNamespace(input_tokens=40, output_tokens=2), SimpleNamespace(bubbles=(), text="42")
    exit_ = SimpleNamespace(code=ExitCode.ANSWERED)
    seen: list[object] = [
        *[LeftOpen("", View((), open=True))] * 3, Ended("t_2", cast("Any", view), cast("Any", exit_), (), cast("Any", summary)),
    ]  # fmt: skip

    def follow(_: Ticket) -> Follower:
        return Follower(seen.pop(0))

    gateway.parts.follow = follow
    row = await gateway.tasks.start(context(), "One", "Do it.")
    await gateway.tasks._look_after(row)
    assert gateway.rows[row.schedule].state is ScheduleState.DONE
    assert [one.platform_key for one, _ in gateway.accepted] == [row.schedule] * 4 + [f"{row.schedule}:ended"]


async def test_the_tasks_of_others_are_left_to_them() -> None:
    gateway = Gateway().open()
    mine = await gateway.tasks.start(context("a"), "One", "Do it.")
    gateway.rows["task:b"] = replace(mine, schedule="task:b", session_key="discord/1/9//")
    gateway.rows["task:c"] = replace(mine, schedule="task:c", state=ScheduleState.DONE)
    watched: list[str] = []
    gateway.tasks._watch = lambda row: watched.append(row.schedule)
    await gateway.tasks._take_up()
    assert watched == ["task:a"]


@pytest.mark.parametrize(("action", "may"), [("cancel", True), ("pause", False), ("resume", False)])
async def test_a_task_that_runs_can_only_be_cancelled(action: str, *, may: bool) -> None:
    gateway = Gateway().open()
    row = await gateway.tasks.start(context(), "One", "Do it.")
    tool = CancelScheduled(gateway.later, gateway.tasks)
    if may:
        await tool.run({"number": 1, "action": action}, context())
    else:
        with pytest.raises(NotPossible, match="only be cancelled"):
            await tool.run({"number": 1, "action": action}, context())
    assert looks_plan(gateway.rows[row.schedule]).cancelled is may, "also for the next process"
    assert (gateway.rows[row.schedule] == row) is not may


@pytest.mark.parametrize(
    ("words", "gone"),
    [("stop 1", ["1"]), ("cancel 12", ["12"]), ("stop all", ["1", "12"]), ("stop 2", []), ("stop", [])],
)
async def test_a_person_stops_the_task_that_they_name(words: str, gone: list[str]) -> None:
    gateway = Gateway().open()
    row = await gateway.tasks.start(context(), "One", "Do it.")
    gateway.rows = {n: replace(row, schedule=n, number=int(n)) for n in ("1", "12")}
    commands = TaskCommands(gateway.tasks, gateway.later.store, gateway.clock)
    request: Any = SimpleNamespace(key=KEY.text(), words=words)
    await commands.tasks(request)
    assert [name for name, one in gateway.rows.items() if looks_plan(one).cancelled] == gone


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_task_that_is_cancelled_before_its_message_is_stored_is_stopped_as_soon_as_it_is(
    *, cancelled: bool
) -> None:
    gateway = Gateway().open()
    stopped: list[Ticket] = []

    async def stop(ticket: Ticket) -> None:
        stopped.append(ticket)

    async def followed(*_: object) -> None: ...

    gateway.parts.stop = stop
    row = await gateway.tasks.start(context(), "One", "Do it.")
    if cancelled:
        await gateway.tasks.cancel(row)
    plan = looks_plan(row)
    looks: Any = Tasks(gateway.later, gateway.follow_ups, LIMITS)  # of the next process
    looks._followed = followed
    await looks._ended(row, plan)
    assert [one.inbox_id for one in stopped] == ([7] if cancelled else [])


def looks_plan(row: ScheduleRow) -> TaskPlan:
    plans: Any = tasks
    return plans._plans().validate_json(row.body)
