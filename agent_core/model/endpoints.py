"""Where models are: endpoints, credentials and the chain of routes. Pure but for nothing; secrets stay in this layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date
from urllib.parse import urlsplit

from agent_core.jsonvalue import Json
from agent_core.model.knownbad import ROWS, KnownBad, avoiding, concerns
from agent_core.records import dataclass
from agent_core.settings import Route
from agent_core.text.patterns import late

_NO_TALKERS = late(
    r"embed|rerank|minilm|\bbge\b|whisper|transcribe|\btts\b|moderation|dall-e|gpt-image|\bsora\b", re.IGNORECASE
)
"""Names of models that embed, rank, hear, speak or draw."""


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


def first_to_talk(names: Iterable[str]) -> str:
    """The first of these models that may answer in words: servers list all that they have, and Ollama what was fetched last first, which may be one that
    only embeds. The first of all where there is no other; empty where there is none."""
    listed = [name for name in names if name]
    return next((name for name in listed if not _NO_TALKERS.search(name)), next(iter(listed), ""))


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


def applied(endpoints: Sequence[Endpoint], today: date) -> tuple[str, ...]:
    """The rows that concern the configured models, a sentence or two each; empty if none does."""
    said = [
        _words(row, endpoint, models, today)
        for endpoint in endpoints
        for row in endpoint.known_bad
        if (models := [model for model in endpoint.models if concerns(row, endpoint.base_url, model)])
    ]
    return tuple(dict.fromkeys(said))


def overdue(endpoints: Sequence[Endpoint], today: date) -> tuple[KnownBad, ...]:
    """The rows that concern the configured models and whose date to look again has passed."""
    late = (
        row
        for e in endpoints
        for row in e.known_bad
        if today > row.look_again and any(concerns(row, e.base_url, model) for model in e.models)
    )
    return tuple({row.name: row for row in late}.values())


def _words(row: KnownBad, endpoint: Endpoint, models: Sequence[str], today: date) -> str:
    about = f"{', '.join(models)} at {row.host}: {row.fault} ({row.report})."
    filled = [avoiding(endpoint.base_url, model, endpoint.extra_body, (row,)) for model in models]
    off = f'known_bad_off = ["{row.name}"] in [model] switches this off'
    if not any(filled):
        return (
            f"{about} Nothing is done about it, because extra_body has decided it otherwise: your own routing counts."
        )
    if any(endpoint.extra_body.get(field) for field in row.extra_body):
        words = f"{about} So {row.remedy}, as far as your own routing leaves it open; {off}."
    else:
        words = f"{about} So {row.remedy}; what you set in extra_body wins, and {off}."
    if today > row.look_again:
        return f"{words} This was to be looked at again by {row.look_again.isoformat()}: it may be mended by now."
    return f"{words} To be looked at again by {row.look_again.isoformat()}."
