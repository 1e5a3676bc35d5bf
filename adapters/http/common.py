"""What all HTTP surfaces share: who may call, and errors in OpenAI's shape, also those for a message that is not taken."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from adapters.contract.callers import ANYBODY, Allowance, Caller, Callers, proxied
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.store.errors import Damaged
from agent_core.text.tongue import known_sentence

PATIENCE_SECONDS = 60
"""SDKs wait so long if they are told to; told of more they ask again at once."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A request that is not served, in the words of OpenAI's error object."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    retry_after: int = 0
    in_vain: bool = False
    """To ask the same again at once would not help: SDKs that retry by themselves are told so."""
    facts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What programs are told besides: the ``outspoken`` object."""


NO_STORAGE = "The gateway can neither read nor keep anything just now. Ask again in a moment."
DAMAGED_ROWS = "This cannot be read: the storage of the gateway is damaged there. Please tell whoever runs it."


def no_storage(error: Exception) -> Problem:
    """What whoever asks is told of a storage that cannot be read or written, or of a part of it."""
    words = DAMAGED_ROWS if isinstance(error, Damaged) else NO_STORAGE
    return Problem(503, words, "server_error", code="storage_unavailable", retry_after=10)


def mistake_of_ours(reference: str) -> Problem:
    """What whoever asks is told of a bug; the log has it under the reference."""
    words = f"Something went wrong inside the gateway (reference {reference}). Please tell whoever runs it."
    return Problem(500, words, "server_error", code="internal_error")


def spoken(problem: Problem) -> Problem:
    """A problem whose words are a sentence, in the language that is spoken: for the page; programs read English."""
    return replace(problem, message=known_sentence(problem.message))


def on_one_line(told: bytes) -> bytes:
    """The same JSON for clients that end a line wherever Unicode does: httpx reads lines of a stream so, and not only up to a line feed."""
    told = told.replace(b"\xc2\x85", rb"\u0085")
    return told.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")


def error_object(problem: Problem) -> dict[str, Json]:
    """The problem as OpenAI spells it, with what is told besides."""
    error: dict[str, Json] = {
        "message": problem.message,
        "type": problem.kind,
        "param": problem.param,
        "code": problem.code,
    }
    return {"error": error, "outspoken": dict(problem.facts)} if problem.facts else {"error": error}


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> web.Response:
    """The problem as an HTTP answer."""
    told = dict(headers or {})
    if problem.retry_after:
        told["Retry-After"] = str(problem.retry_after)
    if problem.in_vain or problem.retry_after > PATIENCE_SECONDS:
        told["x-should-retry"] = "false"
    body = orjson.dumps(error_object(problem))
    return web.Response(status=problem.status, body=body, content_type="application/json", headers=told)


def bearer_ok(header: str | None, key: str | None) -> bool:
    """Whether an Authorization header carries the key; compared in constant time. Without a key everybody may."""
    if key is None:
        return True
    scheme, _, given = (header or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(
        given.strip().encode("utf-8", "surrogateescape"), key.encode()
    )


@lru_cache(64)
def host_of(header: str) -> str:
    """The host name of a Host header, without its port. Clients say the same with each request."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


SEND_IT = "Send it as: Authorization: Bearer <key>"
WRONG_KEY = Problem(
    401,
    f"The API key is missing, wrong or not good any more. {SEND_IT}",
    "authentication_error",
    code="invalid_api_key",
)


def stranger(request: web.Request, key: str | None, allowed: Sequence[str], own_host: str = "") -> Problem | None:
    """Why a request must be refused before it is looked at, or None."""
    if (problem := _elsewhere(request, allowed)) is not None:
        return problem
    if key is None and not _of_this_machine(host_of(request.host), own_host):
        return Problem(403, f"This gateway does not answer to the name {host_of(request.host)!r}.")
    return None if bearer_ok(request.headers.get("Authorization"), key) else WRONG_KEY


CALLER = web.RequestKey("caller", Caller)
"""Set in a request as soon as it is known who calls."""


