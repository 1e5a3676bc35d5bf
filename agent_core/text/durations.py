"""How long something takes, in words for a person; and when it was."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from agent_core.text.tongue import speak, speak_many


def duration(seconds: int) -> str:
    """Seconds in words: 45 s, 3 min, 2 h 5 min, 3 days."""
    seconds = max(0, seconds)  # of two clocks one may be behind
    if seconds < 120:
        return speak("{count} s", count=seconds)
    minutes, rest = divmod(seconds, 60)
    if minutes < 120:
        return _both(
            speak("{count} min", count=minutes), speak("{count} s", count=rest) if rest and minutes < 10 else ""
        )
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        days, hours = divmod(hours, 24)
        return _both(speak_many("{count} day", "{count} days", days), speak("{count} h", count=hours) if hours else "")
    return _both(speak("{count} h", count=hours), speak("{count} min", count=minutes) if minutes else "")


def at_time(ms: int, zone: tzinfo = UTC) -> datetime:
    """The moment so many ms after the beginning of 1970; the beginning itself where no calendar has it, as of a time that makes no sense."""
    try:
        return datetime.fromtimestamp(ms / 1000, zone)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, zone)


def _both(large: str, small: str) -> str:
    return f"{large} {small}" if small else large
