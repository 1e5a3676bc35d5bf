"""Searching the web: each engine by its own protocol on a socket, and whatever it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agent_core.ports import SystemClock
from agent_core.text.shown import plain
from agent_core.tools.base import ToolContext, ToolStatus
from agent_core.tools.search import MOST, Engine
from agent_core.tools.search.engines import TEXT_CHARS, TITLE_CHARS, results_in
from agent_core.tools.search.tool import LONGEST_WAIT, MAX_BYTES, SearchTerms, SearchWeb, spec
from tests.listening import listening

PAGES = [
    {
        "title": "One &amp; <strong>only</strong>",
        "url": "https://one.example/",
        "content": "First  words",
        "description": "First  words",
    },
    {
        "title": "Two",
        "url": "https://two.example/a?b=c",
        "content": "Second",
        "description": "Second",
        "page_age": "2026-11-01",
    },
]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FakeEngine:
    """All three engines, as strict as they are: a request that is not theirs is refused."""

    script: list[Answer] = field(default_factory=list[Answer])
    asked: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    url: str = ""

    async def searxng(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("format") != "json":
            return web.Response(status=400)
        return await self._answer(request, dict(request.query), {"results": PAGES, "unresponsive_engines": []})

    async def brave(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("X-Subscription-Token") != "a-key":
            return web.json_response({"type": "ErrorResponse"}, status=401)
        return await self._answer(request, dict(request.query), {"type": "search", "web": {"results": PAGES}})

    async def tavily(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != "Bearer a-key":
            return web.json_response({"detail": {"error": "Unauthorized"}}, status=401)
        return await self._answer(request, await request.json(), {"results": PAGES})

    async def _answer(
        self, request: web.Request, asked: Mapping[str, Any], body: Mapping[str, Any]
    ) -> web.StreamResponse:
        self.asked.append(asked)
        return await self.script.pop(0)(request) if self.script else web.json_response(body)


@asynccontextmanager
async def engine() -> AsyncGenerator[FakeEngine]:
    fake = FakeEngine()
    app = web.Application()
    app.router.add_get("/search", fake.searxng)
    app.router.add_post("/search", fake.tavily)
    app.router.add_get("/res/v1/web/search", fake.brave)
    async with listening(app) as fake.url:
        yield fake


async def no_time(_: float) -> None:
    await asyncio.sleep(0)


def tool(fake: FakeEngine, which: Engine, key: str = "a-key") -> SearchWeb:
    return SearchWeb(SearchTerms(which, f"{fake.url}/", key, 8), spec(), no_time)


def context(tmp_path: Path) -> ToolContext:
    return ToolContext("t", "c", "t:c", tmp_path, "m", SystemClock(), lambda _: None)


@pytest.mark.parametrize("which", Engine)
async def test_each_engine_is_asked_in_its_own_way(which: Engine, tmp_path: Path) -> None:
    async with engine() as fake:
        outcome = await tool(fake, which).run({"query": "tea & cake", "count": 2}, context(tmp_path))
        assert outcome.status is ToolStatus.OK, outcome.text
        for words in (
            "1. One & only\n   https://one.example/\n   First words",
            "https://two.example/a?b=c",
            "Name the addresses",
        ):
            assert words in outcome.text
        assert outcome.facts == {"engine": which.value, "results": 2}
        assert "tea & cake" in fake.asked[0].values()


def status(code: int, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(
            {}, status=code, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    return answer


def raw(text: str | bytes) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=text, content_type="application/json")

    return answer


async def hang_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"results": [')
    assert request.transport is not None
    request.transport.abort()
    return response


LASTING: list[tuple[list[Answer], str, int]] = [
    ([status(401)], "did not accept the key", 1),
    ([status(429, Retry_After="3600")], "too many searches", 1),
    ([status(432)], "no searches left", 1),
    ([status(422)], "Put it in other words", 1),
    ([status(302, Location="https://elsewhere.example/")], "its address may be wrong", 1),
    ([status(500)] * 3, "failed (HTTP 500)", 3),
    ([hang_up] * 3, "cannot be reached", 3),
    ([cut] * 3, "cannot be reached", 3),
    ([raw("<html>")], "cannot be read", 1),
    ([raw("[1, 2]")], "no list of results", 1),
    ([raw('{"results": "none"}')], "no list of results", 1),
    ([raw(b'{"results": ["' + b"x" * MAX_BYTES + b'"]}')], "too large", 1),
    ([raw('{"results": []}')], "found nothing for", 1),
]


@pytest.mark.parametrize(("script", "words", "calls"), LASTING)
async def test_what_an_engine_does_instead_is_said(
    script: list[Answer], words: str, calls: int, tmp_path: Path
) -> None:
    async with engine() as fake:
        fake.script = [*script]
        outcome = await tool(fake, Engine.TAVILY).run({"query": "tea"}, context(tmp_path))
        assert words in outcome.text, outcome.text
        assert len(fake.asked) == calls
        assert "a-key" not in outcome.text


PASSING: list[list[Answer]] = [
    [status(429)],
    [status(429, Retry_After="2")],
    [status(429, X_RateLimit_Reset="1, 1419704")],
    [status(503), status(503)],
    [hang_up, cut],
]


@pytest.mark.parametrize("script", PASSING)
async def test_what_passes_is_tried_again(script: list[Answer], tmp_path: Path) -> None:
    async with engine() as fake:
        fake.script = [*script]
        outcome = await tool(fake, Engine.BRAVE).run({"query": "tea"}, context(tmp_path))
        assert outcome.status is ToolStatus.OK, outcome.text


async def test_a_searxng_that_does_not_offer_json_says_what_to_set(tmp_path: Path) -> None:
    async with engine() as fake:
        fake.script = [status(403)]
        outcome = await tool(fake, Engine.SEARXNG, "").run({"query": "tea"}, context(tmp_path))
        assert "settings.yml" in outcome.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def marked_up(text: str) -> str:
    return f"<b>{text}</b>&#8203;" * 40


def as_results(listed: list[Any]) -> Any:
    return {"results": listed}


TEXTS = st.text(max_size=60) | st.builds(marked_up, st.text(max_size=40))
RESULT = st.fixed_dictionaries(
    {},
    optional={
        "url": st.sampled_from(
            ["https://a.example/", "https://a.example/b", "ftp://x/", "javascript:1", "http://[", "https://a b/"]
        )
        | st.text(),
        "title": TEXTS | JSON,
        "content": TEXTS | JSON,
        "description": TEXTS,
        "publishedDate": JSON,
    },
)


@given(
    st.sampled_from(Engine),
    JSON | st.builds(as_results, st.lists(RESULT | JSON, max_size=30)),
    st.integers(1, 40),
)
def test_whatever_is_answered_what_is_found_is_bounded_and_of_the_web(which: Engine, answer: Any, count: int) -> None:
    given: Any = {"type": "search", "web": answer} if which is Engine.BRAVE else answer
    found = results_in(which, json.loads(json.dumps(given)), count)
    for one in found or ():
        assert urlsplit(one.url).scheme in ("http", "https")
        assert 0 < len(one.title) <= TITLE_CHARS
        assert len(one.text) <= TEXT_CHARS
        assert plain(one.title + one.text + one.url + one.date) == one.title + one.text + one.url + one.date
    assert len({one.url for one in found or ()}) == len(found or ()) <= min(count, MOST)


def test_the_longest_wait_fits_into_the_tools_time() -> None:
    assert LONGEST_WAIT * 2 < 20


@pytest.mark.parametrize("engine", Engine)
def test_a_page_that_is_listed_twice_is_found_once_and_where_it_stood_first(engine: Engine) -> None:
    again = {**PAGES[0], "title": "Once more"}
    listed: list[Any] = [PAGES[0], PAGES[1], again]
    answer: Any = {"web": {"results": listed}, "type": "search"} if engine is Engine.BRAVE else {"results": listed}
    found = results_in(engine, answer, 3)
    assert found is not None
    assert [(one.title, one.url) for one in found] == [("One & only", PAGES[0]["url"]), ("Two", PAGES[1]["url"])]


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("count", [1, 7, MOST, MOST + 5])
def test_no_more_is_found_than_was_asked_for_and_that_is_the_best(engine: Engine, count: int) -> None:
    """SearXNG is not told how many."""
    listed: list[Any] = [{"url": f"https://a.example/{number}", "title": f"{number}"} for number in range(2 * MOST)]
    answer: Any = {"web": {"results": listed}, "type": "search"} if engine is Engine.BRAVE else {"results": listed}
    assert [one.title for one in results_in(engine, answer, count) or ()] == [f"{n}" for n in range(min(count, MOST))]
