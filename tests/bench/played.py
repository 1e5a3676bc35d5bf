"""A few hundred real turns of all kinds: three platforms, the API and the page; files, tools, failures, notices, incidents, webhooks, reminders, commands.

    python -m tests.bench.played FOLDER

They are what a large store is made of (`tests.bench.grown`): a gateway says what its rows look like, and nobody has to say it twice.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from agent_core.store.people.rows import PersonState
from agent_core.store.store import Store
from tests.bench.words import text
from tests.chats.harness import Harness, Seen, answer, environment
from tests.chats.together import Three, three
from tests.elsewhere import rows
from tests.serving import served
from tests.webhooks.receiver import receiving
from tests.webhooks.test_gateway import configured

PERSON, GROUP, MESSAGE = 555_000_001, 555_900_001, 777_000_001
"""Telegram's numbers begin here: whoever copies them has to know them from others."""
TURNS = 12
"""Of a conversation in a chat, beside what is tried there."""
PEOPLE = 4
"""Of each platform, in a private chat of their own; two of them in a group as well."""
NAMED, PAGES, SINGLE = 4, 3, 60
"""Conversations of the API and of the page, and requests that belong to none."""
TRIED = (
    "write a.txt: some words that are kept", "usetool read_file {\"path\": \"a.txt\"}", "send a.txt", "keep likes 80", "empty", "down", "stall",
)  # fmt: skip
"""What is tried once in each chat and named conversation: files, a tool, memory, and what goes wrong."""
COMMANDS = ("status", "why", "memory", "resume", ("remind", "in 3 seconds tea"), ("remind", "in 300 days tea"))
SALT = "nr-0000"
"""Another number in each copy, so that no two copies have the same pieces."""
BROWSER = {"X-Outspoken-Browser": "browser-of-the-bench"}
PICTURE = "data:image/png;base64," + "iVBORw0KGgo" * 2_000
SETTINGS = {
    "OUTSPOKEN_BUDGETS__PERSON_TOKENS": "100000000",
    "OUTSPOKEN_PEOPLE__LINK": "true",
}


