"""Where models are: endpoints, credentials and the chain of routes. Pure but for nothing; secrets stay in this layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agent_core.model.knownbad import ROWS, KnownBad
from agent_core.tools.base import Json
from agent_core.turn.settings import Route


@dataclass(frozen=True, slots=True)
class Credential:
    """A key under a name. The name may be logged, the key never."""

    id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One OpenAI-compatible address with what the operator set about it."""

    label: str
    base_url: str
    credentials: tuple[Credential, ...]
    """Never empty; a server that wants no key gets a placeholder."""
    models: tuple[str, ...]
    """In the order in which they are tried. Empty: the endpoint is asked which it has."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    extra_body: Mapping[str, Json] = field(default_factory=dict[str, Json])
    context_tokens: int = 0
    """Size of the context window, tokens; 0 if unknown."""
    max_output_tokens: int = 0
    temperature: float | None = None
    slow_arguments: bool = False
    """Sends tool arguments only when they are complete, so a long silence there is normal."""
    known_bad: tuple[KnownBad, ...] = ROWS
    """What is known to go wrong there; only the rows about its own host and models matter."""


def label_of(base_url: str) -> str:
    """A short name of an address for logs and notices: its host and port, without credentials and path."""
    parts = urlsplit(base_url)
    host = parts.hostname or "endpoint"
    return f"{host}:{parts.port}" if parts.port else host


def chain(endpoints: Sequence[Endpoint], names: Mapping[str, str]) -> tuple[Route, ...]:
    """All routes in the order in which they are tried: each model with each of its credentials, then the next model.

    `names` gives the model's name for endpoints (by label) that have none configured.
    """
    routes: list[Route] = []
    for endpoint in endpoints:
        for model in endpoint.models or (names.get(endpoint.label, ""),):
            window = endpoint.context_tokens
            routes += [Route(model, endpoint.label, one.id, window) for one in endpoint.credentials]
    return tuple(dict.fromkeys(routes))


def preferred(routes: Sequence[Route], set_aside: Mapping[str, int], now_ms: int, model: str = "") -> tuple[Route, ...]:
    """`routes` with the wished `model` first and with credentials that are set aside (until ms) last.

    None is taken away: if there is no other, the next turn tries it, and fails in words.
    """

    def rank(route: Route) -> tuple[bool, bool]:
        return (bool(model) and route.model != model, set_aside.get(route.credential, 0) > now_ms)

    return tuple(sorted(routes, key=rank))
