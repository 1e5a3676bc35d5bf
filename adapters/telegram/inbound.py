"""From an update of the Bot API to our words. Pure; takes the update as the API's JSON, so that one odd update harms no other.

Source: https://core.telegram.org/bots/api#update. Offsets of entities are UTF-16 code units.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from adapters.contract.chat import (
    Attachment,
    AttachmentKind,
    ChatAddress,
    ChatKind,
    ChatMessage,
    ChatOrigin,
    ChatPerson,
)
from adapters.contract.intake import Whence
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.rules.taint import FORWARDED, QUOTED

PLATFORM = "telegram"
QUOTE_CHARS = 500
NEARLY_FULL = 3_800
"""A text at least so long (characters) was probably cut: clients cut at 4 096 UTF-16 units, some at the last space before."""
_OTHER = (
    "voice",
    "audio",
    "video",
    "video_note",
    "animation",
    "sticker",
    "location",
    "contact",
    "poll",
    "dice",
    "venue",
)

Table: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself."""

    id: str
    username: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A group has become a supergroup."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button was pressed; the platform wants to hear soon that this was seen."""

    query: str
    message: ChatMessage


Update: TypeAlias = ChatMessage | Moved | Pressed | None


def read_update(update: Table, me: Me) -> Update:
    """What an update means for us; None if nothing. Raises `ValueError`, `KeyError` or `TypeError` if it is malformed."""
    if isinstance(message := update.get("message"), dict):
        return _message(message, me, edited=False)
    if isinstance(message := update.get("edited_message"), dict):
        return _message(message, me, edited=True)
    if isinstance(query := update.get("callback_query"), dict):
        return _pressed(query, me)
    return None


def _table(value: Json) -> Table:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a number was expected, not {type(value).__name__}")
    return value


def _person(sender: Table) -> ChatPerson:
    name = " ".join(part for part in (_text(sender.get("first_name")), _text(sender.get("last_name"))) if part)
    return ChatPerson(
        str(_number(sender["id"])),
        name or _text(sender.get("title")) or "somebody",
        _text(sender.get("username")),
        language=_text(sender.get("language_code"))[:35],
    )


def _address(message: Table, me: Me) -> tuple[ChatAddress, ChatKind]:
    chat = _table(message["chat"])
    kind = ChatKind.PRIVATE if chat.get("type") == "private" else ChatKind.GROUP
    topic = message.get("message_thread_id") if message.get("is_topic_message") is True else None
    return ChatAddress(PLATFORM, me.id, str(_number(chat["id"])), str(topic) if topic is not None else ""), kind


def _message(message: Table, me: Me, *, edited: bool) -> Update:
    address, kind = _address(message, me)
    if "migrate_to_chat_id" in message:
        return Moved(address.chat, str(_number(message["migrate_to_chat_id"])))
    sender = _table(message.get("sender_chat")) or _table(message.get("from"))
    if not sender or (_table(message.get("from")).get("is_bot") is True and not message.get("sender_chat")):
        return None
    text = _text(message.get("text")) or _text(message.get("caption"))
    attachments = _attachments(message)
    if not text and not attachments:
        return None  # a service message
    number = _number(message["message_id"])
    found = _addressed(text, message.get("entities") or message.get("caption_entities") or [], me)
    reply = _table(message.get("reply_to_message"))
    to_us = str(_table(reply.get("from")).get("id")) == me.id and "forum_topic_created" not in reply
    origin = ChatOrigin(
        address,
        kind,
        _person(sender),
        str(number),
        attachments,
        _text(message.get("media_group_id")),
        len(text) >= NEARLY_FULL,
        foreign=_foreign(message, reply, to_us=to_us),
    )
    return ChatMessage(
        origin=origin,
        key=f"{address.chat}:{number}",
        text=found.text if found.command else _quoting(found.text, reply, message, to_us=to_us),
        command=found.command,
        for_us=found.for_us,
        for_others=found.for_others,
        reply_to_us=to_us,
        edited=edited,
    )


def _foreign(message: Table, reply: Table, *, to_us: bool) -> str:
    """Whose words stand in it beside its person's."""
    if "forward_origin" in message or "forward_date" in message:
        return FORWARDED
    theirs = _table(reply.get("from")).get("id") == _table(message.get("from")).get("id")
    return QUOTED if reply and not to_us and not theirs else QUOTED if "external_reply" in message else ""