@dataclass
class Playing:
    """A gateway that runs, and what is said to it."""

    world: Three
    store: Store
    folder: Path
    http: aiohttp.ClientSession
    dice: random.Random

    async def all(self) -> None:
        """Everything, and come back when all has an end."""
        chats = [self.chats(harness) for harness in self.world.all.values()]
        await asyncio.gather(*chats, *(self.named(number) for number in range(NAMED)), self.single())
        await asyncio.gather(*(self.page(f"c-page-of-{number:04}") for number in range(PAGES)))
        await self.settled()
        await self.approved()

    async def approved(self) -> None:
        """Everybody who has written is somebody who was let in."""
        for one in await self.store.people.spoke():
            await self.store.people.put(replace(one, state=PersonState.APPROVED, by="bench"))

    async def chats(self, harness: Harness) -> None:
        """A platform: each of the people for themselves, and a group."""
        people = [harness.person(f"Person {number}") for number in range(PEOPLE)]
        places = [(harness.private(one), one, False) for one in people]
        places.append((harness.group(*people[:2]), people[0], True))
        await asyncio.gather(*(self.chat(harness, *place, number) for number, place in enumerate(places)))

    async def chat(self, harness: Harness, place: Any, person: Any, mention: bool, number: int) -> None:
        """A conversation of a chat."""
        for turn in range(TURNS // 3 if mention else TURNS):  # a group has a pace of its own
            length = 60 + turn * 13 + number
            harness.say(place, person, self.words(length), mention=mention)
            await answer(harness, place, f"word{length - 1}.", 120)
            if number == 1 and turn == TURNS // 2:
                harness.command(place, person, "new")
                await asyncio.sleep(1)
        if not mention:
            brought = text(self.dice, 100, 300).encode()
            harness.attach(place, person, "notes.txt", brought, "text/plain", "say I have it")
            await answer(harness, place, "I have it", 60)
        for words in TRIED[:2] if mention else TRIED:
            before = len(harness.seen(place))
            harness.say(place, person, words, mention=mention)
            await harness.until(lambda before=before: len(harness.seen(place)) > before + 1, 60)
            await self.quiet(harness, place)
        for command in COMMANDS:
            harness.command(place, person, *([command] if isinstance(command, str) else command))
            await self.quiet(harness, place)

    def words(self, length: int) -> str:
        """What somebody says, and what the model is to say to it."""
        return f"{SALT} {text(self.dice, 5, 60)}\nlong {length}"

    async def quiet(self, harness: Harness, place: Any) -> None:
        """A turn may end in several messages: what follows is said behind the last."""
        async with asyncio.timeout(60):
            before = list[Seen]()
            while before != (before := harness.seen(place)):
                await asyncio.sleep(1.5)

    # ------------------------------------------------------------------ over HTTP

    async def asked(self, words: str, session: str, caller: str) -> None:
        """One request of the API. What fails is an answer, too."""
        body = {"model": "m1", "messages": [{"role": "user", "content": words}], "user": caller}
        async with self.http.post("/v1/chat/completions", json=body, headers={"X-Outspoken-Session": session}) as got:
            await got.read()

    async def named(self, number: int) -> None:
        """A conversation over the API."""
        session, caller = f"talk-{number:04}", f"caller-{number:04}"
        for turn in range(TURNS * 2):
            await self.asked(self.words(60 + turn * 5), session, caller)
        for words in TRIED:
            await self.asked(words, session, caller)

    async def single(self) -> None:
        """Requests that bring what they need, some with the whole history, some with a picture."""
        past: list[dict[str, Any]] = []
        for number in range(SINGLE):
            words: Any = self.words(60 + number)
            if number % 10 == 0:
                words = [{"type": "text", "text": words}, {"type": "image_url", "image_url": {"url": PICTURE}}]
            if number % 10 == 5:
                words = f"{SALT} {text(self.dice, 800, 2000)}\nsay thanks"
            past = [*past[-20:], {"role": "user", "content": words}]
            body = {"model": "m1", "messages": past, "user": f"caller-{number % 7 + 100:04}"}
            async with self.http.post("/v1/chat/completions", json=body) as response:
                told = await response.json()
            past.append({"role": "assistant", "content": told["choices"][0]["message"]["content"]})

    async def page(self, session: str) -> None:
        """A conversation of the page, one message after the other."""
        for turn in range(TURNS):
            words = {"id": f"{session}-{turn}", "text": self.words(80 + turn)}
            async with self.http.post(f"/api/sessions/{session}/messages", json=words, headers=BROWSER) as response:
                assert response.status == 202, await response.text()
            await self.settled()

    async def settled(self) -> None:
        """Come back when nothing waits any more."""
        waits = "SELECT (SELECT count(*) FROM inbox WHERE state = 'new') + (SELECT count(*) FROM turns WHERE state = 'open')"
        parts = "SELECT count(*) FROM deliveries WHERE state IN ('wanted', 'sending', 'unknown')"
        async with asyncio.timeout(180):
            while any(one for query in (waits, parts) for (one,) in rows(self.folder, query)):
                await asyncio.sleep(0.3)


@asynccontextmanager
async def _gateway(folder: Path) -> AsyncGenerator[Playing]:
    async with three(folder) as world, receiving() as told:
        people, chats = world.telegram.fake.people, world.telegram.fake.world
        people._next_user, people._next_group, chats._next_message = PERSON, GROUP, MESSAGE
        env = environment(world.discord, **world.env(), **configured(told.url), **SETTINGS)
        async with served(folder, env) as up, aiohttp.ClientSession(up.url) as http:
            await world.ready()
            yield Playing(world, up.hub.forgetting.store, folder, http, random.Random(7))


async def played(folder: Path) -> None:
    """The database of a gateway of this home, with all of that in it."""
    async with _gateway(folder) as playing:
        await playing.all()


def main(arguments: Sequence[str]) -> None:
    """Entry point."""
    asyncio.run(played(Path(arguments[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
