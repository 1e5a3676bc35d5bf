"""What was said on Discord while nobody listened: found by the cursors, by the channels' last messages, and by opening private chats.

A bot is not told of its private chats when it connects. One that has a cursor is read like any channel. For a person who may talk
to us and whose chat is not known, it is opened (once ever): its last message says whether there is something to read.

A channel without a cursor is read from where a connection had *heard* everything: what a connection tells is handled one after the
other, so all before the last that was handled is stored or was not for us. That another channel's message is stored says nothing
about it: that may have been read from a history, ahead of what still waits. When something is said in such a channel, and it is
private (somebody's who is not listed is found in no other way) or not looked at yet, what came before that is read first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from adapters.contract.backlog import Backlog, Behind, numbered
from adapters.contract.chat import CallFailed, ChatIntake, Fate
from adapters.contract.intake import in_words, until_stored
from adapters.contract.notaccepted import NotAccepted
from agent_core.ports import Clock

if TYPE_CHECKING:
    import discord

    from adapters.discord.inbound import SaidIn
    from adapters.discord.port import DiscordPort

log = structlog.get_logger("discord")

LATE = "[Sent while I was offline] "
PAGE = 100
MOST_MESSAGES = 1_000
"""So many are read at once of one channel after a gap, the oldest first; the others at leisure."""
MOST_PLACES = 200
"""So many channels without a cursor are looked into at once after a gap: those where something was said last. The others at leisure."""
MOST_OPENED = 20
OPEN_EVERY_SECONDS = 30.0
"""So many private chats are opened at a connect, and then one in each such time: Discord does not want bots to open many at once."""
PERSON = "dm:"
"""Begins the key under which a person's private chat is stored."""
NO_CHAT = "-"
HEARD = "heard:"
"""Begins the key under which is stored up to where a connection (by its shard) has heard everything, as a message id."""
HEARD_EVERY = 10_000 << 22
"""It is stored every ten seconds at most, and lags by as much: messages overtake each other by less. As a difference of ids, whose
bits from the 22nd on are milliseconds (Discord's reference, "Snowflakes")."""


class Take(Protocol):
    """Takes in a message that was found."""

    def __call__(self, client: discord.Client, channel: Any, data: Any, late: str) -> Awaitable[None]: ...


Waiting = Callable[[NotAccepted], None]
"""Called whenever something cannot be stored, and is tried again."""


