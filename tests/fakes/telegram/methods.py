"""All methods of the fake that need no waiting, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fakes.common import Json
from tests.fakes.telegram import asking, sending
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.world import World

Method = Callable[[World, Params], Json]

METHODS: Mapping[str, Method] = {
    "getMe": asking.get_me,
    "getFile": asking.get_file,
    "getChat": asking.get_chat,
    "getChatMember": asking.get_chat_member,
    "getChatMemberCount": asking.get_chat_member_count,
    "getChatAdministrators": asking.get_chat_administrators,
    "leaveChat": asking.leave_chat,
    "createForumTopic": asking.create_forum_topic,
    "editForumTopic": asking.edit_forum_topic,
    "closeForumTopic": asking.close_forum_topic,
    "reopenForumTopic": asking.reopen_forum_topic,
    "deleteForumTopic": asking.delete_forum_topic,
    "setMyCommands": asking.set_my_commands,
    "getMyCommands": asking.get_my_commands,
    "deleteMyCommands": asking.delete_my_commands,
    "pinChatMessage": asking.pin_chat_message,
    "sendMessage": sending.send_message,
    "sendMessageDraft": sending.send_message_draft,
    "sendDocument": sending.send_document,
    "sendVoice": sending.send_voice,
    "sendPhoto": sending.send_photo,
    "sendMediaGroup": sending.send_media_group,
    "editMessageText": sending.edit_message_text,
    "editMessageCaption": sending.edit_message_caption,
    "editMessageReplyMarkup": sending.edit_message_reply_markup,
    "deleteMessage": sending.delete_message,
    "deleteMessages": sending.delete_messages,
    "sendChatAction": sending.send_chat_action,
    "setMessageReaction": sending.set_message_reaction,
    "answerCallbackQuery": sending.answer_callback_query,
}

_BY_SMALL_LETTERS = {name.lower(): name for name in METHODS}
WAITING = ("getUpdates", "setWebhook", "deleteWebhook", "getWebhookInfo")
"""Methods of the server itself."""
_BY_SMALL_LETTERS.update({name.lower(): name for name in WAITING})


def known(name: str) -> str | None:
    """A method's proper name; names are case-insensitive on the server. None if there is no such method."""
    return _BY_SMALL_LETTERS.get(name.lower())
