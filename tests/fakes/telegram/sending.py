"""Methods that write: messages, drafts, files, edits, deletions, reactions, answers to presses. No I/O.

Each takes the world and the parameters of a request and gives the `result`, or raises what the server says. The order of the checks is
the server's: the text first, then the chat, the topic, the message that is answered, and last how much has been sent.
"""

from __future__ import annotations

from tests.fakes.common import Json
from tests.fakes.telegram import checks
from tests.fakes.telegram.entities import utf16_length
from tests.fakes.telegram.errors import ApiError, bad
from tests.fakes.telegram.objects import IN_CHARGE, ChatKind, Media, MediaKind, Message, Role, StoredFile, Toast
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.people import photo_of
from tests.fakes.telegram.world import CALLBACK_SECONDS, World

MAX_UPLOAD_BYTES = 50 * 1024 * 1024
MAX_PHOTO_BYTES = 10 * 1024 * 1024
MAX_TOAST_UTF16 = 200
MAX_DELETED_AT_ONCE = 100
DELETABLE_SECONDS = 48 * 3600
"""Older messages cannot be deleted by a bot (https://core.telegram.org/bots/api#deletemessage)."""

ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)
REACTIONS = frozenset(
    [
        "👍",
        "👎",
        "❤",
        "🔥",
        "🥰",
        "👏",
        "😁",
        "🤔",
        "🤯",
        "😱",
        "🤬",
        "😢",
        "🎉",
        "🤩",
        "🤮",
        "💩",
        "🙏",
        "👌",
        "🕊",
        "🤡",
        "🥱",
        "🥴",
        "😍",
        "🐳",
        "❤️\u200d🔥",
        "🌚",
        "🌭",
        "💯",
        "🤣",
        "⚡",
        "🍌",
        "🏆",
        "💔",
        "🤨",
        "😐",
        "🍓",
        "🍾",
        "💋",
        "🖕",
        "😈",
        "😴",
        "😭",
        "🤓",
        "👻",
        "👨\u200d💻",
        "👀",
        "🎃",
        "🙈",
        "😇",
        "😨",
        "🤝",
        "✍",
        "🤗",
        "🫡",
        "🎅",
        "🎄",
        "☃",
        "💅",
        "🤪",
        "🗿",
        "🆒",
        "💘",
        "🙉",
        "🦄",
        "😘",
        "💊",
        "🙊",
        "😎",
        "👾",
        "🤷\u200d♂",
        "🤷",
        "🤷\u200d♀",
        "😡",
    ]
)
"""The emojis that bots may react with (https://core.telegram.org/bots/api#reactiontypeemoji)."""

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current content and "
    "reply markup of the message"
)


# --- new messages ---


