"""What a person sees in a chat. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes.telegram.entities import Entity, Kind
from tests.fakes.telegram.keyboards import KeyboardKind
from tests.fakes.telegram.objects import Chat, Draft, Media, Message
from tests.fakes.telegram.world import World


@dataclass(frozen=True, slots=True)
class Shown:
    """A message on the screen, as it was when it was looked at."""

    id: int
    by_bot: bool
    sender: str
    text: str
    entities: tuple[Entity, ...]
    buttons: tuple[tuple[str, ...], ...]
    """The captions of the inline keyboard's buttons, row by row."""
    edits: int
    """How often the text was changed."""
    earlier: tuple[str, ...]
    """The texts before."""
    thread: int | None
    reply_to: int | None
    media: Media | None
    album: str | None
    reactions: tuple[str, ...]
    silent: bool
    is_service: bool

    def styled(self, kind: Kind) -> list[str]:
        """The pieces of text that are shown in one style."""
        return [entity.of(self.text) for entity in self.entities if entity.kind is kind]


@dataclass(frozen=True, slots=True)
class Screen:
    """A chat, as it is seen at one moment."""

    messages: Sequence[Shown]
    """In order; deleted ones are not there."""
    drafts: Sequence[Draft]
    """The drafts that have not faded."""
    action: str | None
    """What the bot is shown to do, such as "typing"."""

    @property
    def typing(self) -> bool:
        """Whether the bot is shown to type."""
        return self.action == "typing"

    @property
    def texts(self) -> list[str]:
        """The texts of all messages."""
        return [message.text for message in self.messages]

    @property
    def answers(self) -> list[Shown]:
        """What the bot has written."""
        return [message for message in self.messages if message.by_bot and not message.is_service]


def _shown(world: World, message: Message) -> Shown:
    inline = message.keyboard if message.keyboard and message.keyboard.kind is KeyboardKind.INLINE else None
    return Shown(
        id=message.id,
        by_bot=message.sender.id == world.bot.id,
        sender=message.sender.first_name,
        text=message.text,
        entities=tuple(message.entities),
        buttons=tuple(tuple(button.text for button in row) for row in inline.rows) if inline else (),
        edits=len(message.earlier),
        earlier=tuple(message.earlier),
        thread=message.thread,
        reply_to=message.reply_to.id if message.reply_to is not None and not message.reply_to.deleted else None,
        media=message.media,
        album=message.album,
        reactions=tuple(emoji for emojis in message.reactions.values() for emoji in emojis),
        silent=message.silent,
        is_service=message.service is not None,
    )


def screen(world: World, chat: Chat, thread: int | None = None) -> Screen:
    """What is seen in a chat, or in one topic of it."""
    messages = [message for message in chat.messages.values() if not message.deleted]
    drafts = world.drafts(chat)
    action = world.action(chat)
    if thread is not None:
        messages = [message for message in messages if message.thread == thread]
        drafts = [draft for draft in drafts if draft.thread == thread]
        action = action if action and action.thread == thread else None
    return Screen([_shown(world, message) for message in messages], drafts, action.name if action else None)
