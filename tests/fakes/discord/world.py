"""The state of the fake Discord: users, guilds, channels, messages, files, interactions. No I/O; the clock is given.

What persons do is in `people.py`, what the bot may ask for in `routes.py` and its neighbours; both change this world only, and the world
tells of it by events, which the gateway sends to whoever is connected.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.fakes.common import Clock, Json, JsonObject
from tests.fakes.discord import wire
from tests.fakes.discord.components import Row
from tests.fakes.discord.forms import OCTETS, Upload
from tests.fakes.discord.ids import Snowflakes
from tests.fakes.discord.mentions import ALL, Allowed, find, pinged
from tests.fakes.discord.objects import (
    NO_FLAGS,
    Attachment,
    Channel,
    ChannelKind,
    Flag,
    Guild,
    Interaction,
    Member,
    Message,
    MessageKind,
    Permission,
    Role,
    User,
)

TYPING_SECONDS = 10.0
"""How long "typing" is shown if no message comes (https://docs.discord.com/developers/resources/channel#trigger-typing-indicator)."""
NONCE_SECONDS = 180.0
"""How long a nonce is remembered; the documentation says "in the past few minutes"."""
LINK_SECONDS = 86_400.0
"""How long the link of an attachment is good."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the gateway tells."""

    name: str
    body: JsonObject
    guild_id: int | None
    """None in a DM, and for what has no place."""
    withheld: JsonObject | None = None
    """The body for those without the intent for message content, if it differs."""


@dataclass(slots=True)
class Draft:
    """A message before it is there."""

    content: str = ""
    kind: MessageKind = MessageKind.DEFAULT
    reply_to: Message | None = None
    uploads: Sequence[Attachment] = ()
    embeds: Sequence[Json] = ()
    rows: Sequence[Row] = ()
    flags: Flag = NO_FLAGS
    nonce: str | int | None = None
    tts: bool = False
    allowed: Allowed = ALL
    interaction: Interaction | None = None
    more: JsonObject = field(default_factory=dict[str, "Json"])


@dataclass(frozen=True, slots=True)
class Sync:
    """One overwriting of the application's commands."""

    guild_id: int | None
    names: tuple[str, ...]


@dataclass(slots=True)
class Commands:
    """The commands of the application."""

    known: dict[int | None, dict[int, JsonObject]] = field(default_factory=dict[int | None, dict[int, JsonObject]])
    """By guild (None: everywhere) and id."""
    syncs: list[Sync] = field(default_factory=list[Sync])
    created: int = 0
    """How many were new; the server allows 200 a day and guild."""


class World:
    """Everything that there is."""

    def __init__(
        self, bot: User, clock: Clock, ids: Snowflakes, *, content_granted: bool, changed: Callable[[], None]
    ) -> None:
        self.bot = bot
        self.clock = clock
        self.content_granted = content_granted
        """Whether the application may see what messages say, by the portal's settings."""
        self.changed = changed
        self.ids = ids
        self.origin = ""
        """Scheme, host and port, once they are known."""
        self.users: dict[int, User] = {bot.id: bot}
        self.guilds: dict[int, Guild] = {}
        self.channels: dict[int, Channel] = {}
        self.interactions: dict[int, Interaction] = {}
        self.commands = Commands()
        self.created: list[Message] = []
        """Every message of the bot in the order in which it came to be, deleted and ephemeral ones too."""
        self.outlet: Callable[[Event], None] = lambda _: None
        self.attachments: dict[str, Attachment] = {}
        """By path, without the signature."""
        self._typing: dict[tuple[int, int], float] = {}
        self._nonces: dict[tuple[int, str], tuple[Message, float]] = {}

    # --- time and telling ---

    def now(self) -> datetime:
        """The time of day."""
        return datetime.fromtimestamp(self.clock.unix(), UTC)

    def tell(self, name: str, body: JsonObject, guild: Guild | None, withheld: JsonObject | None = None) -> None:
        """Let the bot know, if it wants to and can."""
        if guild is None or (guild.has_bot and guild.available):
            self.outlet(Event(name, body, None if guild is None else guild.id, withheld))
        self.changed()

    def message_json(self, message: Message, *, with_nonce: bool = False) -> JsonObject:
        """A Message object without regard to intents."""
        return wire.message_json(message, self.users, self.bot, self.origin, with_nonce=with_nonce)

    def readable_json(self, message: Message, *, with_nonce: bool = False) -> JsonObject:
        """A Message object as the API answers it to this application."""
        body = self.message_json(message, with_nonce=with_nonce)
        return body if self.content_granted or self.is_for_bot(message) else _without_content(body)

    def is_for_bot(self, message: Message) -> bool:
        """Whether the bot reads the message whatever its intents: a DM, its own, or one that mentions it."""
        if message.channel.guild is None or message.author.id == self.bot.id:
            return True
        return self.bot.id in message.mentions.users

    def tell_message(self, name: str, message: Message) -> None:
        """MESSAGE_CREATE and MESSAGE_UPDATE. Ephemeral messages are told to nobody but their one reader."""
        guild = message.channel.guild
        if message.ephemeral or not self.sees(message.channel):
            self.changed()
            return
        body = self.message_json(message, with_nonce=name == "MESSAGE_CREATE")
        if guild is not None:
            body["guild_id"] = str(guild.id)
            member = guild.members.get(message.author.id)
            if member is not None:
                body["member"] = wire.member_json(member, with_user=False)
        self.tell(name, body, guild, None if self.is_for_bot(message) else _without_content(body))

    def sees(self, channel: Channel) -> bool:
        """Whether the bot can see a channel; a private thread only if it is in it, or manages threads."""
        guild = channel.guild
        if guild is None:
            return True
        if not guild.has_bot:
            return False
        allowed = wire.permissions_of(channel, self.bot)
        if Permission.VIEW_CHANNEL not in allowed:
            return False
        if channel.kind is ChannelKind.PRIVATE_THREAD:
            return self.bot.id in channel.members or Permission.MANAGE_THREADS in allowed
        return True

    # --- places ---

    def add_guild(self, name: str, owner: User, permissions: Permission) -> Guild:
        """A new guild that the bot is in."""
        number = self.ids.next_in_a_new_millisecond()
        bot_role = Role(self.ids.next(), self.bot.name, permissions, bot_id=self.bot.id)
        guild = Guild(number, name, owner, self.now(), bot_role)
        everyone = Role(number, "@everyone")
        guild.roles = {everyone.id: everyone, bot_role.id: bot_role}
        guild.members = {user.id: Member(user, self.now()) for user in (owner, self.bot)}
        guild.members[self.bot.id].roles.append(bot_role)
        self.guilds[number] = guild
        return guild

    def add_channel(self, channel: Channel) -> Channel:
        """A new place."""
        assert channel.id not in self.channels, channel.id
        self.channels[channel.id] = channel
        if channel.guild is not None:
            channel.guild.channels[channel.id] = channel
        return channel

    def dm(self, user: User) -> Channel:
        """The DM channel between a person and the bot."""
        for channel in self.channels.values():
            if channel.recipient is user:
                return channel
        return self.add_channel(Channel(self.ids.next(), ChannelKind.DM, recipient=user, owner_id=self.bot.id))

    def add_thread(
        self,
        parent: Channel,
        name: str,
        by: User,
        *,
        message: Message | None = None,
        private: bool = False,
        archive_minutes: int = 1440,
        slowmode_seconds: int = 0,
    ) -> Channel:
        """Somebody opens a thread, from a message (whose id it takes) or without one."""
        number = self.ids.next() if message is None else message.id
        kind = ChannelKind.PRIVATE_THREAD if private else ChannelKind.PUBLIC_THREAD
        thread = Channel(number, kind, name, parent.guild, parent=parent, owner_id=by.id)
        thread.members, thread.archive_minutes = {by.id}, archive_minutes
        thread.slowmode_seconds = slowmode_seconds
        self.add_channel(thread)
        if self.sees(thread):
            body: JsonObject = {**wire.channel_json(thread, self.bot), "newly_created": True}
            self.tell("THREAD_CREATE", body, thread.guild)
        if message is not None:
            message.thread, message.flags = thread, message.flags | Flag.HAS_THREAD
            self.tell_message("MESSAGE_UPDATE", message)
            self.post(thread, by, Draft(kind=MessageKind.THREAD_STARTER, reply_to=message))
        elif not private:
            self.post(parent, by, Draft(name, kind=MessageKind.THREAD_CREATED))
        return thread

    def update_thread(self, thread: Channel, *, archived: bool | None = None, locked: bool | None = None) -> None:
        """A thread is archived, locked, renamed, or opened again."""
        if archived is not None and archived != thread.archived:
            thread.archived, thread.changed_at = archived, self.now()
        if locked is not None:
            thread.locked = locked
        if self.sees(thread):
            self.tell("THREAD_UPDATE", wire.channel_json(thread, self.bot), thread.guild)

    # --- messages ---

    def post(self, channel: Channel, author: User, draft: Draft) -> Message:
        """A message appears. It opens an archived thread again, and ends its author's typing."""
        if channel.archived and draft.kind in {MessageKind.DEFAULT, MessageKind.REPLY}:
            self.update_thread(channel, archived=False)
        is_bot = author.id == self.bot.id
        may_ping_all = not is_bot or Permission.MENTION_EVERYONE in wire.permissions_of(channel, self.bot)
        # What happened pings nobody.
        asked = draft.reply_to if draft.kind is MessageKind.REPLY else None
        mentions = find(draft.content, channel, draft.allowed, asked, may_ping_all=may_ping_all)
        silent = Flag.SUPPRESS_NOTIFICATIONS in draft.flags
        message = Message(
            channel,
            self.ids.next(),
            author,
            draft.content,
            draft.kind,
            draft.reply_to,
            list(draft.uploads),
            list(draft.embeds),
            list(draft.rows),
            draft.flags,
            draft.nonce,
            draft.tts,
            mentions,
            frozenset() if silent else pinged(mentions, channel, author),
            interaction=draft.interaction,
            more=draft.more,
        )
        channel.messages[message.id] = message
        if channel.is_thread:
            channel.members.add(author.id)
        self._typing.pop((channel.id, author.id), None)
        if is_bot:
            self.created.append(message)
        self.tell_message("MESSAGE_CREATE", message)
        return message

    def change(self, message: Message, content: str | None, allowed: Allowed = ALL) -> None:
        """A message was edited; None: its text stays. Nobody is pinged by that."""
        if content is not None and content != message.content:
            if Flag.LOADING not in message.flags:
                message.earlier.append(message.content)
            message.content = content
            may_ping_all = message.author.id != self.bot.id
            asked = message.reply_to if message.kind is MessageKind.REPLY else None
            message.mentions = find(content, message.channel, allowed, asked, may_ping_all=may_ping_all)
        if Flag.LOADING in message.flags:
            message.flags &= ~Flag.LOADING
        else:
            message.edits += 1
            message.edited_at = self.now()
        self.tell_message("MESSAGE_UPDATE", message)

    def remove(self, message: Message) -> None:
        """A message is deleted."""
        message.deleted = True
        if message.ephemeral or not self.sees(message.channel):
            self.changed()
            return
        self.tell("MESSAGE_DELETE", self.place_json(message), message.channel.guild)

    def purge(self, channel: Channel, messages: Sequence[Message]) -> None:
        """Many messages are deleted at once."""
        for message in messages:
            message.deleted = True
        ids: list[Json] = [str(message.id) for message in messages]
        self.tell("MESSAGE_DELETE_BULK", {"ids": ids, **self.channel_fields(channel)}, channel.guild)

    def place_json(self, message: Message) -> JsonObject:
        """Where a message is."""
        return {"id": str(message.id), **self.channel_fields(message.channel)}

    def channel_fields(self, channel: Channel) -> JsonObject:
        """`channel_id`, and `guild_id` in a guild."""
        body: JsonObject = {"channel_id": str(channel.id)}
        if channel.guild is not None:
            body["guild_id"] = str(channel.guild.id)
        return body

    def with_nonce(self, author: User, nonce: str | int) -> Message | None:
        """The message that this author sent with this nonce in the past few minutes, wherever."""
        found = self._nonces.get((author.id, str(nonce)))
        return found[0] if found is not None and found[1] > self.clock.monotonic() else None

    def remember_nonce(self, message: Message) -> None:
        """From now on a message with the same nonce is a repetition."""
        if message.nonce is not None:
            self._nonces[message.author.id, str(message.nonce)] = (message, self.clock.monotonic() + NONCE_SECONDS)

    # --- reactions and typing ---

    def react(self, message: Message, user: User, emoji: str) -> None:
        """Somebody adds a reaction."""
        users = message.reactions.setdefault(emoji, [])
        if user.id in users:
            return
        users.append(user.id)
        self._tell_reaction("MESSAGE_REACTION_ADD", message, user, emoji)

    def unreact(self, message: Message, user: User, emoji: str) -> None:
        """A reaction is taken away."""
        users = message.reactions.get(emoji, [])
        if user.id not in users:
            return
        users.remove(user.id)
        if not users:
            del message.reactions[emoji]
        self._tell_reaction("MESSAGE_REACTION_REMOVE", message, user, emoji)

    def _tell_reaction(self, name: str, message: Message, user: User, emoji: str) -> None:
        guild = message.channel.guild
        body: JsonObject = {
            "user_id": str(user.id),
            "message_id": str(message.id),
            "emoji": wire.emoji_json(emoji),
            "burst": False,
            "type": 0,
            **self.channel_fields(message.channel),
        }
        if name == "MESSAGE_REACTION_ADD":
            body["message_author_id"] = str(message.author.id)
            if guild is not None:
                body["member"] = wire.member_json(guild.members[user.id])
        if self.sees(message.channel):
            self.tell(name, body, guild)

    def type_in(self, channel: Channel, user: User) -> None:
        """Somebody is seen to type."""
        self._typing[channel.id, user.id] = self.clock.monotonic() + TYPING_SECONDS
        guild = channel.guild
        body: JsonObject = {
            "user_id": str(user.id),
            "timestamp": int(self.clock.unix()),
            **self.channel_fields(channel),
        }
        if guild is not None:
            body["member"] = wire.member_json(guild.members[user.id])
        if self.sees(channel):
            self.tell("TYPING_START", body, guild)

    def typists(self, channel: Channel) -> set[int]:
        """The ids of those who are seen to type now."""
        now = self.clock.monotonic()
        return {user for (place, user), until in self._typing.items() if place == channel.id and until > now}

    # --- files ---

    def store(
        self, channel: Channel, upload: Upload, *, description: str | None = None, claimed_bytes: int | None = None
    ) -> Attachment:
        """Keep a file. Its link is signed and dies after a day."""
        number = self.ids.next()
        name = re.sub(r"[^A-Za-z0-9._-]", "", upload.name.replace(" ", "_")) or "unknown"
        expires = self.clock.unix() + LINK_SECONDS
        path = f"/attachments/{channel.id}/{number}/{name}"
        signed = f"{path}?ex={int(expires):x}&is={int(self.clock.unix()):x}&hm={number:x}"
        attachment = Attachment(
            number, name, _mime_type(upload), upload.data, signed, expires, description, claimed_bytes
        )
        self.attachments[path] = attachment
        return attachment


def _mime_type(upload: Upload) -> str | None:
    """What the server takes a file for. Clients such as discord.py never say it."""
    if upload.mime_type != OCTETS:
        return upload.mime_type
    guessed, _ = mimetypes.guess_type(upload.name, strict=True)
    return f"{guessed}; charset=utf-8" if guessed is not None and guessed.startswith("text/") else guessed


def _without_content(body: JsonObject) -> JsonObject:
    return {**body, "content": "", "embeds": [], "attachments": [], "components": []}
