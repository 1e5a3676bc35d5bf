"""What of a request a provider objects to, as far as it says so. Only data; how it is read is in `model.failures`."""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass


class Concern(StrEnum):
    """What a refusal is about."""

    UNSAID = ""
    """It does not say; anything in the conversation may be meant."""
    PICTURES = "pictures"
    """The model takes no pictures at all."""
    SOUNDS = "sounds"
    """The model takes no sound at all."""
    FILES = "files"
    """The model takes no files at all."""
    PICTURE = "picture"
    """One picture, or how many there are: the model does take pictures."""
    THOUGHTS = "thoughts"
    """Earlier thoughts or their signatures that were sent back."""
    MESSAGE = "message"
    """A message's form or words."""
    FIELD = "field"
    """A parameter, a tool's schema or the tools as such: no message is at fault."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a conversation, in a provider's own count."""

    message: int
    """From 0."""
    part: int = -1
    """From 0; -1: the whole message."""
    native: bool = False
    """Counted as providers do that know no system messages and join neighbours of one role."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """A refusal's own words about what it is about."""

    concern: Concern = Concern.UNSAID
    places: tuple[Place, ...] = ()
    window: int = 0
    """How many tokens the provider says it can read; 0 if it does not say."""


NOTHING_SAID = Complaint()
