"""The words for every exit: what the gateway itself says to a person.

Theory. A notice tells what happened, what was done and what was not, and what the person can do next. It is built by one
exhaustive `match` over `ExitCode`, so a new exit without words does not type-check. Notices are never stored as the model's
words.

Laws (tests/agent_core/test_notices.py): every code but the clean ones has a notice; each names what the rule for its code says
it must name; dropped tools are always said to be not executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, assert_never

from agent_core.judging.leftout import Kind, Suspect
from agent_core.tools.base import ToolStatus
from agent_core.turn.exits import Action, BreakCause, Budget, Exit, ExitCode, Facts, Measure, Notice, NotStarted, Spend


def cause_words(facts: Facts) -> str:
    """The cause of a break as part of a sentence, for a person."""
    match facts.cause:
        case BreakCause.NO_CONTENT:
            return f"nothing came for {facts.seconds} s"
        case BreakCause.STALLED:
            return f"the stream went quiet for {facts.seconds} s" if facts.seconds else "the stream went quiet"
        case BreakCause.DROPPED:
            return "the connection was lost"
        case BreakCause.ENDED_EARLY:
            return "the stream ended before the reply was complete"
        case BreakCause.GARBAGE:
            return "what came was no readable reply"
        case BreakCause.UNREADABLE_CALL:
            return "what came of it cannot be read"
        case BreakCause.NO_CALL:
            return "its end speaks of a tool call, and there is none"
        case BreakCause.ERROR_IN_STREAM:
            return "the provider reported an error in the middle of the stream" + _detail(facts)
        case BreakCause.UNREACHABLE:
            return "the provider could not be reached" + _detail(facts)
        case (
            BreakCause.CONNECTION_REFUSED
            | BreakCause.UNKNOWN_NAME
            | BreakCause.BAD_CERTIFICATE
            | BreakCause.NOT_TLS
            | BreakCause.WANTS_TLS
            | BreakCause.NOT_CONNECTED
            | BreakCause.REGION
            | BreakCause.NO_ROUTE
            | BreakCause.BY_PROXY
        ):
            return _address_words(facts.cause, facts)
        case BreakCause.RATE_LIMITED:
            return "the provider's rate limit was hit"
        case BreakCause.SERVER_ERROR:
            return "the provider answered with a server error" + _status(facts)
        case BreakCause.UNAUTHORISED:
            return "the provider did not accept the key" + _status(facts)
        case BreakCause.FORBIDDEN:
            return "the provider does not allow this" + _status(facts)
        case BreakCause.PAYMENT_REQUIRED:
            return "the provider asks for payment" + _status(facts)
        case BreakCause.NOT_FOUND:
            return "the provider does not know the model or the address" + _status(facts)
        case BreakCause.BAD_REQUEST:
            return "the provider did not accept the request" + _status(facts)
        case BreakCause.CONTEXT_OVERFLOW:
            return "the conversation is larger than the model can read"
        case BreakCause.TOO_LARGE:
            return "the request is larger than the provider takes" + _status(facts)
        case BreakCause.REFUSED:
            return "the provider's content filter refused"
        case BreakCause.REPEATING:
            return "the model only repeated itself"
        case BreakCause.TOO_LONG:
            return "the reply grew longer than outspoken takes"
        case BreakCause.RESTARTED:
            return "outspoken itself was restarted"
        case None:
            return "the reply could not be completed"
        case _:
            assert_never(facts.cause)


_AddressCause: TypeAlias = Literal[
    BreakCause.CONNECTION_REFUSED,
    BreakCause.UNKNOWN_NAME,
    BreakCause.BAD_CERTIFICATE,
    BreakCause.NOT_TLS,
    BreakCause.WANTS_TLS,
    BreakCause.NOT_CONNECTED,
    BreakCause.REGION,
    BreakCause.NO_ROUTE,
    BreakCause.BY_PROXY,
]


def _address_words(cause: _AddressCause, facts: Facts) -> str:
    """Reasons that lie between the gateway and the provider."""
    match cause:
        case BreakCause.CONNECTION_REFUSED:
            return "nothing listens at the provider's address (the connection was refused)"
        case BreakCause.UNKNOWN_NAME:
            return "the name of the provider's server cannot be found"
        case BreakCause.BAD_CERTIFICATE:
            return "the certificate of the provider's server cannot be trusted" + _detail(facts)
        case BreakCause.NOT_TLS:
            return "the provider's address begins with https, but that port does not speak TLS"
        case BreakCause.WANTS_TLS:
            return "the provider's address begins with http, but that port wants TLS (https)"
        case BreakCause.NOT_CONNECTED:
            return "no connection to the provider came about in time"
        case BreakCause.REGION:
            return "the provider does not serve the country that this gateway calls from" + _status(facts)
        case BreakCause.NO_ROUTE:
            return "the server at the provider's address has no chat API there" + _status(facts)
        case BreakCause.BY_PROXY:
            return "a proxy or firewall answered in the provider's place" + _status(facts)


def _detail(facts: Facts) -> str:
    return f" ({facts.detail})" if facts.detail else ""


def _status(facts: Facts) -> str:
    return f" (HTTP {facts.status})" if facts.status else ""


def _names(names: Sequence[str]) -> str:
    """Tool names for a sentence: repeated ones counted, at most six shown."""
    counted: dict[str, int] = {}
    for name in names:
        counted[name or "an unnamed tool"] = counted.get(name or "an unnamed tool", 0) + 1
    shown = [f"{name} ×{count}" if count > 1 else name for name, count in list(counted.items())[:6]]
    if len(counted) > 6:
        shown.append(f"{len(counted) - 6} more")
    return ", ".join(shown)


def _times(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _spent(facts: Facts) -> str:
    return f" after {_times(facts.attempts, 'attempt')}" if facts.attempts > 1 else ""


def _work(facts: Facts) -> str:
    """What had been done and what was not, for any exit; empty if no tool was involved."""
    parts: list[str] = []
    if facts.tools_done:
        parts.append(f"Done before that: {_names(facts.tools_done)}.")
    if facts.tools_dropped:
        parts.append(f"Not executed: {_names(facts.tools_dropped)}.")
    if facts.tools_unsure:
        parts.append(f"May or may not have run: {_names(facts.tools_unsure)} – check before you repeat it.")
    return " ".join(parts)


def unsure_words(tool: str, status: ToolStatus) -> str:
    """What people read about a call whose outcome nobody knows, while the turn goes on."""
    why = "it did not finish in time" if status is ToolStatus.TIMED_OUT else "the gateway was restarted while it ran"
    return f"{tool} may or may not have been done: {why}. The reply goes on from there; check before it is repeated."


SMALL_CHARS = 1_500
"""A call with fewer characters of arguments did not break off for its size."""


_REFUSALS = frozenset({BreakCause.BAD_REQUEST, BreakCause.REFUSED, BreakCause.TOO_LARGE, BreakCause.CONTEXT_OVERFLOW})
"""Failures that say that it is what was sent."""
_MEDIA_WORDS = {Kind.PICTURE: "picture", Kind.SOUND: "recording", Kind.FILE: "file"}


def left_out_words(left: Sequence[Suspect], model: str, endpoint: str, cause: BreakCause | None) -> str:
    """What was left out of what a model is sent, so that the conversation can go on."""
    said: list[str] = []
    doubted = cause is not None and cause not in _REFUSALS
    for kind, word in _MEDIA_WORDS.items():
        mine = [one for one in left if one.kind is kind]
        if any(not one.key for one in mine):
            whose = "yours" if any(one.now for one in mine) else "the earlier ones"
            said.append(f"The model {model} at {endpoint} can't take {word}s; I left {whose} out.")
        elif mine:
            what = f"a {word}" if len(mine) == 1 else f"{len(mine)} {word}s"
            whose = "of yours" if any(one.now for one in mine) else "from earlier on"
            verb = "replied only without" if doubted else "did not accept"
            said.append(f"{model} {verb} {what} {whose}; I left {'it' if len(mine) == 1 else 'them'} out.")
    messages = [one for one in left if one.kind is Kind.MESSAGE]
    if messages and doubted:
        what = "an earlier message" if len(messages) == 1 else f"{len(messages)} earlier messages"
        it = "it" if len(messages) == 1 else "them"
        said.append(f"{model} replied only without {what}; I left {it} out so that this can go on.")
    elif messages:
        why = (
            "is too long for"
            if cause in _TOO_MUCH
            else "was refused by the content filter of"
            if cause is BreakCause.REFUSED
            else "was not accepted by"
        )
        said.append(_left_messages(messages, why, model))
    return " ".join(said)


_TOO_MUCH = frozenset({BreakCause.TOO_LARGE, BreakCause.CONTEXT_OVERFLOW})


def _left_messages(messages: Sequence[Suspect], why: str, model: str) -> str:
    if len(messages) > 1:
        which = "messages of this turn" if all(one.now for one in messages) else "earlier messages"
        return f"Something in {len(messages)} {which} {why} {model}; I left them out so that this can go on."
    if messages[0].now and messages[0].role == "assistant":
        return f"What this reply had said so far {why} {model}; I asked again without it."
    what = "A tool's result" if messages[0].role == "tool" else "An earlier message"
    return f"{what} {why} {model}; I left it out so that this can go on."


def _without(facts: Facts) -> str:
    """What the model was asked without, in vain."""
    return f"Asked without {facts.without}, it did not reply either." if facts.without else ""


def _was_large(facts: Facts) -> bool:
    """Whether smaller pieces can help: what broke off was long, and broke off on its way."""
    return facts.cause is not BreakCause.UNREADABLE_CALL and facts.chars >= SMALL_CHARS


def _cut(facts: Facts) -> str:
    return "The reply above is cut short." if facts.text_shown else ""


def _say(*parts: str) -> str:
    return " ".join(part for part in parts if part)


_AGAIN = (Action.CONTINUE, Action.RETRY, Action.WHY)
_RETRY = (Action.RETRY, Action.WHY)
_WHY = (Action.WHY,)
_CONTINUE = "Say “continue” to let it try again from here."
A_MOMENT_SECONDS = 60
"""Who asks for a longer pause than that is not asked again "in a moment"."""
_LATER = "Send it again in a moment; nothing is running now."
_ONLY_THE_REST_THEN = "Then say “continue” to have only the rest done."
_ONLY_THE_REST = "Say “continue” in a moment to have only the rest done: the whole, sent again, may do twice what is done. Nothing is running now."
_BY_OPERATOR = "Asking again will not help before whoever runs this gateway has set that right."
_IF_IT_STAYS = "If it stays so, whoever runs this gateway has to look at the model's address."


def _differently(facts: Facts) -> str:
    return "Ask for the rest in other words." if _ran(facts) else "Put it differently."


def _later(facts: Facts) -> str:
    """When to try again, and what: not again what was done."""
    if facts.retry_after_seconds >= A_MOMENT_SECONDS:
        when = f"The provider says to try again in {duration(facts.retry_after_seconds)}."
        return f"{when} {_ONLY_THE_REST_THEN if _ran(facts) else 'Nothing is running now.'}"
    return _ONLY_THE_REST if _ran(facts) else _LATER


def _ran(facts: Facts) -> bool:
    """Tools have run, or may have: whoever sends the message again may have it done twice."""
    return bool(facts.tools_done or facts.tools_unsure)


def _down_advice(facts: Facts) -> str:
    """What can be done about a model that is not available."""
    match facts.cause:
        case BreakCause.BAD_CERTIFICATE | BreakCause.NOT_TLS | BreakCause.WANTS_TLS:
            return _BY_OPERATOR
        case (
            BreakCause.UNREACHABLE
            | BreakCause.CONNECTION_REFUSED
            | BreakCause.UNKNOWN_NAME
            | BreakCause.NOT_CONNECTED
            | BreakCause.BY_PROXY
        ):
            return f"{_later(facts)} {_IF_IT_STAYS}"
        case _:
            return _later(facts)


def notice_for(ending: Exit) -> Notice | None:
    """The words for an exit, or None for the clean ones.

    The text says what happened, what was done and not done, and what the person can do next. Nothing that has been done is offered to be
    done again: after tools, to go on takes the place of to retry.
    """
    notice = _notice(ending)
    if notice is None or Action.RETRY not in notice.actions or not _ran(ending.facts):
        return notice
    kept = tuple(action for action in notice.actions if action not in (Action.RETRY, Action.CONTINUE))
    return replace(notice, actions=(Action.CONTINUE, *kept))


def _notice(ending: Exit) -> Notice | None:
    facts = ending.facts
    match ending.code:
        case ExitCode.ANSWERED | ExitCode.HANDED_TO_CLIENT:
            return None
        case (
            ExitCode.BROKEN_BEFORE_TEXT
            | ExitCode.BROKEN_IN_TEXT
            | ExitCode.BROKEN_IN_TOOL_CALL
            | ExitCode.SAME_STALL_AGAIN
            | ExitCode.EMPTY_REPLY
            | ExitCode.EMPTY_AFTER_TOOLS
            | ExitCode.THINKING_ONLY
            | ExitCode.PROMISED_WITHOUT_ACTING
        ):
            return _broken_reply(ending.code, facts)
        case ExitCode.CUT_BY_LENGTH | ExitCode.TOOL_CALL_CUT_BY_LENGTH:
            return _cut_reply(ending.code, facts)
        case (
            ExitCode.RATE_LIMITED
            | ExitCode.PROVIDER_DOWN
            | ExitCode.PROVIDER_GARBAGE
            | ExitCode.BAD_REQUEST
            | ExitCode.CONTEXT_OVERFLOW
            | ExitCode.REQUEST_TOO_LARGE
            | ExitCode.REFUSED
            | ExitCode.REFUSED_MIDWAY
        ):
            return _provider(ending.code, facts)
        case ExitCode.NOT_AUTHORISED | ExitCode.PAYMENT_REQUIRED | ExitCode.MODEL_NOT_FOUND:
            return _operator(ending.code, facts)
        case (
            ExitCode.UNKNOWN_TOOL
            | ExitCode.UNREADABLE_ARGUMENTS
            | ExitCode.REPEATING_FAILING_CALL
            | ExitCode.FAILING_TOOL
            | ExitCode.NO_PROGRESS
            | ExitCode.GOING_IN_CIRCLES
            | ExitCode.STEP_LIMIT
            | ExitCode.TIME_LIMIT
            | ExitCode.SPEND_LIMIT
        ):
            return _limit(ending.code, facts)
        case (
            ExitCode.STOPPED
            | ExitCode.SUPERSEDED
            | ExitCode.APPROVAL_DENIED
            | ExitCode.APPROVAL_EXPIRED
            | ExitCode.INTERRUPTED_BY_RESTART
            | ExitCode.INTERNAL_ERROR
            | ExitCode.NOT_STARTED
        ):
            return _ours(ending.code, facts)
        case _:
            assert_never(ending.code)


_BrokenCode: TypeAlias = Literal[
    ExitCode.BROKEN_BEFORE_TEXT,
    ExitCode.BROKEN_IN_TEXT,
    ExitCode.BROKEN_IN_TOOL_CALL,
    ExitCode.SAME_STALL_AGAIN,
    ExitCode.EMPTY_REPLY,
    ExitCode.EMPTY_AFTER_TOOLS,
    ExitCode.THINKING_ONLY,
    ExitCode.PROMISED_WITHOUT_ACTING,
]


def _broken_off(facts: Facts) -> str:
    """What is known of a text behind which no end came."""
    why = cause_words(facts)
    if facts.unclear:
        return f"Whether the reply above is complete is not clear: {why}, and going on from there brought nothing more{_spent(facts)}."
    return f"The reply above is cut short: {why}, and going on from there failed{_spent(facts)}."


def _broken_reply(code: _BrokenCode, facts: Facts) -> Notice:
    """Endings in which the model's reply itself did not come to a good end."""
    dropped = _names(facts.tools_dropped or ("",))
    match code:
        case ExitCode.BROKEN_BEFORE_TEXT:
            text = _say(
                f"The model did not reply: {cause_words(facts)}{_spent(facts)}.",
                _without(facts),
                _work(facts),
                _cut(facts),
                _later(facts),
            )
            return Notice(text, _RETRY)
        case ExitCode.BROKEN_IN_TEXT:
            return Notice(_say(_broken_off(facts), _work(facts), _CONTINUE), _AGAIN)
        case ExitCode.BROKEN_IN_TOOL_CALL:
            text = _say(
                f"The model's reply broke off inside a tool call ({dropped}): {cause_words(facts)}{_spent(facts)}.",
                f"The call was not executed ({dropped}); the task is not finished.",
                _work(replace(facts, tools_dropped=())),
                "Ask for the rest in smaller pieces, or say “continue”." if _was_large(facts) else _CONTINUE,
            )
            return Notice(text, _AGAIN)
        case ExitCode.SAME_STALL_AGAIN:
            text = _say(
                f"The same stall came back: {facts.pattern}, {_times(facts.count, 'time')} by now.",
                f"Tried: {', '.join(facts.tried)}." if facts.tried else "",
                _work(facts),
                "Trying the same again will most likely stall again. Ask for a smaller piece of the work, for another way to "
                f"do it, or for the text here in the chat. {facts.tool} stays on offer; where this conversation is remembered, the next "
                "message begins with the advice to send its calls in smaller pieces.",
            )
            return Notice(text, _WHY)
        case ExitCode.EMPTY_REPLY:
            text = _say(
                f"The model returned an empty reply{_spent(facts)}. There is no answer.",
                _without(facts),
                _work(facts),
                _later(facts),
            )
            return Notice(text, _RETRY)
        case ExitCode.EMPTY_AFTER_TOOLS:
            last = facts.tool or "".join(facts.tools_done[-1:])
            text = _say(
                f"The task is not finished: after {_times(facts.steps, 'step')} (last tool: {last}) the model returned "
                f"nothing{_spent(facts)}.",
                _work(facts),
                "The text above is progress, not the answer." if facts.text_shown else "",
                _CONTINUE,
            )
            return Notice(text, _AGAIN)
        case ExitCode.THINKING_ONLY:
            text = _say(
                f"The model thought, but never replied{_spent(facts)}. There is no answer.", _work(facts), _CONTINUE
            )
            return Notice(text, _AGAIN)
        case ExitCode.PROMISED_WITHOUT_ACTING:
            text = _say(
                f"The model announced “{facts.announced}” and then did nothing, also after being asked to go on.",
                "Nothing is running, and nothing more will come by itself.",
                _work(facts),
                _CONTINUE,
            )
            return Notice(text, _AGAIN)


