"""The faults that can be rehearsed: for every remedy of the recovery ladders one that is mended, and one that is not.

``rehearse NAME`` acts the fault out once, so that the recovery is seen; ``rehearse NAME forever`` never gets better, so that the
notice is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent_core.model.rehearsal.conversation import RehearsalRequest
from agent_core.model.rehearsal.wire import (
    BreakOff,
    EndReply,
    Page,
    PlayedCall,
    RawBytes,
    Refuse,
    Say,
    Script,
    Stall,
    Think,
)
from agent_core.records import dataclass

LONG = "This is the first part of a longer reply. It goes on for a while, so that there is something to break. "
DONE = "And this is the rest: the reply is whole again, and nothing was said twice."
BIG = '{"path": "page.html", "content": "<!doctype html>\\n<html>\\n' + "<p>a long line of the page</p>\\n" * 12
FINISHED = (Say("Here we are: this time it worked."), EndReply("stop"))


def _call(name: str, arguments: str, words: str = "") -> Script:
    return (*((Say(words),) if words else ()), PlayedCall(name, arguments), EndReply("tool_calls"))


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `acts` gives the faulty reply; `mended` the good one; the first `times` requests are faulty."""

    what: str
    """One line for the list: what the model does."""
    acts: Callable[[RehearsalRequest], Script]
    times: int = 1
    mended: Callable[[RehearsalRequest], Script] = lambda _: FINISHED


def _rest(conversation: RehearsalRequest) -> Script:
    return (Say(DONE if conversation.said else LONG + DONE), EndReply("stop"))


def _broken_text(*ending: BreakOff | Stall | RawBytes | EndReply) -> Callable[[RehearsalRequest], Script]:
    return lambda conversation: ((Say("" if conversation.said else LONG)), *ending)


def _broken_call(*ending: BreakOff | Stall | EndReply) -> Callable[[RehearsalRequest], Script]:
    return lambda _: (Say("I will write the page."), PlayedCall("write_file", BIG, cut=260), *ending)


def _in_pieces(conversation: RehearsalRequest) -> Script:
    """The big write, done in small pieces, as the gateway advised."""
    done = len(conversation.results)
    if done == 0:
        return _call(
            "write_file", '{"path": "page.html", "content": "<!doctype html>\\n<html>\\n"}', "In smaller pieces, then."
        )
    if done == 1:
        return _call("append_file", '{"path": "page.html", "content": "<p>the second piece</p>\\n</html>\\n"}')
    return (
        Say("page.html is written, in two pieces."),
        EndReply("stop"),
    )


def _after_tool(then: Script) -> Callable[[RehearsalRequest], Script]:
    def acts(conversation: RehearsalRequest) -> Script:
        if not conversation.results:
            return _call("list_files", "{}", "Now dispatching task 5.")
        return then

    return acts


def _always(
    *steps: Say | EndReply | PlayedCall | Think | Refuse | Page | RawBytes | Stall | BreakOff,
) -> Callable[[RehearsalRequest], Script]:
    return lambda _: tuple(steps)


def _circle(conversation: RehearsalRequest) -> Script:
    name = ("list_files", "recall")[len(conversation.results) % 2]
    return _call(name, "{}")


def _steps(conversation: RehearsalRequest) -> Script:
    done = len(conversation.results)
    return _call("write_file", f'{{"path": "step{done}.txt", "content": "step {done}"}}')


def _housekeeping(conversation: RehearsalRequest) -> Script:
    if not conversation.results:
        return _call(
            "todo", '{"items": [{"text": "tidy up", "state": "done"}]}', "All is done; I noted it on the list."
        )
    return (EndReply("stop"),)


_HERMES = '<tool_call>\n{"name": "list_files", "arguments": {}}\n</tool_call>'

