"""Slack under the conformance suite."""

from __future__ import annotations

import gc
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.chats.harness import Seen
from tests.chats.model import ScriptedModel, scripted_model
from tests.fakes.common import LoseAnswer, Reset, Step
from tests.fakes.slack import Channel, Message, Shown, SlackFake, User, gateway_page, ratelimited, refusal
from tests.fakes.slack.blocks import Button

WRITES = (
    "chat.postMessage", "chat.update", "chat.delete", "chat.startStream", "chat.appendStream", "chat.stopStream",
)  # fmt: skip
MARKDOWN = MarkdownIt("commonmark").enable("strikethrough")
FENCE = re.compile(r"```\n(.*?)\n```", re.DOTALL)
BOLD = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")


def readable(text: str) -> str:
    """mrkdwn as a person sees it."""
    pieces = re.split(r"(```\n.*?\n```)", text, flags=re.DOTALL)
    return "".join(FENCE.sub(r"\1", piece) if piece.startswith("```") else _plain(piece) for piece in pieces)


def _plain(text: str) -> str:
    text = re.sub(r"<(?:https?|mailto):[^|>]*\|([^>]*)>", r"\1", text)
    return re.sub(r"(?<![\w`])`([^`\n]+)`", r"\1", BOLD.sub(r"\1", text))


@dataclass(frozen=True)
class Read:
    """What a person reads of a message."""

    text: str
    code: tuple[str, ...] = ()
    bold: tuple[str, ...] = ()


@lru_cache(maxsize=512)
def read_markdown(markdown: str) -> Read:
    """CommonMark as a person sees it. A screen is looked at many times until something is there."""
    lines: list[str] = []
    code: list[str] = []
    bold: list[str] = []
    for token in MARKDOWN.parse(markdown):
        if token.type in ("fence", "code_block"):
            code.append(token.content.removesuffix("\n"))
            lines.append(code[-1])
        elif token.type == "inline":
            words, inside = "", 0
            for child in token.children or ():
                piece = "\n" if child.type in ("softbreak", "hardbreak") else child.content
                words += piece
                if child.type == "strong_open":
                    inside += 1
                    bold.append("")
                elif child.type == "strong_close":
                    inside -= 1
                elif inside:
                    bold[-1] += piece
            lines.append(words)
    return Read("\n\n".join(lines), tuple(code), tuple(bold))


def read(one: Shown) -> Read:
    """What a person reads, by whatever form it came."""
    markdown = [str(block["text"]) for block in one.blocks if block.get("type") == "markdown"]
    if one.stream is not None or markdown:
        return read_markdown("\n\n".join(markdown) if markdown else one.text)
    text = one.text if one.blocks else one.fallback
    return Read(readable(text), tuple(FENCE.findall(text)), tuple(BOLD.findall(FENCE.sub("", text))))


def only_cards(one: Shown) -> bool:
    """It shows what tools do, and says nothing."""
    cards = bool(one.blocks) and all(block.get("type") == "task_card" for block in one.blocks)
    return cards or (bool(one.tasks) and not one.text)


@dataclass
class Where:
    """A channel, or a thread of it."""

    channel: Channel
    thread: Message | None = None
    whole: bool = True
    """Look at the threads as well."""


