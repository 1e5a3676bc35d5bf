"""How the bot answers interactions (https://docs.discord.com/developers/interactions/receiving-and-responding). No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.errors import Code, invalid_field, refused
from tests.fakes.discord.forms import Asked, Form, snowflake_of
from tests.fakes.discord.messages import apply_edit, read_content, stored
from tests.fakes.discord.modals import read_modal
from tests.fakes.discord.objects import Callback, Flag, Interaction, InteractionKind, Message, MessageKind
from tests.fakes.discord.replies import Reply, done, nothing
from tests.fakes.discord.world import Draft, World

CALLBACK_SECONDS = 3.0
"""How long the first answer may take."""
TOKEN_SECONDS = 15 * 60.0
"""How long the token of an interaction is good."""
ORIGINAL = "@original"
_SETTABLE = Flag.SUPPRESS_EMBEDS | Flag.EPHEMERAL | Flag.SUPPRESS_NOTIFICATIONS
_POSSIBLE: Mapping[InteractionKind, frozenset[Callback]] = {
    InteractionKind.COMMAND: frozenset({Callback.MESSAGE, Callback.DEFERRED_MESSAGE, Callback.MODAL}),
    InteractionKind.COMPONENT: frozenset(set(Callback) - {Callback.CHOICES}),
    InteractionKind.AUTOCOMPLETE: frozenset({Callback.CHOICES}),
    InteractionKind.MODAL: frozenset(set(Callback) - {Callback.CHOICES, Callback.MODAL}),
}
"""Which answers are there for which interactions."""


# --- the first answer ---


def callback(world: World, asked: Asked) -> Reply:
    """Answer an interaction; that can be done once, within three seconds."""
    interaction = world.interactions.get(asked.id("interaction_id"))
    if interaction is None or interaction.token != asked.path["token"]:
        raise refused(Code.UNKNOWN_INTERACTION)
    if interaction.answered:
        raise refused(Code.ALREADY_ACKNOWLEDGED)
    if world.clock.monotonic() - interaction.at > CALLBACK_SECONDS:
        raise refused(Code.UNKNOWN_INTERACTION)
    form = asked.body
    number = form.integer("type", required=True)
    form.check()
    possible = _POSSIBLE[interaction.kind]
    # A form that came from a command has no message to change.
    if interaction.message is None:
        possible -= {Callback.UPDATE, Callback.DEFERRED_UPDATE}
    if number not in possible:
        choices = tuple(sorted(one.value for one in possible))
        raise invalid_field("type", "BASE_TYPE_CHOICES", f"Value must be one of {choices}.")
    kind = Callback(number)
    data = form.object("data", required=kind not in {Callback.DEFERRED_MESSAGE, Callback.DEFERRED_UPDATE})
    form.check()
    _answer(world, asked, interaction, kind, Form({}) if data is None else data)
    interaction.callback = kind
    world.changed()
    return _told(world, interaction, kind) if asked.query.flag("with_response") else nothing()


def _answer(world: World, asked: Asked, interaction: Interaction, kind: Callback, data: Form) -> None:
    match kind:
        case Callback.MESSAGE:
            interaction.original = _post(world, asked, interaction, data)
        case Callback.DEFERRED_MESSAGE:
            flags = Flag(data.integer("flags", least=0) or 0) & Flag.EPHEMERAL
            draft = Draft(kind=_kind(interaction), flags=flags | Flag.LOADING, interaction=interaction)
            data.check()
            interaction.original = world.post(interaction.channel, world.bot, draft)
        case Callback.DEFERRED_UPDATE:
            interaction.original = interaction.message
        case Callback.UPDATE:
            assert interaction.message is not None
            if interaction.message.deleted:
                raise refused(Code.UNKNOWN_MESSAGE)
            apply_edit(world, interaction.message, asked, data)
            interaction.original = interaction.message
        case Callback.CHOICES:
            interaction.choices = _read_choices(data)
        case Callback.MODAL:
            interaction.modal = read_modal(data)


def _kind(interaction: Interaction) -> MessageKind:
    if interaction.kind is InteractionKind.COMMAND:
        return MessageKind.COMMAND
    return MessageKind.DEFAULT if interaction.message is None else MessageKind.REPLY


def _post(world: World, asked: Asked, interaction: Interaction, data: Form, answered: Message | None = None) -> Message:
    """A message that answers an interaction."""
    content = read_content(data, asked.files, _SETTABLE)
    tts = data.flag("tts")
    data.check()
    if content.is_empty:
        raise refused(Code.EMPTY_MESSAGE)
    kind, target = _kind(interaction), interaction.message
    if answered is not None:
        kind, target = MessageKind.REPLY, answered
    draft = Draft(
        content.text or "",
        kind,
        None if target is not None and target.deleted else target,
        stored(world, interaction.channel, content),
        content.embeds or (),
        content.rows or (),
        content.flags or Flag(0),
        None,
        tts,
        content.allowed,
        interaction,
    )
    return world.post(interaction.channel, world.bot, draft)


def _read_choices(data: Form) -> list[Json]:
    choices: list[Json] = []
    for item in data.items("choices", most=25, required=True):
        item.text("name", least=1, most=100, required=True)
        item.raw("name_localizations")
        if item.raw("value") is None:
            item.flaw("value", "BASE_TYPE_REQUIRED", "This field is required")
        choices.append(item.values)
    data.check()
    return choices


def _told(world: World, interaction: Interaction, kind: Callback) -> Reply:
    """What a callback is answered if it asks for that."""
    original = interaction.original
    told: JsonObject = {"id": str(interaction.id), "type": interaction.kind.value}
    resource: JsonObject = {"type": kind.value}
    if original is not None:
        told["response_message_id"] = str(original.id)
        told["response_message_loading"] = Flag.LOADING in original.flags
        told["response_message_ephemeral"] = original.ephemeral
        if kind in {Callback.MESSAGE, Callback.UPDATE, Callback.DEFERRED_MESSAGE}:
            resource["message"] = world.message_json(original)
    return done({"interaction": told, "resource": resource})


# --- what comes later ---


def _of_token(world: World, asked: Asked) -> Interaction:
    """The interaction of a token that is good.

    Raises:
        ApiError: it is not, or nothing was answered yet, so that there is no webhook.
    """
    if asked.id("application_id") != world.bot.id:
        raise refused(Code.UNKNOWN_WEBHOOK)
    token = asked.path["token"]
    interaction = next((one for one in world.interactions.values() if one.token == token), None)
    if interaction is None:
        raise refused(Code.INVALID_WEBHOOK_TOKEN)
    if world.clock.monotonic() - interaction.at > TOKEN_SECONDS:
        raise refused(Code.INVALID_WEBHOOK_TOKEN)
    if not interaction.answered:
        raise refused(Code.UNKNOWN_WEBHOOK)
    return interaction


def _response_of(interaction: Interaction, name: str) -> Message:
    if name == ORIGINAL:
        message = interaction.original
    else:
        number = snowflake_of(name)
        if number is None:
            raise invalid_field("message_id", "NUMBER_TYPE_COERCE", f'Value "{name}" is not snowflake.')
        mine = [*interaction.followups, *([interaction.original] if interaction.original is not None else [])]
        message = next((one for one in mine if one.id == number), None)
    if message is None or message.deleted:
        raise refused(Code.UNKNOWN_MESSAGE)
    return message


def follow_up(world: World, asked: Asked) -> Reply:
    """Another message. The first one takes the place of a "thinking" that is still there."""
    interaction = _of_token(world, asked)
    for name in ("wait", "with_components", "thread_id"):
        asked.query.raw(name)
    for name in ("username", "avatar_url"):
        if asked.body.raw(name):
            asked.body.flaw(name, "FAKE_DOES_NOT_KNOW", "An application answers under its own name.")
    original = interaction.original
    if original is not None and Flag.LOADING in original.flags and not original.deleted:
        apply_edit(world, original, asked)
        return done(world.message_json(original))
    message = _post(world, asked, interaction, asked.body, original)
    interaction.followups.append(message)
    return done(world.message_json(message))


def get_response(world: World, asked: Asked) -> Reply:
    """A message that answers the interaction."""
    interaction = _of_token(world, asked)
    asked.query.raw("thread_id")
    return done(world.message_json(_response_of(interaction, asked.path["message_id"])))


def edit_response(world: World, asked: Asked) -> Reply:
    """Edit a message that answers the interaction."""
    interaction = _of_token(world, asked)
    for name in ("thread_id", "with_components"):
        asked.query.raw(name)
    message = _response_of(interaction, asked.path["message_id"])
    apply_edit(world, message, asked)
    return done(world.message_json(message))


def delete_response(world: World, asked: Asked) -> Reply:
    """Delete a message that answers the interaction."""
    interaction = _of_token(world, asked)
    asked.query.raw("thread_id")
    world.remove(_response_of(interaction, asked.path["message_id"]))
    return nothing()
