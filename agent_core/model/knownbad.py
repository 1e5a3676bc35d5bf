"""Endpoints that are known to go wrong, as data, and what a request for them carries so that they are avoided. Pure.

Each row is about one host and some models there; it adds fields to the body of a call, and only fields about routing. What the
operator (or the client of a request) has set about routing wins entirely: then the row adds nothing, not even the rest of its field.

A row is a guess about somebody else's server, so it has a date to look again. A row that is past it still applies; who runs the
gateway is told, at its start and by `applied`.

Laws (tests/agent_core/model/test_knownbad.py): a row changes no request for another host, a subdomain, a look-alike or another
model; whatever of `ROUTING` is set already, nothing is added.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from agent_core.model.endpoints import Endpoint
from agent_core.tools.base import Json

ROUTING = frozenset({"provider", "models", "route"})
"""Fields by which a request says itself where it goes (https://openrouter.ai/docs/features/provider-routing)."""


@dataclass(frozen=True, slots=True)
class KnownBad:
    """One row."""

    name: str
    """For logs."""
    host: str
    """Exactly; in lower case."""
    model: str
    """Pattern of the model's name at that host, in lower case. A name with a variant (``…:nitro``) is routing of its own: it never
    matches."""
    fault: str
    """What goes wrong, in words."""
    remedy: str
    """What is done about it, in words."""
    report: str
    """Where it is reported upstream."""
    look_again: date
    extra_body: Mapping[str, Json]


ROWS: tuple[KnownBad, ...] = (
    KnownBad(
        name="openrouter-minimax-direct",
        host="openrouter.ai",
        model="minimax/*",
        fault="MiniMax's own endpoint behind OpenRouter drops the stream of a tool call, or never ends it",
        remedy="other providers are preferred, and MiniMax's own is left out",
        report="https://github.com/MiniMax-AI/MiniMax-M2/issues/109",
        look_again=date(2027, 3, 1),
        extra_body={
            "provider": {
                "ignore": ["minimax"],
                "order": ["fireworks", "novitaai", "google-vertex", "atlascloud", "together"],
            }
        },
    ),
)


def avoiding(base_url: str, model: str, given: Container[str], rows: Iterable[KnownBad] = ROWS) -> dict[str, Json]:
    """The fields to add to the body of a call to `model` at `base_url`; `given` are the fields that it has already."""
    added: dict[str, Json] = {}
    if any(field in given for field in ROUTING):
        return added
    for row in rows:
        if concerns(row, base_url, model):
            added.update(row.extra_body)
    return added


def concerns(row: KnownBad, base_url: str, model: str) -> bool:
    """Whether `row` is about `model` at `base_url`, whatever is set about routing."""
    try:
        host = (urlsplit(base_url).hostname or "").removesuffix(".")
    except ValueError:  # no address at all
        return False
    name = model.strip().lower()
    return host == row.host and ":" not in name and fnmatchcase(name, row.model)


def applied(endpoints: Sequence[Endpoint], today: date, rows: Sequence[KnownBad] = ROWS) -> tuple[str, ...]:
    """The rows that concern the configured models, a sentence or two each; empty if none does."""
    said: list[str] = []
    for row in rows:
        for endpoint in endpoints:
            models = [model for model in endpoint.models if concerns(row, endpoint.base_url, model)]
            if models:
                said.append(_words(row, endpoint, models, today))
    return tuple(dict.fromkeys(said))


def overdue(endpoints: Sequence[Endpoint], today: date, rows: Sequence[KnownBad] = ROWS) -> tuple[KnownBad, ...]:
    """The rows that concern the configured models and whose date to look again has passed."""
    return tuple(
        row
        for row in rows
        if today > row.look_again and any(concerns(row, e.base_url, model) for e in endpoints for model in e.models)
    )


def _words(row: KnownBad, endpoint: Endpoint, models: Sequence[str], today: date) -> str:
    about = f"{', '.join(models)} at {row.host}: {row.fault} ({row.report})."
    if own := sorted(ROUTING & set(endpoint.extra_body)):
        return f"{about} Nothing is done about it, because extra_body sets {', '.join(own)}: your own routing counts."
    words = f"{about} So {row.remedy}; set provider in extra_body to decide that yourself."
    if today > row.look_again:
        words += f" This was to be looked at again by {row.look_again.isoformat()}: it may be mended by now."
    return words