NAMED = web.RequestKey("named", str)
"""Set in a request that a trusted proxy brought, where proxies say who people are: whom it is from; empty: nobody who may."""
NOT_NAMED = Problem(
    401,
    "The proxy in front of this gateway does not say who you are. Log in there; or send a key as: Authorization: Bearer <key>",
    "authentication_error",
    code="not_signed_in",
)


HEADERS = web.RequestKey("headers", dict[str, str])
"""Set with it: what an answer has besides, for one that is written piece by piece."""


def shown_key(request: web.Request) -> str:
    """The key with which somebody calls; empty if with none."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def caller_of(
    request: web.Request, callers: Callers, allowed: Sequence[str] = (), own_host: str = ""
) -> Caller | Problem:
    """Who calls; or why the request must be refused before it is looked at. Asked once for each request."""
    found = callers.who(shown_key(request), request.headers)
    named = request.get(NAMED)
    if named is not None and (found is None or (found is ANYBODY and callers.keyless)):
        found = proxied(named) if named else None
        return _elsewhere(request, allowed) or found or NOT_NAMED
    if (problem := _elsewhere(request, allowed)) is not None:
        return problem
    if found is ANYBODY and callers.keyless and not _of_this_machine(host_of(request.host), own_host):
        # The gateway's public name, say: with a key it is served, so one is asked for, as everywhere; the page does so at this code.
        words = f"By the name {host_of(request.host)!r} this gateway serves nobody without an API key. {SEND_IT}"
        return replace(WRONG_KEY, message=words)
    return found or WRONG_KEY


def _elsewhere(request: web.Request, allowed: Sequence[str]) -> Problem | None:
    """Why a request is not served, with whatever key, or None: a page of another origin may not use the gateway through a visitor's browser."""
    origin = request.headers.get("Origin")
    if origin and origin != "null" and "*" not in allowed and origin not in allowed:
        same = urlsplit(origin).netloc.lower() == request.host.lower()
        if not same:
            return Problem(
                403, f"Pages of {origin} may not call this gateway. Its operator can allow them: [server] cors_origins."
            )
    if origin == "null" and "*" not in allowed:
        return Problem(403, "Pages without an origin may not call this gateway.")
    return None


@lru_cache(64)
def _of_this_machine(name: str, own: str) -> bool:
    """Without a key, a name that was made to point here (DNS rebinding) is not served: nobody can do that with these."""
    try:
        return name in ("localhost", "::1", own.lower()) or ipaddress.IPv4Address(name).is_loopback
    except ValueError:
        return False


LIMIT_HEADERS = tuple(
    f"x-ratelimit-{figure}-{what}" for what in ("requests", "tokens") for figure in ("limit", "remaining", "reset")
)


def limit_headers(left: Sequence[Allowance]) -> dict[str, str]:
    """What is left of a key's limits, as OpenAI spells it."""
    found: dict[str, str] = {}
    for one in left:
        found[f"x-ratelimit-limit-{one.what}"] = str(one.limit)
        found[f"x-ratelimit-remaining-{one.what}"] = str(one.left)
        found[f"x-ratelimit-reset-{one.what}"] = _duration(one.full_in_ms)
    return found


def _duration(ms: int) -> str:
    """As OpenAI writes one: 350ms, 12s, 6m0s, 3h0m12s."""
    if ms < 1000:
        return f"{ms}ms"
    minutes, seconds = divmod(-(-ms // 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}s"


def cors_headers(request: web.Request, allowed: Sequence[str]) -> dict[str, str]:
    """Headers that let an allowed page of another origin read the answer."""
    origin = request.headers.get("Origin", "")
    if not origin or ("*" not in allowed and origin not in allowed):
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Headers": request.headers.get(
            "Access-Control-Request-Headers", "authorization, content-type"
        ),
        "Access-Control-Allow-Methods": "GET, POST, DELETE, OPTIONS",
        "Access-Control-Expose-Headers": f"x-request-id, retry-after, x-should-retry, {', '.join(LIMIT_HEADERS)}",
        "Vary": "Origin",
    }


