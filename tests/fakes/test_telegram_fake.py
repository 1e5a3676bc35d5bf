"""The stand-in for Telegram, driven by the real library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
import telegram
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, ReactionTypeEmoji, ReplyParameters
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from telegram.request import HTTPXRequest

from tests.fakes.telegram import (
    Kind,
    LoseAnswer,
    Rates,
    Reset,
    Role,
    TelegramFake,
    conflict,
    flood,
    gateway_page,
    refusal,
    server_error,
)

# The library announces a change of this attribute's type whenever it is touched, also by itself.
pytestmark = pytest.mark.filterwarnings("ignore:.*attribute `retry_after` will be of type")


def library(fake: TelegramFake, token: str = "") -> Bot:
    """A bot of python-telegram-bot that talks to the fake."""
    # The machine's proxy settings are not for loopback.
    request = HTTPXRequest(connection_pool_size=8, httpx_kwargs={"trust_env": False})
    polls = HTTPXRequest(httpx_kwargs={"trust_env": False})
    return Bot(
        token or fake.token,
        base_url=fake.base_url,
        base_file_url=fake.file_url,
        request=request,
        get_updates_request=polls,
    )


@pytest.fixture
async def fake() -> AsyncGenerator[TelegramFake]:
    async with TelegramFake() as running:
        yield running


@pytest.fixture
async def bot(fake: TelegramFake) -> AsyncGenerator[Bot]:
    async with library(fake) as connected:
        yield connected
    # Everything that the library sent is known to the fake.
    assert {(call.route, name) for call in fake.log for name in call.ignored} == set()


# --- messages ---


async def test_the_bot_says_who_it_is_and_the_token_must_be_right(fake: TelegramFake, bot: Bot) -> None:
    me = await bot.get_me()
    assert (me.id, me.username, me.can_read_all_group_messages) == (fake.bot.id, "outspoken_bot", True)
    for wrong in ("7000000001:AAsomebodyElse", "no-token-at-all"):
        with pytest.raises(InvalidToken):
            async with library(fake, wrong):
                pass
    assert [call.status for call in fake.log.of("getMe")] == [200, 200, 401, 404]


async def test_a_message_is_seen_with_its_entities_and_buttons(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    asked = fake.people.say(chat, ada, "hi")
    buttons = InlineKeyboardMarkup([[InlineKeyboardButton("Stop", callback_data="stop:1")]])
    sent = await bot.send_message(
        chat.id,
        "<b>bold &amp; 🏟</b> <i>more</i>",
        parse_mode="HTML",
        reply_markup=buttons,
        reply_parameters=ReplyParameters(asked.id),
        disable_notification=True,
    )
    assert sent.text == "bold & 🏟 more"
    assert sent.reply_to_message is not None
    assert sent.reply_to_message.message_id == asked.id
    seen = fake.shown(chat)
    assert seen.texts == ["hi", "bold & 🏟 more"]
    answer = seen.answers[0]
    assert answer.styled(Kind.BOLD) == ["bold & 🏟"]
    assert answer.styled(Kind.ITALIC) == ["more"]
    assert (answer.buttons, answer.reply_to, answer.silent) == ((("Stop",),), asked.id, True)
    assert fake.log.of("sendMessage")[0].ignored == frozenset()


async def test_what_the_server_finds_by_itself_is_in_the_answer(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    sent = await bot.send_message(chat.id, "  /help @outspoken_bot #news https://example.org/a a@b.example.org  ")
    kinds = {entity.type: sent.parse_entity(entity) for entity in sent.entities}
    assert kinds == {
        "bot_command": "/help",
        "mention": "@outspoken_bot",
        "hashtag": "#news",
        "url": "https://example.org/a",
        "email": "a@b.example.org",
    }


@pytest.mark.parametrize("text", ["", "  \n", "<b> </b>"])
async def test_an_empty_text_is_refused(fake: TelegramFake, bot: Bot, text: str) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    with pytest.raises(BadRequest, match="text is empty"):
        await bot.send_message(chat.id, text, parse_mode="HTML")


async def test_the_length_counts_utf16_units_after_parsing(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    await bot.send_message(chat.id, "<b>" + "🏟" * 2048 + "</b>", parse_mode="HTML")
    with pytest.raises(BadRequest, match="Message is too long"):
        await bot.send_message(chat.id, "🏟" * 2048 + "x")
    with pytest.raises(BadRequest, match="Message is too long"):
        await bot.send_message_draft(chat.id, 1, "🏟" * 2048 + "x")
    with pytest.raises(BadRequest, match="caption is too long"):
        await bot.send_document(chat.id, b"data", caption="x" * 1025)
    assert len(fake.shown(chat).messages) == 1


async def test_entities_must_fit_the_text(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))

    async def send(*entities: tuple[int, int]) -> None:
        await bot.send_message(chat.id, "a🏟b", entities=[MessageEntity("bold", *entity) for entity in entities])

    await send((1, 2), (0, 4))
    for wrong, words in {
        (0, 5): "ends after the end of the text at utf-16 offset 5",
        (5, 1): "begins after the end of the text at utf-16 offset 5",
        (2, 1): "begins in a middle of a utf-16 symbol at byte offset 1",
        (0, 2): "ends in a middle of a utf-16 symbol at byte offset 1",
        (-1, 1): "incorrect offset",
    }.items():
        with pytest.raises(BadRequest, match=words):
            await send(wrong)
    with pytest.raises(BadRequest, match="ENTITIES_TOO_LONG".capitalize()):
        await send(*[(0, 4)] * 101)


async def test_broken_markup_is_told_with_the_servers_words(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    with pytest.raises(BadRequest, match=r"Can't parse entities: character '\.' is reserved and must be escaped"):
        await bot.send_message(chat.id, "1.5", parse_mode="MarkdownV2")
    assert fake.log.of("sendMessage")[0].answer == {
        "ok": False,
        "error_code": 400,
        "description": "Bad Request: can't parse entities: Character '.' is reserved and must be escaped with the preceding '\\'",
    }
    assert fake.shown(chat).texts == []


async def test_edits_change_what_is_seen_and_an_edit_without_a_change_is_refused(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    sent = await bot.send_message(chat.id, "⏳")
    await bot.edit_message_text("half", chat.id, sent.message_id)
    await bot.edit_message_text("*whole*", chat.id, sent.message_id, parse_mode="MarkdownV2")
    with pytest.raises(BadRequest, match="Message is not modified"):
        await bot.edit_message_text("*whole*", chat.id, sent.message_id, parse_mode="MarkdownV2")
    only = fake.shown(chat).messages[0]
    assert (only.text, only.edits, only.earlier) == ("whole", 2, ("⏳", "half"))
    assert only.styled(Kind.BOLD) == ["whole"]
    buttons = InlineKeyboardMarkup.from_button(InlineKeyboardButton("Again", callback_data="x"))
    await bot.edit_message_reply_markup(chat.id, sent.message_id, reply_markup=buttons)
    assert (fake.shown(chat).messages[0].buttons, fake.shown(chat).messages[0].edits) == ((("Again",),), 2)


async def test_what_is_not_there_or_not_its_own_cannot_be_edited_or_deleted(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    group = fake.people.group("G", ada)
    hers = fake.people.say(group, ada, "mine")
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("x", chat.id, 4711)
    with pytest.raises(BadRequest, match="Message can't be edited"):
        await bot.edit_message_text("x", group.id, hers.id)
    with pytest.raises(BadRequest, match="Message can't be deleted"):
        await bot.delete_message(group.id, hers.id)
    with pytest.raises(BadRequest, match="Message to delete not found"):
        await bot.delete_message(chat.id, 4711)
    with pytest.raises(BadRequest, match="Message to be replied not found"):
        await bot.send_message(chat.id, "x", reply_to_message_id=4711)
    await bot.send_message(chat.id, "anyway", reply_parameters=ReplyParameters(4711, allow_sending_without_reply=True))
    sent = [await bot.send_message(chat.id, str(number)) for number in range(3)]
    await bot.delete_message(chat.id, sent[0].message_id)
    await bot.delete_messages(chat.id, [sent[1].message_id, 4711])
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("x", chat.id, sent[0].message_id)
    assert fake.shown(chat).texts == ["anyway", "2"]
    assert [message.text for message in fake.world.created] == ["anyway", "0", "1", "2"]
    fake.advance(49 * 3600)
    with pytest.raises(BadRequest, match="Message can't be deleted"):
        await bot.delete_message(chat.id, sent[2].message_id)


# --- what fades ---


async def test_a_draft_is_replaced_by_its_number_and_fades(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    await bot.send_message_draft(chat.id, 7)
    assert [draft.text for draft in fake.shown(chat).drafts] == [""]
    await bot.send_message_draft(chat.id, 7, "<i>so", parse_mode=None)
    await bot.send_message_draft(chat.id, 7, "so far")
    (draft,) = fake.shown(chat).drafts
    assert (draft.text, draft.changes) == ("so far", 3)
    fake.advance(31)
    assert not fake.shown(chat).drafts
    await bot.send_message_draft(chat.id, 8, "again")
    await bot.send_message(chat.id, "done")
    assert not fake.shown(chat).drafts
    assert fake.shown(chat).texts == ["done"]


async def test_drafts_are_for_private_chats_and_need_a_number(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    with pytest.raises(BadRequest, match="Textdraft_peer_invalid"):
        await bot.send_message_draft(fake.people.group("G", ada).id, 1, "x")
    with pytest.raises(BadRequest, match="non-zero"):
        await bot.send_message_draft(fake.people.private(ada).id, 0, "x")


async def test_typing_shows_for_five_seconds_or_until_a_message(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    await bot.send_chat_action(chat.id, "typing")
    assert fake.shown(chat).typing
    await bot.send_message(chat.id, "x")
    assert not fake.shown(chat).typing
    await bot.send_chat_action(chat.id, "typing")
    fake.advance(5.1)
    assert not fake.shown(chat).typing
    with pytest.raises(BadRequest, match="Wrong parameter action in request"):
        await bot.send_chat_action(chat.id, "thinking")


# --- buttons and reactions ---


async def test_a_button_pressed_comes_as_a_query_and_is_answered_once(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    buttons = InlineKeyboardMarkup.from_row([InlineKeyboardButton(name, callback_data=name * 2) for name in "ab"])
    sent = await bot.send_message(chat.id, "choose", reply_markup=buttons)
    press = fake.people.press(fake.message(chat, sent.message_id), ada, "b")
    (update,) = await bot.get_updates()
    assert update.callback_query is not None
    assert update.callback_query.data == "bb"
    assert update.callback_query.from_user.id == ada.id
    assert press.toast is None
    await update.callback_query.answer("got it", show_alert=True)
    assert press.toast is not None
    assert (press.toast.text, press.toast.alert) == ("got it", True)
    with pytest.raises(BadRequest, match="Query is too old"):
        await update.callback_query.answer("again")
    late = fake.people.press(fake.message(chat, sent.message_id), ada, "a")
    fake.advance(60)
    with pytest.raises(BadRequest, match="Query is too old"):
        await bot.answer_callback_query(late.id)


async def test_a_press_on_a_message_that_is_gone_tells_of_an_inaccessible_one(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    sent = await bot.send_message(chat.id, "choose")
    await bot.delete_message(chat.id, sent.message_id)
    fake.people.press_raw(fake.message(chat, sent.message_id), ada, "old")
    (update,) = await bot.get_updates()
    assert update.callback_query is not None
    assert update.callback_query.message is not None
    assert not update.callback_query.message.is_accessible


async def test_callback_data_has_64_bytes_at_most(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))

    async def send(data: str) -> None:
        await bot.send_message(
            chat.id, "x", reply_markup=InlineKeyboardMarkup.from_button(InlineKeyboardButton("b", callback_data=data))
        )

    await send("é" * 32)
    with pytest.raises(BadRequest, match="Button_data_invalid"):
        await send("é" * 32 + "x")


async def test_reactions_go_both_ways(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    asked = fake.people.say(chat, ada, "hi")
    await bot.set_message_reaction(chat.id, asked.id, "👀")
    assert fake.shown(chat).messages[0].reactions == ("👀",)
    with pytest.raises(BadRequest, match="Reaction_invalid"):
        await bot.set_message_reaction(chat.id, asked.id, "🐌")
    with pytest.raises(BadRequest, match="Reactions_too_many"):
        await bot.set_message_reaction(chat.id, asked.id, ["👀", "👍"])
    sent = await bot.send_message(chat.id, "hello")
    fake.people.react(fake.message(chat, sent.message_id), ada, "👎")
    assert len(await bot.get_updates(allowed_updates=["message", "message_reaction"])) == 1, (
        "not asked for at that time"
    )
    fake.people.react(fake.message(chat, sent.message_id), ada, "👍")
    reacted = (await bot.get_updates())[-1].message_reaction
    assert reacted is not None
    (new,) = reacted.new_reaction
    assert isinstance(new, ReactionTypeEmoji)
    assert (new.emoji, len(reacted.old_reaction)) == ("👍", 1)


# --- files ---


async def test_files_go_both_ways(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    sent = await bot.send_document(
        chat.id, b"a,b\n1,2\n", filename="table.csv", caption="*here*", parse_mode="Markdown"
    )
    assert sent.document is not None
    assert (sent.document.file_name, sent.document.file_size) == ("table.csv", 8)
    shown = fake.shown(chat).answers[0]
    assert shown.media is not None
    assert (shown.text, shown.media.file.data) == ("here", b"a,b\n1,2\n")

    fake.people.document(chat, ada, "notes.txt", b"remember", mime_type="text/plain", caption="read this")
    fake.people.album(chat, ada, [b"one", b"two"], caption="look")
    document, first, second = [update.message for update in await bot.get_updates()]
    assert document is not None
    assert document.document is not None
    assert document.caption == "read this"
    file = await document.document.get_file()
    assert bytes(await file.download_as_bytearray()) == b"remember"
    assert first is not None
    assert second is not None
    assert first.media_group_id == second.media_group_id
    assert (first.caption, second.caption) == ("look", None)
    assert bytes(await (await second.photo[-1].get_file()).download_as_bytearray()) == b"two"

    fake.people.document(chat, ada, "huge.bin", b"x", claimed_bytes=30_000_000)
    huge = (await bot.get_updates())[-1].message
    assert huge is not None
    assert huge.document is not None
    with pytest.raises(BadRequest, match="File is too big"):
        await huge.document.get_file()
    with pytest.raises(BadRequest, match="Invalid file_id"):
        await bot.get_file("nothing")
    with pytest.raises(BadRequest, match="Wrong file identifier"):
        await bot.send_document(chat.id, "nothing")


async def test_captions_and_texts_are_edited_each_by_its_own_method(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    text = await bot.send_message(chat.id, "text")
    photo = await bot.send_photo(chat.id, b"picture", caption="caption")
    await bot.edit_message_caption(chat.id, photo.message_id, caption="other")
    with pytest.raises(BadRequest, match="There is no text in the message to edit"):
        await bot.edit_message_text("x", chat.id, photo.message_id)
    with pytest.raises(BadRequest, match="There is no caption in the message to edit"):
        await bot.edit_message_caption(chat.id, text.message_id, caption="x")
    assert fake.shown(chat).texts == ["text", "other"]


async def test_an_album_of_the_bot_is_one_group(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    photos = [telegram.InputMediaPhoto(b"one", caption="<b>c</b>", parse_mode="HTML"), telegram.InputMediaPhoto(b"two")]
    await bot.send_media_group(chat.id, photos)
    first, second = fake.shown(chat).answers
    assert first.album == second.album is not None
    assert first.styled(Kind.BOLD) == ["c"]
    assert second.media is not None
    assert second.media.file.data == b"two"


# --- chats ---


async def test_a_blocked_bot_is_told_so_and_hears_of_the_change(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    fake.people.block(chat)
    with pytest.raises(Forbidden, match="bot was blocked by the user"):
        await bot.send_message(chat.id, "x")
    fake.people.unblock(chat)
    await bot.send_message(chat.id, "x")
    changes = [update.my_chat_member for update in await bot.get_updates()]
    assert [change.new_chat_member.status for change in changes if change] == ["kicked", "member"]
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.send_message(4711, "x")
    with pytest.raises(Forbidden, match="can't initiate conversation"):
        await bot.send_message(fake.people.private(fake.people.user("Bob"), started=False).id, "x")


async def test_a_kicked_bot_may_not_write_in_the_group(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    large, small = fake.people.group("L", ada, supergroup=True), fake.people.group("S", ada)
    for chat, words in ((large, "from the supergroup chat"), (small, "from the group chat")):
        fake.people.kick_bot(chat, ada)
        with pytest.raises(Forbidden, match=f"bot was kicked {words}"):
            await bot.send_message(chat.id, "x")
    fake.people.add_bot(large, ada)
    await bot.send_message(large.id, "back")
    await bot.leave_chat(large.id)
    with pytest.raises(Forbidden, match="bot is not a member of the supergroup chat"):
        await bot.send_chat_action(large.id, "typing")


async def test_a_group_that_became_a_supergroup_names_its_new_number(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    group = fake.people.group("G", ada)
    new = fake.people.migrate(group, ada)
    with pytest.raises(ChatMigrated) as caught:
        await bot.send_message(group.id, "x")
    assert caught.value.new_chat_id == new.id
    await bot.send_message(new.id, "x")
    told = [update.message for update in await bot.get_updates()]
    assert [(one.chat.id, one.migrate_to_chat_id, one.migrate_from_chat_id) for one in told if one] == [
        (group.id, new.id, None),
        (new.id, None, group.id),
    ]


async def test_topics_keep_their_messages_apart(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    forum = fake.people.group("F", ada, forum=True, bot=Role.ADMINISTRATOR)
    news = fake.people.topic(forum, "News", ada)
    asked = fake.people.say(forum, ada, "in the topic", thread=news.id)
    told = [update.message for update in await bot.get_updates()]
    assert [(one.message_thread_id, one.is_topic_message) for one in told if one] == [(news.id, True)] * 2
    await bot.send_message(forum.id, "there", message_thread_id=news.id)
    await bot.send_message(forum.id, "an answer goes to its topic", reply_to_message_id=asked.id)
    await bot.send_message(forum.id, "general")
    assert fake.shown(forum, news.id).texts[1:] == ["in the topic", "there", "an answer goes to its topic"]
    for missing in (1, 4711):
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(forum.id, "x", message_thread_id=missing)
    made = await bot.create_forum_topic(forum.id, "More")
    await bot.send_message(forum.id, "in more", message_thread_id=made.message_thread_id)
    await bot.close_forum_topic(forum.id, made.message_thread_id)
    with pytest.raises(BadRequest, match="Topic_closed"):
        await bot.send_message(forum.id, "x", message_thread_id=made.message_thread_id)
    await bot.delete_forum_topic(forum.id, made.message_thread_id)
    assert "in more" not in fake.shown(forum).texts
    with pytest.raises(BadRequest, match="Message thread not found"):
        await bot.send_message(fake.people.private(ada).id, "x", message_thread_id=7)


async def test_service_messages_tell_what_happens_in_a_group(fake: TelegramFake, bot: Bot) -> None:
    ada, bob = fake.people.user("Ada"), fake.people.user("Bob")
    group = fake.people.group("G", ada, supergroup=True)
    fake.people.join(group, bob)
    fake.people.rename(group, ada, "New")
    fake.people.pin(fake.people.say(group, bob, "keep this"), ada)
    fake.people.leave(group, bob)
    joined, renamed, _, pinned, left = [update.message for update in await bot.get_updates()]
    assert joined is not None
    assert [user.id for user in joined.new_chat_members] == [bob.id]
    assert renamed is not None
    assert (renamed.new_chat_title, renamed.chat.title) == ("New", "New")
    assert pinned is not None
    assert isinstance(pinned.pinned_message, telegram.Message)
    assert pinned.pinned_message.text == "keep this"
    assert left is not None
    assert left.left_chat_member == joined.new_chat_members[0]


async def test_a_bot_in_charge_may_pin_delete_and_keep_topics(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    forum = fake.people.group("F", ada, forum=True)
    said = fake.people.say(forum, ada, "x")
    for refused in (bot.pin_chat_message(forum.id, said.id), bot.create_forum_topic(forum.id, "T")):
        with pytest.raises(BadRequest, match="Not enough rights"):
            await refused
    fake.people.promote_bot(forum, ada)
    await bot.pin_chat_message(forum.id, said.id)
    assert said.pinned
    await bot.delete_message(forum.id, said.id)
    assert fake.shown(forum).texts == []
    topic = (await bot.create_forum_topic(forum.id, "T")).message_thread_id
    await bot.close_forum_topic(forum.id, topic)
    await bot.reopen_forum_topic(forum.id, topic)
    await bot.edit_forum_topic(forum.id, topic, name="U")
    await bot.send_message(forum.id, "open", message_thread_id=topic)
    assert forum.topics[topic].name == "U"
    assert fake.shown(forum, topic).texts[-1] == "open"


async def test_chats_and_members_can_be_asked_for(fake: TelegramFake, bot: Bot) -> None:
    ada, bob = fake.people.user("Ada", username="ada"), fake.people.user("Bob")
    group = fake.people.group("G", ada, bob, bot=Role.ADMINISTRATOR)
    assert (await bot.get_chat(group.id)).title == "G"
    assert [member.user.id for member in await bot.get_chat_administrators(group.id)] == [ada.id, fake.bot.id]
    assert (await bot.get_chat_member(group.id, bob.id)).status == "member"
    assert await bot.get_chat_member_count(group.id) == 3
    fake.people.leave(group, bob)
    assert (await bot.get_chat_member(group.id, bob.id)).status == "left"
    with pytest.raises(BadRequest, match="User not found"):
        await bot.get_chat_member(group.id, 4711)


async def test_privacy_keeps_from_the_bot_what_is_not_meant_for_it() -> None:
    async with TelegramFake(privacy=True) as fake, library(fake) as bot:
        ada = fake.people.user("Ada")
        group = fake.people.group("G", ada)
        sent = await bot.send_message(group.id, "hello")
        fake.people.say(group, ada, "among ourselves")
        fake.people.say(group, ada, "/status@somebody_else")
        for text in ("/status", "/status@outspoken_bot", "say, @Outspoken_Bot?"):
            fake.people.say(group, ada, text)
        fake.people.say(group, ada, "to you", reply_to=fake.message(group, sent.message_id))
        heard = [update.message.text for update in await bot.get_updates() if update.message]
        assert heard == ["/status", "/status@outspoken_bot", "say, @Outspoken_Bot?", "to you"]


async def test_commands_are_kept_by_scope_and_language(fake: TelegramFake, bot: Bot) -> None:
    await bot.set_my_commands([("stop", "Stop the answer")])
    await bot.set_my_commands([("stop", "Halt")], scope=telegram.BotCommandScopeAllPrivateChats(), language_code="de")
    assert [command.description for command in await bot.get_my_commands()] == ["Stop the answer"]
    private = await bot.get_my_commands(scope=telegram.BotCommandScopeAllPrivateChats(), language_code="de")
    assert [command.description for command in private] == ["Halt"]
    await bot.delete_my_commands()
    assert await bot.get_my_commands() == ()
    with pytest.raises(BadRequest, match="Bot_command_invalid"):
        await bot.set_my_commands([("Not Allowed", "x")])


# --- polling ---


async def test_updates_stay_until_the_offset_confirms_them(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    for text in ("one", "two", "three"):
        fake.people.say(chat, ada, text)

    async def poll(offset: int | None = None, limit: int | None = None) -> list[str | None]:
        return [one.message.text for one in await bot.get_updates(offset, limit) if one.message]

    assert await poll() == ["one", "two", "three"]
    assert await poll(limit=2) == ["one", "two"]
    first = fake.unconfirmed[0].id
    assert await poll(first + 1) == ["two", "three"]
    assert await poll() == ["two", "three"]
    assert await poll(-1) == ["three"]
    assert await poll(first + 3) == []
    assert [update.id for update in fake.world.updates.confirmed] == [first, first + 2]


async def test_a_long_poll_comes_back_as_soon_as_something_happens(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    poll = asyncio.create_task(bot.get_updates(timeout=50))
    await fake.until(lambda: fake.polled)
    said = fake.people.say(chat, ada, "now")
    (update,) = await poll
    assert update.message is not None
    assert update.message.message_id == said.id
    fake.people.edit(said, "later")
    (edited,) = await bot.get_updates(update.update_id + 1, timeout=50)
    assert edited.edited_message is not None
    assert edited.edited_message.text == "later"
    assert edited.edited_message.edit_date is not None
    assert not fake.polled


async def test_a_second_poll_ends_the_first_with_a_conflict(fake: TelegramFake, bot: Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=50))
    await fake.until(lambda: fake.polled)
    async with library(fake) as other:
        second = asyncio.create_task(other.get_updates(timeout=50))
        with pytest.raises(Conflict, match="terminated by other getUpdates request"):
            await first
        ada = fake.people.user("Ada")
        fake.people.say(fake.people.private(ada), ada, "x")
        assert len(await second) == 1


async def test_a_poll_whose_client_has_gone_is_no_poll(fake: TelegramFake, bot: Bot) -> None:
    poll = asyncio.create_task(bot.get_updates(timeout=50))
    await fake.until(lambda: fake.polled)
    poll.cancel()
    await fake.until(lambda: not fake.polled)
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    fake.people.say(chat, ada, "for the next one")
    assert len(await bot.get_updates()) == 1


async def test_updates_can_come_doubled_again_and_out_of_order(fake: TelegramFake, bot: Bot) -> None:
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    fake.hold_updates()
    for text in ("one", "two", "three"):
        fake.people.say(chat, ada, text)
    assert await bot.get_updates() == ()
    fake.release_updates([2, 0, 1])
    got = await bot.get_updates()
    assert [update.message.text for update in got if update.message] == ["three", "one", "two"]
    assert [update.update_id for update in got] == sorted(update.update_id for update in got)
    last = got[-1].update_id
    assert await bot.get_updates(last + 1) == ()
    again = fake.repeat_update(fake.world.updates.confirmed[0])
    fake.redeliver()
    ids = [update.update_id for update in await bot.get_updates(last + 1)]
    assert ids == [last, again.id]
    fake.hold_updates()
    for text in ("four", "five"):
        fake.people.say(chat, ada, text)
    older, newer = fake.release_updates([1, 0], renumber=False)
    assert older.id > newer.id


# --- faults as the library sees them ---


async def test_scripted_refusals_become_the_librarys_errors(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    migrated = refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1009)
    for step, error in (
        (flood(6775), RetryAfter),
        (migrated, ChatMigrated),
        (server_error(500), NetworkError),
        (gateway_page(502), NetworkError),
        (refusal(403, "Forbidden: user is deactivated"), Forbidden),
        (conflict(), Conflict),
        (Reset(), NetworkError),
    ):
        fake.script("sendMessage", step)
        with pytest.raises(error):
            await bot.send_message(chat.id, "x")
    assert fake.shown(chat).texts == []
    await bot.send_message(chat.id, "at last")
    assert fake.shown(chat).texts == ["at last"]


async def test_an_answer_that_is_lost_leaves_the_message(fake: TelegramFake, bot: Bot) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    for fault in (LoseAnswer(), LoseAnswer(clean=True), LoseAnswer(sent="half")):
        fake.script("sendMessage", fault)
        with pytest.raises(NetworkError):
            await bot.send_message(chat.id, "perhaps")
    assert fake.shown(chat).texts == ["perhaps"] * 3


async def test_rates_are_those_of_the_server_if_wanted() -> None:
    async with TelegramFake(rates=Rates(chat_burst=3, all_per_second=None)) as fake, library(fake) as bot:
        ada = fake.people.user("Ada")
        chat, group = fake.people.private(ada), fake.people.group("G", ada)
        for _ in range(3):
            await bot.send_message(chat.id, "x")
        with pytest.raises(RetryAfter) as caught:
            await bot.send_message(chat.id, "x")
        assert caught.value.message == "Flood control exceeded. Retry in 1 seconds"
        fake.advance(1)
        await bot.send_message(chat.id, "x")
        for _ in range(20):
            await bot.send_message(group.id, "x")
            fake.advance(1)
        with pytest.raises(RetryAfter):
            await bot.send_message(group.id, "x")
        fake.advance(60)
        await bot.send_message(group.id, "x")