_CutCode: TypeAlias = Literal[ExitCode.CUT_BY_LENGTH, ExitCode.TOOL_CALL_CUT_BY_LENGTH]


def _cut_reply(code: _CutCode, facts: Facts) -> Notice:
    """Endings at an output limit, whoever's it is."""
    dropped = _names(facts.tools_dropped or ("",))
    if facts.cause is BreakCause.TOO_LONG:
        text = _say(
            f"The reply was stopped at {facts.limit:,} characters (thoughts and tool calls included): that is outspoken's own limit "
            "for one reply, not the model's.",
            _work(facts),
            "Ask for the rest in parts." if _ran(facts) else "Ask for the work in parts.",
        )
        return Notice(text, _AGAIN)
    match code:
        case ExitCode.CUT_BY_LENGTH:
            if facts.unclear:
                text = _say(
                    "Whether the reply above is complete is not clear: the model reached its output limit, and going on from there "
                    f"brought nothing more{_spent(facts)}.",
                    _work(facts),
                    _CONTINUE,
                )
                return Notice(text, _AGAIN)
            asked = " that the request asked for" if facts.limit_was_asked else ""
            tried = (
                "" if facts.limit_was_asked else f", and going on from there did not bring it to an end{_spent(facts)}"
            )
            text = _say(f"The reply is cut: the model reached its output limit{asked}{tried}.", _work(facts), _CONTINUE)
            return Notice(text, _AGAIN)
        case ExitCode.TOOL_CALL_CUT_BY_LENGTH:
            text = _say(
                f"The model reached its output limit inside a tool call ({dropped}){_spent(facts)}.",
                f"The call was not executed ({dropped}); the task is not finished.",
                _work(replace(facts, tools_dropped=())),
                "Ask for the rest in smaller pieces." if _ran(facts) else "Ask for the work in smaller pieces.",
            )
            return Notice(text, _AGAIN)