def send_message(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#sendmessage"""
    words = checks.message_words(params)
    keyboard = checks.read_markup(params)
    _preview(params)
    chat = checks.writable_chat(world, params)
    thread = checks.read_thread(chat, params)
    reply = checks.read_reply(chat, params)
    checks.pass_rates(world, chat)
    message = world.add_message(
        chat,
        world.bot,
        words.text,
        words.entities,
        thread=reply.message.thread if thread is None and reply.message else thread,
        reply_to=reply.message,
        quote=reply.quote,
        keyboard=keyboard,
        silent=params.flag("disable_notification"),
    )
    return world.message_json(message)


def send_message_draft(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#sendmessagedraft: private chats only; the same draft_id replaces; empty means thinking."""
    words = checks.read_words(params)
    if utf16_length(words.text) > checks.MAX_TEXT_UTF16:
        raise bad("message is too long")
    draft_id = params.integer("draft_id")
    if not draft_id:
        # The number is required and must not be zero; the server's words are not documented.
        raise bad("draft_id must be non-zero")
    chat = checks.writable_chat(world, params)
    if chat.kind is not ChatKind.PRIVATE:
        raise bad("TEXTDRAFT_PEER_INVALID")
    world.show_draft(chat, checks.read_thread(chat, params), draft_id, words.text, words.entities)
    return True


def _preview(params: Params) -> None:
    """Link previews are not shown by the fake, but their options are known."""
    params.structure("link_preview_options")
    params.flag("disable_web_page_preview")
    params.flag("protect_content")


def _file(world: World, params: Params, kind: MediaKind, name: str) -> StoredFile:
    """The file of a request: uploaded, or known by its id."""
    upload = params.upload(name)
    if upload is None:
        given = params.text(name)
        if not given:
            raise bad(f"there is no {kind.value} in the request")
        if given not in world.files:
            raise bad("wrong file identifier/HTTP URL specified")
        return world.files[given]
    if not upload.data:
        raise bad("file must be non-empty")
    if len(upload.data) > MAX_UPLOAD_BYTES:
        raise ApiError(413, "Request Entity Too Large")
    if kind is MediaKind.PHOTO and len(upload.data) > MAX_PHOTO_BYTES:
        raise bad("file is too big")
    return world.store(upload.name, upload.mime_type, upload.data, kind)


def _media(world: World, params: Params, kind: MediaKind, name: str) -> Media:
    file = _file(world, params, kind, name)
    return photo_of(file) if kind is MediaKind.PHOTO else Media(kind, file)


def _send_media(world: World, params: Params, kind: MediaKind) -> Json:
    words = checks.caption_words(params)
    keyboard = checks.read_markup(params)
    params.flag("protect_content")
    params.flag("disable_content_type_detection")
    chat = checks.writable_chat(world, params)
    thread = checks.read_thread(chat, params)
    reply = checks.read_reply(chat, params)
    media = _media(world, params, kind, kind.value)
    checks.pass_rates(world, chat)
    message = world.add_message(
        chat,
        world.bot,
        words.text,
        words.entities,
        thread=reply.message.thread if thread is None and reply.message else thread,
        reply_to=reply.message,
        quote=reply.quote,
        keyboard=keyboard,
        media=media,
        silent=params.flag("disable_notification"),
    )
    return world.message_json(message)


def send_document(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#senddocument"""
    return _send_media(world, params, MediaKind.DOCUMENT)


def send_voice(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#sendvoice"""
    return _send_media(world, params, MediaKind.VOICE)


def send_photo(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#sendphoto"""
    return _send_media(world, params, MediaKind.PHOTO)


def send_media_group(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#sendmediagroup: 2 to 10 photos, or as many documents."""
    items = params.structure("media")
    if not isinstance(items, list) or not 2 <= len(items) <= 10:
        raise bad("an album must have from 2 to 10 items")
    chat = checks.writable_chat(world, params)
    thread = checks.read_thread(chat, params)
    reply = checks.read_reply(chat, params)
    silent = params.flag("disable_notification")
    params.flag("protect_content")
    parts: list[tuple[checks.Words, Media]] = []
    for item in items:
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict) or kind not in {MediaKind.DOCUMENT.value, MediaKind.PHOTO.value}:
            raise bad(f"can't parse InputMedia: type must be photo or document in this fake, not {kind!r}")
        one = Params(item, params.files)
        parts.append((checks.caption_words(one), _media(world, one, MediaKind(str(kind)), "media")))
    if len({media.kind for _, media in parts}) > 1:
        raise bad("document can't be mixed with other media types")
    checks.pass_rates(world, chat)
    album = str(13_000_000_000_000_000 + world.serial())
    sent: list[Json] = []
    for words, media in parts:
        message = world.add_message(
            chat,
            world.bot,
            words.text,
            words.entities,
            thread=thread,
            reply_to=reply.message,
            quote=reply.quote,
            media=media,
            album=album,
            silent=silent,
        )
        sent.append(world.message_json(message))
    return sent


# --- changing messages ---


def _edit(world: World, params: Params, words: checks.Words | None, *, caption: bool) -> Json:
    """Edit text, caption or (with `words=None`) only the buttons of a message of the bot's own."""
    keyboard = checks.read_markup(params, inline_only=True)
    if params.has("inline_message_id"):
        raise bad("MESSAGE_ID_INVALID")
    chat = checks.open_chat(world, params)
    message = checks.message_of_bot(world, chat, params)
    if words is not None and caption != (message.media is not None):
        raise bad(f"there is no {'caption' if caption else 'text'} in the message to edit")
    text, entities = (words.text, words.entities) if words is not None else (message.text, message.entities)
    if (text, entities, keyboard) == (message.text, message.entities, message.keyboard):
        raise bad(NOT_MODIFIED)
    checks.pass_rates(world, chat)
    world.edit_message(message, text, entities, keyboard, by_bot=True)
    return world.message_json(message)


def edit_message_text(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#editmessagetext. Buttons that are not named again are gone."""
    words = checks.message_words(params)
    _preview(params)
    return _edit(world, params, words, caption=False)


def edit_message_caption(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#editmessagecaption"""
    return _edit(world, params, checks.caption_words(params), caption=True)


def edit_message_reply_markup(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#editmessagereplymarkup"""
    return _edit(world, params, None, caption=False)


def _deletable(world: World, message: Message) -> bool:
    """Whether the bot may delete a message: its own, all in a private chat, and all where it is in charge; none that is too old."""
    if world.unix() - message.date > DELETABLE_SECONDS:
        return False
    chat = message.chat
    in_charge = chat.members.get(world.bot.id, Role.LEFT) in IN_CHARGE
    return message.sender.id == world.bot.id or chat.kind is ChatKind.PRIVATE or in_charge


def delete_message(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#deletemessage"""
    chat = checks.open_chat(world, params)
    number = params.integer("message_id")
    if not number:
        raise bad("message identifier is not specified")
    message = chat.messages.get(number)
    if message is None or message.deleted:
        raise bad("message to delete not found")
    if not _deletable(world, message):
        raise bad("message can't be deleted")
    message.deleted = True
    world.changed()
    return True


def delete_messages(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#deletemessages: those that cannot be found are skipped."""
    chat = checks.open_chat(world, params)
    numbers = params.integers("message_ids")
    if not numbers:
        raise bad("message identifiers are not specified")
    if len(numbers) > MAX_DELETED_AT_ONCE:
        raise bad("too many message identifiers specified")
    messages = [chat.messages[number] for number in numbers if number in chat.messages]
    if any(not message.deleted and not _deletable(world, message) for message in messages):
        raise bad("message can't be deleted")
    for message in messages:
        message.deleted = True
    world.changed()
    return True


# --- what is not a message ---


def send_chat_action(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#sendchataction"""
    name = params.text("action")
    if name not in ACTIONS:
        raise bad("wrong parameter action in request")
    chat = checks.writable_chat(world, params)
    # Unlike messages, an action may name the "General" topic by its number.
    thread = None if params.integer("message_thread_id") == 1 else checks.read_thread(chat, params)
    world.show_action(chat, thread, name)
    return True


def set_message_reaction(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#setmessagereaction: a bot has at most one reaction on a message."""
    wanted = params.structure("reaction")
    params.flag("is_big")
    emojis: list[str] = []
    for item in wanted if isinstance(wanted, list) else []:
        if not isinstance(item, dict) or item.get("type") != "emoji":
            raise bad("REACTION_INVALID")
        emojis.append(str(item.get("emoji", "")).removesuffix("\ufe0f"))
    chat = checks.open_chat(world, params)
    message = chat.messages.get(params.integer("message_id"))
    if message is None or message.deleted:
        raise bad("message to react not found")
    if any(emoji not in REACTIONS for emoji in emojis):
        raise bad("REACTION_INVALID")
    if len(emojis) > 1:
        raise bad("REACTIONS_TOO_MANY")
    message.reactions[world.bot.id] = emojis
    world.changed()
    return True


def answer_callback_query(world: World, params: Params) -> Json:
    """https://core.telegram.org/bots/api#answercallbackquery"""
    text = params.text("text")
    params.integer("cache_time")
    if utf16_length(text) > MAX_TOAST_UTF16:
        raise bad("MESSAGE_TOO_LONG")
    press = world.presses.get(params.text("callback_query_id"))
    late = press is not None and world.clock.monotonic() - press.at > CALLBACK_SECONDS
    if press is None or late or press.toast is not None:
        raise bad("query is too old and response timeout expired or query ID is invalid")
    press.toast = Toast(text, params.flag("show_alert"), params.text("url") or None)
    world.changed()
    return True
