"""Gateways that are killed, suspended, stopped and begun at random while people talk; what came of it is judged from outside.

python -m tests.several.storm --platform telegram --seconds 60 --seed 1
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
from dataclasses import dataclass, field
from pathlib import Path

from tests.databases import end_server, new_database, postgres_url, share_server
from tests.several.support import Cluster, Node, Talks, cluster

LABEL = "you may see this twice"
PAUSE = (1.0, 6.0)
"""So long between two things that happen to gateways."""
LAST_SECONDS = 90.0


@dataclass
class Storm:
    """A run under way."""

    all_: Cluster
    talks: Talks
    chance: random.Random
    most: int
    number: int = 0
    happened: list[str] = field(default_factory=list[str])
    stopped: list[Node] = field(default_factory=list[Node])

    @property
    def up(self) -> list[Node]:
        return [one for one in self.all_.nodes.values() if one.inner.returncode is None and one not in self.stopped]

    async def run(self, seconds: float) -> None:
        for _ in range(self.most):
            await self._begin()
        await self.all_.even(self.most)
        await self.all_.harness.ready()
        until = time.monotonic() + seconds
        talking = asyncio.create_task(self._talk(until))
        while time.monotonic() < until:
            await asyncio.sleep(self.chance.uniform(*PAUSE))
            await self._befall()
        await talking
        for node in self.stopped:
            node.signal(signal.SIGCONT)
        self.stopped.clear()
        if not self.up:
            await self._begin()
        await self.talks.all_answered(LAST_SECONDS)
        await asyncio.sleep(2)

    async def _begin(self) -> None:
        self.number += 1
        self.happened.append(f"{self.number} begins")
        await self.all_.begin(f"n{self.number}")

    async def _befall(self) -> None:
        """Something happens to one of them; one stays, and there are never too many."""
        if len(self.up) < 2 or (len(self.up) < self.most and self.chance.random() < 0.6):
            await self._begin()
            return
        node = self.chance.choice(self.up)
        what = self.chance.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
        self.happened.append(f"{node.name} {what.name}")
        node.signal(what)
        if what is signal.SIGSTOP:
            self.stopped.append(node)
            await asyncio.sleep(self.chance.choice([0.5, 2.0, 7.0]))
            node.signal(signal.SIGCONT)
            self.stopped.remove(node)

    async def _talk(self, until: float) -> None:
        """Each says the next thing when they have their answer, and now and then before."""
        count = len(self.talks.people)
        while time.monotonic() < until:
            which = self.chance.randrange(count)
            open_ = len(self.talks.said[which]) - len(set(self.talks.answers(which)))
            if open_ <= (1 if self.chance.random() < 0.1 else 0):
                words = self.chance.choice(["say answer", "slow one two three answer", "say answer"])
                self.talks.say(which, words)
            await asyncio.sleep(0.05)


def judged(talks: Talks) -> list[str]:
    """What is not as it should be: nothing is lost, nothing is said twice unmarked, the order of each chat is kept."""
    wrong: list[str] = []
    for which, said in enumerate(talks.said):
        texts = [one.text for one in talks.harness.seen(talks.places[which]) if one.mine]
        notices = sum("⚠️" in text for text in texts)
        shown = talks.answers(which)
        missing = [number for number in said if number not in shown]
        if len(missing) > notices:
            wrong.append(f"chat {which}: lost {missing}, {notices} notices")
        for number in set(shown):
            unmarked = [t for t in texts if t.rsplit("#", 1)[-1].split()[:1] == [number] and LABEL not in t]
            if len(unmarked) > 1:
                wrong.append(f"chat {which}: {number} is said {len(unmarked)} times")
        order = list(dict.fromkeys(shown))
        if order != [number for number in said if number in order]:
            wrong.append(f"chat {which}: order {order} of {said}")
    return wrong


async def storm(
    folder: Path, database: str, platform: str, seconds: float, seed: int, *, most: int = 3, chats: int = 20
) -> Sequence[str]:
    """What went wrong; printed is what happened."""
    async with cluster(folder, platform, database) as all_:
        one = Storm(all_, Talks(all_.harness, chats), random.Random(seed), most)
        try:
            await one.run(seconds)
        except AssertionError as error:
            lost = [n for n, said in enumerate(one.talks.said) if set(said) - set(one.talks.answers(n))]
            seen = [[shown.text for shown in all_.harness.seen(one.talks.places[n]) if shown.mine] for n in lost]
            return [
                str(error),
                *one.happened,
                *map(repr, zip(lost, (one.talks.said[n] for n in lost), seen, strict=True)),
            ]
        wrong = judged(one.talks)
        print(
            f"{platform}: {one.talks.number} messages, {len(one.happened)} things happened: {', '.join(one.happened)}"
        )
        all_.sound()
        still = await all_.ask("SELECT count(*) FROM turns WHERE state = 'open'")
        return wrong + ([f"{still[0][0]} turns are still open"] if still[0][0] else [])


async def _main(given: argparse.Namespace, folder: Path) -> int:
    database = await new_database(given.server, template="migrated")
    wrong = await storm(folder, database, given.platform, given.seconds, given.seed, chats=given.chats)
    print("\n".join(wrong) or "all is well")
    return bool(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", default="telegram")
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
