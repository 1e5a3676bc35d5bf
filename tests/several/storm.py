"""Gateways that are killed, suspended, stopped, cut off, replaced by a newer version and by the one before it, and begun at random, and a database that is
restarted, while people talk and programs watch; what came of it is judged from outside (`history`), and how long it took is told.

python -m tests.several.storm --platforms telegram discord slack --seconds 60 --seed 1
python -m tests.several.storm --seconds 600 --chats 2000 --rate 20     (the long form, of `make soak`)
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
from tests.several.history import NOTICE, Chat, History, Watched, judged, number_of
from tests.several.support import HARNESSES, Cluster, Node, Talks, cluster
from tests.several.test_doors import told_by
from tests.several.test_upgrades import planted
from tests.several.test_watching import Stream
from tests.storage.test_postgres_ways import Server, server
from tests.wire import Wire, cable

PAUSE = (1.0, 6.0)
"""So long between two things that happen to gateways."""
SILENT = (0.5, 2.0, 7.0, 30.0)
"""So long one is suspended, or its way to the database is a black hole: before its lease ends, or behind it."""
LAST_SECONDS = 90.0
SLACK_SECONDS = 390.0
"""What Slack told gateways that died, at once twice and after a minute, it tells once more after five minutes, and waits three seconds for each
acknowledgement: 369 seconds after it was said (https://docs.slack.dev/apis/events-api/#retries)."""
ASKED_SECONDS = 30.0
"""So long one gateway is waited for that is asked once more."""
KEYED = ("discord", "slack")
"""Platforms that tell by a key whether they have a message already, or can be asked."""
SHARDS = 2
AWAY_SECONDS = (0.0, 1.0, 3.0)
"""So long the database is away when it is restarted."""
RESTARTED_SECONDS = 5.0
BESIDE = "SIGKILL soon after a restart of the database"
TAKEN_SECONDS = {"SIGKILL": 3.0, BESIDE: 6.0, "SIGSTOP": 8.0}
"""So soon what a gateway had has to be the others', as docs/scale.md says: where the database was away, first all have time to come back."""
SETTINGS = {"OUTSPOKEN_DISCORD__SHARDS": f"{SHARDS}", "OUTSPOKEN_SLACK__SOCKETS": "3"}


@dataclass
class Times:
    """How long things took, as it is seen from outside."""

    taken: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """What was done to a gateway, and how long until the others had what it had."""
    answered: list[float] = field(default_factory=list[float])
    _open: dict[tuple[int, int, str], float] = field(default_factory=dict[tuple[int, int, str], float])

    def said(self, talks: Talks, which: int) -> None:
        self._open[id(talks), which, talks.said[which][-1]] = time.monotonic()

    async def count(self, every: Sequence[Talks]) -> None:
        """Until cancelled."""
        by_id = {id(one): one for one in every}
        while True:
            answers: dict[tuple[int, int], set[str]] = {}
            for (talks, which, number), since in list(self._open.items()):
                known = answers.setdefault((talks, which), set())
                if not known:
                    known |= {*by_id[talks].answers(which), ""}
                if number in known:
                    self.answered.append(time.monotonic() - since)
                    del self._open[talks, which, number]
                await asyncio.sleep(0)
            await asyncio.sleep(0.2)

    def words(self) -> list[str]:
        found = [f"answered: {_shares(self.answered)}"] if self.answered else []
        for what, most in TAKEN_SECONDS.items():
            if seconds := [one for name, one in self.taken if name == what]:
                found.append(f"taken over after {what}: {_shares(seconds)} (at most {most:g} s is promised)")
        return found


def _shares(seconds: Sequence[float]) -> str:
    """Pure."""
    ordered = sorted(seconds)
    at = {share: ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.9, 0.99)}
    return (
        f"{len(ordered)} times, "
        + ", ".join(f"p{share * 100:.0f} {one:.2f} s" for share, one in at.items())
        + f", the slowest {ordered[-1]:.2f} s"
    )


