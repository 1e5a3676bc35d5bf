"""What there is on Discord: users, guilds, channels, messages, files, interactions. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, IntFlag

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.components import Row


class ChannelKind(IntEnum):
    """Channel types."""

    TEXT = 0
    DM = 1
    VOICE = 2
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12


THREADS = frozenset({ChannelKind.PUBLIC_THREAD, ChannelKind.PRIVATE_THREAD})


class MessageKind(IntEnum):
    """Message types."""

    DEFAULT = 0
    THREAD_CREATED = 18
    REPLY = 19
    COMMAND = 20
    THREAD_STARTER = 21


WRITTEN = frozenset({MessageKind.DEFAULT, MessageKind.REPLY, MessageKind.COMMAND})
"""Messages that somebody wrote; the others tell what happened."""


class Flag(IntFlag):
    """Message flags."""

    SUPPRESS_EMBEDS = 1 << 2
    HAS_THREAD = 1 << 5
    EPHEMERAL = 1 << 6
    LOADING = 1 << 7
    SUPPRESS_NOTIFICATIONS = 1 << 12
    VOICE = 1 << 13


NO_FLAGS = Flag(0)


class Permission(IntFlag):
    """The permissions that the fake looks at (https://docs.discord.com/developers/topics/permissions)."""

    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38


NO_PERMISSION = Permission(0)
USUAL = (
    Permission.ADD_REACTIONS
    | Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.ATTACH_FILES
    | Permission.READ_MESSAGE_HISTORY
    | Permission.CREATE_PUBLIC_THREADS
    | Permission.CREATE_PRIVATE_THREADS
    | Permission.SEND_MESSAGES_IN_THREADS
)
"""What a bot may do that was given what chat bots ask for."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody, or the bot."""

    id: int
    name: str
    display_name: str = ""
    is_bot: bool = False

    @property
    def mention(self) -> str:
        """What one writes to mention them."""
        return f"<@{self.id}>"

    @property
    def shown_name(self) -> str:
        """What others see."""
        return self.display_name or self.name


@dataclass(slots=True, eq=False)
class Role:
    """A role of a guild."""

    id: int
    name: str
    permissions: Permission = NO_PERMISSION
    mentionable: bool = False
    bot_id: int | None = None
    """Whose own role it is, if it is a bot's."""

    @property
    def mention(self) -> str:
        """What one writes to mention all who have it."""
        return f"<@&{self.id}>"


@dataclass(slots=True, eq=False)
class Member:
    """A user in a guild."""

    user: User
    joined_at: datetime
    roles: list[Role] = field(default_factory=list[Role])
    nick: str | None = None


@dataclass(slots=True, eq=False)
class Guild:
    """A server."""

    id: int
    name: str
    owner: User
    joined_at: datetime
    bot_role: Role
    members: dict[int, Member] = field(default_factory=dict[int, Member])
    roles: dict[int, Role] = field(default_factory=dict[int, Role])
    channels: dict[int, Channel] = field(default_factory=dict[int, "Channel"])
    """Its channels and threads."""
    emojis: dict[int, str] = field(default_factory=dict[int, str])
    """Names of its own emojis by id."""
    has_bot: bool = True
    available: bool = True


@dataclass(slots=True, eq=False)
class Channel:
    """A channel, thread or DM."""

    id: int
    kind: ChannelKind
    name: str = ""
    guild: Guild | None = None
    recipient: User | None = None
    """The person, in a DM."""
    parent: Channel | None = None
    """The channel of a thread."""
    owner_id: int | None = None
    """Who opened a thread."""
    messages: dict[int, Message] = field(default_factory=dict[int, "Message"])
    """All that were ever there, deleted ones too."""
    denied: Permission = NO_PERMISSION
    """What the bot may not do here although its role allows it."""
    refuses: bool = False
    """Whether the person of a DM takes no messages from the bot."""
    archived: bool = False
    locked: bool = False
    archive_minutes: int = 1440
    members: set[int] = field(default_factory=set[int])
    """Who is in a thread."""
    changed_at: datetime | None = None
    """When a thread was archived or opened again."""
    slowmode_seconds: int = 0
    topic: str | None = None

    @property
    def is_thread(self) -> bool:
        """Whether it is a thread."""
        return self.kind in THREADS

    @property
    def mention(self) -> str:
        """What one writes to link it."""
        return f"<#{self.id}>"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message."""

    id: int
    name: str
    mime_type: str | None
    """None if the server cannot tell."""
    data: bytes
    path: str
    """Where it lies, from the origin on, with its signature."""
    expires_at: float
    """Unix seconds after which the link is dead."""
    description: str | None = None
    claimed_bytes: int | None = None
    """The size that the server says it has, if not the true one."""

    @property
    def size(self) -> int:
        """The size that the server says."""
        return len(self.data) if self.claimed_bytes is None else self.claimed_bytes


@dataclass(frozen=True, slots=True)
class Mentions:
    """Whom a message mentions so that they are told."""

    users: tuple[int, ...] = ()
    roles: tuple[int, ...] = ()
    everyone: bool = False
    replied: int | None = None
    """Whoever wrote the message that is answered, if that pings them."""


@dataclass(slots=True, eq=False)
class Message:
    """A message with its past."""

    channel: Channel
    id: int
    author: User
    content: str
    kind: MessageKind = MessageKind.DEFAULT
    reply_to: Message | None = None
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    embeds: list[Json] = field(default_factory=list["Json"])
    rows: list[Row] = field(default_factory=list[Row])
    flags: Flag = NO_FLAGS
    nonce: str | int | None = None
    tts: bool = False
    mentions: Mentions = Mentions()
    pinged: frozenset[int] = frozenset()
    """The ids of those who were notified when it came."""
    edited_at: datetime | None = None
    earlier: list[str] = field(default_factory=list[str])
    """The contents before."""
    edits: int = 0
    """How often it was changed, in whatever way."""
    deleted: bool = False
    reactions: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Ids of those who reacted, by emoji (`name:id` for a guild's own)."""
    thread: Channel | None = None
    """The thread that was opened from it."""
    interaction: Interaction | None = None
    """What it answers, if it answers an interaction."""
    more: JsonObject = field(default_factory=dict[str, "Json"])
    """Further fields of a person's message: a poll, stickers, what is forwarded."""

    @property
    def ephemeral(self) -> bool:
        """Whether only one person sees it."""
        return Flag.EPHEMERAL in self.flags


class InteractionKind(IntEnum):
    """Interaction types."""

    COMMAND = 2
    COMPONENT = 3
    AUTOCOMPLETE = 4
    MODAL = 5


class Callback(IntEnum):
    """Interaction callback types."""

    MESSAGE = 4
    DEFERRED_MESSAGE = 5
    DEFERRED_UPDATE = 6
    UPDATE = 7
    CHOICES = 8
    MODAL = 9


@dataclass(slots=True, eq=False)
class Interaction:
    """Somebody used a command, a component or a form."""

    id: int
    token: str
    kind: InteractionKind
    user: User
    channel: Channel
    data: JsonObject
    at: float
    """Monotonic seconds of the fake's clock."""
    message: Message | None = None
    """Where the component is."""
    callback: Callback | None = None
    """How the bot answered, if it did."""
    original: Message | None = None
    """The message that `@original` means."""
    modal: JsonObject | None = None
    """The form that the person was shown."""
    choices: list[Json] | None = None
    """What was proposed while the person typed."""
    followups: list[Message] = field(default_factory=list[Message])

    @property
    def answered(self) -> bool:
        """Whether the bot has acknowledged it."""
        return self.callback is not None
