"""OpenAI's Conversations API over stored conversations: made, read, described, deleted; and their items.

What is not here: items that nobody was asked about (`POST …/items`), and items that are removed one by one. What was said is the journal of turns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from adapters.contract.sessions import (
    METADATA_CHARS,
    METADATA_NAME_CHARS,
    METADATA_PAIRS,
    NAMED,
    BusyElsewhere,
    SessionAccess,
    SessionSight,
    StillRunning,
)
from adapters.http.api.keptresponses import STILL_RUNNING
from adapters.http.common import CALLER, Problem, problem_response
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import Handler, HttpRoute
from adapters.http.sessions.items import items, turn_in
from adapters.http.sessions.pages import Paging, paging
from adapters.http.sessions.shapes import (
    ConversationFacts,
    ConversationList,
    ConversationObject,
    DeletedConversation,
    ItemList,
    ItemObject,
)
from agent_core.jsonvalue import Json
from agent_core.records import dataclass

TURNS_AT_ONCE = 20
NO_SUCH_AFTER = Problem(404, "after names no item of this conversation.", param="after", code="item_not_found")
NO_CONVERSATION = Problem(404, "There is no such conversation.", param="conversation_id", code="conversation_not_found")
NO_ITEM = Problem(404, "There is no such item in this conversation.", param="item_id", code="item_not_found")
ELSEWHERE = Problem(
    409, "Another process of the gateway works on this conversation just now. Ask again in a moment.", code="conversation_busy", retry_after=5,
)  # fmt: skip
_CREATED = frozenset({"metadata", "items"})


class NotServed(Exception):
    """A request that is not served."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def refusing(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Handler:
    """The handler, with an answer to what it refuses."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except NotServed as refused:
            return problem_response(refused.problem)
        except BusyElsewhere:
            return problem_response(ELSEWHERE)
        except StillRunning:
            return problem_response(STILL_RUNNING)

    return handle


@dataclass(frozen=True, slots=True)
class Conversations:
    """Serves them."""

    access: SessionAccess
    thinking: bool
    """Callers are shown what models think, where their key does not say otherwise."""

    def routes(self) -> Mapping[HttpRoute, Handler]:
        served: Mapping[HttpRoute, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            HttpRoute.CREATE_CONVERSATION: self._create,
            HttpRoute.GET_CONVERSATION: self._get,
            HttpRoute.UPDATE_CONVERSATION: self._update,
            HttpRoute.DELETE_CONVERSATION: self._delete,
            HttpRoute.LIST_ITEMS: self._items,
            HttpRoute.GET_ITEM: self._item,
        }
        return {route: refusing(handler) for route, handler in served.items()}

    async def sight(self, request: web.Request) -> SessionSight:
        """The conversation that the path names, if it is the caller's."""
        found = await self.access.find(request[CALLER].realm, request.match_info["conversation"])
        if found is None:
            raise NotServed(NO_CONVERSATION)
        return found

    def shows_thinking(self, request: web.Request) -> bool:
        told = request[CALLER].terms.thinking
        return self.thinking if told is None else told

    async def _create(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request)
        if body.get("items"):
            words = "items cannot be put into a new conversation: send them as the input of its first response."
            raise NotServed(Problem(400, words, param="items", code="unsupported_parameter"))
        made = await self.access.make(request[CALLER].realm, _metadata(body.get("metadata")))
        return answer(conversation_object(made))

    async def _get(self, request: web.Request) -> web.StreamResponse:
        return answer(conversation_object(await self.sight(request)))

    async def _update(self, request: web.Request) -> web.StreamResponse:
        sight = await self.sight(request)
        body = await body_of(request)
        if "metadata" not in body:
            raise NotServed(Problem(400, "metadata is missing.", param="metadata", code="invalid_value"))
        return answer(conversation_object(await self.access.describe(sight, _metadata(body["metadata"]))))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        sight = await self.sight(request)
        await self.access.delete(sight)
        return answer(DeletedConversation(id=sight.name, object="conversation.deleted", deleted=True))

    async def _items(self, request: web.Request) -> web.StreamResponse:
        sight, asked = await self.sight(request), page_of(request)
        found = await self._page(sight, asked, thinking=self.shows_thinking(request))
        page = found[: asked.limit]
        return answer(
            ItemList(
                object="list",
                data=page,
                first_id=page[0]["id"] if page else None,
                last_id=page[-1]["id"] if page else None,
                has_more=len(found) > len(page),
            )
        )

    async def _page(self, sight: SessionSight, asked: Paging, *, thinking: bool) -> list[ItemObject]:
        """The items that are asked for, and one more if there is one."""
        found: list[ItemObject] = []
        number, behind = (2**53, asked.after) if asked.newest_first else (0, asked.after)
        if behind:
            place = turn_in(behind)
            if place is None:
                raise NotServed(NO_SUCH_AFTER)
            number = place[1] + 1 if asked.newest_first else place[1] - 1
        while len(found) <= asked.limit:
            turns = await self.access.turns(sight, number, TURNS_AT_ONCE, newest_first=asked.newest_first)
            for turn in turns:
                mine = items(turn, thinking=thinking) if turn.told else []
                found += mine[::-1] if asked.newest_first else mine
            if behind:
                names = [item["id"] for item in found]
                if behind not in names:
                    raise NotServed(NO_SUCH_AFTER)
                found, behind = found[names.index(behind) + 1 :], ""
            if len(turns) < TURNS_AT_ONCE:
                break
            number = turns[-1].number
        return found[: asked.limit + 1]

    async def _item(self, request: web.Request) -> web.StreamResponse:
        sight, name = await self.sight(request), request.match_info["item"]
        place = turn_in(name)
        turns = await self.access.turns(sight, place[1] - 1, 1, newest_first=False) if place is not None else []
        told = [item for turn in turns if turn.told for item in items(turn, thinking=self.shows_thinking(request))]
        found = next((item for item in told if item["id"] == name), None)
        if found is None:
            raise NotServed(NO_ITEM)
        return answer(found)