class DiscordGaps:
    """The gaps of one bot. What it finds goes the same way as what comes by itself."""

    def __init__(
        self, name: str, intake: ChatIntake, port: DiscordPort, clock: Clock, take: Take, waiting: Waiting
    ) -> None:
        self._name = name
        self._intake = intake
        self._port = port
        self._clock = clock
        self._take = take
        self._waiting = waiting
        self._backlog = Backlog(name, self._read, clock)
        self._shards: dict[str, int] = {}
        """Channel → its connection, where that is known."""
        self._met: set[str] = set()
        """People whose private chat is known."""
        self._heard: dict[int, int] = {}
        """Connection → up to where everything was heard, as it is stored."""
        self._from: dict[int, int] = {}
        """The same, when its first session began."""
        self._since: dict[int | None, int] = {}
        """The same, when its session began."""
        self._gap_ms = 0
        """When the last gap was noticed."""
        self._incomplete: set[int | None] = set()
        """Connections whose session has begun, and of whose servers not all are known."""

    async def run(self) -> None:
        """Read histories until cancelled."""
        await self._backlog.run()

    @property
    def whole(self) -> bool:
        """Nothing is left to be read, and nothing is looked for."""
        return not self._incomplete and not len(self._backlog)

    # ------------------------------------------------------------------ when a session begins

    async def began(self, shard: int | None) -> None:
        """Everything that this connection should have heard has to be looked for. Before anything that it tells."""
        self._gap_ms = self._clock.now_ms()
        self._incomplete.add(shard)
        marks = await self._learn(shard)
        self._backlog.add((key, last) for key, last in marks.items() if self._concerns(key, shard))

    async def goes_on(self, shard: int | None) -> None:
        """This connection tells all that it should have heard, after whoever had it before us."""
        await self._learn(shard)

    async def _learn(self, shard: int | None) -> dict[str, int]:
        """What is stored of the account; how far its channels are read."""
        cursors = await self._intake.cursors(self._name)
        self._met |= {key.removeprefix(PERSON) for key, _ in cursors if key.startswith(PERSON)}
        marks = {key: int(last) for key, last in cursors if key.isdigit() and last.isdigit()}
        for key, last in marks.items():
            self._backlog.saw(key, last)
        self._heard |= {int(key.removeprefix(HEARD)): int(last) for key, last in cursors if key.startswith(HEARD)}
        if (shard or 0) not in self._heard:
            first = min(self._heard.values(), default=max(marks.values(), default=_now()))
            self._heard[shard or 0] = first
            await self._note_heard(shard or 0, first)
        self._from.setdefault(shard or 0, self._heard[shard or 0])
        self._since[shard] = min(self._heard.values()) if shard is None else self._heard[shard]
        return marks

    def _concerns(self, channel: str, shard: int | None) -> bool:
        known = self._shards.get(channel)
        return shard is None or known is None or known == shard

    async def complete(self, client: discord.Client, shard: int | None, server: int | None = None) -> None:
        """The servers are known: their channels without a cursor, and people whose chats are not known, are looked at; or all channels of the one
        `server` that was out of reach."""
        heard = self._since[shard]
        fresh = self._fresh(client, shard, server, heard)
        if len(fresh) > MOST_PLACES:
            log.warning("discord.gap_too_wide", channels=len(fresh))
        self._backlog.add(fresh[:MOST_PLACES])
        self._backlog.add(fresh[MOST_PLACES:], leisure=1.0)
        if server is not None:
            return
        if not shard:
            people = [one for one in await self._intake.allowed(self._name) if one.isdigit() and one not in self._met]
            for number, person in enumerate(people, start=1):
                pause = max(0, number - MOST_OPENED) * OPEN_EVERY_SECONDS
                self._backlog.add([(f"{PERSON}{person}", heard)], self._gap_ms, pause_seconds=pause)
        self._incomplete.discard(shard)

    def _fresh(
        self, client: discord.Client, shard: int | None, server: int | None, heard: int
    ) -> list[tuple[str, int]]:
        """Channels and threads in which something was said since, with their marks: those that were never read; of the one server all."""
        seen = self._backlog.seen
        places = [
            place
            for guild in client.guilds
            if (shard is None or guild.shard_id == shard) and server in (None, guild.id)
            for place in (*guild.text_channels, *guild.voice_channels, *guild.stage_channels, *guild.threads)
            if server is not None or str(place.id) not in seen
        ]
        places.sort(key=lambda place: -(place.last_message_id or 0))
        marks = [(place.last_message_id or 0, str(place.id), seen.get(str(place.id), heard)) for place in places]
        return [(place, mark) for last, place, mark in marks if last > mark]

    # ------------------------------------------------------------------ for what comes in

    async def before(self, heard: SaidIn) -> None:
        """Something is said in a channel: what was missed there comes first, if it can be had soon."""
        await self.noticed(heard)
        await self._backlog.catch_up(heard.channel)

    async def noticed(self, heard: SaidIn) -> None:
        """A channel is met: if nobody has looked what was missed there, it is read."""
        channel, shard = heard.channel, heard.shard
        if channel in self._backlog.seen or self._backlog.mark(channel) is not None:
            return
        if heard.private or self._incomplete & {shard, None}:
            await self._fall_behind(channel, self._from.get(shard, heard.number - 1), self._gap_ms)

    async def _fall_behind(self, channel: str, mark: int, since_ms: int) -> None:
        """It has to be read after `mark`. That is stored, so that a crash in the middle does not forget it."""
        self._backlog.add([(channel, mark)], since_ms)
        await self._note(channel, mark)

    async def handled(self, heard: SaidIn) -> None:
        """What came by a connection is stored, or was not for us; everything before it as well, if nothing is left to be read."""
        upto = heard.number - HEARD_EVERY
        if not (self._incomplete or len(self._backlog)) and upto - self._heard.get(heard.shard, upto) >= HEARD_EVERY:
            await self._note_heard(heard.shard, upto)

    async def _note_heard(self, shard: int, heard: int) -> None:
        try:
            await self._intake.skip(self._name, (f"{HEARD}{shard}", str(heard)))
        except NotAccepted as refused:
            log.info("discord.heard_not_noted", words=str(refused))  # a later message tries again
        else:
            self._heard[shard] = heard

    def cursor(self, message: discord.Message, *, late: bool) -> tuple[str, str]:
        """What is stored together with a message: a channel that is behind stays so until its history is read."""
        channel = str(message.channel.id)
        return channel, str(self._backlog.cursor(channel, message.id, late=late))

    async def stored(self, message: discord.Message, person: str, *, late: bool) -> None:
        channel = str(message.channel.id)
        self._backlog.stored(channel, message.id, late=late)
        self._shards[channel] = message.guild.shard_id if message.guild is not None else 0
        if message.guild is None and person not in self._met:
            await self._meet(person, channel)

    async def _meet(self, person: str, channel: str) -> None:
        try:
            await self._intake.skip(self._name, (f"{PERSON}{person}", channel))
        except NotAccepted as refused:
            log.info("discord.chat_not_noted", words=str(refused))  # then it is opened once more some day
        else:
            self._met.add(person)

    # ------------------------------------------------------------------ reading

    async def _read(self, place: str, behind: Behind) -> bool:
        if place.startswith(PERSON):
            await self._open(place.removeprefix(PERSON), behind)
            return True
        return await self._read_channel(place, behind)

    async def _open(self, person: str, behind: Behind) -> None:
        try:
            channel, last = await self._port.opened(person)
        except CallFailed as error:
            if error.fate is Fate.REFUSED:
                await self._meet(person, NO_CHAT)
            raise
        if channel not in self._backlog.seen and last > behind.mark:
            await self._fall_behind(channel, behind.mark, behind.since_ms)
        elif channel not in self._backlog.seen:
            await self._note(channel, behind.mark)
        # Last: a crash before it opens the chat again, and one after it finds the channel's cursor.
        await self._meet(person, channel)

    async def _read_channel(self, channel: str, behind: Behind) -> bool:
        """Whether it was read to its end."""
        client = self._port.client
        if client is None:
            raise CallFailed(Fate.NOT_SENT, "Discord is not connected")
        place = await self.place_of(client, int(channel))
        guild = getattr(place, "guild", None)
        self._shards[channel] = guild.shard_id if guild is not None else 0
        after, count = behind.mark, 0
        while count < MOST_MESSAGES:
            # As JSON: the library would read all of them at once, and one that it cannot read would hide the others.
            page = await self._port.history(client, int(channel), PAGE, after)
            for number, data in numbered(page, _id_of, _odd):
                late = LATE if _said_ms(number) < behind.since_ms else ""
                await self._take(client, place, {**data, "channel_id": channel}, late)
                after = max(after, number)
            count += len(page)
            if len(page) < PAGE:
                if not self._backlog.anew(channel):
                    await self._caught_up(channel, after)
                return True
        log.warning("discord.gap_too_long", channel=channel, read=count)
        self._backlog.advanced(channel, after)
        await self._note(channel, after)
        return False

    async def place_of(self, client: discord.Client, channel: int) -> Any:
        """A channel, asked for if it is not known."""
        return client.get_channel(channel) or await self._port.asked(client.fetch_channel(channel))

    async def _caught_up(self, channel: str, last: int) -> None:
        """From now on the cursor is what was seen last."""
        await self._note(channel, self._backlog.saw(channel, last))

    async def _note(self, channel: str, mark: int) -> None:
        """Store a channel's cursor, however long that takes."""
        self._backlog.saw(channel, mark)
        await until_stored(partial(self._intake.skip, self._name, (channel, str(mark))), self._refused)

    def _refused(self, refused: NotAccepted) -> None:
        log.warning("discord.not_stored", words=str(refused))
        self._waiting(refused)


def _id_of(data: Any) -> int:
    return int(data["id"])


def _odd(error: Exception) -> None:
    log.error("discord.odd_event", event_kind="history", error=in_words(error))


def _said_ms(number: int) -> int:
    """When a message with this id was written."""
    from adapters.discord.library import discord

    return round(discord.utils.snowflake_time(number).timestamp() * 1000)


def _now() -> int:
    """The id of a message that is written now."""
    from adapters.discord.library import discord

    return discord.utils.time_snowflake(discord.utils.utcnow())
