"""Names of hosts as addresses, asked for in a worker.

The system's own look-up holds a thread for as long as the name's servers like, and a model can ask for as many names as it likes: in
the process's shared threads everything else would wait for them, and a stop as well.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from agent_core.jsonvalue import Json
from agent_core.workers.pool import Job, Workers, WorkFailed

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver, ResolveResult

JOB = Job("agent_core.tools.web.names:work", 8.0, 100_000)
MOST = 20


def work(request: dict[str, Json], blob: bytes) -> Json:  # noqa: ARG001 - every job is given bytes
    """A job for a worker: the addresses as (family, address), or why there are none."""
    try:
        found = socket.getaddrinfo(
            str(request["host"]),
            None,
            type=socket.SOCK_STREAM,
            family=_whole(request["family"]),
            flags=socket.AI_ADDRCONFIG,
        )
    except (OSError, UnicodeError) as error:
        return str(getattr(error, "strerror", None) or "the name cannot be looked up")
    return [[int(family), str(address[0])] for family, _, _, _, address in found[:MOST]]


def _whole(value: Json) -> int:
    assert isinstance(value, int)
    return value


def resolver(workers: Workers, owner: object) -> AbstractResolver:
    """For aiohttp's connector."""
    from aiohttp.abc import AbstractResolver

    class _Names(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            try:
                found = await workers.run(JOB, {"host": host, "family": int(family)}, owner=owner)
            except WorkFailed as error:
                raise OSError(None, "the name could not be looked up in time") from error
            if not isinstance(found, list):
                raise OSError(None, str(found))
            return [_result(host, port, one) for one in found]

        async def close(self) -> None:
            pass

    return _Names()


def _result(host: str, port: int, found: Json) -> ResolveResult:
    assert isinstance(found, list)
    family, address = found
    return {
        "hostname": host,
        "host": str(address),
        "port": port,
        "family": _whole(family),
        "proto": socket.IPPROTO_TCP,
        "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    }
