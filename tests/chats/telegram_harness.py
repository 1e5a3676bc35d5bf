"""Telegram under the conformance suite."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_core.ports import Clock
from tests.chats.harness import Seen
from tests.chats.model import ScriptedModel, scripted_model
from tests.fakes.common import LoseAnswer, Pause, Reset, Step
from tests.fakes.telegram import Chat, Kind, TelegramFake, User, flood, refusal, server_error

WRITES = (
    "sendMessage",
    "sendMessageDraft",
    "editMessageText",
    "sendChatAction",
    "deleteMessage",
    "sendDocument",
    "sendPhoto",
)
SENDS = ("sendMessage", "sendDocument", "sendPhoto")


@dataclass(frozen=True)
class Where:
    """A chat, or a topic of one."""

    chat: Chat
    thread: int | None = None


class TelegramHarness:
    """Implements `tests.chats.harness.Harness`."""

    name = "telegram"
    clock: Clock | None = None
    """What the gateway takes for the time; None: the machine's."""
    by_draft = True
    answers_once = False
    shows_typing = True
    plain_shows = True

    def __init__(self, fake: TelegramFake, model: ScriptedModel, folder: Path) -> None:
        self.fake = fake
        self.model = model
        self.folder = folder

    def env(self) -> Mapping[str, str]:
        return {
            "TELEGRAM_BOT_TOKEN": self.fake.token,
            "OUTSPOKEN_TELEGRAM__API_BASE": self.fake.origin,
            "OUTSPOKEN_TELEGRAM__OPEN": "true",
            "OUTSPOKEN_TELEGRAM__POLL_SECONDS": "1",
            "OUTSPOKEN_TELEGRAM__PER_MINUTE": "1000",
        }

    async def ready(self) -> None:
        """Telegram keeps what comes before."""

    def person(self, name: str) -> User:
        return self.fake.people.user(name)

    def id_of(self, person: User) -> str:
        return str(person.id)

    def private(self, person: User) -> Where:
        return Where(self.fake.people.private(person))

    def chat_of(self, place: Where) -> str:
        return str(place.chat.id)

    def group(self, *people: User) -> Where:
        return Where(self.fake.people.group("Friends", *people))

    def topics(self, *people: User) -> tuple[Where, Where, Where]:
        chat = self.fake.people.group("Forum", *people, forum=True)
        one, two = (self.fake.people.topic(chat, name) for name in ("one", "two"))
        return Where(chat), Where(chat, one.id), Where(chat, two.id)

    def say(self, place: Where, person: User, text: str, *, mention: bool = False, reply_to: str = "") -> str:
        words = f"@{self.fake.bot.username} {text}" if mention else text
        answered = place.chat.messages[int(reply_to)] if reply_to else None
        return str(self.fake.people.say(place.chat, person, words, reply_to=answered, thread=place.thread).id)

    def command(self, place: Where, person: User, name: str, words: str = "", *, other: bool = False) -> None:
        whose = "@other_bot" if other else ""
        self.fake.people.say(place.chat, person, f"/{name}{whose} {words}".strip(), thread=place.thread)

    def edit(self, place: Where, message: str, text: str) -> None:
        self.fake.people.edit(place.chat.messages[int(message)], text)

    def attach(self, place: Where, person: User, name: str, data: bytes, mime: str, caption: str) -> None:
        self.fake.people.document(place.chat, person, name, data, mime_type=mime, caption=caption)

    def voice(self, place: Where, person: User, data: bytes) -> None:
        self.fake.people.records(place.chat, person, data)

    def album(self, place: Where, person: User, pictures: Sequence[bytes], caption: str) -> None:
        self.fake.people.album(place.chat, person, pictures, caption=caption)

    def press(self, place: Where, person: User, message: str, label: str) -> None:
        self.fake.people.press(place.chat.messages[int(message)], person, label)

    def forge(self, place: Where, person: User, message: str, data: str) -> None:
        self.fake.people.press_raw(place.chat.messages[int(message)], person, data)

    def remove(self, place: Where, message: str) -> None:
        self.fake.people.remove(place.chat.messages[int(message)])

    def redeliver(self) -> None:
        self.fake.redeliver()

    def odd_event(self, place: Where) -> None:
        self.fake.world.tell(
            "message", {"message_id": "no number", "chat": {"id": None}, "text": 5, "from": {"id": "x"}}, place.chat
        )

    def seen(self, place: Where) -> list[Seen]:
        return [
            Seen(
                id=str(one.id),
                text=one.text,
                mine=one.by_bot and not one.is_service,
                buttons=tuple(label for row in one.buttons for label in row),
                edits=one.edits,
                silent=one.silent,
                file=one.media.file.name if one.media else "",
                data=one.media.file.data if one.media else b"",
                reply_to=str(one.reply_to or ""),
                code=tuple(one.styled(Kind.PRE)),
                bold=tuple(one.styled(Kind.BOLD)),
            )
            for one in self.fake.shown(place.chat, place.thread).messages
        ]

    def preview(self, place: Where) -> str:
        return "".join(draft.text for draft in self.fake.shown(place.chat, place.thread).drafts)

    def typing(self, place: Where) -> bool:
        return self.fake.shown(place.chat, place.thread).typing

    def menu(self) -> list[str]:
        calls = self.fake.log.of("setMyCommands")
        commands = calls[-1].params["commands"] if calls else "[]"
        listed: list[dict[str, str]] = json.loads(commands) if isinstance(commands, str) else []
        return [one["command"] for one in listed]

    def block(self, place: Where) -> None:
        self.fake.people.block(place.chat)

    def silence(self, group: Where) -> None:
        group.chat.bot_may_write = False

    def fail_sends(self, *faults: str) -> None:
        self.fake.script("sendMessage", *(_fault(fault) for fault in faults))

    def flood(self, seconds: float) -> None:
        self.fake.script("sendMessage", flood(int(seconds)))

    def flooded(self) -> bool:
        return any(call.status == 429 for call in self.fake.log)

    def writes_since(self, seconds: float) -> int:
        since = self.fake.clock.monotonic() - seconds
        return sum(call.route in WRITES and call.at >= since for call in self.fake.log)

    def deafen(self) -> None:
        self.fake.script("getUpdates", Pause())

    def wrong_token(self) -> Mapping[str, str]:
        return {"TELEGRAM_BOT_TOKEN": "7000000001:AAWrong"}

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
            return refusal(400, "Bad Request: can't parse entities: unexpected end of entity at byte offset 5")
        case _:
            raise AssertionError(name)


@asynccontextmanager
async def telegram_harness(folder: Path) -> AsyncGenerator[TelegramHarness]:
    async with TelegramFake() as fake, scripted_model() as model:
        yield TelegramHarness(fake, model, folder)
