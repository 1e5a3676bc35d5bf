"""All routes of the server, in one table: the router is built from it, and so is the document (`adapters.http.openapi`), so that none can be missing.

Law (tests/adapters/test_openapi.py): every route that a gateway serves is a row here, and every row stands in the document. Telegram's calls alone
are in no row: their path is the operator's.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum

from aiohttp import web

from agent_core.beside import loaded

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Tag(Enum):
    """What a route belongs to: its name, and what it is for."""

    ANSWERS = ("answers", "OpenAI's endpoints: chat completions, responses, models")
    CONVERSATIONS = ("conversations", "OpenAI's Conversations API, and beside it what that does not have")
    APPROVALS = ("approvals", "What waits for somebody to say whether a tool may run")
    PAGE = ("page", "The web page, and what it asks")
    TOOLS = ("tools", "The gateway as a server of tools for other agents, by the Model Context Protocol")
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
    SENT_FILE = (
        "GET", "/v1/outspoken/sessions/{conversation}/files/{file}", Tag.CONVERSATIONS, "A file that was sent in it",
    )  # fmt: skip
    LIST_APPROVALS = ("GET", "/v1/outspoken/approvals", Tag.APPROVALS, "What waits for a decision")
    DECIDE = ("POST", "/v1/outspoken/approvals/{approval}", Tag.APPROVALS, "Give or deny it")
    DESCRIBE = ("GET", "/openapi.json", Tag.ANSWERS, "This document")

    PAGE = ("GET", "/", Tag.PAGE, "The web page")
    SHARED = ("GET", "/shared", Tag.PAGE, "A conversation that somebody shows by a link, to be read")
    PAGE_FILE = ("GET", "/static/{name}", Tag.PAGE, "One of its files")
    ABOUT = ("GET", "/api/about", Tag.PAGE, "What answers here")
    FOLLOW = (
        "GET",
        "/api/sessions/{session}/events",
        Tag.PAGE,
        "A conversation of the page, as it goes: a stream of events",
    )
    EARLIER = ("GET", "/api/sessions/{session}/earlier", Tag.PAGE, "What was said in it before a turn")
    SAY = ("POST", "/api/sessions/{session}/messages", Tag.PAGE, "Say something in it")
    STOP = ("POST", "/api/sessions/{session}/stop", Tag.PAGE, "Stop the turn that runs in it")
    APPROVE = ("POST", "/api/sessions/{session}/approvals", Tag.PAGE, "Decide about a call that waits in it")
    PAGE_LIST = ("GET", "/api/conversations", Tag.PAGE, "The page's conversations, the latest first")
    PAGE_CHANGE = ("POST", "/api/conversations/{session}", Tag.PAGE, "Give one a title, pin it, or put it aside")
    PAGE_INSTRUCTIONS = ("GET", "/api/instructions", Tag.PAGE, "What the person wants of every answer")
    PAGE_INSTRUCT = ("POST", "/api/instructions", Tag.PAGE, "Change it, or take it back")
    PAGE_SHOW = (
        "POST",
        "/api/conversations/{session}/shown",
        Tag.PAGE,
        "Show another version of a message, and what came of it",
    )
    PAGE_BRANCH = (
        "POST",
        "/api/conversations/{session}/branches",
        Tag.PAGE,
        "Begin another conversation with what was said up to a message",
    )
    PAGE_SHARE = ("POST", "/api/conversations/{session}/link", Tag.PAGE, "Make a link that shows one as it is now")
    PAGE_WITHDRAW = ("DELETE", "/api/conversations/{session}/link", Tag.PAGE, "Withdraw the link to one")
    READ_SHARED = ("POST", "/api/shared", Tag.PAGE, "What a link shows")
    PAGE_DELETE = ("DELETE", "/api/conversations/{session}", Tag.PAGE, "Stop it, and remove all of it with its files")
    PAGE_EXPORT = ("GET", "/api/conversations/{session}/export", Tag.PAGE, "All of it, as JSON or Markdown")
    PAGE_SENT = ("GET", "/api/sessions/{session}/files/{file}", Tag.PAGE, "A file that was sent in one")
    PAGE_BROUGHT = (
        "GET", "/api/sessions/{session}/messages/{message}/files/{number}", Tag.PAGE, "A file that came with a message",
    )  # fmt: skip
    HIGHLIGHT = ("POST", "/api/highlight", Tag.PAGE, "How a piece of code is coloured")
    FORMULAS = ("POST", "/api/formulas", Tag.PAGE, "How formulas are written")
    WHY = ("GET", "/api/turns/{turn}/why", Tag.PAGE, "The story of a turn, in sentences")

    MCP = ("POST", "/mcp", Tag.TOOLS, "A message of the Model Context Protocol")
    MCP_LISTEN = ("GET", "/mcp", Tag.TOOLS, "What the server says unasked: a stream of events")
    MCP_LEAVE = ("DELETE", "/mcp", Tag.TOOLS, "End a session of the protocol")

    HOOK = ("POST", "/hooks/{name}", Tag.HOOKS, "Begin a turn, by a signed call")
    SLACK = ("POST", "/slack/events", Tag.HOOKS, "What Slack calls, where it is not connected by a socket")

    ALIVE = ("GET", "/healthz", Tag.HEALTH, "Whether the process is alive")
    READY = ("GET", "/readyz", Tag.HEALTH, "Whether it takes messages")
    WELL = ("GET", "/wellz", Tag.HEALTH, "Whether somebody should look")
    METRICS = ("GET", "/metrics", Tag.HEALTH, "Metrics, for Prometheus")

    STATUS = ("GET", "/status", Tag.OPERATORS, "Everything that outspoken status shows")
    LIST_PEOPLE = ("GET", "/api/access", Tag.OPERATORS, "Who may talk")
    CHANGE_PEOPLE = ("POST", "/api/access", Tag.OPERATORS, "Approve, revoke or forget somebody")
    LIST_KEYS = ("GET", "/api/keys", Tag.OPERATORS, "Keys of the API")
    CHANGE_KEYS = ("POST", "/api/keys", Tag.OPERATORS, "Add, change, rotate or revoke one")
    OPEN_APPROVALS = ("GET", "/api/approvals", Tag.OPERATORS, "Every call that waits for somebody's word")
    DECIDE_ANY = ("POST", "/api/approvals", Tag.OPERATORS, "Give or deny one")
    SEND = ("POST", "/api/send", Tag.OPERATORS, "Say something in a chat")
    SENT = ("GET", "/api/send/{id}", Tag.OPERATORS, "What became of it")
    TRIAGE = ("GET", "/api/triage", Tag.OPERATORS, "What went wrong lately, in groups")
    LIST_WEBHOOKS = ("GET", "/api/webhooks", Tag.OPERATORS, "Webhooks and their outbox")
    CHANGE_WEBHOOKS = ("POST", "/api/webhooks", Tag.OPERATORS, "Test one, send again, turn it on")

    CONSOLE = ("GET", "/console", Tag.CONSOLE, "The console")
    CONSOLE_TOO = ("GET", "/console/", Tag.CONSOLE, "The same")
    CONSOLE_FILE = ("GET", "/console/static/{name}", Tag.CONSOLE, "One of its files")
    CONSOLE_LIVE = ("GET", "/console/api/live", Tag.CONSOLE, "The board, as it goes: a stream of events")
    CONSOLE_TURN = ("GET", "/console/api/turns/{turn}/live", Tag.CONSOLE, "A turn, as it goes: a stream of events")
    CONSOLE_EXPLAIN = ("GET", "/console/api/explain/{id}", Tag.CONSOLE, "What became of something, by its id")
    CONSOLE_PREVIEW = ("POST", "/console/api/outbox/preview", Tag.CONSOLE, "What an act on parts of chats would do")
    CONSOLE_TEXT = (
        "POST",
        "/console/api/outbox/text",
        Tag.CONSOLE,
        "The text of one part, to an operator who says why",
    )
    CONSOLE_TITLE = (
        "POST",
        "/console/api/title",
        Tag.CONSOLE,
        "The title of a conversation; that it was shown is noted",
    )
    CONSOLE_SEARCH = (
        "POST",
        "/console/api/search",
        Tag.CONSOLE,
        "Turns in which words stand; that they were searched for is noted",
    )
    CONSOLE_ACT = ("POST", "/console/api/outbox/act", Tag.CONSOLE, "Act on parts of chats")

    @property
    def method(self) -> str:
        return self.value[0]

    @property
    def pattern(self) -> str:
        """The path as the router has it."""
        return self.value[1]

    @property
    def path(self) -> str:
        """As the document spells it."""
        return re.sub(r":[^{}]+\}", "}", self.pattern)

    @property
    def tag(self) -> Tag:
        return self.value[2]

    @property
    def summary(self) -> str:
        return self.value[3]

    def served(self, handler: Handler) -> web.RouteDef:
        """The route, served by this."""
        return web.route(self.method, self.pattern, handler)


def later(
    handlers: Callable[[], Mapping[HttpRoute, Handler]], routes: Sequence[HttpRoute], module: str
) -> Mapping[HttpRoute, Handler]:
    """What serves these routes; `handlers` is asked for it when a request comes, and `module`, which it needs, is loaded by the first one."""

    def served(route: HttpRoute) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            await loaded(module)
            return await handlers()[route](request)

        return handle

    return {route: served(route) for route in routes}
