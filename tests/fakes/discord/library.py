"""The library discord.py as tests of the fake use it: imported without noise, and a client that remembers what it was told."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator

from tests.fakes.discord.fake import DiscordFake

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
async def running(fake: DiscordFake, client: discord.Client) -> AsyncIterator[asyncio.Task[None]]:
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


__all__ = ["Watcher", "discord", "running", "wide_intents"]