_ProviderCode: TypeAlias = Literal[
    ExitCode.RATE_LIMITED,
    ExitCode.PROVIDER_DOWN,
    ExitCode.PROVIDER_GARBAGE,
    ExitCode.BAD_REQUEST,
    ExitCode.CONTEXT_OVERFLOW,
    ExitCode.REQUEST_TOO_LARGE,
    ExitCode.REFUSED,
    ExitCode.REFUSED_MIDWAY,
]


def _provider(code: _ProviderCode, facts: Facts) -> Notice:
    """Endings that the provider's answer decided."""
    work = _say(_work(facts), _cut(facts))
    match code:
        case ExitCode.RATE_LIMITED:
            when = (
                f"It says to try again in {duration(facts.retry_after_seconds)}."
                if facts.retry_after_seconds
                else "Try again in a minute or two."
            )
            work = _say(work, _ONLY_THE_REST_THEN) if _ran(facts) else work
            return Notice(_say(f"The provider's rate limit was hit (HTTP 429){_spent(facts)}.", when, work), _RETRY)
        case ExitCode.PROVIDER_DOWN:
            waited = f", {facts.seconds} s in all" if facts.seconds else ""
            what = f"The model is not available: {cause_words(facts)}{_spent(facts)}{waited}."
            advice = _down_advice(facts)
            return Notice(_say(what, _without(facts), work, advice), _WHY if advice is _BY_OPERATOR else _RETRY)
        case ExitCode.PROVIDER_GARBAGE:
            text = _say(
                f"The model's address answered with something that is no chat completion{_status(facts)}{_spent(facts)}.",
                _without(facts),
                work,
                "If it stays so, the configured base URL may be wrong.",
            )
            return Notice(text, _RETRY)
        case ExitCode.BAD_REQUEST:
            text = _say(
                f"The provider did not accept the request{_status(facts)}{_detail(facts)}.",
                f"Asking again in other ways did not help ({_times(facts.attempts, 'attempt')})."
                if facts.attempts > 1
                else "It was not repeated.",
                work,
                f"{_differently(facts)[:-1]}, or start anew with /new.",
            )
            return Notice(text, _WHY)
        case ExitCode.CONTEXT_OVERFLOW:
            size = f" (about {facts.size} tokens)" if facts.size else ""
            if facts.alone:
                what = f"This message by itself is more than the model can read{size}."
                return Notice(_say(what, work, "Send it in parts, or shorter."), _WHY)
            text = _say(
                f"The conversation has grown larger than the model can read{size}, also after it was shortened.",
                work,
                "Start anew with /new, or send less at once.",
            )
            return Notice(text, _WHY)
        case ExitCode.REQUEST_TOO_LARGE:
            size = f" (about {facts.size} tokens)" if facts.size else ""
            if facts.alone:
                what = f"This message by itself is larger than the provider takes{size}{_status(facts)}."
                return Notice(_say(what, work, "Send it in parts, or shorter."), _WHY)
            text = _say(
                f"The request{size} is larger than the provider takes{_status(facts)}, also after it was shortened.",
                work,
                "Send less at once, or start anew with /new.",
            )
            return Notice(text, _WHY)
        case ExitCode.REFUSED:
            text = _say(
                "The provider's content filter refused this request; there is no answer.", work, _differently(facts)
            )
            return Notice(text, _WHY)
        case ExitCode.REFUSED_MIDWAY:
            text = _say("The provider's content filter stopped the reply above before its end.", _work(facts))
            return Notice(text, _WHY)


