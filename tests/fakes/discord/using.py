"""What persons do with commands, buttons, menus and forms. No I/O. The bot hears of it by INTERACTION_CREATE."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord import wire
from tests.fakes.discord.commands import CHAT_INPUT, GROUP, SUBCOMMAND
from tests.fakes.discord.components import Kind, buttons, selects
from tests.fakes.discord.modals import LABEL, fields_of
from tests.fakes.discord.objects import Channel, Interaction, InteractionKind, Message, User
from tests.fakes.discord.world import World

_EVERYTHING = str((1 << 53) - 1)
_STRING, _INTEGER, _BOOLEAN, _USER, _NUMBER = 3, 4, 5, 6, 10


class Using:
    """Persons using what the bot offers."""

    def __init__(self, world: World) -> None:
        self._world = world

    # --- commands ---

    def command(self, channel: Channel, user: User, name: str, **options: str | float | User) -> Interaction:
        """A person uses a slash command, such as "ask" or "settings language" with its options. It must have been synced."""
        registered, path = self._find_command(channel, name)
        declared = _options_of(registered)
        for part in path:
            declared = _options_of(next(one for one in declared if one["name"] == part))
        given: list[Json] = []
        users: JsonObject = {}
        for option in declared:
            value = options.pop(str(option["name"]), None)
            if value is None:
                assert not option.get("required"), f"/{name} needs {option['name']}"
                continue
            given.append(_option_json(option, value))
            if isinstance(value, User):
                users[str(value.id)] = wire.user_json(value)
        assert not options, f"/{name} does not know {sorted(options)}"
        data = self._command_data(registered, _nested(path, given))
        if users:
            data["resolved"] = {"users": users}
        return self._interact(InteractionKind.COMMAND, channel, user, data)

    def autocomplete(self, channel: Channel, user: User, name: str, option: str, text: str) -> Interaction:
        """A person types into an option that proposes; see `Interaction.choices` for what comes of it."""
        registered, path = self._find_command(channel, name)
        given: list[Json] = [{"name": option, "type": _STRING, "value": text, "focused": True}]
        data = self._command_data(registered, _nested(path, given))
        return self._interact(InteractionKind.AUTOCOMPLETE, channel, user, data)

    def _find_command(self, channel: Channel, name: str) -> tuple[JsonObject, list[str]]:
        base, *path = name.split()
        known = self._world.commands.known
        scopes = [] if channel.guild is None else [channel.guild.id]
        for scope in (*scopes, None):
            for command in known.get(scope, {}).values():
                if command["name"] == base and command["type"] == CHAT_INPUT:
                    return command, path
        raise AssertionError(f"there is no command /{base}; synced were {self._world.commands.syncs}")

    def _command_data(self, registered: JsonObject, options: list[Json]) -> JsonObject:
        data: JsonObject = {"id": registered["id"], "name": registered["name"], "type": CHAT_INPUT, "options": options}
        if "guild_id" in registered:
            data["guild_id"] = registered["guild_id"]
        return data

    # --- components ---

    def press(self, message: Message, user: User, button: str) -> Interaction:
        """A person presses the button with this label (or this custom id)."""
        chosen = next((one for one in buttons(message.rows) if button in {one.label, one.custom_id}), None)
        assert chosen is not None, f"no button {button!r} in {[one.label for one in buttons(message.rows)]}"
        assert not chosen.disabled, f"{button!r} is grey"
        assert chosen.custom_id is not None, f"{chosen} opens an address and tells the bot nothing"
        self._may_see(message, user)
        return self.press_raw(message, user, chosen.custom_id)

    def press_raw(self, message: Message, user: User, custom_id: str) -> Interaction:
        """A press with whatever custom id: on a button that has gone meanwhile, or forged by a modified client."""
        data: JsonObject = {"custom_id": custom_id, "component_type": Kind.BUTTON.value, "id": 2}
        return self._interact(InteractionKind.COMPONENT, message.channel, user, data, message)

    def choose(self, message: Message, user: User, *labels: str, menu: str | None = None) -> Interaction:
        """A person chooses from the menu of a message (`menu`: its custom id, if there are several)."""
        chosen = next((one for one in selects(message.rows) if menu in {None, one.custom_id}), None)
        assert chosen is not None, "there is no such menu"
        assert not chosen.disabled, "the menu is grey"
        assert chosen.least <= len(labels) <= chosen.most, f"between {chosen.least} and {chosen.most} can be chosen"
        self._may_see(message, user)
        data: JsonObject = {"custom_id": chosen.custom_id, "component_type": chosen.kind.value, "id": 2}
        if chosen.kind is Kind.STRING_SELECT:
            by_label = dict(chosen.options)
            assert set(labels) <= set(by_label), f"{labels} are not all in {list(by_label)}"
            values: list[Json] = [by_label[label] for label in labels]
        else:
            values = list[Json](labels)
        data["values"] = values
        return self._interact(InteractionKind.COMPONENT, message.channel, user, data, message)

    def submit(self, interaction: Interaction, values: Mapping[str, str]) -> Interaction:
        """The person whom the bot showed a form fills it in, by labels or custom ids of its fields, and sends it."""
        modal = interaction.modal
        assert modal is not None, "no form was shown"
        left = dict(values)
        rows: list[Json] = []
        for row, field in fields_of(modal):
            names = [str(field["custom_id"]), str(field.get("label") or row.get("label"))]
            value = next((left.pop(name) for name in names if name in left), None)
            if value is None:
                assert field.get("required") is False, f"the field {names} must be filled in"
                value = ""
            told: JsonObject = {"type": Kind.TEXT_INPUT.value, "id": 2, "custom_id": names[0], "value": value}
            if row.get("type") == LABEL:
                rows.append({"type": LABEL, "id": 1, "component": told})
            else:
                rows.append({"type": Kind.ROW.value, "id": 1, "components": [told]})
        assert not left, f"the form has no fields {sorted(left)}"
        data: JsonObject = {"custom_id": modal["custom_id"], "components": rows}
        kind = InteractionKind.MODAL
        return self._interact(kind, interaction.channel, interaction.user, data, interaction.message)

    def _may_see(self, message: Message, user: User) -> None:
        assert not message.deleted, "it is not there any more"
        if message.ephemeral:
            assert message.interaction is not None
            assert message.interaction.user is user, "only one person sees it"

    # --- telling ---

    def _interact(
        self, kind: InteractionKind, channel: Channel, user: User, data: JsonObject, message: Message | None = None
    ) -> Interaction:
        world, guild = self._world, channel.guild
        number = world.ids.next()
        token = f"aW50ZXJhY3Rpb246{number}"
        interaction = Interaction(number, token, kind, user, channel, data, world.clock.monotonic(), message)
        world.interactions[number] = interaction
        owners: JsonObject = {"0": "0" if guild is None else str(guild.id)}
        body: JsonObject = {
            "id": str(number),
            "application_id": str(world.bot.id),
            "type": kind.value,
            "data": data,
            "channel_id": str(channel.id),
            "channel": {**wire.channel_json(channel, world.bot), "permissions": _EVERYTHING},
            "token": token,
            "version": 1,
            "locale": "en-US",
            "app_permissions": str(int(wire.permissions_of(channel, world.bot))),
            "entitlements": [],
            "authorizing_integration_owners": owners,
            "context": 1 if guild is None else 0,
            "attachment_size_limit": wire.ATTACHMENT_LIMIT_BYTES,
        }
        if guild is None:
            assert channel.recipient is user, f"{user.name} is not in the DM {channel.id}"
            body["user"] = wire.user_json(user)
        else:
            body["guild_id"], body["guild_locale"] = str(guild.id), "en-US"
            body["guild"] = {"id": str(guild.id), "locale": "en-US", "features": []}
            body["member"] = {**wire.member_json(guild.members[user.id]), "permissions": _EVERYTHING}
        if message is not None:
            body["message"] = world.message_json(message)
        world.tell("INTERACTION_CREATE", body, guild)
        return interaction


def _options_of(command: JsonObject) -> list[JsonObject]:
    options = command.get("options")
    return [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []


def _nested(path: list[str], given: list[Json]) -> list[Json]:
    """Options under the names of a subcommand and its group."""
    for depth, name in enumerate(reversed(path)):
        given = [{"name": name, "type": GROUP if depth else SUBCOMMAND, "options": given}]
    return given


def _option_json(option: JsonObject, value: str | float | User) -> JsonObject:
    kind, name = option["type"], option["name"]
    fits = {
        _STRING: isinstance(value, str),
        _INTEGER: isinstance(value, int) and not isinstance(value, bool),
        _BOOLEAN: isinstance(value, bool),
        _USER: isinstance(value, User),
        _NUMBER: isinstance(value, int | float),
    }
    assert isinstance(kind, int), option
    assert fits.get(kind), f"{name} is not of type {kind}: {value!r}"
    choices = option.get("choices")
    if isinstance(choices, list) and choices:
        known = [one.get("value") for one in choices if isinstance(one, dict)]
        assert value in known, f"{value!r} is none of {known}"
    return {"name": name, "type": kind, "value": str(value.id) if isinstance(value, User) else value}
