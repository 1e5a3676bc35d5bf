"""All routes of the server, in one table: the router is built from it, and so is the document (`adapters.http.openapi`), so that none can be missing.

Law (tests/adapters/test_routes.py): every route that a gateway serves is a row here, and every row stands in the document.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from enum import Enum

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Tag(Enum):
    """What a route belongs to: its name, and what it is for."""

    ANSWERS = ("answers", "OpenAI's endpoints: chat completions, responses, models")
    CONVERSATIONS = ("conversations", "OpenAI's Conversations API, and beside it what that has not")
    APPROVALS = ("approvals", "What waits for somebody to say whether a tool may run")
    PAGE = ("page", "The web page, and what it asks")
    HOOKS = ("hooks", "Calls of other programs and platforms")
    HEALTH = ("health", "How the gateway is")
    OPERATORS = ("operators", "For whoever runs the gateway; needs the operators' key")
    CONSOLE = ("console", "The operators' console and what it asks; may change with every version")


class HttpRoute(Enum):
    """Method, path, what it belongs to, and what it does."""

    COMPLETE = ("POST", "/v1/chat/completions", Tag.ANSWERS, "Answer a conversation")
    CANCEL_COMPLETION = ("POST", "/v1/chat/completions/{completion}/cancel", Tag.ANSWERS, "Stop a chat completion")
    RESPOND = ("POST", "/v1/responses", Tag.ANSWERS, "Answer with items")
    GET_RESPONSE = ("GET", "/v1/responses/{response}", Tag.ANSWERS, "A kept response as it is now")
    DELETE_RESPONSE = ("DELETE", "/v1/responses/{response}", Tag.ANSWERS, "Stop and forget a response")
    CANCEL_RESPONSE = ("POST", "/v1/responses/{response}/cancel", Tag.ANSWERS, "Stop a response")
    LIST_INPUT_ITEMS = ("GET", "/v1/responses/{response}/input_items", Tag.ANSWERS, "What was asked with a response")
    LIST_MODELS = ("GET", "/v1/models", Tag.ANSWERS, "Models and agents that may be asked for")
    GET_MODEL = ("GET", "/v1/models/{model:.+}", Tag.ANSWERS, "One of them")

    CREATE_CONVERSATION = ("POST", "/v1/conversations", Tag.CONVERSATIONS, "A new, empty conversation")
    GET_CONVERSATION = ("GET", "/v1/conversations/{conversation}", Tag.CONVERSATIONS, "A conversation as it is now")
    UPDATE_CONVERSATION = ("POST", "/v1/conversations/{conversation}", Tag.CONVERSATIONS, "Attach other metadata")
    DELETE_CONVERSATION = (
        "DELETE", "/v1/conversations/{conversation}", Tag.CONVERSATIONS, "Stop it, and remove all of it with its files",
    )  # fmt: skip
    LIST_ITEMS = ("GET", "/v1/conversations/{conversation}/items", Tag.CONVERSATIONS, "What was said in it")
    GET_ITEM = ("GET", "/v1/conversations/{conversation}/items/{item}", Tag.CONVERSATIONS, "One item of it")
    LIST_SESSIONS = ("GET", "/v1/outspoken/sessions", Tag.CONVERSATIONS, "The caller's conversations")
    RESET_SESSION = (
        "POST", "/v1/outspoken/sessions/{conversation}/reset", Tag.CONVERSATIONS, "Begin it anew, as /new does in a chat",
    )  # fmt: skip
    EXPORT_SESSION = (
        "GET", "/v1/outspoken/sessions/{conversation}/export", Tag.CONVERSATIONS, "All of it as one document",
    )  # fmt: skip
    LIST_APPROVALS = ("GET", "/v1/outspoken/approvals", Tag.APPROVALS, "What waits for a decision")
    DECIDE = ("POST", "/v1/outspoken/approvals/{approval}", Tag.APPROVALS, "Give or deny it")
    DESCRIBE = ("GET", "/openapi.json", Tag.ANSWERS, "This document")

    @property
    def method(self) -> str:
        return self.value[0]

    @property
    def path(self) -> str:
        """As the document spells it."""
        return re.sub(r":[^{}]+\}", "}", self.value[1])

    @property
    def tag(self) -> Tag:
        return self.value[2]

    @property
    def summary(self) -> str:
        return self.value[3]

    def served(self, handler: Handler) -> web.RouteDef:
        """The route, served by this."""
        return web.route(self.method, self.value[1], handler)
