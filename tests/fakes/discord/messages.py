"""What the bot may ask for about messages (https://docs.discord.com/developers/resources/message). No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.fakes.common import Json
from tests.fakes.discord.checks import channel_of, message_of, need, need_open, need_writing
from tests.fakes.discord.components import Row, read_rows
from tests.fakes.discord.embeds import read_embeds
from tests.fakes.discord.errors import Code, flaw, invalid, invalid_field, refused
from tests.fakes.discord.forms import Asked, Form, Upload
from tests.fakes.discord.mentions import Allowed, read_allowed
from tests.fakes.discord.objects import (
    WRITTEN,
    Attachment,
    Channel,
    ChannelKind,
    Flag,
    Message,
    MessageKind,
    Permission,
)
from tests.fakes.discord.replies import Reply, done, nothing
from tests.fakes.discord.wire import ATTACHMENT_LIMIT_BYTES, permissions_of
from tests.fakes.discord.world import Draft, World

MAX_CONTENT = 2000
MAX_NONCE = 25
MAX_FILES = 10
_PART = re.compile(r"files\[(\d+)\]")
_NOT_MADE = ("sticker_ids", "poll", "shared_client_theme")
"""Fields of messages that this fake does not make; nothing is made up for them."""


@dataclass(slots=True)
class Content:
    """What a message is to be made of; None: not said."""

    text: str | None
    embeds: list[Json] | None
    rows: list[Row] | None
    allowed: Allowed
    flags: Flag | None
    kept: list[Attachment] | None
    """Of the attachments that are there already, those that stay."""
    uploads: list[tuple[Upload, str | None]]
    """New files with their descriptions."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.text or self.embeds or self.rows or self.uploads or self.kept)


def read_content(form: Form, files: list[Upload], settable: Flag | None, before: Message | None = None) -> Content:
    """The fields that creating and editing share. `settable` None: flags that cannot be set are passed over.

    Raises:
        ApiError: 50035, or a file is too large.
    """
    text = form.text("content")
    if text is not None:
        # Blank space at both ends is not part of a message.
        text = text.strip()
        if len(text) > MAX_CONTENT:
            form.flaw("content", "BASE_TYPE_MAX_LENGTH", f"Must be {MAX_CONTENT} or fewer in length.")
    if text is None and form.given("content"):
        text = ""
    embeds = read_embeds(form)
    rows = read_rows(form) if form.given("components") else None
    allowed = read_allowed(form)
    flags = None
    if form.given("flags"):
        flags = Flag(form.integer("flags", least=0) or 0)
        if settable is not None and flags & ~settable:
            form.flaw("flags", "BASE_TYPE_CHOICES", f"Flags that cannot be set here: {int(flags & ~settable)}.")
    for name in _NOT_MADE:
        if form.raw(name):
            form.flaw(name, "FAKE_DOES_NOT_KNOW", "This stand-in for Discord does not make it.")
    kept, uploads = _read_attachments(form, files, before)
    form.check()
    return Content(text, embeds, rows, allowed, flags, kept, uploads)


def _read_attachments(
    form: Form, files: list[Upload], before: Message | None
) -> tuple[list[Attachment] | None, list[tuple[Upload, str | None]]]:
    by_number: dict[int, Upload] = {}
    for upload in files:
        part = _PART.fullmatch(upload.field)
        if part is None:
            raise invalid_field(upload.field, "FAKE_DOES_NOT_KNOW", "Files are named files[n].")
        by_number[int(part[1])] = upload
    if len(by_number) > MAX_FILES:
        form.flaw("files", "BASE_TYPE_MAX_LENGTH", f"Must be {MAX_FILES} or fewer in length.")
    if sum(len(upload.data) for upload in files) > ATTACHMENT_LIMIT_BYTES:
        raise refused(Code.TOO_LARGE)
    if not form.given("attachments"):
        return None, [(upload, None) for _, upload in sorted(by_number.items())]
    kept: list[Attachment] = []
    uploads: list[tuple[Upload, str | None]] = []
    there = {one.id: one for one in before.attachments} if before is not None else {}
    for item in form.items("attachments", most=MAX_FILES):
        number = item.snowflake("id", required=True)
        name, words = item.text("filename", most=260), item.text("description", most=1024)
        item.text("title", most=1024)
        item.flag("is_spoiler")
        for told in ("size", "url", "proxy_url", "content_type", "height", "width", "ephemeral", "flags", "spoiler"):
            item.raw(told)
        if number in there:
            kept.append(there[number])
        elif number in by_number:
            upload = by_number.pop(number)
            uploads.append((Upload(upload.field, name or upload.name, upload.mime_type, upload.data), words))
        else:
            item.flaw("id", "ATTACHMENT_NOT_FOUND", f"Attachment data for index {number} not found in form-data.")
    uploads.extend((upload, None) for _, upload in sorted(by_number.items()))
    return kept, uploads


