"""What can be wrong with a journal."""

from __future__ import annotations


class UnreadableJournal(Exception):
    """A row of the journal cannot be read by this program; says which and why."""


class NewerRules(UnreadableJournal):
    """A newer version began the turn, by rules that this one does not know."""

    def __init__(self, rules: int, known: int) -> None:
        super().__init__(
            f"a newer version began the turn, by rules that this one does not know ({rules}; the newest here are {known})"
        )
        self.rules = rules


class ProtocolError(UnreadableJournal):
    """An event that nothing before it led to; says which, and what is wrong with it."""