def page_of(request: web.Request) -> Paging:
    """The page that is asked for."""
    asked = paging(request.query)
    if isinstance(asked, Problem):
        raise NotServed(asked)
    return asked


async def body_of(request: web.Request) -> dict[str, Json]:
    """The object in a request's body; an empty one if there is no body."""
    try:
        raw = await request.read()
        value = json_of(raw) if raw else {}
    except web.HTTPRequestEntityTooLarge as error:
        raise NotServed(Problem(413, "The body is too large.", code="request_too_large")) from error
    except NotJson as error:
        raise NotServed(Problem(400, str(error), code="invalid_json")) from error
    if not isinstance(value, dict):
        raise NotServed(Problem(400, "The body must be a JSON object.", code="invalid_json"))
    return value


def _metadata(value: Json) -> dict[str, str]:
    if value is None:
        return {}
    pairs = value.items() if isinstance(value, dict) else ()
    found = {name: text for name, text in pairs if isinstance(text, str) and len(text) <= METADATA_CHARS}
    fits = all(0 < len(name) <= METADATA_NAME_CHARS for name in found) and len(found) <= METADATA_PAIRS
    if not isinstance(value, dict) or len(found) != len(value) or not fits:
        words = (
            f"metadata is an object of at most {METADATA_PAIRS} texts of at most {METADATA_CHARS} characters, with names of at most "
            f"{METADATA_NAME_CHARS}."
        )
        raise NotServed(Problem(400, words, param="metadata", code="invalid_value"))
    return found


def conversation_object(sight: SessionSight) -> ConversationObject:
    """A conversation as it is told. Pure."""
    return ConversationObject(
        id=sight.name,
        object="conversation",
        created_at=sight.created_at // 1000,
        metadata=dict(sight.metadata),
        outspoken=ConversationFacts(
            session=sight.session,
            named=sight.key.account == NAMED,
            title=sight.title,
            state=sight.state,
            waiting=sight.waiting,
            turns=sight.turns,
            last_at=sight.last_at // 1000,
            model=sight.model or None,
            agent=sight.agent or None,
            usage={
                "input_tokens": sight.input_tokens,
                "output_tokens": sight.output_tokens,
                "total_tokens": sight.input_tokens + sight.output_tokens,
            },
        ),
    )


def list_of(page: list[ConversationObject], *, more: bool) -> ConversationList:
    """A page of conversations."""
    return ConversationList(
        object="list",
        data=page,
        first_id=page[0]["id"] if page else None,
        last_id=page[-1]["id"] if page else None,
        has_more=more,
    )


def answer(value: Mapping[str, Any]) -> web.Response:
    """An answer in one of the shapes."""
    return web.Response(body=orjson.dumps(value), content_type="application/json")
