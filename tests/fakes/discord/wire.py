"""Discord's JSON for the objects of the world. No I/O."""

from __future__ import annotations

import struct

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.components import rows_json
from tests.fakes.discord.ids import iso, made_at
from tests.fakes.discord.objects import (
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

ATTACHMENT_LIMIT_BYTES = 10 * 1024 * 1024


def user_json(user: User) -> JsonObject:
    """A User object."""
    return {
        "id": str(user.id),
        "username": user.name,
        "global_name": user.display_name or None,
        "discriminator": "0000" if user.is_bot else "0",
        "avatar": None,
        "bot": user.is_bot,
        "public_flags": 0,
    }


def member_json(member: Member, *, with_user: bool = True) -> JsonObject:
    """A Guild Member object."""
    roles: list[Json] = [str(role.id) for role in member.roles]
    body: JsonObject = {
        "nick": member.nick,
        "avatar": None,
        "roles": roles,
        "joined_at": iso(member.joined_at),
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "flags": 0,
        "pending": False,
        "communication_disabled_until": None,
    }
    if with_user:
        body["user"] = user_json(member.user)
    return body


def role_json(role: Role) -> JsonObject:
    """A Role object."""
    body: JsonObject = {
        "id": str(role.id),
        "name": role.name,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "icon": None,
        "unicode_emoji": None,
        "position": 0 if role.name == "@everyone" else 1,
        "permissions": str(int(role.permissions)),
        "managed": role.bot_id is not None,
        "mentionable": role.mentionable,
        "flags": 0,
    }
    if role.bot_id is not None:
        body["tags"] = {"bot_id": str(role.bot_id)}
    return body


def channel_json(channel: Channel, bot: User) -> JsonObject:
    """A Channel object: a text channel, a thread, or a DM."""
    last = max((number for number, one in channel.messages.items() if not one.ephemeral), default=None)
    body: JsonObject = {
        "id": str(channel.id),
        "type": channel.kind.value,
        "last_message_id": None if last is None else str(last),
        "flags": 0,
    }
    if channel.kind is ChannelKind.DM:
        assert channel.recipient is not None
        body["recipients"] = [user_json(channel.recipient)]
        return body
    guild = channel.guild
    assert guild is not None
    body.update(guild_id=str(guild.id), name=channel.name, rate_limit_per_user=channel.slowmode_seconds)
    if channel.is_thread:
        body.update(_thread_fields(channel, bot))
        return body
    overwrites: list[Json] = []
    if channel.denied:
        denied = str(int(channel.denied))
        overwrites.append({"id": str(guild.bot_role.id), "type": 0, "allow": "0", "deny": denied})
    body.update(
        position=list(guild.channels).index(channel.id),
        permission_overwrites=overwrites,
        nsfw=False,
        parent_id=None,
        topic=channel.topic,
        default_auto_archive_duration=1440,
    )
    if channel.kind is ChannelKind.VOICE:
        body.update(bitrate=64_000, user_limit=0, rtc_region=None)
    return body


def _thread_fields(thread: Channel, bot: User) -> JsonObject:
    assert thread.parent is not None
    written = [one for one in thread.messages.values() if one.kind is not MessageKind.THREAD_STARTER]
    body: JsonObject = {
        "parent_id": str(thread.parent.id),
        "owner_id": str(thread.owner_id),
        "member_count": len(thread.members),
        "message_count": len([one for one in written if not one.deleted]),
        "total_message_sent": len(written),
        "thread_metadata": {
            "archived": thread.archived,
            "auto_archive_duration": thread.archive_minutes,
            "archive_timestamp": iso(thread.changed_at or made_at(thread.id)),
            "locked": thread.locked,
            "invitable": True,
            "create_timestamp": iso(made_at(thread.id)),
        },
    }
    if bot.id in thread.members:
        body["member"] = thread_member_json(thread, bot.id)
    return body


def thread_member_json(thread: Channel, user_id: int) -> JsonObject:
    """A Thread Member object."""
    return {"id": str(thread.id), "user_id": str(user_id), "join_timestamp": iso(made_at(thread.id)), "flags": 0}


def guild_json(guild: Guild, bot: User, *, whole: bool = False) -> JsonObject:
    """A Guild object; `whole`: with what only the gateway tells (members, channels, threads)."""
    roles: list[Json] = [role_json(role) for role in guild.roles.values()]
    emojis: list[Json] = [_emoji_json(number, name) for number, name in guild.emojis.items()]
    body: JsonObject = {
        "id": str(guild.id),
        "name": guild.name,
        "icon": None,
        "splash": None,
        "discovery_splash": None,
        "owner_id": str(guild.owner.id),
        "region": "deprecated",
        "afk_channel_id": None,
        "afk_timeout": 300,
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "roles": roles,
        "emojis": emojis,
        "features": [],
        "mfa_level": 0,
        "application_id": None,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "rules_channel_id": None,
        "max_members": 500000,
        "vanity_url_code": None,
        "description": None,
        "banner": None,
        "premium_tier": 0,
        "premium_subscription_count": 0,
        "preferred_locale": "en-US",
        "public_updates_channel_id": None,
        "nsfw_level": 0,
        "stickers": [],
        "premium_progress_bar_enabled": False,
        "safety_alerts_channel_id": None,
    }
    if whole:
        plain = [channel for channel in guild.channels.values() if not channel.is_thread]
        threads = [one for one in guild.channels.values() if one.is_thread and not one.archived]
        channels: list[Json] = [channel_json(channel, bot) for channel in plain]
        told: list[Json] = [channel_json(thread, bot) for thread in threads]
        # Without the members intent the server tells of the bot itself only.
        members: list[Json] = [member_json(guild.members[bot.id])]
        body.update(
            joined_at=iso(guild.joined_at),
            large=False,
            unavailable=False,
            member_count=len(guild.members),
            voice_states=[],
            members=members,
            channels=channels,
            threads=told,
            presences=[],
            stage_instances=[],
            guild_scheduled_events=[],
            soundboard_sounds=[],
        )
    return body


def _emoji_json(number: int, name: str) -> JsonObject:
    return {
        "id": str(number),
        "name": name,
        "roles": [],
        "require_colons": True,
        "managed": False,
        "animated": False,
        "available": True,
    }


def emoji_json(emoji: str) -> JsonObject:
    """A partial Emoji object for a key such as "👍" or "name:id"."""
    name, colon, number = emoji.rpartition(":")
    return {"id": number, "name": name} if colon else {"id": None, "name": emoji}


def attachment_json(attachment: Attachment, origin: str, *, ephemeral: bool = False) -> JsonObject:
    """An Attachment object."""
    body: JsonObject = {
        "id": str(attachment.id),
        "filename": attachment.name,
        "size": attachment.size,
        "url": f"{origin}{attachment.path}",
        "proxy_url": f"{origin}{attachment.path}",
    }
    if attachment.mime_type is not None:
        body["content_type"] = attachment.mime_type
    if attachment.data.startswith(b"\x89PNG\r\n\x1a\n") and len(attachment.data) >= 24:
        width, height = struct.unpack(">II", attachment.data[16:24])
        body.update(width=int(width), height=int(height))
    if attachment.description is not None:
        body["description"] = attachment.description
    if ephemeral:
        body["ephemeral"] = True
    return body


def reference_json(message: Message) -> JsonObject | None:
    """The Message Reference object of a message that points at another one, or at a thread."""
    target = message.reply_to
    if target is None:
        return None
    body: JsonObject = {"type": 0, "channel_id": str(target.channel.id), "message_id": str(target.id)}
    if target.channel.guild is not None:
        body["guild_id"] = str(target.channel.guild.id)
    return body


def message_json(
    message: Message,
    users: dict[int, User],
    bot: User,
    origin: str,
    *,
    with_reference: bool = True,
    with_nonce: bool = False,
) -> JsonObject:
    """A Message object, as the API tells it; the gateway adds `guild_id` and `member`.

    The server does not keep nonces: they are told when a message comes to be (`with_nonce`), and never afterwards.
    """
    attachments: list[Json] = [attachment_json(one, origin, ephemeral=message.ephemeral) for one in message.attachments]
    mentioned: list[Json] = [user_json(users[number]) for number in message.mentions.users if number in users]
    roles: list[Json] = [str(number) for number in message.mentions.roles]
    body: JsonObject = {
        "id": str(message.id),
        "type": message.kind.value,
        "channel_id": str(message.channel.id),
        "author": user_json(message.author),
        "content": message.content,
        "timestamp": iso(made_at(message.id)),
        "edited_timestamp": None if message.edited_at is None else iso(message.edited_at),
        "tts": message.tts,
        "mention_everyone": message.mentions.everyone,
        "mentions": mentioned,
        "mention_roles": roles,
        "attachments": attachments,
        "embeds": list(message.embeds),
        "components": rows_json(message.rows),
        "pinned": False,
        "flags": int(message.flags),
    }
    if Flag.VOICE in message.flags:
        body["attachments"] = [
            {**attachment_json(one, origin), "duration_secs": 1.5, "waveform": "AAAA"} for one in message.attachments
        ]
    body.update(message.more)
    if with_nonce and message.nonce is not None:
        body["nonce"] = message.nonce
    if message.reactions:
        body["reactions"] = _reactions_json(message, bot)
    reference = reference_json(message)
    if reference is not None:
        body["message_reference"] = reference
        answered = message.reply_to
        if with_reference and answered is not None and message.kind is not MessageKind.THREAD_CREATED:
            body["referenced_message"] = (
                None if answered.deleted else message_json(answered, users, bot, origin, with_reference=False)
            )
    if message.thread is not None and Flag.HAS_THREAD in message.flags:
        body["thread"] = channel_json(message.thread, bot)
    if message.interaction is not None:
        body.update(_interaction_fields(message.interaction, bot))
    return body


def _interaction_fields(interaction: Interaction, bot: User) -> JsonObject:
    guild = interaction.channel.guild
    owners: JsonObject = {"0": str(guild.id) if guild is not None else "0"}
    metadata: JsonObject = {
        "id": str(interaction.id),
        "type": interaction.kind.value,
        "user": user_json(interaction.user),
        "authorizing_integration_owners": owners,
    }
    if interaction.message is not None:
        metadata["interacted_message_id"] = str(interaction.message.id)
    return {"application_id": str(bot.id), "webhook_id": str(bot.id), "interaction_metadata": metadata}


def _reactions_json(message: Message, bot: User) -> list[Json]:
    told: list[Json] = []
    for emoji, users in message.reactions.items():
        details: JsonObject = {"burst": 0, "normal": len(users)}
        told.append(
            {
                "emoji": emoji_json(emoji),
                "count": len(users),
                "count_details": details,
                "me": bot.id in users,
                "me_burst": False,
                "burst_colors": [],
            }
        )
    return told


def permissions_of(channel: Channel, bot: User) -> Permission:
    """What the bot may do in a channel; a thread is as its parent."""
    if channel.guild is None:
        return ~Permission(0)
    place = channel.parent if channel.parent is not None else channel
    allowed = Permission(0)
    for role in (channel.guild.roles[channel.guild.id], *channel.guild.members[bot.id].roles):
        allowed |= role.permissions
    return allowed & ~place.denied & ~channel.denied
