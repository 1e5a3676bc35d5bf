"""The state of the fake Telegram, as seen by one bot: chats, messages, drafts, files, and updates. No I/O; the clock is given.

What persons do is in `people.py`, what the bot may ask for in `methods.py` and its neighbours; both change this world only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tests.fakes.common import Clock, Json, JsonObject
from tests.fakes.telegram.entities import Entity, to_json
from tests.fakes.telegram.keyboards import Keyboard, KeyboardKind
from tests.fakes.telegram.objects import (
    IN_CHARGE,
    INSIDE,
    Chat,
    ChatKind,
    Draft,
    Media,
    MediaKind,
    Message,
    Press,
    Role,
    StoredFile,
    User,
)
from tests.fakes.telegram.rates import RateGate
from tests.fakes.telegram.updates import UpdateQueue

DRAFT_SECONDS = 30.0
"""How long a draft is shown if it is not sent again (https://core.telegram.org/bots/api#sendmessagedraft)."""
ACTION_SECONDS = 5.0
"""How long "typing" is shown if no message comes (https://core.telegram.org/bots/api#sendchataction)."""
CALLBACK_SECONDS = 15.0
"""How long a pressed button waits for its answer. The server's limit is not documented; people report about this."""
FIRST_UPDATE = 700_000_001


@dataclass(frozen=True, slots=True)
class Action:
    """What the bot is shown to do, such as typing."""

    name: str
    thread: int | None
    until: float
    """Monotonic seconds."""


class World:
    """Everything that there is."""

    def __init__(self, bot: User, clock: Clock, *, privacy: bool, changed: Callable[[], None]) -> None:
        self.bot = bot
        self.clock = clock
        self.privacy = privacy
        """Whether the bot is spared what groups say to each other (BotFather's privacy mode)."""
        self.changed = changed
        self.users: dict[int, User] = {bot.id: bot}
        self.chats: dict[int, Chat] = {}
        self.files: dict[str, StoredFile] = {}
        """By file id."""
        self.updates = UpdateQueue(FIRST_UPDATE)
        self.presses: dict[str, Press] = {}
        self.commands: dict[tuple[str, str], list[Json]] = {}
        """Bot commands by scope (as JSON text) and language."""
        self.rates: RateGate | None = None
        self.created: list[Message] = []
        """Every message of the bot in the order in which it came to be, deleted ones too."""
        self._drafts: dict[tuple[int, int | None, int], Draft] = {}
        self._actions: dict[int, Action] = {}
        self._next_message = 1
        self._next_in: dict[int, int] = {}
        self._serial = 0

    # --- names and numbers ---

    def serial(self) -> int:
        """A number that was not given out before."""
        self._serial += 1
        return self._serial

    def unix(self) -> int:
        """Now, in whole Unix seconds."""
        return int(self.clock.unix())

    def add_user(self, user: User) -> User:
        """Somebody new."""
        assert user.id not in self.users, user
        self.users[user.id] = user
        return user

    def add_chat(self, chat: Chat) -> Chat:
        """A new chat."""
        assert chat.id not in self.chats, chat.id
        self.chats[chat.id] = chat
        return chat

    def find_chat(self, name: str) -> Chat | None:
        """A chat by its number."""
        try:
            return self.chats.get(int(name))
        except ValueError:
            return None

    def user_json(self, user_id: int) -> Json:
        """The User object of somebody, known or not."""
        user = self.users.get(user_id)
        return user.to_json() if user else {"id": user_id, "is_bot": False, "first_name": ""}

    # --- messages ---

    def new_message_id(self, chat: Chat) -> int:
        """Supergroups count for themselves; private chats and small groups share the bot's count, as on the server."""
        if chat.kind is ChatKind.SUPERGROUP:
            # Number 1 is the group's own beginning, and so that of the "General" topic.
            number = self._next_in.get(chat.id, 2)
            self._next_in[chat.id] = number + 1
        else:
            number = self._next_message
            self._next_message += 1
        return number

    def add_message(
        self,
        chat: Chat,
        sender: User,
        text: str = "",
        entities: Sequence[Entity] = (),
        *,
        thread: int | None = None,
        reply_to: Message | None = None,
        quote: str | None = None,
        keyboard: Keyboard | None = None,
        media: Media | None = None,
        album: str | None = None,
        service: JsonObject | None = None,
        more: JsonObject | None = None,
        opens_topic: bool = False,
        silent: bool = False,
    ) -> Message:
        """A message appears in a chat. One of the bot's ends its drafts and its typing there; one of a person is told to the bot.

        With `opens_topic` it is the first of a topic, which has its number.
        """
        number = self.new_message_id(chat)
        thread = number if opens_topic else thread
        message = Message(
            chat,
            number,
            self.unix(),
            sender,
            text,
            list(entities),
            thread=thread,
            reply_to=reply_to,
            quote=quote,
            keyboard=keyboard,
            media=media,
            album=album,
            service=service,
            more=more or {},
            silent=silent,
        )
        chat.messages[message.id] = message
        if sender.id == self.bot.id:
            self.created.append(message)
            self._actions.pop(chat.id, None)
            self._drafts = {
                key: draft for key, draft in self._drafts.items() if (key[0], draft.thread) != (chat.id, thread)
            }
        elif self.hears(message):
            self.tell("message", self.message_json(message), chat)
        self.changed()
        return message

    def edit_message(
        self, message: Message, text: str, entities: Sequence[Entity], keyboard: Keyboard | None, *, by_bot: bool
    ) -> None:
        """A message says something else from now on."""
        if (text, list(entities)) != (message.text, message.entities):
            message.earlier.append(message.text)
            message.text, message.entities = text, list(entities)
            message.edited_at = self.unix()
        message.keyboard = keyboard
        if not by_bot and self.hears(message):
            self.tell("edited_message", self.message_json(message), message.chat)
        self.changed()

    def hears(self, message: Message) -> bool:
        """Whether the bot gets to see a person's message.

        In privacy mode a group's messages reach it only if they are commands, mention it, answer it, or are service messages
        (https://core.telegram.org/bots/features#privacy-mode).
        """
        chat = message.chat
        if chat.kind is ChatKind.PRIVATE:
            return not chat.blocked
        role = chat.members.get(self.bot.id, Role.LEFT)
        if role not in INSIDE:
            return False
        if not self.privacy or role in IN_CHARGE or message.service is not None:
            return True
        if message.reply_to is not None and message.reply_to.sender.id == self.bot.id:
            return True
        return self._addresses_bot(message)

    def _addresses_bot(self, message: Message) -> bool:
        name = f"@{self.bot.username}".lower()
        for entity in message.entities:
            words = entity.of(message.text).lower()
            match entity.kind.value:
                case "mention" if words == name:
                    return True
                case "text_mention" if entity.user_id == self.bot.id:
                    return True
                case "bot_command" if "@" not in words or words.endswith(name):
                    return True
                case _:
                    pass
        return False

    def message_json(self, message: Message, *, with_reply: bool = True) -> JsonObject:
        """The Message object."""
        body: JsonObject = {
            "message_id": message.id,
            "from": message.sender.to_json(),
            "chat": message.chat.to_json(),
            "date": message.date,
        }
        if message.thread is not None:
            body["message_thread_id"] = message.thread
            if message.chat.is_forum or message.chat.has_topics:
                body["is_topic_message"] = True
        if message.reply_to is not None and with_reply and not message.reply_to.deleted:
            body["reply_to_message"] = self.message_json(message.reply_to, with_reply=False)
        if message.quote is not None:
            body["quote"] = {"text": message.quote, "position": 0, "is_manual": True}
        if message.edited_at is not None:
            body["edit_date"] = message.edited_at
        if message.service is not None:
            body.update(message.service)
            return body
        entities: list[Json] = [to_json(entity, self.user_json) for entity in message.entities]
        body.update(message.more)
        if message.media is None and message.more and not message.text:
            pass
        elif message.media is None:
            body["text"] = message.text
            if entities:
                body["entities"] = entities
        else:
            sent = message.media.to_json()
            body[message.media.kind.value] = [*sent] if isinstance(sent, list) else sent
            if message.text:
                body["caption"] = message.text
            if entities:
                body["caption_entities"] = entities
        if message.album is not None:
            body["media_group_id"] = message.album
        if message.keyboard is not None and message.keyboard.kind is KeyboardKind.INLINE:
            body["reply_markup"] = message.keyboard.to_json()
        return body

    # --- files ---

    def store(
        self, name: str, mime_type: str, data: bytes, kind: MediaKind, size_bytes: int | None = None
    ) -> StoredFile:
        """Keep a file."""
        number = self.serial()
        folder, ending = ("photos", ".jpg") if kind is MediaKind.PHOTO else ("documents", PurePath(name).suffix)
        file = StoredFile(
            id=f"BQACAgIAAxk{number:06d}",
            unique_id=f"AgAD{number:06d}",
            path=f"{folder}/file_{number}{ending}",
            name=name,
            mime_type=mime_type,
            data=data,
            size_bytes=len(data) if size_bytes is None else size_bytes,
        )
        self.files[file.id] = file
        return file

    # --- what fades ---

    def show_draft(self, chat: Chat, thread: int | None, draft_id: int, text: str, entities: Sequence[Entity]) -> Draft:
        """The person sees a draft, or a new state of it."""
        key = (chat.id, thread, draft_id)
        before = self._drafts.get(key)
        changes = before.changes + 1 if before and before.until > self.clock.monotonic() else 1
        draft = Draft(draft_id, text, tuple(entities), thread, changes, self.clock.monotonic() + DRAFT_SECONDS)
        self._drafts[key] = draft
        self.changed()
        return draft

    def drafts(self, chat: Chat) -> list[Draft]:
        """The drafts that are visible now, oldest first."""
        now = self.clock.monotonic()
        return [draft for (chat_id, _, _), draft in self._drafts.items() if chat_id == chat.id and draft.until > now]

    def show_action(self, chat: Chat, thread: int | None, name: str) -> None:
        """The person sees the bot do something."""
        self._actions[chat.id] = Action(name, thread, self.clock.monotonic() + ACTION_SECONDS)
        self.changed()

    def action(self, chat: Chat) -> Action | None:
        """What the bot is seen to do now."""
        action = self._actions.get(chat.id)
        return action if action and action.until > self.clock.monotonic() else None

    # --- updates ---

    def tell(self, kind: str, body: JsonObject, chat: Chat) -> None:
        """Let the bot know, if it wants to."""
        self.updates.put(kind, body, chat.id, self.clock.monotonic())
        self.changed()

    def tell_standing(self, chat: Chat, by: User, old: Role, new: Role) -> None:
        """The bot's own membership has changed (`my_chat_member`)."""
        member: JsonObject = {"user": self.bot.to_json()}
        body: JsonObject = {
            "chat": chat.to_json(),
            "from": by.to_json(),
            "date": self.unix(),
            "old_chat_member": {**member, **standing_json(old)},
            "new_chat_member": {**member, **standing_json(new)},
        }
        self.tell("my_chat_member", body, chat)


_RIGHTS = (
    "can_be_edited",
    "is_anonymous",
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_pin_messages",
    "can_manage_topics",
)


def standing_json(role: Role) -> JsonObject:
    """The fields of a ChatMember object that depend on the status."""
    body: JsonObject = {"status": role.value}
    match role:
        case Role.CREATOR:
            body["is_anonymous"] = False
        case Role.ADMINISTRATOR:
            body.update({right: right not in {"can_be_edited", "is_anonymous"} for right in _RIGHTS})
        case Role.KICKED:
            body["until_date"] = 0
        case Role.MEMBER | Role.LEFT:
            pass
    return body
