"""The library's client, as the adapter needs it: it only hands over what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Protocol

import aiohttp
from yarl import URL

from adapters.contract.chat import CommandDoc
from adapters.discord.inbound import Began, Brought, Complete
from adapters.discord.library import DiscordWebSocket, Ratelimit, ReconnectWebSocket, Route, discord
from adapters.discord.port import LIMITED, PAGE, TOO_MANY, Limited, body_code, body_seconds
from adapters.discord.section import DiscordSection
from agent_core.records import dataclass
from agent_core.text.tongue import sentence, speak, speaking, spelled, translated

AT_ONCE = 0.001
"""Seconds that the library may wait for a limit by itself: none. Waiting is the outbox's business."""
HEARTBEAT_SECONDS = 30.0
WAIT_SECONDS = 45.0
"""The library gives up a connection that is not made within a minute; who waits for its turn tries anew before that."""
MOST_BUCKETS = 256
"""Beyond so many it is looked which are not used any more."""


class Bucket(Ratelimit):
    """What Discord said about the pace of one kind of call, as the library keeps it; but a call that may not go out fails at once.

    The library, told not to wait, refuses every call while a bucket's window lasts, even if there is room in it.
    """

    async def acquire(self) -> None:
        """Count a call that goes out. Raises `discord.RateLimited` if there is no room for it before the window's end."""
        self._last_request = self._loop.time()
        while True:
            if self.is_expired():
                self.reset()
            if self.remaining > 0:
                break
            if self.expires is not None:
                raise discord.RateLimited(max(AT_ONCE, self.expires - self._loop.time()))
            first = self._loop.create_future()  # the first call is under way, and tells the limit
            self._pending_requests.append(first)
            await first
        self.remaining -= 1
        self.outgoing += 1

    async def __aexit__(self, *_: object) -> None:
        self.outgoing -= 1
        if self.expires is None and self.remaining <= 0:
            self.remaining = max(0, self.limit - self.outgoing)  # the answer said nothing about limits
        self._wake(len(self._pending_requests))


class Ears(Protocol):
    """What the client tells."""

    def happened(self, event: Any) -> None: ...

    def odd(self, kind: str, error: Exception) -> None: ...

    def alive(self) -> None: ...


def options_of(settings: DiscordSection) -> dict[str, Any]:
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


PERSONS = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "INTERACTION_CREATE")
"""What people do, by the names of the gateway's events. The library would read them at once; what it cannot read ends its connection, and
is lost. So they are handed over as they came, and read where nothing is lost (`adapters.contract.intake`)."""


