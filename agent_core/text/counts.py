"""How many there are of something, in English: for operators. What people read is said in their language (`tongue.speak_many`)."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 turn``, ``2 turns``; for nouns whose plural ends in s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
