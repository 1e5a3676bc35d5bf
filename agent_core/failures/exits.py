"""How a turn can end: every exit is one record here, and all else that is known of exits is derived from it.

A record is a class: its code and class, its own facts (the fields), what a person reads (`text`) and may press (`actions`), what an operator can do
(`operator`), when it comes to that (the docstring) and an example (the facts as they are stored). docs/exits.md is printed from it.

To add an exit: a member of `ExitCode`, and a class with `@ends` beside its like. Without the class this module cannot be imported.

Laws: a finish reason of ``stop`` belongs to `answered` alone; every exit but the clean ones has a notice (tests/agent_core/test_notices.py). A notice says
what happened, what was done and what was not, and what to do next; it never offers to do again what is done; it is never stored as the model's words.

Stored facts of every version can be read: what a record does not know is left out, what is missing takes its default, so that a default means "not there".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from inspect import get_annotations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from agent_core.causes import BreakCause, cause_words, said_words, status_words
from agent_core.failures import notices, shortage
from agent_core.failures.errors import ProtocolError
from agent_core.failures.notices import AGAIN, CONTINUE, RETRY, UNFINISHED, WHY, Action, ExitClass, NotStarted, say
from agent_core.limits.spend import Spend, opens_words, spent_words
from agent_core.records import dataclass
from agent_core.text.durations import duration
from agent_core.text.shown import quoted
from agent_core.text.tongue import known_sentence, names_in, number, sentence, speak, speak_many

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema


class ExitCode(StrEnum):
    """The closed set of endings."""

    ANSWERED = "answered"
    HANDED_TO_CLIENT = "handed_to_client"
    BROKEN_BEFORE_TEXT = "broken_before_text"
    BROKEN_IN_TEXT = "broken_in_text"
    BROKEN_IN_TOOL_CALL = "broken_in_tool_call"
    SAME_STALL_AGAIN = "same_stall_again"
    EMPTY_REPLY = "empty_reply"
    EMPTY_AFTER_TOOLS = "empty_after_tools"
    THINKING_ONLY = "thinking_only"
    PROMISED_WITHOUT_ACTING = "promised_without_acting"
    CUT_BY_LENGTH = "cut_by_length"
    TOOL_CALL_CUT_BY_LENGTH = "tool_call_cut_by_length"
    REFUSED = "refused"
    REFUSED_MIDWAY = "refused_midway"
    UNKNOWN_TOOL = "unknown_tool"
    UNREADABLE_ARGUMENTS = "unreadable_arguments"
    REPEATING_FAILING_CALL = "repeating_failing_call"
    FAILING_TOOL = "failing_tool"
    NO_PROGRESS = "no_progress"
    GOING_IN_CIRCLES = "going_in_circles"
    STEP_LIMIT = "step_limit"
    TIME_LIMIT = "time_limit"
    SPEND_LIMIT = "spend_limit"
    RATE_LIMITED = "rate_limited"
    PROVIDER_DOWN = "provider_down"
    PROVIDER_GARBAGE = "provider_garbage"
    NOT_AUTHORISED = "not_authorised"
    PAYMENT_REQUIRED = "payment_required"
    MODEL_NOT_FOUND = "model_not_found"
    BAD_REQUEST = "bad_request"
    CONTEXT_OVERFLOW = "context_overflow"
    REQUEST_TOO_LARGE = "request_too_large"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    APPROVAL_DENIED = "approval_denied"
    APPROVAL_EXPIRED = "approval_expired"
    INTERRUPTED_BY_RESTART = "interrupted_by_restart"
    INTERNAL_ERROR = "internal_error"
    NOT_STARTED = "not_started"


# ---------------------------------------------------------------------- what exits have in common


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How one turn ended, and what is said at every end: what had run, what had not, and what may have."""

    code: ClassVar[ExitCode]
    kind: ClassVar[ExitClass]
    actions: ClassVar[tuple[Action, ...]]
    http: ClassVar[int]  # the status for a program, where nothing was produced
    title: ClassVar[str]  # what happens, in a list of incidents or of `outspoken triage`
    operator: ClassVar[str]
    """What an operator can do about turns that end so (or would, if no remedy had helped)."""
    example: ClassVar[Mapping[str, object]]
    """Facts of one, as they are stored."""

    model: str = ""
    steps: int = 0
    """Model steps that were finished."""
    tools_done: tuple[str, ...] = ()
    """Names of the tools that ran to an end, in order."""
    tools_dropped: tuple[str, ...] = ()
    """Names of the tools that were asked for and not executed."""
    tools_unsure: tuple[str, ...] = ()
    """Names of the tools that may or may not have run."""
    tool: str = ""
    """The tool that it is about, if it is about one."""
    text_shown: bool = False
    """Part of a reply is on screen that is not finished."""

    def text(self) -> str:
        """What a person reads about it; a clean exit says nothing. Each has its own."""
        raise NotImplementedError

    def offers(self) -> tuple[Action, ...]:
        """What a person can press, as long as nothing has been done yet."""
        return self.actions

    def notice(self) -> notices.Notice | None:
        """What the gateway says, or None for the clean exits. Nothing that has been done is offered to be done again: after tools, to go on takes
        the place of to retry."""
        text, actions = self.text(), self.offers()
        if not text:
            return None
        if self.ran and Action.RETRY in actions:
            actions = (Action.CONTINUE, *(one for one in actions if one not in (Action.CONTINUE, Action.RETRY)))
        return notices.Notice(text, actions)

    def facts(self) -> dict[str, Any]:
        """All its facts by their stored names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def ran(self) -> bool:
        """Tools have run, or may have: whoever sends the message again may have it done twice."""
        return bool(self.tools_done or self.tools_unsure)

    @property
    def work(self) -> str:
        """What had been done and what was not; empty if no tool was involved."""
        return notices.work_words(self.tools_done, self.tools_dropped, self.tools_unsure)

    @property
    def cut(self) -> str:
        return speak("The reply above is cut short.") if self.text_shown else ""

    def told(self, message: str) -> str:
        """A sentence about it: the names in its braces are of what is known of it."""
        values = {name: getattr(self, name) for name in names_in(message)}
        return speak(message, **{name: value() if callable(value) else value for name, value in values.items()})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if cls is not Exit:
            return handler(source)
        from pydantic_core import core_schema  # only who reads journals needs it

        return core_schema.no_info_plain_validator_function(read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubled(Exit):
    """Ends for which a model call that failed is the reason, or was in the way."""

    cause: BreakCause | None = None
    seconds: int = 0
    """How long was waited."""
    attempts: int = 0
    status: int = 0
    """HTTP status, 0 if there was none."""
    detail: str = ""
    """The provider's own words, redacted and short."""

    def why(self) -> str:
        """The cause as part of a sentence."""
        return cause_words(self.cause, seconds=self.seconds, status=self.status, detail=self.detail)

    @property
    def spent(self) -> str:
        return notices.attempts_words(self.attempts) if self.attempts > 1 else ""

    @property
    def said(self) -> str:
        """The HTTP status and the provider's words."""
        return said_words(self.status, self.detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Troubled):
    """A model call failed for good."""

    retry_after_seconds: int = 0

    @property
    def later(self) -> str:
        """When to try again, and what: not again what was done."""
        return notices.later_words(self.retry_after_seconds, ran=self.ran)

    @property
    def differently(self) -> str:
        return speak("Ask for the rest in other words.") if self.ran else speak("Put it differently.")

    @property
    def dropped(self) -> str:
        """The tools whose call was arriving."""
        return notices.names(self.tools_dropped or ("",))

    @property
    def not_executed(self) -> str:
        work = notices.work_words(self.tools_done, (), self.tools_unsure)
        return say(self.told("The call was not executed ({dropped}); the task is not finished."), work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubted(Failed):
    """Failures without a word of what they are about: parts of the conversation may have been left out for it."""

    without: str = ""
    """What of the conversation the model was not sent in the last tries, in vain."""

    @property
    def left_out(self) -> str:
        return (speak("Asked without {without}, it did not reply either.", without=known_sentence(self.without)) if self.without else "")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Failed):
    """The reply reached an output limit, whoever's it is."""

    limit: int = 0
    """Characters that the gateway takes of one reply, if it was that."""
    limit_was_asked: bool = False
    """The client itself set the output limit that cut the reply."""

    def by_the_model(self) -> str:
        """What is said of the model's own limit. Each has its own."""
        raise NotImplementedError

    def text(self) -> str:
        if self.cause is not BreakCause.TOO_LONG:
            return self.by_the_model()
        return say(speak("The reply was stopped at {limit} characters (thoughts and tool calls included): that is outspoken's own limit for one reply, not the model's.", limit=number(self.limit)), self.work, self.in_parts)  # fmt: skip

    @property
    def in_parts(self) -> str:
        return speak("Ask for the rest in parts.") if self.ran else speak("Ask for the work in parts.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TooMuch(Failed):
    """The request is more than the model or the provider takes, also after it was shortened."""

    alone: bool = False
    """The message that is answered is too much by itself: without what was said before it was too much as well."""
    size: int = 0
    """Estimated tokens of the request; only older versions told it."""

    by_itself: ClassVar[str]
    in_all: ClassVar[str]
    advice: ClassVar[str]

    def text(self) -> str:
        what, advice = self.in_all, self.advice
        if self.alone:
            what, advice = self.by_itself, sentence("Send it in parts, or shorter. If a short message ends like this as well, whoever runs this gateway has to shorten the instructions or offer fewer tools.")  # fmt: skip
        about = self.told(" (about {size} tokens)") if self.size else ""
        spoken = speak(what, about=about, status=status_words(self.status))
        return say(spoken, self.work, self.cut, notices.instead(advice))


@dataclass(frozen=True, slots=True, kw_only=True)
class Misset(Failed):
    """What only whoever runs the gateway can set right."""

    elsewhere: ClassVar[BreakCause | None] = None
    """The cause that lies between the gateway and the provider, and says all by itself."""

    what: ClassVar[str]
    advice: ClassVar[str]

    def text(self) -> str:
        model = f" {quoted(self.model)}" if self.model else ""
        what, advice = speak(self.what, model=model, said=self.said), self.advice
        if self.cause is not None and self.cause is self.elsewhere:
            what, advice = self.told("There is no answer: {why}."), notices.BY_OPERATOR
        return say(what, self.work, self.cut, advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looped(Exit):
    """The model did the same again and again; `tool` is what it called."""

    what: ClassVar[str]
    """What it did again and again."""
    count: int = 0

    def text(self) -> str:
        what = speak(self.what, tool=self.tool, times=notices.times(self.count))
        otherwise = speak("Going on the same way would most likely end here again: say what should be done differently.")  # fmt: skip
        return say(what, UNFINISHED, self.work, self.cut, otherwise)


_E = TypeVar("_E", bound=Exit)
_EXAMPLE: Mapping[str, object] = {
    "model": "some-model", "steps": 3, "attempts": 4, "cause": "stalled", "seconds": 120, "tool": "write_file", "count": 4,
    "tools_done": ["read_file"],
}  # fmt: skip
"""Facts of examples that need no others; each takes its own of them."""
EXITS: dict[ExitCode, type[Exit]] = {}
"""Every exit, by its code."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def ends(
    code: ExitCode,
    kind: ExitClass,
    title: str,
    *,
    operator: str,
    example: Mapping[str, object] = MappingProxyType({}),
    actions: tuple[Action, ...] = AGAIN,
    http: int = 0,
) -> Callable[[type[_E]], type[_E]]:
    """A class is the record of an exit."""

    def of(made: type[_E]) -> type[_E]:
        if get_annotations(made):  # facts of its own; else all is made already, and the program begins sooner
            made = dataclass(frozen=True, slots=True, kw_only=True)(made)
        made.code, made.kind, made.title, made.actions, made.operator = code, kind, title, actions, operator
        made.http, made.example = http or kind.http, {**_EXAMPLE, **example}
        EXITS[code] = made
        return made

    return of


def ending(code: ExitCode, family: type[_E]) -> type[_E]:
    """The record of a code that stands in a journal. Raises `ProtocolError` if it is none of `family`."""
    found = EXITS[code]
    if not issubclass(found, family):
        raise ProtocolError(f"no turn can end with {code.value} like this")
    return found


def read(stored: Exit | Mapping[str, Any]) -> Exit:
    """An exit as any version stored it: its code, and of the facts that stand there its own. Raises ValueError."""
    match stored:
        case Exit():
            return stored
        case {"code": code}:
            return _reader(EXITS[ExitCode(code)]).validate_python(stored.get("facts") or {})
        case _:
            raise ValueError("an exit is a code with facts")


@cache
def _reader(kind: type[Exit]) -> TypeAdapter[Exit]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


# ---------------------------------------------------------------------- it ended well

_WELL = "Nothing: these ended well."


@ends(ExitCode.ANSWERED, ExitClass.CLEAN, "answered", operator=_WELL, example={"tools_done": []})
class Answered(Exit):
    """The model gave its answer."""

    def text(self) -> str:
        return ""


@ends(ExitCode.HANDED_TO_CLIENT, ExitClass.HANDED, "tool calls were handed to the client", operator=_WELL, example={"tools_done": []})  # fmt: skip
class HandedToClient(Exit):
    """The model asked for tools of the API client, which goes on itself."""

    def text(self) -> str:
        return ""


# ---------------------------------------------------------------------- the reply came to no good end, or to its limit

_PROVIDER = "Look at the provider's status page; add a second model ([model] fallbacks) so that turns go on elsewhere."
_LARGE_CALLS = (
    "Calls of tools stall on their way, or cannot be read. Put another model or provider first; if a proxy is in between, "
    "raise its idle limit, and [model] stall_seconds if the model is only slow."
)
_SAYS_NOTHING = "The model says nothing. Raise [model] max_output_tokens if it thinks long, or put another model first."


@ends(ExitCode.BROKEN_BEFORE_TEXT, ExitClass.PROVIDER, "replies break off before any text", actions=RETRY, operator=_PROVIDER, example={"cause": "no_content", "tools_done": []})  # fmt: skip
class BrokenBeforeText(Doubted):
    """Nothing came of a reply, or the connection broke before any of it, also on the other ways."""

    def text(self) -> str:
        what = self.told("The model did not reply: {why}{spent}.")
        return say(what, self.left_out, self.work, self.cut, self.later)


@ends(ExitCode.BROKEN_IN_TEXT, ExitClass.PROVIDER, "replies break off in the middle of their text", operator=_PROVIDER, example={"cause": "dropped", "attempts": 3})  # fmt: skip
class BrokenInText(Failed):
    """The stream broke in the text, and going on from there failed as well."""

    unclear: bool = False
    """Nobody knows whether the reply on screen is whole: it reads so, or the model had nothing to add."""

    def text(self) -> str:
        what = sentence("The reply above is cut short: {why}, and going on from there failed{spent}.")
        if self.unclear:
            what = sentence("Whether the reply above is complete is not clear: {why}, and going on from there brought nothing more{spent}.")  # fmt: skip
        return say(speak(what, why=self.why(), spent=self.spent), self.work, CONTINUE)


@ends(ExitCode.BROKEN_IN_TOOL_CALL, ExitClass.PROVIDER, "replies break off inside a tool call", operator=_LARGE_CALLS, example={"attempts": 3, "tools_dropped": ["write_file"]})  # fmt: skip
class BrokenInToolCall(Failed):
    """The stream broke inside a tool call. What is half there is never executed."""

    chars: int = 0
    """How much of the call's arguments had arrived."""

    def text(self) -> str:
        large = self.cause is not BreakCause.UNREADABLE_CALL and self.chars >= 1_500  # else it is not for its size
        return say(self.told("The model's reply broke off inside a tool call ({dropped}): {why}{spent}."), self.not_executed, speak("Ask for the rest in smaller pieces, or say “continue”.") if large else CONTINUE)  # fmt: skip


BREAKS_OFF = sentence("the call of {tool} breaks off while its arguments arrive")
"""The one stall that is known again."""


@ends(ExitCode.SAME_STALL_AGAIN, ExitClass.PROVIDER, "the same tool call stalls again and again", actions=WHY, operator=_LARGE_CALLS,
      example={"pattern": "the call of write_file breaks off", "tried": ["the same call again", "advice to send smaller pieces"]})  # fmt: skip
class SameStallAgain(Failed):
    """The same tool's call stalled for the third time or more, in this turn or in earlier ones, and all that there is was tried."""

    pattern: str = ""
    count: int = 0
    tried: tuple[str, ...] = ()

    def text(self) -> str:
        return say(
            speak(
                "The same stall came back: {pattern}, {times} by now.",
                pattern=speak(BREAKS_OFF, tool=self.tool) if self.tool else known_sentence(self.pattern),
                times=notices.times(self.count),
            ),
            speak("Tried: {what}.", what=", ".join(map(known_sentence, self.tried))) if self.tried else "",
            self.work,
            self.told(
                "Trying the same again will most likely stall again. Ask for a smaller piece of the work, for another way to do it, or for the text here in the chat. {tool} stays on offer; where this conversation is remembered, the next message begins with the advice to send its calls in smaller pieces."
            ),
        )


@ends(ExitCode.EMPTY_REPLY, ExitClass.PROVIDER, "the model answers with nothing", actions=RETRY, operator=_SAYS_NOTHING)
class EmptyReply(Doubted):
    """The model returned nothing at all."""

    def text(self) -> str:
        what = self.told("The model returned an empty reply{spent}. There is no answer.")
        return say(what, self.left_out, self.work, self.later)


@ends(ExitCode.EMPTY_AFTER_TOOLS, ExitClass.PROVIDER, "the model says nothing after its tools", operator=_SAYS_NOTHING, example={"tool": "", "text_shown": True})  # fmt: skip
class EmptyAfterTools(Failed):
    """Tools ran, and then the model returned nothing. What it said before is no answer."""

    def text(self) -> str:
        last = self.tool or "".join(self.tools_done[-1:])
        return say(
            speak_many(
                "The task is not finished: after {count} step (last tool: {last}) the model returned nothing{spent}.",
                "The task is not finished: after {count} steps (last tool: {last}) the model returned nothing{spent}.",
                self.steps,
                last=last,
                spent=self.spent,
            ),
            self.work,
            speak("The text above is progress, not the answer.") if self.text_shown else "",
            CONTINUE,
        )


@ends(ExitCode.THINKING_ONLY, ExitClass.PROVIDER, "the model thinks and does not answer", operator=_SAYS_NOTHING)
class ThinkingOnly(Failed):
    """The model only reasoned."""

    def text(self) -> str:
        what = self.told("The model thought, but never replied{spent}. There is no answer.")
        return say(what, self.work, CONTINUE)


@ends(ExitCode.PROMISED_WITHOUT_ACTING, ExitClass.PROVIDER, "the model announces work and does not do it",
      operator="The model announces and does not act. Put a model first that is better at tool calls.",
      example={"announced": "Now dispatching task 5:"})  # fmt: skip
class PromisedWithoutActing(Failed):
    """The model announced work and did not do it, also when it was asked to."""

    announced: str = ""

    def text(self) -> str:
        announced = self.announced
        what = speak("The model announced “{what}” and then did nothing, also after being asked to go on.", what=announced)  # fmt: skip
        return say(what, speak("Nothing is running, and nothing more will come by itself."), self.work, CONTINUE)


_OUTPUT = "Raise [model] max_output_tokens (or the limit that the client asks for)."


@ends(ExitCode.CUT_BY_LENGTH, ExitClass.LIMIT, "answers are cut at the output limit", http=200, operator=_OUTPUT, example={"tools_done": []})  # fmt: skip
class CutByLength(Cut):
    """The text reached the model's output limit."""

    unclear: bool = False
    """As in `BrokenInText`."""

    def by_the_model(self) -> str:
        what = sentence("The reply is cut: the model reached its output limit, and going on from there did not bring it to an end{spent}.")  # fmt: skip
        if self.unclear:
            what = sentence("Whether the reply above is complete is not clear: the model reached its output limit, and going on from there brought nothing more{spent}.")  # fmt: skip
        elif self.limit_was_asked:
            what = sentence("The reply is cut: the model reached its output limit that the request asked for.")
        return say(speak(what, spent=self.spent), self.work, CONTINUE)


@ends(ExitCode.TOOL_CALL_CUT_BY_LENGTH, ExitClass.LIMIT, "tool calls are cut at the output limit", http=200, operator=_OUTPUT, example={"attempts": 3, "tools_dropped": ["write_file"]})  # fmt: skip
class ToolCallCutByLength(Cut):
    """A tool call reached the model's output limit."""

    def by_the_model(self) -> str:
        what = self.told("The model reached its output limit inside a tool call ({dropped}){spent}.")
        smaller = speak("Ask for the work in smaller pieces.")
        return say(what, self.not_executed, speak("Ask for the rest in smaller pieces.") if self.ran else smaller)


# ---------------------------------------------------------------------- what the provider's answer decided

_FILTER = "The provider's content filter said no. Nothing to mend here, unless the system prompt provokes it."
_NO_TLS = (BreakCause.BAD_CERTIFICATE, BreakCause.NOT_TLS, BreakCause.WANTS_TLS)
_OUT_OF_REACH = (
    BreakCause.UNREACHABLE, BreakCause.CONNECTION_REFUSED, BreakCause.UNKNOWN_NAME, BreakCause.NOT_CONNECTED, BreakCause.BY_PROXY
)  # fmt: skip
_OUTGROWN = "Conversations outgrow the model. Set [model] context_tokens to its real size, or take a larger model."


@ends(ExitCode.REFUSED, ExitClass.REFUSED, "the provider's filter refuses to answer", actions=WHY, operator=_FILTER, example={"tools_done": []})  # fmt: skip
class Refused(Failed):
    """The provider's content filter refused the request."""

    def text(self) -> str:
        what = speak("The provider's content filter refused this request; there is no answer.")
        return say(what, self.work, self.cut, self.differently)


@ends(ExitCode.REFUSED_MIDWAY, ExitClass.REFUSED, "the provider's filter stops answers midway", actions=WHY, operator=_FILTER, example={"tools_done": []})  # fmt: skip
class RefusedMidway(Exit):
    """The provider's content filter stopped a reply on its way."""

    def text(self) -> str:
        return say(speak("The provider's content filter stopped the reply above before its end."), self.work)


@ends(ExitCode.RATE_LIMITED, ExitClass.PROVIDER, "the provider's rate limit is hit", http=429, actions=RETRY,
      operator="Over the provider's limits. Ask for higher ones, add a key or a fallback model, or see who asks so much.",
      example={"status": 429, "retry_after_seconds": 600, "tools_done": []})  # fmt: skip
class RateLimited(Failed):
    """The provider answered 429, longer than is waited for."""

    def text(self) -> str:
        when = speak("Try again in a minute or two.")
        if self.retry_after_seconds:
            when = speak("It says to try again in {duration}.", duration=duration(self.retry_after_seconds))
        rest = notices.ONLY_THE_REST_THEN if self.ran else ""
        what = self.told("The provider's rate limit was hit (HTTP 429){spent}.")
        return say(what, when, self.work, self.cut, rest)


@ends(ExitCode.PROVIDER_DOWN, ExitClass.PROVIDER, "the model is not available", http=503, actions=RETRY, operator=_PROVIDER,
      example={"cause": "server_error", "status": 503, "seconds": 15, "tools_done": []})  # fmt: skip
class ProviderDown(Doubted):
    """The provider cannot be reached, or answers with errors."""

    def text(self) -> str:
        waited = self.told(", {seconds} s in all") if self.seconds else ""
        what = speak("The model is not available: {why}{spent}{waited}.", why=self.why(), spent=self.spent, waited=waited)  # fmt: skip
        look = speak("If this goes on, whoever runs this gateway has to look at the model's address.")
        advice = say(self.later, look if self.cause in _OUT_OF_REACH and self.detail not in shortage.SHORTAGES else "")
        return say(what, self.left_out, self.work, self.cut, notices.BY_OPERATOR if self.cause in _NO_TLS else advice)

    def offers(self) -> tuple[Action, ...]:
        return WHY if self.cause in _NO_TLS else RETRY


@ends(ExitCode.PROVIDER_GARBAGE, ExitClass.PROVIDER, "what answers is no chat completion", actions=RETRY,
      operator="The answer is no chat completion. Is base_url right (often it must end in /v1)? `outspoken doctor` looks.",
      example={"status": 200, "attempts": 1, "tools_done": []})  # fmt: skip
class ProviderGarbage(Doubted):
    """What answers is no chat completion."""

    def text(self) -> str:
        where = status_words(self.status) + self.spent
        what = speak("The model's address answered with something that is no chat completion{where}.", where=where)
        return say(what, self.left_out, self.work, self.cut, speak("If this goes on, the configured base URL may be wrong."))  # fmt: skip


@ends(ExitCode.NOT_AUTHORISED, ExitClass.PROVIDER, "the provider refuses the key", http=401, actions=WHY,
      operator="The key is refused. Renew it (`outspoken setup model`) and see that it may use this model.", example={"status": 401, "tools_done": []})  # fmt: skip
class NotAuthorised(Misset):
    """The provider refuses the key, and there is no other one."""

    elsewhere = BreakCause.REGION
    what = sentence("The provider did not accept our key or does not allow this model{said}.")
    advice = sentence("Whoever runs this gateway has to check the key; asking again will not help before that.")


@ends(
      ExitCode.PAYMENT_REQUIRED, ExitClass.PROVIDER, "the provider wants money", http=402, actions=WHY, operator="The provider wants money: top up the account, or add a key of another one.",
      example={"status": 402, "tools_done": []})  # fmt: skip
class PaymentRequired(Misset):
    """The provider wants money."""

    what = sentence("The provider asks for payment: the account or the key has no credit left{said}.")
    advice = sentence("Whoever runs this gateway has to top it up, or to raise its limit.")


@ends(ExitCode.MODEL_NOT_FOUND, ExitClass.PROVIDER, "the provider does not know the model", http=404, actions=WHY,
      operator="There is no such model at this address. Correct [model] name; `outspoken doctor` shows which there are.",
      example={"status": 404, "tools_done": []})  # fmt: skip
class ModelNotFound(Misset):
    """The provider does not know the model."""

    elsewhere = BreakCause.NO_ROUTE
    what = sentence("The provider does not know the model{model}{said}.")
    advice = sentence("Whoever runs this gateway has to set the model's name or address right.")


@ends(ExitCode.BAD_REQUEST, ExitClass.PROVIDER, "the provider refuses the request", http=400, actions=WHY,
      operator="The provider refuses the request: `outspoken explain TURN --show-text` has its words. In one conversation alone "
          "it is something in its history, and /new (or /undo) ends that; everywhere it is often an option in extra_body.",
      example={"status": 400, "attempts": 1, "detail": "temperature must be at most 1", "tools_done": []})  # fmt: skip
class BadRequest(Failed):
    """The provider refuses the request itself, so it is not repeated."""

    def text(self) -> str:
        again = speak("It was not repeated.")
        if self.attempts > 1:
            again = speak_many("Asking again in other ways did not help ({count} attempt).", "Asking again in other ways did not help ({count} attempts).", self.attempts)  # fmt: skip
        advice = sentence("Put it differently, or {anew}.")
        if self.ran:
            advice = sentence("Ask for the rest in other words, or {anew}.")
        return say(self.told("The provider did not accept the request{said}."), again, self.work, self.cut, notices.instead(advice))  # fmt: skip


@ends(ExitCode.CONTEXT_OVERFLOW, ExitClass.LIMIT, "conversations outgrow the model's context", http=400, actions=WHY, operator=_OUTGROWN, example={"size": 131_000, "tools_done": []})  # fmt: skip
class ContextOverflow(TooMuch):
    """The conversation does not fit into the model's context, also shortened."""

    by_itself = sentence("This message, with the instructions and tools that go with each request, is more than the model can read{about}.")  # fmt: skip
    in_all = sentence("The conversation has grown larger than the model can read{about}, also after it was shortened.")
    advice = sentence("{anew_first}, or send less at once.")


@ends(ExitCode.REQUEST_TOO_LARGE, ExitClass.LIMIT, "requests are larger than the provider takes", http=413, actions=WHY, operator=_OUTGROWN, example={"size": 131_000, "status": 413, "tools_done": []})  # fmt: skip
class RequestTooLarge(TooMuch):
    """The request has too many bytes for the provider, also shortened."""

    by_itself = sentence("This message, with the instructions and tools that go with each request, is larger than the provider takes{about}{status}.")  # fmt: skip
    in_all = sentence("The request{about} is larger than the provider takes{status}, also after it was shortened.")
    advice = sentence("Send less at once, or {anew}.")


# ---------------------------------------------------------------------- loops, and limits of a turn

_LOOPS = (
    "See with `outspoken replay TURN` what the tool returned: a tool that cannot work is better left out of [tools]."
)
_BAD_AT_CALLS = "The model is bad at tool calls. Put another model first, or offer it fewer tools."


@ends(ExitCode.UNKNOWN_TOOL, ExitClass.LOOP, "the model asks for a tool that does not exist", actions=WHY, operator=_BAD_AT_CALLS, example={"tool": "save_file"})  # fmt: skip
class UnknownTool(Looped):
    """The model asks again and again for a tool that does not exist."""

    what = sentence("The model kept asking for a tool that does not exist ({tool}), {times}.")


@ends(ExitCode.UNREADABLE_ARGUMENTS, ExitClass.LOOP, "the model sends arguments that cannot be read", actions=WHY, operator=_BAD_AT_CALLS)  # fmt: skip
class UnreadableArguments(Looped):
    """The model sends again and again arguments that cannot be read."""

    what = sentence("The model kept sending arguments for {tool} that cannot be read, {times}.")


@ends(ExitCode.REPEATING_FAILING_CALL, ExitClass.LOOP, "the same call fails again and again", actions=WHY, operator=_LOOPS)  # fmt: skip
class RepeatingFailingCall(Looped):
    """The same call failed in the same way too often."""

    what = sentence("Stopped: the same call of {tool} failed {times} in the same way.")


@ends(ExitCode.FAILING_TOOL, ExitClass.LOOP, "a tool fails again and again", actions=WHY, operator=_LOOPS)
class FailingTool(Looped):
    """One tool failed too often in a row."""

    what = sentence("Stopped: {tool} failed {times} in a row.")


@ends(ExitCode.NO_PROGRESS, ExitClass.LOOP, "the same call is made again and again, with nothing new", actions=WHY, operator=_LOOPS)  # fmt: skip
class NoProgress(Looped):
    """The same reading call gave the same result too often, or the same call with an effect was made far too often."""

    what = sentence("Stopped: {tool} was called {times} in the same way.")


@ends(ExitCode.GOING_IN_CIRCLES, ExitClass.LOOP, "the model goes in circles", actions=WHY, operator=_LOOPS)
class GoingInCircles(Looped):
    """A cycle of calls went round too often."""

    what = sentence("Stopped: the model went round the same calls ({tool}) {times}.")


_LONG_TURNS = (
    "If these turns were useful, raise the limit ([model] max_steps, [model] turn_seconds); else see why they are long."
)


@ends(ExitCode.STEP_LIMIT, ExitClass.LIMIT, "turns reach their limit of steps", operator=_LONG_TURNS, example={"limit": 50})  # fmt: skip
class StepLimit(Exit):
    """So many model calls were made for one message."""

    limit: int = 0

    def text(self) -> str:
        what = speak_many("Stopped at the limit of {count} step for one message.", "Stopped at the limit of {count} steps for one message.", self.limit)  # fmt: skip
        return say(what, UNFINISHED, self.work, self.cut, notices.GO_ON)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile(Troubled):
    """A limit that passed; what kept the turn from coming to an end before, if it was trouble with the model, is its cause."""

    limit: int = 0

    @property
    def trouble(self) -> str:
        tried = ""
        if self.attempts:
            tried = speak_many(", and {count} attempt did not change that", ", and {count} attempts did not change that", self.attempts)  # fmt: skip
        return f": {self.why()}{tried}" if self.cause is not None else ""


@ends(ExitCode.TIME_LIMIT, ExitClass.LIMIT, "turns reach their time limit", http=504, operator=_LONG_TURNS, example={"limit": 1800})  # fmt: skip
class TimeLimit(Meanwhile):
    """So much time was spent on one message."""

    def text(self) -> str:
        what = speak("Stopped at the limit of {duration} for one message{trouble}.", duration=duration(self.limit), trouble=self.trouble)  # fmt: skip
        return say(what, UNFINISHED, self.work, self.cut, notices.GO_ON)


@ends(ExitCode.SPEND_LIMIT, ExitClass.LIMIT, "a budget is used up", http=429,
      operator="A limit of tokens or money was reached; `outspoken explain` names it. If these turns were useful, raise it ([budgets]).", example={
          "spend": {"budget": "day", "measure": "tokens", "limit": 1_000_000, "used": 1_003_211,
          "opens": "2026-11-22 00:00 UTC", "opens_in_seconds": 7500}})  # fmt: skip
class SpendLimit(Meanwhile):
    """A budget has no room for another model call."""

    spend: Spend | None = None
    """The budget that is used up; None: a turn of an earlier version, with `limit` and `count` in tokens."""
    count: int = 0

    def text(self) -> str:
        if self.spend is None:
            what = self.told("Stopped at the limit of {limit} tokens for one message ({count} used).")
            return say(what, UNFINISHED, self.work, self.cut, CONTINUE)
        before = self.told("Before that{trouble}.") if self.trouble else ""
        did = UNFINISHED if self.steps or self.text_shown else speak("There is no answer.")
        return say(spent_words(self.spend), before, did, self.work, self.cut, opens_words(self.spend))

    def offers(self) -> tuple[Action, ...]:
        return RETRY if self.spend is not None and self.spend.opens else AGAIN


# ---------------------------------------------------------------------- people ended it

_WANTED = "Nothing: a person wanted it so."


@ends(ExitCode.STOPPED, ExitClass.STOPPED, "stopped by a person", operator=_WANTED, example={"detail": "write_file"})
class Stopped(Exit):
    """A person stopped it."""

    detail: str = ""
    """What it was at."""
    forgotten: bool = False
    """It was stopped because its person is being forgotten."""

    def text(self) -> str:
        return say(notices.FORGOTTEN if self.forgotten else speak("Stopped, as you asked."), speak("Cancelled: {detail}.", detail=known_sentence(self.detail)) if self.detail else "", "" if self.ran else speak("No tool had run."), self.work)  # fmt: skip


@ends(ExitCode.SUPERSEDED, ExitClass.STOPPED, "replaced by a newer message", actions=(), operator=_WANTED)
class SupersededFacts(Exit):
    """A person's next message took its place."""

    def text(self) -> str:
        return say(speak("(Interrupted by your next message.)"), self.work)


@ends(ExitCode.APPROVAL_DENIED, ExitClass.STOPPED, "an approval was denied", http=403, actions=WHY, operator=_WANTED)
class ApprovalDenied(Exit):
    """A person said no to a tool."""

    def text(self) -> str:
        what = self.told("Ended: {tool} was not approved, and the task needs it. It was not executed.")
        return say(what, self.work)


@ends(ExitCode.APPROVAL_EXPIRED, ExitClass.STOPPED, "nobody decided about an approval in time", http=403,
      operator="Nobody answered the question in time. Raise [tools] approval_seconds if people need longer.", example={"limit": 600})  # fmt: skip
class ApprovalExpired(Exit):
    """Nobody said yes or no to a tool in time."""

    limit: int = 0
    """Seconds."""

    def text(self) -> str:
        what = speak("Ended: nobody approved {tool} within {duration}. It was not executed.", tool=self.tool, duration=duration(self.limit))  # fmt: skip
        return say(what, self.work, speak("Say “continue” to be asked again."))


# ---------------------------------------------------------------------- the gateway itself


@ends(ExitCode.INTERRUPTED_BY_RESTART, ExitClass.OURS, "turns were interrupted by a restart", http=503,
      operator="The process was restarted, and nothing safe was left to go on with. See why (memory? a deploy?) in the service manager's log.",
      example={"tools_unsure": ["write_file"]})  # fmt: skip
class InterruptedByRestart(Failed):
    """The gateway was restarted, and nothing safe was left to go on with: the turn's time was up by then, or restarts had broken off one step too often."""

    def text(self) -> str:
        if self.detail == notices.RESTORED:
            return speak("Set aside: {why}. See what there is of it before you ask for it again.", why=speak(notices.RESTORED))  # fmt: skip
        what = speak("The gateway was restarted while this was running; the task is not finished.")
        return say(what, self.work, self.cut, CONTINUE)


@ends(ExitCode.INTERNAL_ERROR, ExitClass.OURS, "a mistake in the gateway ended turns",
      operator="A mistake in the program. Find the reference in the log, and report it with `outspoken replay TURN --export FILE`.",
      example={"reference": "err_7k2m"})  # fmt: skip
class InternalError(Exit):
    """A mistake in outspoken."""

    reference: str = ""
    """Where the log has it."""
    detail: str = ""
    """Why it was set aside."""
    reason: NotStarted | None = None
    """What it was held to have come to, if that is known."""

    def text(self) -> str:
        if self.reason is NotStarted.GONE:
            return self.reason.said(detail=self.detail)
        if self.reason is NotStarted.DAMAGED:
            why = speak(notices.DAMAGED)
            return say(speak("Ended: {why} (reference {reference}).", why=why, reference=self.reference), speak("The task is not finished, and whether everything that is shown above was done is not known."), notices.AFTER_DAMAGE)  # fmt: skip
        if self.detail:
            advice = speak("Please tell whoever runs the gateway; say it in another way if you try again.")
            why = known_sentence(self.detail)
            what = speak("This was set aside: {detail} (reference {reference}).", detail=why, reference=self.reference)
            return say(what, UNFINISHED, advice)
        what = self.told("Something went wrong inside the gateway itself (reference {reference}).")
        tell = speak("Please tell whoever runs it; you can try again.")
        if self.ran:
            tell = say(speak("Please tell whoever runs it."), notices.ONLY_THE_REST)
        return say(what, UNFINISHED, self.work, self.cut, tell)


@ends(ExitCode.NOT_STARTED, ExitClass.NOT_STARTED, "turns could not begin", actions=RETRY,
      operator="Messages were not run: too many waited, or they were too old. See what held the queue up.",
      example={"reason": "queue_full", "tools_done": []})  # fmt: skip
class NeverStarted(Exit):
    """A message was accepted and could not be run."""

    reason: NotStarted | None = None
    count: int = 0
    """Messages that waited."""
    detail: str = ""

    def text(self) -> str:
        return (self.reason or NotStarted.SHUTTING_DOWN).said(self.count, self.detail)


if missing := set(ExitCode) - set(EXITS):
    raise TypeError(f"an exit without a record in exits.py: {', '.join(sorted(missing))}")
