"""Many messages through a platform that fails all the time, and a gateway that is killed: nothing lost, nothing said twice unmarked.

python -m tests.chats.soak --platform discord --messages 10000 --chats 200 --kills 3

Where the platform can tell whether a message is there (Discord by its nonce, Slack by what is read back), nothing is said twice at all.
Afterwards every message has to be explained from the database, as `outspoken explain` does it: those that were answered, those of
strangers, those that were said while the gateway was dead, and those that were not meant for it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import elsewhere
from tests.chats.audited import lies
from tests.chats.harness import Harness, Process, process
from tests.chats.stories import Fate, Said, judged
from tests.chats.storms import PLATFORMS, Storm, storm_of
from tests.fakes.common import LoseAnswer
from tests.laws.look import breaches

REORDERED = 4
"""So many messages of different chats are now and then delivered in another order."""
REORDER_EVERY, REDELIVER_EVERY, CUT_EVERY = 101, 97, 397
WHILE_AWAY = 5
"""So many messages are said while the gateway is dead."""
ROOM_EVERY = 4
"""One talk of so many is in a thread, where the platform's pace allows it."""
QUIET = 60.0
"""Within so many seconds after the last answer, nothing is to be changed any more."""
LABEL = "you may see this twice"
STRANGERS = 5
REFUSED_EVERY, UNHEARD_EVERY = 23, 29
"""Besides, a stranger writes at every so many-th message, and somebody writes something that is not meant for the bot."""


@dataclass
class Talk:
    """One person's chat, and what was said in it."""

    place: Any
    person: Any
    mention: bool
    fate: Fate = Fate.RUN
    said: list[str] = field(default_factory=list[str])
    messages: list[Said] = field(default_factory=list[Said])

    def answered(self, harness: Harness) -> list[str]:
        """The numbers of the answers that are to be seen, in order, doubles and all."""
        shown = [one.text for one in harness.seen(self.place) if one.mine and "#" in one.text]
        return [text.rsplit("#", 1)[1].strip() for text in shown]


@dataclass
class Found:
    """What came of it."""

    platform: str
    messages: int = 0
    seconds: float = 0.0
    kills: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled_unmarked: list[str] = field(default_factory=list[str])
    doubled_marked: int = 0
    may_double: bool = False
    out_of_order: list[str] = field(default_factory=list[str])
    lost_answers: int = 0
    requests: int = 0
    failed: int = 0
    notices: int = 0
    told: int = 0
    """Messages that have to be explained."""
    unexplained: list[str] = field(default_factory=list[str])
    lying: list[str] = field(default_factory=list[str])
    explaining_seconds: float = 0.0

    @property
    def sound(self) -> bool:
        doubled = self.doubled_unmarked or (self.doubled_marked and not self.may_double)
        return not (self.lost or doubled or self.out_of_order or self.unexplained or self.lying)

    def lines(self) -> str:
        return (
            f"{self.platform}: {self.messages} messages in {self.seconds:.0f} s, {self.kills} kills, {self.requests} requests, "
            f"{self.failed} of them refused or failed, {self.lost_answers} answers of the platform lost\n"
            f"lost: {len(self.lost)} {self.lost[:5]}; unmarked doubles: {len(self.doubled_unmarked)} {self.doubled_unmarked[:5]}; "
            f"out of order: {len(self.out_of_order)} {self.out_of_order[:3]}; marked doubles: {self.doubled_marked}; notices: {self.notices}\n"
            f"explained: {self.told - len(self.unexplained)} of {self.told} in {self.explaining_seconds:.0f} s "
            f"{self.unexplained[:3] if self.unexplained else ''}\n"
            f"stored and not true at the end: {len(self.lying)} {self.lying[:3] if self.lying else ''}"
        )