_OperatorCode: TypeAlias = Literal[ExitCode.NOT_AUTHORISED, ExitCode.PAYMENT_REQUIRED, ExitCode.MODEL_NOT_FOUND]


def _operator(code: _OperatorCode, facts: Facts) -> Notice:
    """Endings that only whoever runs the gateway can mend."""
    work = _say(_work(facts), _cut(facts))
    match code:
        case ExitCode.NOT_AUTHORISED if facts.cause is BreakCause.REGION:
            return Notice(_say(f"There is no answer: {cause_words(facts)}.", work, _BY_OPERATOR), _WHY)
        case ExitCode.NOT_AUTHORISED:
            return Notice(
                _say(
                    f"The provider did not accept our key or does not allow this model{_status(facts)}{_detail(facts)}.",
                    work,
                    "Whoever runs this gateway has to check the key; asking again will not help before that.",
                ),
                _WHY,
            )
        case ExitCode.PAYMENT_REQUIRED:
            return Notice(
                _say(
                    f"The provider asks for payment: the account or the key has no credit left{_status(facts)}{_detail(facts)}.",
                    work,
                    "Whoever runs this gateway has to top it up, or to raise its limit.",
                ),
                _WHY,
            )
        case ExitCode.MODEL_NOT_FOUND if facts.cause is BreakCause.NO_ROUTE:
            return Notice(_say(f"There is no answer: {cause_words(facts)}.", work, _BY_OPERATOR), _WHY)
        case ExitCode.MODEL_NOT_FOUND:
            model = f" “{facts.model}”" if facts.model else ""
            text = _say(
                f"The provider does not know the model{model}{_status(facts)}{_detail(facts)}.",
                work,
                "Whoever runs this gateway has to set the model's name or address right.",
            )
            return Notice(text, _WHY)


