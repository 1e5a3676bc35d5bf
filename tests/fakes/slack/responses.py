"""What an app says without the Web API: by a `response_url`, or together with an acknowledgement. No I/O.

https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
"""

from __future__ import annotations

from typing import cast
from urllib.parse import parse_qsl

import orjson

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack import checks, views
from tests.fakes.slack.checks import Content
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.objects import Channel, Message, User, View
from tests.fakes.slack.params import Params
from tests.fakes.slack.shapes import as_object
from tests.fakes.slack.world import RESPONSE_URL_USES, Door, World


def read(body: bytes, content_type: str) -> Params:
    """The body of a post to a `response_url`.

    Raises:
        ApiError: it cannot be read.
    """
    try:
        if content_type == "application/x-www-form-urlencoded":
            fields = dict(parse_qsl(body.decode()))
            given = cast("Json", orjson.loads(fields["payload"]) if "payload" in fields else dict(fields))
        else:
            given = cast("Json", orjson.loads(body))
    except (orjson.JSONDecodeError, UnicodeDecodeError):
        raise ApiError("invalid_payload") from None
    if not isinstance(given, dict):
        raise ApiError("invalid_payload")
    return Params(given)


def use(world: World, url: str, params: Params) -> None:
    """A post to a `response_url`: a message for one person or for all, or a change of the message whose button was pressed.

    Raises:
        ApiError: the address is not known, was used five times, or is older than half an hour.
    """
    door = world.doors.get(url)
    if door is None:
        raise ApiError("no_service", status=404)
    if door.uses >= RESPONSE_URL_USES:
        raise ApiError("used_url", status=404)
    if world.clock.monotonic() > door.until:
        raise ApiError("expired_url", status=404)
    source = door.source
    if params.flag("delete_original") and source is not None:
        door.uses += 1
        _remove(world, source)
        return
    said = checks.content(params)
    replaces = params.flag("replace_original") and source is not None
    in_channel = params.text("response_type") == "in_channel"
    thread_ts = params.text("thread_ts")
    root = checks.thread(world, door.channel, thread_ts)
    door.uses += 1
    if replaces and source is not None:
        _replace(world, source, said)
        return
    _write(world, door, said, root.ts if root else None, in_channel=in_channel)


def _remove(world: World, source: Message) -> None:
    if source.visible_to is None:
        world.delete(source, world.bot)
    else:
        source.channel.ephemeral.remove(source)
        world.changed()


def _replace(world: World, source: Message, said: Content) -> None:
    def change() -> None:
        source.text, source.blocks = said.text, said.blocks or []
        source.attachments = said.attachments

    if source.visible_to is None:
        world.edit(source, change, world.bot)
        return
    source.earlier.append(world.visible(source))
    change()
    world.changed()


def _write(world: World, door: Door, said: Content, thread_ts: str | None, *, in_channel: bool) -> None:
    message = Message(
        door.channel,
        world.new_ts(),
        world.bot,
        said.text,
        said.blocks or [],
        said.attachments,
        thread_ts=thread_ts,
        visible_to=None if in_channel else door.user.id,
    )
    world.add(message)


def answer_command(world: World, channel: Channel, user: User, answer: JsonObject | None) -> None:
    """What came with the acknowledgement of a command is shown; if it cannot be, nothing is."""
    if not answer:
        return
    params = Params(answer)
    try:
        said = checks.content(params)
    except ApiError:
        return
    in_channel = params.text("response_type") == "in_channel"
    _write(world, Door("", channel, user, 0.0), said, None, in_channel=in_channel)


def answer_submission(world: World, view: View, answer: JsonObject | None) -> None:
    """What came with the acknowledgement of a form: errors keep it open, an update changes it, anything else closes it."""
    given = answer or {}
    try:
        _apply(world, view, given)
    except ApiError as error:
        # The person sees that it failed, and the form stays.
        view.errors = {"": error.error}
    world.changed()


def _apply(world: World, view: View, given: JsonObject) -> None:
    match given.get("response_action"):
        case "errors":
            view.errors = as_object(given.get("errors"))
        case "update" | "push":
            views.change(world, view, views.read_view(given.get("view"), "modal"))
        case _:
            view.open = False
