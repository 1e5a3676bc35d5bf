"""A conversation of the page that its person shows to others by a link: made, opened, withdrawn.

Theory. Whoever has the link has its secret; kept is a digest of it, with the conversation itself, so that it goes with the conversation and opens
nothing from the moment in which it is withdrawn. The secret stands behind the ``#`` of the address and in the body of a request, so that no log of a
server or a proxy has it. Shown is the conversation as it was when the link was made: its line of turns, and of each what is named here and nothing else.

Laws (tests/adapters/test_links.py): a link opens what it was made for and nothing else; what a model thought, what tools were given and gave, and what
somebody was asked is in nothing that is shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field

import structlog
from aiohttp import web

from adapters.contract.base import Ended
from adapters.contract.callers import ShareLinks
from adapters.contract.sessions import SHARED, SessionAccess, SessionSight, SessionTurn
from adapters.http.common import Problem, spoken
from adapters.http.openapi.shapes import Done, MadeLink, SharedBubble, SharedConversation, SharedMessage
from adapters.http.routes import Handler, HttpRoute
from adapters.http.sessions.conversations import NotServed, answer, body_of, refusing
from adapters.http.sessions.pagelist import NO_CONVERSATION, listed_conversation, sight_named
from adapters.http.written.texts import whole
from agent_core.messages import words_of
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.text.tongue import SLASH, sentence
from agent_core.turn.view import TEXTS, BubbleKind, spelled_view

log = structlog.get_logger("api")

TURNS_AT_ONCE, READ_AT_ONCE = 50, 2
SHOWN = TEXTS | {BubbleKind.NOTICE, BubbleKind.NOTE, BubbleKind.FILE, BubbleKind.ACTIVITY}
"""What of a turn is shown: what an export tells as text."""
_LINK = re.compile(r"(s_[0-9a-z]{1,60})\.([A-Za-z0-9_-]{20,100})")
_NOTED = re.compile(r"([0-9a-f]{32}) ([0-9]{1,16}) ([0-9]{1,16}) (.*)", re.DOTALL)
TITLE_CHARS = 200
SWITCHED_OFF = Problem(403, sentence("Links to conversations are switched off here."), code="links_off")
NOTHING_YET = Problem(409, sentence("Nothing was answered in it yet."), code="nothing_to_show")
OPENS_NOTHING = Problem(
    404,
    sentence("This link opens nothing (any more): it was withdrawn, or its conversation is deleted."),
    param="link",
    code="link_not_found",
)


@dataclass(frozen=True, slots=True)
class SharedLink:
    """What is kept of a link, and where: in what is attached to the conversation."""

    digest: str
    number: int
    """Of the last turn that it shows."""
    at: int
    """When it was made, ms."""
    title: str
    """What the conversation was called then."""

    def noted(self) -> str:
        return f"{self.digest} {self.number} {self.at} {self.title[:TITLE_CHARS]}"

    @staticmethod
    def of(noted: str) -> SharedLink | None:
        found = _NOTED.fullmatch(noted)
        return SharedLink(found[1], int(found[2]), int(found[3]), found[4]) if found is not None else None

    def opened_by(self, secret: str) -> bool:
        return hmac.compare_digest(self.digest, digest_of(secret))


def digest_of(secret: str) -> str:
    """What is kept of a secret. It is long and made by chance, so that nobody finds it by trying."""
    return hashlib.blake2b(secret.encode(), digest_size=16, person=b"outspoken link").hexdigest()


def parts_of(link: str) -> tuple[str, str] | None:
    """A link's conversation and secret. Pure."""
    found = _LINK.fullmatch(link)
    return (found[1], found[2]) if found is not None else None


