"""Whether damage that conversations meet is their own, or lies in what all of them need. Pure, and so apart: it gets what was met, and says which.

Theory. A conversation is set aside because rows of its own cannot be read; then the one that begins in its place works. Where that one
fails as well, what fails is none of its own, and setting aside the next helps nobody: each would lose its message, one after another. A
turn that ends well on the same platform shows the opposite: what its chats need works, and what failed belonged to few.

Laws (tests/gateway/test_spread.py). However many conversations are set aside whole, each once, it is not everybody's. A chat whose new
conversation meets damage too makes it everybody's, and so do `MANY` chats within a minute whose new conversations could not be
used; unless something was answered on their platform meanwhile. What is everybody's stays so until all is found sound.
"""

from __future__ import annotations

from dataclasses import replace

from agent_core.records import dataclass

AGAIN_SECONDS = 600.0
"""Who meets damage again within this time, meets it in the conversation that began in place of the damaged one."""
MANY, MINUTE = 3, 60.0
KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Met:
    """A conversation met damage."""

    chat: str
    """Its key, which begins with its platform."""
    at: float
    """By the monotonic clock."""
    usable: bool
    """The conversation that began in its place could be used, as far as is seen."""

    @property
    def platform(self) -> str:
        return self.chat.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Spread:
    """What is known of it."""

    met: tuple[Met, ...] = ()
    everybodys: bool = False

    def after(self, new: Met) -> Spread:
        """Somebody has met damage."""
        known = [one for one in self.met if new.at - one.at <= AGAIN_SECONDS]
        again = any(one.chat == new.chat for one in known)
        useless = {one.chat for one in (*known, new) if not one.usable and new.at - one.at <= MINUTE}
        return Spread((*known, new)[-KEPT:], self.everybodys or again or len(useless) >= MANY)

    def answered(self, platform: str) -> Spread:
        """A turn ended well there, and its end is stored."""
        if not self.met:
            return self
        return replace(self, met=tuple(one for one in self.met if one.platform != platform))
