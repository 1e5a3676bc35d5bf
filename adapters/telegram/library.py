"""The library python-telegram-bot, imported where it is needed, and without what no bot of ours needs.

It reads passports if it finds `cryptography`, and httpx has a command for the shell if it finds `pygments`: 8 MiB of a gateway with a bot in it, for
nothing. Who else asks for them finds them.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType

from typing_extensions import override

WITHOUT = ("cryptography", "pygments")


class _NotHere(MetaPathFinder):
    """These packages are not there, for one thread."""

    def __init__(self) -> None:
        self._thread = get_ident()

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in WITHOUT and get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


@contextmanager
def _without() -> Generator[None]:
    finder = _NotHere()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


with _without():
    from telegram import Bot
    from telegram.error import NetworkError, TelegramError, TimedOut
    from telegram.request import BaseRequest, RequestData

__all__ = ["BaseRequest", "Bot", "NetworkError", "RequestData", "TelegramError", "TimedOut"]
