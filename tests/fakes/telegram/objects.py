"""What there is on the fake Telegram: users, chats, topics, messages, files, and the JSON in which bots see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tests.fakes.common import Json, JsonObject
from tests.fakes.telegram.entities import Entity
from tests.fakes.telegram.keyboards import Keyboard


@dataclass(frozen=True, slots=True)
class User:
    """A person or a bot."""

    id: int
    first_name: str
    username: str | None = None
    last_name: str | None = None
    language_code: str | None = "en"
    is_bot: bool = False

    def to_json(self) -> JsonObject:
        """The User object."""
        body: JsonObject = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        if self.last_name:
            body["last_name"] = self.last_name
        if self.username:
            body["username"] = self.username
        if self.language_code and not self.is_bot:
            body["language_code"] = self.language_code
        return body


class ChatKind(StrEnum):
    """The `type` of a chat. Channels are not there."""

    PRIVATE = "private"
    GROUP = "group"
    SUPERGROUP = "supergroup"


class Role(StrEnum):
    """The `status` of a member of a group."""

    CREATOR = "creator"
    ADMINISTRATOR = "administrator"
    MEMBER = "member"
    LEFT = "left"
    KICKED = "kicked"


INSIDE = frozenset({Role.CREATOR, Role.ADMINISTRATOR, Role.MEMBER})
IN_CHARGE = frozenset({Role.CREATOR, Role.ADMINISTRATOR})


@dataclass(slots=True)
class Topic:
    """A topic of a forum (or of a private chat); its number is that of the message that opened it."""

    id: int
    name: str
    icon_color: int = 0x6FB9F0
    closed: bool = False


class MediaKind(StrEnum):
    """Under which key a message carries its file."""

    DOCUMENT = "document"
    PHOTO = "photo"
    VOICE = "voice"
    AUDIO = "audio"
    VIDEO = "video"
    VIDEO_NOTE = "video_note"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file on the server."""

    id: str
    unique_id: str
    path: str
    name: str
    mime_type: str
    data: bytes
    size_bytes: int
    """What the server says; a test may claim more than is there."""


@dataclass(frozen=True, slots=True)
class Media:
    """A file as a message carries it."""

    kind: MediaKind
    file: StoredFile
    width: int = 0
    height: int = 0

    def to_json(self) -> JsonObject | list[JsonObject]:
        """A Document object, or the PhotoSize objects of a photo: a small one, and the whole."""
        file = self.file
        body: JsonObject = {"file_id": file.id, "file_unique_id": file.unique_id, "file_size": file.size_bytes}
        match self.kind:
            case MediaKind.DOCUMENT:
                return {**body, "file_name": file.name, "mime_type": file.mime_type}
            case MediaKind.VOICE | MediaKind.VIDEO_NOTE:  # these have no names
                return {**body, "duration": 1, "mime_type": file.mime_type}
            case MediaKind.AUDIO | MediaKind.VIDEO:
                return {**body, "duration": 1, "file_name": file.name, "mime_type": file.mime_type}
            case MediaKind.PHOTO:
                whole: JsonObject = {**body, "width": self.width, "height": self.height}
                small: JsonObject = {**body, "file_unique_id": f"{file.unique_id}s", "width": 90, "height": 90}
                return [small, whole]


@dataclass(slots=True)
class Message:
    """A message, as it is now; what it said before is in `earlier`."""

    chat: Chat
    id: int
    date: int
    """Unix seconds."""
    sender: User
    text: str = ""
    """The text, or the caption if there is a file."""
    entities: list[Entity] = field(default_factory=list[Entity])
    thread: int | None = None
    reply_to: Message | None = None
    quote: str | None = None
    keyboard: Keyboard | None = None
    media: Media | None = None
    album: str | None = None
    service: JsonObject | None = None
    """The fields of a service message, such as `{"new_chat_title": "…"}`."""
    more: JsonObject = field(default_factory=dict[str, "Json"])
    """Further fields of a person's message: a location, a contact, where it was forwarded from."""
    edited_at: int | None = None
    """Unix seconds of the last edit that people see as one; a change of buttons alone is none."""
    earlier: list[str] = field(default_factory=list[str])
    """Its texts before each edit, oldest first."""
    reactions: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """Emojis by user."""
    silent: bool = False
    deleted: bool = False
    pinned: bool = False


@dataclass(slots=True)
class Chat:
    """A chat with everything that was ever said in it."""

    id: int
    kind: ChatKind
    title: str = ""
    user: User | None = None
    """The person of a private chat."""
    is_forum: bool = False
    has_topics: bool = False
    """Whether a private chat has topics (Bot API 9.3)."""
    members: dict[int, Role] = field(default_factory=dict[int, Role])
    topics: dict[int, Topic] = field(default_factory=dict[int, Topic])
    messages: dict[int, Message] = field(default_factory=dict[int, Message])
    migrated_to: int | None = None
    started: bool = True
    """Whether the person of a private chat has written to the bot."""
    blocked: bool = False
    deactivated: bool = False
    bot_may_write: bool = True

    def to_json(self) -> JsonObject:
        """The Chat object."""
        body: JsonObject = {"id": self.id, "type": self.kind.value}
        if self.user is not None:
            body["first_name"] = self.user.first_name
            if self.user.last_name:
                body["last_name"] = self.user.last_name
            if self.user.username:
                body["username"] = self.user.username
        else:
            body["title"] = self.title
        if self.is_forum:
            body["is_forum"] = True
        if self.kind is ChatKind.GROUP:
            body["all_members_are_administrators"] = False
        return body


@dataclass(frozen=True, slots=True)
class Draft:
    """A message on its way, as the person sees it above the input line. An empty text shows that the bot thinks."""

    draft_id: int
    text: str
    entities: tuple[Entity, ...]
    thread: int | None
    changes: int
    """How often this draft was sent; 1 at first."""
    until: float
    """Monotonic seconds at which it fades."""


@dataclass(frozen=True, slots=True)
class Toast:
    """What the person who pressed a button gets to see."""

    text: str
    alert: bool
    url: str | None = None


@dataclass(slots=True)
class Press:
    """A button pressed; `toast` is there once the bot has answered, and until then the button shows a clock."""

    id: str
    user: User
    message: Message
    data: str
    at: float
    """Monotonic seconds."""
    toast: Toast | None = None
