"""Discord under the conformance suite."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.chats.harness import Seen
from tests.chats.model import ScriptedModel, scripted_model
from tests.fakes.common import LoseAnswer, Reset, Step
from tests.fakes.discord import Channel, Code, DiscordFake, Permission, Route, User, flood, refusal, server_error
from tests.fakes.discord.forms import Upload
from tests.fakes.discord.screen import Shown

WRITES = (Route.CREATE_MESSAGE, Route.EDIT_MESSAGE, Route.DELETE_MESSAGE, Route.TYPING)
FENCE = re.compile(r"```\w*\n(.*?)\n```", re.DOTALL)
BOLD = re.compile(r"\*\*(.+?)\*\*")


def readable(text: str) -> str:
    """Markdown as a person sees it."""
    pieces = re.split(r"(```\w*\n.*?\n```)", text, flags=re.DOTALL)
    return "".join(FENCE.sub(r"\1", piece) if piece.startswith("```") else _plain(piece) for piece in pieces)


def _plain(text: str) -> str:
    text = re.sub(r"(?<!\\)\[([^\]]*)\]\(<[^>]*>\)", r"\1", text)
    text = re.sub(r"(?<!\\)(\*\*|\*|~~|`+)", "", text)
    return re.sub(r"\\(.)", r"\1", text)


class DiscordHarness:
    """Implements `tests.chats.harness.Harness`."""

    name = "discord"
    by_draft = False
    answers_once = True
    shows_typing = True
    plain_shows = False

    def __init__(self, fake: DiscordFake, model: ScriptedModel, folder: Path) -> None:
        self.fake = fake
        self.model = model
        self.folder = folder
        self._last: int = 0

    def env(self) -> Mapping[str, str]:
        return {
            "DISCORD_BOT_TOKEN": self.fake.token,
            "OUTSPOKEN_DISCORD__API_BASE": self.fake.api_url,
            "OUTSPOKEN_DISCORD__GATEWAY_URL": self.fake.gateway_url,
            "OUTSPOKEN_DISCORD__OPEN": "true",
            "OUTSPOKEN_DISCORD__PER_MINUTE": "1000",
        }

    async def ready(self) -> None:
        await self.fake.until_connected(20)
        await self.fake.until(lambda: bool(self.fake.world.commands.syncs), 10)
        await asyncio.sleep(0.6)  # the library waits for guilds before it says that it is ready

    def person(self, name: str) -> User:
        return self.fake.people.user(name)

    def id_of(self, person: User) -> str:
        return str(person.id)

    def private(self, person: User) -> Channel:
        return self.fake.people.dm(person)

    def chat_of(self, place: Channel) -> str:
        return str(place.id)

    def group(self, *people: User) -> Channel:
        guild = self.fake.people.guild("Friends", *people)
        return self.fake.people.channel(guild, "general")

    def topics(self, *people: User) -> tuple[Channel, Channel, Channel]:
        channel = self.group(*people)
        one, two = (self.fake.people.thread(channel, people[0], name) for name in ("one", "two"))
        return channel, one, two

    def say(self, place: Channel, person: User, text: str, *, mention: bool = False, reply_to: str = "") -> str:
        words = f"<@{self.fake.world.bot.id}> {text}" if mention else text
        answered = place.messages[int(reply_to)] if reply_to else None
        limit = 2000
        pieces = [words[i : i + limit] for i in range(0, len(words), limit)]
        sent = [self.fake.people.say(place, person, piece, reply_to=answered) for piece in pieces]
        return str(sent[0].id)

    def command(self, place: Channel, person: User, name: str, words: str = "", *, other: bool = False) -> None:
        if other:
            pytest.skip("what is for another bot does not come to us here")
        known = {one for sync in self.fake.world.commands.syncs for one in sync.names}
        if name in known:
            self.fake.people.command(place, person, name, **({"words": words} if words else {}))
        else:
            self.say(place, person, f"/{name} {words}")

    def edit(self, place: Channel, message: str, text: str) -> None:
        self.fake.people.edit(place.messages[int(message)], text)

    def attach(self, place: Channel, person: User, name: str, data: bytes, mime: str, caption: str) -> None:
        self.fake.people.say(place, person, caption, files=[Upload("", name, mime, data)])

    def voice(self, place: Channel, person: User, data: bytes) -> None:
        upload = Upload("", "voice-message.ogg", "audio/ogg", data)
        self.fake.people.say(place, person, files=[upload], voice=True)

    def album(self, place: Channel, person: User, pictures: Sequence[bytes], caption: str) -> None:
        files = [Upload("", f"p{n}.png", "image/png", data) for n, data in enumerate(pictures)]
        self.fake.people.say(place, person, caption, files=files)

    def press(self, place: Channel, person: User, message: str, label: str) -> None:
        self.fake.people.press(place.messages[int(message)], person, label)

    def forge(self, place: Channel, person: User, message: str, data: str) -> None:
        self.fake.people.press_raw(place.messages[int(message)], person, data)

    def remove(self, place: Channel, message: str) -> None:
        self.fake.people.remove(place.messages[int(message)])

    def redeliver(self) -> None:
        self.fake.gateway.redeliver()

    def odd_event(self, place: Channel) -> None:
        self.fake.gateway.dispatch("MESSAGE_CREATE", {"id": "no number", "channel_id": str(place.id), "author": "x"})

    def seen(self, place: Channel) -> list[Seen]:
        return [self._seen(one) for one in self.fake.shown(place).messages if not one.ephemeral]

    def _seen(self, one: Shown) -> Seen:
        return Seen(
            id=str(one.id),
            text=readable(one.text) if one.by_bot else one.text,
            mine=one.by_bot,
            buttons=tuple(label for row in one.buttons for label in row),
            edits=one.edits,
            silent=one.silent,
            file=one.files[0].name if one.files else "",
            data=one.files[0].data if one.files else b"",
            reply_to=str(one.reply_to or ""),
            code=tuple(FENCE.findall(one.text)),
            bold=tuple(BOLD.findall(FENCE.sub("", one.text))),
        )

    def preview(self, place: Channel) -> str:
        return ""

    def typing(self, place: Channel) -> bool:
        return self.fake.shown(place).typing

    def menu(self) -> list[str]:
        syncs = self.fake.world.commands.syncs
        return list(syncs[-1].names) if syncs else []

    def block(self, place: Channel) -> None:
        assert place.recipient is not None
        self.fake.people.refuse_dms(place.recipient)

    def silence(self, group: Channel) -> None:
        self.fake.people.permit(group, denied=Permission.SEND_MESSAGES)

    def fail_sends(self, *faults: str) -> None:
        self.fake.script(Route.CREATE_MESSAGE, *(_fault(fault) for fault in faults))

    def flood(self, seconds: float) -> None:
        self.fake.script(Route.CREATE_MESSAGE, flood(seconds))

    def flooded(self) -> bool:
        return any(call.status == 429 for call in self.fake.log)

    def writes_since(self, seconds: float) -> int:
        since = self.fake.clock.monotonic() - seconds
        return sum(call.route in WRITES and call.at >= since for call in self.fake.log)

    def deafen(self) -> None:
        self.fake.gateway.deafen()

    def wrong_token(self) -> Mapping[str, str]:
        first = self.fake.token.partition(".")[0]
        return {"DISCORD_BOT_TOKEN": f"{first}.Wrong.Token"}

    async def until(self, condition: Callable[[], bool], within: float = 10.0) -> None:
        await self.fake.until(condition, within)


def _fault(name: str) -> Step:
    match name:
        case "ok":
            return None
        case "503":
            return server_error(503)
        case "lost":
            return LoseAnswer()
        case "reset":
            return Reset()
        case "form":
            return refusal(Code.INVALID_FORM)
        case _:
            raise AssertionError(name)


@asynccontextmanager
async def discord_harness(folder: Path) -> AsyncGenerator[DiscordHarness]:
    async with DiscordFake() as fake, scripted_model() as model:
        yield DiscordHarness(fake, model, folder)
