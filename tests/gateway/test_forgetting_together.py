"""What is set, or comes due, while its person is being forgotten: by another gateway, at whichever step. Nothing from before is left, and what is asked for
afterwards stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from agent_core.store import tables as t
from agent_core.store.keeping.forgetting import ForgettingJob
from agent_core.store.keeping.keeping import Keeping
from agent_core.store.schedules.rows import Claimed, OccurrenceOutcome, OccurrenceRow, ScheduleRow
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import Conflict, Store
from gateway.retention.forgetting import Forgetting
from tests.store.support import IDS, FakeClock, message, opened, row

ACCOUNT = "telegram/99"
BEFORE, AFTER = b'"from before"', b'"from afterwards"'


@asynccontextmanager
async def gateways(where: str, clock: FakeClock) -> AsyncGenerator[tuple[Store, Store]]:
    """The one that forgets, and another one; a file has one for both."""
    async with opened(where, clock) as house:
        if "postgres" not in where:
            yield house, house
            return
        async with opened(where, clock) as other:
            yield house, other


def reminder(name: str, key: str, body: bytes) -> ScheduleRow:
    return ScheduleRow(name, "reminder", key, key, 1, "once", body, 2**50)


class Person:
    """Has had a turn, has set a reminder, and is just setting another one, at a gateway that does not know that they are to be forgotten."""

    def __init__(self, store: Store, name: str, clock: FakeClock) -> None:
        self.store, self.name, self.clock = store, name, clock
        self.key = f"{ACCOUNT}/{name}//"
        self.turn = IDS.new("t")
        self.where, self.command = ("", 0), 0
        self.due = reminder("", self.key, BEFORE)

    async def says(self, lane: str, body: bytes, **more: Any) -> int:
        new = replace(
            message(IDS.new("m"), self.key, body, at=self.clock.now), account=ACCOUNT, person=self.name, lane=lane
        )
        return (await self.store.inbox.accept(replace(new, **more))).inbox_id

    async def asks(self) -> int:
        said = await self.says("normal", BEFORE)
        found = await self.store.sessions.by_key(self.key)
        assert found is not None
        self.where = found.session, await self.store.sessions.claim(found.session)
        await self.store.turns.start(*self.where, self.turn, [said], row(0, BEFORE), self.clock.now, 2**50)
        return said

    async def is_answered(self) -> None:
        await self.store.turns.close(*self.where, self.turn, [row(1, BEFORE)], "answered", self.clock.now)

    async def begin(self) -> None:
        said = await self.asks()
        await self.is_answered()
        self.due = reminder(f"remind:{said}", self.key, BEFORE)
        await self.store.schedules.put(self.due)
        self.command = await self.says("command", BEFORE)

    async def sets(self) -> None:
        """What was under way: the command is carried out."""
        row = reminder(f"remind:{self.command}", self.key, BEFORE)
        await self.store.sessions.respond(*self.where, self.command, SessionChange(), [], [row])

    async def comes_due(self) -> None:
        now = self.clock.now
        claim = OccurrenceRow(self.due.schedule, now, now, 1, OccurrenceOutcome.RUN, now)
        await self.says("command", BEFORE, claim=Claimed(replace(self.due, next_at=None, done_to=now, rev=2), claim))

    async def has_had_set(self) -> None:
        """A tool of a turn that was over: its gateway stood still between its lease and this."""
        await self.store.schedules.put(reminder(f"remind:{self.turn}:c1", self.key, BEFORE), self.turn)

    async def sets_anew(self) -> None:
        command = await self.says("command", AFTER)
        row = reminder(f"remind:{command}", self.key, AFTER)
        await self.store.sessions.respond(*self.where, command, SessionChange(), [], [row])


def bodies(key: str) -> Callable[[Connection], dict[str, set[bytes]]]:
    def read(conn: Connection) -> dict[str, set[bytes]]:
        said = select(t.inbox.c.body).join(t.sessions, t.sessions.c.session == t.inbox.c.session)
        planned = select(t.schedules.c.body).where(t.schedules.c.session_key == key)
        found = {"inbox": said.where(t.sessions.c.key == key), "schedules": planned}
        return {name: {bytes(one) for one in conn.execute(query).scalars()} for name, query in found.items()}

    return read


async def forgotten(house: Store, person: Person, at: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> bool:
    """Forget them; before this step of it, all that happens at the other gateway. False if there is no such step."""
    made, steps = Forgetting(house, person.clock, IDS, tmp_path, None, None), 0

    async def meanwhile() -> None:
        acts: tuple[Callable[[], Awaitable[None]], ...] = (
            person.sets, person.comes_due, person.has_had_set, person.sets_anew,
        )  # fmt: skip
        for act in acts:
            with suppress(Conflict):  # it is refused
                await act()

    def counted(plain: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def step(*given: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == at:
                await meanwhile()
            return await plain(*given)

        return step

    job = await made.begin((ACCOUNT, person.name), "a test")
    person.clock.now += 5
    with monkeypatch.context() as patched:
        for name in ("remove", "remove_some"):
            patched.setattr(Keeping, name, counted(getattr(Keeping, name)))
        await made.finish(job)
    if steps < at:
        return False
    await meanwhile()  # and what is later still
    return True


async def test_nothing_that_was_set_before_is_left_and_what_is_set_afterwards_stays(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    async with gateways(where, clock) as (house, other):
        at, more = 0, True
        while more:
            at += 1
            person = Person(other, str(5_000 + at), clock)
            await person.begin()
            clock.now += 5
            more = await forgotten(house, person, at, monkeypatch, tmp_path)
            left = await house.keeping.remove(bodies(person.key))
            assert BEFORE not in left["inbox"] | left["schedules"], f"at step {at}"
            assert not more or AFTER in left["schedules"], f"at step {at}"
        assert at > 10, "hardly any step was tried"


async def test_what_another_gateway_runs_for_them_is_stopped_there_whoever_else_is_being_forgotten(
    where: str, tmp_path: Path
) -> None:
    """Else it ran to its end there, kept the forgotten words, and held up all who are forgotten after them."""
    clock = FakeClock()
    async with gateways(where, clock) as (house, other):
        people = [Person(other, str(number), clock) for number in (1, 2, 3)]
        for person in people:
            await person.asks()
        still = [people[2]]  # of whom nobody wants to be forgotten
        let_go: list[str] = []

        async def stop(job: ForgettingJob) -> None:
            let_go.append(job.forget)
            for person in people:
                if (ACCOUNT, person.name) in job.who and person not in still:
                    still.append(person)
                    await person.is_answered()

        here = Forgetting(house, clock, IDS, tmp_path, None, None)
        there = Forgetting(other, clock, IDS, tmp_path, None, None, stop)
        here.elsewhere = there.wake
        listening = asyncio.create_task(there.keep_quiet())
        try:
            jobs = [await here.begin((ACCOUNT, person.name), "a test") for person in people[:2]]
            async with asyncio.timeout(20):
                while len(still) < len(people):  # before anything was done about the first of them
                    await asyncio.sleep(0.01)
                for job in jobs:
                    await here.finish(job)
                done = len(let_go)
                here.elsewhere()
                while len(let_go) == done:
                    await asyncio.sleep(0.01)
            assert let_go[-1] == "", "and what is remembered of conversations there is read anew"
            assert await other.turns.journal(people[2].turn), "nobody else's is touched"
            assert not any([await other.turns.journal(person.turn) for person in people[:2]])
        finally:
            listening.cancel()
