"""The web chat: a page at ``/`` and the small API that it uses under ``/api``.

The page follows its session level-triggered: every event carries whole messages as they are now, so a page that reconnects has
everything after the first event and can never be a word behind or show one twice. A message is acknowledged (202) only when it is
stored; the page keeps it until then, and sends it again under the same id.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from adapters.contract.base import REHEARSAL_WORDS, FromApi, Gateway, SessionKey, TurnSight
from adapters.contract.callers import Callers, ShareLinks, may_ask, scope_of
from adapters.contract.notaccepted import NotAccepted
from adapters.http.common import CALLER, LASTS_WORDS, Problem, caller_of, lasting_of, problem_response, refusal
from adapters.http.entrance import NotJson, json_of
from adapters.http.pagefiles import INDEX, PageFiles
from adapters.http.pagewords import spoken_page, spoken_words
from adapters.http.routes import Handler, HttpRoute
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage, files_of
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.text.tongue import SLASH, accepted, chosen, number, speak, speaking, spelled
from agent_core.turn.events import Verdict
from agent_core.turn.view import Bubble, spelled_view

if TYPE_CHECKING:
    from adapters.contract.pagecommands import PageCommands
    from adapters.http.openapi.shapes import PageBubble, PageFigures, PageMessage
    from adapters.http.written.told import PageTold

MAX_TEXT_CHARS = 200_000
HOLDS_SECONDS = 2.0
"""How often it is looked whether the key of an open page is still good."""
READS_SECONDS, REST = 0.01, 3
"""Where it takes longer to read what the model wrote, the page is told nothing for so many times as long."""
BROWSER = "X-Outspoken-Browser"
"""Stands for the browser that has the page open; nobody else knows it."""
OWN = "c-"
"""How the names of conversations begin that belong to their browser alone, where no key says whose they are."""
SESSION = re.compile(r"[A-Za-z0-9_-]{8,64}")
SHARED = "shared.html"
PAGE = PageFiles(
    "adapters.http.webpage",
    frozenset({
        "index.html", "page.css", "page.js", "aloud.js", "attach.js", "dom.js", "files.js", "list.js", "menu.js", "net.js", "prefer.js", "shared.html", "shared.js", "store.js", "theme.js", "turns.js", "unsent.js", "voice.js", "words.js", "written.js",
        "icon.svg", "app.webmanifest", "worker.js",
    }),
    {INDEX: spoken_page, SHARED: spoken_page, "words.js": spoken_words},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WebSettings:
    """What the configuration says about the page."""

    callers: Callers
    keep_alive_seconds: float
    thinking: bool = True
    """Whether people are shown what a model thinks."""
    own_host: str = ""
    share_links: ShareLinks = ShareLinks.PEOPLE
    language: str = ""
    """What the operator wants everybody to be spoken to in; empty: as each browser asks for."""


class _Refused(Exception):
    """A request that is not served."""

    def __init__(self, status: int, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(status, message, param=param)


class WebChat:
    """Serves the page and its API."""

    def __init__(
        self,
        gateway: Gateway,
        settings: WebSettings,
        clock: Clock,
        ids: Ids,
        listed: Mapping[HttpRoute, Handler],
        commands: Callable[[], PageCommands],
    ) -> None:
        """`listed` serves the list of conversations."""
        self._commands = commands
        self._listed = listed
        self._gateway = gateway
        self._settings = settings
        self._clock = clock
        self._ids = ids

    def routes(self) -> list[web.RouteDef]:
        return [
            HttpRoute.PAGE.served(self._page),
            HttpRoute.PAGE_FILE.served(self._file),
            HttpRoute.SHARED.served(self._shared),
            HttpRoute.ABOUT.served(self._guarded(self._about)),
            HttpRoute.FOLLOW.served(self._guarded(self._events)),
            HttpRoute.EARLIER.served(self._guarded(self._earlier)),
            HttpRoute.SAY.served(self._guarded(self._message)),
            HttpRoute.STOP.served(self._guarded(self._stop)),
            HttpRoute.APPROVE.served(self._guarded(self._approve)),
            HttpRoute.WHY.served(self._guarded(self._why)),
            *(
                route.served(self._open(handler) if self._for_anyone(route) else self._guarded(handler))
                for route, handler in self._listed.items()
            ),
        ]

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return PAGE.response(INDEX, self._language(request))

    async def _shared(self, request: web.Request) -> web.StreamResponse:
        """What is shown is behind the ``#`` of the address, and asked for by the page: nobody comes upon it by chance."""
        response = PAGE.response(SHARED, self._language(request))
        response.headers["X-Robots-Tag"] = "noindex, nofollow"
        return response

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return PAGE.response(request.match_info["name"], self._language(request))

    def _language(self, request: web.Request) -> str:
        """In which the page speaks to whoever opened it; empty for English."""
        return chosen(self._settings.language, accepted(request.headers.get("Accept-Language", "")))

    def _for_anyone(self, route: HttpRoute) -> bool:
        return route is HttpRoute.READ_SHARED and self._settings.share_links is ShareLinks.ANYONE

    def _open(self, handler: Handler) -> Handler:
        """A handler that asks nobody who they are."""

        async def handle(request: web.Request) -> web.StreamResponse:
            with speaking(self._language(request)):
                return await handler(request)

        return handle

    def _guarded(
        self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            caller = caller_of(request, self._settings.callers, (), self._settings.own_host)
            if isinstance(caller, Problem):
                return problem_response(caller)
            request[CALLER] = caller
            try:
                with speaking(self._language(request)):
                    return await handler(request)
            except NotAccepted as refused:
                return problem_response(refusal(refused))
            except _Refused as refused:
                return problem_response(refused.problem)

        return handle

    # ------------------------------------------------------------------ its API

    async def _about(self, request: web.Request) -> web.StreamResponse:
        from adapters.http.enclosing import most_bytes

        about, caller = self._gateway.about(), request[CALLER]
        return _json(
            {
                "version": about.version,
                "models": [name for name in about.models if may_ask(name, caller.key, caller.terms, about.held)],
                "rehearsal": about.rehearsal,
                "notice": speak(REHEARSAL_WORDS) if about.rehearsal else "",
                "share_links": self._settings.share_links.value,
                "file_bytes": most_bytes(request.client_max_size),
                "commands": [
                    {"name": one.name, "words": one.words} for one in self._commands().menu(self._language(request))
                ],
            }
        )

    def _key(self, request: web.Request) -> SessionKey:
        session = request.match_info["session"]
        if not SESSION.fullmatch(session):
            raise _Refused(400, "A session's name has 8 to 64 letters, digits, - or _.", param="session")
        realm = page_realm(request, session)
        if realm is None:
            raise _Refused(400, f"{BROWSER} must be 8 to 64 letters, digits, - or _.", param="browser")
        return SessionKey("web", "page", session, person=realm)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        key = self._key(request)
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
                "X-Accel-Buffering": "no",
            }
        )
        await response.prepare(request)
        caller, keep_alive = request[CALLER], self._settings.keep_alive_seconds
        looks = min(keep_alive, HOLDS_SECONDS) if caller.key else keep_alive
        told = (
            self._told(request[CALLER].terms.shows_thinking(self._settings.thinking))
            if request.query.get("changes") == "1"
            else None
        )
        async with self._gateway.follow_session(key) as follower:
            first, quiet = True, 0.0
            while True:
                sights = await follower.next(looks)
                if follower.over or not self._settings.callers.holds(caller):
                    return response  # the page comes again, and is told, or led to another gateway
                if sights is None:
                    quiet += looks
                    if quiet >= keep_alive:
                        quiet = 0.0
                        await response.write(b": keep-alive\n\n")
                    continue
                quiet = 0.0
                name = b"snapshot" if first else b"turns"
                first = False
                began = self._clock.monotonic()
                if told is None:
                    data = orjson.dumps([wire(sight) for sight in sights])
                elif told.heavy(sights):
                    data = await asyncio.to_thread(told.news, sights)
                else:
                    data = told.news(sights)
                took = self._clock.monotonic() - began
                await response.write(b"event: " + name + b"\ndata: " + data + b"\n\n")
                if took > READS_SECONDS:
                    # The latest is enough, and others want to be served
                    await asyncio.sleep(min(REST * took, keep_alive))

    async def _earlier(self, request: web.Request) -> web.StreamResponse:
        sights = await self._gateway.earlier(self._key(request), request.query.get("before", ""))
        if request.query.get("changes") != "1":
            return web.Response(body=orjson.dumps([wire(one) for one in sights]), content_type="application/json")
        told = self._told(request[CALLER].terms.shows_thinking(self._settings.thinking))
        return web.Response(body=await asyncio.to_thread(told.news, sights), content_type="application/json")

    @staticmethod
    def _told(thinking: bool) -> PageTold:
        from adapters.http.written.told import PageTold  # of the page alone

        return PageTold(wire, thinking=thinking)

    async def _body(self, request: web.Request) -> dict[str, Json]:
        if request.content_type != "application/json":
            raise _Refused(415, "The body must be JSON (Content-Type: application/json).")
        if (request.content_length or 0) > request.client_max_size:
            raise _Refused(413, speak("The message is larger than {size} bytes.", size=number(request.client_max_size)))
        try:
            value = json_of(await request.read())
        except NotJson as error:
            raise _Refused(400, str(error)) from error
        if not isinstance(value, dict):
            raise _Refused(400, "The body must be a JSON object.")
        return value

    async def _message(self, request: web.Request) -> web.StreamResponse:
        from adapters.http.enclosing import content_of, digest_of

        key = self._key(request)
        body = await self._body(request)
        message, text, browser = body.get("id"), body.get("text"), body.get("browser", request.headers.get(BROWSER, ""))
        if not isinstance(message, str) or not SESSION.fullmatch(message):
            raise _Refused(400, "id must be 8 to 64 letters, digits, - or _.", param="id")
        if not isinstance(browser, str) or (browser and not SESSION.fullmatch(browser)):
            raise _Refused(400, "browser must be 8 to 64 letters, digits, - or _.", param="browser")
        if not isinstance(text, str):
            raise _Refused(400, "text must be text that is not empty.", param="text")
        if len(text) > MAX_TEXT_CHARS:
            words = speak("The text is longer than {count} characters.", count=number(MAX_TEXT_CHARS))
            raise _Refused(413, words, param="text")
        caller, model = request[CALLER], body.get("model", "")
        if not isinstance(model, str) or (model and not caller.terms.may_ask_for(model)):
            raise _Refused(404, speak("There is no such model or agent for this key."), param="model")
        content = await asyncio.to_thread(content_of, text, body.get("files"))
        if isinstance(content, Problem):
            raise _Refused(content.status, content.message, param=content.param)
        said = FromApi(
            account="web",
            platform_key=f"{key.chat}:{message}{f':{key.person}' if key.person else ''}",
            session=key,
            input=(InputMessage(content),),
            surface="web",
            memory_scope=scope_of(caller.person) if caller.person else "web",
            key=caller.key,
            model=model,
            can_approve=True,
            browser=browser,
            digest=digest_of(content),
            brought=tuple(name for name, _ in files_of(content)),
            language=accepted(request.headers.get("Accept-Language", "")),
        )
        command, words = self._commands().named(text) if not body.get("files") else ("", "")
        if command:
            known = await self._commands().take(said, command, words)
            return _json({"accepted": True, "duplicate": known, "command": command}, status=202)
        ticket = await self._gateway.accept(said)
        return _json({"accepted": True, "duplicate": ticket.duplicate, "command": ""}, status=202)

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        key = self._key(request)
        outcome = await self._gateway.stop(key)
        return _json({"stopped": outcome.stopped, "words": spelled(outcome.words)})

    async def _approve(self, request: web.Request) -> web.StreamResponse:
        key = self._key(request)
        body = await self._body(request)
        turn, call, approve = body.get("turn"), body.get("call"), body.get("approve")
        words = body.get("answer")
        if isinstance(turn, str) and isinstance(call, str) and isinstance(words, str):
            told = await self._gateway.answer(key, turn, call, words, "web")
            return _json({"done": told is not None, "words": spelled(told or "")})
        if not isinstance(turn, str) or not isinstance(call, str) or not isinstance(approve, bool):
            raise _Refused(400, "turn and call must be text, and approve true or false.")
        if (lasts := lasting_of(body.get("lasts"))) is None:
            raise _Refused(400, LASTS_WORDS)
        verdict = Verdict.GIVEN if approve else Verdict.DENIED
        refused = await self._gateway.approve(key, turn, call, verdict, "web", lasts)
        return _json({"done": not refused, "words": refused})

    async def _why(self, request: web.Request) -> web.StreamResponse:
        lines = await self._gateway.why(request.match_info["turn"], request[CALLER], _browser_realm(request) or "")
        return _json({"lines": list(lines)})


