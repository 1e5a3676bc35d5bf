"""What persons do: they write, edit, delete, upload, react, press, give commands, submit forms, open the app, stop it. No I/O.

The app hears of it as on the server, by envelopes. All these return at once; nothing here waits for the app.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack import blocks as kit
from tests.fakes.slack import files, responses, views
from tests.fakes.slack.agents import STOP_EVENT
from tests.fakes.slack.blocks import Button
from tests.fakes.slack.objects import (
    Channel,
    ChannelKind,
    Message,
    SessionStatus,
    StreamState,
    User,
    View,
)
from tests.fakes.slack.outbox import Envelope, Kind
from tests.fakes.slack.shapes import as_text, escaped
from tests.fakes.slack.world import APP, TEAM, World

Thread: TypeAlias = "Message | str | None"
"""A thread: any message of it, or the ts of its first one."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """A press, a command or a form, with what the app may answer by; `envelope` tells what came of it."""

    envelope: Envelope
    user: User
    trigger_id: str
    response_url: str = ""
    button: Button | None = None


class People:
    """The persons of a world, acting."""

    def __init__(self, world: World) -> None:
        self._world = world

    # --- making them ---

    def user(self, name: str, *, real_name: str = "") -> User:
        """A new person."""
        person = User(self._world.new_id("U"), name.lower(), real_name or name)
        self._world.users[person.id] = person
        return person

    def robot(self, name: str) -> User:
        """The user of somebody else's app; it can write where it is a member."""
        world = self._world
        other = User(
            world.new_id("U"), name.lower(), name, is_bot=True, bot_id=world.new_id("B"), app_id=world.new_id("A")
        )
        world.users[other.id] = other
        return other

    def dm(self, user: User) -> Channel:
        """The direct messages between a person and the app."""
        return self._world.dm(user)

    def channel(self, name: str, *members: User, private: bool = False, bot: bool = True) -> Channel:
        """A channel that the app is in already, unless told otherwise; no event tells of it."""
        kind = ChannelKind.GROUP if private else ChannelKind.CHANNEL
        return self._new(kind, name, members, bot=bot)

    def group_dm(self, *members: User) -> Channel:
        """Direct messages between several people and the app."""
        return self._new(ChannelKind.MPIM, "mpdm-" + "--".join(user.name for user in members), members, bot=True)

    def _new(self, kind: ChannelKind, name: str, members: tuple[User, ...], *, bot: bool) -> Channel:
        world = self._world
        made = Channel(world.new_id("C"), kind, name, world.unix())
        made.members = [*(user.id for user in members), *([world.bot.id] if bot else [])]
        world.channels[made.id] = made
        return made

    # --- coming and going ---

    def join(self, channel: Channel, user: User, *, inviter: User | None = None) -> None:
        """Somebody, or the app, comes into a channel."""
        assert user.id not in channel.members, f"{user.name} is there already"
        channel.members.append(user.id)
        event = self._membership("member_joined_channel", channel, user)
        if inviter is not None:
            event["inviter"] = inviter.id
        if self._world.bot.id in channel.members:
            self._world.tell_if("member_joined_channel", event)
        self._world.changed()

    def leave(self, channel: Channel, user: User) -> None:
        """Somebody, or the app, is no more in a channel. The app is not told of its own going."""
        channel.members.remove(user.id)
        if self._world.bot.id in channel.members:
            self._world.tell_if("member_left_channel", self._membership("member_left_channel", channel, user))
        self._world.changed()

    def archive(self, channel: Channel) -> None:
        """Nobody can write in a channel from now on."""
        channel.archived = True
        self._world.changed()

    def _membership(self, kind: str, channel: Channel, user: User) -> JsonObject:
        letter = "G" if channel.is_private else "C"
        place: JsonObject = {"channel": channel.id, "channel_type": letter, "team": TEAM}
        return {"type": kind, "user": user.id, **place, "event_ts": self._world.new_ts()}

    # --- talking ---

    def say(
        self,
        channel: Channel,
        user: User,
        text: str,
        *,
        thread: Thread = None,
        broadcast: bool = False,
        metadata: JsonObject | None = None,
    ) -> Message:
        """A person types this; `<@U…>` is a mention, everything else is escaped as a client does it.

        In a channel a text that mentions the app comes as two events, `message` and `app_mention`.
        """
        self._may_act(channel, user)
        root = root_of(thread)
        message = Message(
            channel,
            self._world.new_ts(),
            user,
            escaped(text),
            thread_ts=root,
            broadcast=broadcast and root is not None,
            metadata=metadata,
            client_msg_id=None if user.is_bot else f"00000000-0000-4000-8000-{self._world.serial():012d}",
        )
        self._world.add(message)
        self._tell_mention(message)
        return message

    def mention(self, channel: Channel, user: User, text: str, *, thread: Thread = None) -> Message:
        """A person addresses the app."""
        return self.say(channel, user, f"<@{self._world.bot.id}> {text}", thread=thread)

    def _tell_mention(self, message: Message) -> None:
        world, channel = self._world, message.channel
        mentioned = f"<@{world.bot.id}>" in message.text
        # In direct messages everything is meant for the app: there are no such events.
        if not mentioned or channel.kind is ChannelKind.IM or world.bot.id not in channel.members:
            return
        body = world.message_json(message)
        body.pop("parent_user_id", None)
        place: JsonObject = {"type": "app_mention", "channel": channel.id, "event_ts": message.ts}
        world.tell_if("app_mention", {**body, **place})

    def edit(self, message: Message, text: str) -> Message:
        """The writer of a message changes it."""
        assert message.sender is not self._world.bot, "the app edits its own messages"

        def change() -> None:
            message.text = escaped(text)

        self._world.edit(message, change, message.sender)
        return message

    def delete(self, message: Message, by: User | None = None) -> None:
        """Somebody deletes a message: its writer, or an administrator one of the app's."""
        self._world.delete(message, by or message.sender)

    def upload(
        self,
        channel: Channel,
        user: User,
        name: str,
        data: bytes,
        *,
        text: str = "",
        mime_type: str = "",
        claimed_bytes: int = -1,
        thread: Thread = None,
        subtype: str = "",
        elsewhere: bool = False,
    ) -> Message:
        """A person sends a file; `claimed_bytes` makes the server say another size than it has, `elsewhere` its id alone."""
        self._may_act(channel, user)
        file = files.store(
            self._world, name, data, user.id, mime_type=mime_type, size_bytes=claimed_bytes, subtype=subtype
        )
        if elsewhere:
            file = self._world.files[file.id] = replace(file, elsewhere=True)
        ts, root = self._world.new_ts(), root_of(thread)
        message = self._world.add(Message(channel, ts, user, escaped(text), thread_ts=root, files=[file]))
        self._tell_mention(message)
        return message

    def shares(self, channel: Channel, user: User, attachments: list[Json], text: str = "") -> Message:
        """A person passes on a message of another one, or a client of theirs adds something to what they write."""
        self._may_act(channel, user)
        message = Message(channel, self._world.new_ts(), user, escaped(text), attachments=attachments)
        self._world.add(message)
        self._tell_mention(message)
        return message

    def _may_act(self, channel: Channel, user: User) -> None:
        assert user.id in channel.members, f"{user.name} is not in {channel.name or channel.id}"
        assert not channel.archived, "the channel is archived"

    # --- reacting ---

    def react(self, message: Message, user: User, emoji: str) -> None:
        """A person adds a reaction."""
        message.reactions.setdefault(emoji, []).append(user.id)
        self._tell_reaction("reaction_added", message, user, emoji)

    def unreact(self, message: Message, user: User, emoji: str) -> None:
        """A person takes a reaction back."""
        message.reactions[emoji].remove(user.id)
        if not message.reactions[emoji]:
            del message.reactions[emoji]
        self._tell_reaction("reaction_removed", message, user, emoji)

    def _tell_reaction(self, kind: str, message: Message, user: User, emoji: str) -> None:
        item: JsonObject = {"type": "message", "channel": message.channel.id, "ts": message.ts}
        who: JsonObject = {"user": user.id, "reaction": emoji, "item_user": message.sender.id}
        if self._world.bot.id in message.channel.members:
            self._world.tell_if(kind, {"type": kind, **who, "item": item, "event_ts": self._world.new_ts()})
        self._world.changed()

    def press(self, message: Message, user: User, button: str) -> Interaction:
        """A person presses the button with this caption, this value or this action id."""
        shown = message.stream.final_blocks if message.stream is not None else message.blocks
        every = kit.buttons(shown)
        chosen = next((one for one in every if button in {one.caption, one.value, one.action_id}), None)
        assert chosen is not None, f"no button {button!r} in {[one.caption for one in every]}"
        return self.press_raw(message, user, chosen)

    def press_raw(self, message: Message, user: User, button: Button) -> Interaction:
        """A press on a button that may have gone meanwhile, or that never was."""
        world, channel = self._world, message.channel
        trigger, url = world.new_trigger(user), world.new_door(channel, user, message, "actions")
        caption: JsonObject = {"type": "plain_text", "text": button.caption, "emoji": True}
        action: JsonObject = {
            "type": button.kind,
            "action_id": button.action_id,
            "block_id": button.block_id,
            "value": button.value,
            "action_ts": world.new_ts(),
        }
        if button.kind == "button":
            action["text"] = caption
        container: JsonObject = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": channel.id,
            "is_ephemeral": message.visible_to is not None,
        }
        if message.thread_ts is not None:
            container["thread_ts"] = message.thread_ts
        payload: JsonObject = {
            **self._interaction("block_actions", user, trigger),
            "container": container,
            "channel": {"id": channel.id, "name": channel.name or "directmessage"},
            "message": world.message_json(message),
            "state": {"values": {}},
            "response_url": url,
            "actions": [action],
        }
        return Interaction(self._put("block_actions", payload), user, trigger, url, button)

    def _put(self, name: str, payload: JsonObject) -> Envelope:
        envelope = self._world.outbox.put(Kind.INTERACTIVE, name, payload, self._world.clock.monotonic())
        self._world.changed()
        return envelope

    def _interaction(self, kind: str, user: User, trigger: str) -> JsonObject:
        who: JsonObject = {"id": user.id, "username": user.name, "name": user.name, "team_id": TEAM}
        return {
            "type": kind,
            "user": who,
            "api_app_id": APP,
            "token": "fake-verification-token",
            "team": {"id": TEAM, "domain": "fake-team"},
            "enterprise": None,
            "is_enterprise_install": False,
            "trigger_id": trigger,
        }

    def command(self, channel: Channel, user: User, command: str, text: str = "") -> Interaction:
        """A person gives a slash command."""
        assert command.startswith("/"), command
        world = self._world
        trigger, url = world.new_trigger(user), world.new_door(channel, user, None, "commands")
        payload: JsonObject = {
            "token": "fake-verification-token",
            "team_id": TEAM,
            "team_domain": "fake-team",
            "channel_id": channel.id,
            "channel_name": channel.name or "directmessage",
            "user_id": user.id,
            "user_name": user.name,
            "command": command,
            "text": escaped(text),
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "response_url": url,
            "trigger_id": trigger,
        }

        def answered(answer: JsonObject | None) -> None:
            responses.answer_command(world, channel, user, answer)

        envelope = world.outbox.put(Kind.COMMANDS, command, payload, world.clock.monotonic(), answered)
        world.changed()
        return Interaction(envelope, user, trigger, url)

    def submit(self, view: View, values: Mapping[str, Mapping[str, str]]) -> Interaction:
        """A person submits a form; the values by block id and action id."""
        assert view.open, "the view is closed"
        world, user = self._world, view.user
        state: JsonObject = {}
        for block, fields in values.items():
            given: JsonObject = {name: {"type": "plain_text_input", "value": value} for name, value in fields.items()}
            state[block] = given
        trigger = world.new_trigger(user)
        shown: JsonObject = {**views.view_json(world, view), "state": {"values": state}}
        payload: JsonObject = {
            **self._interaction("view_submission", user, trigger),
            "view": shown,
            "response_urls": [],
        }

        def answered(answer: JsonObject | None) -> None:
            responses.answer_submission(world, view, answer)

        now = world.clock.monotonic()
        envelope = world.outbox.put(Kind.INTERACTIVE, "view_submission", payload, now, answered)
        world.changed()
        return Interaction(envelope, user, trigger)

    # --- the app's own surfaces ---

    def open_app(self, user: User, tab: str = "messages") -> Envelope | None:
        """A person opens the app's Home (`home`) or its direct messages (`messages`)."""
        world = self._world
        event: JsonObject = {"type": "app_home_opened", "user": user.id, "channel": world.dm(user).id, "tab": tab}
        home = world.homes.get(user.id)
        if tab == "home" and home is not None:
            event["view"] = views.view_json(world, home)
        return world.tell_if("app_home_opened", {**event, "event_ts": world.new_ts()})

    def stop(self, channel: Channel, user: User, thread: Thread) -> Envelope:
        """A person presses Stop in a thread. It is there while the session is `processing` and the app wants to hear of it.

        The app's open streams there end; the session's status does not change by itself.
        """
        world, root = self._world, root_of(thread)
        assert root is not None
        session = channel.sessions.get(root)
        assert session is not None, "there is no session in this thread"
        assert session.status is SessionStatus.PROCESSING, f"no Stop: the session is {session.status}"
        assert STOP_EVENT in world.settings.subscribed, "no Stop: the app does not hear of it"
        streaming = [one for one in channel.replies(root) if world.streaming(one)]
        for message in streaming:
            if message.stream is not None:
                message.stream.state = StreamState.STOPPED
        stopped: list[Json] = [message.ts for message in streaming]
        where: JsonObject = {"channel": channel.id, "thread_ts": root, "user": user.id}
        ending: JsonObject = {"streaming_message_ts": stopped, "event_ts": world.new_ts()}
        envelope = world.tell({"type": STOP_EVENT, **where, **ending})
        world.changed()
        return envelope


def root_of(thread: Thread) -> str | None:
    """The ts of the first message of a thread."""
    return as_text(thread) or None if isinstance(thread, str) else thread.root_ts if thread is not None else None
