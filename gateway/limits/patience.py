"""How long a connection may keep us waiting, and for what; what may be asked though there is no place. Pure; laws in tests/gateway/test_connections.py."""

from __future__ import annotations

import ipaddress
from enum import StrEnum

from adapters.http.routes import HttpRoute
from agent_core.records import dataclass

ALIVE, READY = HttpRoute.ALIVE, HttpRoute.READY
FIRST_BYTES = 80

LEAVE_SECONDS = 2.0
"""Who is refused may ask for so long, and then read the answer."""
HEALTH_PLACES = 8
"""So many may ask how the process is beyond all bounds."""


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """What the configuration says."""

    connections: int = 8_192
    per_peer: int = 256
    trusted: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    """Proxies: many people come by one of them."""
    header_seconds: float = 10.0
    body_seconds: float = 120.0
    stalled_seconds: float = 20.0
    """So long nothing of a body may come, and nothing of an answer be read."""
    idle_seconds: float = 75.0


class ConnectionStage(StrEnum):
    """What a connection is waited for."""

    IDLE = "idle"
    """A request."""
    HEADERS = "headers"
    """The rest of its headers."""
    BODY = "body"
    SERVED = "served"
    """Nothing: it waits for us."""
    REFUSED = "refused"
    """That it reads why, and goes."""


class CutOff(StrEnum):
    """Why a connection was ended or not taken."""

    IDLE = "idle"
    HEADERS = "headers_too_slow"
    BODY = "body_too_slow"
    READER = "reads_too_slowly"
    FULL = "too_many_connections"
    PEER = "too_many_of_one_peer"
    CROWDED_OUT = "made_place"


@dataclass(slots=True)
class ConnectionStanding:
    """How a connection stands, by the monotonic clock."""

    stage: ConnectionStage
    since: float
    """When the stage began."""
    moved: float
    """When something of the body came last."""
    unread: int = 0
    """Bytes of our answer that have not gone out; 0 if they may."""
    unread_since: float = 0.0
    """Since when they have not become less."""


def asks_how_it_is(begun: bytes, cut: CutOff) -> bool:
    """Whether what begins so may be asked although there is no place: whether the process lives. A node of Kubernetes asks it from the address from which visitors
    come, and kills a process that does not say so. Whether it is ready, unless it is full. Pure."""
    method, _, rest = begun[:FIRST_BYTES].partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
    paths = (ALIVE.pattern,) if cut is CutOff.FULL else (ALIVE.pattern, READY.pattern)
    return method in (b"GET", b"HEAD") and path in paths


def overdue(standing: ConnectionStanding, now: float, limits: DoorLimits) -> CutOff | None:
    """Why a connection is to be cut now, or None. Pure."""
    age = now - standing.since
    if standing.unread and now - standing.unread_since > limits.stalled_seconds:
        return CutOff.READER
    match standing.stage:
        case ConnectionStage.IDLE:
            return CutOff.IDLE if age > limits.idle_seconds else None
        case ConnectionStage.HEADERS:
            return CutOff.HEADERS if age > limits.header_seconds else None
        case ConnectionStage.BODY:
            slow = now - standing.moved > limits.stalled_seconds or age > limits.body_seconds
            return CutOff.BODY if slow else None
        case ConnectionStage.REFUSED:
            return CutOff.IDLE if age > LEAVE_SECONDS else None
        case ConnectionStage.SERVED:
            return None