FAULTS: Mapping[str, Fault] = {
    "stall before text": Fault("says nothing and keeps the line open", _always(Stall())),
    "drop before text": Fault("hangs up before the first word", _always(BreakOff())),
    "rate limit": Fault("429: too many requests", _always(Refuse(429, "Rate limit reached", "rate_limit_exceeded", 1))),
    "long rate limit": Fault(
        "429, and asks for ten minutes of patience", _always(Refuse(429, "Rate limit reached", "rate_limit_exceeded", 600)), 99
    ),
    "server error": Fault("500", _always(Refuse(500, "Internal error"))),
    "garbage": Fault("sends a web page instead of a reply", _always(Page(b"<html>Bad gateway</html>"))),
    "error in stream": Fault(
        "an error object in the middle of the text", _broken_text(RawBytes(b'data: {"error": {"message": "overloaded"}}\n\n')), mended=_rest
    ),
    "stall in text": Fault("stalls in the middle of its text", _broken_text(Stall()), mended=_rest),
    "drop in text": Fault("hangs up in the middle of its text", _broken_text(BreakOff()), mended=_rest),
    "end in text": Fault("ends cleanly, but without a finish reason", _broken_text(), mended=_rest),
    "stall in tool call": Fault("stalls while it writes a large tool call", _broken_call(Stall()), 2, _in_pieces),
    "drop in tool call": Fault("hangs up inside a tool call", _broken_call(BreakOff()), 1, _in_pieces),
    "half a tool call": Fault("says that it is done, with half a tool call", _broken_call(EndReply("stop")), 1, _in_pieces),
    "no tool call": Fault(
        "says that it calls a tool, and sends none", _always(Say("I am calling the tool."), EndReply("tool_calls")), mended=_after_tool(FINISHED)
    ),
    "empty reply": Fault("returns nothing", _always(EndReply("stop")), 2),
    "empty after tools": Fault("runs a tool, then returns nothing", _after_tool((EndReply("stop"),)), 3, _after_tool(FINISHED)),
    "reasoning only": Fault("thinks, and never replies", _always(Think("Let me think about this."), EndReply("stop"))),
    "promise without acting": Fault(
        "announces an action and stops", _always(Say("Now dispatching task 5:"), EndReply("stop")), 1, _after_tool(FINISHED)
    ),
    "cut by length": Fault("reaches its output limit", _broken_text(EndReply("length")), mended=_rest),
    "length in tool call": Fault("reaches its output limit inside a tool call", _broken_call(EndReply("length")), 1, _in_pieces),
    "unknown tool": Fault("asks for a tool that is not there", lambda _: _call("read_fil", "{}"), 1, _after_tool(FINISHED)),
    "bad arguments": Fault(
        "sends arguments that do not fit", lambda _: _call("read_file", '{"file": 7}'), 1, lambda _: FINISHED
    ),
    "context overflow": Fault(
        "says that the conversation is too long",
        _always(Refuse(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded")),
    ),
    "bad request": Fault("400", _always(Refuse(400, "Unsupported value")), 99),
    "unauthorised": Fault("401: the key is refused", _always(Refuse(401, "Incorrect API key provided", "invalid_api_key")), 99),
    "payment required": Fault("402", _always(Refuse(402, "Insufficient credits")), 99),
    "model not found": Fault("404", _always(Refuse(404, "The model does not exist", "model_not_found")), 99),
    "refusal": Fault("the content filter says no", _always(EndReply("content_filter")), 99),
    "refusal midway": Fault("the content filter stops the reply", _always(Say(LONG), EndReply("content_filter")), 99),
    "failing call": Fault(
        "repeats a call that fails", lambda _: _call("read_file", '{"path": "missing.txt"}'), 99
    ),
    "no progress": Fault("reads the same again and again", lambda _: _call("list_files", "{}"), 99),
    "circles": Fault("goes round the same two calls", _circle, 99),
    "endless steps": Fault("never comes to an end", _steps, 999),
    "housekeeping then nothing": Fault("notes that it is done, and says no more", _housekeeping, 99),
    "text tool call": Fault(
        "writes its tool call into the text", lambda c: FINISHED if c.results else (Say("Looking. " + _HERMES), EndReply("stop")), 99
    ),
    "cut text tool call": Fault(
        "writes half a tool call into the text", _always(Say("Looking. " + _HERMES[:40]), EndReply("stop")), 1, _after_tool(FINISHED)
    ),
}  # fmt: skip


def fault_named(words: str) -> tuple[str, bool] | None:
    """(name, forever) of the fault that ``rehearse …`` asks for, or None."""
    name = " ".join(words.lower().removeprefix("rehearse").strip(" .!\"'“”:").split())
    forever = name.endswith(" forever")
    name = name.removesuffix(" forever").strip()
    if name in FAULTS:
        return name, forever
    return None


def listed() -> str:
    """All faults as a list for a person."""
    rows = [f"- `rehearse {name}` – {fault.what}" for name, fault in FAULTS.items()]
    return "\n".join(rows)
