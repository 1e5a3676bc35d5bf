"""What engines are asked and what they answer, as they document it. Pure.

SearXNG: https://docs.searxng.org/dev/search_api.html (an instance has to offer the format json). Brave:
https://api-dashboard.search.brave.com/api-reference/web/search/get. Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search.

Laws (tests/agent_core/tools/test_search.py): whatever an engine answers, what is found has an address of the web, stands there once, and no part of it
is longer than its bound or holds anything that is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import assert_never
from urllib.parse import urlsplit

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.shown import plain
from agent_core.tools.search import MOST, Engine

TITLE_CHARS, TEXT_CHARS, URL_CHARS = 200, 600, 2000
QUERY_CHARS = 400
"""Brave takes no more."""
_TAG = re.compile(r"<[^<>]{0,200}>")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class EngineCall:
    """The request that asks an engine."""

    method: str
    path: str
    """Below the engine's address."""
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Json = None


@dataclass(frozen=True, slots=True)
class WebResult:
    """One page that was found."""

    title: str
    url: str
    text: str
    """What the engine shows of it."""
    date: str = ""
    """When it was published, as the engine says it."""


def call_of(engine: Engine, key: str, query: str, count: int) -> EngineCall:
    """How an engine is asked for so many results."""
    accepts = {"Accept": "application/json"}
    bearer = {"Authorization": f"Bearer {key}"} if key else {}
    match engine:
        case Engine.SEARXNG:
            return EngineCall("GET", "/search", {"q": query, "format": "json"}, {**accepts, **bearer})
        case Engine.BRAVE:
            params = {"q": query, "count": str(count), "text_decorations": "false"}
            return EngineCall("GET", "/res/v1/web/search", params, {**accepts, "X-Subscription-Token": key})
        case Engine.TAVILY:
            return EngineCall("POST", "/search", {}, {**accepts, **bearer}, {"query": query, "max_results": count})
        case _:
            assert_never(engine)


def results_in(engine: Engine, answer: Json, count: int) -> list[WebResult] | None:
    """What was found, the best first; None if the answer is not one of this engine's."""
    listed = _listed(engine, answer)
    if listed is None:
        return None
    found: dict[str, WebResult] = {}
    for one in listed:
        if isinstance(one, dict) and (made := _result(one)) is not None:
            found.setdefault(made.url, made)
    return [*found.values()][: min(count, MOST)]


def _listed(engine: Engine, answer: Json) -> Sequence[Json] | None:
    if not isinstance(answer, dict):
        return None
    if engine is Engine.BRAVE:
        web = answer.get("web")
        if web is None:  # nothing was found
            return [] if answer.get("type") == "search" else None
        answer = web if isinstance(web, dict) else {}
    listed = answer.get("results")
    return listed if isinstance(listed, list) else None


def _result(one: Mapping[str, Json]) -> WebResult | None:
    url = one.get("url")
    if not isinstance(url, str) or not _of_the_web(url):
        return None
    text = one.get("content") or one.get("description")
    date = one.get("publishedDate") or one.get("page_age") or one.get("published_date")
    title = _shown(one.get("title"), TITLE_CHARS)
    return WebResult(title or url[:TITLE_CHARS], url, _shown(text, TEXT_CHARS), _shown(date, 30))


def _of_the_web(url: str) -> bool:
    if len(url) > URL_CHARS or plain(url) != url or " " in url:
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _shown(text: Json, most: int) -> str:
    """Text of an engine in one line, without the markup that some put into it."""
    import html  # its tables are needed by nobody who does not search

    if not isinstance(text, str):
        return ""
    bare = html.unescape(_TAG.sub("", text[: 4 * most]))
    shown = plain(_BLANKS.sub(" ", bare)).strip()
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def refusal_words(engine: Engine, status: int) -> str:
    """Why an engine did not search, for the model and for whoever runs the gateway."""
    match status:
        case 401 | 403 if engine is Engine.SEARXNG:
            return (
                f"SearXNG refused the search (HTTP {status}): it has to offer the format json (search.formats in its settings.yml), and "
                "not to take us for a robot (its limiter)."
            )
        case 401 | 403:
            return f"{engine.called} did not accept the key (HTTP {status})."
        case 402 | 432 | 433:
            return f"The account at {engine.called} has no searches left (HTTP {status})."
        case 429:
            return f"{engine.called} gets too many searches (HTTP 429)."
        case 400 | 422:
            return f"{engine.called} did not understand the search (HTTP {status}). Put it in other words."
        case _ if status >= 500:
            return f"{engine.called} failed (HTTP {status})."
        case _:
            return f"{engine.called} answered with HTTP {status}; its address may be wrong."
