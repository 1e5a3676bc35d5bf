"""The state of the fake Slack, as seen by one app in one workspace: users, channels, messages, files, views, and what the app is told.

No I/O; the clock is given. What persons do is in `people.py`, what the app may ask for in `methods.py` and its neighbours; both change
this world only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fakes.common import Clock, Json, JsonObject
from tests.fakes.slack import blocks as kit
from tests.fakes.slack.objects import Channel, ChannelKind, Message, Session, StoredFile, StreamState, User, View
from tests.fakes.slack.outbox import Envelope, Kind, Outbox
from tests.fakes.slack.shapes import unescaped

TEAM = "T0FAKETEAM"
APP = "A0FAKEAPP01"
THINKING_SECONDS = 120.0
"""How long a thread's status is shown by itself (https://docs.slack.dev/reference/methods/assistant.threads.setStatus)."""
TRIGGER_SECONDS = 3.0
"""How long a `trigger_id` can be used."""
GRAVESTONE = "This message was deleted."
RESPONSE_URL_SECONDS = 1800.0
RESPONSE_URL_USES = 5

EVENTS = frozenset(
    [
        "agent_session_stopped",
        "app_home_opened",
        "app_mention",
        "member_joined_channel",
        "member_left_channel",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
        "reaction_added",
        "reaction_removed",
    ]
)
"""The events that the fake makes; an app subscribes to all of them unless told otherwise."""
_SUBSCRIPTION = {
    ChannelKind.IM: "message.im",
    ChannelKind.CHANNEL: "message.channels",
    ChannelKind.GROUP: "message.groups",
    ChannelKind.MPIM: "message.mpim",
}


@dataclass(slots=True)
class Door:
    """A `response_url`."""

    url: str
    channel: Channel
    user: User
    until: float
    """Monotonic seconds."""
    source: Message | None = None
    """The message whose button was pressed."""
    uses: int = 0


@dataclass(slots=True)
class Trigger:
    """A `trigger_id`: the right to open a modal, once and soon."""

    user: User
    until: float
    """Monotonic seconds."""
    used: bool = False


@dataclass(slots=True)
class Settings:
    """How the workspace and the app are set up; a test may change it at any time."""

    echo: bool = True
    """Whether the app hears of its own messages, as on the server."""
    client_msg_ids: bool = True
    """Whether `client_msg_id` is honoured, of which only the errors are documented."""
    stream_seconds: float = 300.0
    """How long a streamed message may stay open. Not documented; people measured about five minutes, however busy the stream."""
    subscribed: set[str] = field(default_factory=lambda: set(EVENTS))


