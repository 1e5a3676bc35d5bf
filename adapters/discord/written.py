"""A person's text as they see it: what a client shows by a name, an emoji or a time, in words. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent_core.text.patterns import late

if TYPE_CHECKING:
    import discord


def without_mention(message: discord.Message, me: int) -> str | None:
    """The text without what names the bot; None if nothing does.

    It is named by itself (not in code, which Discord says in the list of mentions), and by the role that Discord made for it, which stands under the
    same name in a client's list; whether that role may be mentioned makes no difference to what a person sees.
    """
    names = [f"!?{me}"] if any(user.id == me for user in message.mentions) else []
    role = getattr(message.guild, "self_role", None) if "<@&" in message.content else None
    if role is not None:
        names.append(f"&{role.id}")
    if not names:
        return None
    text, count = re.subn(rf"<@(?:{'|'.join(names)})>[ ,:]*", "", message.content)
    return text.strip() if count else None


def written(text: str, message: discord.Message) -> str:
    """A text as a client shows it (https://docs.discord.com/developers/reference#message-formatting): people, roles and channels by their names, as far as
    they are known; emojis, commands and times in words. In code every sign is what it is."""
    if "<" not in text:
        return text
    names = {
        "user": {str(user.id): f"@{user.display_name}" for user in message.mentions},
        "role": {str(role.id): f"@{role.name}" for role in message.role_mentions},
        "channel": {str(channel.id): f"#{channel.name}" for channel in message.channel_mentions},
    }

    def seen(found: re.Match[str]) -> str:
        what, value = found.lastgroup or "", found[found.lastgroup or 0]
        match what:
            case "user" | "role" | "channel":
                return names[what].get(value, found[0])
            case "emoji" | "command":
                return value
            case "at":
                return _moment(int(value))
            case _:
                return found[0]

    return _SIGNS.sub(seen, text)


_SIGNS = late(
    r"(?P<code>```.*?```|`[^`\n]+`)|<@!?(?P<user>\d+)>|<@&(?P<role>\d+)>|<#(?P<channel>\d+)>|<a?(?P<emoji>:\w+:)\d+>"
    r"|<(?P<command>/[^:<>]+):\d+>|<t:(?P<at>-?\d{1,12})(?::\w)?>",
    re.DOTALL,
)


def _moment(seconds: int) -> str:
    """A time that each client shows in its person's zone."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"second {seconds}"
