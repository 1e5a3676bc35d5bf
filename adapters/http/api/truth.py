"""How the end of a turn is told to a program: as the HTTP error that it is, or as content with what is missing. Pure.

Theory. Whoever reads an answer by program acts on its status: it asks elsewhere, waits, or gives up. So where nothing was produced, the status is the
real one, the provider's own if it gave one; where something was (text, calls of the client's tools, work of the gateway's tools that must not be
done twice), there is content, and the finish reason and the ``outspoken`` object say what is missing. People behind a chat front end read
words: they get them in the content, with 200.

Laws (tests/adapters/test_truth.py): in words nothing is an error; a status is an error where nothing was produced, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import orjson

from adapters.contract.base import Ended, LeftOpen
from adapters.http.api.facts import LEFT_OPEN, facts_of, left_facts
from adapters.http.api.spoken import left_words
from adapters.http.common import Problem, no_budget
from adapters.http.errorsas import ErrorsAs
from agent_core.failures import exits
from agent_core.failures.exits import Exit, ExitCode
from agent_core.failures.notices import ExitClass, NotStarted, for_programs
from agent_core.turn.view import TEXTS, BubbleKind, View

ERRORS_HEADER = "X-Outspoken-Errors"
_FRONT_ENDS = ("Mozilla/", "LibreChat", "Open WebUI", "open-webui", "SillyTavern")
"""How the User-Agent of those begins who show people whatever is content, and errors badly or not at all: pages in a browser first of all."""
_FRONT_ENDS_HEADERS = ("X-OpenWebUI-User-Id", "X-OpenWebUI-Chat-Id")
"""`Sec-Fetch-Mode` is none of them: Node sends it with every request of a program."""


def errors_as(headers: Mapping[str, str], configured: ErrorsAs, *, structured: bool) -> ErrorsAs:
    """How failures of a request are told: as its header says, else as its key or the server is configured, else as suits its client.

    `structured`: it asks for JSON; words would be no answer to that, whoever reads them.
    """
    said = headers.get(ERRORS_HEADER, "").strip().lower()
    chosen = ErrorsAs(said) if said in (ErrorsAs.WORDS, ErrorsAs.STATUS) else configured
    if chosen is not ErrorsAs.AUTO:
        return chosen
    front_end = headers.get("User-Agent", "").startswith(_FRONT_ENDS) or any(
        each in headers for each in _FRONT_ENDS_HEADERS
    )
    return ErrorsAs.WORDS if front_end and not structured else ErrorsAs.STATUS


KNOWN_AS: Mapping[ExitCode, str] = {
    ExitCode.CONTEXT_OVERFLOW: "context_length_exceeded",
    ExitCode.RATE_LIMITED: "rate_limit_exceeded",
    ExitCode.PAYMENT_REQUIRED: "insufficient_quota",
    ExitCode.SPEND_LIMIT: "insufficient_quota",
    ExitCode.NOT_AUTHORISED: "invalid_api_key",
    ExitCode.REFUSED: "content_filter",
}
"""Under which code OpenAI has the same: programs look for that word in an error's message."""


def known_words(ending: Exit) -> str:
    """An exit in words for programs."""
    known_as = f" ({KNOWN_AS[ending.code]})" if ending.code in KNOWN_AS else ""
    return for_programs(ending.text()) + known_as


def status_of(ending: Exit) -> int:
    """The HTTP status of an exit by which nothing was produced; 200 if the finish reason says it all. The provider's own, if it gave one."""
    if isinstance(ending, exits.Failed) and ending.kind is ExitClass.PROVIDER and 400 <= ending.status < 600:
        return ending.status
    return ending.http


def kind_of(status: int) -> str:
    """OpenAI's ``type`` of an error with this status."""
    match status:
        case 401:
            return "authentication_error"
        case 402:
            return "insufficient_quota"
        case 403:
            return "permission_error"
        case 429:
            return "rate_limit_error"
        case _ if status >= 500:
            return "server_error"
        case _:
            return "invalid_request_error"


def is_begun(view: View) -> bool:
    """Something was produced that an error would hide, or have done twice: text, or a call of a tool."""
    return any(bubble.kind in TEXTS or bubble.kind is BubbleKind.ACTIVITY for bubble in view.bubbles)


