"""Parts in chats, and what platforms and adapters said, as they are handed in and read back."""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass, later


class DeliveryState(StrEnum):
    """How far a part got on its surface."""

    WANTED = "wanted"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    """The call was made and its outcome is not known: reconcile first."""
    FAILED = "failed"
    SKIPPED = "skipped"


MOST_PLACE = 2**62
"""Nobody has given a place from here on: one that is there was written by somebody else, and no other is counted on from it."""
BY_HAND = "by hand: "
"""The cause of a part that somebody who runs the gateway has taken out of the outbox begins with this."""


INSTEAD = "instead: "
"""The cause of a part in whose place others were sent begins with this; it goes on with how, and why."""


def behind(origin: str) -> str:
    """The turn or message that an origin comes from. What was said of it beside it, or shown elsewhere, has a name of its own after a ``!``."""
    return origin.partition("!")[0]


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One visible part on its surface: as it should be, and how far that got."""

    surface: str
    origin: str
    """What it belongs to: a turn's id, or ``inbox:<number>`` for the answer to a command."""
    bubble: str
    part: int
    place: int
    """Orders the parts of a surface; grows."""
    want: bytes
    """The content, as the outbox encodes it."""
    want_hash: str
    key: str
    """The idempotency key for the platform."""
    state: DeliveryState = DeliveryState.WANTED
    rev: int = 1
    """Counts the contents that were wanted."""
    final: bool = True
    """The content will not change any more."""
    gone: bool = False
    """It should not be there (any more)."""
    platform_id: str | None = None
    attempt: int = 0
    sending_at: int | None = None
    """When the last call was begun that creates it, ms."""
    retry_at: int | None = None
    """Not before then, ms."""
    labelled: bool = False
    """It is sent with the words that it may be there twice."""
    plain: bool = False
    """The platform refused its form, so it goes without any."""
    cause: str = ""
    """Why the last call failed."""
    at: int = 0
    """Of the last change, ms."""
    failures: int = later(0)
    """Calls for it that failed, over its life."""
    trouble: str = later("")
    """Why the latest of these failed; it stays when a later call succeeds."""

    @property
    def delivered(self) -> bool:
        """It stands there as it was wanted, and will not change any more."""
        whole = self.platform_id is not None and not self.platform_id.startswith("grows:")
        return self.state is DeliveryState.SENT and self.final and not self.gone and whole


def made_for(row: DeliveryRow) -> str:
    """The chat that a part was made for, without a thread, as the surfaces in it begin: its key keeps that where the chat has another id by now."""
    return _chat_of(row.key.partition(f"/{row.origin}/")[0])


def made_here(row: DeliveryRow) -> bool:
    """Whether it was made for the chat where it is shown."""
    return row.key.startswith(row.surface) or made_for(row) == _chat_of(row.surface)


def _chat_of(surface: str) -> str:
    return "/".join(surface.split("/")[:3]) + "/"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A stored part, with the session that owns it."""

    session: str
    row: DeliveryRow


@dataclass(frozen=True, slots=True)
class AdapterStateRow:
    """How an adapter was doing from a time on."""

    account: str
    """As in an inbox row, such as ``telegram/123``."""
    at: int
    """ms."""
    state: str
    words: str = ""
    """Why, for a person; empty if all is well."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """A platform said that nothing may be sent before a time."""

    account: str
    bucket: str
    """A surface, or empty for the whole account."""
    not_before: int
    reason: str
    at: int = later(0)
    """When it said so, so that the pause is known whatever the clock says later; 0 if that was not stored. All in ms."""


@dataclass(frozen=True, slots=True)
class FailedPart:
    """A part that was refused for good."""

    at: int
    session: str
    surface: str
    origin: str
    cause: str
