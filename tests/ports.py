"""Ports for servers whose address must be known before they listen."""

from __future__ import annotations

import random
import socket

FIRST, LAST = 20_000, 32_000
"""Below those that the system gives to connections, so that none of these takes one between looking and listening."""


def free_port() -> int:
    """A port that nobody listens on."""
    while True:
        port = random.SystemRandom().randint(FIRST, LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
