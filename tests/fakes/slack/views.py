"""Modals and Home tabs: `views.open`, `views.update`, `views.publish`. No I/O."""

from __future__ import annotations

import hashlib
from typing import cast

import orjson

from tests.fakes.common import JsonObject
from tests.fakes.slack import blocks as kit
from tests.fakes.slack import checks
from tests.fakes.slack.errors import ApiError, bad
from tests.fakes.slack.objects import User, View
from tests.fakes.slack.params import Params
from tests.fakes.slack.shapes import as_object, as_text
from tests.fakes.slack.world import APP, TEAM, World

MAX_VIEW_BYTES = 250_000
MAX_PRIVATE_METADATA = 3000
MAX_TITLE = 24


def view_json(world: World, view: View) -> JsonObject:
    """The view object as the app sees it again."""
    return {
        **view.body,
        "id": view.id,
        "team_id": TEAM,
        "app_id": APP,
        "app_installed_team_id": TEAM,
        "bot_id": world.bot.bot_id,
        "root_view_id": view.root_id,
        "previous_view_id": None,
        "hash": view.hash,
        "external_id": view.external_id,
        "callback_id": as_text(view.body.get("callback_id")),
        "private_metadata": as_text(view.body.get("private_metadata")),
        "state": {"values": {}},
    }


def read_view(given: object, *kinds: str) -> JsonObject:
    """What a view is to look like.

    Raises:
        ApiError: it is of the wrong form, or too large.
    """
    if not isinstance(given, dict):
        raise bad("missing required field: view")
    body = cast("JsonObject", given)
    if body.get("type") not in kinds:
        raise bad("unsupported type", "view/type")
    if len(orjson.dumps(body)) > MAX_VIEW_BYTES:
        raise ApiError("view_too_large")
    if len(as_text(body.get("private_metadata"))) > MAX_PRIVATE_METADATA:
        raise bad(f"must be less than {MAX_PRIVATE_METADATA + 1} characters", "view/private_metadata")
    title = as_text(as_object(body.get("title")).get("text"))
    if body["type"] == "modal" and not 1 <= len(title) <= MAX_TITLE:
        raise bad(f"must be 1 to {MAX_TITLE} characters", "view/title")
    blocks = kit.checked(body.get("blocks"), limit=kit.MAX_VIEW_BLOCKS, where="view/blocks")
    return {**body, "blocks": [*blocks]}


def hash_of(body: JsonObject, updates: int) -> str:
    """What changes whenever a view does."""
    return f"{updates}.{hashlib.sha256(orjson.dumps(body)).hexdigest()[:8]}"


def change(world: World, view: View, body: JsonObject) -> None:
    """A view looks like this from now on."""
    view.body, view.updates, view.errors = body, view.updates + 1, {}
    view.hash = hash_of(body, view.updates)
    world.changed()


def _new(world: World, user: User, body: JsonObject) -> View:
    number = world.new_id("V")
    view = View(number, user, body, hash_of(body, 0), number, as_text(body.get("external_id")))
    world.views[number] = view
    world.changed()
    return view


def open_view(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/views.open: within three seconds of the press, and once."""
    (trigger_id,) = params.required("trigger_id")
    body = read_view(params.structure("view"), "modal")
    trigger = world.triggers.get(trigger_id)
    if trigger is None:
        raise ApiError("invalid_trigger_id")
    if trigger.used:
        raise ApiError("exchanged_trigger_id")
    if world.clock.monotonic() > trigger.until:
        raise ApiError("expired_trigger_id")
    trigger.used = True
    return {"view": view_json(world, _new(world, trigger.user, body))}


def update_view(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/views.update"""
    body = read_view(params.structure("view"), "modal", "home")
    number, external = params.text("view_id"), params.text("external_id")
    matching = [
        one
        for one in world.views.values()
        if one.open and (one.id == number or (external and one.external_id == external))
    ]
    if not matching:
        raise ApiError("not_found")
    view = matching[0]
    if params.text("hash") not in {"", view.hash}:
        raise ApiError("hash_conflict")
    change(world, view, body)
    return {"view": view_json(world, view)}


def publish_view(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/views.publish"""
    (user_id,) = params.required("user_id")
    user = checks.known_user(world, user_id)
    body = read_view(params.structure("view"), "home")
    view = world.homes.get(user.id)
    if view is None:
        view = world.homes[user.id] = _new(world, user, body)
    elif params.text("hash") not in {"", view.hash}:
        raise ApiError("hash_conflict")
    else:
        change(world, view, body)
    return {"view": view_json(world, view)}
