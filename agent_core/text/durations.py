"""How long something takes, in words for a person."""

from __future__ import annotations


def duration(seconds: int) -> str:
    """Seconds in words: 45 s, 3 min, 2 h 5 min, 3 days."""
    if seconds < 120:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 120:
        return f"{minutes} min" + (f" {rest} s" if rest and minutes < 10 else "")
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        days, hours = divmod(hours, 24)
        return f"{days} days" + (f" {hours} h" if hours else "")
    return f"{hours} h" + (f" {minutes} min" if minutes else "")
