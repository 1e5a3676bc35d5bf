"""Gateways that are killed, suspended, stopped, cut off and begun at random while people talk and programs watch; what came of it is judged from outside
(`history`).

python -m tests.several.storm --platforms telegram discord slack --seconds 60 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.chats.discord_harness import DiscordHarness
from tests.databases import end_server, new_database, postgres_url, share_server
from tests.several.history import Chat, History, Watched, judged
from tests.several.support import HARNESSES, Cluster, Node, Talks, cluster
from tests.several.test_watching import Stream
from tests.wire import Wire, cable

PAUSE = (1.0, 6.0)
"""So long between two things that happen to gateways."""
SILENT = (0.5, 2.0, 7.0)
"""So long one is suspended, or its way to the database is a black hole: before its lease ends, or behind it."""
LAST_SECONDS = 90.0
KEYED = ("discord", "slack")
"""Platforms that tell by a key whether they have a message already, or can be asked."""
SHARDS = 2
SETTINGS = {"OUTSPOKEN_DISCORD__SHARDS": f"{SHARDS}", "OUTSPOKEN_SLACK__SOCKETS": "3"}


@dataclass
class Storm:
    """A run under way."""

    all_: Cluster
    database: str
    talks: list[Talks]
    chance: random.Random
    most: int
    wires: ExitStack
    number: int = 0
    happened: list[str] = field(default_factory=list[str])
    away: list[Node] = field(default_factory=list[Node])
    """Those that are suspended, or cut off."""
    ways: dict[str, Wire] = field(default_factory=dict[str, Wire])
    streams: list[Stream] = field(default_factory=list[Stream])
    """Those that came to their end without being broken by the death of the gateway that was asked."""

    @property
    def up(self) -> list[Node]:
        return [one for one in self.all_.nodes.values() if one.inner.returncode is None and one not in self.away]

    async def run(self, seconds: float) -> None:
        for _ in range(self.most):
            await self._begin()
        await self.all_.even(self.most)
        for one in (self.all_.harness, *self.all_.others):
            await one.ready()
            if isinstance(one, DiscordHarness):  # what is said before a bot was there for the first time is nobody's
                await one.fake.until(lambda fake=one.fake: len(fake.gateway.live) == SHARDS, 40)
                await asyncio.sleep(1)
        until = time.monotonic() + seconds
        busy = asyncio.gather(*(self._talk(one, until) for one in self.talks), self._watch(until))
        while time.monotonic() < until:
            await asyncio.sleep(self.chance.uniform(*PAUSE))
            await self._befall()
        await busy
        if not self.up:
            await self._begin()
        for one in self.talks:
            await one.all_answered(LAST_SECONDS)
        await asyncio.sleep(2)

    async def _begin(self) -> None:
        """Each has a way of its own to the database."""
        self.number += 1
        name = f"n{self.number}"
        self.happened.append(f"{name} begins")
        url, self.ways[name] = self.wires.enter_context(cable(self.database))
        await self.all_.begin(name, OUTSPOKEN_STORAGE__URL=url, **SETTINGS)

    async def _befall(self) -> None:
        """Something happens to one of them; one stays, and there are never too many."""
        if len(self.up) < 2 or (len(self.up) < self.most and self.chance.random() < 0.6):
            await self._begin()
            return
        node = self.chance.choice(self.up)
        way = self.ways[node.name]
        what = self.chance.choice(["SIGKILL", "SIGSTOP", "SIGTERM", "cut", "black hole"])
        self.happened.append(f"{node.name} {what}")
        match what:
            case "SIGKILL" | "SIGTERM":
                node.signal(signal.Signals[what])
            case "cut":
                way.cut()
            case _:
                self.away.append(node)
                way.silent = what == "black hole"
                if not way.silent:
                    node.signal(signal.SIGSTOP)
                await asyncio.sleep(self.chance.choice(SILENT))
                if not way.silent:
                    node.signal(signal.SIGCONT)
                way.silent = False
                self.away.remove(node)

    async def _talk(self, talks: Talks, until: float) -> None:
        """Each says the next thing when they have their answer, and now and then before."""
        count = len(talks.people)
        while time.monotonic() < until:
            which = self.chance.randrange(count)
            open_ = len(talks.said[which]) - len(set(talks.answers(which)))
            if open_ <= (1 if self.chance.random() < 0.1 else 0):
                words = self.chance.choice(["say answer", "slow one two three answer", "say answer"])
                talks.say(which, words)
            await asyncio.sleep(0.05)

    async def _watch(self, until: float) -> None:
        """A program asks at any gateway, and watches the answer."""
        number = 0
        while time.monotonic() < until:
            number += 1
            node = self.chance.choice(self.up or [*self.all_.nodes.values()])
            words = " ".join(f"word{n}" for n in range(10))
            one = Stream(node, f"watched-{number % 7}", f"slow {words} s{number}", f"key-{number}")
            try:
                async with asyncio.timeout(60):
                    await one.watch()
            except (aiohttp.ClientError, AssertionError, TimeoutError):
                await asyncio.sleep(0.2)  # whom it had asked is gone, or takes nothing: a program would ask again
                continue
            if one.last.get("choices", [{}])[0].get("finish_reason") == "stop":
                self.streams.append(one)

    async def _again(self, one: Stream) -> str:
        """What whoever asks once more is told, at a gateway that is there: one that was told to stop may be gone by now."""
        async with asyncio.timeout(LAST_SECONDS):
            while True:
                for node in reversed(self.up):
                    again = Stream(node, one.name, one.words, one.key)
                    with suppress(aiohttp.ClientError):
                        await again.watch()
                        return again.text
                await asyncio.sleep(0.2)

    async def history(self) -> History:
        """All that was seen."""
        found = History()
        for platform, talks in zip((self.all_.harness, *self.all_.others), self.talks, strict=True):
            for which, said in enumerate(talks.said):
                texts = [one.text for one in platform.seen(talks.places[which]) if one.mine]
                found.chats.append(Chat(f"{platform.name} {which}", platform.name in KEYED, said, texts))
        for one in self.streams:
            found.streams.append(Watched(one.key, one.pieces, await self._again(one)))
        (counted,) = await self.all_.ask("SELECT count(*) FROM turns WHERE state = 'open'")
        found.open_turns = counted[0]
        return found


async def storm(
    folder: Path,
    database: str,
    platforms: Sequence[str],
    seconds: float,
    seed: int,
    *,
    most: int = 3,
    chats: int = 20,
) -> Sequence[str]:
    """What went wrong; printed is what happened."""
    first, *others = platforms
    with ExitStack() as wires:
        async with cluster(folder, first, database, *others) as all_:
            talks = [Talks(one, chats) for one in (all_.harness, *all_.others)]
            one = Storm(all_, database, talks, random.Random(seed), most, wires)
            lost: list[str] = []
            try:
                await one.run(seconds)
            except AssertionError as error:
                lost.append(str(error))
            seen = await one.history()
            print(
                f"{', '.join(platforms)}: {sum(len(chat.said) for chat in seen.chats)} messages, {len(seen.streams)} streams, "
                f"{len(one.happened)} things happened: {', '.join(one.happened)}"
            )
            all_.sound()
            return lost + judged(seen)


async def _main(given: argparse.Namespace, folder: Path) -> int:
    database = await new_database(given.server, template="migrated")
    wrong = await storm(folder, database, given.platforms, given.seconds, given.seed, chats=given.chats)
    print("\n".join(wrong) or "all is well")
    return bool(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platforms", nargs="+", default=[*HARNESSES], choices=[*HARNESSES])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    share_server()
    try:
        given.server = postgres_url()
        with tempfile.TemporaryDirectory() as name:
            folder: Path = given.folder or Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            return asyncio.run(_main(given, folder))
    finally:
        end_server()


if __name__ == "__main__":
    sys.exit(main())
