"""What the operators are told and when: the laws, on made-up histories; then that it arrives, in a real chat."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import AdapterSight
from agent_core.limits.budgets import Amount, BudgetRules, Level, Payer
from agent_core.limits.spend import Budget
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.store import open_store
from gateway.chats.supervisor import AdapterState
from gateway.limits.alerts import (
    HOUR_MS,
    AlertKind,
    AlertLimits,
    AlertLine,
    AlertMemory,
    AlertRules,
    Condition,
    Message,
    News,
    due,
    looked,
    open_now,
    told,
)
from gateway.observe.alerting import MIB, Alerter, Announcements, Sights, conditions, of_one
from gateway.storage.storewatch import StoreWatch
from tests import examples
from tests.chats.harness import running, texts
from tests.chats.telegram_harness import telegram_harness

KEYS = ("adapter:a", "adapter:b", "disk", "storage", "spend:day")
RULES = AlertRules(per_hour=4, again_ms=900_000, still_ms=2 * HOUR_MS, settle_ms=60_000)
ROOMY = AlertRules(per_hour=10_000, again_ms=900_000, still_ms=2 * HOUR_MS, settle_ms=60_000)


def condition(key: str, grace_ms: int = 30_000) -> Condition:
    once = key.startswith("spend")
    return Condition(
        key, AlertKind.ADAPTER, f"{key} is wrong.", "" if once else f"{key} is well.", 0 if once else grace_ms
    )


@dataclass(frozen=True)
class Look:
    """What is found at one look, so many ms after the one before."""

    after_ms: int
    wrong: frozenset[str]
    can_tell: bool = True
    news: int = 0


looks = st.lists(
    st.builds(
        Look,
        st.sampled_from((5_000, 5_000, 30_000, 120_000, 1_000_000)),
        st.frozensets(st.sampled_from(KEYS)),
        st.booleans() | st.just(True),
        st.sampled_from((0, 0, 0, 1, 3)),
    ),
    max_size=60,
)


def history(found: Sequence[Look], rules: AlertRules) -> tuple[list[tuple[int, Look, Message]], AlertMemory]:
    """Everything that is said, with its time."""
    memory, now, said, number = AlertMemory(), 1_000_000_000, list[tuple[int, Look, Message]](), 0
    for look in found:
        now += look.after_ms
        for _ in range(look.news):
            number += 1
            memory = memory.with_news(News(f"incident:{number}", f"news {number}"))
        memory = looked(memory, [condition(key) for key in sorted(look.wrong)], now, rules)
        while True:
            memory, message = due(memory, now, rules, can_tell=look.can_tell)
            if message is None:
                break
            memory = told(memory, message, now)
            said.append((now, look, message))
    return said, memory


def by_key(said: Sequence[tuple[int, Look, Message]]) -> dict[str, list[tuple[int, AlertLine]]]:
    lines: dict[str, list[tuple[int, AlertLine]]] = defaultdict(list)
    for at, _, message in said:
        for line in message.lines:
            lines[line.key].append((at, line))
    return lines


@given(looks)
def test_no_hour_has_more_messages_than_allowed(found: list[Look]) -> None:
    times = [at for at, _, _ in history(found, RULES)[0]]
    for start in times:
        assert sum(start <= at < start + HOUR_MS for at in times) <= RULES.per_hour


@given(looks)
def test_a_key_is_told_as_new_only_so_often(found: list[Look]) -> None:
    for key, lines in by_key(history(found, RULES)[0]).items():
        opened = [at for at, line in lines if line.opens]
        gaps = [later - earlier for earlier, later in pairwise(opened)]
        assert all(gap >= RULES.again_ms for gap in gaps), key


@given(looks)
def test_over_is_said_at_most_once_for_each_opening_and_never_without(found: list[Look]) -> None:
    for key, lines in by_key(history(found, RULES)[0]).items():
        if key.startswith(("incident:", "spend:")):  # these have no end that is told
            continue
        is_open = False
        for _, line in lines:
            assert line.opens is not is_open, (key, [one.words for _, one in lines])
            is_open = not line.closes


@given(looks)
def test_nothing_is_said_while_nothing_can_be_stored(found: list[Look]) -> None:
    assert all(look.can_tell for _, look, _ in history(found, RULES)[0])


@given(looks)
def test_news_are_said_once_each_in_their_order_and_alone(found: list[Look]) -> None:
    said, memory = history(found, RULES)
    news = [line.key for _, _, message in said for line in message.lines if line.key.startswith("incident:")]
    wanted = [f"incident:{number + 1}" for number in range(sum(look.news for look in found))]
    assert news + [one.key for one in memory.news] == wanted
    assert all(len(m.lines) == 1 for _, _, m in said if m.lines and m.lines[0].key.startswith("incident:"))


@given(looks)
def test_where_there_is_room_for_all_nothing_is_said_to_have_passed_untold(found: list[Look]) -> None:
    said, memory = history(found, ROOMY)
    assert [message.passed for _, _, message in said if message.passed] == []
    assert memory.passed == 0


@given(looks)
def test_what_is_remembered_is_bounded(found: list[Look]) -> None:
    _, memory = history(found, RULES)
    assert set(memory.episodes) <= set(KEYS)
    assert set(memory.opened) <= set(KEYS)
    assert len(memory.said) <= RULES.per_hour


@given(st.integers(0, 40), st.integers(0, 40))
def test_what_lasts_is_told_after_its_grace_and_its_end_after_it_has_settled(before: int, lasts: int) -> None:
    step = 5_000
    well, wrong = Look(step, frozenset()), Look(step, frozenset({"disk"}))
    said, memory = history([*[well] * before, *[wrong] * lasts, *[well] * 30], ROOMY)
    began = 1_000_000_000 + (before + 1) * step
    last = began + (lasts - 1) * step
    wanted = [(began + 30_000, True), (last + ROOMY.settle_ms, False)] if last - began >= 30_000 else []
    assert [(at, line.opens) for at, _, message in said for line in message.lines] == wanted
    assert not memory.episodes


@given(st.integers(1, 60))
def test_what_began_and_ended_while_nothing_could_be_stored_is_told_afterwards_with_its_times(lasts: int) -> None:
    broken = Look(5_000, frozenset({"storage"}), can_tell=False)
    said, memory = history([*[broken] * lasts, *[Look(5_000, frozenset())] * 30], ROOMY)
    words = [line.words for _, _, message in said for line in message.lines]
    if (lasts - 1) * 5_000 < 30_000:
        assert words == []
    else:
        assert len(words) == 1
        assert re.fullmatch(r"⚠️ From \d\d:\d\d UTC to \d\d:\d\d UTC: storage is wrong\. It is over\.", words[0])
    assert not memory.episodes


@given(st.integers(1, 30 * 24 * 60))
def test_a_clock_that_is_put_back_keeps_nobody_from_hearing_for_longer_than_an_hour(minutes: int) -> None:
    """As after a start with a clock that is hours ahead."""
    start, memory, said = 1_800_000_000_000, AlertMemory(), list[tuple[int, str]]()

    def look(now: int, *keys: str) -> None:
        nonlocal memory
        memory = looked(memory, [condition(key, 0) for key in keys], now, RULES)
        memory, message = due(memory, now, RULES, can_tell=True)
        if message is not None:
            memory = told(memory, message, now)
            said.extend((now, line.words) for line in message.lines)

    for number in range(RULES.per_hour):
        look(start + number, *KEYS[: number + 1])
    assert len(memory.said) == RULES.per_hour
    said.clear()
    back = start - minutes * 60_000
    for now in range(back, back + HOUR_MS + 2 * RULES.settle_ms, RULES.settle_ms):
        look(now, KEYS[-1])
    words = [line for _, line in said]
    assert f"⚠️ {KEYS[-1]} is wrong." in words, "what is new"
    assert any(line.startswith(f"✅ {KEYS[0]} is well.") for line in words), "what is over"


def test_what_flaps_is_told_once() -> None:
    flapping = [Look(5_000, frozenset({"disk"} if number % 4 else set())) for number in range(200)]
    said, _ = history(flapping, ROOMY)
    assert [line.words for _, _, message in said for line in message.lines] == ["⚠️ disk is wrong."]


def test_what_comes_together_is_one_message_and_what_there_is_no_room_for_is_counted() -> None:
    together = [Look(5_000, frozenset(KEYS[:4]))] * 10
    said, memory = history(together, RULES)
    assert [len(message.lines) for _, _, message in said] == [4]
    full = [
        Look(5_000, frozenset(), news=6),
        *[Look(30_000, frozenset({"disk"}))] * 5,
        *[Look(30_000, frozenset())] * 4,
    ]
    said, memory = history([*full, Look(HOUR_MS, frozenset())], RULES)
    assert [message.words for _, _, message in said][:4] == [f"news {number}" for number in range(1, 5)]
    assert memory.passed == 0
    assert said[-1][2].words == "… and 1 more that are over by now; the log has them."
    many = [Condition(f"k{number}", AlertKind.DISK, f"k{number}", "well") for number in range(20)]
    memory = looked(AlertMemory(), many, 0, ROOMY)
    memory, message = due(memory, 0, ROOMY, can_tell=True)
    assert message is not None
    assert (len(message.lines), message.more) == (8, 12)
    assert message.words.splitlines()[-1] == "… and 12 more. All of it: outspoken status"


def test_an_opening_has_the_same_id_in_the_next_process_and_another_one_in_another_hour() -> None:
    def opening(key: str, now: int) -> str:
        memory = looked(AlertMemory(), [condition(key, grace_ms=0)], now, ROOMY)
        _, message = due(memory, now, ROOMY, can_tell=True)
        assert message is not None
        return message.lines[0].id

    assert opening("disk", 9_000_000) == opening("disk", 9_005_000) != opening("disk", 9_000_000 + ROOMY.again_ms)
    assert opening("spend:day", 0) == opening("spend:day", 10**12)  # told once only, whatever dies


# ---------------------------------------------------------------------- what is wrong

BUDGETS = BudgetRules(limits={Budget.DAY: Amount(1000, 0), Budget.PERSON: Amount(10, 0)}, warn_share=0.8)


def sights(**more: object) -> Sights:
    up = (AdapterSight("telegram/1", AdapterState.UP.value),)
    fine: dict[str, object] = {
        "adapters": up, "oldest_undelivered": {"telegram": 1.0}, "store_words": "", "free_bytes": 10**12, "pots": (),
    }  # fmt: skip
    return Sights(**(fine | more))  # pyright: ignore[reportArgumentType]


def found(**more: object) -> list[tuple[str, str]]:
    return [(one.key, one.words) for one in conditions(sights(**more), AlertLimits(), BUDGETS, 0)]


def test_each_trouble_is_a_condition_and_health_is_none() -> None:
    assert found() == []
    assert found(oldest_wait=120.0) == []
    room = "Somebody has waited for 3 min until there is room for their turn: outspoken status."
    assert found(oldest_wait=180.0) == [("queue", room)]
    refused = (AdapterSight("telegram/1", AdapterState.NEEDS_A_PERSON.value, "The token was refused."),)
    assert found(adapters=refused) == [
        ("adapter:telegram/1", "telegram needs somebody to do something: The token was refused.")
    ]
    down = (AdapterSight("telegram/1", AdapterState.DOWN.value, "No route."),)
    stuck = {"telegram": 900.0}
    # One cause, one line
    assert [key for key, _ in found(adapters=down, oldest_undelivered=stuck)] == ["adapter:telegram/1"]
    assert [key for key, _ in found(oldest_undelivered=stuck)] == ["delivery:telegram"]
    assert [key for key, _ in found(store_words="disk I/O error")] == ["storage"]
    assert [key for key, _ in found(free_bytes=511 * MIB)] == ["disk"]
    assert found(free_bytes=None) == []
    kept = (AdapterSight("telegram/1", AdapterState.UP.value, unread=2),)
    assert [key for key, _ in found(adapters=kept)] == ["intake:telegram/1"]
    noted = (AdapterSight("telegram/1", AdapterState.UP.value, "The webhook was taken away."),)
    assert found(adapters=noted) == [("adapter:telegram/1:note", "telegram: The webhook was taken away.")]


@examples.MANY
@given(st.integers(0, 2000))
def test_a_budget_of_everybody_is_told_from_its_warning_share_on_and_when_it_is_full(spent: int) -> None:
    pots = [pot for pot in BUDGETS.pots(Payer("", ""), "", 0) if pot.limit.tokens]
    assert [pot.budget for pot in pots] == [Budget.DAY]
    told_of = found(pots=[(pots[0], Level(spent=Amount(spent, 0)))])
    if spent < 800:
        assert told_of == []
    else:
        ((key, words),) = told_of
        assert key.endswith("full" if spent >= 1000 else "warn")
        assert ("no model is asked" in words) == (spent >= 1000)


def test_a_grace_is_only_for_what_may_mend_itself() -> None:
    (down,) = conditions(sights(adapters=(AdapterSight("x/1", AdapterState.DOWN.value),)), AlertLimits(), None, 0)
    (refused,) = conditions(
        sights(adapters=(AdapterSight("x/1", AdapterState.NEEDS_A_PERSON.value),)), AlertLimits(), None, 0
    )
    assert (down.grace_ms, refused.grace_ms) == (60_000, 0)
    memory = looked(AlertMemory(), [down], 0, RULES)
    assert open_now(memory) == ()
    assert open_now(looked(memory, [down], 60_000, RULES)) == (down,)


def test_what_one_of_several_gateways_has_is_told_by_each_that_has_it_and_what_all_have_once() -> None:
    disk = Condition("disk", AlertKind.DISK, "Only 3 MiB are free.", "There is room again.")
    spent = Condition("spend:day:all", AlertKind.SPEND, "80 % are used.")
    assert of_one(disk, "") == disk
    first, second = of_one(disk, "Gateway 1"), of_one(disk, "Gateway 2")
    assert first.key != second.key
    assert (second.words, second.over) == ("Gateway 2: Only 3 MiB are free.", "Gateway 2: There is room again.")
    assert of_one(spent, "Gateway 1") == of_one(spent, "Gateway 2") == spent


# ---------------------------------------------------------------------- a real store that takes no writes


async def test_a_store_that_failed_is_told_of_when_it_works_again_and_not_before(tmp_path: Path) -> None:
    clock, said = SystemClock(), list[str]()

    async def say(_: str, words: str) -> bool:
        said.append(words)
        return True

    path = tmp_path / "db"
    async with open_store(path, clock=clock, ids=SystemIds(clock), version="test") as store:
        watch = StoreWatch(store, clock)
        alerter = Alerter(
            AlertLimits(free_mib=0), AlertRules(settle_ms=50), store, watch, Announcements(), clock, tuple, dict, None, say
        )  # fmt: skip
        await alerter.look()
        assert (said, alerter.open) == ([], ())
        with closing(sqlite3.connect(path)) as other:  # another program has locked the file
            other.execute("BEGIN EXCLUSIVE")
            assert not await watch.works(0)
            await alerter.look()
            assert [one.key for one in alerter.open] == ["storage"]
            await alerter.look()
            assert said == []
        while not await watch.works(0):
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)
        await alerter.look()
    (words,) = said
    assert re.match(r"⚠️ From \d\d:\d\d UTC to \d\d:\d\d UTC: Nothing could be stored.*It is over\.$", words)


async def test_the_room_that_is_left_is_one_figure_and_what_is_over_is_open_no_more(tmp_path: Path) -> None:
    clock, room = SystemClock(), [159 * MIB]
    async with open_store(tmp_path / "db", clock=clock, ids=SystemIds(clock), version="test") as store:
        watch = StoreWatch(store, clock, lambda: room[0], 64 * MIB)
        alerter = Alerter(AlertLimits(), AlertRules(), store, watch, Announcements(), clock, tuple, dict, None, None)
        await alerter.look()
        assert ["159 MiB" in one.words for one in alerter.open] == [True]
        room[0] = 0
        await watch.look()  # whoever asks for the status looks as well
        await alerter.look()
        assert {one.kind for one in alerter.open} == {AlertKind.STORAGE, AlertKind.DISK}
        room[0] = 3 * MIB
        await watch.look()
        assert all("Only 3 MiB" in one.words for one in alerter.open)
        room[0] = 10_000 * MIB
        assert await watch.works(0)
        assert alerter.open == ()  # it is told as over when it has stayed so for a while


async def test_what_concerns_all_gateways_is_told_by_one_of_them_and_open_at_each(tmp_path: Path) -> None:
    clock, said, ours = SystemClock(), list[str](), [False]

    async def say(_: str, words: str) -> bool:
        said.append(words)
        return True

    async with open_store(tmp_path / "db", clock=clock, ids=SystemIds(clock), version="test") as store:
        alerter = Alerter(
            AlertLimits(free_mib=0), AlertRules(settle_ms=50), store, StoreWatch(store, clock), Announcements(), clock, tuple, dict, None,
            say, laws_words=lambda: "A law is broken.", for_all=lambda: ours[0],
        )  # fmt: skip
        await alerter.look()
        assert ([one.words for one in alerter.open], said) == (["A law is broken."], [])
        ours[0] = True
        await alerter.look()
        assert len(said) == len(alerter.open) == 1


# ---------------------------------------------------------------------- in a chat


async def test_an_alert_comes_to_the_operators_chat_once_also_over_a_restart(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        channel = telegram.private(telegram.person("Olga"))
        more = {
            "OUTSPOKEN_OPERATORS__CHAT": f"telegram/{channel.chat.id}",
            "OUTSPOKEN_OPERATORS__AGAIN_MINUTES": "1440",
            "OUTSPOKEN_OPERATORS__FREE_MIB": str(10**9),  # no disk has so much room
        }
        for _ in range(2):
            async with running(telegram, **more) as up:
                await telegram.until(lambda: len(texts(telegram, channel)) >= 1, 20)
                await asyncio.sleep(0.5)
                assert up.hub.learning.open_incidents == ()
        (told_once,) = texts(telegram, channel)
        assert told_once.startswith("⚠️ Only ")
        assert "MiB are free" in told_once


@pytest.mark.parametrize("again_ms", [60_000, HOUR_MS, 24 * HOUR_MS])
def test_what_lasts_is_told_again_in_its_time_however_seldom_it_may_be_told_as_new(again_ms: int) -> None:
    rules = AlertRules(again_ms=again_ms)
    said, _ = history([Look(600_000, frozenset({"disk"}))] * (6 * 25), rules)
    ids = [line.id for _, _, message in said for line in message.lines]
    assert len(ids) == 1 + 24 * HOUR_MS // rules.still_ms
    assert len(set(ids)) == len(ids), "what was said under an id is not said again"