def stored(world: World, channel: Channel, content: Content) -> list[Attachment]:
    """The new files, kept."""
    return [world.store(channel, upload, description=words) for upload, words in content.uploads]


# --- creating ---


def create_message(world: World, asked: Asked) -> Reply:
    """Create a message. The same nonce of the same author brings the earlier message back."""
    channel, form = channel_of(world, asked), asked.body
    content = read_content(form, asked.files, Flag.SUPPRESS_EMBEDS | Flag.SUPPRESS_NOTIFICATIONS)
    nonce, enforced = _read_nonce(form), form.flag("enforce_nonce")
    tts = form.flag("tts")
    reply_to = _read_reference(world, channel, form)
    form.check()
    need_writing(world, channel)
    if content.uploads:
        need(world, channel, Permission.ATTACH_FILES)
    if reply_to is not None and Permission.READ_MESSAGE_HISTORY not in permissions_of(channel, world.bot):
        raise refused(Code.REPLY_NEEDS_HISTORY)
    if content.is_empty:
        raise refused(Code.EMPTY_MESSAGE)
    if enforced and nonce is not None:
        before = world.with_nonce(world.bot, nonce)
        if before is not None and before.deleted:
            raise refused(Code.UNKNOWN_MESSAGE)
        if before is not None:
            return done(world.readable_json(before, with_nonce=True))
    draft = Draft(
        content.text or "",
        MessageKind.DEFAULT if reply_to is None else MessageKind.REPLY,
        reply_to,
        stored(world, channel, content),
        content.embeds or (),
        content.rows or (),
        content.flags or Flag(0),
        nonce,
        tts,
        content.allowed,
    )
    message = world.post(channel, world.bot, draft)
    world.remember_nonce(message)
    return done(world.readable_json(message, with_nonce=True))


def _read_nonce(form: Form) -> str | int | None:
    value = form.raw("nonce")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        form.flaw("nonce", "NONCE_TYPE_INVALID", "Nonce must be a string or an integer.")
        return None
    if isinstance(value, str) and len(value) > MAX_NONCE:
        form.flaw("nonce", "NONCE_TYPE_TOO_LONG", f"Nonce must be {MAX_NONCE} or fewer in length.")
    return value


