"""The toy platform under the conformance suite."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from outspoken_toy.protocol import Person

from tests.chats.harness import Seen
from tests.chats.model import ScriptedModel, scripted_model
from tests.toy.installed import installed
from tests.toy.server import BOT, TOKEN, Chat, ToyServer


@dataclass(frozen=True)
class Where:
    """A chat, or a thread of one."""

    chat: Chat
    thread: str = ""


class ToyHarness:
    """Implements `tests.chats.harness.Harness`."""

    name = "toy"
    by_draft = False
    answers_once = True
    shows_typing = True
    plain_shows = True

    def __init__(self, server: ToyServer, model: ScriptedModel, folder: Path) -> None:
        self.server = server
        self.model = model
        self.folder = folder
        self._groups = 0

    def env(self) -> Mapping[str, str]:
        return {
            "OUTSPOKEN_TOY__TOKEN": TOKEN,
            "OUTSPOKEN_TOY__PORT": str(self.server.port),
            "OUTSPOKEN_TOY__OPEN": "true",
            "OUTSPOKEN_TOY__PER_MINUTE": "1000",
        }

    async def ready(self) -> None:
        """The platform keeps what comes before."""

    def person(self, name: str) -> Person:
        return Person(id=name.lower(), name=name)

    def id_of(self, person: Person) -> str:
        return person.id

    def private(self, person: Person) -> Where:
        return Where(self.server.chat(f"p-{person.id}", private=True))

    def chat_of(self, place: Where) -> str:
        return place.chat.id

    def group(self, *people: Person) -> Where:
        del people
        self._groups += 1
        return Where(self.server.chat(f"g-{self._groups}", private=False))

    def topics(self, *people: Person) -> tuple[Where, Where, Where]:
        group = self.group(*people)
        return group, Where(group.chat, "one"), Where(group.chat, "two")

    def say(self, place: Where, person: Person, text: str, *, mention: bool = False, reply_to: str = "") -> str:
        answered = place.chat.messages.get(reply_to)
        ours = answered is not None and answered.by == BOT
        return self.server.says(place.chat, person, text, thread=place.thread, mentions_bot=mention, reply_to_bot=ours)

    def command(self, place: Where, person: Person, name: str, words: str = "", *, other: bool = False) -> None:
        self.server.says(place.chat, person, words, thread=place.thread, command=name, for_others=other)

    def edit(self, place: Where, message: str, text: str) -> None:
        self.server.edits(place.chat, message, text)

    def attach(self, place: Where, person: Person, name: str, data: bytes, mime: str, caption: str) -> None:
        self.server.says(place.chat, person, caption, thread=place.thread, files={name: (data, mime)})

    def voice(self, place: Where, person: Person, data: bytes) -> None:
        pytest.skip("nobody speaks there")

    def album(self, place: Where, person: Person, pictures: Sequence[bytes], caption: str) -> None:
        for number, picture in enumerate(pictures):
            files = {f"{number}.png": (picture, "image/png")}
            words = caption if not number else ""
            self.server.says(place.chat, person, words, thread=place.thread, files=files, album="album-1")

    def press(self, place: Where, person: Person, message: str, label: str) -> None:
        self.server.presses(place.chat, person, message, label)

    def forge(self, place: Where, person: Person, message: str, data: str) -> None:
        self.server.pressed(place.chat, person, message, data)

    def remove(self, place: Where, message: str) -> None:
        del place.chat.messages[message]

    def redeliver(self) -> None:
        self.server.again()

    def odd_event(self, place: Where) -> None:
        del place
        self.server.oddity()

    def seen(self, place: Where) -> list[Seen]:
        return [
            Seen(
                id=one.id,
                text=one.text,
                mine=one.by == BOT,
                buttons=tuple(label for label, _ in one.buttons),
                edits=one.edits,
                silent=one.silent,
                file=one.file_name,
                data=one.data,
                reply_to=one.reply_to,
                code=one.styled("pre"),
                bold=one.styled("bold"),
            )
            for one in place.chat.messages.values()
            if one.thread == place.thread
        ]

    def preview(self, place: Where) -> str:
        del place
        return ""

    def typing(self, place: Where) -> bool:
        return place.chat.typing_until > time.monotonic()

    def menu(self) -> list[str]:
        return list(self.server.menu)

    def block(self, place: Where) -> None:
        place.chat.closed = "blocked"

    def silence(self, group: Where) -> None:
        group.chat.closed = "no rights"

    def fail_sends(self, *faults: str) -> None:
        self.server.faults.extend(faults)

    def flood(self, seconds: float) -> None:
        self.server.faults.append(f"flood {seconds}")

    def flooded(self) -> bool:
        return not any(fault.startswith("flood") for fault in self.server.faults)

    def writes_since(self, seconds: float) -> int:
        since = time.monotonic() - seconds
        return sum(at >= since for at in self.server.writes)

    def deafen(self) -> None:
        self.server.deafen()

    def wrong_token(self) -> Mapping[str, str]:
        return {"OUTSPOKEN_TOY__TOKEN": "toy-token-wrong"}

    async def until(self, condition: Callable[[], bool], within: float = 10.0) -> None:
        await self.server.until(condition, within)


@asynccontextmanager
async def toy_harness(folder: Path) -> AsyncGenerator[ToyHarness]:
    with installed():
        async with ToyServer().open() as server, scripted_model() as model:
            yield ToyHarness(server, model, folder)
