"""The task that claims, on a store that says what is due: each occurrence once, one that fails holds up no other, and what nobody wants any more is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from adapters.contract.base import FromApi, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.bell import Bell
from agent_core.messages import InputMessage
from agent_core.store.schedules.rows import Claimed, ScheduleRow, ScheduleState
from gateway.chats.scheduler import LONGEST_SLEEP_SECONDS, RETRY_SECONDS, Scheduler, machine_zone, zone_in_force
from gateway.config.schedule import Schedule, ScheduleEntry
from gateway.later.parts import PAGE
from gateway.people.access import PersonStanding
from gateway.schedule import schedules, times
from gateway.schedule.schedules import Plan, ScheduleKind, decide, key_of
from gateway.schedule.times import Every, IfMissed, Once, Rule
from tests.store.support import FakeClock

CHAT = ChatAddress("telegram", "1", "2")
ADA = ChatOrigin(CHAT, ChatKind.PRIVATE, ChatPerson("2", "Ada"))
HOUR_MS = 3_600_000


class World:
    """What is stored, and what is told. Make it inside the event loop."""

    def __init__(self, *entries: ScheduleEntry) -> None:
        self.clock = FakeClock()
        self.rows: dict[str, ScheduleRow] = {}
        self.claims: list[tuple[str, int]] = []
        self.aside: list[str] = []
        self.strangers: set[str] = set()
        self.ours = True
        self.owned: list[str] = []
        self.bad: set[str] = set()
        self.page_is_there, self.page_is_full = True, False
        self.told: list[str] = []
        damage = SimpleNamespace(sounds=0)
        set_aside = SimpleNamespace(damage=damage, check=lambda: None, schedules={}, schedule=self._aside)
        accepting = SimpleNamespace(
            aside=set_aside, portion=SimpleNamespace(mine=self._ours), queues=SimpleNamespace(release=self._nothing),
            owned=self._owned,
        )  # fmt: skip
        members = SimpleNamespace(accounts={"telegram/1"}, standing_of=self._standing)
        store = SimpleNamespace(schedules=self, sessions=self)
        self.scheduler = Scheduler(
            Schedule(entries=entries), "UTC", cast("Any", store), cast("Any", accepting), cast("Any", members),
            cast("Any", self), Bell(), self.clock, self._resolve, self._on_page,
        )  # fmt: skip

    def _standing(self, origin: ChatOrigin) -> PersonStanding:
        return PersonStanding.STRANGER if origin.person.id in self.strangers else PersonStanding.ALLOWED

    async def _resolve(self, words: str) -> ChatAddress:
        del words
        return CHAT

    async def _on_page(self, page: FromApi, key: str, title: str, words: str, otherwise: str) -> bool:
        del page, title, words
        assert "Missed" in otherwise
        if self.page_is_full:
            raise NotAccepted("Too many messages wait.", NotAcceptedCode.QUEUE_FULL)
        self.told.append(key)
        return self.page_is_there

    def _aside(self, name: str, words: str, chat: str) -> None:
        del words, chat
        self.aside.append(name)

    def _ours(self, _: str) -> bool:
        return self.ours

    @staticmethod
    def _nothing(_: object) -> None:
        return None

    async def _owned(self, key: str, session: str) -> str:
        del session
        self.owned.append(key)
        return key

    # what a store is asked

    async def by_key(self, key: str) -> Any:
        return SimpleNamespace(session=f"of {key}")

    async def due(self, now: int) -> list[ScheduleRow]:
        return [one for one in self.rows.values() if one.next_at is not None and one.next_at <= now]

    async def next_occurrence(self, without: Mapping[str, object]) -> int | None:
        found = [one.next_at for one in self.rows.values() if one.next_at is not None and one.schedule not in without]
        return min(found, default=None)

    async def named(self, prefix: str) -> list[ScheduleRow]:
        return [one for name, one in self.rows.items() if name.startswith(prefix)]

    async def put(self, row: ScheduleRow, _turn: str = "") -> None:
        known = self.rows.get(row.schedule)
        assert known is None or row.rev == known.rev + 1, "somebody else may have changed it meanwhile"
        self.rows[row.schedule] = row

    # what takes commands

    async def take(self, inbound: Any, command: object, cursor: object = None, *, claim: Claimed) -> Any:
        del command, cursor
        if claim.schedule.schedule in self.bad:
            raise ZeroDivisionError
        assert claim.schedule.rev == self.rows[claim.schedule.schedule].rev + 1
        self.rows[claim.schedule.schedule] = claim.schedule
        self.claims.append((claim.schedule.schedule, claim.occurrence.due_at))
        return SimpleNamespace(duplicate=False, inbox_id=len(self.claims)), None

    # what a test does

    def sets(self, name: str, rule: Rule, origin: ChatOrigin = ADA, **more: Any) -> ScheduleRow:
        plan = Plan("tea", origin, "UTC", **more)
        now = self.clock.now_ms()
        row = schedules.reminder(1, name, rule, plan, SessionKey("telegram", "1", "2"), now, now)
        assert row is not None
        self.rows[row.schedule] = row
        return row

    async def look(self, after_ms: int = 0) -> float:
        self.clock.now += after_ms
        return await self.scheduler._pass()


def entry(every: str) -> ScheduleEntry:
    return ScheduleEntry(name="morning", prompt="What is new?", chat="telegram/2", every=every)


async def test_what_is_due_is_claimed_once_and_what_is_over_is_done() -> None:
    world = World()
    once = world.sets("a", Once(world.clock.now + 60_000))
    every = world.sets("b", Every(3_600, world.clock.now))
    assert await world.look() == LONGEST_SLEEP_SECONDS
    assert await world.look(50_000) == pytest.approx(10.0)
    for _ in range(3):
        await world.look(15_000)
    assert world.claims == [(once.schedule, once.next_at)]
    assert world.rows[once.schedule].state is ScheduleState.DONE
    await world.look(HOUR_MS)
    assert [one for one in world.claims if one[0] == every.schedule] == [(every.schedule, every.next_at)]
    assert world.rows[every.schedule].state is ScheduleState.ACTIVE


async def test_what_comes_due_while_it_looks_is_tried_at_once_and_what_it_tried_in_vain_a_while_later() -> None:
    world = World()
    row = world.sets("a", Once(world.clock.now + 1_000))
    assert row.next_at is not None
    row_at = row.next_at
    asked = world.next_occurrence

    async def slowly(without: Mapping[str, object]) -> int | None:
        world.clock.now = row_at
        return await asked(without)

    world.next_occurrence = slowly
    assert await world.look() < 0.1
    world.bad = {row.schedule}
    assert await world.look() == RETRY_SECONDS


async def test_what_cannot_be_read_is_set_aside_until_it_is_another_and_one_that_fails_holds_up_no_other() -> None:
    world = World()
    names = [world.sets(name, Once(world.clock.now + 1_000)).schedule for name in "abc"]
    sound = world.rows[names[0]]
    world.rows[names[0]] = replace(sound, body=b"{}")
    world.bad = {names[1]}
    for _ in range(3):
        await world.look(5_000)
    assert world.aside == [names[0]]
    assert [name for name, _ in world.claims] == [names[2]]
    world.rows[names[0]] = replace(sound, rev=sound.rev + 1)
    await world.look(5_000)
    assert [name for name, _ in world.claims] == [names[2], names[0]]


async def test_who_may_not_talk_any_more_is_reminded_of_nothing() -> None:
    world = World()
    row = world.sets("a", Every(3_600, world.clock.now))
    world.strangers = {"2"}
    for _ in range(3):
        await world.look(HOUR_MS)
    assert world.claims == []
    assert world.rows[row.schedule].state is ScheduleState.CANCELLED


def sets_on_page(world: World) -> ScheduleRow:
    """A prompt, each hour."""
    page = FromApi(
        account="web", platform_key="k", session=SessionKey("web", "page", "c"), input=(InputMessage(""),), surface=PAGE,
        memory_scope="web/ada",
    )  # fmt: skip
    origin = replace(ADA, address=ChatAddress(PAGE, "page", "c"))
    row = replace(world.sets("a", Every(3_600, world.clock.now), origin, page=page), kind=ScheduleKind.PROMPT.value)
    world.rows[row.schedule] = row
    return row


async def test_what_a_page_has_no_room_for_waits_for_it_and_holds_up_no_other() -> None:
    world = World()
    row = sets_on_page(world)
    other = world.sets("b", Every(3_600, world.clock.now))
    world.page_is_full = True
    assert await world.look(HOUR_MS) == RETRY_SECONDS
    assert [name for name, _ in world.claims] == [other.schedule]
    assert world.rows[row.schedule] == row
    world.page_is_full = False
    await world.look(5_000)
    assert world.told == [f"schedule:{row.schedule}:{row.next_at}"]
    assert world.rows[row.schedule].state is ScheduleState.ACTIVE


async def test_what_a_page_wanted_that_is_gone_is_over() -> None:
    world = World()
    row = sets_on_page(world)
    await world.look(HOUR_MS)
    assert world.rows[row.schedule].state is ScheduleState.ACTIVE
    world.page_is_there = False
    for _ in range(3):
        await world.look(HOUR_MS)
    assert len(world.told) == len(set(world.told)) == 2
    assert world.rows[row.schedule].state is ScheduleState.CANCELLED


@pytest.mark.parametrize("kind", ["chat", "page", "page's reminder"])
async def test_what_was_set_aside_and_happens_again_is_not_named_any_more(kind: str) -> None:
    world = World()
    sound = world.sets("a", Every(3_600, world.clock.now)) if kind == "chat" else sets_on_page(world)
    if kind == "page's reminder":
        sound = replace(sound, kind=ScheduleKind.REMINDER.value)
    world.rows[sound.schedule] = replace(sound, body=b"{}")
    named = cast("Any", world.scheduler)._accepting.aside.schedules
    await world.look(HOUR_MS)
    named[sound.schedule] = "It cannot be read."
    world.rows[sound.schedule] = replace(sound, rev=sound.rev + 1)
    await world.look(5_000)
    assert (named, world.rows[sound.schedule].done_to) == ({}, sound.next_at)


@pytest.mark.parametrize("ours", [True, False])
async def test_only_conversations_of_ours_are_made_ours(ours: bool) -> None:
    world = World()
    world.sets("a", Once(world.clock.now + 1_000))
    world.ours = ours
    await world.look(5_000)
    assert len(world.claims) == 1, "its owner carries it out"
    assert world.owned == (["telegram/1/2//"] if ours else [])


async def test_another_rule_counts_from_when_what_was_due_is_settled() -> None:
    before = World(entry("2 hours"))
    await before.look()
    (old,) = before.rows.values()
    world = World(entry("5 hours"))
    world.rows = {old.schedule: old}
    assert old.next_at is not None
    await world.look(old.next_at - world.clock.now + 1_000)
    assert world.claims == [(old.schedule, old.next_at)]
    assert times.decode(world.rows[old.schedule].rule) == Every(5 * 3_600)


async def test_what_the_configuration_has_no_more_is_over_and_the_rest_goes_on() -> None:
    before = World(entry("2 hours"))
    await before.look()
    world = World()
    world.rows = dict(before.rows)
    reminded = world.sets("a", Every(3_600, world.clock.now))
    await world.look()
    assert {row.schedule: row.state for row in world.rows.values()} == {
        f"{schedules.CONFIGURED}morning": ScheduleState.CANCELLED, reminded.schedule: ScheduleState.ACTIVE,
    }  # fmt: skip


@pytest.mark.parametrize("late_ms", [0, 1, 59_000, HOUR_MS])
def test_an_occurrence_has_one_name_whenever_it_is_claimed(late_ms: int) -> None:
    """By which a second claim is known."""
    now = 1_800_000_000_000
    rule = Every(7_200, now)
    row = schedules.reminder(1, "a", rule, Plan("tea", ADA, "UTC"), SessionKey("telegram", "1", "2"), now, now)
    assert row is not None
    assert row.next_at is not None
    plan, _ = schedules.decode(row)
    claim = decide(rule, row.next_at, plan.if_missed, 0, row.next_at + late_ms)
    assert claim is not None
    assert (
        key_of(schedules.claimed(row, plan, claim, row.next_at + late_ms)[1])
        == f"schedule:{row.schedule}:{row.next_at}"
    )


@pytest.mark.parametrize("zone", ["", "Asia/Tokyo"])
async def test_a_configured_entry_is_planned_with_everything_that_was_configured(zone: str) -> None:
    made = entry("2 hours").model_copy(
        update={"timezone": zone, "if_missed": IfMissed.SKIP, "late_seconds": 77, "every": "", "cron": "0 8 * * *"}
    )
    world = World(made)
    await world.look()
    (row,) = world.rows.values()
    plan, rule = schedules.decode(row)
    wanted = zone or "UTC"  # the gateway's own
    assert (plan.words, plan.name, plan.zone) == (made.prompt, made.name, wanted)
    assert (plan.if_missed, plan.late_seconds) == (IfMissed.SKIP, 77)
    assert rule == made.rule("UTC")
    assert row.next_at is not None
    assert datetime.fromtimestamp(row.next_at / 1000, ZoneInfo(wanted)).hour == 8


@pytest.mark.parametrize(
    ("environ", "link", "file", "zone"),
    [
        ("Asia/Tokyo", "Europe/Berlin", "", "Asia/Tokyo"),
        (":Asia/Tokyo", "Europe/Berlin", "", "Asia/Tokyo"),
        ("", "Europe/Berlin", "America/New_York", "Europe/Berlin"),
        ("", "posix/Europe/Berlin", "", "Europe/Berlin"),
        ("EST5EDT,M3.2.0", "", "America/New_York", "America/New_York"),
        ("", "", "", "UTC"),
    ],
)
def test_clocks_are_those_of_the_configuration_else_of_the_machine_as_far_as_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environ: str, link: str, file: str, zone: str
) -> None:
    etc = tmp_path / "etc"
    etc.mkdir()
    if link:
        (etc / "localtime").symlink_to(tmp_path / "usr/share/zoneinfo" / link)
    if file:
        (etc / "timezone").write_text(f"{file}\n")
    assert machine_zone({"TZ": environ}, tmp_path) == zone
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert zone_in_force(Schedule(timezone="Europe/Berlin")) == "Europe/Berlin"
    assert zone_in_force(Schedule()) == "Asia/Tokyo"