_LimitCode: TypeAlias = Literal[
    ExitCode.UNKNOWN_TOOL,
    ExitCode.UNREADABLE_ARGUMENTS,
    ExitCode.REPEATING_FAILING_CALL,
    ExitCode.FAILING_TOOL,
    ExitCode.NO_PROGRESS,
    ExitCode.GOING_IN_CIRCLES,
    ExitCode.STEP_LIMIT,
    ExitCode.TIME_LIMIT,
    ExitCode.SPEND_LIMIT,
]


def _limit(code: _LimitCode, facts: Facts) -> Notice:
    """Endings that a guardrail or a budget decided."""
    work = _work(facts)
    unfinished = "The task is not finished."
    match code:
        case ExitCode.UNKNOWN_TOOL:
            what = (
                f"The model kept asking for a tool that does not exist ({facts.tool}), {_times(facts.count, 'time')}."
            )
        case ExitCode.UNREADABLE_ARGUMENTS:
            what = (
                f"The model kept sending arguments for {facts.tool} that cannot be read, {_times(facts.count, 'time')}."
            )
        case ExitCode.REPEATING_FAILING_CALL:
            what = f"Stopped: the same call of {facts.tool} failed {_times(facts.count, 'time')} in the same way."
        case ExitCode.FAILING_TOOL:
            what = f"Stopped: {facts.tool} failed {_times(facts.count, 'time')} in a row."
        case ExitCode.NO_PROGRESS:
            what = f"Stopped: {facts.tool} was called {_times(facts.count, 'time')} in the same way."
        case ExitCode.GOING_IN_CIRCLES:
            what = f"Stopped: the model went round the same calls ({facts.tool}) {_times(facts.count, 'time')}."
        case ExitCode.STEP_LIMIT:
            what = f"Stopped at the limit of {_times(facts.limit, 'step')} for one message."
        case ExitCode.TIME_LIMIT:
            what = f"Stopped at the limit of {duration(facts.limit)} for one message{_meanwhile(facts)}."
        case ExitCode.SPEND_LIMIT:
            return _spend_limit(facts)
    if code in _REPEATING:
        return Notice(_say(what, unfinished, work, _cut(facts), _OTHERWISE), _WHY)
    return Notice(_say(what, unfinished, work, _cut(facts), "Say “continue” to go on from here."), _AGAIN)