@dataclass(frozen=True, slots=True)
class ConversationLinks:
    """Serves them."""

    access: SessionAccess
    opens: ShareLinks
    clock: Clock
    secret: Callable[[], str]
    reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READ_AT_ONCE))
    """A link may be read by many at once, and to make elements of what was said takes its time."""

    def routes(self) -> Mapping[HttpRoute, Handler]:
        served: Mapping[HttpRoute, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            HttpRoute.PAGE_SHARE: self._make,
            HttpRoute.PAGE_WITHDRAW: self._withdraw,
            HttpRoute.READ_SHARED: self._read,
        }
        return {route: refusing(handler) for route, handler in served.items()}

    async def _make(self, request: web.Request) -> web.StreamResponse:
        if self.opens is ShareLinks.OFF:
            raise NotServed(spoken(SWITCHED_OFF))
        sight = await sight_named(self.access, request)
        if sight.key.temporary:
            raise NotServed(spoken(NO_CONVERSATION))
        if not (number := await self.access.tip(sight)):
            raise NotServed(spoken(NOTHING_YET))
        secret = self.secret()
        link = SharedLink(digest_of(secret), number, self.clock.now_ms(), listed_conversation(sight)["title"])
        await self.access.describe(sight, {**sight.metadata, SHARED: link.noted()})
        log.info("link.made", session=sight.session)
        return answer(MadeLink(link=f"{sight.session}.{secret}"))

    async def _withdraw(self, request: web.Request) -> web.StreamResponse:
        sight = await sight_named(self.access, request)
        there = SHARED in sight.metadata
        if there:
            kept = {name: value for name, value in sight.metadata.items() if name != SHARED}
            await self.access.describe(sight, kept)
            log.info("link.withdrawn", session=sight.session)
        return answer(Done(done=there))

    async def _read(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request)
        asked, behind = body.get("link"), body.get("behind", 0)
        if not isinstance(asked, str) or not isinstance(behind, int) or not 0 <= behind < 2**53:
            raise NotServed(Problem(400, "link must be text, and behind a number.", param="link", code="invalid_value"))
        sight, link = await self._opened(asked)
        async with self.reading:
            turns = await self.access.line(sight, link.number, behind, TURNS_AT_ONCE + 1)
            messages = await asyncio.to_thread(_messages, turns[:TURNS_AT_ONCE])
        shown = SharedConversation(title=link.title, at=link.at, messages=messages, more=len(turns) > TURNS_AT_ONCE)
        response = answer(shown)
        response.headers["Cache-Control"] = "no-store"
        return response

    async def _opened(self, asked: str) -> tuple[SessionSight, SharedLink]:
        named = parts_of(asked) if self.opens is not ShareLinks.OFF else None
        sight = await self.access.linked(named[0]) if named is not None else None
        link = SharedLink.of(sight.metadata.get(SHARED, "")) if sight is not None else None
        if named is None or sight is None or link is None or not link.opened_by(named[1]):
            raise NotServed(spoken(OPENS_NOTHING))
        return sight, link


def _messages(turns: Sequence[SessionTurn]) -> list[SharedMessage]:
    return [shared_message(turn) for turn in turns]


def shared_message(turn: SessionTurn) -> SharedMessage:
    """A turn as somebody sees it who has the link. Pure."""
    shown = spelled_view(turn.seen.view, SLASH).bubbles if isinstance(turn.seen, Ended) else ()
    said = [words_of(one.content) for one in turn.asked if one.role == "user"]
    return SharedMessage(
        number=turn.number,
        at=turn.opened_at,
        person="\n\n".join(words for words in said if words),
        bubbles=[
            SharedBubble(
                key=str(place),
                kind=one.kind,
                text=one.tool if one.kind is BubbleKind.ACTIVITY else one.text,
                tool=one.tool if one.kind is BubbleKind.ACTIVITY else "",
                state=one.state if one.kind is BubbleKind.ACTIVITY else "",
                nodes=[*whole(one.text)] if one.kind in TEXTS else [],
            )
            for place, one in enumerate(shown)
            if one.kind in SHOWN
        ],
    )
