"""What a service manager is told: that the daemon is ready, that its loop still turns, that it is stopping.

The protocol is systemd's (sd_notify(3)): one datagram of ``KEY=value`` lines to the Unix socket that ``NOTIFY_SOCKET`` names. The
signs of life come from a task of the event loop itself, so a loop that hangs gives none, and the manager starts the daemon again.
Without ``NOTIFY_SOCKET`` nothing of this happens.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import partial

import structlog

from agent_core.beside import beside
from agent_core.records import dataclass

log = structlog.get_logger("gateway")

BEATS = 3
"""Signs of life in the time after which the manager loses patience: one may be late, and one be lost."""


@dataclass(frozen=True, slots=True)
class Manager:
    """Who is to be told, from the environment."""

    address: str
    """Of the socket; one of the abstract kind begins with a NUL. Empty if nobody is to be told."""
    beat_seconds: float
    """Pause between two signs of life; 0 if none are wanted."""


def manager(env: Mapping[str, str], pid: int) -> Manager:
    """Who manages this process. `pid` is its own: a watchdog that is meant for another process is none of ours.

    Addresses of other kinds (``vsock:``) are for virtual machines, not for services, and count as none.
    """
    given = env.get("NOTIFY_SOCKET", "")
    if given[:1] not in {"/", "@"} or len(given) < 2:
        return Manager("", 0)
    address = "\0" + given[1:] if given[0] == "@" else given
    limit, whose = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    ours = whose in {"", str(pid)}
    patience = int(limit) / 1_000_000 if ours and limit.isascii() and limit.isdigit() else 0
    return Manager(address, patience / BEATS)


class Notifier:
    """Tells the manager. What cannot be told is logged once in a row, and hinders nothing: the next thing is told anew."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._complained = False
        self._socket: socket.socket | None = None

    def tell(self, **facts: str) -> None:
        """Send one datagram. Never waits: a socket that takes nothing just now has a manager that is not looking."""
        if not self._address:
            return
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            words = "\n".join(f"{key}={value}" for key, value in facts.items())
            self._socket.sendto(words.encode(), self._address)
        except BlockingIOError:
            return
        except OSError as error:
            if not self._complained:
                log.warning("gateway.manager_not_told", error=str(error))
            self._complained = True
        else:
            self._complained = False

    def close(self) -> None:
        """Let go of the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@asynccontextmanager
async def managed(env: Mapping[str, str]) -> AsyncGenerator[Notifier]:
    """Signs of life for the block, if they are wanted; what else is to be told, the block says."""
    who = manager(env, os.getpid())
    notifier = Notifier(who.address)
    beating = beside(partial(_beat, notifier, who.beat_seconds), "watchdog") if who.beat_seconds else nullcontext()
    try:
        async with beating:
            yield notifier
    finally:
        notifier.close()


async def _beat(notifier: Notifier, pause_seconds: float) -> None:
    while True:
        notifier.tell(WATCHDOG="1")
        await asyncio.sleep(pause_seconds)