class BotClient(discord.Client):
    """One connection. It hands events over in the order in which they come: nothing waits in between.

    Where an account has several, each has a client of its own: so it can begin, end and be handed to another gateway by itself.
    """

    let_go: Callable[[], Awaitable[None]]
    """Closes the way out as well: `close` leaves it open, so that words can go out when nothing comes in any more."""

    def __init__(
        self, ears: Ears, up: Callable[[], None], may_open: Callable[[], Awaitable[None]], **options: Any
    ) -> None:
        """`may_open` waits while another gateway may have our connection: whoever goes on with its session cuts the other one off."""
        self._ears = ears
        self._up = up
        self._may_open = may_open
        self.resumes: Session | None = None
        """The session of somebody else that its first connection goes on with."""
        self.turn: Callable[[], Awaitable[None]] | None = None
        """Waits until a session may be begun. The library's own waits each time but the first; it knows of no other connection."""
        self._may_begin = False
        self._servers_told = True
        """Of the session that is served: what else becomes available was out of reach."""
        self.places: dict[int, Any] = {}
        """Channels that were asked for, because the session was begun by somebody else, who was told of them."""
        super().__init__(**options)

    def dispatch(self, event: str, /, *what: Any, **_: Any) -> None:
        """Called by the library with each of its own events."""
        if event == "socket_raw_receive":
            self._ears.alive()
        if event in ("ready", "resumed"):
            self._up()
        # A session has begun, and nothing of it was told yet: only now are the cursors those from before the gap
        if event == "connect":
            self.resumes = None
            self._servers_told = False
            self._ears.happened(Began(self.shard_id))
        elif event == "ready":  # the servers of a session are known
            self._servers_told = True
            self._ears.happened(Complete(self.shard_id))
        elif event == "guild_available" and self._servers_told:
            self._ears.happened(Complete(self.shard_id, what[0].id))

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Called by the library before a session is begun."""
        if self.turn is None:
            await super().before_identify_hook(shard_id, initial=initial)
        elif not self._may_begin:
            await self.turn()
        self._may_begin = False

    async def waited(self) -> None:
        """Come back when the first connection may be made: the library gives it a minute, and the queue may be longer."""
        await self._may_open()
        if self.turn is not None and self.resumes is None:
            await self.turn()
            self._may_begin = True

    async def waited_again(self, *, resumes: bool) -> None:
        """The same for a later one, which `resumes` its session or begins one anew: in pieces that the library has the patience for. Raises
        `ReconnectWebSocket` at the end of each, which has it try again at once."""
        limit = asyncio.timeout(WAIT_SECONDS)
        try:
            async with limit:
                await self._may_open()
                if not resumes and not self._may_begin and self.turn is not None:
                    await self.turn()
                    self._may_begin = True
        except TimeoutError:
            if limit.expired():
                raise ReconnectWebSocket(self.shard_id, resume=resumes) from None
            raise

    def sockets(self) -> list[DiscordWebSocket]:
        """The connections that stand."""
        return [self.ws] if getattr(self, "ws", None) is not None else []

    @property
    def knows_servers(self) -> bool:
        """It was told of them, as whoever begins a session is."""
        return self.resumes is None


@dataclass(frozen=True, slots=True)
class Session:
    """One that can go on: what was told in it up to `seq` is stored."""

    session: str
    seq: int
    url: str


class GoingOn(DiscordWebSocket):
    """The library's connection; its client's first one goes on with a session of somebody else, if there is one."""

    @classmethod
    async def from_client(cls, client: Any, *, initial: bool = False, **more: Any) -> Any:
        resumes: Session | None = getattr(client, "resumes", None) if initial else None
        if resumes is not None:
            more |= {"session": resumes.session, "sequence": resumes.seq, "gateway": URL(resumes.url), "resume": True}
        elif isinstance(client, BotClient):
            await client.waited_again(resumes=bool(more.get("resume")))
        return await super().from_client(client, initial=initial, **more)


# By this name the library makes connections, and has no setting for it.
_makes: Any = discord.client
_makes.DiscordWebSocket = GoingOn


def session_of(client: BotClient, seq: int | None) -> Session | None:
    """The session of a client, if it has one, as of an event of it; None: of the last one that came."""
    socket = next(iter(client.sockets()), None)
    if socket is None or not socket.session_id or socket.sequence is None:
        return None
    return Session(socket.session_id, socket.sequence if seq is None else seq, str(socket.gateway))


def message_of(client: discord.Client, data: Any, channel: Any = None) -> discord.Message:
    """A message from its JSON. Raises whatever the library does not understand of it."""
    if channel is None:
        number, guild = int(data["channel_id"]), data.get("guild_id")
        channel = client.get_channel(number)
        if channel is None:
            channel = client.get_partial_messageable(number, guild_id=None if guild is None else int(guild))
    return discord.Message(state=client._connection, channel=channel, data=data)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as its own history does


def interaction_of(client: discord.Client, data: Any) -> discord.Interaction[Any]:
    """A command or a press from its JSON. Raises likewise."""
    return discord.Interaction(data=data, state=client._connection)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _listen(client: BotClient, ears: Ears) -> None:
    """What people do is handed over unread; what else cannot be read is told, and ends nothing."""
    parsers = client._connection.parsers  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - it has no setting for it

    def brought(kind: str) -> Callable[[Any], None]:
        return lambda data: ears.happened(Brought(kind, data, client.shard_id, seq()))

    def seq() -> int | None:
        return next((one.sequence for one in client.sockets()), None)

    def guarded(kind: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
        def read(data: Any) -> None:
            try:
                parse(data)
            except Exception as error:  # noqa: BLE001 - the library would leave the connection open, and hear nothing any more
                ears.odd(kind, error)

        return read

    for kind, parse in list(parsers.items()):
        if kind in PERSONS:
            parsers[kind] = brought(kind)
        elif kind not in ("READY", "RESUMED"):
            parsers[kind] = guarded(kind, parse)


def heartbeat_of(socket: DiscordWebSocket) -> dict[str, Any]:
    """A heartbeat out of turn, of which the library knows when it was sent: else it takes the answer for a late one, and says so."""
    alive = socket._keep_alive  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - it has no call for it
    return {"op": socket.HEARTBEAT, "d": socket.sequence} if alive is None else alive.beat()


def made_client(
    settings: DiscordSection,
    ears: Ears,
    up: Callable[[], None],
    may_open: Callable[[], Awaitable[None]],
    shard: int | None = None,
) -> BotClient:
    """A client for one connection."""
    if settings.api_base:
        Route.BASE = settings.api_base
    options = options_of(settings)
    options["http_trace"] = limits()
    if settings.shards:
        options |= {"shard_id": shard, "shard_count": settings.shards}
    client = BotClient(ears, up, may_open, **options)
    client.http.max_ratelimit_timeout = AT_ONCE
    client.http.get_ratelimit = _kept(client.http._buckets)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - it has no setting for it
    client.let_go, client.http.close = client.http.close, _nothing
    if settings.gateway_url:
        client.http.ws_connect = _always_at(URL(settings.gateway_url), client.http.ws_connect)
    _listen(client, ears)
    return client


async def _nothing() -> None:
    pass


def _always_at(gateway: URL, connect: Callable[..., Awaitable[Any]]) -> Any:
    """Connects to this address, also where Discord names another at which a session goes on (`resume_gateway_url`): it may be out of reach."""

    async def connected(url: str, **more: Any) -> Any:
        return await connect(str(gateway.with_query(URL(url).query)), **more)

    return connected


def limits() -> aiohttp.TraceConfig:
    """Notes what a 429 says and the library does not hand on, and that an answer is a page."""

    async def ended(_: object, call: SimpleNamespace, told: aiohttp.TraceRequestEndParams) -> None:
        status = told.response.status
        call.limited = status == TOO_MANY
        if call.limited:
            LIMITED.set(Limited(told.response.headers.get("X-RateLimit-Scope", "")))
        elif status < 300 and told.response.headers.get("Content-Type", "").startswith(PAGE):
            LIMITED.set(Limited(page=status))

    async def read(_: object, call: SimpleNamespace, told: aiohttp.TraceResponseChunkReceivedParams) -> None:
        if call.limited:
            seconds, code = body_seconds(told.chunk), body_code(told.chunk)
            LIMITED.set(replace(LIMITED.get(), seconds=seconds, code=code))

    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(ended)
    trace.on_response_chunk_received.append(read)
    return trace


def _kept(buckets: dict[str, Ratelimit]) -> Any:
    """The bucket of a key. Those of channels in which nothing happens any more are forgotten now and then."""

    def bucket(key: str) -> Ratelimit:
        if key not in buckets:
            if len(buckets) >= MOST_BUCKETS:
                for old in [name for name, one in buckets.items() if one.is_inactive()]:
                    del buckets[old]
            buckets[key] = Bucket(AT_ONCE)
        return buckets[key]

    return bucket


WHERE_WE_ARE = {"integration_types": [0], "contexts": [0, 1]}
"""Servers that have the bot, and private chats with it. Else people could put the app on their accounts, as every new app allows, and give commands where
no answer of the bot's is taken."""
BEHIND = sentence("what else there is to say")
"""Of the words behind a command."""


def menu_of(commands: Sequence[CommandDoc]) -> list[dict[str, Any]]:
    """The commands as Discord registers them (https://discord.com/developers/docs/interactions/application-commands)."""
    words = {"type": 3, "name": "words", "required": False, **_described(BEHIND)}
    return [
        {"name": one.name, "type": 1, "options": [words], **WHERE_WE_ARE, **_described(one.words)} for one in commands
    ]


def _described(words: str) -> dict[str, Any]:
    """What something does, in each language that Discord has."""
    described: dict[str, Any] = {"description": _in("", words)[:100]}
    if others := {locale: _in(tag, words)[:100] for tag in translated() for locale in LOCALES[tag]}:
        described["description_localizations"] = others
    return described


LOCALES = {
    "de": ("de",), "es": ("es-ES", "es-419"), "fr": ("fr",), "pt": ("pt-BR",), "ru": ("ru",), "zh": ("zh-CN",), "ja": ("ja",), "ar": (), "hi": ("hi",),
}  # fmt: skip
"""Discord's locales (https://discord.com/developers/docs/reference#locales) of our languages."""


def _in(language: str, words: str) -> str:
    with speaking(language):
        return spelled(speak(words))
