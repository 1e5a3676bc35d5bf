"""Which addresses there are, what they are called in logs and scripts, and who answers. Every other address is a 404."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

from tests.fakes.discord import commands, interactions, messages, places, reactions
from tests.fakes.discord.forms import Asked
from tests.fakes.discord.replies import Reply
from tests.fakes.discord.world import World


class Route(StrEnum):
    """The names of the routes."""

    GET_ME = "get_me"
    GET_USER = "get_user"
    GET_APPLICATION = "get_application"
    GET_GATEWAY = "get_gateway"
    GET_GATEWAY_BOT = "get_gateway_bot"
    LIST_GUILDS = "list_guilds"
    LEAVE_GUILD = "leave_guild"
    GET_GUILD = "get_guild"
    LIST_CHANNELS = "list_channels"
    GET_MEMBER = "get_member"
    ACTIVE_THREADS = "active_threads"
    OPEN_DM = "open_dm"
    GET_CHANNEL = "get_channel"
    EDIT_CHANNEL = "edit_channel"
    TYPING = "typing"
    CREATE_MESSAGE = "create_message"
    GET_MESSAGE = "get_message"
    LIST_MESSAGES = "list_messages"
    EDIT_MESSAGE = "edit_message"
    DELETE_MESSAGE = "delete_message"
    BULK_DELETE = "bulk_delete"
    ADD_REACTION = "add_reaction"
    DELETE_OWN_REACTION = "delete_own_reaction"
    DELETE_REACTION = "delete_reaction"
    CLEAR_REACTIONS = "clear_reactions"
    LIST_REACTIONS = "list_reactions"
    THREAD_FROM_MESSAGE = "thread_from_message"
    THREAD_ALONE = "thread_alone"
    JOIN_THREAD = "join_thread"
    LEAVE_THREAD = "leave_thread"
    LIST_COMMANDS = "list_commands"
    CREATE_COMMAND = "create_command"
    OVERWRITE_COMMANDS = "overwrite_commands"
    GET_COMMAND = "get_command"
    EDIT_COMMAND = "edit_command"
    DELETE_COMMAND = "delete_command"
    CALLBACK = "callback"
    FOLLOW_UP = "follow_up"
    GET_RESPONSE = "get_response"
    EDIT_RESPONSE = "edit_response"
    DELETE_RESPONSE = "delete_response"
    ATTACHMENT = "attachment"
    """Downloads, which are not part of the API."""
    HANDSHAKE = "handshake"
    """Websocket handshakes at the address that everybody knows."""
    RESUME_HANDSHAKE = "resume_handshake"
    """Websocket handshakes at the address that READY told."""
    UNKNOWN = "unknown"
    """Whatever else."""


Handler = Callable[[World, Asked], Reply]


@dataclass(frozen=True, slots=True)
class Entry:
    """One address."""

    route: Route
    method: str
    parts: tuple[str, ...]
    handler: Handler | None
    """None: the server itself answers."""
    needs_token: bool

    def match(self, parts: Sequence[str]) -> dict[str, str] | None:
        """What the parts in braces stand for, if it is this address."""
        if len(parts) != len(self.parts):
            return None
        found: dict[str, str] = {}
        for own, given in zip(self.parts, parts, strict=True):
            if own.startswith("{"):
                found[own[1:-1]] = given
            elif own != given:
                return None
        return found

    @property
    def major(self) -> str | None:
        """The part of the address that has a rate limit of its own."""
        for name in ("channel_id", "guild_id", "token"):
            if f"{{{name}}}" in self.parts:
                return name
        return None


_MESSAGE = "/channels/{channel_id}/messages/{message_id}"
_EMOJI = f"{_MESSAGE}/reactions/{{emoji}}"
_GLOBAL = "/applications/{application_id}/commands"
_OF_GUILD = "/applications/{application_id}/guilds/{guild_id}/commands"
_WEBHOOK = "/webhooks/{application_id}/{token}"

_TABLE: Sequence[tuple[Route, str, str, Handler | None]] = (
    (Route.GET_ME, "GET", "/users/@me", places.get_me),
    (Route.LIST_GUILDS, "GET", "/users/@me/guilds", places.list_guilds),
    (Route.LEAVE_GUILD, "DELETE", "/users/@me/guilds/{guild_id}", places.leave_guild),
    (Route.OPEN_DM, "POST", "/users/@me/channels", places.open_dm),
    (Route.GET_USER, "GET", "/users/{user_id}", places.get_user),
    (Route.GET_APPLICATION, "GET", "/applications/@me", places.get_application),
    (Route.GET_APPLICATION, "GET", "/oauth2/applications/@me", places.get_application),
    (Route.GET_GATEWAY, "GET", "/gateway", None),
    (Route.GET_GATEWAY_BOT, "GET", "/gateway/bot", None),
    (Route.GET_GUILD, "GET", "/guilds/{guild_id}", places.get_guild),
    (Route.LIST_CHANNELS, "GET", "/guilds/{guild_id}/channels", places.list_channels),
    (Route.GET_MEMBER, "GET", "/guilds/{guild_id}/members/{user_id}", places.get_member),
    (Route.ACTIVE_THREADS, "GET", "/guilds/{guild_id}/threads/active", places.active_threads),
    (Route.GET_CHANNEL, "GET", "/channels/{channel_id}", places.get_channel),
    (Route.EDIT_CHANNEL, "PATCH", "/channels/{channel_id}", places.edit_channel),
    (Route.TYPING, "POST", "/channels/{channel_id}/typing", messages.type_in),
    (Route.CREATE_MESSAGE, "POST", "/channels/{channel_id}/messages", messages.create_message),
    (Route.LIST_MESSAGES, "GET", "/channels/{channel_id}/messages", messages.list_messages),
    (Route.BULK_DELETE, "POST", "/channels/{channel_id}/messages/bulk-delete", messages.bulk_delete),
    (Route.GET_MESSAGE, "GET", _MESSAGE, messages.get_message),
    (Route.EDIT_MESSAGE, "PATCH", _MESSAGE, messages.edit_message),
    (Route.DELETE_MESSAGE, "DELETE", _MESSAGE, messages.delete_message),
    (Route.CLEAR_REACTIONS, "DELETE", f"{_MESSAGE}/reactions", reactions.clear_reactions),
    (Route.CLEAR_REACTIONS, "DELETE", _EMOJI, reactions.clear_reactions),
    (Route.LIST_REACTIONS, "GET", _EMOJI, reactions.list_reactions),
    (Route.ADD_REACTION, "PUT", f"{_EMOJI}/@me", reactions.add_reaction),
    (Route.DELETE_OWN_REACTION, "DELETE", f"{_EMOJI}/@me", reactions.delete_own_reaction),
    (Route.DELETE_REACTION, "DELETE", f"{_EMOJI}/{{user_id}}", reactions.delete_reaction),
    (Route.THREAD_FROM_MESSAGE, "POST", f"{_MESSAGE}/threads", places.thread_from_message),
    (Route.THREAD_ALONE, "POST", "/channels/{channel_id}/threads", places.thread_alone),
    (Route.JOIN_THREAD, "PUT", "/channels/{channel_id}/thread-members/@me", places.join_thread),
    (Route.LEAVE_THREAD, "DELETE", "/channels/{channel_id}/thread-members/@me", places.leave_thread),
    *(
        (route, method, f"{base}{tail}", handler)
        for base in (_GLOBAL, _OF_GUILD)
        for route, method, tail, handler in (
            (Route.LIST_COMMANDS, "GET", "", commands.list_commands),
            (Route.CREATE_COMMAND, "POST", "", commands.create_command),
            (Route.OVERWRITE_COMMANDS, "PUT", "", commands.overwrite_commands),
            (Route.GET_COMMAND, "GET", "/{command_id}", commands.get_command),
            (Route.EDIT_COMMAND, "PATCH", "/{command_id}", commands.edit_command),
            (Route.DELETE_COMMAND, "DELETE", "/{command_id}", commands.delete_command),
        )
    ),
    (Route.CALLBACK, "POST", "/interactions/{interaction_id}/{token}/callback", interactions.callback),
    (Route.FOLLOW_UP, "POST", _WEBHOOK, interactions.follow_up),
    (Route.GET_RESPONSE, "GET", f"{_WEBHOOK}/messages/{{message_id}}", interactions.get_response),
    (Route.EDIT_RESPONSE, "PATCH", f"{_WEBHOOK}/messages/{{message_id}}", interactions.edit_response),
    (Route.DELETE_RESPONSE, "DELETE", f"{_WEBHOOK}/messages/{{message_id}}", interactions.delete_response),
)

_OPEN = frozenset(
    {
        Route.GET_GATEWAY,
        Route.CALLBACK,
        Route.FOLLOW_UP,
        Route.GET_RESPONSE,
        Route.EDIT_RESPONSE,
        Route.DELETE_RESPONSE,
    }
)
"""Routes that need no token of the bot; most have one in the address."""


def _entries() -> list[Entry]:
    return [
        Entry(route, method, tuple(path.strip("/").split("/")), handler, route not in _OPEN)
        for route, method, path, handler in _TABLE
    ]


ENTRIES = _entries()
_VERSION = re.compile(r"v\d+")


@dataclass(frozen=True, slots=True)
class Found:
    """What an address leads to."""

    entry: Entry | None
    path: Mapping[str, str]
    is_known: bool = False
    """Whether the address is there, if maybe not for this method."""
    is_old: bool = False
    """Whether it asks for another version of the API."""


def find(method: str, raw_path: str) -> Found:
    """Look an address up; it is as it was sent, with its percent signs."""
    parts = [unquote(part) for part in raw_path.strip("/").split("/")]
    if len(parts) < 2 or parts[0] != "api":
        return Found(None, {})
    if parts[1] != "v10":
        return Found(None, {}, is_old=_VERSION.fullmatch(parts[1]) is not None)
    known = False
    for entry in ENTRIES:
        path = entry.match(parts[2:])
        if path is not None:
            if entry.method == method:
                return Found(entry, path, is_known=True)
            known = True
    return Found(None, {}, is_known=known)
