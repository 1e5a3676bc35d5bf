"""What a provider's refusal means: HTTP status, error object and headers to a `BreakCause` and a `Complaint`. Pure.

Theory. A status says little: the same "no" comes as a 400 here, as a 404 or a 500 there, and inside a 200. So the words and codes
decide first, by the one table of `shapes`, and only what it does not know is told by the status. Wrappers (OpenRouter, LiteLLM, gateways
of gateways) put the true answer as JSON into a text of theirs: it is unwrapped, as often as it is wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

import orjson

from agent_core.causes import BreakCause
from agent_core.failures.complaints import NOTHING_SAID, Complaint, Concern, Place
from agent_core.jsonvalue import Json
from agent_core.model.shapes import shape_of
from agent_core.records import dataclass
from agent_core.text.patterns import late
from agent_core.text.wellformed import storable

DETAIL_CHARS = 300
READ_CHARS = 4_000
"""More of a message is not looked at: what it is about stands at its beginning."""
DEEPEST_WRAP = 6
MOST_PLACES = 8

_RATE_CODES = frozenset(
    {"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "rate_limited", "resource_exhausted"}
)
_KEY_CODES = frozenset({"invalid_api_key", "authentication_error", "invalid_authentication", "unauthenticated"})
_BUSY_CODES = frozenset(
    {
        "overloaded_error",
        "server_error",
        "overloaded",
        "service_unavailable",
        "internal_server_error",
        "unavailable",
        "api_error",
    }
)
_BY_STATUS: Mapping[int, BreakCause] = {
    401: BreakCause.UNAUTHORISED,
    402: BreakCause.PAYMENT_REQUIRED,
    403: BreakCause.FORBIDDEN,
    404: BreakCause.NOT_FOUND,
    407: BreakCause.BY_PROXY,
    408: BreakCause.SERVER_ERROR,
    409: BreakCause.SERVER_ERROR,
    410: BreakCause.NOT_FOUND,
    413: BreakCause.TOO_LARGE,
    424: BreakCause.SERVER_ERROR,  # text-generation-inference: its shard failed
    425: BreakCause.SERVER_ERROR,
    429: BreakCause.RATE_LIMITED,
    498: BreakCause.SERVER_ERROR,  # Groq: no room in a tier
    499: BreakCause.SERVER_ERROR,  # Google: the operation was cancelled, by itself
}
_PAGE_BY_STATUS: Mapping[int, BreakCause] = {
    400: BreakCause.BY_PROXY,
    401: BreakCause.BY_PROXY,
    403: BreakCause.BY_PROXY,
    404: BreakCause.NO_ROUTE,
    405: BreakCause.NO_ROUTE,
    451: BreakCause.BY_PROXY,
}
"""An HTML page under these is no answer of a provider."""
_NO_ROUTE = late(
    r"^not found\.?$|page not found|no route matched|^cannot post /|unknown request url|unexpected endpoint|method not allowed|no static resource"
)
"""What servers say that do not know the path: FastAPI, Go (Ollama), Kong, Express, OpenAI, LM Studio, Spring."""
_WANTS_TLS = late(
    r"plain http request was sent to https port|http request to an https server|combination of host and port requires tls|plain http to an ssl-enabled"
)
"""Nginx, Go, Tomcat and Apache, where TLS is wanted."""
_GENERIC = late(
    r"^(?:provider returned error|upstream (?:request failed|error).{0,20}|bad request|error|unknown error|none)?\.?$"
)
"""A wrapper's words that say nothing: what they wrap is read in their place."""
_PHRASES = frozenset(one.phrase.lower() for one in HTTPStatus if one >= 400)
"""Names of statuses, which many servers put beside what they mean."""
_PLACE = late(
    r"\b(?P<list>messages|contents|input)(?P<open>\W{1,4}|\[)(?P<message>\d{1,5})\b(?! tokens)(?:\W{1,4}(?:content|parts)\W{1,4}(?P<part>\d{1,4})\b)?"
    r"|\bmessage (?:at |number )?(?:index |position )?(?P<index>\d{1,5})\b"
)
_WINDOW = late(
    r"maximum context length (?:is|of) (\d+)|tokens > (\d+) maximum|tokens allowed \(?(\d+)|available context size \((\d+)|context length of only (\d+)"
    r"|token limit: (\d+)|must be <= (\d+)|max length: ?(\d+)|with (\d+) maximum context|limit (\d+), requested|prompt length is (\d+)|less than (\d+) tokens"
    r"|context length \((\d+) tokens|maximum (?:sequence|input) length \((\d+)"
)
_MESSAGE_KEYS = ("message", "detail", "error_description", "error_message", "msg", "status_msg", "title")
_CODE_KEYS = ("code", "type", "status", "status_code", "reason")
_NO_CODE = frozenset({"", "0", "200", "ok", "success", "none", "null"})


