"""Accepted messages as they are stored: the body of an inbox row, and back."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from adapters.contract.base import Inbound
from agent_core import storedjson

if TYPE_CHECKING:
    from pydantic import TypeAdapter

NORMAL_LANE = "normal"
COMMAND_LANE = "command"
"""Commands wait for no turn."""
REFUSED_LANE = "refused"
BY_CLIENT, BY_PERSON = "withdrawn by the client", "withdrawn by the person"
NOT_OPENED = "its turn could not be opened"
"""Why a message was dropped, as it is stored."""


class UnreadableMessage(Exception):
    """A stored message cannot be read by this program."""


@functools.cache
def _adapter() -> TypeAdapter[Inbound]:
    from pydantic import TypeAdapter

    return TypeAdapter(Inbound)


def encode(inbound: Inbound) -> bytes:
    """The body of the message's inbox row."""
    return storedjson.dumps(inbound)


def decode(body: bytes) -> Inbound:
    """The message of an inbox row. Raises `UnreadableMessage`."""
    try:
        return _adapter().validate_json(body)
    except ValueError as error:
        raise UnreadableMessage(f"a stored message cannot be read: {type(error).__name__}") from error
