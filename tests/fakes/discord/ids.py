"""Snowflakes: Discord's ids, which tell the moment of their making (https://docs.discord.com/developers/reference#snowflakes)."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.fakes.common import Clock

EPOCH_MS = 1_420_070_400_000
"""The first second of 2015."""
_PER_MS = 1 << 22


class Snowflakes:
    """Gives out ids: each larger than all before, and none from before its time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> int:
        """A new id."""
        now = (int(self._clock.unix() * 1000) - EPOCH_MS) * _PER_MS
        self._last = max(now, self._last + 1)
        return self._last

    def next_in_a_new_millisecond(self) -> int:
        """A new id whose time differs from that of all before, as guilds need it: the time decides about the shard."""
        self._last = (self._last // _PER_MS + 1) * _PER_MS
        return self.next()


def made_at(snowflake: int) -> datetime:
    """When an id was made."""
    return datetime.fromtimestamp((snowflake // _PER_MS + EPOCH_MS) / 1000, UTC)


def shard_of(guild_id: int, count: int) -> int:
    """The shard that a guild belongs to."""
    return (guild_id >> 22) % count


def iso(moment: datetime) -> str:
    """A time as Discord writes it."""
    return moment.isoformat(timespec="microseconds")
