"""What there is on the fake Slack: users, channels, messages, streams, sessions, files, views. State only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tests.fakes.common import Json, JsonObject


@dataclass(frozen=True, slots=True)
class User:
    """A person or the user of a bot."""

    id: str
    name: str
    """The handle, without `@`."""
    real_name: str
    is_bot: bool = False
    bot_id: str | None = None
    """The id under which a bot's messages are known (`B…`)."""
    app_id: str | None = None
    tz: str = "Europe/Berlin"
    locale: str = "en-US"
    deleted: bool = False

    def to_json(self, team: str) -> JsonObject:
        """The user object."""
        profile: JsonObject = {"real_name": self.real_name, "display_name": self.name, "team": team}
        if self.bot_id:
            profile["bot_id"] = self.bot_id
        return {
            "id": self.id,
            "team_id": team,
            "name": self.name,
            "real_name": self.real_name,
            "deleted": self.deleted,
            "is_bot": self.is_bot,
            "is_app_user": False,
            "tz": self.tz,
            "profile": profile,
        }


class ChannelKind(StrEnum):
    """The `channel_type` of events."""

    IM = "im"
    CHANNEL = "channel"
    GROUP = "group"
    """A private channel."""
    MPIM = "mpim"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file on the server."""

    id: str
    name: str
    title: str
    mime_type: str
    data: bytes
    user: str
    created: int
    size_bytes: int
    """What the server says; a test may claim more than is there."""
    subtype: str = ""
    elsewhere: bool = False
    """It is another workspace's: a message says no more of it than its id."""

    @property
    def filetype(self) -> str:
        """Slack's word for the kind of file."""
        return self.name.rpartition(".")[2].lower() if "." in self.name else "binary"


class StreamState(StrEnum):
    """How a streamed message stands."""

    OPEN = "open"
    DONE = "done"
    """Ended by `chat.stopStream`."""
    STOPPED = "stopped"
    """Ended by a person's press on Stop."""
    EXPIRED = "expired"
    """Ended by the server, because it was open for too long."""


class StreamMode(StrEnum):
    """What a stream takes; decided by the first call that brings something."""

    TEXT = "text"
    CHUNKS = "chunks"


@dataclass(frozen=True, slots=True)
class Task:
    """A step that is shown in a streamed message."""

    id: str
    title: str
    status: str
    details: str = ""
    output: str = ""


@dataclass(slots=True)
class Stream:
    """What makes a message a streamed one."""

    started_at: float
    """Monotonic seconds."""
    state: StreamState = StreamState.OPEN
    mode: StreamMode | None = None
    markdown: str = ""
    plan: str = ""
    tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    appends: int = 0
    """How many calls brought something."""
    final_blocks: list[JsonObject] = field(default_factory=list[JsonObject])
    """Blocks below the text, of `chat.stopStream`."""


@dataclass(slots=True, eq=False)
class Message:
    """A message, as it is now; what it said before is in `earlier`."""

    channel: Channel = field(repr=False)
    ts: str
    sender: User
    text: str = ""
    """As on the wire, with `&lt;` and `<@U…>`."""
    blocks: list[JsonObject] = field(default_factory=list[JsonObject])
    attachments: list[Json] = field(default_factory=list["Json"])
    thread_ts: str | None = None
    """The first message of the thread in which this is a reply."""
    broadcast: bool = False
    """A reply that is shown in the channel too."""
    metadata: JsonObject | None = None
    client_msg_id: str | None = None
    files: list[StoredFile] = field(default_factory=list[StoredFile])
    edited_ts: str | None = None
    earlier: list[str] = field(default_factory=list[str])
    """What a person saw before each edit, oldest first."""
    reactions: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """User ids by the emoji's name."""
    deleted: bool = False
    visible_to: str | None = None
    """The one person who sees an ephemeral message."""
    stream: Stream | None = None

    @property
    def root_ts(self) -> str:
        """The thread that an answer to this belongs to."""
        return self.thread_ts or self.ts


class SessionStatus(StrEnum):
    """The life of an agent's session (https://docs.slack.dev/ai/agent-sessions)."""

    PROCESSING = "processing"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    CLOSED = "closed"


@dataclass(slots=True)
class Session:
    """An agent's work in one thread."""

    status: SessionStatus
    title: str = ""
    initiator: str | None = None
    history: list[SessionStatus] = field(default_factory=list[SessionStatus])
    """Every status that was set, also the same one again."""


@dataclass(slots=True)
class Thinking:
    """What `assistant.threads.setStatus` shows below a thread."""

    text: str
    until: float
    """Monotonic seconds at which it goes by itself."""
    loading_messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A suggestion that a person may press instead of writing."""

    title: str
    message: str


@dataclass(slots=True, eq=False)
class Channel:
    """A conversation with everything that was ever said in it."""

    id: str
    kind: ChannelKind
    name: str = ""
    created: int = 0
    user: User | None = None
    """The person of a direct message."""
    members: list[str] = field(default_factory=list[str])
    """User ids."""
    archived: bool = False
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    """By ts, in order; deleted ones too."""
    threads: dict[str, list[Message]] = field(default_factory=dict[str, list["Message"]])
    """The answers by the ts of the thread, deleted ones too."""
    ephemeral: list[Message] = field(default_factory=list[Message])
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    """By the ts of the thread."""
    thinking: dict[str, Thinking] = field(default_factory=dict[str, Thinking])
    titles: dict[str, str] = field(default_factory=dict[str, str])
    """What `assistant.threads.setTitle` said."""
    prompts: dict[str, list[Prompt]] = field(default_factory=dict[str, list[Prompt]])

    @property
    def is_private(self) -> bool:
        """Whether people outside cannot know of it."""
        return self.kind is not ChannelKind.CHANNEL

    def replies(self, root_ts: str) -> list[Message]:
        """The answers in a thread that are still there."""
        return [one for one in self.threads.get(root_ts, ()) if not one.deleted]


@dataclass(slots=True, eq=False)
class View:
    """A modal or a Home tab."""

    id: str
    user: User
    body: JsonObject
    """What the app gave."""
    hash: str
    root_id: str
    external_id: str = ""
    open: bool = True
    updates: int = 0
    errors: JsonObject = field(default_factory=dict[str, Json])
    """What the app said to a submission, by block id."""
