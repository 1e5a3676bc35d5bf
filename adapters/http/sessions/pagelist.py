"""The web page's conversations as a list: searched, named, pinned, deleted, and written out to keep. Loaded when the page is first opened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from adapters.contract.base import Ended, Showing
from adapters.contract.sessions import (
    ARCHIVED,
    METADATA_CHARS,
    SHARED,
    SUGGESTED,
    TITLE,
    SessionAccess,
    SessionSight,
    SessionTurn,
    StillRunning,
)
from adapters.http.common import CALLER, HEADERS, Problem, spoken
from adapters.http.enclosing import MOST_FILES
from adapters.http.openapi.shapes import Done, PageConversation, PageList
from adapters.http.routes import Handler, HttpRoute
from adapters.http.sessions.conversations import NotServed, answer, body_of, refusing
from adapters.http.sessions.managed import TURNS_AT_ONCE, write_export
from adapters.http.sessions.sentfiles import bytes_response, file_response, named_file
from adapters.http.web import OWN, SESSION, page_realm
from agent_core.messages import text_of, words_of
from agent_core.records import dataclass
from agent_core.text.tongue import sentence
from agent_core.turn.view import TEXTS, BubbleKind

MOST_LISTED = 200
TITLE_CHARS = 200
SEARCH_CHARS = 200
SEARCH_SECONDS = 2.0
"""So long texts are looked through; the latest conversations come first."""
FOUND_CHARS = 120
PINNED = "pinned"
ON_ITS_WAY = Problem(
    409, sentence("An answer is on its way. Stop it first, or wait for its end."), code="conversation_busy"
)
NOT_KEPT = Problem(404, sentence("What was said there is no longer kept."), param="turn", code="turn_not_found")
NO_CONVERSATION = Problem(
    404, sentence("There is no such conversation."), param="session", code="conversation_not_found"
)


@dataclass(frozen=True, slots=True)
class PageConversations:
    """Serves the list."""

    access: SessionAccess

    def routes(self) -> Mapping[HttpRoute, Handler]:
        served: Mapping[HttpRoute, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            HttpRoute.PAGE_LIST: self._list,
            HttpRoute.PAGE_CHANGE: self._change,
            HttpRoute.PAGE_SHOW: self._show,
            HttpRoute.PAGE_BRANCH: self._branch,
            HttpRoute.PAGE_DELETE: self._delete,
            HttpRoute.PAGE_EXPORT: self._export,
            HttpRoute.PAGE_SENT: self._sent,
            HttpRoute.PAGE_BROUGHT: self._brought,
        }
        return {route: refusing(handler) for route, handler in served.items()}

    async def _sight(self, request: web.Request) -> SessionSight:
        return await sight_named(self.access, request)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        realm, words = page_realm(request, OWN), request.query.get("search", "").casefold().split()
        if len(request.query.get("search", "")) > SEARCH_CHARS:
            raise NotServed(
                Problem(400, f"search has at most {SEARCH_CHARS} characters.", param="search", code="invalid_value")
            )
        sights, whole = await self._latest(realm) if realm else ([], True)
        also = request.query.get("also", "")
        if also and not request[CALLER].realm and not also.startswith(OWN) and also not in {one.name for one in sights}:
            before = await self.access.find("", also)
            sights += [before] if before is not None else []
        listed = [listed_conversation(one) for one in sights]
        if words:
            listed, in_time = await self._found(sights, words)
            whole = whole and in_time
        listed.sort(key=lambda one: (not one["pinned"], -one["last_at"], -one["created_at"]))
        return answer(PageList(conversations=listed, whole=whole))

    async def _latest(self, realm: str) -> tuple[list[SessionSight], bool]:
        """The latest conversations, and the latest of those that are put aside: so many of either, and whether that is all."""
        both = [one for aside in (False, True) for one in await self.access.latest(realm, MOST_LISTED + 1, aside=aside)]
        both.sort(key=lambda one: (-one.last_at, one.session))
        shown = [one for one in both if not _archived(one)]
        away = [one for one in both if _archived(one)]
        whole = len(shown) <= MOST_LISTED and len(away) <= MOST_LISTED
        return [*shown[:MOST_LISTED], *away[:MOST_LISTED]], whole

    async def _found(self, sights: list[SessionSight], words: list[str]) -> tuple[list[PageConversation], bool]:
        """Those that the words stand in, and whether all were looked through."""
        loop = asyncio.get_running_loop()
        until, found, in_time = loop.time() + SEARCH_SECONDS, list[PageConversation](), True
        for sight in sights:
            listed = listed_conversation(sight)
            if stands_in(words, listed["title"]):
                found.append(listed)
                continue
            in_time = in_time and loop.time() < until
            piece = await self._piece(sight, words, until) if in_time else ""
            if piece:
                found.append({**listed, "found": piece})
        return found, in_time

    async def _piece(self, sight: SessionSight, words: list[str], until: float) -> str:
        """The text around the words where they first stand in one message of it; empty if they do not."""
        number, loop = 2**53, asyncio.get_running_loop()
        while loop.time() < until:
            turns = await self.access.turns(sight, number, TURNS_AT_ONCE, newest_first=True)
            for text in (text for turn in turns for text in said_in(turn)):
                if stands_in(words, text):
                    return around(words[0], text)
            if len(turns) < TURNS_AT_ONCE:
                return ""
            number = turns[-1].number
        return ""

    async def _change(self, request: web.Request) -> web.StreamResponse:
        sight, body = await self._sight(request), await body_of(request)
        title, pinned, archived = body.get("title"), body.get("pinned"), body.get("archived")
        if title is not None and (not isinstance(title, str) or len(title) > TITLE_CHARS):
            raise NotServed(
                Problem(
                    400, f"title must be text of at most {TITLE_CHARS} characters.", param="title", code="invalid_value"
                )
            )
        if pinned is not None and not isinstance(pinned, bool):
            raise NotServed(Problem(400, "pinned must be true or false.", param="pinned", code="invalid_value"))
        if archived is not None and not isinstance(archived, bool):
            raise NotServed(Problem(400, "archived must be true or false.", param="archived", code="invalid_value"))
        metadata = dict(sight.metadata)
        if title is not None:
            metadata[TITLE] = " ".join(title.split())[:METADATA_CHARS]
        if pinned is not None:
            metadata[PINNED] = "yes" if pinned else ""
        if archived is not None:
            metadata[ARCHIVED] = _stand(sight) if archived else ""
        kept = {name: value for name, value in metadata.items() if value}
        return answer(listed_conversation(await self.access.describe(sight, kept)))

    async def _show(self, request: web.Request) -> web.StreamResponse:
        sight, turn = await self._sight(request), (await body_of(request)).get("turn")
        if not isinstance(turn, str):
            raise NotServed(Problem(400, "turn must be the id of a turn.", param="turn", code="invalid_value"))
        try:
            if not await self.access.show(sight, turn):
                raise NotServed(spoken(NOT_KEPT))
        except StillRunning as running:
            raise NotServed(spoken(ON_ITS_WAY)) from running
        return answer(Done(done=True))

    async def _branch(self, request: web.Request) -> web.StreamResponse:
        sight, body = await self._sight(request), await body_of(request)
        turn, name, title = body.get("turn"), body.get("name"), body.get("title", "")
        if not isinstance(turn, str) or not isinstance(title, str) or len(title) > TITLE_CHARS:
            raise NotServed(Problem(400, f"turn and title must be text; title has at most {TITLE_CHARS} characters.", code="invalid_value"))  # fmt: skip
        realm = page_realm(request, name) if isinstance(name, str) and name.startswith(OWN) else None
        if not isinstance(name, str) or not SESSION.fullmatch(name) or realm is None:
            words = f"name must begin with {OWN} and have 8 to 64 letters, digits, - or _."
            raise NotServed(Problem(400, words, param="name", code="invalid_value"))
        if not await self.access.branch(realm, sight, turn, name, " ".join(title.split())[:METADATA_CHARS]):
            raise NotServed(spoken(NOT_KEPT))
        return answer(Done(done=True))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        await self.access.delete(await self._sight(request))
        return answer(Done(done=True))

    async def _export(self, request: web.Request) -> web.StreamResponse:
        sight, form = await self._sight(request), request.query.get("format", "json")
        if form == "json":
            return await write_export(self.access, request, sight, thinking=False)
        if form != "markdown":
            raise NotServed(Problem(400, "format must be json or markdown.", param="format", code="invalid_value"))
        name = f"{sight.session}.md"
        headers = {
            "Content-Type": "text/markdown; charset=utf-8",
            "Content-Disposition": f'attachment; filename="{name}"',
        }
        response = web.StreamResponse(headers=headers)
        response.headers.update(request.get(HEADERS, {}))
        await response.prepare(request)
        await response.write(f"# {listed_conversation(sight)['title']}\n".encode())
        number = 0
        while turns := await self.access.turns(sight, number, TURNS_AT_ONCE, newest_first=False):
            await response.write("".join(map(as_markdown, turns)).encode("utf-8", "replace"))
            number = turns[-1].number
        await response.write_eof()
        return response

    async def _sent(self, request: web.Request) -> web.StreamResponse:
        sight, found = await self._sight(request), named_file(request.match_info["file"])
        return await file_response(request, await self.access.sent(sight, *found) if found is not None else None)

    async def _brought(self, request: web.Request) -> web.StreamResponse:
        sight, number = await self._sight(request), request.match_info["number"]
        asked = int(number) if number.isascii() and number.isdigit() and len(number) < 4 else MOST_FILES
        return bytes_response(request, await self.access.brought(sight, request.match_info["message"], asked))


async def sight_named(access: SessionAccess, request: web.Request) -> SessionSight:
    """The conversation that the path names, if it is the caller's."""
    name = request.match_info["session"]
    realm = page_realm(request, name)
    found = await access.find(realm, name) if realm is not None else None
    if found is None:
        raise NotServed(spoken(NO_CONVERSATION))
    return found


