"""Who is told that a message mentions them (https://docs.discord.com/developers/resources/message#allowed-mentions-object). No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.fakes.discord.forms import Form
from tests.fakes.discord.objects import Channel, Guild, Mentions, Message, User

_USER = re.compile(r"<@!?(\d{1,20})>")
_ROLE = re.compile(r"<@&(\d{1,20})>")
_EVERYONE = re.compile(r"@(?:everyone|here)\b")


@dataclass(frozen=True, slots=True)
class Allowed:
    """What `allowed_mentions` lets through; None: all of the kind."""

    users: frozenset[int] | None = None
    roles: frozenset[int] | None = None
    everyone: bool = True
    replied_user: bool = True


ALL = Allowed()


def read_allowed(form: Form) -> Allowed:
    """The field `allowed_mentions`; without it everything is let through. What is wrong is noted in the form."""
    inner = form.object("allowed_mentions")
    if inner is None:
        return ALL
    kinds = inner.array("parse") or []
    for kind in kinds:
        if kind not in {"users", "roles", "everyone"}:
            inner.flaw("parse", "BASE_TYPE_CHOICES", "Value must be one of ('users', 'roles', 'everyone').")
    users, roles = inner.snowflakes("users"), inner.snowflakes("roles")
    for name, listed in (("users", users), ("roles", roles)):
        if listed and name in kinds:
            message = f'parse:["{name}"] and {name}: [ids...] are mutually exclusive.'
            form.flaw("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", message)
    return Allowed(
        None if "users" in kinds else frozenset(users or ()),
        None if "roles" in kinds else frozenset(roles or ()),
        "everyone" in kinds,
        inner.flag("replied_user"),
    )


def find(content: str, channel: Channel, allowed: Allowed, reply_to: Message | None, *, may_ping_all: bool) -> Mentions:
    """Whom a message mentions. `may_ping_all`: its author has the permission to mention everyone and every role."""
    guild = channel.guild
    users = [int(number) for number in _USER.findall(content)]
    users = [number for number in users if allowed.users is None or number in allowed.users]
    roles: list[int] = []
    if guild is not None:
        for number in map(int, _ROLE.findall(content)):
            role = guild.roles.get(number)
            if role is not None and (may_ping_all or role.mentionable):
                roles.append(number)
        roles = [number for number in roles if allowed.roles is None or number in allowed.roles]
    everyone = guild is not None and may_ping_all and allowed.everyone and _EVERYONE.search(content) is not None
    replied = reply_to.author.id if reply_to is not None and allowed.replied_user else None
    if replied is not None:
        users.append(replied)
    return Mentions(tuple(dict.fromkeys(users)), tuple(dict.fromkeys(roles)), everyone, replied)


def pinged(mentions: Mentions, channel: Channel, author: User) -> frozenset[int]:
    """The ids of those who are notified: everybody who is there and mentioned in some way, except the author."""
    there = _there(channel)
    told = set(mentions.users)
    if channel.guild is not None:
        if mentions.everyone:
            told |= there
        told |= {number for number in there if _has_role(channel.guild, number, mentions.roles)}
    return frozenset((told & there) - {author.id})


def _there(channel: Channel) -> set[int]:
    if channel.guild is not None:
        return set(channel.guild.members)
    assert channel.recipient is not None
    assert channel.owner_id is not None
    return {channel.recipient.id, channel.owner_id}


def _has_role(guild: Guild, user_id: int, roles: tuple[int, ...]) -> bool:
    return any(role.id in roles for role in guild.members[user_id].roles)
