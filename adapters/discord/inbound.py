"""What the library's client tells the adapter, and from Discord's messages and interactions to our words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from adapters.contract.chat import (
    ChatAddress,
    ChatKind,
    ChatMessage,
    ChatOrigin,
    ChatPerson,
)
from adapters.contract.intake import Whence
from adapters.discord.beside import beside, quoted
from adapters.discord.written import without_mention, written
from agent_core.records import dataclass
from agent_core.text.typed import as_command

if TYPE_CHECKING:
    import discord


@dataclass(frozen=True, slots=True)
class Began:
    """A session has begun that knows nothing of what was before. `shard`: the connection's number; None: there is only one."""

    shard: int | None


@dataclass(frozen=True, slots=True)
class Complete:
    """The servers of a connection are known; or one of them, that was out of reach until now."""

    shard: int | None
    server: int | None = None


@dataclass(frozen=True, slots=True)
class Brought:
    """What a person did, as the gateway told it: the event's name, and its JSON."""

    kind: str
    data: Any
    shard: int | None = None
    seq: int | None = None
    """Its place in the session of its connection."""


Happened: TypeAlias = Began | Complete | Brought


@dataclass(frozen=True, slots=True)
class SaidIn:
    """Where something was said that came by a connection."""

    channel: str
    number: int
    """The message's id."""
    shard: int
    """The connection's number; 0 if there is only one."""
    private: bool


def heard_of(told: Mapping[str, Any], shards: int) -> SaidIn:
    """By the JSON of a message, of an account with so many connections (0: it has one). Raises whatever it wants."""
    guild = told.get("guild_id")
    shard = 0 if guild is None else (int(guild) >> 22) % (shards or 1)
    return SaidIn(str(int(told["channel_id"])), int(told["id"]), shard, guild is None)


def parties(data: object) -> frozenset[str]:
    """The channel and the person of an event, whatever else is in it: what comes of either is taken in its order."""
    told = _table(data)
    user = told.get("author") or told.get("user") or _table(told.get("member")).get("user")
    return frozenset(str(one) for one in (told.get("channel_id"), _table(user).get("id")) if one is not None)


def _table(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else _EMPTY


_EMPTY: Mapping[str, object] = {}


def by_a_bot(told: Mapping[str, Any]) -> bool:
    """Whether a message is a program's, ours among them: it means nothing for us (`read_message`), and need not be read to know that."""
    return _table(told.get("author")).get("bot") is True


PLATFORM = "discord"
NEARLY_FULL = 1_900
"""People cut a long text by hand at Discord's 2 000 characters."""
_COMMAND = re.compile(r"/([A-Za-z]{2,32})(?:\s+(.*))?", re.DOTALL)
"""One in words. What a late one means is not changed by its being late, so no mark of that stands in its words."""


def person_of(user: discord.User | discord.Member, language: str = "") -> ChatPerson:
    return ChatPerson(str(user.id), user.display_name, user.name, language=language)


def address_of(channel: Any, account: str) -> tuple[ChatAddress, ChatKind]:
    """A thread is seen as a part of its channel."""
    from adapters.discord.library import discord

    parent = channel.parent_id if isinstance(channel, discord.Thread) else None
    chat, thread = (str(parent), str(channel.id)) if parent else (str(channel.id), "")
    # A server that is not known (yet) has a number only.
    private = getattr(channel, "guild", None) is None and getattr(channel, "guild_id", None) is None
    return ChatAddress(PLATFORM, account, chat, thread), ChatKind.PRIVATE if private else ChatKind.GROUP


def read_message(
    message: discord.Message, me: int, account: str, *, edited: bool = False, late: str = ""
) -> ChatMessage | None:
    """What a message means for us; None if nothing. `late` is put before the words of one that waited for us."""
    from adapters.discord.library import discord

    if message.author.bot or message.type not in (discord.MessageType.default, discord.MessageType.reply):
        return None
    answered = message.reference.resolved if message.reference is not None else None
    answered = answered if isinstance(answered, discord.Message) else None
    to_us = answered is not None and answered.author.id == me
    others = None if to_us else answered
    brought = beside(message, others)
    text = without_mention(message, me)
    for_us = text is not None
    text = written(message.content if text is None else text, message)
    if not (for_us or text or brought.words or brought.files):
        return None
    address, kind = address_of(message.channel, account)
    found = _COMMAND.fullmatch(as_command(text))
    before = quoted(others) if others is not None else ""
    whole = "\n".join(piece for piece in (before, brought.words, text) if piece)
    cut = len(message.content) >= NEARLY_FULL
    origin = ChatOrigin(
        address,
        kind,
        person_of(message.author),
        str(message.id),
        brought.files,
        unfinished=cut,
        foreign=brought.foreign,
    )
    return ChatMessage(
        origin=origin,
        key=f"{message.channel.id}:{message.id}",
        text=(found[2] or "").strip() if found else late + whole,
        command=found[1].lower() if found else "",
        typed=late + whole if found else "",
        for_us=for_us,
        reply_to_us=to_us,
        edited=edited,
        said_at=round(message.created_at.timestamp() * 1000),
    )


def whence(kind: str, data: Mapping[str, Any], me: int, account: str) -> Whence:
    """Whose an event is that cannot be read, as far as it says so. Raises whatever it wants."""
    private = data.get("guild_id") is None
    user = data.get("author") or data.get("user") or data["member"]["user"]
    address = ChatAddress(PLATFORM, account, str(int(data["channel_id"])))
    for_us = private or kind == "INTERACTION_CREATE" or f"<@{me}>" in str(data.get("content")).replace("<@!", "<@")
    return Whence(address, str(int(user["id"])), for_us)


def read_interaction(interaction: discord.Interaction[Any], account: str) -> ChatMessage | None:
    """A slash command or a pressed button."""
    from adapters.discord.library import discord

    if interaction.channel is None:
        return None
    address, kind = address_of(interaction.channel, account)
    data = cast("dict[str, Any]", interaction.data or {})
    key = f"interaction:{interaction.id}"
    if interaction.type is discord.InteractionType.component:
        number = str(interaction.message.id) if interaction.message is not None else ""
        origin = ChatOrigin(address, kind, person_of(interaction.user, str(interaction.locale)), number)
        return ChatMessage(origin=origin, key=key, text=str(data.get("custom_id", "")), command="press", for_us=True)
    if interaction.type is discord.InteractionType.application_command:
        words = next((str(option["value"]) for option in data.get("options", ()) if option.get("name") == "words"), "")
        origin = ChatOrigin(address, kind, person_of(interaction.user, str(interaction.locale)))
        return ChatMessage(origin=origin, key=key, text=words, command=str(data.get("name", "")), for_us=True)
    return None