@dataclass
class Storm:
    """A run under way."""

    all_: Cluster
    database: str
    talks: list[Talks]
    chance: random.Random
    most: int
    wires: ExitStack
    pause: float = 0.05
    """Between two messages on one platform."""
    server: Server | None = None
    """That of the database, if it is ours alone, so that it may be restarted."""
    newer: str = ""
    """The prelude of a newer version, if there is one."""
    number: int = 0
    happened: list[str] = field(default_factory=list[str])
    away: list[Node] = field(default_factory=list[Node])
    """Those that are suspended, or cut off."""
    ways: dict[str, Wire] = field(default_factory=dict[str, Wire])
    times: Times = field(default_factory=Times)
    restarted: float = -RESTARTED_SECONDS
    """When the database came back last."""
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
        await asyncio.gather(*(self._greet(one) for one in self.talks))
        until = time.monotonic() + seconds
        busy = asyncio.gather(*(self._talk(one, until) for one in self.talks), self._watch(until))
        counting = asyncio.create_task(self.times.count(self.talks))
        while time.monotonic() < until:
            await asyncio.sleep(self.chance.uniform(*PAUSE))
            await self._befall()
        await busy
        if not self.up:
            await self._begin()
        missing: list[str] = []
        for one in self.talks:
            missing += await _missing(one, SLACK_SECONDS if one.harness.name == "slack" else LAST_SECONDS)
        await asyncio.sleep(2)
        counting.cancel()
        assert not missing, missing

    async def _greet(self, talks: Talks) -> None:
        """Everybody is known before anything happens: Discord tells a bot of no private chat that began while the bot was away."""
        for which in range(len(talks.people)):
            talks.say(which)
            await asyncio.sleep(self.pause)
        await talks.all_answered(LAST_SECONDS)

    async def _begin(self) -> None:
        """Each has a way of its own to the database."""
        self.number += 1
        name = f"n{self.number}"
        newer = self.newer if self.chance.random() < 0.5 else ""
        self.happened.append(f"{name} begins{', newer' * bool(newer)}")
        url, self.ways[name] = self.wires.enter_context(cable(self.database))
        await self.all_.begin(name, newer, OUTSPOKEN_STORAGE__URL=url, **SETTINGS)

    async def _befall(self) -> None:
        """Something happens to one of them, or to the database; one stays, and there are never too many."""
        if self.server is not None and self.chance.random() < 0.1:
            await self._restart(self.server)
            return
        if len(self.up) < 2 or (len(self.up) < self.most and self.chance.random() < 0.6):
            await self._begin()
            return
        node = self.chance.choice(self.up)
        way, number = self.ways[node.name], await self._number(node)
        what = self.chance.choice(["SIGKILL", "SIGSTOP", "SIGTERM", "cut", "black hole"])
        self.happened.append(f"{node.name} {what}")
        match what:
            case "SIGKILL" | "SIGTERM":
                node.signal(signal.Signals[what])
                if what == "SIGKILL":
                    await self._taken(number, what)
                else:
                    self.away.append(node)  # it ends: another one has to stay
            case "cut":
                way.cut()
            case _:
                self.away.append(node)
                way.silent = what == "black hole"
                if not way.silent:
                    node.signal(signal.SIGSTOP)
                seconds = self.chance.choice(SILENT)
                if seconds > TAKEN_SECONDS["SIGKILL"] and not way.silent:
                    seconds = max(0.0, seconds - await self._taken(number, "SIGSTOP"))
                await asyncio.sleep(seconds)
                if not way.silent:
                    node.signal(signal.SIGCONT)
                way.silent = False
                self.away.remove(node)

    async def _restart(self, server: Server) -> None:
        how = self.chance.choice(["fast", "immediate"])
        self.happened.append(f"the database is restarted ({how})")
        await asyncio.to_thread(server.stop, how)
        await asyncio.sleep(self.chance.choice(AWAY_SECONDS))
        await asyncio.to_thread(server.start)
        self.restarted = time.monotonic()

    async def _number(self, node: Node) -> int | None:
        """Under which it takes part now; None if it does not say."""
        with suppress(aiohttp.ClientError, TimeoutError, AssertionError):
            async with asyncio.timeout(2):
                found = [one["node"] for one in (await told_by(node))["nodes"] if one["here"]]
                return found[0] if found else None
        return None

    async def _taken(self, number: int | None, what: str) -> float:
        """How long until nothing is that node's any more."""
        began = time.monotonic()
        if number is None:
            return 0.0
        if what == "SIGKILL" and began - self.restarted < RESTARTED_SECONDS:
            what = BESIDE
        while (await self.all_.ask(f"SELECT count(*) FROM slices WHERE owner = {number}")) != [(0,)]:
            if time.monotonic() - began > LAST_SECONDS:
                break
            await asyncio.sleep(0.05)
        took = time.monotonic() - began
        self.times.taken.append((what, took))
        self.happened[-1] += f" (taken over after {took:.1f} s)"
        return took

    async def _talk(self, talks: Talks, until: float) -> None:
        """Each says the next thing when they have their answer, and now and then before."""
        count = len(talks.people)
        while time.monotonic() < until:
            which = self.chance.randrange(count)
            open_ = len(talks.said[which]) - len(set(talks.answers(which)))
            if open_ <= (1 if self.chance.random() < 0.1 else 0):
                words = self.chance.choice(["say answer", "slow one two three answer", "say answer"])
                talks.say(which, words)
                self.times.said(talks, which)
            await asyncio.sleep(self.pause)

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
        told: list[str] = []
        try:
            async with asyncio.timeout(LAST_SECONDS):
                while True:
                    for node in reversed(self.up):
                        again = Stream(node, one.name, one.words, one.key)
                        try:
                            async with asyncio.timeout(ASKED_SECONDS):
                                await again.watch()
                        except (
                            aiohttp.ClientError,
                            AssertionError,
                            TimeoutError,
                        ) as error:  # it ends, or is taken for dead just now
                            told.append(f"{node.name}: {error!r}")
                        else:
                            return again.text
                    await asyncio.sleep(0.2)
        except TimeoutError:
            return f"nobody answers {one.key} ({[node.name for node in self.up]} are up): {told[-2:]}"

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


