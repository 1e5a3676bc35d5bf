"""What the bot may ask for about itself, guilds, channels, threads and DMs. No I/O."""

from __future__ import annotations

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.checks import channel_of, guild_of, message_of, need
from tests.fakes.discord.errors import Code, invalid_field, refused
from tests.fakes.discord.forms import Asked, Form
from tests.fakes.discord.objects import Channel, ChannelKind, Flag, Permission
from tests.fakes.discord.replies import Reply, done, nothing
from tests.fakes.discord.wire import (
    channel_json,
    guild_json,
    member_json,
    permissions_of,
    thread_member_json,
    user_json,
)
from tests.fakes.discord.world import World

ARCHIVE_MINUTES = frozenset({60, 1440, 4320, 10080})
CONTENT_FLAG = 1 << 18
"""The application may have the intent for message content."""

# --- the bot itself ---


def get_me(world: World, _: Asked) -> Reply:
    """The bot's user."""
    return done({**user_json(world.bot), "verified": True, "mfa_enabled": False, "email": None, "flags": 0})


def get_user(world: World, asked: Asked) -> Reply:
    """Somebody."""
    user = world.users.get(asked.id("user_id"))
    if user is None:
        raise refused(Code.UNKNOWN_USER)
    return done(user_json(user))


def get_application(world: World, _: Asked) -> Reply:
    """The application, which has the bot's id here, as new ones do."""
    owner = user_json(world.bot)
    return done(
        {
            "id": str(world.bot.id),
            "name": world.bot.name,
            "icon": None,
            "description": "",
            "summary": "",
            "verify_key": "0" * 64,
            "flags": CONTENT_FLAG if world.content_granted else 0,
            "owner": {**owner, "bot": False},
            "team": None,
            "bot_public": False,
            "bot_require_code_grant": False,
            "rpc_origins": [],
            "redirect_uris": [],
            "interactions_endpoint_url": None,
        }
    )


# --- guilds ---


def get_guild(world: World, asked: Asked) -> Reply:
    """A guild."""
    guild = guild_of(world, asked)
    body = guild_json(guild, world.bot)
    if asked.query.flag("with_counts"):
        body.update(approximate_member_count=len(guild.members), approximate_presence_count=1)
    return done(body)


def list_guilds(world: World, asked: Asked) -> Reply:
    """The guilds that the bot is in."""
    query = asked.query
    limit = query.integer("limit", least=1, most=200) or 200
    after, before, _ = query.snowflake("after") or 0, query.snowflake("before") or 1 << 64, query.flag("with_counts")
    query.check()
    guilds = [guild for number, guild in sorted(world.guilds.items()) if guild.has_bot and after < number < before]
    return done([guild_json(guild, world.bot) for guild in guilds[:limit]])


def list_channels(world: World, asked: Asked) -> Reply:
    """The channels of a guild, without threads."""
    guild = guild_of(world, asked)
    return done([channel_json(one, world.bot) for one in guild.channels.values() if not one.is_thread])


def get_member(world: World, asked: Asked) -> Reply:
    """A member of a guild."""
    member = guild_of(world, asked).members.get(asked.id("user_id"))
    if member is None:
        raise refused(Code.UNKNOWN_MEMBER)
    return done(member_json(member))


def leave_guild(world: World, asked: Asked) -> Reply:
    """The bot leaves a guild."""
    guild = guild_of(world, asked)
    world.tell("GUILD_DELETE", {"id": str(guild.id)}, guild)
    guild.has_bot = False
    return nothing()


# --- channels ---


def get_channel(world: World, asked: Asked) -> Reply:
    """A channel, thread or DM."""
    return done(channel_json(channel_of(world, asked), world.bot))


def open_dm(world: World, asked: Asked) -> Reply:
    """The DM channel with somebody; that they take no messages is told only when one is sent."""
    number = asked.body.snowflake("recipient_id", required=True)
    asked.body.check()
    user = world.users.get(number or 0)
    if user is None or user.is_bot:
        raise refused(Code.INVALID_RECIPIENT)
    return done(channel_json(world.dm(user), world.bot))


# --- threads ---


def _read_thread(form: Form) -> tuple[str, int, int]:
    """Name, minutes to the archive, and seconds between messages."""
    name = (form.text("name", least=1, most=100, required=True) or "").strip()
    minutes = form.integer("auto_archive_duration")
    slow = form.integer("rate_limit_per_user", least=0, most=21600) or 0
    if minutes is not None and minutes not in ARCHIVE_MINUTES:
        form.flaw("auto_archive_duration", "BASE_TYPE_CHOICES", f"Value must be one of {set(ARCHIVE_MINUTES)}.")
    return name, minutes or 1440, slow


