"""Points the library discord.py at the fake. It has no setting for that, but two class attributes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import yarl


@contextmanager
def pointed(api_url: str, gateway_url: str) -> Generator[None]:
    """While this lasts, every client of discord.py in this process talks to these addresses."""
    from discord.gateway import DiscordWebSocket
    from discord.http import Route

    before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = api_url, yarl.URL(gateway_url)
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before
