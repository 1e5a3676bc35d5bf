"""What goes wrong with each platform during a soak, in its own way."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from tests.chats.discord_harness import DiscordHarness, discord_harness
from tests.chats.harness import Harness
from tests.chats.slack_harness import SlackHarness, slack_harness
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.fakes import discord, slack, telegram
from tests.fakes.common import Call, Fault, LoseAnswer, Reset

LATELY = 50
"""Redelivered is one of so many events."""


class Storm(Protocol):
    """One platform's troubles."""

    may_double: bool
    """A lost answer may lead to a second message, which is marked then."""
    rooms: bool
    """Threads of channels can be written to as fast as private chats, so that some talks are there."""

    def begin(self, seed: int) -> None:
        """From now on, a share of all calls fails."""
        ...

    def hold(self) -> None: ...

    def release(self, chance: random.Random) -> None:
        """What was held comes, in another order."""
        ...

    def redeliver(self, chance: random.Random) -> None:
        """Something that was delivered comes again."""
        ...

    def cut(self, chance: random.Random) -> None:
        """The connection breaks, in one way or another."""
        ...

    def calls(self) -> Sequence[Call]:
        """All requests."""
        ...

    def sends(self) -> Sequence[Call]:
        """Those that make messages."""
        ...


def shuffled(count: int, chance: random.Random) -> list[int]:
    return chance.sample(range(count), count)


def sending(
    server_error: Callable[[int], Fault], page: Callable[[int], Fault], flood: Fault
) -> list[tuple[float, Fault]]:
    """What happens to calls that make messages: 5 % server errors, 5 % lost answers, 1 % too fast, 1 % resets."""
    return [
        (0.02, server_error(500)), (0.02, page(502)), (0.01, server_error(503)),
        (0.05, LoseAnswer()), (0.01, flood), (0.01, Reset()),
    ]  # fmt: skip


@dataclass
class TelegramStorm:
    """Telegram keeps updates; its sends have no key."""

    harness: TelegramHarness
    may_double = True
    rooms = False

    def begin(self, seed: int) -> None:
        fake = self.harness.fake
        error, page, flood = telegram.server_error, telegram.gateway_page, telegram.flood
        fake.chaos(seed, *sending(error, page, flood(1)), method="sendMessage")
        fake.chaos(seed + 1, (0.02, error(500)), (0.02, Reset()), (0.02, LoseAnswer()), method="getUpdates")
        fake.chaos(seed + 2, (0.05, error(500)), (0.02, flood(1)), method="sendMessageDraft")

    def hold(self) -> None:
        self.harness.fake.hold_updates()

    def release(self, chance: random.Random) -> None:
        self.harness.fake.release_updates(shuffled(self.harness.fake.world.updates.held, chance))

    def redeliver(self, chance: random.Random) -> None:
        known = self.harness.fake.world.updates.confirmed
        if known:
            self.harness.fake.redeliver(chance.choice(known[-LATELY:]))

    def cut(self, chance: random.Random) -> None:
        """Each poll is a connection of its own."""

    def calls(self) -> Sequence[Call]:
        return list(self.harness.fake.log)

    def sends(self) -> Sequence[Call]:
        return self.harness.fake.log.of("sendMessage")


@dataclass
class DiscordStorm:
    """Discord forgets what nobody heard; its sends have nonces."""

    harness: DiscordHarness
    may_double = False
    rooms = True

    def begin(self, seed: int) -> None:
        fake, route = self.harness.fake, discord.Route
        error, page, flood = discord.server_error, discord.gateway_page, discord.flood
        for number, name in enumerate((route.CREATE_MESSAGE, route.EDIT_MESSAGE, route.DELETE_MESSAGE)):
            fake.chaos(seed + number, *sending(error, page, flood(1)), route=name)
        fake.chaos(seed + 7, (0.05, error(500)), (0.02, flood(1)), (0.02, discord.shield_ban()), route=route.TYPING)
        for name in (route.LIST_MESSAGES, route.GET_CHANNEL):
            fake.chaos(
                seed + 8, (0.05, error(500)), (0.05, LoseAnswer()), (0.02, flood(1)), (0.01, Reset()), route=name
            )

    def hold(self) -> None:
        self.harness.fake.gateway.hold()

    def release(self, chance: random.Random) -> None:
        self.harness.fake.gateway.release(shuffled(self.harness.fake.gateway.held, chance))

    def redeliver(self, chance: random.Random) -> None:
        told = [one for s in self.harness.fake.gateway.sessions for one in s.sent[-LATELY:] if "MESSAGE" in one.name]
        if told:
            self.harness.fake.gateway.redeliver(chance.choice(told))

    def cut(self, chance: random.Random) -> None:
        gateway = self.harness.fake.gateway
        match chance.randrange(4):
            case 0:
                gateway.cut()
            case 1:
                gateway.cut(clean=True)
            case 2:
                gateway.reconnect()
            case _:
                gateway.invalidate(resumable=False)

    def calls(self) -> Sequence[Call]:
        return list(self.harness.fake.log)

    def sends(self) -> Sequence[Call]:
        return self.harness.fake.log.of(discord.Route.CREATE_MESSAGE)


@dataclass
class SlackStorm:
    """Slack redelivers for some minutes; its sends can be read back."""

    harness: SlackHarness
    may_double = False
    rooms = True

    def begin(self, seed: int) -> None:
        fake = self.harness.fake
        fake.world.settings.client_msg_ids = False  # of which only the errors are documented: what is read back must do
        error, page, flood = slack.internal_error, slack.gateway_page, slack.ratelimited
        for number, name in enumerate(("chat.postMessage", "chat.update", "chat.delete")):
            fake.chaos(seed + number, *sending(error, page, flood(1)), method=name)
        for name in ("conversations.history", "conversations.replies", "users.info"):
            fake.chaos(
                seed + 8, (0.05, page(503)), (0.05, LoseAnswer()), (0.02, flood(1)), (0.01, Reset()), method=name
            )

    def hold(self) -> None:
        self.harness.fake.hold_events()

    def release(self, chance: random.Random) -> None:
        self.harness.fake.release_events(shuffled(self.harness.fake.outbox.held, chance))

    def redeliver(self, chance: random.Random) -> None:
        told = self.harness.fake.told("message")[-LATELY:]
        acked = [one for one in told if one.acked]
        if acked:
            self.harness.fake.repeat(chance.choice(acked))

    def cut(self, chance: random.Random) -> None:
        self.harness.fake.sockets.cut()

    def calls(self) -> Sequence[Call]:
        return list(self.harness.fake.log)

    def sends(self) -> Sequence[Call]:
        return self.harness.fake.log.of("chat.postMessage")


PLATFORMS: dict[str, Callable[[Path], AbstractAsyncContextManager[Harness]]] = {
    "discord": discord_harness,
    "slack": slack_harness,
    "telegram": telegram_harness,
}


def storm_of(harness: Harness) -> Storm:
    """The troubles of a harness's platform."""
    made: dict[str, Callable[[Any], Storm]] = {
        "discord": DiscordStorm, "slack": SlackStorm, "telegram": TelegramStorm,
    }  # fmt: skip
    return made[harness.name](cast("Any", harness))