async def _missing(talks: Talks, seconds: float) -> list[str]:
    """What is neither answered nor told about by then. The platforms and the model live in this process, so each look leaves them their time."""
    until, open_ = time.monotonic() + seconds, {*range(len(talks.people))}
    while True:
        for which in sorted(open_):
            shown = [one.text for one in talks.harness.seen(talks.places[which]) if one.mine]
            if not _chat_open(talks.said[which], shown):
                open_.discard(which)
            await asyncio.sleep(0.001)
        if not open_ or time.monotonic() > until:
            return [
                f"{talks.harness.name}: chat {which} of {talks.said[which]} has {talks.answers(which)}"
                for which in sorted(open_)
            ]
        await asyncio.sleep(0.2)


def _chat_open(said: Sequence[str], shown: Sequence[str]) -> bool:
    """Whether there is less told than was said. Pure."""
    numbers = {number_of(text) for text in shown}
    return sum(number not in numbers for number in said) > sum(NOTICE in text for text in shown)


async def storm(
    folder: Path,
    database: str,
    platforms: Sequence[str],
    seconds: float,
    seed: int,
    *,
    most: int = 3,
    chats: int = 20,
    rate: float = 60.0,
    server: Server | None = None,
) -> Sequence[str]:
    """What went wrong; printed is what happened. `rate`: messages in a second, all platforms together."""
    first, *others = platforms
    with ExitStack() as wires:
        async with cluster(folder, first, database, *others) as all_:
            talks = [Talks(one, -(-chats // len(platforms))) for one in (all_.harness, *all_.others)]
            newer = planted(folder / "newer") if server is not None else ""
            pause = len(platforms) / rate
            one = Storm(all_, database, talks, random.Random(seed), most, wires, pause, server, newer)
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
            print("\n".join(one.times.words()))
            lost += judged(seen)
            try:
                all_.sound()
            except AssertionError as error:
                lost.append(str(error))
            return lost


async def _main(given: argparse.Namespace, folder: Path, server: Server) -> int:
    wrong = await storm(
        folder,
        server.url,
        given.platforms,
        given.seconds,
        given.seed,
        chats=given.chats,
        rate=given.rate,
        server=server,
    )
    print("\n".join(wrong) or "all is well")
    return bool(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platforms", nargs="+", default=[*HARNESSES], choices=[*HARNESSES])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--chats", type=int, default=60)
    parser.add_argument("--rate", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with server() as database, tempfile.TemporaryDirectory() as name:
        folder: Path = given.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        return asyncio.run(_main(given, folder, database))


if __name__ == "__main__":
    sys.exit(main())