async def not_here(request: web.Request, known: str = "") -> web.Response:
    """No route has this path, or none with this method. `known` says what there is."""
    from adapters.http.instead import instead

    allowed: set[str] = set()
    for resource in request.app.router.resources():
        found, methods = await resource.resolve(request)
        allowed |= methods if found is None else set()
    if not allowed:
        words = f"There is nothing at {request.method} {request.path[:200]}. {instead(request.path) or known}".rstrip()
        return problem_response(Problem(404, words, code="unknown_url"))
    words = f"{request.method} is not possible there. Possible is: {', '.join(sorted(allowed))}. {instead(request.path)}".rstrip()
    return problem_response(Problem(405, words, code="method_not_allowed"), {"Allow": ", ".join(sorted(allowed))})


def no_budget(words: str, retry_after: int) -> Problem:
    """A limit of use is reached; there is room again after so many seconds."""
    return Problem(
        429, words, "insufficient_quota", code="insufficient_quota", retry_after=retry_after, in_vain=retry_after > 60
    )


def refusal(refused: NotAccepted) -> Problem:
    """Why the gateway did not take the message, as an HTTP error."""
    words = str(refused)
    match refused.code:
        case NotAcceptedCode.QUEUE_FULL:
            return Problem(429, words, "rate_limit_error", code="queue_full", retry_after=10)
        case NotAcceptedCode.GATEWAY_FULL:
            return Problem(503, words, "server_error", code="overloaded", retry_after=refused.retry_after_seconds)
        case NotAcceptedCode.QUOTA:
            return no_budget(words, refused.retry_after_seconds)
        case NotAcceptedCode.TOO_MANY:
            retry = refused.retry_after_seconds
            return Problem(429, words, "requests", code="rate_limit_exceeded", retry_after=retry)
        case NotAcceptedCode.UNKNOWN_MODEL:
            return Problem(404, words, param="model", code="model_not_found")
        case NotAcceptedCode.OTHER_CONTENT:
            return Problem(422, words, code="idempotency_key_reused")
        case NotAcceptedCode.STORAGE_AWAY | NotAcceptedCode.STORAGE_DAMAGED:
            return Problem(503, words, "server_error", code="storage_unavailable", retry_after=10)
        case NotAcceptedCode.STORAGE_FULL:
            return Problem(507, words, "server_error", code="storage_full", retry_after=refused.retry_after_seconds)
        case NotAcceptedCode.SHUTTING_DOWN:
            return Problem(503, words, "server_error", code="shutting_down", retry_after=30)


Served = Callable[[web.Request], Awaitable[web.Response]]


_OF_PROXIES = (
    "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via", "CF-Connecting-IP",
)  # fmt: skip
ELSEWHERE = Problem(
    403,
    "This is served to this machine only, because no key is set, and this request came through a proxy. Set [server] operator_key.",
)


def through_proxy(request: web.Request) -> bool:
    """Whether somebody else's program has passed the request on: who it comes from is not who calls."""
    return any(name in request.headers for name in _OF_PROXIES)


def guarded(key: str | None, handler: Served) -> Served:
    """A handler that only whoever runs the gateway reaches: with the key, or, where there is none, from this machine and through no proxy."""

    async def handle(request: web.Request) -> web.Response:
        problem = ELSEWHERE if key is None and through_proxy(request) else stranger(request, key, ())
        return problem_response(problem) if problem is not None else await handler(request)

    return handle


LASTS_WORDS = "lasts must be once, conversation or always."


def lasting_of(said: Json) -> Lasting | None:
    """For how long a request agrees; None if that makes no sense."""
    if said is None or said == "once":
        return Lasting.ONCE
    return Lasting(said) if isinstance(said, str) and said in (Lasting.CONVERSATION, Lasting.ALWAYS) else None
