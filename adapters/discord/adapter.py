"""The Discord bot: a gateway connection whose messages are stored one after the other, and history for what was missed.

Discord replays a short gap (RESUME), and nothing after a longer one. So the last message seen of each channel is stored, and
after each new session the history behind it is read (`missed`): what waited is taken in as late.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import aiohttp
import structlog
from aiohttp import web

from adapters.contract.chat import AdapterSight, CallFailed, Cause, ChatIntake, ChatMessage, Fate, Raw
from adapters.contract.files import FileHosts, FileSource
from adapters.contract.intake import WayIn, digest_of, in_words, raw_of, until_stored
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.settings import revealed
from adapters.contract.supervision import (
    DOWN,
    NEEDS_A_PERSON,
    UP,
    AdapterDown,
    AllConnections,
    Connections,
    OtherGateway,
)
from adapters.discord.inbound import (
    PLATFORM,
    Began,
    Brought,
    Complete,
    Happened,
    SaidIn,
    by_a_bot,
    heard_of,
    parties,
    read_interaction,
    read_message,
    whence,
)
from adapters.discord.missed import DiscordGaps
from adapters.discord.port import NONCE, DiscordPort, failure
from adapters.discord.section import DiscordSection
from adapters.discord.sessions import ShardSessions, Upto
from adapters.refusing import MISREAD
from agent_core.model.transport import OwnAnswers
from agent_core.ports import Clock

if TYPE_CHECKING:
    import discord

    from adapters.discord.client import BotClient

T = TypeVar("T")
log = structlog.get_logger("discord")

MENU = "menu"
QUEUE = 1_000
"""Events that wait to be stored. Beyond it they are left to the history, which is read again then."""
TOGETHER = 100
"""As many are handled at once."""
PROBE_SECONDS = 20.0
"""After such a silence the connection is asked for a sign of life."""
DEAF_SECONDS = 40.0


FILE_DOMAINS = ("cdn.discordapp.com", "media.discordapp.net")
"""Where attachments lie (https://docs.discord.com/developers/reference#image-formatting)."""


def _is_table(data: object) -> bool:
    return isinstance(data, dict)


def _removed_keys(data: Mapping[str, Any]) -> list[str]:
    """The keys of messages that were taken back, one or many at once."""
    return [f"{int(data['channel_id'])}:{int(one)}" for one in data.get("ids") or [data["id"]]]


async def _ask_for_life(sockets: Sequence[Any]) -> None:
    """A heartbeat out of turn; its acknowledgement is life. The library leaves a connection that is silent for 30 s."""
    from adapters.discord.client import heartbeat_of

    for socket in sockets:
        try:
            await socket.send_heartbeat(heartbeat_of(socket))
        except (ConnectionError, RuntimeError) as error:
            log.debug("discord.probe_failed", error=type(error).__name__)


class DiscordAdapter:
    """One bot. `run` it under supervision."""

    def __init__(self, settings: DiscordSection, intake: ChatIntake, clock: Clock) -> None:
        self._settings = settings
        self._intake = intake
        self._clock = clock
        self.account = settings.account
        self.name = f"{PLATFORM}/{self.account}"
        self._twin = OtherGateway("Discord", clock.monotonic(), expected=intake.several)
        files = FileSource(FileHosts(FILE_DOMAINS, settings.api_base), proxy=settings.proxy)
        self.port = DiscordPort(files, self._twin.sends)
        self.connections = settings.shards or 1
        self.held: Connections = AllConnections()
        self._sending: BotClient | None = None
        self._clients: dict[int | None, BotClient] = {}
        """Those that have a connection, or are about to have one, by its number."""
        self._handled: dict[int | None, int | None] = {}
        """The last event of each connection that was handled."""
        self._queue: asyncio.Queue[Happened] = asyncio.Queue(QUEUE)
        self._came: deque[Happened] = deque()
        """What is being handled, and behind it what is in the queue."""
        self._under_way: set[int] = set()
        """What of that is just being taken, by the ids of the objects."""
        self._overflowed = False
        self._last_life = clock.monotonic()
        self._way = WayIn(self.name, intake, clock)
        self._probed_at = self._last_life
        self._missed = DiscordGaps(self.name, intake, self.port, clock, self._late, self._waiting)
        self._sessions = ShardSessions(self.name, intake, self._up_to, self.alive)

    # ------------------------------------------------------------------ life

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """The way out of the last client that was let in stays open until then: what is to be sent needs no gateway connection."""
        try:
            yield
        finally:
            await self._send_with(None)

    async def _send_with(self, client: BotClient | None) -> None:
        before, self._sending, self.port.client = self._sending, client, client
        if before is not None:
            await before.let_go()

    def routes(self) -> list[web.RouteDef]:
        return []

    @property
    def silent_seconds(self) -> float:
        now = self._clock.monotonic()
        silent = now - self._last_life
        # One connection of several may be silent while others are not, so that all of them are asked all the time.
        since = silent if not self._settings.shards else now - self._probed_at
        if since > PROBE_SECONDS and now - self._probed_at > PROBE_SECONDS and self._clients:
            self._probed_at = now
            self._probe = asyncio.ensure_future(_ask_for_life(self._sockets()))
        return silent

    def _sockets(self) -> list[Any]:
        return [socket for client in self._clients.values() for socket in client.sockets()]

    @property
    def deaf_after_seconds(self) -> float:
        return DEAF_SECONDS

    def alive(self) -> None:
        """Something came from the platform."""
        self._last_life = self._clock.monotonic()

    @property
    def any_works(self) -> bool:
        """See `adapters.contract.supervision.SeveralConnections`."""
        return self._sessions.waiting > 0 or any(socket.open for socket in self._sockets())

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        if state != UP and (waiting := self._sessions.waiting):
            words = f"{waiting} of {len(self._clients)} connections wait for their turn: Discord lets a bot begin one after the other."
        if state == UP:
            gone, count = len(self._clients) - sum(socket.open for socket in self._sockets()), len(self._clients)
            if gone:
                state, words = DOWN, f"{gone} of {count} connections to Discord are gone, and made anew."
            elif twin := self._twin.words(self._clock.monotonic()):
                state, words = NEEDS_A_PERSON, twin
        return AdapterSight(self.name, state, words, self._way.age_seconds, outbound)

    async def run(self, up: Callable[[], None]) -> None:
        """Serve until cancelled. Raises `AdapterDown`, or whatever the library raises."""
        self.alive()
        ups: set[int | None] = set()

        def is_up(shard: int | None) -> None:
            ups.add(shard)
            if ups >= self._clients.keys():
                up()

        if self._settings.shards:
            await self.stand()  # each connection comes and goes by itself; what goes out goes its own way
        tasks = [
            *(
                asyncio.create_task(self._held(number, partial(is_up, shard), shard), name="discord connection")
                for number, shard in enumerate(range(self._settings.shards) or (None,))
            ),
            asyncio.create_task(self._work(), name="discord messages"),
            asyncio.create_task(self._missed.run(), name="discord history"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _held(self, number: int, up: Callable[[], None], shard: int | None) -> None:
        await self.held.while_had(number, partial(self._connection, up, shard))

    async def _connection(self, up: Callable[[], None], shard: int | None) -> None:
        """One connection, until cancelled, or it cannot go on. Raises as `run`."""
        from adapters.discord.client import made_client

        self._clients[shard] = client = made_client(self._settings, self, up, self.held.may_open, shard)
        keeping: asyncio.Task[None] | None = None
        try:
            if self._settings.shards or self._intake.several:
                client.turn = partial(self._sessions.turn, client)
            if self._intake.several:
                client.resumes = await self._sessions.stored(shard)
                keeping = asyncio.create_task(self._sessions.keep(client))
            if client.resumes is not None:
                await self._goes_on(shard)
            await self._let_in(client, self._listening, sends=not self._settings.shards)
        finally:
            if keeping is not None:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
                await self._sessions.leave(client)
            self._clients.pop(shard, None)
            self._handled.pop(shard, None)
            await client.close()
            if self._sending is not client:
                await client.let_go()  # it was never let in

    async def _goes_on(self, shard: int | None) -> None:
        try:
            await self._missed.goes_on(shard)
        except NotAccepted as away:
            raise AdapterDown(str(away)) from away

    def _up_to(self, shard: int | None) -> Upto | int:
        """Whether whoever goes on with the session of a connection misses nothing, and from where on: all before that is stored, and no history is left
        to be read."""
        waiting = [one for one in self._came if one.shard == shard]
        if self._overflowed or not self._missed.whole or not all(isinstance(one, Brought) for one in waiting):
            return Upto.NOTHING
        if not waiting:
            return Upto.ALL
        return self._handled.get(shard) or Upto.AS_BEFORE

    async def _listening(self, client: BotClient) -> None:
        if not client.shard_id:
            await self._set_menu(client)
        await client.waited()
        await client.connect(reconnect=True)

    async def _let_in(
        self,
        client: BotClient,
        then: Callable[[BotClient], Awaitable[None]] | None = None,
        *,
        sends: bool = True,
    ) -> None:
        """From now on we send with it, if it is the one that `sends`; and then something else. Raises `AdapterDown`."""
        from adapters.discord.library import discord

        try:
            await self._login(client)
            if sends:
                await self._send_with(client)
            if then is not None:
                await then(client)
        except discord.LoginFailure as error:
            if (failed := failure(error)).cause is not Cause.NOT_LET_IN:
                raise AdapterDown(f"Discord cannot be reached: {failed.words}") from error
            words = "Discord does not know the bot's token. Reset it (Developer Portal, Bot, Reset Token) and set DISCORD_BOT_TOKEN."
            raise AdapterDown(words, fatal=True) from error
        except discord.PrivilegedIntentsRequired as error:
            words = "The bot may not read messages: switch on Message Content Intent (Developer Portal, Bot, Privileged Gateway Intents)."
            raise AdapterDown(words, fatal=True) from error
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            words = f"Discord cannot be reached: {type(error).__name__}: {str(error)[:200]}"
            raise AdapterDown(words, wait_seconds=failure(error).retry_after) from error

    async def _login(self, client: BotClient) -> None:
        if not isinstance(client.http.connector, OwnAnswers):
            client.http.connector = OwnAnswers(limit=0)
        try:
            await client.login(revealed(self._settings.token))
        except MISREAD as error:
            raise AdapterDown(failure(error).words) from error

    async def _set_menu(self, client: discord.Client) -> None:
        """Register the commands, if they are others than the last time: Discord limits that."""
        from adapters.discord.client import menu_of

        menu = menu_of(self._intake.commands())
        mark = hashlib.sha256(repr(menu).encode()).hexdigest()
        if await self._intake.cursor(self.name, MENU) == mark:
            return
        assert client.application_id is not None
        try:
            await self.port.asked(client.http.bulk_upsert_global_commands(client.application_id, menu))
        except CallFailed as error:
            if error.cause is Cause.NOT_LET_IN:
                raise AdapterDown(error.words) from error
            log.warning("discord.menu_not_set", words=error.words)
            return
        with suppress(NotAccepted):  # then it is registered once more
            await self._intake.skip(self.name, (MENU, mark))

    # ------------------------------------------------------------------ messages

    def happened(self, event: Happened) -> None:
        """Called by the client in the order of events; never waits."""
        if self._overflowed:
            return  # what would come in now would hide what was left out before it
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._overflowed = True
        else:
            self._came.append(event)

    def odd(self, kind: str, error: Exception) -> None:
        """The library could not read something that is no person's doing."""
        log.error("discord.odd_event", event_kind=kind, error=in_words(error), exc_info=error)

    async def _work(self) -> None:
        """Handle what comes: of one channel, and of one person, one after the other; the rest of what is there together, so that it shares commits. What
        cannot be stored now is handled again, before all that came after it."""
        while len(self._came) > self._queue.qsize():
            self._came.popleft()  # it was being handled when the last connection ended
        while True:
            events: list[Happened] = [await self._queue.get()]
            while len(events) < TOGETHER and isinstance(events[-1], Brought) and self._next_is_brought():
                events.append(self._queue.get_nowait())
            await self._all_handled(events)
            for event in events:
                self._came.popleft()
                self._handled[event.shard] = event.seq if isinstance(event, Brought) else None
            if self._overflowed and self._queue.empty():
                self._overflowed = False
                for shard in self._clients:
                    self.happened(Began(shard))
                    self.happened(Complete(shard))

    def _next_is_brought(self) -> bool:
        """What comes next is a person's doing, and no session's begin: that comes behind all before it, and before all behind it."""
        return not self._queue.empty() and isinstance(self._came[len(self._came) - self._queue.qsize()], Brought)

    async def _all_handled(self, events: Sequence[Happened]) -> None:
        if len(events) == 1:
            heard = [await self._handled_behind((), events[0])]
        else:
            latest: dict[str, asyncio.Task[SaidIn | None]] = {}
            async with asyncio.TaskGroup() as group:
                tasks: list[asyncio.Task[SaidIn | None]] = []
                for event in events:
                    whose = parties(event.data) if isinstance(event, Brought) else frozenset[str]()
                    before = [latest[one] for one in whose if one in latest]
                    tasks.append(group.create_task(self._handled_behind(before, event)))
                    latest |= dict.fromkeys(whose, tasks[-1])
            heard = [task.result() for task in tasks]
        # Only now: who was handled first may have come last.
        for one in {one.shard: one for one in heard if one is not None}.values():
            await self._missed.handled(one)

    async def _handled_behind(self, before: Sequence[asyncio.Task[Any]], event: Happened) -> SaidIn | None:
        """Where it was said, if it was said somewhere."""
        for one in before:
            await one
        client = self._clients.get(event.shard)
        if client is None or client.user is None:  # it is another gateway's by now, or was not let in yet
            client = self.port.client
        if client is None:
            return None
        self._under_way.add(id(event))
        try:
            return await self._until(partial(self._handle, client, event))
        finally:
            self._under_way.discard(id(event))

    async def _until(self, work: Callable[[], Awaitable[T]]) -> T:
        def refused(error: NotAccepted) -> None:
            log.warning("discord.not_stored", words=str(error))
            self._waiting(error)

        return await until_stored(work, refused)

    def _waiting(self, refused: NotAccepted) -> None:
        """Chats whose messages wait for the storage are told."""
        from adapters.discord.client import message_of

        client = self.port.client
        me = client.user.id if client is not None and client.user is not None else 0

        def said(one: Brought) -> ChatMessage | None:
            if client is None:
                return None
            read = read_message(message_of(client, one.data), me, self.account)
            threaded = read is not None and read.for_us and self._settings.auto_threads
            return None if threaded and id(one) in self._under_way else read  # that one is told in its thread

        came = (one for one in self._came if isinstance(one, Brought) and one.kind == "MESSAGE_CREATE")
        self._way.waiting(refused, (partial(said, one) for one in came))

    async def _handle(self, client: discord.Client, event: Happened) -> SaidIn | None:
        match event:
            case Began(shard):
                await self._missed.began(shard)
            case Complete(shard, server):
                await self._missed.complete(client, shard, server)
            case Brought(kind, data):
                return await self._take(client, kind, data, channel=await self._asked_for(client, kind, data))
        return None

    async def _asked_for(self, client: discord.Client, kind: str, data: Any) -> Any:
        """The channel of a server that nobody has told us of, because the session was begun by another gateway: which thread it is, and of what.
        None where the library knows it, or has no need to."""
        places: dict[int, Any] | None = getattr(client, "places", None)
        if kind != "MESSAGE_CREATE" or places is None or getattr(client, "knows_servers", True):
            return None
        if (
            not _is_table(data)
            or data.get("guild_id") is None
            or client.get_channel(int(data["channel_id"])) is not None
        ):
            return None
        number = int(data["channel_id"])
        if number not in places:
            try:
                places[number] = await self._missed.place_of(client, number)
            except CallFailed as error:
                if error.fate is not Fate.REFUSED and error.cause is not Cause.UNREADABLE:
                    raise NotAccepted(error.words, NotAcceptedCode.STORAGE_AWAY) from error
                places[number] = None
        return places[number]

    async def _take(
        self, client: discord.Client, kind: str, data: object, *, channel: Any = None, late: str | None = None
    ) -> SaidIn | None:
        """Come back when it is in a table; where it was said, if it came by a connection and says so. `channel` and `late`: see `_late`."""
        from adapters.discord.client import interaction_of, message_of

        me = client.user.id if client.user is not None else 0
        told: Mapping[str, Any] = cast("Mapping[str, Any]", data) if _is_table(data) else {}
        edited = kind == "MESSAGE_UPDATE"
        if edited and told.get("edited_timestamp") is None:
            return None  # it only got a preview of a link
        if kind == "MESSAGE_CREATE" and late is None:
            self._whose(told, me)
        if kind in ("MESSAGE_CREATE", "MESSAGE_UPDATE") and by_a_bot(told):
            return await self._passed(told) if late is None else None

        heard: list[SaidIn] = []

        def kept() -> Raw:
            key = f"{kind.lower()}:{told.get('channel_id')}:{told.get('id') or digest_of(data)}" if told else ""
            key = f"{key}:{digest_of(data)}" if edited else key
            return raw_of(key, {"kind": kind, "data": data}, lambda: whence(kind, told, me, self.account))

        async def said(message: discord.Message) -> bool:
            if late is not None:
                return await self._said(client, message, me, edited=edited, late=late)
            place = heard_of(told, self._settings.shards)
            await self._missed.before(place)
            theirs = await self._said(client, message, me, edited=edited)
            heard.append(place)
            return theirs

        match kind:
            case "INTERACTION_CREATE":
                key = f"interaction:{told.get('id')}"
                await self._way.take(kept, lambda: interaction_of(client, data), self._pressed, key=lambda _: key)
            case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
                await self._way.take(kept, lambda: _removed_keys(told), self._removed, key=lambda _: "")
            case _:
                key = "" if edited else f"{told.get('channel_id')}:{told.get('id')}"
                await self._way.take(kept, lambda: message_of(client, data, channel), said, key=lambda _: key)
        return heard[-1] if heard else None

    async def _passed(self, told: Mapping[str, Any]) -> SaidIn | None:
        """Something was said that is for nobody here: where."""
        try:
            heard = heard_of(told, self._settings.shards)
        except (KeyError, ValueError, TypeError) as error:
            self.odd("message", error)
            return None
        await self._missed.noticed(heard)
        return heard

    def _whose(self, told: Mapping[str, Any], me: int) -> None:
        """What appears by our account, and was sent by another gateway: each marks its messages in the same way."""
        nonce: str = str(told.get("nonce") or "")
        author: Any = told.get("author")
        ours = _is_table(author) and str(author.get("id")) == str(me)
        if ours and NONCE.fullmatch(nonce) and self._twin.heard(nonce, self._clock.monotonic()):
            log.error("discord.two_gateways", account=self.account, chat=str(told.get("channel_id")))

    async def stand(self) -> None:
        """See `adapters.contract.supervision.Supervised`."""
        from adapters.discord.client import made_client

        if self._sending is None:
            client = made_client(self._settings, self, lambda: None, self.held.may_open, 0)
            await self._let_in(client)
        else:
            await self._see(self._sending)

    async def _see(self, client: BotClient) -> None:
        """Whether Discord is there, and knows us. Raises `AdapterDown`."""
        try:
            await self.port.asked(client.http.get_bot_gateway())
        except CallFailed as error:
            raise AdapterDown(f"Discord cannot be reached: {error.words}", wait_seconds=error.retry_after) from error

    async def again(self, body: bytes) -> None:
        """See `adapters.contract.supervision.Supervised`."""
        from adapters.discord.client import interaction_of, message_of

        client = self.port.client
        assert client is not None, "the client is not connected"
        kept = json.loads(body)
        kind, data = kept["kind"], kept["data"]
        me = client.user.id if client.user is not None else 0
        match kind:
            case "INTERACTION_CREATE":  # nobody waits for its answer any more, and what is not stored is tried again
                if (read := read_interaction(interaction_of(client, data), self.account)) is not None:
                    await self._intake.receive(read, None)
            case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
                await self._removed(_removed_keys(data))
            case _:
                channel = await self._missed.place_of(client, int(data["channel_id"]))
                edited = kind == "MESSAGE_UPDATE"
                await self._said(client, message_of(client, data, channel), me, edited=edited, late="", again=True)

    async def _removed(self, keys: Sequence[str]) -> bool:
        """A person took messages back: their own, or whoever manages a channel those of others."""
        for key in keys:
            await self._intake.removed(self.name, key)
        return False

    async def _late(self, client: discord.Client, channel: Any, data: Any, late: str) -> None:
        """Take in a message of the history of `channel`; `late` is put before its words."""
        await self._until(partial(self._take, client, "MESSAGE_CREATE", data, channel=channel, late=late))

    async def _said(
        self,
        client: discord.Client,
        message: discord.Message,
        me: int,
        *,
        edited: bool = False,
        late: str | None = None,
        again: bool = False,
    ) -> bool:
        """Store a message; whether there was one. `late` is put before the words of one that was read from the history; None: it came by itself."""
        read = read_message(message, me, self.account, edited=edited, late=late or "")
        if read is None:
            return False
        if self._settings.auto_threads and read.for_us and not edited and not read.command:
            read = await self._in_thread(client, message, read)
        was_read = late is not None
        await self._intake.receive(read, None if again else self._missed.cursor(message, late=was_read))
        if not again:
            await self._missed.stored(message, read.origin.person.id, late=was_read)
        return True

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
        except Exception as error:  # noqa: BLE001 - the message is worth more than its thread
            log.warning("discord.no_thread", words=in_words(error))
            return read
        return replace(read, origin=replace(read.origin, address=replace(read.origin.address, thread=str(message.id))))

    async def _pressed(self, interaction: discord.Interaction[Any]) -> bool:
        """Store it, then acknowledge: Discord waits three seconds for that. The answer comes as an ordinary message.

        One that cannot be stored now is refused in words: its person is there, and Discord does not bring it again.
        """
        read = read_interaction(interaction, self.account)
        if read is None:
            return False
        try:
            await self._intake.receive(read, None)
        except NotAccepted as refused:
            await self._acknowledge(interaction, str(refused), refused=True)
            return False
        await self._acknowledge(interaction, f"/{read.command} {read.text}".strip(), refused=False)
        return True

    async def _acknowledge(self, interaction: discord.Interaction[Any], words: str, *, refused: bool) -> None:
        from adapters.discord.library import discord

        try:
            if interaction.type is discord.InteractionType.component and not refused:
                await self.port.asked(interaction.response.defer())
            else:
                await self.port.asked(interaction.response.send_message(words[:1900], ephemeral=True))
        except CallFailed as error:
            log.info("discord.press_not_answered", words=error.words)
        except Exception as error:  # noqa: BLE001 - it is stored: what the library makes of the answer changes nothing
            log.warning("discord.press_not_answered", words=in_words(error))
