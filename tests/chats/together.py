"""All three platforms in one gateway, and what can befall one of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.chats.discord_harness import DiscordHarness, discord_harness
from tests.chats.harness import Harness
from tests.chats.slack_harness import SlackHarness, slack_harness
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.fakes import discord, slack, telegram
from tests.fakes.common import ANY, Call, Fault, Pause, Script


class Trouble(StrEnum):
    """What befalls a platform."""

    HANGING = "hanging"
    """Everything is accepted, and nothing is answered."""
    CRASHING = "crashing"
    """The adapter ends with an error, again and again."""
    STORM = "429 storm"
    """Everything is refused as too fast."""


@dataclass
class Three:
    """The platforms by their names."""

    discord: DiscordHarness
    slack: SlackHarness
    telegram: TelegramHarness

    @property
    def all(self) -> dict[str, Harness]:
        return {"discord": self.discord, "slack": self.slack, "telegram": self.telegram}

    def env(self) -> dict[str, str]:
        """The settings for all of them."""
        return {key: value for harness in self.all.values() for key, value in harness.env().items()}

    async def ready(self) -> None:
        """Come back when all of them hear people."""
        for harness in self.all.values():
            await harness.ready()
        await self.telegram.until(lambda: bool(self.telegram.fake.log.of("getUpdates")), 20)

    def _faults(self, name: str) -> Script:
        fakes = {"discord": self.discord.fake, "slack": self.slack.fake, "telegram": self.telegram.fake}
        return fakes[name].faults

    async def begin(self, name: str, trouble: Trouble) -> Callable[[], None]:
        """From now on a platform is in trouble; call what is given for the adapter to fail once more (if it is to crash)."""
        faults = self._faults(name)
        floods: dict[str, Fault] = {
            "discord": discord.flood(1), "slack": slack.ratelimited(1), "telegram": telegram.flood(1),
        }  # fmt: skip
        match trouble:
            case Trouble.HANGING:
                if name == "discord":
                    await self.discord.fake.until_connected(40)
                    self.discord.fake.gateway.deafen()
                elif name == "slack":
                    await self.slack.fake.until_connected(1, 40)
                    self.slack.deafen()
                faults.always(ANY, Pause())
            case Trouble.STORM:
                faults.always(ANY, floods[name])
            case Trouble.CRASHING:
                return self._crash(name)
        return lambda: None

    def _crash(self, name: str) -> Callable[[], None]:
        def crash() -> None:
            match name:
                case "discord":  # an event that the library cannot read ends its client
                    self.discord.fake.gateway.dispatch("MESSAGE_CREATE", {"id": "no number", "channel_id": "x"})
                case "slack":  # nobody may log in, and the connection is cut
                    self.slack.fake.faults.always("apps.connections.open", slack.refusal("invalid_arguments"))
                    self.slack.fake.sockets.cut()
                case _:  # an answer that is none
                    self.telegram.fake.faults.always("getUpdates", telegram.Answer(200, b"<html>", "text/html"))

        return crash

    def end(self, name: str) -> None:
        """From now on a platform is well again."""
        faults = self._faults(name)
        for step in list(faults._always.values()):
            if isinstance(step, Pause):
                step.release()
        faults.clear()
        if name == "discord":
            self.discord.fake.gateway.cut()
        elif name == "slack":
            self.slack.fake.sockets.cut()


@asynccontextmanager
async def three(folder: Path) -> AsyncGenerator[Three]:
    """The three fakes, for the block."""
    async with AsyncExitStack() as stack:
        yield Three(
            await stack.enter_async_context(discord_harness(folder)),
            await stack.enter_async_context(slack_harness(folder)),
            await stack.enter_async_context(telegram_harness(folder)),
        )


SENDS = {"discord": str(discord.Route.CREATE_MESSAGE), "slack": "chat.postMessage", "telegram": "sendMessage"}
CHATS = {"discord": "channel_id", "slack": "channel", "telegram": "chat_id"}


def chat_of(name: str, call: Call) -> str:
    """The chat that a call writes to."""
    return str(call.params.get(CHATS[name]))


def id_of(name: str, place: Any) -> str:
    """The chat of a place, as calls name it."""
    match name:
        case "discord":
            return str(place.id)
        case "slack":
            return str(place.channel.id)
        case _:
            return str(place.chat.id)
