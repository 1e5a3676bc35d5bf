"""What the document says of each route beside its row: what it takes, what it answers, and which errors it knows.

Law (tests/adapters/test_openapi.py): every route has its operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from adapters.http.fields import CHAT, INCLUDED, RESPONSES, FieldFate, FieldRow
from adapters.http.openapi import shapes as at
from adapters.http.routes import HttpRoute as R
from adapters.http.sessions import shapes as its
from adapters.http.sessions.pages import MOST, USUAL
from agent_core.jsonvalue import Json
from agent_core.records import dataclass


class Media(StrEnum):
    """How a body is written."""

    JSON = "application/json"
    EVENTS = "text/event-stream"
    HTML = "text/html"
    MARKDOWN = "text/markdown"
    ANY = "*/*"
    METRICS = "text/plain"


class WhoseKey(StrEnum):
    """Whose key a route asks for, where one is configured."""

    NOBODY = "nobody"
    CALLER = "caller"
    OPERATOR = "operator"
    SIGNED = "signed"


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """One answer that is no error."""

    words: str
    shape: type | None = None
    media: tuple[Media, ...] = (Media.JSON,)
    events: Mapping[str, type] = field(default_factory=dict[str, type])
    """Of a stream: by their names what the lists are of that they hold."""
    leads_to: tuple[R, ...] = ()
    """What can be asked with its id."""


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """One that a query may have."""

    name: str
    schema: dict[str, Json]
    words: str


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One route."""

    answers: Mapping[str, ApiAnswer]
    """By status."""
    errors: tuple[str, ...] = ()
    """Statuses of errors; `4XX` and `5XX` where they are a provider's."""
    body: type | dict[str, Json] | None = None
    body_needed: bool = True
    query: tuple[QueryParameter, ...] = ()
    caller: WhoseKey = WhoseKey.CALLER
    headers: tuple[str, ...] = field(default_factory=tuple[str, ...])
    """What its requests may have, see `docs/api.md`."""


ALWAYS = ("400", "403", "405", "503")
"""Any route: headers or a query that cannot be read, a foreign page, another method, storage that is away. A key that is wrong is 401."""
_PAGES = (
    QueryParameter("limit", {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL}, "At most so many."),
    QueryParameter("after", {"type": "string", "minLength": 1}, "Behind the one with this id."),
    QueryParameter(
        "order", {"type": "string", "enum": ["asc", "desc"], "default": "desc"}, "`desc`: the newest first."
    ),
)
_ASKING = (
    "X-Outspoken-Session", "Idempotency-Key", "X-Outspoken-Errors", "X-Outspoken-Disconnect", "X-Outspoken-Tools", "X-Outspoken-Approvals",
    "X-Outspoken-Task",
)  # fmt: skip


_OF_A_CONVERSATION = (
    R.GET_CONVERSATION, R.UPDATE_CONVERSATION, R.DELETE_CONVERSATION, R.LIST_ITEMS, R.RESET_SESSION, R.EXPORT_SESSION,
)  # fmt: skip
_OF_A_RESPONSE = (R.GET_RESPONSE, R.DELETE_RESPONSE, R.CANCEL_RESPONSE, R.LIST_INPUT_ITEMS)


def _ok(shape: type | None, words: str = "", *media: Media) -> Mapping[str, ApiAnswer]:
    said = words or (shape.__doc__ or "").strip().splitlines()[0] if shape is not None or words else "Done."
    return {"200": ApiAnswer(said, shape, media or (Media.JSON,))}


_OBJECTS: dict[str, Json] = {"type": "array", "minItems": 1, "items": {"type": "object"}}
_MESSAGES: dict[str, Json] = {"description": "Messages, as OpenAI has them.", **_OBJECTS}
_INPUT: dict[str, Json] = {"description": "Text, or items as OpenAI has them.", "anyOf": [{"type": "string"}, _OBJECTS]}


def _asked(fields: Mapping[str, FieldRow], needed: str, schema: dict[str, Json]) -> dict[str, Json]:
    """The schema of a request that is read by a table of fields. What is passed on is checked by whoever it is passed on to."""
    properties: dict[str, Json] = {name: _field(row) for name, row in sorted(fields.items())}
    properties[needed] = schema
    return {"type": "object", "required": [needed], "properties": properties, "additionalProperties": True}