def _read_reference(world: World, channel: Channel, form: Form) -> Message | None:
    inner = form.object("message_reference")
    if inner is None:
        return None
    if inner.integer("type"):
        inner.flaw("type", "FAKE_DOES_NOT_KNOW", "This stand-in for Discord does not forward.")
    number = inner.snowflake("message_id", required=True)
    place, guild = inner.snowflake("channel_id"), inner.snowflake("guild_id")
    strict = inner.flag("fail_if_not_exists", default=True)
    if place is not None and place != channel.id:
        inner.flaw(
            "channel_id", "REPLIES_CANNOT_REFERENCE_OTHER_CHANNEL", "Cannot reply to a message in another channel"
        )
    if guild is not None and (channel.guild is None or guild != channel.guild.id):
        inner.flaw("guild_id", "REPLIES_GUILD_ID_MISMATCH", "The guild does not match")
    target = channel.messages.get(number) if number is not None else None
    if target is None or target.deleted or target.ephemeral:
        if strict and not inner.flawed:
            form.flaw("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return None
    if target.kind not in WRITTEN:
        form.flaw("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message")
    return target


# --- changing ---


def edit_message(world: World, asked: Asked) -> Reply:
    """Edit a message of the bot."""
    message = message_of(world, asked)
    if message.author.id != world.bot.id:
        return _edit_another(world, asked, message)
    need_open(message.channel)
    if message.kind not in WRITTEN:
        raise refused(Code.SYSTEM_MESSAGE)
    apply_edit(world, message, asked)
    return done(world.readable_json(message))


def apply_edit(world: World, message: Message, asked: Asked, form: Form | None = None) -> None:
    """Change what was said to be changed; the rest stays."""
    form = asked.body if form is None else form
    content = read_content(form, asked.files, None, message)
    form.flag("tts")
    form.check()
    attachments = message.attachments if content.kept is None else content.kept
    text = message.content if content.text is None else content.text
    embeds = message.embeds if content.embeds is None else content.embeds
    rows = message.rows if content.rows is None else content.rows
    if not (text or embeds or rows or attachments or content.uploads):
        raise refused(Code.EMPTY_MESSAGE)
    message.attachments = [*attachments, *stored(world, message.channel, content)]
    message.embeds, message.rows = embeds, rows
    if content.flags is not None:
        message.flags = (message.flags & ~Flag.SUPPRESS_EMBEDS) | (content.flags & Flag.SUPPRESS_EMBEDS)
    world.change(message, content.text, content.allowed)


def _edit_another(world: World, asked: Asked, message: Message) -> Reply:
    """Of somebody else's message only the embeds may be hidden."""
    if set(asked.body.values) - {"tts"} != {"flags"}:
        raise refused(Code.NOT_THE_AUTHOR)
    need(world, message.channel, Permission.MANAGE_MESSAGES)
    asked.body.flag("tts")
    flags = Flag(asked.body.integer("flags", least=0) or 0)
    message.flags = (message.flags & ~Flag.SUPPRESS_EMBEDS) | (flags & Flag.SUPPRESS_EMBEDS)
    world.tell_message("MESSAGE_UPDATE", message)
    return done(world.readable_json(message))


def delete_message(world: World, asked: Asked) -> Reply:
    """Delete a message: an own one, or with the permission anybody's."""
    message = message_of(world, asked)
    _need_deletable(world, message)
    world.remove(message)
    return nothing()


def _need_deletable(world: World, message: Message) -> None:
    need_open(message.channel)
    if message.author.id == world.bot.id:
        return
    if message.channel.kind is ChannelKind.DM:
        raise refused(Code.NOT_IN_A_DM)
    need(world, message.channel, Permission.MANAGE_MESSAGES)
    if message.kind is MessageKind.THREAD_STARTER:
        raise refused(Code.SYSTEM_MESSAGE)


def bulk_delete(world: World, asked: Asked) -> Reply:
    """Delete many messages at once, by the permission to manage messages only. Those that are not there are passed over."""
    channel = channel_of(world, asked)
    if channel.guild is None:
        raise refused(Code.NOT_IN_A_DM)
    numbers = asked.body.snowflakes("messages", most=1000) or []
    asked.body.check()
    need(world, channel, Permission.MANAGE_MESSAGES)
    if not 2 <= len(numbers) <= 100:
        raise refused(Code.BULK_DELETE_COUNT)
    found = [channel.messages[number] for number in numbers if number in channel.messages]
    found = [message for message in found if not message.deleted and not message.ephemeral]
    world.purge(channel, found)
    return nothing()


# --- asking ---


def get_message(world: World, asked: Asked) -> Reply:
    """One message."""
    message = message_of(world, asked)
    if Permission.READ_MESSAGE_HISTORY not in permissions_of(message.channel, world.bot):
        raise refused(Code.MISSING_ACCESS)
    return done(world.readable_json(message))


def list_messages(world: World, asked: Asked) -> Reply:
    """The history of a channel, newest first."""
    channel, query = channel_of(world, asked), asked.query
    limit = query.integer("limit", least=1, most=100) or 50
    bounds = {name: query.snowflake(name) for name in ("around", "before", "after")}
    query.check()
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    if len(given) > 1:
        raise invalid(flaw("FAKE_DOES_NOT_KNOW", "around, before and after are mutually exclusive"))
    if Permission.READ_MESSAGE_HISTORY not in permissions_of(channel, world.bot):
        return done([])
    there = [one for one in channel.messages.values() if not one.deleted and not one.ephemeral]
    match given:
        case {"after": after}:
            chosen = [one for one in there if one.id > after][:limit]
        case {"before": before}:
            chosen = [one for one in there if one.id < before][-limit:]
        case {"around": around}:
            earlier = [one for one in there if one.id < around][-(limit // 2) :]
            chosen = [*earlier, *[one for one in there if one.id >= around][: limit - len(earlier)]]
        case _:
            chosen = there[-limit:]
    return done([world.readable_json(one) for one in reversed(chosen)])


def type_in(world: World, asked: Asked) -> Reply:
    """Show "typing"."""
    channel = channel_of(world, asked)
    need_writing(world, channel)
    world.type_in(channel, world.bot)
    return nothing()
