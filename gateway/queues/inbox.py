"""Accepted messages as they are stored: the body of an inbox row, and back."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson

from adapters.contract.base import FromApi, FromChat, Inbound
from adapters.contract.chat import ChatOrigin
from agent_core import storedjson
from agent_core.jsonvalue import Json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

NORMAL_LANE = "normal"
COMMAND_LANE = "command"
"""Commands wait for no turn."""
REFUSED_LANE = "refused"
BY_CLIENT, BY_PERSON = "withdrawn by the client", "withdrawn by the person"
NOT_OPENED = "its turn could not be opened"
NO_MODEL = "no model that may answer it is there"
NOT_READ = "what was stored of it cannot be read any more, because the storage is damaged"
"""Why a message was dropped, as it is stored."""


class UnreadableMessage(Exception):
    """A stored message cannot be read by this program."""


@functools.cache
def _adapters() -> tuple[TypeAdapter[FromChat], TypeAdapter[FromApi]]:
    from pydantic import TypeAdapter

    return TypeAdapter(FromChat), TypeAdapter(FromApi)


def encode(inbound: Inbound) -> bytes:
    """The body of the message's inbox row."""
    return storedjson.dumps(inbound)


def decode(body: bytes) -> Inbound:
    """The message of an inbox row. Raises `UnreadableMessage`."""
    from_chat, from_api = _adapters()
    try:
        stored: Mapping[str, Json] = orjson.loads(body)
        kind = from_chat if stored.get("chat") else from_api  # only a chat's message says which chat
        return kind.validate_json(body)
    except (ValueError, AttributeError) as error:
        raise UnreadableMessage(f"a stored message cannot be read: {type(error).__name__}") from error


def chat_of(body: bytes) -> ChatOrigin | None:
    """Where the message of an inbox row came from, if that is a chat. Raises `UnreadableMessage`."""
    inbound = decode(body)
    return inbound.chat if isinstance(inbound, FromChat) else None
