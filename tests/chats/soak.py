"""Many messages through a platform that fails all the time, and a gateway that is killed: nothing lost, nothing said twice unmarked.

python -m tests.chats.soak --messages 10000 --chats 100 --kills 3
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

from tests.chats.harness import Process, process
from tests.chats.telegram_harness import TelegramHarness, Where, telegram_harness
from tests.fakes.common import LoseAnswer, Reset
from tests.fakes.telegram import User, flood, gateway_page, server_error

REORDERED = 4
"""So many updates of different chats are now and then delivered in another order."""
LABEL = "you may see this twice"


@dataclass
class Talk:
    """One person's chat, and what was said in it."""

    place: Where
    person: User
    said: list[str] = field(default_factory=list[str])

    def answered(self, harness: TelegramHarness) -> list[str]:
        """The numbers of the answers that are to be seen, in order, doubles and all."""
        shown = [one.text for one in harness.seen(self.place) if one.mine and "#" in one.text]
        return [text.rsplit("#", 1)[1].strip() for text in shown]


@dataclass
class Found:
    """What came of it."""

    messages: int = 0
    seconds: float = 0.0
    kills: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled_unmarked: list[str] = field(default_factory=list[str])
    doubled_marked: int = 0
    out_of_order: list[str] = field(default_factory=list[str])
    lost_answers: int = 0
    requests: int = 0
    notices: int = 0

    @property
    def sound(self) -> bool:
        return not (self.lost or self.doubled_unmarked or self.out_of_order)

    def lines(self) -> str:
        return (
            f"{self.messages} messages in {self.seconds:.0f} s, {self.kills} kills, {self.requests} requests, "
            f"{self.lost_answers} answers of the platform lost\n"
            f"lost: {len(self.lost)} {self.lost[:5]}; unmarked doubles: {len(self.doubled_unmarked)} {self.doubled_unmarked[:5]}; "
            f"out of order: {len(self.out_of_order)} {self.out_of_order[:3]}; marked doubles: {self.doubled_marked}; notices: {self.notices}"
        )


async def soak(folder: Path, messages: int, chats: int, kills: int, seed: int) -> Found:
    """Run it. Every message asks for an answer with its own number."""
    chance = random.Random(seed)
    found = Found(messages=messages, kills=kills)
    began = time.monotonic()
    async with telegram_harness(folder) as harness, AsyncExitStack() as stack:
        talks = [Talk(harness.private(p), p) for p in (harness.person(f"P{n}") for n in range(chats))]
        _trouble(harness, seed)
        running = await stack.enter_async_context(process(harness))
        kill_at = {messages * (k + 1) // (kills + 1) for k in range(kills)}
        for number in range(messages):
            if number in kill_at:
                await running.kill()
                running = await _again(harness, stack)
            if number % 101 == 0:
                harness.fake.hold_updates()
            await _say(harness, talks, number, chance, alone=number % 101 < REORDERED)
            if number % 101 == REORDERED - 1:
                harness.fake.release_updates(chance.sample(range(REORDERED), REORDERED))
            if number % 97 == 0 and harness.fake.world.updates.confirmed:
                harness.fake.redeliver(chance.choice(harness.fake.world.updates.confirmed[-50:]))
        if messages % 101 < REORDERED:
            harness.fake.release_updates()
        await _all_answered(harness, talks)
        await asyncio.sleep(3)
        found.seconds = time.monotonic() - began
        _judge(harness, talks, found)
        await running.kill()
    return found


async def _again(harness: TelegramHarness, stack: AsyncExitStack) -> Process:
    return await stack.enter_async_context(process(harness))


def _trouble(harness: TelegramHarness, seed: int) -> None:
    fake = harness.fake
    fake.chaos(
        seed, (0.02, server_error(500)), (0.02, gateway_page(502)), (0.01, server_error(503)), (0.05, LoseAnswer()),
        (0.01, flood(1)), (0.01, Reset()), method="sendMessage",
    )  # fmt: skip
    fake.chaos(seed + 1, (0.02, server_error(500)), (0.02, Reset()), (0.02, LoseAnswer()), method="getUpdates")
    fake.chaos(seed + 2, (0.05, server_error(500)), (0.02, flood(1)), method="sendMessageDraft")


async def _say(
    harness: TelegramHarness, talks: list[Talk], number: int, chance: random.Random, *, alone: bool
) -> None:  # fmt: skip
    """The next message, in a chat that does not have too many open ones (none, if it must be `alone`)."""
    while True:
        for _ in range(20):
            talk = chance.choice(talks)
            open_ones = len(talk.said) - len(set(talk.answered(harness)))
            if open_ones <= (2 if number % 10 == 0 and not alone else 0):
                talk.said.append(str(number))
                harness.say(talk.place, talk.person, f"say answer #{number}")
                return
        await asyncio.sleep(0.02)


async def _all_answered(harness: TelegramHarness, talks: list[Talk]) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if all(set(talk.said) <= set(talk.answered(harness)) for talk in talks):
            return
        await asyncio.sleep(0.5)


def _judge(harness: TelegramHarness, talks: list[Talk], found: Found) -> None:
    for talk in talks:
        shown = talk.answered(harness)
        texts = [one.text for one in harness.seen(talk.place) if one.mine]
        found.notices += sum("⚠️" in text for text in texts)
        # A turn that a kill interrupted ends in a notice instead of its answer: that is no loss.
        interrupted = sum("⚠️" in text for text in texts)
        missing = [number for number in talk.said if number not in shown]
        found.lost += missing[interrupted:]
        for number in set(shown):
            mine = [text for text in texts if text.endswith(f"#{number}")]
            unmarked = [text for text in mine if LABEL not in text]
            found.doubled_marked += len(mine) - 1
            if len(unmarked) > 1:
                found.doubled_unmarked.append(number)
        order = list(dict.fromkeys(shown))
        if order != [n for n in talk.said if n in order]:
            found.out_of_order.append(f"{talk.person.id}: {order} for {talk.said}")
    found.requests = len(harness.fake.log)
    found.lost_answers = sum(
        any(isinstance(f, LoseAnswer) for f in call.faults) for call in harness.fake.log.of("sendMessage")
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--chats", type=int, default=100)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(soak(Path(folder), given.messages, given.chats, given.kills, given.seed))
    print(found.lines())
    return 0 if found.sound else 1


if __name__ == "__main__":
    sys.exit(main())