def produced(ended: Ended) -> bool:
    """Something was produced that an error would hide, or have done twice."""
    return bool(ended.handed) or ended.exit.ran or any(bubble.kind in TEXTS for bubble in ended.view.bubbles)


def problem_of(ended: Ended, session: str) -> Problem | None:
    """The error by which a turn ended that produced nothing; None if there is something to tell beside it."""
    status = status_of(ended.exit)
    if status < 400 or produced(ended):
        return None
    code = ended.exit.code
    wait = ended.exit.retry_after_seconds if isinstance(ended.exit, exits.Failed) else 0
    if isinstance(ended.exit, exits.SpendLimit) and ended.exit.spend is not None:
        wait = ended.exit.spend.opens_in_seconds
    return Problem(
        status,
        known_words(ended.exit),
        kind_of(status),
        code=code.value,
        retry_after=wait,
        # The gateway has asked again itself, as often as that could help: an SDK that does so at once has it done all over again. Not so where
        # it was the gateway that failed, or where it is known when it helps (`problem_response`).
        in_vain=not wait and ended.exit.kind is not ExitClass.OURS,
        facts=facts_of(ended, session),
    )


def left_problem(left: LeftOpen, session: str, *, keyed: bool) -> Problem | None:
    """The same of a turn that goes on in the next process."""
    if is_begun(left.view):
        return None
    facts = left_facts(left, session)
    return Problem(503, left_words(keyed=keyed), "server_error", code=LEFT_OPEN, retry_after=5, facts=facts)


def shown(ended: Ended) -> View:
    """What is to be said of a turn that is over. Its notice is not, if the reply was cut by the limit that the client set itself: it asked for
    that, and is told by the finish reason."""
    if not isinstance(ended.exit, exits.Cut) or not ended.exit.limit_was_asked:
        return ended.view
    said = tuple(bubble for bubble in ended.view.bubbles if bubble.kind is not BubbleKind.NOTICE)
    return replace(ended.view, bubbles=said)


def refusal_of(ended: Ended, errors: ErrorsAs) -> str:
    """What a program is told in the place that is for it, if the request was refused; else nothing."""
    if ended.exit.code is not ExitCode.REFUSED or errors is not ErrorsAs.STATUS or produced(ended):
        return ""
    return for_programs(ended.exit.text())


def finish_of(ended: Ended, text: str, *, data: bool) -> str:
    """The finish reason. Data that ends before its end is cut, whatever the provider says: nobody can use it."""
    if data and ended.exit.kind is ExitClass.CLEAN and is_cut(text):
        return "length"
    return ended.exit.kind.finish_reason


def is_cut(text: str) -> bool:
    """Whether this is the beginning of JSON, and not all of it."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        if text.lstrip()[:1] not in ("{", "["):
            return False
    else:
        return False
    from pydantic_core import from_json  # only for what is no JSON

    try:
        from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return False
    return True


def failure_of(ended: Ended, session: str, errors: ErrorsAs, *, keyed: bool) -> Problem | None:
    """The error that a turn's end is for whoever asked; None if there is something to tell. Whoever asks again under the same key is told the same."""
    if (problem := _not_begun(ended)) is not None:
        problem = replace(problem, facts=facts_of(ended, session))
    elif errors is ErrorsAs.STATUS:
        problem = problem_of(ended, session)
    return replace(problem, in_vain=True) if problem is not None and keyed else problem


def _not_begun(ended: Ended) -> Problem | None:
    """The error for a message for which no model was ever asked, or of whose end nothing is left, for whoever asked; None if there is
    something to tell."""
    if isinstance(ended.exit, exits.InternalError) and ended.exit.reason is NotStarted.GONE:
        words = f"{ended.view.text} To have it done again, ask with another Idempotency-Key, or without one."
        return Problem(410, words, "server_error", code="answer_lost")
    if ended.exit.kind is ExitClass.NOT_STARTED:
        return Problem(503, for_programs(ended.view.text), "server_error", code="not_started", retry_after=5)
    spend = ended.exit.spend if isinstance(ended.exit, exits.SpendLimit) else None
    if spend is None or ended.summary.attempts > 1:
        return None
    return no_budget(ended.view.text, spend.opens_in_seconds if spend.used >= spend.limit else 60)
