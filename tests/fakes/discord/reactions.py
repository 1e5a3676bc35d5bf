"""What the bot may ask for about reactions. No I/O."""

from __future__ import annotations

import re

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.checks import message_of, need, need_open
from tests.fakes.discord.errors import Code, refused
from tests.fakes.discord.forms import Asked
from tests.fakes.discord.objects import Message, Permission
from tests.fakes.discord.replies import Reply, done, nothing
from tests.fakes.discord.wire import emoji_json, user_json
from tests.fakes.discord.world import World

MAX_KINDS = 20
_OWN = re.compile(r"\w{2,32}:(\d{1,20})")
_KEYCAP = re.compile("[0-9#*]\ufe0f?\u20e3")


def _emoji_of(message: Message, asked: Asked) -> str:
    """The emoji in the address: a real one, or one of the guild's own as `name:id`."""
    emoji = asked.path["emoji"]
    own = _OWN.fullmatch(emoji)
    if own is not None:
        guild = message.channel.guild
        if guild is None or int(own[1]) not in guild.emojis:
            raise refused(Code.UNKNOWN_EMOJI)
        return f"{guild.emojis[int(own[1])]}:{own[1]}"
    is_picture = bool(emoji) and all(ord(letter) > 0x2000 or letter in "\xa9\xae" for letter in emoji)
    if not is_picture and not _KEYCAP.fullmatch(emoji):
        raise refused(Code.UNKNOWN_EMOJI)
    return emoji


def add_reaction(world: World, asked: Asked) -> Reply:
    """React as the bot."""
    message = message_of(world, asked)
    need_open(message.channel)
    emoji = _emoji_of(message, asked)
    need(world, message.channel, Permission.READ_MESSAGE_HISTORY)
    if emoji not in message.reactions:
        need(world, message.channel, Permission.ADD_REACTIONS)
        if len(message.reactions) >= MAX_KINDS:
            raise refused(Code.TOO_MANY_REACTIONS)
    world.react(message, world.bot, emoji)
    return nothing()


def delete_own_reaction(world: World, asked: Asked) -> Reply:
    """Take the bot's reaction back."""
    message = message_of(world, asked)
    need_open(message.channel)
    world.unreact(message, world.bot, _emoji_of(message, asked))
    return nothing()


def delete_reaction(world: World, asked: Asked) -> Reply:
    """Take somebody's reaction away."""
    message = message_of(world, asked)
    emoji, user = _emoji_of(message, asked), world.users.get(asked.id("user_id"))
    need(world, message.channel, Permission.MANAGE_MESSAGES)
    if user is None:
        raise refused(Code.UNKNOWN_USER)
    world.unreact(message, user, emoji)
    return nothing()


def clear_reactions(world: World, asked: Asked) -> Reply:
    """Take all reactions away, or those with one emoji."""
    message = message_of(world, asked)
    if message.channel.guild is None:
        raise refused(Code.NOT_IN_A_DM)
    need(world, message.channel, Permission.MANAGE_MESSAGES)
    body: JsonObject = {"message_id": str(message.id), **world.channel_fields(message.channel)}
    if "emoji" in asked.path:
        emoji = _emoji_of(message, asked)
        message.reactions.pop(emoji, None)
        world.tell("MESSAGE_REACTION_REMOVE_EMOJI", {**body, "emoji": emoji_json(emoji)}, message.channel.guild)
    else:
        message.reactions.clear()
        world.tell("MESSAGE_REACTION_REMOVE_ALL", body, message.channel.guild)
    return nothing()


def list_reactions(world: World, asked: Asked) -> Reply:
    """Who reacted with an emoji."""
    message = message_of(world, asked)
    limit = asked.query.integer("limit", least=1, most=100) or 25
    after, _ = asked.query.snowflake("after") or 0, asked.query.integer("type", least=0, most=1)
    asked.query.check()
    users = sorted(number for number in message.reactions.get(_emoji_of(message, asked), []) if number > after)
    told: list[Json] = [user_json(world.users[number]) for number in users[:limit]]
    return done(told)
