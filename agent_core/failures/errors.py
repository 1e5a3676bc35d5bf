"""What can be wrong with a journal."""

from __future__ import annotations


class UnreadableJournal(Exception):
    """A row of the journal cannot be read by this program; says which and why."""


class ProtocolError(UnreadableJournal):
    """An event that nothing before it led to; says which, and what is wrong with it."""
