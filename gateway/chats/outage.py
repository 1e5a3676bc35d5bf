"""Tells a chat that its messages cannot be stored just now: the only words that are sent without being stored.

Once for each chat and outage, as far as this process knows; what is sent so is never repeated, edited or counted as an answer.
The message itself is not confirmed, so that its platform brings it again. That one cannot be stored holds up those behind it; their
chats are told as well (`adapters.contract.intake.WayIn.waiting` looks ahead). What is not sent for the moment, because many are told at once or
the platform wants a pause, counts as not said: whoever looks at the message again says it then.
"""

from __future__ import annotations

from adapters.contract.chat import ChatOrigin, Content, ContentKind
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.text.styled import Styled
from agent_core.ports import Clock
from agent_core.store.store import Damaged, StorageFull, StorageUnavailable
from gateway.delivery.outbox import Outbox

WHY_FULL = "the disk of the gateway is full"
WHY_DAMAGED = "the storage of the gateway is damaged"
WHY_AWAY = "its storage does not answer"
AGAIN_SECONDS = 600.0
"""A chat is not told twice within this time, whatever comes and goes."""
KNOWN_MOST = 10_000


def words_of(error: NotAccepted | StorageUnavailable) -> str:
    """What a chat is told; empty if it is not about the storage. Pure."""
    if isinstance(error, StorageFull) or (
        isinstance(error, NotAccepted) and error.code is NotAcceptedCode.STORAGE_FULL
    ):
        why = WHY_FULL
    elif isinstance(error, Damaged) or (
        isinstance(error, NotAccepted) and error.code is NotAcceptedCode.STORAGE_DAMAGED
    ):
        why = WHY_DAMAGED
    elif isinstance(error, StorageUnavailable) or error.code is NotAcceptedCode.STORAGE_AWAY:
        why = WHY_AWAY
    else:
        return ""
    return f"⚠️ I cannot keep your message just now: {why}. It is not taken yet; I look for it again as soon as that is mended, and answer then."


class Outage:
    """Of all accounts."""

    def __init__(self, outbox: Outbox, clock: Clock) -> None:
        self._outbox = outbox
        self._clock = clock
        self._told: dict[str, float] = {}
        """By chat: when, by the monotonic clock; what is over is marked by not being in `_now`."""
        self._now: set[str] = set()

    def tell(self, origin: ChatOrigin, error: NotAccepted | StorageUnavailable) -> None:
        """Say so in the chat of a message, unless it was said."""
        words, chat = words_of(error), origin.address.text()
        now = self._clock.monotonic()
        if not words or chat in self._now or now - self._told.get(chat, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return
        said = Content(ContentKind.ASIDE, Styled(words), reply_to=origin.reply_to)
        if not self._outbox.unstored.say(origin.address, said, lambda: self._unsaid(chat)):
            return
        while len(self._told) >= KNOWN_MOST:
            self._now.discard(gone := next(iter(self._told)))
            del self._told[gone]
        self._told[chat] = now
        self._now.add(chat)

    def _unsaid(self, chat: str) -> None:
        """It certainly did not get there, and may be said again."""
        self._told.pop(chat, None)
        self._now.discard(chat)

    def over(self) -> None:
        """Something was stored."""
        self._now.clear()
