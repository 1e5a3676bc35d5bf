"""Endpoints that are known to go wrong, as data, and what a request for them carries so that they are avoided. Pure.

Each row is about one host and some models there, whatever variant or date their name carries; it fills in fields of a call's body, and only
fields about routing. What the operator (or the client of a request) has set wins key by key, and the rest is filled in: a sort order keeps
its order, and the bad provider is still left out. A provider that they name themselves is never left out for them.

A row is a guess about somebody else's server, so it has a date to look again. A row that is past it still applies; who runs the gateway is told, at
its start and by `doctor`. Rows can be added and switched off in the configuration.

Laws (tests/agent_core/model/test_knownbad.py): a row changes no request for another host, a subdomain, a look-alike or another model; every key
that was set keeps its value; filling in twice is filling in once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.patterns import late

ROUTING = frozenset({"provider", "models", "route"})
"""Fields by which a request says itself where it goes (https://openrouter.ai/docs/features/provider-routing)."""
_RANKING = frozenset({"order", "sort", "only"})
"""Keys of ``provider`` that say in which order providers are taken: whoever sets one of them has decided it, and none of the others is filled in."""
_SORTING = frozenset({"nitro", "floor"})
"""Variants of a name that are a sort order (https://openrouter.ai/docs/faq)."""
_DATED = late(r"-(?:20\d{2}-?[01]\d-?[0-3]\d|[01]\d[0-3]\d|2[3-9][01]\d)$")
"""A release's date at the end of a name: 20251027, 2025-10-27, 0905, 2509."""


@dataclass(frozen=True, slots=True)
class KnownBad:
    """One row."""

    name: str
    """For logs, and for switching it off."""
    host: str
    """Exactly; in lower case."""
    model: str
    """Pattern of the model's name at that host, in lower case, without variant and date."""
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
    KnownBad(
        name="openrouter-glm-5.2",
        host="openrouter.ai",
        model="z-ai/glm-5.2",
        fault="one of the providers behind OpenRouter breaks off large tool calls in the middle",
        remedy="Z.ai's own endpoint is preferred",
        report="https://github.com/langchain-ai/openwiki/issues/39",
        look_again=date(2027, 2, 1),
        extra_body={"provider": {"order": ["z-ai"]}},
    ),
)


def avoiding(base_url: str, model: str, given: Mapping[str, Json], rows: Iterable[KnownBad] = ROWS) -> dict[str, Json]:
    """The fields to set in the body of a call to `model` at `base_url`; `given` is what it has already."""
    filled: dict[str, Json] = {}
    for row in rows:
        if concerns(row, base_url, model):
            for field, wanted in row.extra_body.items():
                own = filled.get(field, given.get(field))
                if field == "provider":
                    filled[field] = _provider(own, wanted, sorts=_variant(model) in _SORTING)
                else:
                    filled[field] = _merged(own, wanted)
    return {field: value for field, value in filled.items() if value != given.get(field)}


_NOBODY_LEFT = late(r"no allowed providers|all providers have been ignored")


def nobody_left(words: str) -> bool:
    """Whether a provider says that what a request wants to avoid is all that there is."""
    return _NOBODY_LEFT.search(words.lower()) is not None


def _merged(own: Json, wanted: Json) -> Json:
    """What is set, and of what is wanted whatever is not set."""
    if own is None:
        return wanted
    if isinstance(own, dict) and isinstance(wanted, dict):
        return {**own, **{key: _merged(own.get(key), value) for key, value in wanted.items()}}
    return own


def _provider(own: Json, wanted: Json, *, sorts: bool) -> Json:
    """OpenRouter's ``provider``: an order is not filled in beside another one, and nobody is left out who is named."""
    if not isinstance(wanted, dict) or not (own is None or isinstance(own, dict)):
        return _merged(own, wanted)
    ours = dict(wanted)
    mine = own or {}
    if sorts or any(mine.get(key) for key in _RANKING):
        ours = {key: value for key, value in ours.items() if key not in _RANKING}
    named = {str(one).lower() for key in ("order", "only") for one in _listed(mine.get(key))}
    left_out = [one for one in _listed(ours.get("ignore")) if str(one).lower() not in named]
    if left_out:
        ours["ignore"] = left_out
    else:
        ours.pop("ignore", None)
    return _merged(mine, ours)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _variant(model: str) -> str:
    return model.strip().lower().partition("@")[0].partition(":")[2]


def concerns(row: KnownBad, base_url: str, model: str) -> bool:
    """Whether `row` is about `model` at `base_url`, whatever is set about routing."""
    if _host(base_url) != row.host:
        return False
    name = model.strip().lower().partition("@")[0].partition(":")[0]
    return any(fnmatchcase(one, row.model) for one in {name, _DATED.sub("", name)})


@lru_cache(64)
def _host(address: str) -> str:
    """Empty if it is no address at all. Asked with each call."""
    try:
        return (urlsplit(address).hostname or "").removesuffix(".")
    except ValueError:
        return ""
