"""What a start leaves in memory stays until the end: nobody looks for garbage in it, neither while it is loaded nor afterwards.

And nothing is read that may never be needed: aiohttp makes two TLS contexts when it is imported, with all certificates of the system
(20 ms and 0.7 MiB each, where they are in one file). Theirs are read when somebody is first spoken to with them.
"""

from __future__ import annotations

import gc
import ssl
import typing
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from typing_extensions import override

LOOK_EACH = 10_000
"""So many new objects are looked through at once."""


@contextmanager
def loading() -> Generator[None]:
    """Around imports. Python would look through all that is loaded four hundred times, for nothing: a seventh of a start. Here each object is
    looked at once: what is garbage then (a class that was replaced by one with slots) leaves its place to what is loaded next."""
    usual = gc.get_threshold()
    gc.set_threshold(LOOK_EACH, *usual[1:])
    gc.callbacks.append(_keep)
    try:
        with _trust_later():
            yield
    finally:
        gc.collect()
        gc.callbacks.remove(_keep)
        gc.set_threshold(*usual)


def _keep(phase: str, _found: object) -> None:
    """What is alive after Python looked is there to stay. First go the other signatures of functions, which Python keeps for whoever draws up a
    documentation: three hundred functions of libraries that nobody calls, 0.4 MiB."""
    if phase == "start":
        typing.clear_overloads()
    else:
        gc.freeze()


class _TrustingLater(ssl.SSLContext):
    """One that has not read yet whom the system trusts."""

    @override
    def wrap_bio(self, *given: Any, **named: Any) -> ssl.SSLObject:
        return _reads(self).wrap_bio(*given, **named)

    @override
    def wrap_socket(self, *given: Any, **named: Any) -> ssl.SSLSocket:
        return _reads(self).wrap_socket(*given, **named)


def _reads(context: ssl.SSLContext) -> ssl.SSLContext:
    context.__class__ = ssl.SSLContext
    context.load_default_certs()
    return context


@contextmanager
def _trust_later() -> Generator[None]:
    """Contexts that are made in the block, which is one of imports, read their certificates at first use."""
    load = ssl.SSLContext.load_default_certs

    def later(self: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:  # noqa: ARG001
        self.__class__ = _TrustingLater

    ssl.SSLContext.load_default_certs = later
    ssl.SSLContext.set_default_verify_paths = later
    try:
        yield
    finally:
        ssl.SSLContext.load_default_certs = load
        del ssl.SSLContext.set_default_verify_paths  # that of its base
