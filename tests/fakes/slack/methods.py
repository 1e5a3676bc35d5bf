"""All methods of the fake, by name, with the scope that each needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.fakes.common import JsonObject
from tests.fakes.slack import agents, chat, files, reading, streams, views
from tests.fakes.slack.params import Params
from tests.fakes.slack.world import World

CONNECT = "apps.connections.open"
"""The one method that takes the app's token (`xapp-…`); it is in `server.py`, because it gives out addresses."""


@dataclass(frozen=True, slots=True)
class Method:
    """What a method does; gives what stands beside `"ok": true`."""

    run: Callable[[World, Params], JsonObject]
    scope: str = ""
    """One of several words, separated by blanks, is enough. Empty: none is needed."""


_READ = "channels:history groups:history im:history mpim:history"
_KNOW = "channels:read groups:read im:read mpim:read"

METHODS: Mapping[str, Method] = {
    "api.test": Method(reading.api_test),
    "auth.test": Method(reading.auth_test),
    "team.info": Method(reading.team_info, "team:read"),
    "users.info": Method(reading.users_info, "users:read"),
    "bots.info": Method(reading.bots_info, "users:read"),
    "conversations.info": Method(reading.conversations_info, _KNOW),
    "conversations.members": Method(reading.conversations_members, _KNOW),
    "conversations.open": Method(reading.conversations_open, "im:write mpim:write channels:manage"),
    "conversations.history": Method(reading.history, _READ),
    "conversations.replies": Method(reading.replies, _READ),
    "chat.postMessage": Method(chat.post_message, "chat:write"),
    "chat.postEphemeral": Method(chat.post_ephemeral, "chat:write"),
    "chat.update": Method(chat.update, "chat:write"),
    "chat.delete": Method(chat.delete, "chat:write"),
    "chat.getPermalink": Method(chat.permalink),
    "chat.startStream": Method(streams.start, "chat:write"),
    "chat.appendStream": Method(streams.append, "chat:write"),
    "chat.stopStream": Method(streams.stop, "chat:write"),
    "agents.sessions.setStatus": Method(agents.set_status, "chat:write"),
    "agents.sessions.rename": Method(agents.rename, "chat:write"),
    "assistant.threads.setStatus": Method(agents.set_thinking, "chat:write assistant:write"),
    "assistant.threads.setTitle": Method(agents.set_title, "assistant:write"),
    "assistant.threads.setSuggestedPrompts": Method(agents.set_prompts, "assistant:write"),
    "reactions.add": Method(chat.add_reaction, "reactions:write"),
    "reactions.remove": Method(chat.remove_reaction, "reactions:write"),
    "views.open": Method(views.open_view),
    "views.update": Method(views.update_view),
    "views.publish": Method(views.publish_view),
    "files.getUploadURLExternal": Method(files.get_upload_url, "files:write"),
    "files.completeUploadExternal": Method(files.complete_upload, "files:write"),
    "files.info": Method(files.info, "files:read"),
}

SCOPES = frozenset(word for method in METHODS.values() for word in method.scope.split()) | {
    "app_mentions:read",
    "commands",
    "reactions:read",
}
"""Every scope that any method or event needs; an app has all of them unless told otherwise."""