def listed_conversation(sight: SessionSight) -> PageConversation:
    """A conversation as it is listed. Pure."""
    named = sight.metadata.get(TITLE, "")
    return PageConversation(
        id=sight.name,
        title=named or sight.metadata.get(SUGGESTED) or sight.title,
        named=bool(named),
        pinned=bool(sight.metadata.get(PINNED)),
        archived=_archived(sight),
        shared=SHARED in sight.metadata,
        state=sight.state,
        turns=sight.turns,
        created_at=sight.created_at,
        last_at=sight.last_at,
        found="",
    )


def _archived(sight: SessionSight) -> bool:
    return sight.metadata.get(ARCHIVED) == _stand(sight)


def _stand(sight: SessionSight) -> str:
    """How far a conversation has come: whatever happens in an archived one brings it back. Pure."""
    return f"{sight.turns} {sight.last_at}"


def stands_in(words: list[str], text: str) -> bool:
    """Whether all of them, which are casefolded, do. Pure."""
    folded = text.casefold()
    return all(word in folded for word in words)


def around(word: str, text: str) -> str:
    """The text around a casefolded word, on one line. Pure."""
    plain = " ".join(text.split())
    place = max(0, plain.casefold().find(word) - FOUND_CHARS // 3)
    piece = plain[place : place + FOUND_CHARS]
    return f"{'… ' if place else ''}{piece}{' …' if place + FOUND_CHARS < len(plain) else ''}"


def asked_in(turn: SessionTurn) -> str:
    """What the person said. Pure."""
    return "\n\n".join(text for message in turn.asked if message.role == "user" and (text := text_of(message.content)))


def said_in(turn: SessionTurn) -> list[str]:
    """All texts of a turn: the person's and the model's. Pure."""
    shown = turn.seen.view.bubbles if isinstance(turn.seen, Ended | Showing) and not turn.removed else ()
    return [asked_in(turn), *(one.text for one in shown if one.kind in TEXTS)]


def as_markdown(turn: SessionTurn) -> str:
    """A turn as one reads it: who said what. What tools did is one line each. Pure."""
    if turn.removed:
        return f"\n*What was said here is {turn.removed}.*\n"
    shown = turn.seen.view.bubbles if turn.seen is not None else ()
    earlier = "" if turn.told else " (the model no longer sees this)"
    own = "\n\n".join(words for one in turn.asked if one.role == "user" and (words := words_of(one.content)))
    parts = [f"\n## You{earlier}\n\n{own}\n"]
    answered = [_markdown(one.kind, one.text) for one in shown]
    if told := [one for one in answered if one]:
        parts.append(f"\n## {turn.agent or 'Answer'}\n\n" + "\n\n".join(told) + "\n")
    return "".join(parts)


def _markdown(kind: BubbleKind, text: str) -> str:
    if kind in TEXTS:
        return text
    if kind is BubbleKind.ACTIVITY:
        line = " ".join(text.split()).replace("`", "'")
        return f"- Tool: `{line}`"
    if kind in (BubbleKind.NOTICE, BubbleKind.NOTE, BubbleKind.FILE):
        return "\n".join(f"> {line}" for line in text.splitlines())
    return ""
