"""Limits, by the rules that people and operators rely on: whose memory and folder a message uses, what flaps is told once, what a key has left, whose room it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import TEMPORARY, FromApi, FromChat, SessionKey, TaskTerms, once
from adapters.contract.callers import PROXY, KeyTerms
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.driver.closing import TurnIdentity
from agent_core.driver.spending import Spender
from agent_core.limits.budgets import Amount, BudgetRules, Level, Payer
from agent_core.limits.quotas import QuotaKind, QuotaLimits
from agent_core.limits.spend import Budget
from agent_core.ports import SystemClock
from agent_core.remembered import MEMORY, MemoryScopes
from agent_core.store.memory.rows import AGENT_MARK
from agent_core.store.store import StorageUnavailable
from agent_core.tools.base import NoRoom, ToolSpec
from agent_core.tools.builtin.notes import ENTRY_BYTES, LISTS, OF_MEMORY
from agent_core.tools.offer import ToolsFrom
from gateway.config.sections import Config
from gateway.limits.agents import Agent, AgentMemory
from gateway.limits.alerts import AlertKind, AlertMemory, AlertRules, Condition, Message, due, looked, open_now, told
from gateway.limits.budgets import BudgetBook, payer_of
from gateway.limits.diskuse import Counted, DiskUse, Owners
from gateway.limits.patience import ConnectionStage, ConnectionStanding, CutOff, DoorLimits, overdue
from gateway.limits.quotas import BLOCK_OF_FOLDER, Quotas
from gateway.limits.rates import MINUTE_MS, KeyMeters
from gateway.limits.standing import Standings, TurnStanding
from gateway.limits.whose import ROOMS, Offers, Rooms, memories_of, tools_from, withheld_from, workspace_of
from gateway.toolset import NamedTools, offered, remembering, unknown_names
from tests.store.support import FakeClock

ROOT = Path("/w")
NONE: Any = None
ADDRESS = ChatAddress("telegram", "1", "2")
CHAT = FromChat(
    account="telegram/1", platform_key="m1", session=SessionKey("telegram", "1", "2", "7", "5"), input=(), surface="telegram",
    memory_scope="telegram/1/2/7/5", chat=ChatOrigin(ADDRESS, ChatKind.PRIVATE, ChatPerson("5", "Ada")),
)  # fmt: skip
GROUP = replace(CHAT, chat=replace(CHAT.chat, kind=ChatKind.GROUP))
PAGE = FromApi(
    account="web", platform_key="k", session=SessionKey("web", "page", "s"), input=(), surface="web", memory_scope="web/ada"
)  # fmt: skip
SINGLE = FromApi(
    account="api", platform_key="k", session=once("req_1"), input=(), surface="api", memory_scope="api", own_history=()
)  # fmt: skip
TASK = replace(PAGE, session=SessionKey("task", "", "task:1"), task=TaskTerms("web/page/s//", "ada", 60, 5))


# ---------------------------------------------------------------------- whose it is


def test_what_is_said_in_private_is_not_read_in_a_group_and_what_is_temporary_leaves_nothing() -> None:
    writers = frozenset({"telegram/1/5"})
    assert memories_of(CHAT, frozenset()) == MemoryScopes("telegram/1/2/7/5")
    assert memories_of(CHAT, writers) == MemoryScopes(
        "telegram/1/2/7/5", everybody=memories_of(PAGE, writers).everybody, edits=True
    )
    assert memories_of(GROUP, frozenset()) == MemoryScopes("telegram/1/2/7/5", "telegram/1/2//")
    assert not memories_of(PAGE, writers).edits
    temporary = replace(PAGE, session=SessionKey("web", "page", f"{TEMPORARY}1"))
    assert memories_of(temporary, frozenset()).own == f"session/{temporary.session.text()}"
    assert memories_of(PAGE, frozenset()).own == "web/ada"


def test_a_task_works_in_the_folder_of_the_conversation_that_began_it() -> None:
    assert workspace_of(TASK, ROOT) == workspace_of(PAGE, ROOT)
    assert workspace_of(SINGLE, ROOT) == ROOT / ROOMS / "req_1"


@pytest.mark.parametrize(("brings", "says", "source"), [
    (False, None, ToolsFrom.GATEWAY), (True, None, ToolsFrom.CLIENT), (True, ToolsFrom.BOTH, ToolsFrom.BOTH), (False, ToolsFrom.NONE, ToolsFrom.NONE),
])  # fmt: skip
def test_a_client_that_brings_tools_gets_no_others_unless_it_says_so(
    brings: bool, says: ToolsFrom | None, source: ToolsFrom
) -> None:
    asked = replace(SINGLE, client_tools=({"type": "function"},) if brings else (), tools_from=says)
    assert tools_from(asked) is source
    assert tools_from(CHAT) is ToolsFrom.GATEWAY


def test_everybodys_memory_is_written_by_those_alone_who_may() -> None:
    names = withheld_from(CHAT, frozenset({"telegram/1/8"})) - withheld_from(CHAT, frozenset({"telegram/1/5"}))
    assert len(names) == 1
    assert withheld_from(CHAT) == withheld_from(CHAT, frozenset({"telegram/1/5"}))


def test_what_other_programs_bring_later_is_offered_from_then_on() -> None:
    def schemas(_: object) -> list[object]:
        return [{"function": {"name": name}} for name in tools.names]

    tools: Any = SimpleNamespace(brought=("one",), names=["one"], openai_tools=schemas)
    offers = Offers(tools)
    assert offers.to(CHAT).names == ("one",)
    tools.brought, tools.names = ("one", "two"), ["one", "two"]
    assert offers.to(CHAT).names == ("one", "two")


@pytest.mark.parametrize("at_work", [True, False])
async def test_the_room_of_nobody_goes_with_its_turn_and_not_before(tmp_path: Path, *, at_work: bool) -> None:
    async def works(key: str) -> bool:
        assert key == once("req_1").text()
        return at_work

    store: Any = SimpleNamespace(sessions=SimpleNamespace(at_work=works))
    rooms, room = Rooms(tmp_path, store), tmp_path / ROOMS / "req_1"
    for over in (rooms.left(once("req_1").text()), rooms.sweep()):
        room.mkdir(parents=True, exist_ok=True)
        (room / "file").write_text("x")
        await over
        assert room.exists() is at_work
    room.mkdir(parents=True, exist_ok=True)
    await rooms.left("telegram/1/req_1//")
    assert room.exists(), "of the API alone"


# ---------------------------------------------------------------------- agents


def test_an_agents_own_memory_is_its_own_everywhere_and_a_forgetful_one_has_no_tools_for_any() -> None:
    own = TurnStanding(Agent("coder", memory=AgentMemory.OWN))
    found = own.memories(MemoryScopes("me", "chat", "all"))
    assert (found.own, found.chat, found.everybody) == tuple(f"{one}{AGENT_MARK}coder" for one in ("me", "chat", "all"))
    assert own.memories(MemoryScopes("me")) == MemoryScopes(f"me{AGENT_MARK}coder")
    off = TurnStanding(Agent("coder", memory=AgentMemory.OFF))
    assert off.withheld(()) == OF_MEMORY
    assert off.memories(MemoryScopes("me", "chat")) == MemoryScopes("me", "chat")


@pytest.mark.parametrize("person", ["", "5"])
@pytest.mark.parametrize("kind", ChatKind)
def test_an_agent_that_is_held_to_people_answers_them_where_nobody_else_speaks(kind: ChatKind, person: str) -> None:
    known = Standings({"ops": Agent("ops", people=("telegram/5",))})
    said = replace(CHAT, session=replace(CHAT.session, person=person), chat=replace(CHAT.chat, kind=kind))
    alone = kind is ChatKind.PRIVATE or bool(person)
    assert known.choices(said) == (["ops"] if alone else [])
    assert known.in_chat(said, "ops") == ("ops" if alone else "")


# ---------------------------------------------------------------------- who pays


def test_each_person_and_each_chat_pays_for_itself_and_whom_a_proxy_names_shares_no_key() -> None:
    assert payer_of(CHAT) == Payer("telegram/1/5", "telegram/1/2", "", "", {})
    assert payer_of(GROUP).chat == payer_of(CHAT).chat, "threads of a chat are one"
    assert payer_of(PAGE, TurnStanding(key="laptop")).key == "laptop"
    assert payer_of(PAGE, TurnStanding(key=PROXY)).key == ""
    limited = replace(TASK, task=replace(cast("TaskTerms", TASK.task), tokens=9, nanos=3))
    assert payer_of(limited).limits == {Budget.TURN: Amount(9, 3)}
    assert payer_of(TASK).limits == {}


async def test_a_warning_has_one_name_for_a_budget_in_its_window() -> None:
    rules = BudgetRules(limits={Budget.PERSON: Amount(100, 0)})
    accounts: list[Any] = []
    spender: Any = SimpleNamespace(rules=rules, of=accounts.append)
    names: list[str] = []

    async def warn(warning: Any) -> None:
        names.append(warning.origin)
        assert "80 % of" in warning.said()

    book = BudgetBook(spender, NONE, FakeClock(), warn)
    for turn in ("t_1", "t_2"):
        book.spending(CHAT, TurnIdentity(turn, "s1", 1), TurnStanding())
    pot = rules.pots(payer_of(CHAT), "", FakeClock().now)[0]
    from agent_core.limits.budgets import Reached
    from agent_core.limits.spend import Measure

    for account in accounts:
        await account.warned(Reached(pot, Measure.TOKENS, Level(Amount(80, 0))))
    assert len(names) == 2
    assert len({*names}) == 1, "it is told once, whichever turn comes there"


async def test_a_request_that_was_taken_before_has_its_answer_also_without_budget() -> None:
    from adapters.contract.notaccepted import NotAccepted

    rules = BudgetRules(limits={Budget.PERSON: Amount(100, 0)})
    request = replace(SINGLE, memory_scope="api/ada")
    pot = rules.pots(payer_of(request), "", FakeClock().now)[0]
    stored: list[object] = []

    async def levels(_: object) -> dict[Any, Level]:
        return {pot.key: Level(Amount(100, 0))}

    async def by_key(*_: object) -> object:
        return stored[0] if stored else None

    store: Any = SimpleNamespace(budgets=SimpleNamespace(levels=levels), inbox=SimpleNamespace(by_key=by_key))
    book = BudgetBook(cast("Any", SimpleNamespace(rules=rules)), store, FakeClock())
    with pytest.raises(NotAccepted):
        await book.admit(request, TurnStanding())
    stored.append("there")
    await book.admit(request, TurnStanding())
    await book.admit(CHAT, TurnStanding())  # a chat is told by its turn


# ---------------------------------------------------------------------- alerts

RULES = AlertRules(per_hour=4, again_ms=900_000, still_ms=7_200_000, settle_ms=60_000)
DISK = Condition("disk", AlertKind.DISK, "The disk is full.", "There is room again.", grace_ms=30_000)


def alerts(*spells: tuple[int, int]) -> list[tuple[int, str]]:
    """What is said, with its minute, of a condition that is there from the one minute to the other."""
    memory, said = AlertMemory(), list[tuple[int, str]]()
    for minute_half in range(1_200):
        now = 10**9 + minute_half * 30_000
        wrong = [DISK] if any(first * 2 <= minute_half <= last * 2 for first, last in spells) else []
        memory = looked(memory, wrong, now, RULES)
        memory, message = due(memory, now, RULES, can_tell=True)
        if isinstance(message, Message):
            memory = told(memory, message, now)
            said.append((minute_half // 2, message.words))
    return said


def test_what_comes_back_within_the_quarter_of_an_hour_is_told_as_new_when_that_is_over_and_if_it_lasts() -> None:
    new, over = "⚠️ The disk is full.", "✅ There is room again. (It lasted {} min.)"
    assert alerts((1, 3), (8, 10)) == [(1, new), (4, over.format(2))]
    assert alerts((1, 3), (8, 30)) == [(1, new), (4, over.format(2)), (16, new), (31, over.format(22))]


def test_what_lasts_is_told_again_after_hours_and_each_time_after_as_many() -> None:
    said = alerts((0, 400))
    assert [minute for minute, _ in said] == [0, 120, 240, 360, 401]
    assert [words.startswith("⚠️ Still, since") for _, words in said] == [False, True, True, True, False]


def test_open_is_what_has_lasted_its_grace() -> None:
    memory = looked(AlertMemory(), [DISK], 0, RULES)
    assert open_now(memory) == ()
    assert open_now(looked(memory, [DISK], 30_000, RULES)) == (DISK,)


# ---------------------------------------------------------------------- keys


def test_what_a_key_has_left_is_what_it_may_do_and_when_it_may_do_all() -> None:
    meters = KeyMeters()
    assert [meters.early("laptop", 2, at) for at in (0, 10_000)] == [0, 0]
    refused = [meters.early("laptop", 2, at) for at in (20_000, 30_000)]
    assert refused == [MINUTE_MS - 20_000, MINUTE_MS - 30_000], "who is refused has not asked"
    (left,) = meters.left("laptop", 2, 30_000, 0)
    assert (left.limit, left.left, left.full_in_ms) == (2, 0, 40_000)
    assert meters.early("laptop", 2, MINUTE_MS) == 0


def test_others_hear_of_what_a_key_has_asked_and_not_of_what_was_refused() -> None:
    meters, heard = KeyMeters(), list[str]()
    meters.told = heard.append
    assert [meters.early("laptop", 1, at) for at in (0, 10_000)] == [0, MINUTE_MS - 10_000]
    assert heard == ["laptop"]


# ---------------------------------------------------------------------- room


def quotas(folder: Path, rows: list[tuple[str, str, int, int]], *, away: Collection[int] = ()) -> Quotas:
    asked = iter(range(100))

    async def memories(_: Collection[str]) -> list[tuple[str, str, int, int]]:
        if next(asked) in away:
            raise StorageUnavailable("away")
        return rows

    limits = QuotaLimits({QuotaKind.MEMORY: 1_000 + 3 * ENTRY_BYTES, QuotaKind.WORKSPACE: 100_000}, 1_000_000)
    return Quotas(limits, folder, folder / "workspaces", folder / "outbox", memories, SystemClock())


HOLDER = "telegram/1/ada"


async def test_lists_count_as_what_is_remembered_and_what_could_not_be_counted_is_counted_later(tmp_path: Path) -> None:
    rows = [(f"{HOLDER}//", MEMORY, 400, 1), (f"{HOLDER}///list", LISTS, 500, 1), (f"{HOLDER}//", "setting", 5_000, 1)]
    kept = quotas(tmp_path, rows, away={0})
    place = tmp_path / "workspaces" / "one"
    async with kept.hold(HOLDER, {QuotaKind.MEMORY: 10}, place):
        pass  # nobody could say how much there is
    with pytest.raises(NoRoom):
        async with kept.hold(HOLDER, {QuotaKind.MEMORY: 200}, place):
            pass
    async with kept.hold(HOLDER, {QuotaKind.MEMORY: 50}, place):
        pass


async def test_what_a_write_that_was_cut_off_left_is_counted_and_its_room_is_free(tmp_path: Path) -> None:
    kept = quotas(tmp_path, [])
    place = tmp_path / "workspaces" / "one"

    async def is_cut() -> None:
        async with kept.hold(HOLDER, {QuotaKind.WORKSPACE: 60_000}, place):
            place.mkdir(parents=True)
            (place / "half").write_bytes(b"x" * 40_000)
            raise OSError("cut")

    with pytest.raises(OSError, match="cut"):
        await is_cut()
    async with kept.hold(HOLDER, {QuotaKind.WORKSPACE: 50_000}, place):
        pass
    used = kept.ledger.used(HOLDER)[QuotaKind.WORKSPACE]
    assert 90_000 <= used <= 100_000


def test_operators_are_told_before_the_whole_is_full(tmp_path: Path) -> None:
    kept = quotas(tmp_path, [])
    for used, near in ((899_999, False), (900_000, True), (1_000_000, True)):
        for _ in kept.ledger.end_count(used, {}):
            pass
        assert bool(kept.words()) is kept.nearly_full() is near
    assert "are refused" in kept.words()


# ---------------------------------------------------------------------- tools


@pytest.mark.parametrize(
    ("enabled", "disabled", "there"),
    [((), (), True), (("a",), (), True), (("b",), (), False), ((), ("a",), False), (("a",), ("a",), False)],
)
def test_a_tool_is_offered_if_it_is_named_or_none_is_and_it_is_not_taken_out(
    enabled: tuple[str, ...], disabled: tuple[str, ...], *, there: bool
) -> None:
    spec = cast("ToolSpec", SimpleNamespace(name="a"))
    assert offered(NamedTools(enabled, disabled, ()), spec) is there


@pytest.mark.parametrize("where", ["enabled", "disabled", "approval", "by_agents"])
def test_a_name_that_no_tool_has_is_told_wherever_it_stands(where: str) -> None:
    named: dict[str, tuple[str, ...]] = {
        "enabled": (),
        "disabled": (),
        "approval": (),
        "by_agents": (),
        where: ("reed_file",),
    }
    assert "reed_file" in unknown_names(NamedTools(**named), ["read_file"])
    assert unknown_names(NamedTools(**{**named, where: ("read_file",)}), ["read_file"]) == ""


def test_everybodys_memory_is_written_where_the_operator_has_named_who_may() -> None:
    from gateway.config.reading import load

    def tools(writers: str) -> int:
        config: Config = load(None, {"OUTSPOKEN_TOOLS__MEMORY_WRITERS": writers}).config
        return len(remembering(config.tools, NONE))

    assert (tools(""), tools("telegram/1/5")) == (0, 1)


def test_a_folder_has_one_holder_also_before_it_is_made_and_is_forgotten_when_it_is_gone_for_long(
    tmp_path: Path,
) -> None:
    owners, folder = Owners(tmp_path), tmp_path / "work"
    owners.load()
    assert not owners.claim(folder, "ada"), "there is nothing in it"
    owners.tidy()
    assert owners.holder(folder) == "ada", "it need not be there yet"
    folder.mkdir()
    assert owners.claim(folder, "ben"), "what is in it has not been counted as theirs"
    assert not owners.claim(folder, "ben")
    assert (owners.holder(folder), owners.folders("ada"), owners.folders("ben")) == ("ben", [], [folder])
    owners.tidy()
    folder.rmdir()
    owners.tidy()
    assert owners.holder(folder) == "ben"
    owners.tidy()
    assert (owners.holder(folder), owners.folders("ben")) == ("", [])


async def test_a_key_is_told_what_is_left_beside_what_is_held_for_it() -> None:
    book = BudgetBook(cast("Any", SimpleNamespace(rules=BudgetRules())), NONE, FakeClock())
    standing = TurnStanding(key="laptop", terms=KeyTerms(day_tokens=100))
    payer = payer_of(SINGLE, standing)
    pot = next(one for one in BudgetRules().pots(payer, "", FakeClock().now) if one.budget is Budget.KEY)

    async def levels(_: object) -> dict[Any, Level]:
        return {pot.key: Level(spent=Amount(30, 0), held=Amount(20, 0))}

    vars(book)["_store"] = SimpleNamespace(budgets=SimpleNamespace(levels=levels))
    await book.admit(SINGLE, standing)
    (left,) = book.meters.left("laptop", 0, 0, FakeClock().now)
    assert (left.what, left.limit, left.left) == ("tokens", 100, 50)


@pytest.mark.parametrize(
    "rules", [BudgetRules(), BudgetRules(limits={Budget.DAY: Amount(9)})], ids=["no budgets", "budgets"]
)
def test_calls_are_paid_for_wherever_anybody_has_a_limit_and_counted_for_nobody_else(rules: BudgetRules) -> None:
    book = BudgetBook(Spender(NONE, rules, FakeClock()), NONE, FakeClock())
    limited = replace(PAGE, task=TaskTerms("web/page/s//", "ada", 60, 5, tokens=7))
    agent = Agent("coder", "", (), None, AgentMemory.ON, Amount(8))
    for inbound, standing in (
        (SINGLE, TurnStanding(key="laptop", terms=KeyTerms(day_tokens=100))),
        (limited, TurnStanding()),
        (CHAT, TurnStanding(agent)),
    ):
        assert book.spending(inbound, TurnIdentity("t", "s", 1), standing) is not None
    counted = book.spending(CHAT, TurnIdentity("t", "s", 1), TurnStanding())
    assert (counted is not None) is rules.active


@pytest.mark.parametrize(
    ("stage", "since", "moved", "unread", "why"),
    [
        (ConnectionStage.HEADERS, 1.5, 0, 0, CutOff.HEADERS),
        (ConnectionStage.BODY, 1.5, 0, 0, None),
        (ConnectionStage.BODY, 2.5, 0, 0, CutOff.BODY),
        (ConnectionStage.BODY, 1.5, 3.5, 0, CutOff.BODY),
        (ConnectionStage.IDLE, 3.5, 0, 0, None),
        (ConnectionStage.IDLE, 4.5, 0, 0, CutOff.IDLE),
        (ConnectionStage.SERVED, 99, 99, 0, None),
        (ConnectionStage.SERVED, 99, 99, 2.5, None),
        (ConnectionStage.SERVED, 99, 99, 3.5, CutOff.READER),
    ],
)
def test_each_silence_has_its_own_time(
    stage: ConnectionStage, since: float, moved: float, unread: float, why: CutOff | None
) -> None:
    limits = DoorLimits(header_seconds=1, body_seconds=2, stalled_seconds=3, idle_seconds=4)
    standing = ConnectionStanding(stage, 100 - since, 100 - moved, int(bool(unread)), 100 - unread)
    assert overdue(standing, 100, limits) is why


def test_what_lies_in_several_folders_of_somebody_is_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, workspaces = tmp_path / "outbox", tmp_path / "workspaces"
    quotas = Quotas(QuotaLimits({}), tmp_path, workspaces, spool, cast("Any", None), FakeClock())

    def holder(folder: Path) -> str:
        return {"a": "ada", "b": "bob"}.get(folder.name[0], "")

    monkeypatch.setattr(quotas._owners, "holder", holder)
    sizes = {
        spool / "a1": 10,
        spool / "a2": 20,
        workspaces / "a1": 5,
        workspaces / "a2": 6,
        spool / "b": 7,
        spool / "x": 9,
    }
    counted = Counted(0, {folder: DiskUse(size, 1) for folder, size in sizes.items()})
    assert quotas._by_holder(counted, {"bob": 3}) == {
        "ada": {QuotaKind.SPOOL: 30 + 2 * BLOCK_OF_FOLDER, QuotaKind.WORKSPACE: 11, QuotaKind.FILES: 2},
        "bob": {QuotaKind.SPOOL: 7 + BLOCK_OF_FOLDER, QuotaKind.MEMORY: 3},
    }
