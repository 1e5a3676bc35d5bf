"""The library's client, as the adapter needs it: it only hands over what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from adapters.chat import CommandDoc
from adapters.discord.library import DiscordWebSocket, Route, discord

AT_ONCE = 0.001
"""Seconds that the library may wait for a limit by itself: none. Waiting is the outbox's business."""
HEARTBEAT_SECONDS = 30.0


class Ears(Protocol):
    """What the client tells."""

    def happened(self, event: Any) -> None: ...

    def alive(self) -> None: ...


class Settings(Protocol):
    """What the client needs of the configuration."""

    @property
    def api_base(self) -> str: ...

    @property
    def gateway_url(self) -> str: ...

    @property
    def proxy(self) -> str: ...

    @property
    def shards(self) -> int: ...


def options_of(settings: Settings) -> dict[str, Any]:
    """How every client is made."""
    intents = discord.Intents.none()
    intents.guilds = intents.guild_messages = intents.dm_messages = intents.message_content = True
    return {
        "intents": intents,
        "max_messages": None,
        "member_cache_flags": discord.MemberCacheFlags.none(),
        "chunk_guilds_at_startup": False,
        "allowed_mentions": discord.AllowedMentions.none(),
        "heartbeat_timeout": HEARTBEAT_SECONDS,
        "enable_debug_events": True,
        "guild_ready_timeout": 0.5,
        "proxy": settings.proxy or None,
    }


class Events:
    """Hands events over in the order in which they come."""

    def listen_with(self, ears: Ears, up: Callable[[], None]) -> None:
        """Whom to tell; before the client connects."""
        self._ears = ears
        self._up = up

    async def on_ready(self) -> None:
        from adapters.discord.adapter import Sweep

        self._up()
        self._ears.happened(Sweep())

    async def on_resumed(self) -> None:
        self._up()

    async def on_socket_raw_receive(self, _: object) -> None:
        self._ears.alive()

    async def on_message(self, message: discord.Message) -> None:
        from adapters.discord.adapter import Said

        self._ears.happened(Said(message))

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        from adapters.discord.adapter import Said

        if payload.message.edited_at is not None:  # else it only got a preview of a link
            self._ears.happened(Said(payload.message, edited=True))

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        from adapters.discord.adapter import Removed

        self._ears.happened(Removed(payload.channel_id, payload.message_id))

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        from adapters.discord.adapter import Pressed

        self._ears.happened(Pressed(interaction))


class BotClient(Events, discord.Client):
    """One connection for all servers."""


class ShardedClient(Events, discord.AutoShardedClient):
    """Several connections, which divide the servers."""


def made_client(settings: Settings, ears: Ears, up: Callable[[], None]) -> BotClient | ShardedClient:
    """A client for one connection."""
    if settings.api_base:
        Route.BASE = settings.api_base
    if settings.gateway_url:
        DiscordWebSocket.DEFAULT_GATEWAY = type(DiscordWebSocket.DEFAULT_GATEWAY)(settings.gateway_url)
    options = options_of(settings)
    client = ShardedClient(shard_count=settings.shards, **options) if settings.shards else BotClient(**options)
    client.http.max_ratelimit_timeout = AT_ONCE
    client.listen_with(ears, up)
    return client


def menu_of(commands: Sequence[CommandDoc]) -> list[dict[str, Any]]:
    """The commands as Discord registers them (https://discord.com/developers/docs/interactions/application-commands)."""
    words = {"type": 3, "name": "words", "description": "What else there is to say", "required": False}
    return [{"name": c.name, "description": c.words[:100], "type": 1, "options": [words]} for c in commands]
