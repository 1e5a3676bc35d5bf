"""What the Web API checks before it does something, and what it says if it does not. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

import orjson

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack import blocks as kit
from tests.fakes.slack.errors import ApiError, bad
from tests.fakes.slack.objects import Channel, ChannelKind, Message, User
from tests.fakes.slack.params import Params
from tests.fakes.slack.shapes import as_list
from tests.fakes.slack.world import World

MAX_TEXT = 40_000
"""Of a new message. The real server cuts what is longer; a client that relies on that loses text, so the fake refuses."""
MAX_UPDATE_TEXT = 4_000
"""Of an edit (https://docs.slack.dev/reference/methods/chat.update)."""
MAX_MARKDOWN = 12_000
MAX_METADATA_BYTES = 8_000
MAX_ATTACHMENTS = 100
_TS = re.compile(r"\d{10}\.\d{6}")


@dataclass(frozen=True, slots=True)
class Content:
    """What a message is to say."""

    text: str
    blocks: list[JsonObject] | None
    """None if the request has none."""
    attachments: list[Json]
    metadata: JsonObject | None


def content(params: Params, *, longest: int = MAX_TEXT, files: bool = False) -> Content:
    """What a request wants a message to say; with `files` it may be nothing.

    Raises:
        ApiError: it is nothing, or too much, or of the wrong form.
    """
    text, markdown = params.text("text"), params.text("markdown_text")
    given = params.structure("blocks")
    attachments = as_list(params.structure("attachments"))
    if markdown and (text or given):
        raise ApiError("markdown_text_conflict")
    if not (text.strip() or markdown.strip() or given or attachments or files):
        raise ApiError("no_text")
    if len(text) > longest or len(markdown) > MAX_MARKDOWN:
        raise ApiError("msg_too_long")
    if len(attachments) > MAX_ATTACHMENTS:
        raise ApiError("too_many_attachments")
    blocks = None if given is None else kit.checked(given)
    if markdown:
        blocks = kit.checked([{"type": "markdown", "text": markdown}])
    return Content(text or markdown, blocks, attachments, metadata(params))


def metadata(params: Params) -> JsonObject | None:
    """What a request wants stored with a message; None if it says nothing of that."""
    given = params.structure("metadata")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ApiError("invalid_metadata_format")
    if not isinstance(given.get("event_type"), str) or not isinstance(given.get("event_payload"), dict):
        raise ApiError("invalid_metadata_schema")
    if len(orjson.dumps(given)) > MAX_METADATA_BYTES:
        raise ApiError("metadata_too_large")
    return given


def known_channel(world: World, name: str) -> Channel:
    """A channel that the app may know of: a public one, or one that it is in."""
    channel = world.find_channel(name)
    if channel is None or (channel.is_private and world.bot.id not in channel.members):
        raise ApiError("channel_not_found")
    return channel


def readable_channel(world: World, name: str) -> Channel:
    """A channel whose messages the app may see."""
    channel = known_channel(world, name)
    if world.bot.id not in channel.members:
        raise ApiError("not_in_channel")
    return channel


def writable_channel(world: World, name: str) -> Channel:
    """A channel in which the app may write; a person's id stands for the direct messages with that person."""
    if name in world.users:
        person = world.users[name]
        if person.is_bot:
            raise ApiError("cannot_dm_bot")
        return world.dm(person)
    channel = readable_channel(world, name)
    if channel.archived:
        raise ApiError("is_archived")
    return channel


def thread(world: World, channel: Channel, ts: str) -> Message | None:
    """The first message of the thread that a request names; None if it names none.

    Raises:
        ApiError: there is no such message, or it is an answer itself.
    """
    if not ts:
        return None
    if not _TS.fullmatch(ts):
        raise ApiError("invalid_thread_ts")
    root = channel.messages.get(ts)
    if root is None or (root.deleted and not channel.replies(ts)):
        raise ApiError("thread_not_found")
    if root.thread_ts is not None:
        raise ApiError("cannot_reply_to_message")
    return root


def required_thread(world: World, channel: Channel, params: Params, name: str = "thread_ts") -> Message:
    """The thread of a method that works in threads only."""
    root = thread(world, channel, params.required(name)[0])
    assert root is not None
    return root


def message_of_app(world: World, params: Params, refusal: str) -> Message:
    """The message that `channel` and `ts` name, if the app wrote it. Ephemeral ones cannot be found."""
    name, ts = params.required("channel", "ts")
    channel = readable_channel(world, name)
    message = world.find(channel, ts)
    if message is None:
        raise ApiError("message_not_found")
    if message.sender is not world.bot:
        raise ApiError(refusal)
    return message


def known_user(world: World, name: str) -> User:
    """Somebody by their id."""
    if name not in world.users:
        raise ApiError("user_not_found")
    return world.users[name]


def short(text: str, longest: int, name: str, *, least: int = 0) -> str:
    """A text of bounded length."""
    if not least <= len(text) <= longest:
        raise bad(f"must be {least} to {longest} characters", name)
    return text


def is_dm(channel: Channel) -> bool:
    """Whether only one person and the app are there."""
    return channel.kind is ChannelKind.IM
