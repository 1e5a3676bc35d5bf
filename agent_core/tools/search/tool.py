"""`search_web`: asks the configured engine, and gives the model titles, addresses and what the engine shows of each page.

The engine is the operator's choice, so its address may be an inner one, a proxy of the environment is used, and what it is asked reaches nobody
that the operator has not chosen. What it finds was written by strangers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import orjson

from agent_core.jsonvalue import Json, read_loosely
from agent_core.patience import came_words
from agent_core.records import dataclass
from agent_core.retry import SEARCH
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.search import MOST, SEARCH_WEB, Engine
from agent_core.tools.search.engines import (
    QUERY_CHARS,
    EngineCall,
    WebResult,
    call_of,
    refusal_words,
    results_in,
)

if TYPE_CHECKING:
    import aiohttp

SECONDS = 20.0
"""For all of a search."""
MAX_BYTES = 2_000_000
LONGEST_WAIT = 8.0
"""Seconds that an engine may ask us to wait for; the model is told of more."""
HOW_TO_CITE = "Read a page with fetch_url before you rely on more than stands here. Name the addresses of what you use in your answer."


def spec() -> ToolSpec:
    """The tool as it is declared."""
    return ToolSpec(
        SEARCH_WEB,
        "Search the web. Gives titles, addresses and a few words of the pages found. Name the addresses of what you use in your answer.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": QUERY_CHARS},
                "count": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "How many; 8 if left out."},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        EffectClass.PURE,
        deadline_seconds=SECONDS + 5,
        foreign=True,  # what it asks reaches the operator's engine alone, so `reach` is what it is without a word
        links=True,
    )


class NotSearched(Exception):
    """The engine gave nothing that can be used; the words say why."""

    def __init__(self, words: str, *, again: float | None = None) -> None:
        super().__init__(words)
        self.again = again
        """After so many seconds it may do; None: trying again will not help."""


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """Whom to ask, and how."""

    engine: Engine
    url: str
    key: str = ""
    count: int = 8
    """Results, if the model asks for no other number."""


@dataclass(frozen=True)
class SearchWeb:
    """The tool."""

    terms: SearchTerms
    spec: ToolSpec
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        query = str(arguments["query"])
        asked = arguments.get("count")
        count = asked if isinstance(asked, int) else self.terms.count
        engine = self.terms.engine.called
        context.heartbeat(f"searching with {engine}")
        came = bytearray()
        try:
            async with asyncio.timeout(SECONDS):
                found = await self.search(query, count, came)
        except TimeoutError:
            return ToolOutcome(
                ToolStatus.FAILED, f"{engine} did not answer within {SECONDS:g} s: {came_words(len(came))}."
            )
        except NotSearched as error:
            return ToolOutcome(ToolStatus.FAILED, str(error))
        facts: dict[str, Json] = {"engine": self.terms.engine.value, "results": len(found)}
        return ToolOutcome(ToolStatus.OK, listed(query, engine, found), facts=facts)

    async def search(self, query: str, count: int, came: bytearray | None = None) -> list[WebResult]:
        """What was found; tried again after what passes. What has come of an answer at any time is in `came`. Raises `NotSearched`."""
        came = bytearray() if came is None else came
        call = call_of(self.terms.engine, self.terms.key, query, count)
        attempt = 0
        while True:
            attempt += 1
            try:
                found = results_in(self.terms.engine, await self._asked(call, came), count)
            except NotSearched as error:
                if error.again is None or error.again > LONGEST_WAIT or SEARCH.over(attempt):
                    raise
                await self.sleep(max(error.again, SEARCH.seconds(attempt)))
                continue
            if found is None:
                raise NotSearched(
                    f"What {self.terms.engine.called} answered is no list of results; its address may be wrong."
                )
            return found

    async def _asked(self, call: EngineCall, came: bytearray) -> Json:
        import aiohttp

        came.clear()
        title = self.terms.engine.called
        try:
            async with (
                aiohttp.ClientSession(
                    trust_env=True, cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": "outspoken"}
                ) as http,
                http.request(
                    call.method,
                    self.terms.url.rstrip("/") + call.path,
                    params=call.params,
                    headers=call.headers,
                    data=None if call.body is None else orjson.dumps(call.body),
                    allow_redirects=False,
                ) as response,
            ):
                if response.status != 200:
                    raise NotSearched(refusal_words(self.terms.engine, response.status), again=_again(response))
                while len(came) <= MAX_BYTES and (more := await response.content.read(MAX_BYTES + 1 - len(came))):
                    came += more
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotSearched(f"{title} cannot be reached ({type(error).__name__}).", again=0) from error
        if len(came) > MAX_BYTES:
            raise NotSearched(f"What {title} answered is too large to be read.")
        try:
            answer = read_loosely(bytes(came))
        except ValueError as error:
            raise NotSearched(f"What {title} answered cannot be read; its address may be wrong.") from error
        return answer


def _again(response: aiohttp.ClientResponse) -> float | None:
    """After how many seconds the same may do."""
    if response.status != 429:
        return 0 if response.status >= 500 else None
    said = response.headers.get("Retry-After") or response.headers.get("X-RateLimit-Reset", "").split(",")[0]
    try:
        return max(0.0, float(said))
    except ValueError:
        return 1.0


def listed(query: str, engine: str, found: Sequence[WebResult]) -> str:
    """The results as the model reads them."""
    if not found:
        return f"{engine} found nothing for “{query}”. Try other words."
    lines = [f"{engine} found for “{query}”:"]
    for number, one in enumerate(found, 1):
        dated = f" ({one.date})" if one.date else ""
        lines += ["", f"{number}. {one.title}{dated}", f"   {one.url}"]
        lines += [f"   {one.text}"] if one.text else []
    return "\n".join([*lines, "", HOW_TO_CITE])