@dataclass(frozen=True, slots=True)
class Rejection:
    """A provider's "no", in our words."""

    cause: BreakCause
    status: int
    detail: str
    """The provider's message, shortened; not yet redacted."""
    complaint: Complaint = NOTHING_SAID


@dataclass(slots=True)
class _Said:
    """All that an answer says, whatever it is wrapped in."""

    messages: list[str]
    """The outermost first."""
    codes: set[str]
    params: list[str]
    window: int = 0

    @property
    def message(self) -> str:
        """The innermost words that say something."""
        telling = [m for m in self.messages if not _says_nothing(m.strip().lower())]
        return telling[-1] if telling else next(iter(self.messages), "")


def _says_nothing(words: str) -> bool:
    return words.rstrip(".") in _PHRASES or _GENERIC.match(words) is not None


def rejection(status: int, body: Json) -> Rejection:
    """What an HTTP answer with `status` (0: an error object inside a stream) and `body` means."""
    said = _Said([], set(), [])
    page = isinstance(body, str) and _is_page(body)
    if not page:
        _hear(body, said, DEEPEST_WRAP)
    told = said.message.rpartition("Jinja Exception: ")[2]  # before it stands a piece of the template
    detail = storable(" ".join(told.split())[:DETAIL_CHARS])
    numbers = [
        int(code) for code in sorted(said.codes) if code.isdecimal() and len(code) == 3 and 400 <= int(code) <= 599
    ]
    status = status or next(iter(numbers), 0)
    words = " \n ".join(said.messages)[:READ_CHARS].lower()
    if _WANTS_TLS.search(body[:READ_CHARS].lower() if isinstance(body, str) else words):
        return Rejection(BreakCause.WANTS_TLS, status, "")
    if page:
        return Rejection(_cause_of_page(status), status, "")
    cause, concern = _cause(status, words, said.codes)
    complaint = NOTHING_SAID
    if cause in COMPLAINTS:
        places = _places(f"{words} \n {' '.join(said.params).lower()}")
        if concern is Concern.UNSAID and not places and _about_a_field(said.params):
            concern = Concern.FIELD
        complaint = Complaint(concern, places, said.window or _window(words))
    return Rejection(cause, status, detail, complaint)


def says_no(body: Mapping[str, Json]) -> bool:
    """Whether an object without choices is a refusal, in an answer that began as a success.

    Besides ``error`` (OpenAI) there are ``base_resp`` (MiniMax), ``code`` with ``message`` (DashScope, SiliconFlow, Novita), ``detail``
    (FastAPI), ``errors`` with ``success`` (Cloudflare), and ``object: error`` (vLLM, Mistral).
    """
    base = body.get("base_resp")
    if isinstance(base, dict):
        return _tells(base.get("status_code"))
    kind = body.get("type")
    if body.get("success") is False or body.get("object") == "error" or kind == "error":
        return True
    words = any(isinstance(body.get(key), str) and body[key] for key in _MESSAGE_KEYS)
    # A bare error object, as the data of an event of that name.
    named = isinstance(kind, str) and kind.lower().endswith("error")
    return bool(body.get("detail")) or (
        words and (named or any(_tells(body.get(key)) for key in ("code", "status_code", "error_code")))
    )


def _tells(code: Json) -> bool:
    """Whether a code is one of a failure."""
    return isinstance(code, str | int) and str(code).lower() not in _NO_CODE


COMPLAINTS = frozenset({BreakCause.BAD_REQUEST, BreakCause.REFUSED, BreakCause.TOO_LARGE, BreakCause.CONTEXT_OVERFLOW})
"""Refusals that are about what was sent."""


OF_THE_KEY = frozenset({BreakCause.UNAUTHORISED, BreakCause.FORBIDDEN, BreakCause.PAYMENT_REQUIRED, BreakCause.REGION})
"""Refusals of whoever asks, whatever is asked."""


def _is_page(body: str) -> bool:
    head = body[:500].lstrip().lower()
    return head.startswith(("<!doctype", "<html", "<head", "<?xml")) or "<html" in head