def _field(row: FieldRow) -> dict[str, Json]:
    why = f"{row.fate.value}: {row.why}" if row.why else row.fate.value
    refused: dict[str, Json] = {"not": {}} if row.fate is FieldFate.REFUSED else {}
    return {"description": why.capitalize(), **refused}


def _operators(
    answer: Mapping[str, ApiAnswer], *errors: str, body: type | dict[str, Json] | None = None
) -> ApiOperation:
    return ApiOperation(answer, errors, body, caller=WhoseKey.OPERATOR)


_ANYTHING = _ok(dict, "An object; its fields may change with every version.")
_STREAM = _ok(None, "A stream of events.", Media.EVENTS)
_FILE = _ok(None, "The file.", Media.ANY)
_HTML = _ok(None, "The page.", Media.HTML)

OPERATIONS: Mapping[R, ApiOperation] = {
    R.COMPLETE: ApiOperation(
        _ok(at.CompletionAnswer, "The answer; with `stream`, its chunks.", Media.JSON, Media.EVENTS),
        ("4XX", "5XX"), _asked(CHAT, "messages", _MESSAGES), headers=_ASKING,
    ),
    R.CANCEL_COMPLETION: ApiOperation(_ok(at.CompletionAnswer), ("404",)),
    R.RESPOND: ApiOperation(
        {"200": ApiAnswer(
            "The answer; with `stream`, its events.", at.ResponseAnswer, (Media.JSON, Media.EVENTS), leads_to=_OF_A_RESPONSE,
        )},
        ("4XX", "5XX"), _asked(RESPONSES, "input", _INPUT), headers=_ASKING,
    ),
    R.GET_RESPONSE: ApiOperation(
        _ok(at.ResponseAnswer, "The response; with `stream`, its events.", Media.JSON, Media.EVENTS), ("404",),
        query=(
            QueryParameter("stream", {"type": "boolean"}, "As a stream, from its beginning."),
            QueryParameter("starting_after", {"type": "integer", "minimum": 0}, "Of a stream in the background: what comes behind the event with this number."),
            QueryParameter("include", {"type": "array", "items": {"type": "string", "enum": [*sorted(INCLUDED)]}}, "What is told besides."),
        ),
    ),
    R.DELETE_RESPONSE: ApiOperation(_ok(at.DeletedResponse), ("404", "409")),
    R.CANCEL_RESPONSE: ApiOperation(_ok(at.ResponseAnswer), ("404",)),
    R.LIST_INPUT_ITEMS: ApiOperation(_ok(at.InputItems), ("404",), query=_PAGES),
    R.LIST_MODELS: ApiOperation(_ok(at.ModelList)),
    R.GET_MODEL: ApiOperation(_ok(at.ModelObject), ("404",)),

    R.CREATE_CONVERSATION: ApiOperation(
        {"200": ApiAnswer("A conversation.", its.ConversationObject, leads_to=_OF_A_CONVERSATION)}, ("413",), at.NewConversation,
        body_needed=False,
    ),
    R.GET_CONVERSATION: ApiOperation(_ok(its.ConversationObject), ("404",)),
    R.UPDATE_CONVERSATION: ApiOperation(_ok(its.ConversationObject), ("404", "409", "413"), at.OtherMetadata),
    R.DELETE_CONVERSATION: ApiOperation(_ok(its.DeletedConversation), ("404", "409")),
    R.LIST_ITEMS: ApiOperation(_ok(its.ItemList), ("404",), query=_PAGES),
    R.GET_ITEM: ApiOperation(_ok(its.ItemObject), ("404",)),
    R.LIST_SESSIONS: ApiOperation(_ok(its.ConversationList), ("404",), query=_PAGES),
    R.RESET_SESSION: ApiOperation(_ok(its.ConversationObject), ("404", "409")),
    R.EXPORT_SESSION: ApiOperation(_ok(its.Export), ("404",)),
    R.SENT_FILE: ApiOperation(_FILE, ("404",)),
    R.LIST_APPROVALS: ApiOperation(_ok(its.ApprovalList)),
    R.DECIDE: ApiOperation(_ok(its.ApprovalObject), ("404", "409", "410", "413"), at.ApprovalDecision),
    R.DESCRIBE: ApiOperation(_ok(dict, "This document."), caller=WhoseKey.NOBODY),

    R.PAGE: ApiOperation(_HTML, caller=WhoseKey.NOBODY),
    R.SHARED: ApiOperation(_HTML, caller=WhoseKey.NOBODY),
    R.PAGE_FILE: ApiOperation(_FILE, ("404",), caller=WhoseKey.NOBODY),
    R.ABOUT: ApiOperation(_ok(at.AboutAnswer)),
    R.FOLLOW: ApiOperation(
        {"200": ApiAnswer(
            "First what there is, then what changes; each message is whole each time.", None, (Media.EVENTS,),
            {"snapshot": at.PageMessage, "turns": at.PageMessage},
        )},
        query=(QueryParameter("changes", {"type": "string", "enum": ["1"]}, "Only what changed, with texts as the page shows them; its form may change with every version."),),
    ),
    R.EARLIER: ApiOperation(
        _ok(list[at.PageMessage], "The latest 50 messages before it, the oldest first; none at the beginning."),
        query=(
            QueryParameter("before", {"type": "string"}, "The id of the turn."),
            QueryParameter("changes", {"type": "string", "enum": ["1"]}, "With texts as the page shows them; their form may change with every version."),
        ),
    ),
    R.SAY: ApiOperation(
        {"202": ApiAnswer("It is stored, and will be answered.", at.SaidMessage)}, ("404", "413", "415", "422", "429", "507"), at.MessageToSay,
    ),
    R.STOP: ApiOperation(_ok(at.StopAnswer)),
    R.APPROVE: ApiOperation(_ok(at.Done), ("413", "415"), at.PageDecision),
    R.PAGE_LIST: ApiOperation(
        _ok(at.PageList), query=(
            QueryParameter("search", {"type": "string", "maxLength": 200}, "Only those in whose titles or texts all these words stand."),
            QueryParameter("also", {"type": "string", "pattern": at.PAGE_NAME}, "One that was made before conversations had lists."),
        ),
    ),
    R.PAGE_CHANGE: ApiOperation(_ok(at.PageConversation), ("404", "409", "413"), at.PageConversationChange),
    R.PAGE_INSTRUCTIONS: ApiOperation(_ok(at.PageInstructions), ("400",)),
    R.PAGE_INSTRUCT: ApiOperation(_ok(at.PageInstructions), ("400", "413"), at.PageInstructions),
    R.PAGE_SHOW: ApiOperation(_ok(at.Done), ("400", "404", "409", "413"), at.PageTurn),
    R.PAGE_BRANCH: ApiOperation(_ok(at.Done), ("400", "404", "409", "413"), at.PageBranch),
    R.PAGE_SHARE: ApiOperation(_ok(at.MadeLink), ("404", "409")),
    R.PAGE_WITHDRAW: ApiOperation(_ok(at.Done), ("404", "409")),
    R.READ_SHARED: ApiOperation(_ok(at.SharedConversation), ("400", "404", "413"), at.LinkToRead),
    R.PAGE_DELETE: ApiOperation(_ok(at.Done), ("404", "409")),
    R.PAGE_EXPORT: ApiOperation(
        _ok(its.Export, "All of it.", Media.JSON, Media.MARKDOWN), ("404",), query=(
            QueryParameter("format", {"type": "string", "enum": ["json", "markdown"], "default": "json"}, "How it is written."),
        ),
    ),
    R.PAGE_SENT: ApiOperation(_FILE, ("404",)),
    R.PAGE_BROUGHT: ApiOperation(_FILE, ("404",)),
    R.FORMULAS: ApiOperation(_ok(at.Formulas), ("413",), at.PageFormulas),
    R.HIGHLIGHT: ApiOperation(_ok(at.Colours), ("413",), at.PageCode),
    R.WHY: ApiOperation(_ok(at.Story)),

    R.MCP: ApiOperation(
        {**_ok(None, "The answer, or a stream with progress and the answer.", Media.JSON, Media.EVENTS), "202": ApiAnswer("Taken.", None, ())},
        ("4XX", "5XX"), {},
    ),
    R.MCP_LISTEN: ApiOperation(_STREAM, ("4XX", "5XX")),
    R.MCP_LEAVE: ApiOperation(_ok(None), ("4XX", "5XX")),

    R.HOOK: ApiOperation(
        {"202": ApiAnswer("It is stored, and will be answered.", at.HookTaken)}, ("401", "404", "413", "422", "429", "500", "502", "507"),
        {}, caller=WhoseKey.SIGNED,
    ),
    R.SLACK: ApiOperation(_ok(None, "It is stored, or there is nothing to store.", Media.ANY), ("401", "500"), {}, caller=WhoseKey.SIGNED),

    R.ALIVE: ApiOperation(_ok(at.Alive), caller=WhoseKey.NOBODY),
    R.READY: ApiOperation(
        {**_ok(at.Ready), "503": ApiAnswer("No messages are taken.", at.Ready)}, caller=WhoseKey.NOBODY,
    ),
    R.WELL: _operators({**_ok(at.Well), "503": ApiAnswer("Somebody should look.", at.Well)}),
    R.METRICS: _operators(_ok(None, "All metrics.", Media.METRICS)),

    R.STATUS: _operators(_ANYTHING),
    R.LIST_PEOPLE: _operators(_ANYTHING),
    R.CHANGE_PEOPLE: _operators(_ANYTHING, "404", body=at.PeopleChange),
    R.LIST_KEYS: _operators(_ANYTHING),
    R.CHANGE_KEYS: _operators(_ANYTHING, body=at.KeyChange),
    R.OPEN_APPROVALS: _operators(_ANYTHING),
    R.DECIDE_ANY: _operators(_ANYTHING, "403", "404", "409", "410", body=at.OperatorsDecision),
    R.SEND: _operators(_ok(at.SentState), "404", "409", "413", "502", "507", body=at.SendBody),
    R.SENT: ApiOperation(
        _ok(at.SentState), ("404",), query=(
            QueryParameter("wait", {"type": "number", "default": 0}, "For so many seconds, 30 at most, it is waited for its end."),
        ), caller=WhoseKey.OPERATOR,
    ),
    R.TRIAGE: ApiOperation(
        _ANYTHING, ("404",), query=(
            QueryParameter("since", {"type": "string"}, "A span such as 2h or 7d, or a time."),
            QueryParameter("limit", {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}, "At most so many groups."),
        ), caller=WhoseKey.OPERATOR,
    ),
    R.LIST_WEBHOOKS: _operators(_ANYTHING),
    R.CHANGE_WEBHOOKS: _operators(_ANYTHING, "404", body=at.WebhookChange),

    R.CONSOLE: ApiOperation(_HTML, caller=WhoseKey.NOBODY),
    R.CONSOLE_TOO: ApiOperation(_HTML, caller=WhoseKey.NOBODY),
    R.CONSOLE_FILE: ApiOperation(_FILE, ("404",), caller=WhoseKey.NOBODY),
    R.CONSOLE_LIVE: _operators(_STREAM),
    R.CONSOLE_TURN: _operators(_STREAM, "404"),
    R.CONSOLE_EXPLAIN: _operators(_ANYTHING, "404"),
    R.CONSOLE_PREVIEW: _operators(_ANYTHING, "404", "409", "415", body={"type": "object"}),
    R.CONSOLE_TEXT: _operators(_ANYTHING, "404", "409", "415", body={"type": "object"}),
    R.CONSOLE_TITLE: _operators(_ANYTHING, "404", "415", body={"type": "object"}),
    R.CONSOLE_SEARCH: _operators(_ANYTHING, "415", body={"type": "object"}),
    R.CONSOLE_ACT: _operators(_ANYTHING, "404", "409", "415", body={"type": "object"}),
}  # fmt: skip
