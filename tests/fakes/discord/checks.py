"""What the API checks before it does something. No I/O."""

from __future__ import annotations

from tests.fakes.discord.errors import Code, refused
from tests.fakes.discord.forms import Asked
from tests.fakes.discord.objects import Channel, ChannelKind, Guild, Message, Permission
from tests.fakes.discord.wire import permissions_of
from tests.fakes.discord.world import World


def guild_of(world: World, asked: Asked) -> Guild:
    """The guild that the address names, if the bot is in it."""
    guild = world.guilds.get(asked.id("guild_id"))
    if guild is None:
        raise refused(Code.UNKNOWN_GUILD)
    if not guild.has_bot:
        raise refused(Code.MISSING_ACCESS)
    return guild


def channel_of(world: World, asked: Asked) -> Channel:
    """The channel that the address names, if the bot can see it."""
    channel = world.channels.get(asked.id("channel_id"))
    if channel is None:
        raise refused(Code.UNKNOWN_CHANNEL)
    if not world.sees(channel):
        raise refused(Code.MISSING_ACCESS)
    return channel


def need(world: World, channel: Channel, permission: Permission) -> None:
    """Raise if the bot may not do this there.

    Raises:
        ApiError: 50013, or 50001 for what cannot be seen.
    """
    if permission not in permissions_of(channel, world.bot):
        raise refused(Code.MISSING_PERMISSIONS)


def need_writing(world: World, channel: Channel) -> None:
    """Raise if the bot may not write there."""
    if channel.kind is ChannelKind.DM:
        if channel.refuses:
            raise refused(Code.CANNOT_DM)
        return
    need(world, channel, Permission.SEND_MESSAGES_IN_THREADS if channel.is_thread else Permission.SEND_MESSAGES)
    if channel.locked and Permission.MANAGE_THREADS not in permissions_of(channel, world.bot):
        raise refused(Code.THREAD_ARCHIVED)


def need_open(channel: Channel) -> None:
    """Raise if a thread is archived, so that nothing in it can be changed."""
    if channel.archived:
        raise refused(Code.THREAD_ARCHIVED)


def message_of(world: World, asked: Asked) -> Message:
    """The message that the address names, if it is there for everybody."""
    channel = channel_of(world, asked)
    message = channel.messages.get(asked.id("message_id"))
    if message is None or message.deleted or message.ephemeral:
        raise refused(Code.UNKNOWN_MESSAGE)
    return message
