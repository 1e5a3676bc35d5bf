"""Keys of the API, as they are handed in and read back."""

from __future__ import annotations

from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    """A key under a name. The key itself is nowhere; who shows it is known by its digest."""

    name: str
    """Never given twice, also not after it was revoked: what was done with a key stays its own."""
    prefix: str
    """By which it is found among the others; no secret."""
    digest: str
    terms: str
    """What it stands for and may, as JSON."""
    by: str
    """Who made it."""
    made_at: int
    changed_at: int
    """Never the same twice for one key, so that the sum of all tells whether any was changed."""
    revoked_at: int | None = None
    used_at: int = 0
    """When it was last shown; to the minute."""
    before_prefix: str = ""
    """Of the key that it had before it was rotated, and that is good until `before_until`."""
    before_digest: str = ""
    before_until: int = 0
