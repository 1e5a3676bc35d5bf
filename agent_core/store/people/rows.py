"""Who may do what, private chats and joined accounts, as they are handed in and read back."""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass


class PersonState(StrEnum):
    """What a person may do."""

    PENDING = "pending"
    """Has been shown a pairing code."""
    REFUSED = "refused"
    """Has been told that this is not open to all."""
    APPROVED = "approved"
    ADMIN = "admin"
    REVOKED = "revoked"
    SPOKE = "spoke"
    """Has asked something, and nobody decided about them: a list, a key or a proxy lets them in. Never stored."""


@dataclass(frozen=True, slots=True)
class PersonRow:
    """Somebody who has talked to an account."""

    account: str
    person: str
    state: PersonState
    name: str = ""
    code: str = ""
    """Of the pairing code; empty if there is none."""
    code_until: int = 0
    at: int = 0
    by: str = ""
    """Who decided it."""


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A private chat of a person (or a thread of one)."""

    place: str
    """The key of the session that is its own."""
    account: str
    person: str
    continues: str | None = None
    """The place whose session goes on here instead; None: its own does."""
    at: int = 0


@dataclass(frozen=True, slots=True)
class LinkRow:
    """An account that is joined with others."""

    account: str
    person: str
    who: str
    """The same for all accounts of one person."""
    name: str = ""
    username: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class LinkCode:
    """A code that was shown in one account, to be typed in another."""

    code: str
    account: str
    person: str
    name: str
    username: str
    chat: str
    """The surface where it was asked for."""
    until: int
    """Not valid from then on, ms."""


class LinkOutcome(StrEnum):
    """What became of a code that was typed."""

    JOINED = "joined"
    UNKNOWN = "unknown"
    """There is no such code, or it was used, or its time is over."""
    OWN = "own"
    """It was asked for in the same account."""
    SAME = "same"
    """The two accounts are joined already."""
    ELSEWHERE = "elsewhere"
    """Each of the two is joined with others."""
    FULL = "full"
    """The person has as many accounts as can be joined."""


@dataclass(frozen=True, slots=True)
class Redeemed:
    """What became of a code, and which one it was; None if it is unknown."""

    outcome: LinkOutcome
    code: LinkCode | None = None
