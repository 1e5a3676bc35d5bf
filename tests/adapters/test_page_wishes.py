"""What somebody wants of every answer, over the page: kept as it was said, of them alone, and no longer than it may be. Without a gateway."""

from __future__ import annotations

from typing import Any, cast

import orjson
import pytest
from aiohttp import web

from adapters.contract.callers import Caller
from adapters.http.routes import HttpRoute
from adapters.http.sessions.instructions import PageWishes
from adapters.http.web import BROWSER
from tests.adapters.scripted import asked

BROWSERS = ("browser-0001", "browser-0002")
CALLERS = [(Caller("k", person), browser) for person in ("", "ada", "bob") for browser in BROWSERS]


class Kept:
    """Where they are kept."""

    most_chars = 20

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], str] = {}

    async def read(self, scope: str, browser: str) -> str:
        return self.texts.get((scope, browser if scope == "web" else ""), "")

    async def write(self, scope: str, browser: str, text: str) -> None:
        self.texts[scope, browser if scope == "web" else ""] = text

    async def do(self, route: HttpRoute, who: tuple[Caller, str], body: bytes = b"") -> tuple[int, Any]:
        request = asked(who[0], body, {BROWSER: who[1]})
        answer = cast("web.Response", await PageWishes(self).routes()[route](request))
        assert isinstance(answer.body, bytes)
        return answer.status, orjson.loads(answer.body)


@pytest.mark.parametrize(
    "text", ["", " \n", "ü" * 20, f"  {'a b' * 6} \n", "ü" * 21, f"{'a' * 10}{' ' * 10}b", "x" * 30, "x" * 81]
)
async def test_they_are_kept_without_the_space_around_them_and_no_longer_than_they_may_be(text: str) -> None:
    kept, fits = Kept(), len(text.strip()) <= Kept.most_chars
    status, told = await kept.do(HttpRoute.PAGE_INSTRUCT, CALLERS[0], orjson.dumps({"text": text}))
    assert status == (200 if fits else 400)
    assert [*kept.texts.values()] == ([text.strip()] if fits else [])
    if fits:
        assert (await kept.do(HttpRoute.PAGE_INSTRUCTIONS, CALLERS[0]))[1] == told == {"text": text.strip()}


@pytest.mark.parametrize("mine", CALLERS)
async def test_they_are_a_persons_wherever_they_are_known_and_otherwise_a_browsers(mine: tuple[Caller, str]) -> None:
    kept = Kept()
    await kept.do(HttpRoute.PAGE_INSTRUCT, mine, b'{"text": "mine"}')
    for other in CALLERS:
        same = other[0].person == mine[0].person and (mine[0].person or other[1] == mine[1])
        _, told = await kept.do(HttpRoute.PAGE_INSTRUCTIONS, other)
        assert told == {"text": "mine" if same else ""}


@pytest.mark.parametrize("browser", ["", "short", "x" * 65, "no spaces"])
async def test_a_browser_that_does_not_say_which_it_is_has_none(browser: str) -> None:
    for route in (HttpRoute.PAGE_INSTRUCTIONS, HttpRoute.PAGE_INSTRUCT):
        status, told = await Kept().do(route, (Caller("k"), browser), b'{"text": "mine"}')
        assert (status, told["error"]["code"]) == (400, "invalid_value")


@pytest.mark.parametrize("body", [b"{}", b'{"text": 3}', b'{"text": null}'])
async def test_what_is_no_text_is_not_kept(body: bytes) -> None:
    kept = Kept()
    assert ((await kept.do(HttpRoute.PAGE_INSTRUCT, CALLERS[0], body))[0], kept.texts) == (400, {})
