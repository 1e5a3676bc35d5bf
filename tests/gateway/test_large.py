"""A database that has grown costs what a small one costs: nothing that happens often reads a whole table."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import aiohttp

from agent_core.limits.budgets import Amount, Pot
from agent_core.limits.retention import Keep
from agent_core.limits.spend import Budget
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.turns.rows import IntendedCall
from gateway.retention.forgetting import Forgetting
from tests.chats.harness import Leaves, answer, answers, quiet, running
from tests.chats.telegram_harness import telegram_harness
from tests.gateway.rig import gateway
from tests.gateway.test_upkeep import echo
from tests.statements import told_of
from tests.store.support import message, opened, row, session_of

GROW = [
    "adapter_states",
    "audit",
    "budgets",
    "cursors",
    "deliveries",
    "forgets",
    "hooks",
    "inbox",
    "incidents",
    "journal",
    "links",
    "link_codes",
    "memory",
    "nodes",
    "occurrences",
    "people",
    "pieces",
    "places",
    "reservations",
    "schedules",
    "sessions",
    "tool_calls",
    "troubles",
    "turns",
    "unread",
]
MAY = {
    "FROM forgets ORDER BY": "whoever was forgotten is read at the start: a row for each, and few",
    "FROM people ORDER BY": "everybody who is known is kept in memory: read at the start",
    "WHERE memory.scope != ?": "what everybody has is counted in the background",
    "WHERE inbox.received_at < (SELECT nodes.started_at": "from the newest on, up to the first from before the start",
}
NOW = 1_700_000_000_000
COMMANDS = ("status", "usage", "files", "remind", "sessions", "resume", "undo", "why", "new", "retry", "access", "help")


@contextmanager
def asking() -> Generator[list[tuple[str, object]]]:
    """Every statement that is put to a database meanwhile, with its parameters."""
    asked: list[tuple[str, object]] = []
    with told_of(lambda statement, values: asked.append((statement, values))):
        yield asked


def scans(database: Path, asked: list[tuple[str, object]]) -> list[str]:
    """Statements that read a whole table which grows, or a whole index that has every row of one."""
    found: dict[str, str] = {}
    with closing(sqlite3.connect(database)) as conn, conn:
        names = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'"
        bounded = [row[0] for row in conn.execute(names)]
        for statement, parameters in asked:
            if not statement.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE")) or statement in found:
                continue
            plan = [str(row[3]) for row in conn.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]  # type: ignore[arg-type]
            together = re.search(r"\(([^()]+)\) IN \(SELECT (?:CAST|column1|\*)", statement)
            if together and not any(line.count("=?") == together[1].count(",") + 1 for line in plan):
                found[statement] = f"not by all of its columns, {plan[0]}: {statement}"
            tables = {alias: table for table, alias in re.findall(r"(\w+) AS (\w+)", statement)}
            for line in plan:
                seen = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?|SEARCH (\w+)$", line)
                # The highest of a column: without an index on it SQLite reads every row
                if seen is not None and seen[3]:
                    if tables.get(seen[3], seen[3]) in GROW and not re.search(r"(?:max|min)\(\w+\.id\)", statement):
                        found[statement] = f"{line}: {statement}"
                    continue
                if seen is None or tables.get(seen[1], seen[1]) not in GROW or seen[2] in bounded:
                    continue
                newest = (
                    "WHERE" not in statement and "LIMIT" in statement and "USE TEMP B-TREE FOR ORDER BY" not in plan
                )
                if not newest and not any(words in " ".join(statement.split()) for words in MAY):
                    found[statement] = f"{line}: {statement}"
    return list(found.values())


async def test_no_turn_start_or_overview_reads_a_whole_table(tmp_path: Path) -> None:
    env = {"OUTSPOKEN_BUDGETS__PERSON_TOKENS": "1000000", "OUTSPOKEN_BUDGETS__TURN_TOKENS": "1000000"}
    async with telegram_harness(tmp_path) as platform:
        with asking() as asked:
            async with running(platform, Leaves.DAMAGED, **env) as up, aiohttp.ClientSession(up.url) as http:
                store = up.hub.forgetting.store
                ada, bob = platform.person("Ada"), platform.person("Bob")
                private, group = platform.private(ada), platform.group(ada, bob)
                platform.say(private, ada, "say one")
                await answer(platform, private, "one")
                platform.say(private, ada, "write notes.txt: two")
                await platform.until(lambda: len(answers(platform, private)) > 1)
                platform.say(group, bob, "say three", mention=True)
                await answer(platform, group, "three")
                for command in COMMANDS:
                    platform.command(private, ada, command)
                for extra in ({"user": "eve"}, {"user": "eve", "metadata": {"session": "kept"}}, {}):
                    for _ in range(2):
                        body = {"model": "m1", "messages": [{"role": "user", "content": "say four"}], **extra}
                        async with http.post("/v1/chat/completions", json=body) as response:
                            assert response.status == 200, await response.text()
                for path in ("/status", "/metrics", "/readyz", "/v1/models"):
                    await (await http.get(path)).text()
                for asked_for in (store.deliveries.failed_parts, store.inbox.dropped, store.turns.count_closed):
                    await asked_for(NOW)
                await store.troubles.failures(NOW, ["answered"])
                async with http.get("/console/api/live") as live:
                    await live.content.readuntil(b"turns")
                await quiet(platform, private, 2.5)  # a message a second goes into one chat
            async with running(platform, Leaves.DAMAGED, **env):
                pass
        found = scans(next(tmp_path.rglob("outspoken.db")), asked)
    assert not found, "\n".join(found)


async def test_many_at_once_read_no_whole_table_either(tmp_path: Path) -> None:
    """Rows that are named by several columns together, and several of them: SQLite needs help to find these by an index."""
    with asking() as asked:
        async with opened(str(tmp_path / "store.db")) as store:
            owned = await asyncio.gather(*(session_of(store, f"s{number}") for number in range(3)))
            taken = await asyncio.gather(
                *(store.inbox.accept(message(f"m{number}", f"s{number}")) for number in range(3))
            )
            pots = [(Pot(Budget.DAY, f"day:{number}", 1, 2), Pot(Budget.DAY, "day:all", 1, 2)) for number in range(3)]
            call = [IntendedCall("c1", "tool", "pure", "k1"), IntendedCall("c2", "tool", "pure", "k2")]
            for number, ((session, epoch), one) in enumerate(zip(owned, taken, strict=True)):
                await store.turns.start(session, epoch, f"t{number}", [one.inbox_id], row(0), 1, 1)
            for _ in range(2):  # repeated: what is stored is compared
                await asyncio.gather(
                    *(store.turns.append(s, e, f"t{n}", [row(1), row(2)]) for n, (s, e) in enumerate(owned)),
                    *(store.turns.intend(s, e, f"t{n}", [row(3)], call) for n, (s, e) in enumerate(owned)),
                    *(store.budgets.reserve(s, e, f"call{n}", Amount(1), pots[n], 1) for n, (s, e) in enumerate(owned)),
                    *(store.budgets.settle(s, e, f"call{n}", Amount(1), pots[n], 1, estimated=False) for n, (s, e) in enumerate(owned)),
                    *(store.memory.put("scope", "kind", f"n{n}", "text", at_ms=1) for n in range(3)),
                )  # fmt: skip
            await asyncio.gather(*(store.memory.delete("scope", "kind", f"n{n}") for n in range(3)))
            await asyncio.gather(
                *(store.turns.close(s, e, f"t{n}", [], "answered", 1) for n, (s, e) in enumerate(owned))
            )
    found = scans(tmp_path / "store.db", asked)
    assert not found, "\n".join(found)


async def test_forgetting_somebody_writes_only_by_index(tmp_path: Path) -> None:
    """What it looks for is looked for beside the writer, which nobody may hold for long."""
    clock = SystemClock()
    async with gateway(tmp_path, echo) as rig:
        for number in range(3):
            await rig.say("hello", session=f"s{number}", account="api", memory_scope="api/eve", surface="api")
        with asking() as asked:
            made = Forgetting(rig.store, clock, SystemIds(clock), tmp_path / "workspaces", None, None)
            told = await made.finish(await made.begin(("api", "eve"), "a test"))
    assert (told.turns, told.messages) == (3, 3)
    found = [
        one
        for one in scans(tmp_path / "db", asked)
        if not re.search(r": SELECT|: UPDATE audit|SCAN (unread|schedules)", one)
    ]
    assert not found, "\n".join(found)


async def test_what_is_old_is_removed_without_going_through_a_table_for_each_row_of_another(tmp_path: Path) -> None:
    """Whoever removes something holds the writer: of a year's starts each had all conversations gone through, to see whether it owns one."""
    with asking() as asked:
        async with opened(str(tmp_path / "store.db")) as store:
            await session_of(store, "s1")
            await store.keeping.prune(NOW, Keep())
    with closing(sqlite3.connect(tmp_path / "store.db")) as conn, conn:
        for statement, parameters in asked:
            if not statement.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE")):
                continue
            plan = [str(row[3]) for row in conn.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]  # type: ignore[arg-type]
            inner = plan[next((place for place, line in enumerate(plan) if line.startswith("CORRELATED")), len(plan)) :]
            assert not [line for line in inner if re.match(r"SCAN (\w+)", line)], f"{plan}: {statement}"
