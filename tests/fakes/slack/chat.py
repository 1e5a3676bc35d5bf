"""Methods that write: new messages, edits, deletions, ephemeral messages, reactions. No I/O.

Each takes the world and the arguments of a request and gives what stands beside `"ok": true`, or raises what the server says.
"""

from __future__ import annotations

import re

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack import checks
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.objects import Message
from tests.fakes.slack.params import Params
from tests.fakes.slack.world import World

_LOOKS = (
    "icon_emoji",
    "icon_url",
    "username",
    "as_user",
    "link_names",
    "parse",
    "mrkdwn",
    "unfurl_links",
    "unfurl_media",
)
_EMOJI = re.compile(r"[a-z0-9_+'-]+(?:::skin-tone-[2-6])?")
MAX_REACTIONS = 23
"""Different emojis on one message."""


def post_message(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/chat.postMessage

    The same `client_msg_id` a second time writes nothing, and gives the message that the first time wrote.
    """
    (name,) = params.required("channel")
    params.passed(*_LOOKS, "container_id")
    said = checks.content(params)
    channel = checks.writable_channel(world, name)
    root = checks.thread(world, channel, params.text("thread_ts"))
    client_id = params.text("client_msg_id")
    if client_id and world.settings.client_msg_ids and client_id in world.by_client_id:
        earlier = world.by_client_id[client_id]
        if earlier.channel is not channel:
            raise ApiError("duplicate_channel_not_found")
        if earlier.deleted:
            raise ApiError("duplicate_message_not_found")
        return _posted(world, earlier)
    message = Message(
        channel,
        world.new_ts(),
        world.bot,
        said.text,
        said.blocks or [],
        said.attachments,
        thread_ts=root.ts if root else None,
        broadcast=params.flag("reply_broadcast") and root is not None,
        metadata=said.metadata,
        client_msg_id=client_id or None,
    )
    if client_id:
        world.by_client_id[client_id] = message
    return _posted(world, world.add(message))


def _posted(world: World, message: Message) -> JsonObject:
    return {"channel": message.channel.id, "ts": message.ts, "message": world.message_json(message)}


def update(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/chat.update

    Blocks stay as they are unless the request has some; `[]` takes them away.
    """
    params.passed(*_LOOKS, "file_ids")
    said = checks.content(params, longest=checks.MAX_UPDATE_TEXT, files=params.has("file_ids"))
    message = checks.message_of_app(world, params, "cant_update_message")
    if message.channel.archived:
        raise ApiError("is_inactive")
    if world.streaming(message):
        raise ApiError("streaming_state_conflict")

    def change() -> None:
        message.text = said.text or message.text
        if message.stream is not None:
            # What was streamed are no blocks of the app's own: the edit takes its place.
            message.stream = None
        if said.blocks is not None:
            message.blocks = said.blocks
        if params.has("attachments"):
            message.attachments = said.attachments
        if said.metadata is not None:
            message.metadata = said.metadata
        message.broadcast = message.broadcast or params.flag("reply_broadcast")

    world.edit(message, change, world.bot)
    return {
        "channel": message.channel.id,
        "ts": message.ts,
        "text": message.text,
        "message": world.message_json(message),
    }


def delete(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/chat.delete"""
    params.passed("as_user")
    message = checks.message_of_app(world, params, "cant_delete_message")
    if world.streaming(message):
        raise ApiError("cant_delete_message")
    world.delete(message, world.bot)
    return {"channel": message.channel.id, "ts": message.ts}


def post_ephemeral(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/chat.postEphemeral"""
    name, user_id = params.required("channel", "user")
    params.passed(*_LOOKS)
    said = checks.content(params)
    channel = checks.writable_channel(world, name)
    if user_id not in channel.members:
        raise ApiError("user_not_in_channel")
    root = checks.thread(world, channel, params.text("thread_ts"))
    message = Message(
        channel,
        world.new_ts(),
        world.bot,
        said.text,
        said.blocks or [],
        said.attachments,
        thread_ts=root.ts if root else None,
        visible_to=user_id,
    )
    world.add(message)
    return {"message_ts": message.ts}


# --- reactions ---


def _reacted(world: World, params: Params) -> tuple[Message, str]:
    name, emoji, ts = params.required("channel", "name", "timestamp")
    channel = checks.readable_channel(world, name)
    message = world.find(channel, ts)
    if not _EMOJI.fullmatch(emoji):
        raise ApiError("invalid_name")
    if message is None:
        raise ApiError("message_not_found")
    if channel.archived:
        raise ApiError("is_archived")
    return message, emoji


def add_reaction(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/reactions.add"""
    message, emoji = _reacted(world, params)
    if world.bot.id in message.reactions.get(emoji, []):
        raise ApiError("already_reacted")
    if emoji not in message.reactions and len(message.reactions) >= MAX_REACTIONS:
        raise ApiError("too_many_emoji")
    message.reactions.setdefault(emoji, []).append(world.bot.id)
    world.changed()
    return {}


def remove_reaction(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/reactions.remove"""
    message, emoji = _reacted(world, params)
    users = message.reactions.get(emoji, [])
    if world.bot.id not in users:
        raise ApiError("no_reaction")
    users.remove(world.bot.id)
    if not users:
        del message.reactions[emoji]
    world.changed()
    return {}


def permalink(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/chat.getPermalink"""
    name, ts = params.required("channel", "message_ts")
    channel = checks.known_channel(world, name)
    if world.find(channel, ts) is None:
        raise ApiError("message_not_found")
    link: Json = f"{world.origin()}/archives/{channel.id}/p{ts.replace('.', '')}"
    return {"channel": channel.id, "permalink": link}