_REPEATING = frozenset(
    {
        ExitCode.UNKNOWN_TOOL,
        ExitCode.UNREADABLE_ARGUMENTS,
        ExitCode.REPEATING_FAILING_CALL,
        ExitCode.FAILING_TOOL,
        ExitCode.NO_PROGRESS,
        ExitCode.GOING_IN_CIRCLES,
    }
)
_OTHERWISE = "Going on the same way would most likely end here again: say what should be done differently."


def _meanwhile(facts: Facts) -> str:
    """What kept a turn from coming to an end before its limit, if it was trouble with the model."""
    if facts.cause is None:
        return ""
    tried = f", and {_times(facts.attempts, 'attempt')} did not change that" if facts.attempts else ""
    return f": {cause_words(facts)}{tried}"


def _spend_limit(facts: Facts) -> Notice:
    spend = facts.spend
    if spend is None:  # a turn of an earlier version
        what = f"Stopped at the limit of {facts.limit} tokens for one message ({facts.count} used)."
        return Notice(_say(what, "The task is not finished.", _work(facts), _cut(facts), _CONTINUE), _AGAIN)
    did = "The task is not finished." if facts.steps or facts.text_shown else "There is no answer."
    before = f"Before that: {_meanwhile(facts)[2:]}." if facts.cause is not None else ""
    text = _say(spent_words(spend), before, did, _work(facts), _cut(facts), opens_words(spend))
    return Notice(text, _RETRY if spend.opens else _AGAIN)


