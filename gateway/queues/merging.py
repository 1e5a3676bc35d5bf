"""Which waiting messages are one: the pieces of a long paste, the pictures of an album. Pure.

Clients cut a long paste at the platform's limit and send the pieces within about half a second; the pictures of an album come
as single messages with a common mark. They are stored one by one, and answered as one, after a short wait for the rest.

Laws (tests/gateway/test_chat_decisions.py): at least one message is taken; only messages of one person in one chat, one after the
other, are merged; an ordinary message never waits; no message waits here for longer than `HOLD_MS`, and one that an
earlier process left does not wait at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapters.contract.chat import ChatOrigin
from agent_core.records import dataclass

HOLD_MS = 800
"""How long the next piece may take."""


@dataclass(frozen=True, slots=True)
class MessagePiece:
    """What merging looks at."""

    origin: ChatOrigin | None
    received_at: int
    waited_ms: int = HOLD_MS
    """How long it waits already, as this process counts, whatever the wall clock does."""


@dataclass(frozen=True, slots=True)
class Merged:
    """So many of the first messages are one; ask again after `wait_ms` if it is not 0."""

    count: int
    wait_ms: int = 0


def merged(pieces: Sequence[MessagePiece]) -> Merged:
    """How many of the waiting messages, of which there is at least one, are the next turn's."""
    count = 1
    while count < len(pieces) and _belong(pieces[count - 1], pieces[count]):
        count += 1
    last = pieces[count - 1]
    open_end = count == len(pieces) and _expects_more(last)
    return Merged(count, max(0, HOLD_MS - max(0, last.waited_ms)) if open_end else 0)


def _expects_more(piece: MessagePiece) -> bool:
    return piece.origin is not None and (bool(piece.origin.group) or piece.origin.unfinished)


def _belong(first: MessagePiece, second: MessagePiece) -> bool:
    if first.origin is None or second.origin is None or first.origin.person.id != second.origin.person.id:
        return False
    if first.origin.address != second.origin.address:  # one conversation may go on in several chats
        return False
    if first.origin.group or second.origin.group:
        return first.origin.group == second.origin.group
    return first.origin.unfinished and second.received_at - first.received_at <= HOLD_MS * 2