def page_realm(request: web.Request, session: str) -> str | None:
    """Whose conversations of the page the request means, where it names this one: the key's person's, or the browser's own. None if it
    does not say which browser's.

    Where one key opens the page for all, or none is needed, nobody sees what was said in another browser.
    """
    realm = request[CALLER].realm
    return realm if realm or not session.startswith(OWN) else _browser_realm(request)


def _browser_realm(request: web.Request) -> str | None:
    """Whose conversations a browser has where it needs no key of its own; None if the request does not say which browser's."""
    browser = request.headers.get(BROWSER, "")
    if not SESSION.fullmatch(browser):
        return None
    return f"browser:{hashlib.blake2b(browser.encode(), digest_size=12).hexdigest()}"


def wire(sight: TurnSight) -> PageMessage:
    """A message and its turn as the page gets them. Pure."""
    bubbles: list[PageBubble] = [
        {
            "key": b.key,
            "kind": b.kind,
            "text": f"{b.text}\n{b.left}" if b.left else b.text,
            "final": b.final,
            "tool": b.tool,
            "state": b.state,
            "seconds": b.seconds,
            "call": b.call,
            "whole": b.whole,
            "change": b.change,
            "offers": [*b.offers],
            "actions": [*b.actions],
            "options": [*b.options],
            "file": _file(sight.turn, b) if b.path else "",
        }
        for b in spelled_view(sight.view, SLASH).bubbles
    ]
    summary = sight.summary
    figures: PageFigures | None = (
        {"seconds": round(summary.seconds, 1), "steps": summary.steps, "tool_calls": summary.tool_calls}
        if summary
        else None
    )
    return {
        "key": sight.key,
        "order": sight.order,
        "state": sight.state,
        "person": sight.person,
        "brought": [*sight.brought],
        "turn": sight.turn,
        "position": sight.position,
        "bubbles": bubbles,
        "exit": sight.view.exit_code,
        "at": sight.at,
        "summary": figures,
        "undone": sight.undone,
        "hidden": sight.hidden,
        "versions": [*sight.versions],
    }


def _file(turn: str, bubble: Bubble) -> str:
    from adapters.http.sessions.sentfiles import file_id  # of pages on which something was sent

    return file_id(turn, bubble)


def _json(value: dict[str, Json], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json", status=status)
