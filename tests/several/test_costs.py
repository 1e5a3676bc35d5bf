"""What a turn of a chat asks of the database where two gateways share the chats, counted in each: one that the holder of the connection runs itself, and
one that is run by the other."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.databases import new_database
from tests.several.support import Node, Talks, cluster

PEOPLE = 12
OWN, STORED, FOUND = (8, 1), (2, 1), (9, 0)
"""Statements, and how often others are told something: by the holder of the connection when it runs the turn (four commits in two ways each; that
somebody wrote counts at all gateways), when it stores its message for the other one, and by the other one then (one look, four commits)."""
REST_SECONDS = 0.4
COUNTING = """
import asyncpg, json, os, signal

counted = []


def put_beside(name):
    plain = getattr(asyncpg.Connection, name)

    async def asked(self, query, *values, **more):
        counted.append(" ".join(query.split()))
        return await plain(self, query, *values, **more)

    setattr(asyncpg.Connection, name, asked)


for name in ("fetch", "fetchrow", "execute"):
    put_beside(name)


def told(*_):
    said, counted[:] = list(counted), []
    with open({there!r} + ".new", "w") as file:
        json.dump(said, file)
    os.rename({there!r} + ".new", {there!r})


def planted(*_):
    from gateway.sessions.accepting import Accepting
    plain = Accepting.collect

    async def collect(self, row, *more):
        await self.store.inbox.by_key(row.account, row.platform_key)
        return await plain(self, row, *more)

    Accepting.collect = collect


signal.signal(signal.SIGUSR1, told)
signal.signal(signal.SIGUSR2, planted)
"""
"""Run in each gateway before it starts. It tells what it has asked since the last time; planted is a question more."""


LOOK = "CASE WHEN (inbox.id >"
BESIDE = (
    "sessions.owner, turns.opened_at",
    "sessions.owner, inbox.lane",
    "sessions.owner, deliveries.at",
    "UNION ALL SELECT slices.owner",
)
"""What is in the statements that find what others have stored, what nobody works on, and who works on what: they are asked from time to time as well."""


def counting(there: Path) -> str:
    return COUNTING.replace("{there!r}", repr(str(there)))


async def told(node: Node, there: Path) -> list[str]:
    """What it has asked since the last time."""
    node.signal(signal.SIGUSR1)
    async with asyncio.timeout(30):
        while not there.exists():
            await asyncio.sleep(0.01)
    said: list[str] = json.loads(there.read_text())
    there.unlink()
    return said


async def counts(talks: Talks, files: Mapping[str, tuple[Node, Path]], turns: int) -> list[dict[str, Counter[str]]]:
    """What each gateway asked for each of so many turns, one after the other."""
    found: list[dict[str, Counter[str]]] = []
    for turn in range(turns):
        for node, there in files.values():
            await told(node, there)
        talks.say(turn % PEOPLE)
        await talks.all_answered()
        await asyncio.sleep(REST_SECONDS)
        found.append({name: Counter(await told(node, there)) for name, (node, there) in files.items()})
    return found


def cost(said: Counter[str], beside: Sequence[str]) -> tuple[int, int]:
    words = sum(count for statement, count in said.items() if "pg_notify" in statement)
    mine = [count for statement, count in said.items() if not any(one in statement for one in beside)]
    return sum(mine) - words, words


def least(
    turns: Sequence[Mapping[str, Counter[str]]], name: str, *, ran: bool, beside: Sequence[str]
) -> tuple[int, int]:
    """Of the turns that a gateway ran, or did not: what else it asks comes on top now and then."""
    mine = [one[name] for one in turns if (sum(n for w, n in one[name].items() if "outspoken_write" in w) > 2) is ran]
    statements, words = zip(*(cost(one, beside) for one in mine), strict=True)
    return min(statements), min(words)


async def test_a_turn_that_another_gateway_runs_costs_as_few_statements_as_it_can(
    postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:
        files = {name: tmp_path / f"{name}.said" for name in ("first", "second")}
        nodes = {name: (await all_.begin(name, counting(there)), there) for name, there in files.items()}
        await all_.even(2)
        await all_.harness.ready()
        ((owner,),) = await all_.ask("SELECT owner FROM slices WHERE slice LIKE 'account/%%'")
        assert owner == 1, "the first one has the connection"
        talks = Talks(all_.harness, PEOPLE)
        for _ in range(2):
            talks.say_everywhere()
            await talks.all_answered()
        turns = await counts(talks, nodes, 2 * PEOPLE)
        own, stored = (least(turns, "first", ran=ran, beside=(*BESIDE, LOOK)) for ran in (True, False))
        found = least(turns, "second", ran=True, beside=BESIDE)
        print(f"run by the holder: {own}; stored by it: {stored}; run by the other one: {found}")
        assert (own, stored, found) == (OWN, STORED, FOUND)
        nodes["second"][0].signal(signal.SIGUSR2)
        planted = least(await counts(talks, nodes, PEOPLE), "second", ran=True, beside=BESIDE)
        assert planted == (FOUND[0] + 1, FOUND[1]), "a question more is seen"
        all_.sound()
