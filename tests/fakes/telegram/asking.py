"""Methods that ask, and those that keep house: the bot itself, chats, members, topics, files, commands. No I/O."""

from __future__ import annotations

import re

import orjson

from tests.fakes.common import Json, JsonObject
from tests.fakes.telegram import checks
from tests.fakes.telegram.errors import bad
from tests.fakes.telegram.objects import IN_CHARGE, INSIDE, Chat, ChatKind, Role, Topic
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.world import World, standing_json

MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024
MAX_COMMANDS = 100
SCOPES = frozenset(
    {
        "default",
        "all_private_chats",
        "all_group_chats",
        "all_chat_administrators",
        "chat",
        "chat_administrators",
        "chat_member",
    }
)
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_ICON_COLORS = frozenset({0x6FB9F0, 0xFFD67E, 0xCB86DB, 0x8EEE98, 0xFF93B2, 0xFB6F5F})


def get_me(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#getme"""
    del params
    return {
        **world.bot.to_json(),
        "can_join_groups": True,
        "can_read_all_group_messages": not world.privacy,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": any(chat.has_topics for chat in world.chats.values()),
    }


def get_file(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#getfile: up to 20 MB."""
    file = world.files.get(params.text("file_id"))
    if file is None:
        raise bad("invalid file_id")
    if file.size_bytes > MAX_DOWNLOAD_BYTES:
        raise bad("file is too big")
    return {
        "file_id": file.id,
        "file_unique_id": file.unique_id,
        "file_size": file.size_bytes,
        "file_path": file.path,
    }


# --- chats and members ---


def get_chat(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#getchat"""
    chat = checks.open_chat(world, params)
    gifts: JsonObject = {
        "unlimited_gifts": False,
        "limited_gifts": False,
        "unique_gifts": False,
        "premium_subscription": False,
        "gifts_from_channels": False,
    }
    return {**chat.to_json(), "accent_color_id": 1, "max_reaction_count": 11, "accepted_gift_types": gifts}


def _member_json(world: World, chat: Chat, user_id: int) -> JsonObject:
    return {"user": world.user_json(user_id), **standing_json(chat.members.get(user_id, Role.LEFT))}


def get_chat_member(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#getchatmember"""
    chat = checks.open_chat(world, params)
    number = params.integer("user_id")
    if number <= 0:
        raise bad("invalid user_id specified")
    if number not in world.users:
        raise bad("user not found")
    return _member_json(world, chat, number)


def get_chat_administrators(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#getchatadministrators"""
    chat = checks.open_chat(world, params)
    if chat.kind is ChatKind.PRIVATE:
        raise bad("there are no administrators in the private chat")
    return [_member_json(world, chat, number) for number, role in chat.members.items() if role in IN_CHARGE]


def get_chat_member_count(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#getchatmembercount"""
    chat = checks.open_chat(world, params)
    return sum(1 for role in chat.members.values() if role in INSIDE)


def leave_chat(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#leavechat"""
    chat = checks.open_chat(world, params)
    if chat.kind is ChatKind.PRIVATE:
        raise bad("chat member status can't be changed in private chats")
    old = chat.members[world.bot.id]
    chat.members[world.bot.id] = Role.LEFT
    world.tell_standing(chat, world.bot, old, Role.LEFT)
    return True


# --- topics ---


def _forum(world: World, params: Params) -> Chat:
    chat = checks.open_chat(world, params)
    if chat.has_topics:
        return chat
    if not chat.is_forum:
        raise bad("the chat is not a forum")
    if chat.members.get(world.bot.id, Role.LEFT) not in IN_CHARGE:
        raise bad("not enough rights to create a topic")
    return chat


def _topic(world: World, params: Params) -> tuple[Chat, Topic]:
    chat = _forum(world, params)
    topic = chat.topics.get(params.integer("message_thread_id"))
    if topic is None:
        raise bad("message thread not found")
    return chat, topic


def create_forum_topic(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#createforumtopic"""
    chat = _forum(world, params)
    name = params.text("name").strip()
    color = params.integer("icon_color", 0x6FB9F0)
    params.text("icon_custom_emoji_id")
    if not 1 <= len(name) <= 128:
        raise bad("TOPIC_TITLE_EMPTY" if not name else "TOPIC_TITLE_INVALID")
    if color not in _ICON_COLORS:
        raise bad("wrong topic icon color specified")
    service: JsonObject = {"forum_topic_created": {"name": name, "icon_color": color}}
    message = world.add_message(chat, world.bot, service=service, opens_topic=True)
    chat.topics[message.id] = Topic(message.id, name, color)
    return {"message_thread_id": message.id, "name": name, "icon_color": color}


def edit_forum_topic(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#editforumtopic"""
    chat, topic = _topic(world, params)
    name = params.text("name").strip()
    params.text("icon_custom_emoji_id")
    if name == topic.name:
        raise bad("TOPIC_NOT_MODIFIED")
    if name:
        topic.name = name
        world.add_message(chat, world.bot, thread=topic.id, service={"forum_topic_edited": {"name": name}})
    return True


def _set_closed(world: World, params: Params, *, closed: bool) -> Json:
    chat, topic = _topic(world, params)
    if topic.closed == closed:
        raise bad("TOPIC_NOT_MODIFIED")
    topic.closed = closed
    empty: JsonObject = {}
    service: JsonObject = {"forum_topic_closed" if closed else "forum_topic_reopened": empty}
    world.add_message(chat, world.bot, thread=topic.id, service=service)
    return True


def close_forum_topic(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#closeforumtopic"""
    return _set_closed(world, params, closed=True)


def reopen_forum_topic(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#reopenforumtopic"""
    return _set_closed(world, params, closed=False)


def delete_forum_topic(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#deleteforumtopic: with all its messages."""
    chat, topic = _topic(world, params)
    del chat.topics[topic.id]
    for message in chat.messages.values():
        if message.thread == topic.id:
            message.deleted = True
    world.changed()
    return True


# --- commands ---


def _scope(params: Params) -> tuple[str, str]:
    """The key of a list of commands."""
    scope = params.structure("scope")
    if scope is None:
        scope = {"type": "default"}
    if not isinstance(scope, dict) or scope.get("type") not in SCOPES:
        raise bad("can't parse BotCommandScope: unsupported type specified")
    language = params.text("language_code")
    if language and not re.fullmatch(r"[a-z]{2}", language):
        raise bad("invalid language code specified")
    return orjson.dumps(scope, option=orjson.OPT_SORT_KEYS).decode(), language


def set_my_commands(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#setmycommands"""
    commands = params.structure("commands")
    key = _scope(params)
    if not isinstance(commands, list):
        raise bad("can't parse commands JSON object: Expected an Array")
    if len(commands) > MAX_COMMANDS:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    for item in commands:
        if not isinstance(item, dict):
            raise bad("can't parse BotCommand: expected an Object")
        name, description = item.get("command"), item.get("description")
        if not isinstance(name, str) or not _COMMAND.fullmatch(name.removeprefix("/")):
            raise bad("BOT_COMMAND_INVALID")
        if not isinstance(description, str) or not 1 <= len(description.strip()) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    world.commands[key] = commands
    return True


def get_my_commands(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#getmycommands"""
    return world.commands.get(_scope(params), [])


def delete_my_commands(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#deletemycommands"""
    world.commands.pop(_scope(params), None)
    return True


# --- pins ---


def pin_chat_message(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#pinchatmessage"""
    chat = checks.open_chat(world, params)
    params.flag("disable_notification")
    if chat.kind is not ChatKind.PRIVATE and chat.members[world.bot.id] not in IN_CHARGE:
        raise bad("not enough rights to manage pinned messages in the chat")
    message = chat.messages.get(params.integer("message_id"))
    if message is None or message.deleted:
        raise bad("message to pin not found")
    message.pinned = True
    world.changed()
    return True
