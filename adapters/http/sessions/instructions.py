"""What a person wants of every answer, on the page: shown, and changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from aiohttp import web

from adapters.contract.callers import scope_of
from adapters.http.common import CALLER, Problem
from adapters.http.openapi.shapes import PageInstructions
from adapters.http.routes import Handler, HttpRoute
from adapters.http.sessions.conversations import NotServed, answer, body_of, refusing
from adapters.http.web import BROWSER, SESSION
from agent_core.records import dataclass
from agent_core.text.tongue import number, speak


class KeptInstructions(Protocol):
    """Where they are kept, by person: what their memory is called, and the browser where no key says who they are."""

    most_chars: int

    async def read(self, scope: str, browser: str) -> str:
        """Empty: there are none."""
        ...

    async def write(self, scope: str, browser: str, text: str) -> None:
        """An empty text takes them back."""
        ...


@dataclass(frozen=True, slots=True)
class PageWishes:
    """Serves them."""

    kept: KeptInstructions

    def routes(self) -> Mapping[HttpRoute, Handler]:
        return {HttpRoute.PAGE_INSTRUCTIONS: refusing(self._read), HttpRoute.PAGE_INSTRUCT: refusing(self._write)}

    async def _read(self, request: web.Request) -> web.StreamResponse:
        return answer(PageInstructions(text=await self.kept.read(*_whose(request))))

    async def _write(self, request: web.Request) -> web.StreamResponse:
        text = (await body_of(request)).get("text")
        if not isinstance(text, str):
            raise NotServed(Problem(400, "text must be text.", param="text", code="invalid_value"))
        if len(text := text.strip()) > self.kept.most_chars:
            words = speak("The text is longer than {count} characters.", count=number(self.kept.most_chars))
            raise NotServed(Problem(400, words, param="text", code="invalid_value"))
        await self.kept.write(*_whose(request), text)
        return answer(PageInstructions(text=text))


def _whose(request: web.Request) -> tuple[str, str]:
    person, browser = request[CALLER].person, request.headers.get(BROWSER, "")
    if not person and not SESSION.fullmatch(browser):
        raise NotServed(Problem(400, f"{BROWSER} must be 8 to 64 letters, digits, - or _.", code="invalid_value"))
    return scope_of(person) if person else "web", browser
