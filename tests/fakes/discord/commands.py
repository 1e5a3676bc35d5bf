"""The application's commands (https://docs.discord.com/developers/interactions/application-commands). No I/O."""

from __future__ import annotations

import re

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.errors import Code, invalid, invalid_field, plain, refused
from tests.fakes.discord.forms import Asked, Form
from tests.fakes.discord.replies import Reply, done, nothing
from tests.fakes.discord.world import Sync, World

MAX_COMMANDS = 100
CHAT_INPUT = 1
SUBCOMMAND, GROUP = 1, 2
_NAME = re.compile(r"[-_'\w]{1,32}")
_PASSED_ON = (
    "name_localizations",
    "description_localizations",
    "default_member_permissions",
    "dm_permission",
    "default_permission",
    "nsfw",
    "contexts",
    "integration_types",
    "handler",
)
"""Fields that are told again as they came."""


def _scope(world: World, asked: Asked) -> int | None:
    """The guild of the address; None for commands that are everywhere."""
    if asked.id("application_id") != world.bot.id:
        raise plain(404, "Not Found")
    if "guild_id" not in asked.path:
        return None
    guild = world.guilds.get(asked.id("guild_id"))
    if guild is None or not guild.has_bot:
        raise refused(Code.MISSING_ACCESS)
    return guild.id


def _check_name(form: Form, *, lower: bool) -> str:
    name = form.text("name", least=1, most=32, required=True) or ""
    if lower and name and (not _NAME.fullmatch(name) or name != name.lower()):
        message = "Command name is invalid"
        form.flaw("name", "APPLICATION_COMMAND_INVALID_NAME", message)
    return name


def _read_options(form: Form) -> None:
    names: set[str] = set()
    optional = False
    for option in form.items("options", most=25):
        name = _check_name(option, lower=True)
        if name in names:
            option.flaw("name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Option name must be unique")
        names.add(name)
        option.text("description", least=1, most=100, required=True)
        kind = option.integer("type", least=1, most=11, required=True)
        required = option.flag("required")
        if required and optional:
            option.flaw("required", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be first")
        optional = optional or not required
        for told in ("name_localizations", "description_localizations", "min_value", "max_value", "channel_types"):
            option.raw(told)
        option.integer("min_length", least=0, most=6000)
        option.integer("max_length", least=1, most=6000)
        option.flag("autocomplete")
        for choice in option.items("choices", most=25):
            choice.text("name", least=1, most=100, required=True)
            choice.raw("name_localizations")
            if choice.raw("value") is None:
                choice.flaw("value", "BASE_TYPE_REQUIRED", "This field is required")
        if kind in {SUBCOMMAND, GROUP}:
            _read_options(option)


def _read(form: Form) -> JsonObject:
    """A command as it is to be; what is wrong is noted in the form."""
    kind = form.integer("type", least=1, most=4) or CHAT_INPUT
    form.snowflake("id")
    name = _check_name(form, lower=kind == CHAT_INPUT)
    chat = kind == CHAT_INPUT
    description = form.text("description", least=1 if chat else 0, most=100, required=chat) or ""
    _read_options(form)
    body: JsonObject = {"type": kind, "name": name, "description": description}
    body["options"] = form.values.get("options") or []
    for told in _PASSED_ON:
        body[told] = form.raw(told)
    body["nsfw"] = bool(body["nsfw"])
    body["contexts"] = body["contexts"] or [0, 1, 2]
    # What the app allows: both, if nobody has changed it
    body["integration_types"] = body["integration_types"] or [
        0,
        1,
    ]
    return body


def _key(command: JsonObject) -> tuple[Json, Json]:
    return command.get("type"), command.get("name")


def _put(world: World, guild: int | None, body: JsonObject, before: dict[int, JsonObject]) -> JsonObject:
    """A command with its number, which it keeps; its version is new if it changed."""
    old = next((one for one in before.values() if _key(one) == _key(body)), None)
    if old is None:
        world.commands.created += 1
        number, version = str(world.ids.next()), str(world.ids.next())
    else:
        number = old["id"]
        same = {**old, **body} == old
        version = old["version"] if same else str(world.ids.next())
    command: JsonObject = {**body, "id": number, "application_id": str(world.bot.id), "version": version}
    if guild is not None:
        command["guild_id"] = str(guild)
    return command


def _known(world: World, asked: Asked) -> tuple[int | None, dict[int, JsonObject]]:
    guild = _scope(world, asked)
    return guild, world.commands.known.setdefault(guild, {})


def _found(world: World, asked: Asked) -> tuple[dict[int, JsonObject], int]:
    _, known = _known(world, asked)
    number = asked.id("command_id")
    if number not in known:
        raise refused(Code.UNKNOWN_COMMAND)
    return known, number


def list_commands(world: World, asked: Asked) -> Reply:
    """All commands of a scope."""
    _, known = _known(world, asked)
    asked.query.flag("with_localizations")
    return done(list[Json](known.values()))


def overwrite_commands(world: World, asked: Asked) -> Reply:
    """These are the commands from now on."""
    guild, known = _known(world, asked)
    if not asked.is_list:
        raise invalid_field("_", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
    items = asked.body.items("items")
    bodies = [_read(item) for item in items]
    keys = [_key(body) for body in bodies]
    for number, (item, key) in enumerate(zip(items, keys, strict=True)):
        if key in keys[:number]:
            item.flaw("name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
    errors = asked.body.errors()
    if errors:
        # Of a body that is an array, the flaws stand under its positions.
        inner = errors.get("items")
        raise invalid(inner if isinstance(inner, dict) else errors)
    if len(bodies) > MAX_COMMANDS:
        raise refused(Code.TOO_MANY_COMMANDS)
    commands = [_put(world, guild, body, known) for body in bodies]
    known.clear()
    known.update({int(str(command["id"])): command for command in commands})
    world.commands.syncs.append(Sync(guild, tuple(str(body["name"]) for body in bodies)))
    world.changed()
    return done(list[Json](commands))


def create_command(world: World, asked: Asked) -> Reply:
    """One command more, or another one of the same name."""
    guild, known = _known(world, asked)
    body = _read(asked.body)
    asked.body.check()
    is_new = all(_key(one) != _key(body) for one in known.values())
    if is_new and len(known) >= MAX_COMMANDS:
        raise refused(Code.TOO_MANY_COMMANDS)
    command = _put(world, guild, body, known)
    known[int(str(command["id"]))] = command
    world.changed()
    return done(command, 201 if is_new else 200)


def get_command(world: World, asked: Asked) -> Reply:
    """One command."""
    known, number = _found(world, asked)
    return done(known[number])


def edit_command(world: World, asked: Asked) -> Reply:
    """Change a command; what is not said stays."""
    known, number = _found(world, asked)
    form = Form({**known[number], **asked.body.values})
    body = _read(form)
    unknown = set(form.unused())
    for name in set(asked.body.values) - unknown:
        asked.body.raw(name)
    form.check()
    known[number] = {**known[number], **body, "version": str(world.ids.next())}
    return done(known[number])


def delete_command(world: World, asked: Asked) -> Reply:
    """One command less."""
    known, number = _found(world, asked)
    del known[number]
    return nothing()