def budget_words(budget: Budget) -> str:
    """A budget's name in a sentence."""
    match budget:
        case Budget.TURN:
            return "the budget for one message"
        case Budget.PERSON:
            return "your budget for today"
        case Budget.CHAT:
            return "this chat's budget for today"
        case Budget.HOUR:
            return "the gateway's budget for this hour"
        case Budget.DAY:
            return "the gateway's budget for today"
        case Budget.MONTH:
            return "the gateway's budget for this month"
        case _:
            assert_never(budget)


def amount_words(measure: Measure, amount: int, currency: str) -> str:
    """Tokens, or billionths of a currency, in words: 12,000 tokens, 0.37 EUR."""
    return f"{_figure(measure, amount)} {'tokens' if measure is Measure.TOKENS else currency}".strip()


def share_words(measure: Measure, amount: int, limit: int, currency: str) -> str:
    """How much of a limit: 300 of 1,000 tokens."""
    return f"{_figure(measure, amount)} of {amount_words(measure, limit, currency)}"


def _figure(measure: Measure, amount: int) -> str:
    match measure:
        case Measure.TOKENS:
            return f"{amount:,}"
        case Measure.MONEY:
            digits = 2 if not amount or amount >= 10**8 else 4
            return f"{amount / 10**9:,.{digits}f}"
        case _:
            assert_never(measure)


def spent_words(spend: Spend) -> str:
    """How a budget without room stands, as a sentence."""
    name = budget_words(spend.budget)
    name = name[:1].upper() + name[1:]
    used = share_words(spend.measure, spend.used, spend.limit, spend.currency)
    if spend.used < spend.limit:
        held = amount_words(spend.measure, spend.held, spend.currency)
        return f"{name} has no room just now: {used} are used, and {held} are held for calls under way."
    return f"{name} is used up ({used})."


def opens_words(spend: Spend) -> str:
    """When a budget without room opens again, as a sentence."""
    if spend.used < spend.limit:
        return "Try again in a minute, when those calls are done."
    if not spend.opens:
        return "Say “continue” to go on from here in a new message."
    return f"It opens again at {spend.opens} (in {duration(spend.opens_in_seconds)}). Until then, asking again will not help."


_OurCode: TypeAlias = Literal[
    ExitCode.STOPPED,
    ExitCode.SUPERSEDED,
    ExitCode.APPROVAL_DENIED,
    ExitCode.APPROVAL_EXPIRED,
    ExitCode.INTERRUPTED_BY_RESTART,
    ExitCode.INTERNAL_ERROR,
    ExitCode.NOT_STARTED,
]


DAMAGED = "what this conversation held cannot be read any more, because the storage is damaged"
"""Also the reason that is stored with its messages."""
RESTORED = "a backup was put back, in which this was still open; what was done since that backup was made is not known"
"""The reason that is stored with what was open in a backup (`outspoken db restore`)."""
FORGOTTEN = (
    "What you said here until now, and what was answered, is being removed, because somebody asked that you be forgotten; what ran for it is "
    "stopped. What you write from now on is answered."
)
"""What whoever is forgotten is told where something of theirs ran or waited."""
UNREADABLE = "cannot be read any more, because the storage is damaged"
"""What is said of the end of a turn whose journal is lost."""
AFTER_DAMAGE = (
    "It is kept, but set aside. A new conversation begins here with what you write next; send again what still matters. Whoever runs "
    "the gateway is told."
)


