"""Conversations and approvals for programs: OpenAI's Conversations API, and beside it what that has not. Loaded when it is first asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from adapters.http.routes import Handler, HttpRoute, later

if TYPE_CHECKING:
    from adapters.contract.callers import ShareLinks
    from adapters.contract.sessions import SessionAccess
    from adapters.http.sessions.instructions import KeptInstructions
    from agent_core.ports import Clock

ROUTES = (
    HttpRoute.CREATE_CONVERSATION, HttpRoute.GET_CONVERSATION, HttpRoute.UPDATE_CONVERSATION, HttpRoute.DELETE_CONVERSATION, HttpRoute.LIST_ITEMS,
    HttpRoute.GET_ITEM, HttpRoute.LIST_SESSIONS, HttpRoute.RESET_SESSION, HttpRoute.EXPORT_SESSION, HttpRoute.SENT_FILE, HttpRoute.LIST_APPROVALS, HttpRoute.DECIDE,
)  # fmt: skip


OF_PAGE = (
    HttpRoute.PAGE_LIST,
    HttpRoute.PAGE_CHANGE,
    HttpRoute.PAGE_SHOW,
    HttpRoute.PAGE_BRANCH,
    HttpRoute.PAGE_DELETE,
    HttpRoute.PAGE_EXPORT,
    HttpRoute.PAGE_SENT,
    HttpRoute.PAGE_BROUGHT,
)


OF_LINKS = (HttpRoute.PAGE_SHARE, HttpRoute.PAGE_WITHDRAW, HttpRoute.READ_SHARED)


def links_served(access: Callable[[], SessionAccess], opens: ShareLinks, clock: Clock) -> Mapping[HttpRoute, Handler]:
    """What serves links to the web page's conversations."""

    @functools.cache
    def handlers() -> Mapping[HttpRoute, Handler]:
        from secrets import token_urlsafe

        from adapters.http.sessions.links import ConversationLinks

        return ConversationLinks(access(), opens, clock, token_urlsafe).routes()

    return later(handlers, OF_LINKS, "adapters.http.sessions.links")


def page_served(access: Callable[[], SessionAccess]) -> Mapping[HttpRoute, Handler]:
    """What serves the list of the web page's conversations."""

    @functools.cache
    def handlers() -> Mapping[HttpRoute, Handler]:
        from adapters.http.sessions.pagelist import PageConversations

        return PageConversations(access()).routes()

    return later(handlers, OF_PAGE, "adapters.http.sessions.pagelist")


OF_PERSON = (HttpRoute.PAGE_INSTRUCTIONS, HttpRoute.PAGE_INSTRUCT)


def wishes_served(kept: KeptInstructions) -> Mapping[HttpRoute, Handler]:
    """What serves what the page's person wants of every answer."""

    def handlers() -> Mapping[HttpRoute, Handler]:
        from adapters.http.sessions.instructions import PageWishes

        return PageWishes(kept).routes()

    return later(handlers, OF_PERSON, "adapters.http.sessions.instructions")


def served(access: Callable[[], SessionAccess], *, thinking: bool) -> Mapping[HttpRoute, Handler]:
    """What serves them. `thinking`: callers are shown what models think, where their key does not say otherwise."""

    @functools.cache
    def handlers() -> Mapping[HttpRoute, Handler]:
        from adapters.http.sessions.conversations import Conversations
        from adapters.http.sessions.managed import ManagedSessions

        made = access()
        return ManagedSessions(made, Conversations(made, thinking)).routes()

    return later(handlers, ROUTES, "adapters.http.sessions.managed")
