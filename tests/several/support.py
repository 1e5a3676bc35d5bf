"""Gateways of one database, each a process with a home of its own, and the chats in which they answer."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import create_async_engine

from agent_core.store.slices.rows import Division
from agent_core.store.slices.sql import peer
from gateway.cli.guarded import TRY_AGAIN
from gateway.sharing.shares import CHATS, divided
from tests.chats.discord_harness import discord_harness
from tests.chats.harness import START_SECONDS, Harness, environment, first_line
from tests.chats.slack_harness import slack_harness
from tests.chats.telegram_harness import telegram_harness
from tests.forked import Forked, start
from tests.serving import QUICK

HARNESSES = {"telegram": telegram_harness, "discord": discord_harness, "slack": slack_harness}
OPERATOR = "operators-key-of-this-test"
PATIENT_SECONDS = 100.0
"""What is waited for comes soon, and on a busy machine late: this is for what never comes."""


@dataclass
class Node:
    """One gateway."""

    name: str
    inner: Forked
    log: Path
    out: Path
    url: str = ""

    def signal(self, number: signal.Signals) -> None:
        self.inner.send_signal(number)

    async def ended(self) -> int:
        return await asyncio.to_thread(self.inner.wait, 30)


@dataclass
class Cluster:
    """All of them."""

    harness: Harness
    database: str
    folder: Path
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    others: Sequence[Harness] = ()
    """Platforms beside the first one, whose model all ask."""

    async def begin(self, name: str, prelude: str = "", **more: str) -> Node:
        """A gateway that serves; `prelude` is run before, for what another version has otherwise. As a service manager does, what says that the same
        start may work later is started again: a server that is kept from working ends connections that are silent for seconds."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            node = self._started(name, prelude, more)
            try:
                line = await asyncio.to_thread(first_line, node.inner, node.out, START_SECONDS)
            except BaseException:
                print(node.log.read_text()[-4000:])
                if node.inner.returncode != TRY_AGAIN or time.monotonic() > deadline:
                    raise
                continue
            node.url = line.rsplit(" ", 1)[-1].strip()
            return node

    def _started(self, name: str, prelude: str, more: Mapping[str, str]) -> Node:
        kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        home = self.folder / name
        home.mkdir(exist_ok=True)
        own = {
            "OUTSPOKEN_HOME": str(home),
            "OUTSPOKEN_LOG__FORMAT": "json",
            "OUTSPOKEN_STORAGE__URL": self.database,
            "OUTSPOKEN_STORAGE__SEVERAL": "true",
            "OUTSPOKEN_SERVER__OPERATOR_KEY": OPERATOR,
            "OUTSPOKEN_TOOLS__WORKSPACE": str(self.folder / "workspaces"),
        }
        others = {key: value for one in self.others for key, value in one.env().items()}
        env = {**kept, **QUICK, **others, **environment(self.harness), **own, **more}
        log, out = home / "log", home / f"out-{time.monotonic_ns()}"
        node = Node(name, start(["run"], env, out=out, err=log, prelude=prelude), log, out)
        self.nodes[name] = node
        return node

    async def ask(self, query: str) -> list[Any]:
        """What the database answers."""
        engine = create_async_engine(
            self.database.replace("postgresql:", "postgresql+asyncpg:"), isolation_level="AUTOCOMMIT"
        )
        try:
            async with engine.connect() as conn:
                found = await conn.exec_driver_sql(query)
                return [tuple(row) for row in found.all()] if found.returns_rows else []
        finally:
            await engine.dispose()

    async def even(self, nodes: int) -> None:
        """As soon as so many share the chats, and nobody has anything to give."""
        async with asyncio.timeout(PATIENT_SECONDS):
            while True:
                rows = await self.ask(
                    "SELECT node, address, version, started_at, serves FROM nodes WHERE address <> '' AND ended_at IS NULL"
                )
                owners = dict(await self.ask("SELECT slice, owner FROM slices"))
                having = {owner for name, owner in owners.items() if name.startswith(CHATS)}
                seen = Division(tuple(peer(row) for row in rows if row[0] in having), owners)
                if len(having - {None}) == len(having) == nodes and not any(
                    divided(one.node, seen, leaving=False) for one in seen.taking_part
                ):
                    return
                await asyncio.sleep(0.1)

    def sound(self) -> None:
        """None of them met a mistake of ours."""
        for node in self.nodes.values():
            said = node.log.read_text()
            assert "Traceback" not in said, said[said.index("Traceback") - 500 :][:4000]


@asynccontextmanager
async def cluster(folder: Path, platform: str, database: str, *others: str) -> AsyncGenerator[Cluster]:
    """No gateway yet; all that were begun are killed at the end."""
    async with AsyncExitStack() as stack:
        harness, *more = [await stack.enter_async_context(HARNESSES[one](folder)) for one in (platform, *others)]
        one = Cluster(harness, database, folder, others=more)
        try:
            yield one
        finally:
            for node in one.nodes.values():
                await asyncio.to_thread(node.inner.kill)


class Talks:
    """People who each write in a chat of their own, and what they are answered."""

    def __init__(self, harness: Harness, count: int) -> None:
        self.harness = harness
        self.people = [harness.person(f"P{number}") for number in range(count)]
        self.places = [harness.private(person) for person in self.people]
        self.said: list[list[str]] = [[] for _ in self.people]
        self.number = 0

    def say(self, which: int, words: str = "say answer") -> None:
        self.number += 1
        self.said[which].append(str(self.number))
        self.harness.say(self.places[which], self.people[which], f"{words} #{self.number}")

    def say_everywhere(self) -> None:
        for which in range(len(self.people)):
            self.say(which)

    def answers(self, which: int) -> list[str]:
        shown = [one.text for one in self.harness.seen(self.places[which]) if one.mine and "#" in one.text]
        return [text.rsplit("#", 1)[1].split()[0] for text in shown]

    def missing(self) -> list[str]:
        return [n for which, said in enumerate(self.said) for n in said if n not in self.answers(which)]

    async def all_answered(self, seconds: float = PATIENT_SECONDS) -> float:
        """How long that took."""
        began = time.monotonic()
        while self.missing():
            assert time.monotonic() - began < seconds, f"not answered: {self.missing()}"
            await asyncio.sleep(0.05)
        return time.monotonic() - began

    def judge(self) -> None:
        """Each was answered once, in order."""
        for which, said in enumerate(self.said):
            assert self.answers(which) == said, (which, said, self.answers(which))
