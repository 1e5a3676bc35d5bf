"""What the gateway offers to the web page's ``/commands``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adapters.contract.base import FromApi
from adapters.contract.chat import CommandDoc


class PageCommands(Protocol):
    """The commands of chats, on the page."""

    def menu(self, language: str) -> Sequence[CommandDoc]:
        """Those that the page shows, with their words in a language (a tag; empty: English)."""
        ...

    def named(self, text: str) -> tuple[str, str]:
        """The command that a text begins with, and the words behind it; empty if it is none: then it is for the model."""
        ...

    async def take(self, inbound: FromApi, name: str, words: str) -> bool:
        """Store a command and begin to carry it out; its answer comes with what the page follows. True if it was known. Raises `NotAccepted`."""
        ...
