"""Processes that the tests kill, stop or starve: ``python -m tests.store.children WHAT DATABASE [short]``, which is the lease on PostgreSQL."""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

import structlog

from agent_core.limits.budgets import Amount, Pot
from agent_core.limits.spend import Budget
from agent_core.store.database import ownership
from agent_core.store.store import Fenced, OwnedElsewhere, StorageUnavailable, StoreError
from tests.store.support import PATIENT_LEASE_SECONDS, message, opened, row, session_of, turn_of


def say(*words: object) -> None:
    print(*words, flush=True)


async def hear() -> None:
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def append(where: str) -> None:
    """Append from eight turns for ever; say each row once its commit is acknowledged."""
    async with opened(where) as store, asyncio.TaskGroup() as group:

        async def one(number: int) -> None:
            session, epoch, turn = await turn_of(store, f"chat{number}")
            for seq in range(1, 1_000_000):
                await store.turns.append(session, epoch, turn, [row(seq, f'"{turn} {seq}"'.encode())])
                say(turn, seq)

        for number in range(8):
            group.create_task(one(number))


async def hold(where: str) -> None:
    """Keep the database open until told to go on."""
    async with opened(where):
        say("open")
        await hear()


async def own(where: str) -> None:
    """Keep a turn open until told to go on; then say what is left of our rights."""
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        say(session, epoch, turn, store.ownership.lease_ok())
        await hear()
        say(store.ownership.lease_ok(), await _outcome(store.turns.append(session, epoch, turn, [row(1, b'"late"')])))


async def _outcome(work: object) -> str:
    try:
        await work  # pyright: ignore[reportGeneralTypeIssues] - any coroutine of the store
    except (Fenced, OwnedElsewhere, StorageUnavailable) as error:
        return type(error).__name__
    return "stored"


async def fill(where: str) -> None:
    """Let the disk seem full in the middle: writes beyond a file size fail, until the limit is lifted."""
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        log = Path(f"{where}-wal")
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 3_000, resource.RLIM_INFINITY))
        seq = 1
        try:
            while True:
                await store.turns.append(session, epoch, turn, [row(seq, b'"' + b"x" * 2_000 + b'"')])
                seq += 1
        except StorageUnavailable as error:
            say("away", seq, error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        try:
            await store.inbox.accept(message("while-away"))
        except StorageUnavailable:
            say("still away")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await store.turns.append(session, epoch, turn, [row(seq, b'"' + b"x" * 2_000 + b'"')])
        await store.inbox.accept(message("back"))
        say("back", seq, turn)


async def claim(where: str) -> None:
    """Own a session without a turn, until told to go on."""
    async with opened(where) as store:
        say(*await session_of(store))
        await hear()


async def reserve(where: str) -> None:
    """Settle one model call, hold something for another, and wait."""
    async with opened(where) as store:
        session, epoch = await session_of(store)
        pots = (
            Pot(Budget.PERSON, "person:p", 1_000, 2_000),
            Pot(Budget.DAY, "day:all", 1_000, 2_000, Amount(1_000), Amount(800)),
        )
        await store.budgets.reserve(session, epoch, "c1", Amount(200), pots, 1)
        await store.budgets.settle(session, epoch, "c1", Amount(100), pots, 1, estimated=False)
        await store.budgets.reserve(session, epoch, "c2", Amount(300), pots, 1)
        say("held", session)
        await hear()


async def main(what: str, where: str, lease: str = "long") -> None:
    if lease == "long":
        ownership.LEASE_SECONDS = PATIENT_LEASE_SECONDS
    jobs = {"append": append, "hold": hold, "own": own, "fill": fill, "claim": claim, "reserve": reserve}
    try:
        await jobs[what](where)
    except StoreError as error:
        say("refused", type(error).__name__, error)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # what is printed here is for the test
    asyncio.run(main(*sys.argv[1:]))