class World:
    """Everything that there is."""

    def __init__(self, bot: User, clock: Clock, outbox: Outbox, changed: Callable[[], None]) -> None:
        self.bot = bot
        self.clock = clock
        self.outbox = outbox
        self.changed = changed
        self.settings = Settings()
        self.team_name = "Fake Team"
        self.origin: Callable[[], str] = lambda: ""
        self.users: dict[str, User] = {bot.id: bot}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, StoredFile] = {}
        self.uploads: dict[str, StoredFile] = {}
        """Files that were announced; empty until their bytes come."""
        self.views: dict[str, View] = {}
        self.homes: dict[str, View] = {}
        """The Home tabs by user id."""
        self.triggers: dict[str, Trigger] = {}
        self.doors: dict[str, Door] = {}
        self.created: list[Message] = []
        """Every message of the app in the order in which it came to be, deleted ones too."""
        self.by_client_id: dict[str, Message] = {}
        self._last_micros = 0
        self._serial = 1000

    # --- names and numbers ---

    def serial(self) -> int:
        """A number that was not given out before."""
        self._serial += 1
        return self._serial

    def new_id(self, letters: str) -> str:
        """An id such as `U0000001001`."""
        return f"{letters}{self.serial():0{11 - len(letters)}d}"

    def new_ts(self) -> str:
        """A moment that no message has yet, later than every one before: seconds since 1970 with six places."""
        self._last_micros = max(self._last_micros + 1, int(self.clock.unix() * 1_000_000))
        return f"{self._last_micros // 1_000_000}.{self._last_micros % 1_000_000:06d}"

    def unix(self) -> int:
        """Now, in whole Unix seconds."""
        return int(self.clock.unix())

    def find_channel(self, name: str) -> Channel | None:
        """A channel by its id, or by its name behind `#`."""
        if name.startswith("#"):
            return next((one for one in self.channels.values() if one.name == name[1:]), None)
        return self.channels.get(name)

    def dm(self, user: User) -> Channel:
        """The direct message channel with a person; there is one as soon as it is asked for."""
        for channel in self.channels.values():
            if channel.kind is ChannelKind.IM and channel.user == user:
                return channel
        channel = Channel(self.new_id("D"), ChannelKind.IM, created=self.unix(), user=user)
        channel.members = [user.id, self.bot.id]
        self.channels[channel.id] = channel
        return channel

    # --- messages ---

    def find(self, channel: Channel, ts: str) -> Message | None:
        """A message that is still there."""
        message = channel.messages.get(ts)
        return None if message is None or message.deleted else message

    def add(self, message: Message) -> Message:
        """A message appears. One of the app's ends its status in that thread; the app hears of it in any case."""
        channel = message.channel
        if message.visible_to is not None:
            channel.ephemeral.append(message)
            self.changed()
            return message
        channel.messages[message.ts] = message
        if message.thread_ts is not None:
            channel.threads.setdefault(message.thread_ts, []).append(message)
        if message.sender is self.bot:
            self.created.append(message)
            channel.thinking.pop(message.root_ts, None)
        self.tell_message(channel, self.message_json(message), by=message.sender)
        self.changed()
        return message

    def edit(self, message: Message, change: Callable[[], None], by: User) -> None:
        """A message says something else from now on."""
        before = self.message_json(message)
        seen = self.visible(message)
        change()
        if self.visible(message) != seen:
            message.earlier.append(seen)
        message.edited_ts = self.new_ts()
        self._tell_change(message, "message_changed", by, {"message": self.message_json(message)}, before)

    def delete(self, message: Message, by: User) -> None:
        """A message goes away; if it has answers, a mark stays in its place."""
        before = self.message_json(message)
        message.deleted = True
        if message.channel.replies(message.ts):
            self._tell_change(message, "message_changed", by, {"message": self.gravestone(message)}, before)
        else:
            self._tell_change(message, "message_deleted", by, {"deleted_ts": message.ts}, before)

    def gravestone(self, message: Message) -> JsonObject:
        """What stands in the place of a deleted message whose thread goes on."""
        body = self.message_json(message, metadata=False)
        for name in ("blocks", "files", "bot_id", "app_id", "client_msg_id"):
            body.pop(name, None)
        return {**body, "subtype": "tombstone", "text": GRAVESTONE, "user": "USLACKBOT", "hidden": True}

    def _tell_change(self, message: Message, subtype: str, by: User, more: JsonObject, before: JsonObject) -> None:
        event: JsonObject = {"type": "message", "subtype": subtype, "ts": self.new_ts(), "hidden": True, **more}
        event["previous_message"] = before
        self.tell_message(message.channel, event, by=by)
        self.changed()

    def visible(self, message: Message) -> str:
        """What a person reads: the blocks if there are any, and the text only otherwise."""
        if message.stream is not None:
            # Tasks are shown beside the text.
            parts = [message.stream.markdown, kit.read_aloud(message.stream.final_blocks)]
        elif message.blocks:
            parts = [kit.read_aloud(message.blocks)]
        else:
            parts = [unescaped(message.text)]
        return "\n".join(part for part in parts if part)

    def message_json(self, message: Message, *, metadata: bool = True) -> JsonObject:
        """The message object."""
        body: JsonObject = {
            "type": "message",
            "user": message.sender.id,
            "text": message.text,
            "ts": message.ts,
            "team": TEAM,
        }
        if message.sender.bot_id:
            body.update({"bot_id": message.sender.bot_id, "app_id": message.sender.app_id})
        if message.client_msg_id:
            body["client_msg_id"] = message.client_msg_id
        shown = message.stream.final_blocks if message.stream is not None else message.blocks
        if shown:
            body["blocks"] = [*shown]
        elif not message.sender.is_bot and message.text:
            body["blocks"] = [*kit.typed(message.text)]
        if message.attachments:
            body["attachments"] = message.attachments
        if message.files:
            body.update({"subtype": "file_share", "files": [self._told_json(file) for file in message.files]})
        if message.broadcast:
            body["subtype"] = "thread_broadcast"
        if message.edited_ts:
            body["edited"] = {"user": message.sender.id, "ts": message.edited_ts}
        if message.metadata is not None and metadata:
            body["metadata"] = message.metadata
        if message.stream is not None:
            body["streaming_state"] = "in_progress" if message.stream.state is StreamState.OPEN else "completed"
        if message.reactions:
            body["reactions"] = [
                {"name": name, "users": [*users], "count": len(users)} for name, users in message.reactions.items()
            ]
        self._add_thread(message, body)
        return body

    def _add_thread(self, message: Message, body: JsonObject) -> None:
        channel = message.channel
        if message.thread_ts is not None:
            body["thread_ts"] = message.thread_ts
            root = channel.messages.get(message.thread_ts)
            if root is not None:
                body["parent_user_id"] = root.sender.id
            return
        replies = channel.replies(message.ts)
        if replies:
            writers: list[Json] = [*dict.fromkeys(reply.sender.id for reply in replies)]
            body.update({"thread_ts": message.ts, "reply_count": len(replies), "latest_reply": replies[-1].ts})
            body.update({"reply_users": writers, "reply_users_count": len(writers)})

    # --- files ---

    def _told_json(self, file: StoredFile) -> JsonObject:
        """What a message tells of its file (https://docs.slack.dev/reference/objects/file-object)."""
        if not file.elsewhere:
            return self.file_json(file)
        access = "check_file_info"
        return {"id": file.id, "created": 0, "timestamp": 0, "mode": "file_access", "file_access": access, "user": ""}

    def file_json(self, file: StoredFile) -> JsonObject:
        """The file object."""
        address = f"{self.origin()}/files-pri/{TEAM}-{file.id}"
        return {
            "id": file.id,
            "created": file.created,
            "timestamp": file.created,
            "name": file.name,
            "title": file.title,
            "mimetype": file.mime_type,
            "filetype": file.filetype,
            "size": file.size_bytes,
            "user": file.user,
            "user_team": TEAM,
            "mode": "hosted",
            "is_external": False,
            "is_public": False,
            "file_access": "visible",
            "url_private": f"{address}/{file.name}",
            "url_private_download": f"{address}/download/{file.name}",
            "permalink": f"{self.origin()}/files/{file.user}/{file.id}/{file.name}",
            **({"subtype": file.subtype} if file.subtype else {}),
        }

    # --- rights that run out ---

    def new_trigger(self, user: User) -> str:
        """The right to open one modal within three seconds."""
        name = f"{self.serial()}.{self.serial()}.fake{self.serial()}"
        self.triggers[name] = Trigger(user, self.clock.monotonic() + TRIGGER_SECONDS)
        return name

    def new_door(self, channel: Channel, user: User, source: Message | None, kind: str) -> str:
        """A `response_url`: five answers within half an hour."""
        url = f"{self.origin()}/{kind}/{TEAM}/{self.serial()}/fakeSecret{self.serial()}"
        self.doors[url] = Door(url, channel, user, self.clock.monotonic() + RESPONSE_URL_SECONDS, source)
        return url

    # --- sessions ---

    def session(self, channel: Channel, thread_ts: str) -> Session | None:
        """The agent's session in a thread."""
        return channel.sessions.get(thread_ts)

    def streaming(self, message: Message) -> bool:
        """Whether a message takes more of its stream. One that was open for too long is over from now on."""
        stream = message.stream
        if stream is None:
            return False
        age = self.clock.monotonic() - stream.started_at
        if stream.state is StreamState.OPEN and age >= self.settings.stream_seconds:
            stream.state = StreamState.EXPIRED
        return stream.state is StreamState.OPEN

    # --- telling the app ---

    def hears(self, channel: Channel) -> bool:
        """Whether the app is told what is said in a channel."""
        return self.bot.id in channel.members and _SUBSCRIPTION[channel.kind] in self.settings.subscribed

    def tell_message(self, channel: Channel, event: JsonObject, *, by: User) -> Envelope | None:
        """Something was said, changed or deleted; None if the app does not hear of it."""
        if not self.hears(channel) or (by is self.bot and not self.settings.echo):
            return None
        place: JsonObject = {"channel": channel.id, "channel_type": channel.kind.value}
        return self.tell({**event, **place, "event_ts": event["ts"]})

    def tell(self, event: JsonObject) -> Envelope:
        """Let the app know of an event."""
        users: JsonObject = {"enterprise_id": None, "team_id": TEAM, "user_id": self.bot.id, "is_bot": True}
        payload: JsonObject = {
            "token": "fake-verification-token",
            "team_id": TEAM,
            "context_team_id": TEAM,
            "context_enterprise_id": None,
            "api_app_id": APP,
            "event": event,
            "type": "event_callback",
            "event_id": self.new_id("Ev"),
            "event_time": self.unix(),
            "authorizations": [{**users, "is_enterprise_install": False}],
            "is_ext_shared_channel": False,
            "event_context": f"4-fake{self.serial()}",
        }
        envelope = self.outbox.put(Kind.EVENTS, str(event["type"]), payload, self.clock.monotonic())
        self.changed()
        return envelope

    def tell_if(self, subscription: str, event: JsonObject) -> Envelope | None:
        """Let the app know if it subscribes to such events."""
        return self.tell(event) if subscription in self.settings.subscribed else None
