"""What persons do: they write, edit, answer, react, open threads, and let the bot in. No I/O.

The bot hears of it by events of the gateway. All these return at once; nothing here waits for the bot. Commands, buttons and forms are in
`using.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes.common import JsonObject
from tests.fakes.discord import wire
from tests.fakes.discord.forms import OCTETS, Upload
from tests.fakes.discord.mentions import ALL, Allowed
from tests.fakes.discord.objects import (
    NO_FLAGS,
    NO_PERMISSION,
    USUAL,
    Attachment,
    Channel,
    ChannelKind,
    Flag,
    Guild,
    Member,
    Message,
    MessageKind,
    Permission,
    Role,
    User,
)
from tests.fakes.discord.using import Using
from tests.fakes.discord.world import Draft, World


class People(Using):
    """The persons of a world, acting."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._world = world

    # --- making them ---

    def user(self, name: str, *, display_name: str = "") -> User:
        """A new person; the name is written small on the server."""
        user = User(self._world.ids.next(), name.lower(), display_name or name)
        self._world.users[user.id] = user
        return user

    def other_bot(self, name: str) -> User:
        """Another bot."""
        bot = User(self._world.ids.next(), name, is_bot=True)
        self._world.users[bot.id] = bot
        return bot

    def guild(self, name: str, owner: User, *members: User, permissions: Permission = USUAL) -> Guild:
        """A guild that the bot is in already; if it is connected, it is told as if it came in now."""
        guild = self._world.add_guild(name, owner, permissions)
        for member in members:
            guild.members[member.id] = Member(member, self._world.now())
        self._tell_whole(guild)
        return guild

    def channel(
        self, guild: Guild, name: str, *, denied: Permission = NO_PERMISSION, kind: ChannelKind = ChannelKind.TEXT
    ) -> Channel:
        """A new channel, in which people write; `denied` is what the bot may not do there."""
        made = Channel(self._world.ids.next(), kind, name, guild, denied=denied)
        channel = self._world.add_channel(made)
        self._world.tell("CHANNEL_CREATE", wire.channel_json(channel, self._world.bot), guild)
        return channel

    def role(self, guild: Guild, name: str, *members: User, mentionable: bool = True) -> Role:
        """A new role with its members."""
        role = Role(self._world.ids.next(), name, mentionable=mentionable)
        guild.roles[role.id] = role
        body: JsonObject = {"guild_id": str(guild.id), "role": wire.role_json(role)}
        self._world.tell("GUILD_ROLE_CREATE", body, guild)
        for member in members:
            guild.members[member.id].roles.append(role)
        return role

    def dm(self, user: User) -> Channel:
        """The DM between a person and the bot."""
        return self._world.dm(user)

    def thread(
        self, channel: Channel, user: User, name: str, *, message: Message | None = None, private: bool = False
    ) -> Channel:
        """Somebody opens a thread, from a message or without one."""
        self._may_act(channel, user)
        assert channel.kind is ChannelKind.TEXT, channel.kind
        assert message is None or (message.channel is channel and message.thread is None), message
        return self._world.add_thread(channel, name, user, message=message, private=private)

    def emoji(self, guild: Guild, name: str) -> str:
        """A new emoji of a guild; what is returned is its key in reactions."""
        number = self._world.ids.next()
        guild.emojis[number] = name
        return f"{name}:{number}"

    # --- talking ---

    def say(
        self,
        channel: Channel,
        user: User,
        text: str = "",
        *,
        reply_to: Message | None = None,
        ping: bool = True,
        files: Sequence[Upload | tuple[str, bytes]] = (),
        claimed_bytes: int | None = None,
        voice: bool = False,
        more: JsonObject | None = None,
    ) -> Message:
        """A person writes, maybe with files (name and bytes). `ping` is the switch beside an answer; `claimed_bytes` makes the server
        say another size of the files than they have. `voice`: it was recorded here; `more` are further fields of the message."""
        self._may_act(channel, user)
        assert not channel.locked, "the thread is locked"
        assert text.strip() or files or more, "nothing to send"
        assert reply_to is None or reply_to.channel is channel, "an answer is in the same channel"
        uploads: list[Attachment] = []
        for file in files:
            upload = file if isinstance(file, Upload) else Upload("", file[0], OCTETS, file[1])
            uploads.append(self._world.store(channel, upload, claimed_bytes=claimed_bytes))
        draft = Draft(
            text.strip(),
            MessageKind.DEFAULT if reply_to is None else MessageKind.REPLY,
            reply_to,
            uploads,
            allowed=ALL if ping else Allowed(replied_user=False),
            flags=Flag.VOICE if voice else NO_FLAGS,
            more=more or {},
        )
        return self._world.post(channel, user, draft)

    def edit(self, message: Message, text: str) -> Message:
        """The writer of a message changes it."""
        assert message.author.id != self._world.bot.id, "the bot edits its own messages"
        assert not message.deleted, "it is not there any more"
        self._world.change(message, text.strip())
        return message

    def remove(self, message: Message) -> None:
        """Somebody deletes a message: its writer, or who manages messages."""
        assert not message.deleted, "it is not there any more"
        self._world.remove(message)

    def unfurl(self, message: Message, title: str, url: str) -> None:
        """The server adds the preview of a link: an update that no person made. The text and its time of editing stay."""
        message.embeds.append({"type": "link", "title": title, "url": url})
        self._world.tell_message("MESSAGE_UPDATE", message)

    def types(self, channel: Channel, user: User) -> None:
        """Somebody is seen to type."""
        self._may_act(channel, user)
        self._world.type_in(channel, user)

    def react(self, message: Message, user: User, emoji: str) -> None:
        """A person adds a reaction."""
        self._may_act(message.channel, user)
        self._world.react(message, user, emoji)

    def unreact(self, message: Message, user: User, emoji: str) -> None:
        """A person takes a reaction back."""
        self._world.unreact(message, user, emoji)

    def dismiss(self, message: Message) -> None:
        """The one who sees an ephemeral message makes it go away; the bot hears nothing."""
        assert message.ephemeral, "everybody sees it"
        message.deleted = True
        self._world.changed()

    # --- threads ---

    def archive(self, thread: Channel, *, locked: bool | None = None) -> None:
        """Somebody, or time, archives a thread."""
        assert thread.is_thread, thread.kind
        self._world.update_thread(thread, archived=True, locked=locked)

    def unarchive(self, thread: Channel) -> None:
        """Somebody opens a thread again."""
        self._world.update_thread(thread, archived=False, locked=False)

    def remove_thread(self, thread: Channel) -> None:
        """Somebody deletes a thread with all that is in it."""
        guild, parent = thread.guild, thread.parent
        assert guild is not None
        assert parent is not None
        body: JsonObject = {"id": str(thread.id), "type": thread.kind.value, "parent_id": str(parent.id)}
        self._gone(thread, guild)
        self._world.tell("THREAD_DELETE", {**body, "guild_id": str(guild.id)}, guild)

    def remove_channel(self, channel: Channel) -> None:
        """Somebody deletes a channel with its threads."""
        guild = channel.guild
        assert guild is not None
        body = wire.channel_json(channel, self._world.bot)
        for thread in [one for one in guild.channels.values() if one.parent is channel]:
            self._gone(thread, guild)
        self._gone(channel, guild)
        self._world.tell("CHANNEL_DELETE", body, guild)

    def _gone(self, channel: Channel, guild: Guild) -> None:
        del self._world.channels[channel.id]
        del guild.channels[channel.id]
        for message in channel.messages.values():
            message.deleted = True

    # --- coming and going ---

    def join(self, guild: Guild, user: User) -> None:
        """Somebody comes into a guild."""
        guild.members[user.id] = Member(user, self._world.now())
        body: JsonObject = {**wire.member_json(guild.members[user.id]), "guild_id": str(guild.id)}
        self._world.tell("GUILD_MEMBER_ADD", body, guild)

    def leave(self, guild: Guild, user: User) -> None:
        """Somebody leaves a guild."""
        del guild.members[user.id]
        body: JsonObject = {"guild_id": str(guild.id), "user": wire.user_json(user)}
        self._world.tell("GUILD_MEMBER_REMOVE", body, guild)

    def kick_bot(self, guild: Guild) -> None:
        """Somebody throws the bot out; from then on its requests there are refused."""
        self._world.tell("GUILD_DELETE", {"id": str(guild.id)}, guild)
        guild.has_bot = False

    def add_bot(self, guild: Guild) -> None:
        """Somebody lets the bot in again."""
        guild.has_bot, guild.joined_at = True, self._world.now()
        self._tell_whole(guild)

    def outage(self, guild: Guild) -> None:
        """The guild is not available for a while; nothing is told of it."""
        self._world.tell("GUILD_DELETE", {"id": str(guild.id), "unavailable": True}, guild)
        guild.available = False

    def recover(self, guild: Guild) -> None:
        """The guild is available again."""
        guild.available = True
        self._tell_whole(guild)

    def permit(self, channel: Channel, *, denied: Permission) -> None:
        """From now on the bot may not do this in a channel."""
        channel.denied = denied
        self._world.tell("CHANNEL_UPDATE", wire.channel_json(channel, self._world.bot), channel.guild)

    def refuse_dms(self, user: User, *, refuses: bool = True) -> None:
        """A person takes no messages from the bot any more."""
        self._world.dm(user).refuses = refuses

    # --- what the others share ---

    def _tell_whole(self, guild: Guild) -> None:
        self._world.tell("GUILD_CREATE", wire.guild_json(guild, self._world.bot, whole=True), guild)

    def _may_act(self, channel: Channel, user: User) -> None:
        if channel.guild is None:
            assert channel.recipient is user, f"{user.name} is not in the DM {channel.id}"
        else:
            assert user.id in channel.guild.members, f"{user.name} is not in the guild {channel.guild.name}"
