"""The library discord.py as tests of the fake use it: imported without noise, and a client that remembers what it was told."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Generic, TypeVar

from tests.fakes.discord.fake import DiscordFake
from tests.fakes.discord.objects import Channel, Guild, User

with warnings.catch_warnings():
    # The library imports a module for sound that Python 3.13 has no more.
    warnings.simplefilter("ignore", DeprecationWarning)
    import discord


def wide_intents() -> discord.Intents:
    """All intents that need no permission, and that for message content."""
    intents = discord.Intents.default()
    intents.message_content = True
    return intents


class Watcher(discord.Client):
    """A client that remembers, and does not wait five seconds before it identifies again."""

    def __init__(self, intents: discord.Intents | None = None, **options: float) -> None:
        chosen = wide_intents() if intents is None else intents
        super().__init__(intents=chosen, guild_ready_timeout=0.05, **options)  # pyright: ignore[reportArgumentType]
        self.told: list[discord.Message] = []
        """The messages, its own ones too."""
        self.events: list[str] = []
        """The names of all events."""
        self.interactions: list[discord.Interaction] = []

    @property
    def heard(self) -> list[str]:
        """The texts of all messages."""
        return [message.content for message in self.told]

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Do not wait."""

    async def on_message(self, message: discord.Message) -> None:
        """Remember."""
        self.told.append(message)

    async def on_socket_event_type(self, name: str) -> None:
        """Remember."""
        self.events.append(name)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Remember."""
        self.interactions.append(interaction)


@contextlib.asynccontextmanager
async def running(fake: DiscordFake, client: discord.Client) -> AsyncGenerator[asyncio.Task[None]]:
    """A client that is connected to the fake and ready. What is yielded ends when the client does; look at its error yourself."""
    with fake.pointed():
        task = asyncio.create_task(client.start(fake.token))
        try:
            while not client.is_ready():
                if task.done():
                    task.result()
                await asyncio.sleep(0.005)
            yield task
        finally:
            await client.close()
            await asyncio.wait([task], timeout=5)
            assert task.done(), "the client does not end"


ClientT = TypeVar("ClientT", bound=Watcher)


@dataclass(frozen=True, slots=True)
class Place(Generic[ClientT]):
    """A guild with two persons and a channel, and the bot in it."""

    fake: DiscordFake
    bot: ClientT
    ada: User
    bob: User
    guild: Guild
    channel: Channel

    @property
    def there(self) -> discord.TextChannel:
        """The channel as the library knows it."""
        found = self.bot.get_channel(self.channel.id)
        assert isinstance(found, discord.TextChannel)
        return found


@contextlib.asynccontextmanager
async def placed(fake: DiscordFake, bot: ClientT) -> AsyncGenerator[Place[ClientT]]:
    """A client in a guild with two persons. In the end, everything that the library sent must be known to the fake."""
    ada, bob = fake.people.user("Ada"), fake.people.user("Bob")
    guild = fake.people.guild("Lovelace", ada, bob)
    channel = fake.people.channel(guild, "general")
    async with running(fake, bot):
        yield Place(fake, bot, ada, bob, guild, channel)
    assert {(call.route, name) for call in fake.log for name in call.ignored} == set()


@contextlib.asynccontextmanager
async def serving(fake: DiscordFake) -> AsyncGenerator[DiscordFake]:
    """A fake that listens. In the end, no task is left."""
    before = asyncio.all_tasks()
    async with fake:
        yield fake
    # A fixture is begun and ended by different tasks.
    left = {task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()}
    if left:
        _, left = await asyncio.wait(left, timeout=1)
    assert left == set(), left


__all__ = ["Place", "Watcher", "discord", "placed", "running", "serving", "wide_intents"]
