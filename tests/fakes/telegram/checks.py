"""What the Bot API checks before it does something, and what it says if it does not. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.common import JsonObject
from tests.fakes.telegram import entities as entity_rules
from tests.fakes.telegram.entities import Entity, utf16_length
from tests.fakes.telegram.errors import bad, forbidden, too_many
from tests.fakes.telegram.keyboards import Keyboard, read_keyboard
from tests.fakes.telegram.markup import parse
from tests.fakes.telegram.objects import INSIDE, Chat, ChatKind, Message, Role
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.world import World

MAX_TEXT_UTF16 = 4096
MAX_CAPTION_UTF16 = 1024


@dataclass(frozen=True, slots=True)
class Words:
    """A text with everything that belongs to it."""

    text: str
    entities: list[Entity]


def read_words(params: Params, name: str = "text") -> Words:
    """The text of a request after parsing, trimmed, and with what the server finds by itself. May be empty.

    Raises:
        ApiError: the markup is broken, or entities do not fit.
    """
    prefix = "" if name == "text" else f"{name}_"
    source, mode = params.text(name), params.text("parse_mode")
    # As on the server: a parse mode wins over entities.
    given = params.structure(f"{prefix}entities")
    if mode:
        text, entities = parse(source, mode)
    else:
        text, entities = source, entity_rules.given(given) if given is not None else []
    entity_rules.check(text, entities)
    text, entities = entity_rules.trimmed(text, entities)
    return Words(text, entity_rules.found(text, entities))


def message_words(params: Params) -> Words:
    """The text of a message: neither empty nor too long."""
    if not params.text("text").strip():
        raise bad("message text is empty")
    words = read_words(params)
    if not words.text:
        raise bad("message text is empty")
    if utf16_length(words.text) > MAX_TEXT_UTF16:
        raise bad("message is too long")
    return words


def caption_words(params: Params) -> Words:
    """A caption: not too long."""
    words = read_words(params, "caption")
    if utf16_length(words.text) > MAX_CAPTION_UTF16:
        raise bad("message caption is too long")
    return words


def known_chat(world: World, params: Params) -> Chat:
    """The chat that `chat_id` names, if the bot can know it."""
    if not params.has("chat_id"):
        raise bad("chat_id is empty")
    chat = world.find_chat(params.text("chat_id"))
    if chat is None:
        raise bad("chat not found")
    return chat


def open_chat(world: World, params: Params) -> Chat:
    """The chat that `chat_id` names, if the bot may act there.

    Raises:
        ApiError: it is not there, has become a supergroup, or the bot is not (or no more) welcome.
    """
    chat = known_chat(world, params)
    if chat.migrated_to is not None:
        raise bad("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to)
    if chat.kind is ChatKind.PRIVATE:
        if chat.deactivated:
            raise forbidden("user is deactivated")
        if not chat.started:
            raise forbidden("bot can't initiate conversation with a user")
        if chat.blocked:
            raise forbidden("bot was blocked by the user")
        return chat
    role = chat.members.get(world.bot.id, Role.LEFT)
    if role is Role.KICKED:
        raise forbidden(f"bot was kicked from the {chat.kind.value} chat")
    if role not in INSIDE:
        raise forbidden(f"bot is not a member of the {chat.kind.value} chat")
    return chat


def writable_chat(world: World, params: Params) -> Chat:
    """The chat that `chat_id` names, if the bot may write there."""
    chat = open_chat(world, params)
    if not chat.bot_may_write:
        raise bad("not enough rights to send text messages to the chat")
    return chat


def pass_rates(world: World, chat: Chat) -> None:
    """Count a message or an edit against the rate rules, if there are any.

    Raises:
        ApiError: 429 with the seconds to wait.
    """
    if world.rates is None:
        return
    wait = world.rates.ask(chat.id, group=chat.kind is not ChatKind.PRIVATE, now=world.clock.monotonic())
    if wait:
        raise too_many(wait)


def read_thread(chat: Chat, params: Params) -> int | None:
    """The topic of `message_thread_id`; None for none.

    The "General" topic of a forum has no number here: the server answers "message thread not found" to its number 1.
    """
    thread = params.integer("message_thread_id")
    if not thread:
        return None
    if not (chat.is_forum or chat.has_topics) or thread not in chat.topics:
        raise bad("message thread not found")
    if chat.topics[thread].closed:
        raise bad("TOPIC_CLOSED")
    return thread


@dataclass(frozen=True, slots=True)
class Reply:
    """Whom a message answers."""

    message: Message | None = None
    quote: str | None = None


def read_reply(chat: Chat, params: Params) -> Reply:
    """The target of `reply_parameters`, or of the older `reply_to_message_id`.

    Raises:
        ApiError: it is not there, and sending without it is not allowed.
    """
    given = params.structure("reply_parameters")
    fields: JsonObject = given if isinstance(given, dict) else {}
    if given is not None and not isinstance(given, dict):
        raise bad("can't parse reply parameters JSON object")
    number = fields.get("message_id", params.integer("reply_to_message_id"))
    lenient = fields.get("allow_sending_without_reply") is True or params.flag("allow_sending_without_reply")
    if not number:
        return Reply()
    if str(fields.get("chat_id", chat.id)) != str(chat.id):
        raise bad("this fake knows replies within a chat only")
    target = chat.messages.get(number) if isinstance(number, int) else None
    if target is None or target.deleted:
        if lenient:
            return Reply()
        raise bad("message to be replied not found")
    quote = fields.get("quote")
    if isinstance(quote, str) and quote and quote not in target.text:
        raise bad("QUOTE_TEXT_INVALID")
    return Reply(target, quote if isinstance(quote, str) and quote else None)


def read_markup(params: Params, *, inline_only: bool = False) -> Keyboard | None:
    """The keyboard of `reply_markup`."""
    return read_keyboard(params.structure("reply_markup"), inline_only=inline_only)


def message_of_bot(world: World, chat: Chat, params: Params) -> Message:
    """The message of `message_id`, if the bot may edit it."""
    number = params.integer("message_id")
    if not number:
        raise bad("message identifier is not specified")
    message = chat.messages.get(number)
    if message is None or message.deleted:
        raise bad("message to edit not found")
    if message.sender.id != world.bot.id or message.service is not None:
        raise bad("message can't be edited")
    return message
