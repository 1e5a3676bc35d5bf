"""What a person sees in a channel. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes.discord.components import Button, Select
from tests.fakes.discord.objects import WRITTEN, Channel, Flag, Message, MessageKind, User
from tests.fakes.discord.world import World


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file under a message."""

    name: str
    mime_type: str | None
    data: bytes
    description: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A message on the screen, as it was when it was looked at."""

    id: int
    by_bot: bool
    author: str
    text: str
    kind: MessageKind
    buttons: tuple[tuple[str, ...], ...]
    """The labels of the buttons, row by row."""
    grey: tuple[str, ...]
    """The labels of buttons that cannot be pressed."""
    menus: tuple[tuple[str, ...], ...]
    """The labels in each menu."""
    edits: int
    """How often it was changed, in whatever way."""
    earlier: tuple[str, ...]
    """The texts before."""
    is_marked_edited: bool
    reply_to: int | None
    """The message that it answers, be it deleted or not."""
    files: tuple[ShownFile, ...]
    embeds: tuple[str, ...]
    """Titles and descriptions."""
    reactions: tuple[tuple[str, int], ...]
    pinged: frozenset[str]
    """The names of those who were notified when it came."""
    silent: bool
    ephemeral: bool
    thinking: bool
    """Only "… is thinking" is there yet."""
    thread: int | None
    """The thread that hangs on it."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A channel, as it is seen at one moment."""

    messages: Sequence[Shown]
    """In order; deleted ones are not there."""
    removed: Sequence[Shown]
    """What was there and was deleted, as it was at the end. Nobody sees it any more."""
    typing: bool
    """Whether the bot is shown to type."""

    @property
    def texts(self) -> list[str]:
        """The texts of all messages."""
        return [message.text for message in self.messages]

    @property
    def answers(self) -> list[Shown]:
        """What the bot has written."""
        return [message for message in self.messages if message.by_bot and message.kind in WRITTEN]


def _shown(world: World, message: Message) -> Shown:
    pressable = [tuple(one for one in row.items if isinstance(one, Button)) for row in message.rows]
    menus = [one for row in message.rows for one in row.items if isinstance(one, Select)]
    files = [ShownFile(one.name, one.mime_type, one.data, one.description) for one in message.attachments]
    embeds = [one for one in message.embeds if isinstance(one, dict)]
    hides = Flag.SUPPRESS_EMBEDS in message.flags
    return Shown(
        id=message.id,
        by_bot=message.author.id == world.bot.id,
        author=message.author.shown_name,
        text=message.content,
        kind=message.kind,
        buttons=tuple(tuple(one.label for one in row) for row in pressable if row),
        grey=tuple(one.label for row in pressable for one in row if one.disabled),
        menus=tuple(tuple(label for label, _ in menu.options) for menu in menus),
        edits=message.edits,
        earlier=tuple(message.earlier),
        is_marked_edited=message.edited_at is not None,
        reply_to=None if message.reply_to is None else message.reply_to.id,
        files=tuple(files),
        embeds=() if hides else tuple(f"{one.get('title') or ''}\n{one.get('description') or ''}" for one in embeds),
        reactions=tuple((emoji, len(users)) for emoji, users in message.reactions.items()),
        pinged=frozenset(world.users[number].shown_name for number in message.pinged),
        silent=Flag.SUPPRESS_NOTIFICATIONS in message.flags,
        ephemeral=message.ephemeral,
        thinking=Flag.LOADING in message.flags,
        thread=None if message.thread is None else message.thread.id,
    )


def _is_for(message: Message, user: User | None) -> bool:
    if not message.ephemeral:
        return True
    return user is not None and message.interaction is not None and message.interaction.user is user


def screen(world: World, channel: Channel, user: User | None = None) -> Screen:
    """What a person sees in a channel; None: what everybody sees, without ephemeral messages."""
    for_them = [message for message in channel.messages.values() if _is_for(message, user)]
    return Screen(
        [_shown(world, message) for message in for_them if not message.deleted],
        [_shown(world, message) for message in for_them if message.deleted],
        world.bot.id in world.typists(channel),
    )
