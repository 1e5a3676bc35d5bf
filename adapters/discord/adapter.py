"""The Discord bot: a gateway connection whose messages are stored one after the other, and history for what was missed.

Discord replays a short gap (RESUME), and nothing after a longer one. So the last message seen of each channel is stored, and
after each new session the history behind it is read (`missed`): what waited is taken in as late.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import structlog
from aiohttp import web

from adapters.base import NotAccepted
from adapters.carried import FileSource
from adapters.chat import AdapterSight, CallFailed, Cause, ChatDesk, ChatMessage
from adapters.discord.inbound import PLATFORM, read_interaction, read_message
from adapters.discord.missed import Missed
from adapters.discord.port import DiscordPort
from adapters.filehosts import FileHosts
from adapters.supervision import AdapterDown
from agent_core.ports import Clock

if TYPE_CHECKING:
    import discord

log = structlog.get_logger("discord")

MENU = "menu"
QUEUE = 1_000
"""Events that wait to be stored. Beyond it they are left to the history, which is read again then."""
PROBE_SECONDS = 20.0
"""After such a silence the connection is asked for a sign of life."""
DEAF_SECONDS = 40.0


FILE_DOMAINS = ("cdn.discordapp.com", "media.discordapp.net")
"""Where attachments lie (https://docs.discord.com/developers/reference#image-formatting)."""


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    """What the configuration says about the bot."""

    token: str = field(repr=False)
    api_base: str = ""
    gateway_url: str = ""
    proxy: str = ""
    auto_threads: bool = False
    shards: int = 0

    @property
    def account(self) -> str:
        """The bot's id, which its token begins with."""
        return account_of(self.token) or "bot"


def account_of(token: str) -> str:
    """The bot's id in a token; empty if there is none."""
    first = token.partition(".")[0]
    try:
        number = base64.b64decode(first + "=" * (-len(first) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return number if number.isdigit() else ""


@dataclass(frozen=True, slots=True)
class Began:
    """A session has begun that knows nothing of what was before. `shard`: the connection's number; None: there is only one."""

    shard: int | None


@dataclass(frozen=True, slots=True)
class Complete:
    """The servers of a connection are known."""

    shard: int | None


@dataclass(frozen=True, slots=True)
class Said:
    message: Any
    edited: bool = False


@dataclass(frozen=True, slots=True)
class Pressed:
    interaction: Any


@dataclass(frozen=True, slots=True)
class Removed:
    """A person took a message back."""

    channel: int
    message: int


Happened: TypeAlias = Began | Complete | Said | Pressed | Removed


class DiscordAdapter:
    """One bot. `run` it under supervision."""

    def __init__(self, settings: DiscordSettings, desk: ChatDesk, clock: Clock) -> None:
        self._settings = settings
        self._desk = desk
        self._clock = clock
        self.account = settings.account
        self.name = f"{PLATFORM}/{self.account}"
        self.port = DiscordPort(FileSource(FileHosts(FILE_DOMAINS, settings.api_base), proxy=settings.proxy))
        self._queue: asyncio.Queue[Happened] = asyncio.Queue(QUEUE)
        self._overflowed = False
        self._last_life = clock.monotonic()
        self._last_inbound: float | None = None
        self._probed_at = self._last_life
        self._missed = Missed(self.name, desk, self.port, clock, self._said)

    # ------------------------------------------------------------------ life

    def opened(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def routes(self) -> list[web.RouteDef]:
        return []

    @property
    def silent_seconds(self) -> float:
        now = self._clock.monotonic()
        silent = now - self._last_life
        # One connection of several may be silent while others are not, so that all of them are asked all the time.
        since = silent if not self._settings.shards else now - self._probed_at
        if since > PROBE_SECONDS and now - self._probed_at > PROBE_SECONDS and self.port.client is not None:
            self._probed_at = now
            self._probe = asyncio.ensure_future(self._ask_for_life(self.port.client))
        return silent

    async def _ask_for_life(self, client: Any) -> None:
        """A heartbeat out of turn; its acknowledgement is life. The library leaves a connection that is silent for 30 s."""
        from adapters.discord.client import heartbeat_of

        for socket in client.sockets():
            try:
                await socket.send_heartbeat(heartbeat_of(socket))
            except (ConnectionError, RuntimeError) as error:
                log.debug("discord.probe_failed", error=type(error).__name__)

    @property
    def deaf_after_seconds(self) -> float:
        return DEAF_SECONDS

    def alive(self) -> None:
        """Something came from the platform."""
        self._last_life = self._clock.monotonic()

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        inbound = None if self._last_inbound is None else self._clock.monotonic() - self._last_inbound
        return AdapterSight(self.name, state, words, inbound, outbound)

    async def run(self, up: Callable[[], None]) -> None:
        """Serve until cancelled. Raises `AdapterDown`, or whatever the library raises."""
        from adapters.discord.client import made_client

        self.alive()
        client = made_client(self._settings, self, up)
        tasks = [
            asyncio.create_task(self._work(client), name="discord messages"),
            asyncio.create_task(self._missed.run(client), name="discord history"),
        ]
        try:
            await self._connected(client)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.port.client = None
            await client.close()

    async def _connected(self, client: discord.Client) -> None:
        from adapters.discord.library import discord

        try:
            await client.login(self._settings.token)
            self.port.client = client  # what is to be sent needs no gateway connection
            await self._set_menu(client)
            await client.connect(reconnect=True)
        except discord.LoginFailure as error:
            words = "Discord does not know the bot's token. Reset it (Developer Portal, Bot, Reset Token) and set DISCORD_BOT_TOKEN."
            raise AdapterDown(words, fatal=True) from error
        except discord.PrivilegedIntentsRequired as error:
            words = "The bot may not read messages: switch on Message Content Intent (Developer Portal, Bot, Privileged Gateway Intents)."
            raise AdapterDown(words, fatal=True) from error
        except (discord.DiscordException, OSError) as error:
            raise AdapterDown(f"Discord cannot be reached: {type(error).__name__}: {str(error)[:200]}") from error

    async def _set_menu(self, client: discord.Client) -> None:
        """Register the commands, if they are others than the last time: Discord limits that."""
        from adapters.discord.client import menu_of

        menu = menu_of(self._desk.commands())
        mark = hashlib.sha256(repr(menu).encode()).hexdigest()
        if await self._desk.cursor(self.name, MENU) == mark:
            return
        assert client.application_id is not None
        try:
            await self.port.asked(client.http.bulk_upsert_global_commands(client.application_id, menu))
        except CallFailed as error:
            if error.cause is Cause.NOT_LET_IN:
                raise AdapterDown(error.words) from error
            log.warning("discord.menu_not_set", words=error.words)
            return
        await self._desk.skip(self.name, (MENU, mark))

    # ------------------------------------------------------------------ messages

    def happened(self, event: Happened) -> None:
        """Called by the client in the order of events; never waits."""
        if self._overflowed:
            return  # what would come in now would hide what was left out before it
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._overflowed = True

    async def _work(self, client: discord.Client) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._handle(client, event)
            except CallFailed as error:
                log.warning("discord.not_read", words=error.words)
            except Exception:
                log.exception("discord.odd_event")  # one odd event must not hide the others
            if self._overflowed and self._queue.empty():
                self._overflowed = False
                self.happened(Began(None))
                self.happened(Complete(None))

    async def _handle(self, client: discord.Client, event: Happened) -> None:
        me = client.user.id if client.user is not None else 0
        match event:
            case Began(shard):
                await self._missed.began(client, shard)
            case Complete(shard):
                await self._missed.complete(client, shard)
            case Said(message, edited):
                await self._missed.before(message)
                await self._said(client, message, me, edited=edited)
                await self._missed.handled(message)
            case Pressed(interaction):
                await self._pressed(interaction)
            case Removed(channel, number):
                await self._desk.removed(self.name, f"{channel}:{number}")

    async def _said(
        self,
        client: discord.Client,
        message: discord.Message,
        me: int,
        *,
        edited: bool = False,
        late: str | None = None,
    ) -> None:
        """Take a message in. `late` is put before the words of one that was read from the history; None: it came by itself."""
        read = read_message(message, me, self.account, edited=edited, late=late or "")
        if read is None:
            return
        if self._settings.auto_threads and read.for_us and not edited and not read.command:
            read = await self._in_thread(client, message, read)
        self._last_inbound = self._clock.monotonic()
        await self._taken(read, message, late)

    async def _taken(self, read: ChatMessage, message: discord.Message, late: str | None) -> None:
        """Have it stored; nothing after it goes on before."""
        cursor = self._missed.cursor(message, late=late is not None)
        while True:
            try:
                await self._desk.receive(read, cursor)
            except NotAccepted as refused:
                log.warning("discord.not_stored", words=str(refused))
                await asyncio.sleep(1.0)
            else:
                await self._missed.stored(message, read.origin.person.id, late=late is not None)
                return

    async def _in_thread(self, client: discord.Client, message: discord.Message, read: ChatMessage) -> ChatMessage:
        """Answer in a thread of its own. Its id is the message's, so making it twice makes one."""
        from dataclasses import replace

        from adapters.discord.library import discord

        if not isinstance(message.channel, discord.TextChannel):
            return read
        name = " ".join(read.text.split())[:80] or "Conversation"
        try:
            await self.port.asked(
                client.http.start_thread_with_message(
                    message.channel.id, message.id, name=name, auto_archive_duration=1440
                )
            )
        except CallFailed as error:
            if error.words and "already" not in error.words.lower():
                log.warning("discord.no_thread", words=error.words)
                return read
        return replace(read, origin=replace(read.origin, address=replace(read.origin.address, thread=str(message.id))))

    async def _pressed(self, interaction: discord.Interaction[Any]) -> None:
        """Store it, then acknowledge: Discord waits three seconds for that. The answer comes as an ordinary message."""
        from adapters.discord.library import discord

        read = read_interaction(interaction, self.account)
        if read is None:
            return
        self._last_inbound = self._clock.monotonic()
        words = f"/{read.command} {read.text}".strip()
        try:
            await self._desk.receive(read, None)
        except NotAccepted as refused:
            words = str(refused)
        try:
            if interaction.type is discord.InteractionType.component:
                await self.port.asked(interaction.response.defer())
            else:
                await self.port.asked(interaction.response.send_message(words[:1900], ephemeral=True))
        except CallFailed as error:
            log.info("discord.press_not_answered", words=error.words)
