"""What persons do: they write, edit, answer, press buttons, add and remove the bot. No I/O.

The bot hears of it as on the server, by updates. All these return at once; nothing here waits for the bot.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.fakes.common import Json, JsonObject
from tests.fakes.telegram.entities import Entity, found
from tests.fakes.telegram.objects import (
    INSIDE,
    Chat,
    ChatKind,
    Media,
    MediaKind,
    Message,
    Press,
    Role,
    StoredFile,
    Topic,
    User,
)
from tests.fakes.telegram.world import World


class People:
    """The persons of a world, acting."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._next_user = 1001
        self._next_group = 4001

    # --- making them ---

    def user(
        self, first_name: str, *, username: str | None = None, last_name: str | None = None, language_code: str = "en"
    ) -> User:
        """A new person."""
        number, self._next_user = self._next_user, self._next_user + 1
        return self._world.add_user(User(number, first_name, username, last_name, language_code))

    def private(self, user: User, *, started: bool = True, topics: bool = False) -> Chat:
        """The chat between a person and the bot; with `started=False` the person has never written, so the bot may not either."""
        chat = Chat(user.id, ChatKind.PRIVATE, user=user, started=started, has_topics=topics)
        chat.members = {user.id: Role.MEMBER, self._world.bot.id: Role.MEMBER}
        return self._world.add_chat(chat)

    def group(
        self,
        title: str,
        owner: User,
        *members: User,
        supergroup: bool = False,
        forum: bool = False,
        bot: Role = Role.MEMBER,
    ) -> Chat:
        """A group that the bot is in already; no update tells of it. `forum` gives it topics."""
        number, self._next_group = self._next_group, self._next_group + 1
        large = supergroup or forum
        chat = Chat(
            -1_000_000_000_000 - number if large else -number,
            ChatKind.SUPERGROUP if large else ChatKind.GROUP,
            title,
            is_forum=forum,
        )
        chat.members = {owner.id: Role.CREATOR, **{user.id: Role.MEMBER for user in members}}
        chat.members[self._world.bot.id] = bot
        return self._world.add_chat(chat)

    def topic(self, chat: Chat, name: str, by: User | None = None) -> Topic:
        """Somebody opens a topic; its id is the `message_thread_id`."""
        assert chat.is_forum or chat.has_topics, "the chat has no topics"
        color = 0x6FB9F0
        service: JsonObject = {"forum_topic_created": {"name": name, "icon_color": color}}
        message = self._world.add_message(chat, by or self._someone(chat), service=service, opens_topic=True)
        topic = Topic(message.id, name, color)
        chat.topics[topic.id] = topic
        return topic

    def _someone(self, chat: Chat) -> User:
        return next(self._world.users[number] for number in chat.members if number != self._world.bot.id)

    # --- talking ---

    def say(
        self,
        chat: Chat,
        user: User,
        text: str,
        *,
        reply_to: Message | None = None,
        thread: int | None = None,
        entities: Sequence[Entity] = (),
    ) -> Message:
        """A person writes. Mentions, commands, links and hashtags are found as a client finds them; `entities` are added to those."""
        self._may_act(chat, user)
        every = found(text, entities)
        thread = reply_to.thread if thread is None and reply_to is not None else thread
        return self._world.add_message(chat, user, text, every, reply_to=reply_to, thread=thread)

    def edit(self, message: Message, text: str, *, entities: Sequence[Entity] = ()) -> Message:
        """The writer of a message changes it."""
        assert message.sender.id != self._world.bot.id, "the bot edits its own messages"
        self._world.edit_message(message, text, found(text, entities), message.keyboard, by_bot=False)
        return message

    def remove(self, message: Message) -> None:
        """Somebody deletes a message. Bots never hear of that."""
        message.deleted = True
        self._world.changed()

    def document(
        self,
        chat: Chat,
        user: User,
        name: str,
        data: bytes,
        *,
        mime_type: str = "application/octet-stream",
        caption: str = "",
        claimed_bytes: int | None = None,
        thread: int | None = None,
        reply_to: Message | None = None,
    ) -> Message:
        """A person sends a file; `claimed_bytes` makes the server say another size than it has."""
        self._may_act(chat, user)
        file = self._world.store(name, mime_type, data, MediaKind.DOCUMENT, claimed_bytes)
        return self._with_file(chat, user, Media(MediaKind.DOCUMENT, file), caption, thread=thread, reply_to=reply_to)

    def photo(
        self,
        chat: Chat,
        user: User,
        data: bytes,
        *,
        caption: str = "",
        thread: int | None = None,
        reply_to: Message | None = None,
        album: str | None = None,
    ) -> Message:
        """A person sends a picture."""
        self._may_act(chat, user)
        file = self._world.store("photo.jpg", "image/jpeg", data, MediaKind.PHOTO)
        return self._with_file(chat, user, photo_of(file), caption, thread=thread, reply_to=reply_to, album=album)

    def records(
        self, chat: Chat, user: User, data: bytes, kind: MediaKind = MediaKind.VOICE, *, more: JsonObject | None = None
    ) -> Message:
        """A person records something in the chat, or passes it on (`more` has a `forward_origin`)."""
        self._may_act(chat, user)
        mime, name = ("video/mp4", "note.mp4") if kind is MediaKind.VIDEO_NOTE else ("audio/ogg", "voice.oga")
        file = self._world.store(name, mime, data, kind)
        return self._world.add_message(chat, user, media=Media(kind, file), more=more)

    def shares(
        self, chat: Chat, user: User, more: JsonObject, text: str = "", *, reply_to: Message | None = None
    ) -> Message:
        """A person sends something that is neither text nor file, or more than that: fields of the Message object."""
        self._may_act(chat, user)
        return self._world.add_message(chat, user, text, found(text), reply_to=reply_to, more=more)

    def album(
        self, chat: Chat, user: User, pictures: Sequence[bytes], *, caption: str = "", thread: int | None = None
    ) -> list[Message]:
        """Several pictures at once: as many messages with one media_group_id, the caption on the first."""
        name = str(13_000_000_000_000_000 + self._world.serial())
        return [
            self.photo(chat, user, data, caption="" if index else caption, thread=thread, album=name)
            for index, data in enumerate(pictures)
        ]

    def _with_file(
        self,
        chat: Chat,
        user: User,
        media: Media,
        caption: str,
        *,
        thread: int | None,
        reply_to: Message | None,
        album: str | None = None,
    ) -> Message:
        return self._world.add_message(
            chat, user, caption, found(caption), thread=thread, reply_to=reply_to, media=media, album=album
        )

    def _may_act(self, chat: Chat, user: User) -> None:
        assert chat.members.get(user.id) in INSIDE, f"{user.first_name} is not in the chat {chat.id}"
        assert chat.migrated_to is None, "the group has become a supergroup"
        if chat.kind is ChatKind.PRIVATE:
            chat.started = True

    # --- reacting ---

    def press(self, message: Message, user: User, button: str) -> Press:
        """A person presses the button with this caption (or this callback data); see `Press.toast` for what comes of it."""
        assert message.keyboard is not None, "the message has no buttons"
        chosen = next((one for one in message.keyboard.buttons if button in {one.text, one.data}), None)
        assert chosen is not None, f"no button {button!r} in {list(message.keyboard.buttons)}"
        assert chosen.data is not None, f"{chosen} opens something and tells the bot nothing"
        return self.press_raw(message, user, chosen.data)

    def press_raw(self, message: Message, user: User, data: str) -> Press:
        """A press with whatever data: on a button that has gone meanwhile, or forged by a modified client."""
        world = self._world
        press = Press(f"{world.serial():019d}", user, message, data, world.clock.monotonic())
        world.presses[press.id] = press
        shown = world.message_json(message)
        if message.deleted:
            gone: JsonObject = {"chat": message.chat.to_json(), "message_id": message.id, "date": 0}
            shown = gone
        body: JsonObject = {
            "id": press.id,
            "from": user.to_json(),
            "message": shown,
            "chat_instance": str(hash_of(message.chat.id)),
            "data": data,
        }
        world.tell("callback_query", body, message.chat)
        return press

    def react(self, message: Message, user: User, *emojis: str) -> None:
        """A person changes their reactions on a message; none takes them back."""
        world = self._world
        before = message.reactions.get(user.id, [])
        message.reactions[user.id] = list(emojis)
        body: JsonObject = {
            "chat": message.chat.to_json(),
            "message_id": message.id,
            "user": user.to_json(),
            "date": world.unix(),
            "old_reaction": reactions_json(before),
            "new_reaction": reactions_json(emojis),
        }
        world.tell("message_reaction", body, message.chat)

    # --- coming and going ---

    def join(self, chat: Chat, user: User) -> Message:
        """Somebody comes into a group."""
        chat.members[user.id] = Role.MEMBER
        newcomers: list[Json] = [user.to_json()]
        return self._world.add_message(chat, user, service={"new_chat_members": newcomers})

    def leave(self, chat: Chat, user: User) -> Message:
        """Somebody leaves a group."""
        chat.members[user.id] = Role.LEFT
        return self._world.add_message(chat, user, service={"left_chat_member": user.to_json()})

    def add_bot(self, chat: Chat, by: User) -> None:
        """Somebody takes the bot into a group."""
        bot = self._world.bot
        old = chat.members.get(bot.id, Role.LEFT)
        chat.members[bot.id] = Role.MEMBER
        self._world.tell_standing(chat, by, old, Role.MEMBER)
        newcomers: list[Json] = [bot.to_json()]
        self._world.add_message(chat, by, service={"new_chat_members": newcomers})

    def promote_bot(self, chat: Chat, by: User) -> None:
        """Somebody makes the bot an administrator of a group."""
        old = chat.members[self._world.bot.id]
        chat.members[self._world.bot.id] = Role.ADMINISTRATOR
        self._world.tell_standing(chat, by, old, Role.ADMINISTRATOR)

    def kick_bot(self, chat: Chat, by: User) -> None:
        """Somebody throws the bot out of a group; from then on its requests there are forbidden."""
        old = chat.members[self._world.bot.id]
        chat.members[self._world.bot.id] = Role.KICKED
        self._world.tell_standing(chat, by, old, Role.KICKED)

    def block(self, chat: Chat) -> None:
        """The person of a private chat blocks the bot."""
        assert chat.user is not None
        chat.blocked = True
        self._world.tell_standing(chat, chat.user, Role.MEMBER, Role.KICKED)

    def unblock(self, chat: Chat) -> None:
        """The person of a private chat lets the bot in again."""
        assert chat.user is not None
        chat.blocked = False
        self._world.tell_standing(chat, chat.user, Role.KICKED, Role.MEMBER)

    def rename(self, chat: Chat, by: User, title: str) -> Message:
        """Somebody gives a group another title."""
        chat.title = title
        return self._world.add_message(chat, by, service={"new_chat_title": title})

    def pin(self, message: Message, by: User) -> Message:
        """Somebody pins a message."""
        message.pinned = True
        service: JsonObject = {"pinned_message": self._world.message_json(message, with_reply=False)}
        return self._world.add_message(message.chat, by, service=service)

    def migrate(self, group: Chat, by: User) -> Chat:
        """A group becomes a supergroup: a new chat, two service messages, and requests to the old one fail with the new number."""
        assert group.kind is ChatKind.GROUP, group.kind
        members = [self._world.users[number] for number in group.members if number != by.id]
        members = [user for user in members if user.id != self._world.bot.id]
        new = self.group(group.title, by, *members, supergroup=True, bot=group.members[self._world.bot.id])
        self._world.add_message(group, by, service={"migrate_to_chat_id": new.id})
        group.migrated_to = new.id
        self._world.add_message(new, by, service={"migrate_from_chat_id": group.id})
        return new


def reactions_json(emojis: Sequence[str]) -> list[Json]:
    """ReactionType objects."""
    return [{"type": "emoji", "emoji": emoji} for emoji in emojis]


def hash_of(chat_id: int) -> int:
    """A number that stands for a chat in callback queries; the same one in every run."""
    return (chat_id * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % (1 << 63)


def photo_of(file: StoredFile) -> Media:
    """A file as a photo, with the size that its first bytes tell if it is a PNG."""
    data = file.data
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return Media(MediaKind.PHOTO, file, int(width), int(height))
    return Media(MediaKind.PHOTO, file, 800, 600)
