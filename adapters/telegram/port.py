"""Single calls to the Bot API, as `adapters.contract.chat.ChatPort`. Retries nothing, waits for nothing but the answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from adapters.contract.chat import (
    Ability,
    Button,
    CallFailed,
    Cause,
    ChatAddress,
    ChatPort,
    Content,
    ContentKind,
    Fate,
    Traits,
    id_of,
    not_by_edit,
)
from adapters.contract.files import ELSEWHERE, LARGE, NOT_GIVEN, UNREADABLE, FileSource, bytes_of, is_voice
from adapters.contract.pacing import Rate
from adapters.refusing import MISREAD
from adapters.telegram.errors import failure
from adapters.telegram.pieces import entities, pieces, shorter
from adapters.telegram.section import TELEGRAM
from adapters.text.styled import Styled

if TYPE_CHECKING:
    from telegram import Bot, InlineKeyboardMarkup, LinkPreviewOptions, MessageEntity, ReplyParameters

T = TypeVar("T")

CAPTION_UNITS = 1024
UPLOAD_BYTES = 50 * 1024 * 1024
PHOTO_BYTES = 10 * 1024 * 1024
_SPOKEN = (".ogg", ".mp3", ".m4a")
"""What Telegram takes as a voice message (https://core.telegram.org/bots/api#sendvoice)."""
_PICTURES = (".png", ".jpg", ".jpeg")

ACCOUNT_RATE = Rate(burst=10, interval_ms=50)
"""At most 30 in any second (https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this)."""
PRIVATE_RATE = Rate(burst=4, interval_ms=1_000)
GROUP_RATE = Rate(burst=5, interval_ms=4_000)
"""At most 20 in any minute."""


def chat_rate(address: ChatAddress) -> Rate:
    """How fast a chat may be written to."""
    return PRIVATE_RATE if is_private(address) else GROUP_RATE


def is_private(address: ChatAddress) -> bool:
    """Private chats have the id of their person; groups have negative ones."""
    return not address.chat.startswith("-")


class TelegramPort(ChatPort):
    """Implements `ChatPort` for one bot."""

    def __init__(self, bot: Bot, files: FileSource, *, drafts: bool) -> None:
        self._bot = bot
        self._files = files
        self._drafts = drafts

    @property
    def ability(self) -> Ability:
        return Ability.NONE

    def traits(self, address: ChatAddress) -> Traits:
        if is_private(address):
            return Traits(drafts=self._drafts, preview_seconds=1.0, status_seconds=4.0)
        return Traits(drafts=False, preview_seconds=4.0, status_seconds=10.0)

    parts = staticmethod(pieces)
    shorter = staticmethod(shorter)

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:  # noqa: ARG002 - there are no keys
        if content.kind is ContentKind.FILE:
            return await self._send_file(address, content)
        message = await self.asked(
            self._bot.send_message(
                chat_id=int(address.chat),
                text=content.body.text,
                entities=_entities(content.body),
                message_thread_id=_thread(address),
                disable_notification=content.silent,
                reply_markup=_keyboard(content.buttons),
                reply_parameters=_reply(content),
                link_preview_options=_no_preview(),
            )
        )
        return id_of(message.message_id)

    async def _send_file(self, address: ChatAddress, content: Content) -> str:
        data = await bytes_of(content, UPLOAD_BYTES, "Telegram")
        chat, name = int(address.chat), content.file_name
        told: dict[str, Any] = {
            "caption": content.body.text[:CAPTION_UNITS] or None,
            "caption_entities": _entities(content.body),
            "filename": name,
            "message_thread_id": _thread(address),
            "disable_notification": content.silent,
            "reply_parameters": _reply(content),
        }
        if name.lower().endswith(_PICTURES) and len(data) <= PHOTO_BYTES:
            photo = self._bot.send_photo(chat, data, **told)
            try:
                return id_of((await self.asked(photo)).message_id)
            except CallFailed as error:
                if error.fate is not Fate.REFUSED or error.cause not in (Cause.FORM, Cause.OTHER):
                    raise  # what is refused as a picture may still go as a file
        if is_voice(name) and name.endswith(_SPOKEN):
            spoken = self._bot.send_voice(chat, data, **told)
            try:
                return id_of((await self.asked(spoken)).message_id)
            except CallFailed as error:
                if error.fate is not Fate.REFUSED or error.cause in (
                    Cause.BLOCKED,
                    Cause.NO_CHAT,
                    Cause.NO_THREAD,
                    Cause.MOVED,
                ):
                    raise  # whoever wants no voice messages gets the sound as a file
        return id_of((await self.asked(self._bot.send_document(chat, data, **told))).message_id)

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        if content.kind is ContentKind.FILE:
            raise not_by_edit(content.kind)
        await self.asked(
            self._bot.edit_message_text(
                text=content.body.text,
                chat_id=int(address.chat),
                message_id=int(platform_id),
                entities=_entities(content.body),
                reply_markup=_keyboard(content.buttons),
                link_preview_options=_no_preview(),
            )
        )

    async def delete(self, address: ChatAddress, platform_id: str) -> None:
        await self.asked(self._bot.delete_message(chat_id=int(address.chat), message_id=int(platform_id)))

    async def draft(self, address: ChatAddress, number: int, body: Styled) -> None:
        await self.asked(
            self._bot.send_message_draft(
                chat_id=int(address.chat),
                draft_id=number,
                text=body.text,
                entities=_entities(body),
                message_thread_id=_thread(address),
            )
        )

    async def typing(self, address: ChatAddress) -> None:
        await self.asked(
            self._bot.send_chat_action(chat_id=int(address.chat), action="typing", message_thread_id=_thread(address))
        )

    async def private(self, person: str) -> str:
        return person  # private chats have the id of their person

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        file = await self.asked(self._bot.get_file(ref))
        if file.file_size is not None and file.file_size > limit_bytes:
            raise CallFailed(Fate.REFUSED, LARGE, cause=Cause.FILE)
        if not file.file_path:
            raise CallFailed(Fate.REFUSED, NOT_GIVEN.format(status="no path"), cause=Cause.FILE)
        path = file.file_path.removeprefix(base := f"{self._bot.base_file_url}/")
        if Path(path).is_absolute():  # a server of the operator's, with --local, has put it onto this machine
            if base.startswith(f"{TELEGRAM}/"):
                raise CallFailed(Fate.REFUSED, ELSEWHERE, cause=Cause.FILE)
            return await asyncio.to_thread(_lying_here, Path(path), limit_bytes)
        return await self._files.fetched(f"{base}{quote(path)}", limit_bytes)

    async def itself(self) -> None:
        await self.asked(self._bot.get_me())

    async def answer_press(self, query: str) -> None:
        """Tell Telegram that the press of a button was seen."""
        await self.asked(self._bot.answer_callback_query(query))

    @staticmethod
    async def asked(call: Awaitable[T]) -> T:
        """The answer to a call; raises `CallFailed`."""
        from telegram.error import TelegramError

        try:
            return await call
        except (TelegramError, *MISREAD) as error:
            raise failure(error) from error


def _lying_here(path: Path, limit_bytes: int) -> bytes:
    """Raises `CallFailed`."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise CallFailed(Fate.REFUSED, UNREADABLE.format(why=error.strerror), cause=Cause.FILE) from error
    if len(data) > limit_bytes:
        raise CallFailed(Fate.REFUSED, LARGE, cause=Cause.FILE)
    return data


def _without_waiting(path: str, flags: int) -> int:
    """A pipe would hold up whoever opens it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _thread(address: ChatAddress) -> int | None:
    return int(address.thread) if address.thread else None


def _entities(body: Styled) -> list[MessageEntity]:
    from telegram import MessageEntity

    return [
        MessageEntity(e.type, e.offset, e.length, url=e.url or None, language=e.language or None)
        for e in entities(body)
    ]


ROW_CHARS = 28


def _keyboard(buttons: tuple[Button, ...]) -> InlineKeyboardMarkup | None:
    from telegram import InlineKeyboardButton, InlineKeyboardMarkup

    if not buttons:
        return None
    made = [InlineKeyboardButton(b.label, callback_data=b.data) for b in buttons]
    # Side by side more than two would be cut to a few letters each.
    return InlineKeyboardMarkup([made] if sum(len(b.label) for b in buttons) <= ROW_CHARS else [[one] for one in made])


def _reply(content: Content) -> ReplyParameters | None:
    from telegram import ReplyParameters

    if not content.reply_to:
        return None
    return ReplyParameters(int(content.reply_to), allow_sending_without_reply=True)


def _no_preview() -> LinkPreviewOptions:
    from telegram import LinkPreviewOptions

    return LinkPreviewOptions(is_disabled=True)