def _hear(value: Json, said: _Said, deeper: int) -> None:
    """Note what `value` says, and what is wrapped in it."""
    if deeper == 0:
        return
    if isinstance(value, str):
        _hear_text(value, said, deeper)
    elif isinstance(value, list):
        for item in value[:5]:
            _hear(item, said, deeper - 1)
    elif isinstance(value, dict):
        _hear_object(value, said, deeper)


def _hear_text(text: str, said: _Said, deeper: int) -> None:
    said.messages.append(text[:READ_CHARS])
    start = text.find("{", 0, READ_CHARS)
    if start < 0 or '"' not in text:
        return
    try:
        inner: Json = orjson.loads(text[start : text.rindex("}") + 1])
    except ValueError:
        return
    _hear(inner, said, deeper - 1)


def _hear_object(value: Mapping[str, Json], said: _Said, deeper: int) -> None:
    for key in _MESSAGE_KEYS:
        words = value.get(key)
        if isinstance(words, str):
            where = value.get("loc")  # pydantic's
            if isinstance(where, list):
                words = f"{'.'.join(str(step) for step in where)}: {words}"
            _hear_text(words, said, deeper)
        elif words is not None:
            _hear(words, said, deeper - 1)
    said.codes |= {
        str(found)[:100].lower() for key in _CODE_KEYS if isinstance(found := value.get(key), str | int) and found
    }
    if isinstance(param := value.get("param"), str) and param:
        said.params.append(param[:200])
    if isinstance(context := value.get("n_ctx"), int) and context > 0:
        said.window = context
    for key in ("error", "errors", "innererror", "inner_error", "base_resp", "metadata", "raw", "details"):
        inner = value.get(key)
        if isinstance(inner, dict | list) or (isinstance(inner, str) and key in ("error", "raw")):
            _hear(inner, said, deeper - 1)


def _about_a_field(params: Iterable[str]) -> bool:
    """The provider names a parameter, and it is not the conversation."""
    named = [param.lower() for param in params if param.lower() not in ("none", "null")]
    return bool(named) and not any(p.startswith(("messages", "prompt", "input", "contents", "body")) for p in named)


def _places(words: str) -> tuple[Place, ...]:
    """Which messages are named. Servers that count like OpenAI write ``messages[3]`` or ``messages.[3]``; Anthropic's ``messages.3.content.1``
    and Gemini's ``contents[3]`` count without system messages, and join neighbours of one role."""
    found: dict[Place, None] = {}
    for hit in _PLACE.finditer(words):
        if hit["index"] is not None:
            found[Place(int(hit["index"]))] = None
            continue
        native = hit["list"] == "contents" or (hit["open"] == "." and hit["list"] == "messages")
        found[Place(int(hit["message"]), int(hit["part"]) if hit["part"] else -1, native)] = None
    return tuple(found)[:MOST_PLACES]


def _window(words: str) -> int:
    hit = _WINDOW.search(words)
    number = next((group for group in hit.groups() if group), "0") if hit else "0"
    return int(number) if len(number) < 10 else 0


def _cause_of_page(status: int) -> BreakCause:
    if status in _PAGE_BY_STATUS:
        return _PAGE_BY_STATUS[status]
    if status >= 500:
        return BreakCause.SERVER_ERROR
    return _BY_STATUS.get(status, BreakCause.GARBAGE)


def _cause(status: int, words: str, codes: set[str]) -> tuple[BreakCause, Concern]:
    if status not in (401, 402):
        shape = shape_of(status, words, codes)
        if shape is not None:
            return shape.cause, shape.concern
    if status == 404 and _NO_ROUTE.search(words.strip()):
        return BreakCause.NO_ROUTE, Concern.UNSAID
    return _plain_cause(status, codes), Concern.UNSAID


def _plain_cause(status: int, codes: set[str]) -> BreakCause:
    """By the status, and where there is none, by the codes."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return BreakCause.SERVER_ERROR
    if codes & _RATE_CODES:
        return BreakCause.RATE_LIMITED
    if codes & _KEY_CODES:
        return BreakCause.UNAUTHORISED
    if codes & _BUSY_CODES:
        return BreakCause.SERVER_ERROR
    if 300 <= status < 400:
        return BreakCause.GARBAGE
    return BreakCause.BAD_REQUEST if status else BreakCause.ERROR_IN_STREAM