def _ours(code: _OurCode, facts: Facts) -> Notice:
    """Endings that a person or the gateway itself decided."""
    work = _work(facts)
    match code:
        case ExitCode.STOPPED:
            cancelled = f"Cancelled: {facts.detail}." if facts.detail else ""
            ran = "" if facts.tools_done or facts.tools_unsure else "No tool had run."
            why = FORGOTTEN if facts.forgotten else "Stopped, as you asked."
            return Notice(_say(why, cancelled, ran, work), _AGAIN)
        case ExitCode.SUPERSEDED:
            return Notice(_say("(Interrupted by your next message.)", work))
        case ExitCode.APPROVAL_DENIED:
            return Notice(
                _say(f"Ended: {facts.tool} was not approved, and the task needs it. It was not executed.", work), _WHY
            )
        case ExitCode.APPROVAL_EXPIRED:
            text = _say(
                f"Ended: nobody approved {facts.tool} within {duration(facts.limit)}. It was not executed.",
                work,
                "Say “continue” to be asked again.",
            )
            return Notice(text, _AGAIN)
        case ExitCode.INTERRUPTED_BY_RESTART if facts.detail == RESTORED:
            return Notice(
                _say(f"Set aside: {RESTORED}.", "See what there is of it before you ask for it again."), _AGAIN
            )
        case ExitCode.INTERRUPTED_BY_RESTART:
            text = _say(
                "The gateway was restarted while this was running; the task is not finished.",
                work,
                _cut(facts),
                _CONTINUE,
            )
            return Notice(text, _AGAIN)
        case ExitCode.INTERNAL_ERROR if facts.reason is NotStarted.DAMAGED:
            text = _say(
                f"Ended: {DAMAGED} (reference {facts.reference}). The task is not finished, and whether everything that is shown "
                f"above was done is not known. {AFTER_DAMAGE}",
            )
            return Notice(text, _AGAIN)
        case ExitCode.INTERNAL_ERROR if facts.reason is NotStarted.GONE:
            return Notice(_not_started(facts), _AGAIN)
        case ExitCode.INTERNAL_ERROR if facts.detail:
            text = _say(
                f"This was set aside: {facts.detail} (reference {facts.reference}). The task is not finished.",
                "Please tell whoever runs the gateway; say it in another way if you try again.",
            )
            return Notice(text, _AGAIN)
        case ExitCode.INTERNAL_ERROR:
            text = _say(
                f"Something went wrong inside the gateway itself (reference {facts.reference}). The task is not finished.",
                work,
                _cut(facts),
                f"Please tell whoever runs it. {_ONLY_THE_REST}"
                if _ran(facts)
                else "Please tell whoever runs it; you can try again.",
            )
            return Notice(text, _AGAIN)
        case ExitCode.NOT_STARTED:
            return Notice(_not_started(facts), _RETRY)


def not_started_words(reason: NotStarted) -> str:
    """What is said of a message that was accepted and not run, where nothing more is known than why."""
    return _not_started(Facts(reason=reason))


def _not_started(facts: Facts) -> str:
    match facts.reason:
        case NotStarted.QUEUE_FULL:
            return (
                f"Your message was not taken up: {facts.count} messages are already waiting here. It is not kept; "
                "send it again when they are done."
            )
        case NotStarted.TOO_OLD:
            return (
                "Your message was received too late to act on it. Nothing was done; send it again if it still matters."
            )
        case NotStarted.QUOTA:
            return "Your message was not taken up: the quota is used up. It is not kept; send it again later."
        case NotStarted.DAMAGED:
            return f"Your message was not answered, and nothing was done for it: {DAMAGED}. {AFTER_DAMAGE}"
        case NotStarted.QUARANTINED if facts.detail:
            return (
                f"Your message was set aside: {facts.detail}. Say it in another way, and tell whoever runs the gateway."
            )
        case NotStarted.QUARANTINED:
            return "Your message was not taken up: this conversation is set aside after repeated failures. Start anew with /new."
        case NotStarted.GONE:
            return f"This was worked on before, and is over. What came of it {facts.detail or 'is not there any more'}."
        case NotStarted.FORGOTTEN:
            return f"Your message was not answered. {FORGOTTEN}"
        case NotStarted.RESTORED:
            return f"Your message was set aside: {RESTORED}. Send it again if it still matters."
        case NotStarted.WITHDRAWN:
            return "Your message was taken back before it was answered. Nothing was done for it."
        case NotStarted.NOT_OPENED:
            return "Your message was received, but a mistake of mine kept it from being worked on. Nothing was done; send it again."
        case NotStarted.SHUTTING_DOWN | None:
            return "Your message was not taken up: the gateway is shutting down. Send it again in a minute."
        case _:
            assert_never(facts.reason)


def duration(seconds: int) -> str:
    """Seconds in words: 45 s, 3 min, 2 h 5 min, 3 days."""
    if seconds < 120:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 120:
        return f"{minutes} min" + (f" {rest} s" if rest and minutes < 10 else "")
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        days, hours = divmod(hours, 24)
        return f"{days} days" + (f" {hours} h" if hours else "")
    return f"{hours} h" + (f" {minutes} min" if minutes else "")