def _quoting(text: str, reply: Table, message: Table, *, to_us: bool) -> str:
    """The text with what it answers to, if that is somebody else's, or only a piece of ours."""
    quote = _text(_table(message.get("quote")).get("text"))
    said = quote or ("" if to_us else _text(reply.get("text")) or _text(reply.get("caption")))
    if not said:
        return text
    who = "you" if to_us else _person(_table(reply["from"])).name if isinstance(reply.get("from"), dict) else "somebody"
    short = said if len(said) <= QUOTE_CHARS else said[:QUOTE_CHARS] + " …"
    return f"[In reply to {who}: “{short}”]\n{text}"


@dataclass(frozen=True, slots=True)
class _Addressed:
    text: str
    command: str = ""
    for_us: bool = False
    for_others: bool = False


def _addressed(text: str, entities: Json, me: Me) -> _Addressed:
    """Whether the text is a command or mentions us."""
    raw = text.encode("utf-16-le")
    listed = [_table(entity) for entity in entities] if isinstance(entities, list) else []
    mentioned = False
    for entity in listed:
        offset, length = _number(entity["offset"]), _number(entity["length"])
        piece = raw[offset * 2 : (offset + length) * 2].decode("utf-16-le", "replace")
        if entity["type"] == "bot_command" and offset == 0:
            name, _, target = piece.removeprefix("/").partition("@")
            rest = raw[length * 2 :].decode("utf-16-le", "replace").strip()
            ours = not target or target.lower() == me.username.lower()
            return _Addressed(rest, name.lower(), for_us=bool(target) and ours, for_others=not ours)
        mentioned = mentioned or (entity["type"] == "mention" and piece.lower() == f"@{me.username}".lower())
        mentioned = mentioned or (
            entity["type"] == "text_mention" and str(_table(entity.get("user")).get("id")) == me.id
        )
    if mentioned and text.lower().startswith(f"@{me.username}".lower()):
        text = text[len(me.username) + 1 :].lstrip(" ,:")
    return _Addressed(text, for_us=mentioned)


def _attachments(message: Table) -> tuple[Attachment, ...]:
    if isinstance(photos := message.get("photo"), list) and photos:
        best = _table(photos[-1])
        name = f"photo-{_number(message['message_id'])}.jpg"
        return (Attachment(AttachmentKind.IMAGE, _text(best["file_id"]), name, "image/jpeg", _size(best)),)
    for field in _OTHER:
        if field in message:
            return (Attachment(AttachmentKind.OTHER, "", field.replace("_", " ")),)
    if isinstance(document := message.get("document"), dict):
        mime = _text(document.get("mime_type"))
        kind = (
            AttachmentKind.IMAGE
            if mime in ("image/png", "image/jpeg", "image/webp", "image/gif")
            else AttachmentKind.FILE
        )
        name = _text(document.get("file_name")) or "file"
        return (Attachment(kind, _text(document["file_id"]), name, mime, _size(document)),)
    return ()


def _size(file: Table) -> int:
    size = file.get("file_size")
    return size if isinstance(size, int) else 0


def _pressed(query: Table, me: Me) -> Update:
    message = _table(query.get("message"))
    data = _text(query.get("data"))
    if not message or not data:
        return None
    address, kind = _address(message, me)
    number = query["id"]
    if not isinstance(number, str | int) or number == "":
        raise TypeError("a press has an id")  # without it, two presses would pass for one
    origin = ChatOrigin(address, kind, _person(_table(query["from"])), str(_number(message["message_id"])))
    return Pressed(
        str(number), ChatMessage(origin=origin, key=f"callback:{number}", text=data, command="press", for_us=True)
    )


def id_of(update: object) -> int | None:
    """An update's number; None if it has none."""
    number = cast("Table", update).get("update_id") if isinstance(update, dict) else None
    if isinstance(number, str) and number.isascii() and number.isdigit():
        number = int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def whence(update: Table, me: Me) -> Whence:
    """Whose an update is that cannot be read, as far as it says so. Raises whatever it wants."""
    query = _table(update.get("callback_query"))
    message = _table(update.get("message")) or _table(update.get("edited_message")) or _table(query.get("message"))
    address, kind = _address(message, me)
    private = kind is ChatKind.PRIVATE
    person = address.chat if private else _person(_table((query or message).get("from"))).id
    text = (_text(message.get("text")) or _text(message.get("caption"))).lower()
    for_us = private or bool(query) or (bool(me.username) and f"@{me.username}".lower() in text)
    return Whence(address, person, for_us)


def as_table(value: object) -> Table:
    """An update as it came; raises `TypeError` if it is no object."""
    if not isinstance(value, dict):
        raise TypeError("an update must be an object")
    return cast("Table", value)