class SlackHarness:
    """Implements `tests.chats.harness.Harness`."""

    name = "slack"
    by_draft = False
    answers_once = True
    shows_typing = False
    plain_shows = False

    def __init__(self, fake: SlackFake, model: ScriptedModel, folder: Path) -> None:
        self.fake = fake
        self.model = model
        self.folder = folder

    def env(self) -> Mapping[str, str]:
        return {
            "SLACK_BOT_TOKEN": self.fake.bot_token,
            "SLACK_APP_TOKEN": self.fake.app_token,
            "OUTSPOKEN_SLACK__API_BASE": self.fake.base_url,
            "OUTSPOKEN_SLACK__OPEN": "true",
            "OUTSPOKEN_SLACK__PER_MINUTE": "1000",
        }

    async def ready(self) -> None:
        await self.fake.until_connected(within=20)

    def person(self, name: str) -> User:
        return self.fake.people.user(name)

    def id_of(self, person: User) -> str:
        return person.id

    def private(self, person: User) -> Where:
        return Where(self.fake.people.dm(person))

    def chat_of(self, place: Where) -> str:
        return place.channel.id

    def group(self, *people: User) -> Where:
        return Where(self.fake.people.channel("friends", *people))

    def topics(self, *people: User) -> tuple[Where, Where, Where]:
        channel = self.fake.people.channel("forum", *people)
        one, two = (self.fake.people.say(channel, people[0], name) for name in ("one", "two"))
        return Where(channel), Where(channel, one), Where(channel, two)

    def _message(self, place: Where, number: str) -> Message:
        return self.fake.message(place.channel, number)

    def say(self, place: Where, person: User, text: str, *, mention: bool = False, reply_to: str = "") -> str:
        words = f"<@{self.fake.world.bot.id}> {text}" if mention else text
        thread = place.thread
        if reply_to:
            answered = self._message(place, reply_to)
            thread = self._message(place, answered.thread_ts) if answered.thread_ts else answered
        return self.fake.people.say(place.channel, person, words, thread=thread).ts

    def command(self, place: Where, person: User, name: str, words: str = "", *, other: bool = False) -> None:
        if other:
            pytest.skip("what is for another app does not come to us here")
        self.fake.people.command(place.channel, person, "/outspoken", f"{name} {words}".strip())

    def edit(self, place: Where, message: str, text: str) -> None:
        self.fake.people.edit(self._message(place, message), text)

    def attach(self, place: Where, person: User, name: str, data: bytes, mime: str, caption: str) -> None:
        self.fake.people.upload(place.channel, person, name, data, text=caption, mime_type=mime)

    def voice(self, place: Where, person: User, data: bytes) -> None:
        self.fake.people.upload(
            place.channel, person, "audio_message.m4a", data, mime_type="audio/mp4", subtype="slack_audio"
        )

    def album(self, place: Where, person: User, pictures: Sequence[bytes], caption: str) -> None:
        pytest.skip("people send pictures one by one")

    def press(self, place: Where, person: User, message: str, label: str) -> None:
        self.fake.people.press(self._message(place, message), person, label)

    def forge(self, place: Where, person: User, message: str, data: str) -> None:
        forged = Button("Forged", "outspoken.forged", "b", data, "button")
        self.fake.people.press_raw(self._message(place, message), person, forged)

    def remove(self, place: Where, message: str) -> None:
        self.fake.people.delete(self._message(place, message))

    def redeliver(self) -> None:
        self.fake.repeat(self.fake.told("message")[0])

    def odd_event(self, place: Where) -> None:
        self.fake.world.tell_if(
            "message", {"type": "message", "channel": place.channel.id, "text": 5, "user": {"id": "x"}, "ts": "x"}
        )

    def seen(self, place: Where) -> list[Seen]:
        shown = self.fake.shown(place.channel, place.thread).messages
        threads = [m for m in shown if m.replies and place.thread is None]
        inner = [
            r
            for m in threads
            for r in self.fake.shown(place.channel, self._message(place, m.ts)).messages
            if r.ts != m.ts
        ]
        known = {m.ts: m for m in (*shown, *inner)}
        return [
            Seen(
                id=one.ts,
                text=read(one).text,
                mine=one.by_bot,
                buttons=tuple(one.captions),
                edits=one.edits,
                file=one.files[0] if one.files else "",
                data=self._message(place, one.ts).files[0].data if one.files else b"",
                reply_to=one.thread_ts or "",
                code=read(one).code,
                bold=read(one).bold,
                silent=True,  # Slack has no such flag: who is told of what is the person's own setting
            )
            for _, one in sorted(known.items())
            if not one.deleted and not one.ephemeral and not only_cards(one)
        ]

    def preview(self, place: Where) -> str:
        return ""

    def typing(self, place: Where) -> bool:
        return False

    def menu(self) -> list[str]:
        pytest.skip("the commands stand in the manifest")

    def block(self, place: Where) -> None:
        for method in ("chat.postMessage", "chat.update", "chat.startStream"):
            self.fake.script(method, *[refusal("user_disabled")] * 5, channel=place.channel)

    def silence(self, group: Where) -> None:
        for method in ("chat.postMessage", "chat.startStream"):
            self.fake.script(method, *[refusal("restricted_action")] * 5, channel=group.channel)

    def fail_sends(self, *faults: str) -> None:
        # Whichever way the next message takes; the form of a stream is another one.
        for method in ("chat.postMessage", "chat.startStream"):
            self.fake.script(method, *(_fault(f) for f in faults if method == "chat.postMessage" or f != "form"))

    def flood(self, seconds: float) -> None:
        for method in ("chat.postMessage", "chat.startStream"):
            self.fake.script(method, ratelimited(int(seconds)))

    def flooded(self) -> bool:
        return any(call.status == 429 for call in self.fake.log)

    def writes_since(self, seconds: float) -> int:
        since = self.fake.clock.monotonic() - seconds
        return sum(call.route in WRITES and call.at >= since for call in self.fake.log)

    def deafen(self) -> None:
        for socket in self.fake.sockets.open:
            socket.deaf = socket.mute = True

    def wrong_token(self) -> Mapping[str, str]:
        return {"SLACK_BOT_TOKEN": "xoxb-1000000000001-2000000000002-Wrong"}

    async def until(self, condition: Callable[[], bool], within: float = 10.0) -> None:
        await self.fake.until(condition, within)


def _fault(name: str) -> Step:
    match name:
        case "ok":
            return None
        case "503":
            return gateway_page(503)
        case "lost":
            return LoseAnswer()
        case "reset":
            return Reset()
        case "form":
            return refusal("invalid_blocks")
        case _:
            raise AssertionError(name)


@asynccontextmanager
async def slack_harness(folder: Path) -> AsyncGenerator[SlackHarness]:
    async with SlackFake() as fake, scripted_model() as model:
        yield SlackHarness(fake, model, folder)
    gc.collect()  # what the library left open is complained of here, and not in some later test
