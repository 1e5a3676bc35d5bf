"""The section of the HTTP server; see `gateway.config.sections` for the laws."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from adapters.contract.callers import ShareLinks
from adapters.contract.settings import FromOutside, Secret, Section, Texts, Unit, Url, complaint, may_be_called
from adapters.http.errorsas import Disconnect, ErrorsAs
from gateway.config.types import is_loopback, plainly
from gateway.limits.patience import DoorLimits

_DOOR = DoorLimits()
DRAIN_SECONDS = 20.0
BEYOND_DRAIN_SECONDS = 30
"""What an orderly stop takes at most besides: leaving what runs, the last deliveries, the server, traces, the database.

Whoever stops the gateway has to wait for both before it kills; tests/deploy/test_stop_times.py compares every file of deploy/ and every
command of the documentation with that.
"""


class Server(Section):
    """The HTTP server: web chat, OpenAI-compatible API, health and metrics."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """Address to listen at. Where other machines can reach it, nobody is served without a key: an api_key, or one of outspoken keys."""
    port: int = Field(default=8787, ge=0, le=65_535)
    """Port to listen at; 0 takes a free one."""
    api_key: Annotated[Secret | None, FromOutside("api_key_file")] = None
    """Key that clients of the API and the web page must send, if they have none of their own (outspoken keys)."""
    api_key_file: Path | None = Field(default=None, examples=["server.key"])
    """File that holds that key."""
    operator_key: Annotated[Secret | None, FromOutside("operator_key_file")] = None
    """Key for status, access, send, metrics and the console. Not set: where a key is needed to call at all, one is made and kept as
    operator.key in the state directory."""
    operator_key_file: Path | None = Field(default=None, examples=["operator.key"])
    """File that holds that key."""
    public_url: Url = Field(default="", examples=["https://chat.example.org"])
    """Address under which people reach the server, if it is behind a proxy."""
    cors_origins: Texts = Field(default=(), examples=[["https://app.example.org"]])
    """Origins of web pages elsewhere that may call the API."""
    max_body_bytes: int = Field(default=16 * 1024 * 1024, ge=1024, le=1024**3)
    """Largest request that is read, bytes."""
    keep_alive_seconds: float = Field(default=10, ge=1, le=10)
    """Seconds between two signs of life in a stream that has nothing to say (1 to 10)."""
    drain_seconds: float = Field(
        default=DRAIN_SECONDS,
        ge=0,
        le=3600,
        description="Seconds that running turns may go on when the gateway is told to stop; what still runs then goes on after the next "
        f"start. A service manager must wait for {BEYOND_DRAIN_SECONDS} s more before it kills (TimeoutStopSec, "
        "terminationGracePeriodSeconds, stop_grace_period, --stop-timeout).",
    )
    disconnect: Disconnect = Disconnect.GRACE
    """What happens to a turn whose API client goes away: grace stops it if nobody has come back within disconnect_seconds, unless its request
    has an Idempotency-Key or runs in the background; detach lets it end and keeps its answer, cancel stops it at once."""
    disconnect_seconds: float = Field(default=10, ge=0, le=3600)
    """Seconds in which a client that went away may come back."""
    errors: ErrorsAs = ErrorsAs.AUTO
    """How clients of the API are told of a turn that produced nothing: status is an HTTP error, words stand in the content of an answer,
    auto gives words to front ends of chats and a status to all others. A request's X-Outspoken-Errors header comes first."""
    mcp: bool = False
    """Whether other agents and editors may use the gateway as a server of tools at /mcp (Model Context Protocol), with the keys of the API. Needs the
    extra mcp; outspoken mcp serve works without."""
    thinking: bool = True
    """Whether clients of the API are shown what the model thinks (reasoning_content), where their key does not say otherwise. Clients that
    run tools of their own hand it back with the conversation, and some providers refuse a conversation without it."""

    share_links: ShareLinks = ShareLinks.PEOPLE
    """For whom the links open by which people show conversations of the page: people are those who may open the page, anyone is everybody who
    has the link; off: there are none, and those that were made open nothing."""

    max_connections: Annotated[int, Unit("connections")] = Field(default=_DOOR.connections, ge=16, le=1_000_000)
    """Connections that may be open at once; half as many as files may be open at most."""
    connections_per_peer: Annotated[int, Unit("connections")] = Field(default=_DOOR.per_peer, ge=1, le=1_000_000)
    """Connections that may come from one address; this machine and trusted proxies have no such bound."""
    trusted_proxies: Texts = Field(default=(), examples=[["10.0.0.0/8"]])
    """Addresses or networks of proxies: they have no bound, those whom their X-Forwarded-For names have."""
    identity_header: str = Field(default="", pattern=r"^([A-Za-z0-9-]{1,64})?$", examples=["X-Forwarded-User"])
    """Header in which trusted_proxies say who somebody is: each is a person with a memory, budget and conversations of their own, and needs no
    key. The proxy must set it itself, whatever it was sent. From any other address it is passed over, and without trusted_proxies from all."""
    header_seconds: float = Field(default=_DOOR.header_seconds, ge=0.1, le=600)
    """Seconds in which a request's headers have to come."""
    body_seconds: float = Field(default=_DOOR.body_seconds, ge=0.1, le=3_600)
    """Seconds in which a request's body has to come."""
    stalled_seconds: float = Field(default=_DOOR.stalled_seconds, ge=0.1, le=600)
    """Seconds after which a client is cut that sends nothing of its request, or reads nothing of its answer."""
    idle_seconds: float = Field(default=_DOOR.idle_seconds, ge=0.1, le=3_600)
    """Seconds that a connection without a request is kept open."""

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, value: str) -> str:
        value = plainly(value)
        if not may_be_called(value):
            fix = "Write an address of this machine, or 0.0.0.0 for all of them."
            raise complaint("host", "host is the name or address of no machine", fix)
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            try:
                ipaddress.ip_network(one)
            except ValueError:
                words = "must name addresses or networks"
                raise complaint("trusted_proxies", words, 'Write "10.0.0.7" or "10.0.0.0/8".') from None
        return value

    def door_limits(self, files: int) -> DoorLimits:
        """What connections are held to, if so many files may be open."""
        return DoorLimits(
            connections=min(self.max_connections, max(16, files // 2)),
            per_peer=self.connections_per_peer,
            trusted=tuple(ipaddress.ip_network(one) for one in self.trusted_proxies),
            header_seconds=self.header_seconds,
            body_seconds=self.body_seconds,
            stalled_seconds=self.stalled_seconds,
            idle_seconds=self.idle_seconds,
        )

    @property
    def keyless(self) -> bool:
        """Who shows no key is served: only this machine can call, and no key is set."""
        return self.api_key is None and is_loopback(self.host)

    @model_validator(mode="after")
    def _two_keys(self) -> Server:
        if self.api_key is not None and self.api_key == self.operator_key:
            raise complaint(
                "operator_key",
                "operator_key is the same as api_key, so everybody who may chat could approve strangers and send as the bot",
                "Choose another one, or leave it out: then one is made and kept in the state directory.",
            )
        return self