@dataclass
class Soak:
    """A run under way."""

    harness: Harness
    storm: Storm
    talks: list[Talk]
    chance: random.Random
    stack: AsyncExitStack
    messages: int
    kills: int
    patience: float
    strangers: list[Talk] = field(default_factory=list[Talk])
    unheard: list[Talk] = field(default_factory=list[Talk])
    said: int = 0
    lying: list[str] = field(default_factory=list[str])
    """What is stored at the end and is not true."""

    @property
    def _settings(self) -> dict[str, str]:
        """Those who are in a talk may talk, and strangers may not."""
        section = f"OUTSPOKEN_{self.harness.name.upper()}"
        allowed = ",".join(dict.fromkeys(self.harness.id_of(talk.person) for talk in self.talks))
        return {f"{section}__OPEN": "false", f"{section}__PAIRING": "false", f"{section}__ALLOW": allowed}

    @property
    def _kill_at(self) -> set[int]:
        return {self.messages * (k + 1) // (self.kills + 1) for k in range(self.kills)}

    async def run(self) -> None:
        """Say everything, with all that goes wrong meanwhile."""
        self.storm.begin(self.chance.randrange(1000))
        running = await self.stack.enter_async_context(process(self.harness, **self._settings))
        kill_at = self._kill_at
        holding = False
        while self.said < self.messages:
            number = self.said
            if number in kill_at:
                kill_at.discard(number)
                running = await self._killed(running)
                continue
            if number % REORDER_EVERY == 0:
                self.storm.hold()
                holding = True
            await self.say(alone=holding)
            if number % REFUSED_EVERY == 0:
                self._aside(self.strangers)
            if number % UNHEARD_EVERY == 0:
                self._aside(self.unheard)
            if holding and number % REORDER_EVERY == REORDERED - 1:
                self.storm.release(self.chance)
                holding = False
            if number % REDELIVER_EVERY == 0:
                self.storm.redeliver(self.chance)
            if number % CUT_EVERY == CUT_EVERY - 1:
                self.storm.cut(self.chance)
        if holding:
            self.storm.release(self.chance)
        await self._all_answered()
        await asyncio.sleep(3)
        self.lying = [
            f"{one.lie} {one.surface} {one.origin} {one.bubble}" for one in await lies(self.harness.folder, QUIET)
        ]
        await running.kill()
        self.lying += [
            f"{one.law.value} {one.what}" for one in await breaches(elsewhere.database_of(self.harness.folder))
        ]

    async def _killed(self, running: Process) -> Process:
        """Dead, and alive again; people go on talking meanwhile."""
        await running.kill()
        known = [talk for talk in self.talks if talk.said]
        for talk in self.chance.sample(known, min(WHILE_AWAY, len(known), self.messages - self.said)):
            self._speak(talk)
        return await self.stack.enter_async_context(process(self.harness, **self._settings))

    def _speak(self, talk: Talk) -> None:
        number = str(self.said)
        self.said += 1
        talk.said.append(number)
        self._write(talk, f"say answer #{number}", number)

    def _aside(self, talks: list[Talk]) -> None:
        """Something that gets no answer."""
        if talks:
            talk = self.chance.choice(talks)
            self._write(talk, f"say aside #{len(talk.messages)}")

    def _write(self, talk: Talk, words: str, number: str = "") -> None:
        at = time.time_ns() // 1_000_000
        said = self.harness.say(talk.place, talk.person, words, mention=talk.mention)
        key = f"{self.harness.chat_of(talk.place)}:{said}"
        talk.messages.append(Said(key, at, words, talk.fate, number))

    async def say(self, *, alone: bool) -> None:
        """The next message, in a chat that does not have too many open ones (none, if it must be `alone`)."""
        while True:
            for _ in range(20):
                talk = self.chance.choice(self.talks)
                open_ones = len(talk.said) - len(set(talk.answered(self.harness)))
                if open_ones <= (2 if self.said % 10 == 0 and not alone else 0):
                    self._speak(talk)
                    return
            await asyncio.sleep(0.02)

    async def _all_answered(self) -> None:
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            if all(set(talk.said) <= set(talk.answered(self.harness)) for talk in self.talks):
                return
            await asyncio.sleep(0.5)

    def judge(self, found: Found) -> None:
        """Compare what was said with what there is to see."""
        for talk in self.talks:
            shown = talk.answered(self.harness)
            texts = [one.text for one in self.harness.seen(talk.place) if one.mine]
            # A turn that a kill interrupted ends in a notice instead of its answer: that is no loss.
            interrupted = sum("⚠️" in text for text in texts)
            found.notices += interrupted
            missing = [number for number in talk.said if number not in shown]
            found.lost += missing[interrupted:]
            for number in set(shown):
                mine = [text for text in texts if text.endswith(f"#{number}")]
                unmarked = [text for text in mine if LABEL not in text]
                found.doubled_marked += len(mine) - max(1, len(unmarked))
                if len(unmarked) > 1:
                    found.doubled_unmarked.append(number)
            order = list(dict.fromkeys(shown))
            if order != [n for n in talk.said if n in order]:
                found.out_of_order.append(f"{self.harness.id_of(talk.person)}: {order} for {talk.said}")
        found.lying = self.lying
        found.told = sum(len(talk.messages) for talk in self._all)
        calls = self.storm.calls()
        found.requests = len(calls)
        found.failed = sum(bool(call.faults) or (call.status or 0) >= 400 for call in calls)
        found.lost_answers = sum(any(isinstance(f, LoseAnswer) for f in call.faults) for call in self.storm.sends())

    @property
    def _all(self) -> list[Talk]:
        return [*self.talks, *self.strangers, *self.unheard]

    async def judge_stories(self, found: Found) -> None:
        """Compare what `explain` says of each message with what there is to see."""
        began = time.monotonic()
        chats = [(talk.messages, self.harness.seen(talk.place)) for talk in self._all]
        found.unexplained = await judged(self.harness.folder, self.harness.name, chats)
        found.explaining_seconds = time.monotonic() - began


async def soak(
    folder: Path, platform: str, messages: int, chats: int, kills: int, seed: int, patience: float = 120
) -> Found:  # fmt: skip
    """Run it. Every message asks for an answer with its own number; `patience` is how many seconds the last ones may take."""
    chance = random.Random(seed)
    began = time.monotonic()
    async with PLATFORMS[platform](folder) as harness, AsyncExitStack() as stack:
        storm = storm_of(harness)
        talks = [_talk(harness, number, storm) for number in range(chats)]
        strangers = [_stranger(harness, number) for number in range(STRANGERS)]
        unheard = [_unheard(harness, talks[0].person)]
        running = Soak(harness, storm, talks, chance, stack, messages, kills, patience, strangers, unheard)
        await running.run()
        found = Found(platform, messages, time.monotonic() - began, kills, may_double=storm.may_double)
        running.judge(found)
        await running.judge_stories(found)
    return found


def _talk(harness: Harness, number: int, storm: Storm) -> Talk:
    person = harness.person(f"P{number}")
    if storm.rooms and number % ROOM_EVERY == ROOM_EVERY - 1:
        return Talk(harness.topics(person)[1], person, mention=True)
    return Talk(harness.private(person), person, mention=False)


def _stranger(harness: Harness, number: int) -> Talk:
    person = harness.person(f"Stranger{number}")
    return Talk(harness.private(person), person, mention=False, fate=Fate.REFUSED)


def _unheard(harness: Harness, person: Any) -> Talk:
    return Talk(harness.group(person), person, mention=False, fate=Fate.UNHEARD)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", choices=sorted(PLATFORMS), default="telegram")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--chats", type=int, default=100)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="keep the gateway's log and database in this folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder: Path = given.log or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        found = asyncio.run(soak(folder, given.platform, given.messages, given.chats, given.kills, given.seed))
    print(found.lines())
    return 0 if found.sound else 1


if __name__ == "__main__":
    sys.exit(main())
