"""Makes what people wrote storable: halves of surrogate pairs and NUL, which no database and no JSON takes, become a mark. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from adapters.contract.chat import ChatMessage, ChatOrigin

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MARK = "�"


def storable_text(text: str) -> str:
    """The text with a mark for each character that cannot be stored."""
    return text if text.isascii() and "\x00" not in text else _UNSTORABLE.sub(MARK, text)


def storable(message: ChatMessage) -> ChatMessage:
    """The message with nothing in it that cannot be stored."""
    origin = message.origin
    return replace(
        message,
        origin=_origin(origin),
        key=storable_text(message.key),
        text=storable_text(message.text),
        command=storable_text(message.command),
    )


def _origin(origin: ChatOrigin) -> ChatOrigin:
    address, person = origin.address, origin.person
    return replace(
        origin,
        address=replace(address, chat=storable_text(address.chat), thread=storable_text(address.thread)),
        person=replace(
            person,
            id=storable_text(person.id),
            name=storable_text(person.name),
            username=storable_text(person.username),
        ),
        message=storable_text(origin.message),
        attachments=tuple(
            replace(one, ref=storable_text(one.ref), name=storable_text(one.name), mime=storable_text(one.mime))
            for one in origin.attachments
        ),
        group=storable_text(origin.group),
        root=storable_text(origin.root),
    )
