"""The Slack app as this program needs it: scopes, events and switches, each with its reason. Pure data, and the only list of it.

`setup` opens Slack's form filled in with it, `doctor` compares the granted scopes with it, ``deploy/slack-manifest.yaml`` is
printed from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from agent_core.jsonvalue import Json

APPS = "https://api.slack.com/apps"

SCOPES: Mapping[str, str] = {
    "app_mentions:read": "hears when it is mentioned in a channel",
    "assistant:write": "shows how an agent session is doing, suggested prompts, and the stop button",
    "channels:history": "reads what it missed in public channels, and whether a post of unknown fate arrived",
    "chat:write": "answers",
    "commands": "offers /outspoken",
    "files:read": "takes files that people send it",
    "files:write": "sends files and long code",
    "groups:history": "the same as channels:history, in private channels to which it was invited",
    "im:history": "hears what people write to it in private, and reads what it missed there",
    "im:read": "knows which private chats it has",
    "im:write": "writes to a person in private when it may not write where it was asked",
    "reactions:read": "sees reactions to its messages",
    "reactions:write": "marks a message that waits",
    "users:read": "knows the names of those who speak in a channel",
}
"""Every scope of the bot token, with what it is for. ``mpim:history`` may be added for group chats."""
EVENTS: Mapping[str, str] = {
    "agent_session_stopped": "somebody pressed the stop button, which Slack shows only with this event",
    "app_home_opened": "somebody opened the app: suggested prompts are set",
    "app_mention": "a mention in a channel",
    "message.channels": "goes on in a thread of a public channel without being mentioned again; leave it out if it need not",
    "message.groups": "the same in private channels",
    "message.im": "a private message",
}
PROMPTS = (
    ("What can you do?", "What can you do, and which tools do you have?"),
    ("Write a file", "Write a short shopping list into list.txt and send me the file."),
)
NAME = "outspoken"
DESCRIPTION = (
    "One agent that is never silent: every message ends in an answer, or in a notice that says what was not done."
)
COMMANDS = "help, new, stop, retry, undo, status, why, model, queue, steer, usage"


def manifest() -> Mapping[str, Json]:
    """The manifest as Slack reads it (https://docs.slack.dev/reference/app-manifest)."""
    prompts: list[Json] = [{"title": title, "message": message} for title, message in PROMPTS]
    command: Json = {
        "command": f"/{NAME}",
        "description": COMMANDS,
        "usage_hint": "[command] [words]",
        "should_escape": False,
    }
    return {
        "display_information": {"name": NAME, "description": "An agent that is never silent."},
        "features": {
            "agent_view": {"agent_description": DESCRIPTION, "suggested_prompts": prompts},
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": NAME, "always_online": True},
            "slash_commands": [command],
        },
        "oauth_config": {"scopes": {"bot": [*SCOPES]}},
        "settings": {
            "event_subscriptions": {"bot_events": [*EVENTS]},
            "interactivity": {"is_enabled": True},
            "org_deploy_enabled": False,
            "socket_mode_enabled": True,
            "token_rotation_enabled": False,
        },
    }


def new_app_url() -> str:
    """The address that opens Slack's form for a new app, filled in."""
    text = json.dumps(manifest(), separators=(",", ":"))
    return f"{APPS}?new_app=1&manifest_json={quote(text, safe='')}"


HEAD = """\
# The Slack app for outspoken: https://api.slack.com/apps, Create New App, From a manifest, your workspace, and this file.
# (outspoken setup slack prints an address that opens the form with it filled in.)
# After Install to Workspace, OAuth & Permissions has the bot token; Basic Information, App-Level Tokens gives the token for
# Socket Mode, with the scope connections:write. With Socket Mode no public address is needed.
"""


def as_yaml() -> str:
    """The manifest as YAML, with the reason behind each scope and event."""
    return HEAD + "\n".join(_table(manifest(), 0)) + "\n"


def _table(table: Mapping[str, Json], depth: int) -> list[str]:
    lines: list[str] = []
    for key, value in table.items():
        lead = f"{'  ' * depth}{key}:"
        match value:
            case dict():
                lines += [lead, *_table(value, depth + 1)]
            case list():
                lines += [lead, *(line for item in value for line in _item(item, depth + 1))]
            case _:
                lines.append(f"{lead} {_scalar(value)}")
    return lines


def _item(value: Json, depth: int) -> list[str]:
    lead = "  " * depth
    if isinstance(value, dict):
        first, *rest = _table(value, depth + 1)
        return [f"{lead}- {first.lstrip()}", *rest]
    reason = {**SCOPES, **EVENTS}.get(str(value), "")
    return [f"{lead}- {_scalar(value)}{f'  # {reason}' if reason else ''}"]


def _scalar(value: Json) -> str:
    """A value that YAML reads as what it is: words of letters, dots, slashes and inner colons need no quotation marks."""
    if isinstance(value, str):
        plain = value.replace(":", "").replace(".", "").replace("_", "").removeprefix("/").isalnum()
        return value if plain else json.dumps(value)
    return json.dumps(value)
