"""From an update of the Bot API to our words. Pure; takes the update as the API's JSON, so that one odd update harms no other.

Source: https://core.telegram.org/bots/api#update. Offsets of entities are UTF-16 code units.
"""

from __future__ import annotations

import re
from typing import TypeAlias, cast

from adapters.contract.chat import (
    BroughtBeside,
    ChatAddress,
    ChatKind,
    ChatMessage,
    ChatOrigin,
    ChatPerson,
    not_own,
)
from adapters.contract.intake import Whence
from adapters.telegram.beside import beside, is_forwarded, name_of, origin_of, string, table
from adapters.telegram.written import as_markdown, written
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.rules.taint import QUOTED
from agent_core.text.typed import as_command

PLATFORM = "telegram"
QUOTE_CHARS = 500
NEARLY_FULL = 3_800
"""A text at least so long (characters) was probably cut: clients cut at 4 096 UTF-16 units, some at the last space before."""
MIGRATES = ("migrate_to_chat_id", "migrate_from_chat_id")
_WIDE = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL)
"""A command in other letters, or with another slash, than the plain ones, which alone Telegram marks as one."""
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


def _number(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a number was expected, not {type(value).__name__}")
    return value


def _person(sender: Table) -> ChatPerson:
    name = " ".join(part for part in (string(sender.get("first_name")), string(sender.get("last_name"))) if part)
    return ChatPerson(
        str(_number(sender["id"])),
        name or string(sender.get("title")) or "somebody",
        string(sender.get("username")),
        language=string(sender.get("language_code"))[:35],
    )


def _address(message: Table, me: Me) -> tuple[ChatAddress, ChatKind]:
    chat = table(message["chat"])
    kind = ChatKind.PRIVATE if chat.get("type") == "private" else ChatKind.GROUP
    topic = message.get("message_thread_id") if message.get("is_topic_message") is True else None
    return ChatAddress(PLATFORM, me.id, str(_number(chat["id"])), str(topic) if topic is not None else ""), kind


def _message(message: Table, me: Me, *, edited: bool) -> Update:
    address, kind = _address(message, me)
    if "migrate_to_chat_id" in message:
        return Moved(address.chat, str(_number(message["migrate_to_chat_id"])))
    sender = table(message.get("sender_chat")) or table(message.get("from"))
    if not sender or (table(message.get("from")).get("is_bot") is True and not message.get("sender_chat")):
        return None
    raw = string(message.get("text")) or string(message.get("caption"))
    if edited and not raw:
        return None  # a live location moves
    brought = beside(message)
    number = _number(message["message_id"])
    forwarded = is_forwarded(message)
    found = _addressed(raw, message.get("entities") or message.get("caption_entities") or [], me)
    if forwarded:
        found = _Addressed(written(message))  # whoever wrote it did not talk to us
    reply = table(message.get("reply_to_message"))
    if "forum_topic_created" in reply:
        reply = {}  # each message of a topic seems to answer its beginning
    to_us = str(table(reply.get("from")).get("id")) == me.id
    answered = beside(reply) if reply and not to_us and not found.command else BroughtBeside()
    if not (raw or brought.words or brought.files):
        return None  # a service message
    origin = ChatOrigin(
        address,
        kind,
        _person(sender),
        str(number),
        (*brought.files, *(not_own(one) for one in answered.files)),
        string(message.get("media_group_id")),
        len(raw) >= NEARLY_FULL,
        foreign=brought.foreign or _foreign(message, reply, answered, to_us=to_us),
    )
    head = f"[Forwarded from {origin_of(table(message.get('forward_origin')))}]" if forwarded else ""
    quoted = "" if found.command else _quoted(reply, message, answered, to_us=to_us)
    return ChatMessage(
        origin=origin,
        key=f"{address.chat}:{number}",
        text="\n".join(piece for piece in (quoted, head, brought.words, found.text) if piece),
        command=found.command,
        for_us=found.for_us,
        for_others=found.for_others,
        reply_to_us=to_us,
        edited=edited,
        said_at=1000 * _number(message.get("date", 0)),
    )


def _foreign(message: Table, reply: Table, answered: BroughtBeside, *, to_us: bool) -> str:
    """Whose words stand in it beside its person's: what they answer is theirs only if they wrote it. A piece of ours may be what we said of a page,
    in a conversation that is over."""
    if "external_reply" in message or (to_us and "quote" in message):
        return QUOTED
    if not reply or to_us:
        return ""
    theirs = table(reply.get("from")).get("id") == table(message.get("from")).get("id")
    return answered.foreign if theirs else QUOTED


def _quoted(reply: Table, message: Table, answered: BroughtBeside, *, to_us: bool) -> str:
    """What it answers to, if that is somebody else's, only a piece of ours, or stands elsewhere."""
    elsewhere = table(message.get("external_reply"))
    quote = written(table(message.get("quote")))
    words = "" if to_us else written(reply)
    said = quote or "\n".join(piece for piece in (answered.words, words) if piece)
    if elsewhere:
        who = origin_of(table(elsewhere.get("origin")))
        told = beside(elsewhere)
        said = quote or told.words or ", ".join(one.name for one in told.files)
        return f"[In reply to {who}, in another chat: “{_short(said)}”]"
    if not said and not answered.files:
        return ""
    passed_on = table(reply.get("forward_origin"))
    wrote = origin_of(passed_on) if passed_on else name_of(table(reply.get("from")) or table(reply.get("sender_chat")))
    who = "you" if to_us else wrote
    return f"[In reply to {who}: “{_short(said)}”]" if said else f"[In reply to {who}, who sent what is attached]"


def _short(said: str) -> str:
    return said if len(said) <= QUOTE_CHARS else said[:QUOTE_CHARS] + " …"


@dataclass(frozen=True, slots=True)
class _Addressed:
    text: str
    command: str = ""
    for_us: bool = False
    for_others: bool = False


def _addressed(text: str, entities: Json, me: Me) -> _Addressed:
    """Whether the text is a command or mentions us; and the rest of it, as it was written."""
    raw = text.encode("utf-16-le")
    listed = [table(entity) for entity in entities] if isinstance(entities, list) else []
    whole = as_markdown(text, entities)
    mentioned = False
    for entity in listed:
        offset, length = _number(entity["offset"]), _number(entity["length"])
        piece = raw[offset * 2 : (offset + length) * 2].decode("utf-16-le", "replace")
        if entity["type"] == "bot_command" and offset == 0:
            name, _, target = piece.removeprefix("/").partition("@")
            rest = whole.removeprefix(piece).strip()
            ours = not target or target.lower() == me.username.lower()
            return _Addressed(rest, name.lower(), for_us=bool(target) and ours, for_others=not ours)
        mentioned = mentioned or (entity["type"] == "mention" and piece.lower() == f"@{me.username}".lower())
        mentioned = mentioned or (
            entity["type"] == "text_mention" and str(table(entity.get("user")).get("id")) == me.id
        )
    meant = as_command(whole)
    wide = _WIDE.fullmatch(meant) if meant != whole else None
    if wide is not None:
        name, target, rest = wide[1].lower(), wide[2] or "", (wide[3] or "").strip()
        ours = target.lower() in ("", me.username.lower())
        return _Addressed(rest, name, for_us=mentioned or (bool(target) and ours), for_others=not ours)
    if mentioned and whole.lower().startswith(f"@{me.username}".lower()):
        whole = whole[len(me.username) + 1 :].lstrip(" ,:")
    return _Addressed(whole, for_us=mentioned)


def _pressed(query: Table, me: Me) -> Update:
    message = table(query.get("message"))
    data = string(query.get("data"))
    if not message or not data:
        return None
    address, kind = _address(message, me)
    number = query["id"]
    if not isinstance(number, str | int) or number == "":
        raise TypeError("a press has an id")  # without it, two presses would pass for one
    origin = ChatOrigin(address, kind, _person(table(query["from"])), str(_number(message["message_id"])))
    return Pressed(
        str(number), ChatMessage(origin=origin, key=f"callback:{number}", text=data, command="press", for_us=True)
    )


def id_of(update: object) -> int | None:
    """An update's number; None if it has none."""
    number = cast("Table", update).get("update_id") if isinstance(update, dict) else None
    if isinstance(number, str) and number.isascii() and number.isdigit():
        number = int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def parties(update: object) -> frozenset[str]:
    """The chats and the person of an update, whatever else is in it: what comes of any of them is taken in its order."""
    known = cast("Table", update) if isinstance(update, dict) else {}
    query = table(known.get("callback_query"))
    message = table(known.get("message")) or table(known.get("edited_message")) or table(query.get("message"))
    chats = (table(message.get("chat")).get("id"), *(message.get(key) for key in MIGRATES))
    people = (table(one.get(key)).get("id") for one in (query or message,) for key in ("from", "sender_chat"))
    return frozenset(str(one) for one in (*chats, *people) if one is not None)


def whence(update: Table, me: Me) -> Whence:
    """Whose an update is that cannot be read, as far as it says so. Raises whatever it wants."""
    query = table(update.get("callback_query"))
    message = table(update.get("message")) or table(update.get("edited_message")) or table(query.get("message"))
    address, kind = _address(message, me)
    private = kind is ChatKind.PRIVATE
    person = address.chat if private else _person(table((query or message).get("from"))).id
    text = (string(message.get("text")) or string(message.get("caption"))).lower()
    for_us = private or bool(query) or (bool(me.username) and f"@{me.username}".lower() in text)
    return Whence(address, person, for_us)


def as_table(value: object) -> Table:
    """An update as it came; raises `TypeError` if it is no object."""
    if not isinstance(value, dict):
        raise TypeError("an update must be an object")
    return cast("Table", value)