def _need_text(channel: Channel) -> None:
    if channel.kind is not ChannelKind.TEXT:
        raise refused(Code.WRONG_CHANNEL_KIND)


def thread_from_message(world: World, asked: Asked) -> Reply:
    """A public thread that hangs on a message and has its id."""
    message = message_of(world, asked)
    channel = message.channel
    name, minutes, slow = _read_thread(asked.body)
    asked.body.check()
    _need_text(channel)
    need(world, channel, Permission.CREATE_PUBLIC_THREADS)
    if message.thread is not None or Flag.HAS_THREAD in message.flags:
        raise refused(Code.THREAD_EXISTS)
    thread = world.add_thread(channel, name, world.bot, message=message, archive_minutes=minutes, slowmode_seconds=slow)
    return done(channel_json(thread, world.bot), 201)


def thread_alone(world: World, asked: Asked) -> Reply:
    """A thread that hangs on nothing; private unless told otherwise, as on the server."""
    channel = channel_of(world, asked)
    name, minutes, slow = _read_thread(asked.body)
    kind = asked.body.integer("type")
    asked.body.flag("invitable")
    if kind not in {None, 11, 12}:
        asked.body.flaw("type", "BASE_TYPE_CHOICES", "Value must be one of {11, 12}.")
    asked.body.check()
    _need_text(channel)
    private = kind != ChannelKind.PUBLIC_THREAD
    need(world, channel, Permission.CREATE_PRIVATE_THREADS if private else Permission.CREATE_PUBLIC_THREADS)
    thread = world.add_thread(channel, name, world.bot, private=private, archive_minutes=minutes, slowmode_seconds=slow)
    return done(channel_json(thread, world.bot), 201)


def edit_channel(world: World, asked: Asked) -> Reply:
    """Archive, lock or rename a thread. Other channels cannot be edited here."""
    thread, form = channel_of(world, asked), asked.body
    if not thread.is_thread:
        raise refused(Code.WRONG_CHANNEL_KIND)
    for name in form.values:
        if name not in {"archived", "locked", "name", "auto_archive_duration", "rate_limit_per_user"}:
            raise invalid_field(name, "FAKE_DOES_NOT_KNOW", "This stand-in for Discord does not edit it.")
    archived = form.flag("archived") if form.given("archived") else None
    locked = form.flag("locked") if form.given("locked") else None
    name = form.text("name", least=1, most=100)
    minutes, slow = form.integer("auto_archive_duration"), form.integer("rate_limit_per_user", least=0, most=21600)
    if minutes is not None and minutes not in ARCHIVE_MINUTES:
        form.flaw("auto_archive_duration", "BASE_TYPE_CHOICES", f"Value must be one of {set(ARCHIVE_MINUTES)}.")
    form.check()
    manages = Permission.MANAGE_THREADS in permissions_of(thread, world.bot)
    opens_only = set(form.values) == {"archived"} and not archived and not thread.locked
    if not manages and thread.owner_id != world.bot.id and not opens_only:
        raise refused(Code.MISSING_PERMISSIONS)
    if locked is not None and not manages:
        raise refused(Code.MISSING_PERMISSIONS)
    if thread.archived and archived is not False:
        raise refused(Code.THREAD_ARCHIVED)
    thread.name = name or thread.name
    thread.archive_minutes = minutes or thread.archive_minutes
    thread.slowmode_seconds = thread.slowmode_seconds if slow is None else slow
    world.update_thread(thread, archived=archived, locked=locked)
    return done(channel_json(thread, world.bot))


def join_thread(world: World, asked: Asked) -> Reply:
    """The bot joins a thread."""
    thread = channel_of(world, asked)
    if not thread.is_thread:
        raise refused(Code.WRONG_CHANNEL_KIND)
    if thread.archived:
        raise refused(Code.THREAD_ARCHIVED)
    thread.members.add(world.bot.id)
    return nothing()


def leave_thread(world: World, asked: Asked) -> Reply:
    """The bot leaves a thread."""
    thread = channel_of(world, asked)
    if not thread.is_thread:
        raise refused(Code.WRONG_CHANNEL_KIND)
    thread.members.discard(world.bot.id)
    return nothing()


def active_threads(world: World, asked: Asked) -> Reply:
    """The threads of a guild that are not archived."""
    guild = guild_of(world, asked)
    open_ones = [one for one in guild.channels.values() if one.is_thread and not one.archived and world.sees(one)]
    threads: list[Json] = [channel_json(one, world.bot) for one in open_ones]
    members: list[Json] = [thread_member_json(one, world.bot.id) for one in open_ones if world.bot.id in one.members]
    body: JsonObject = {"threads": threads, "members": members}
    return done(body)
