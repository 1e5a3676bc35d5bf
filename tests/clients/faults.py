"""Faults of a provider, as steps on the wire, with what a program of others must make of each.

A fault is asked for by the words of a request, ``[NAME#MARK]``; the mark tells requests apart, so that a fault can be acted out once and mended
then. What is said, called or filled in is what the request asks for: a fault in the text is one in the data of whoever asks for data, and a fault
in a call is one in the program's own tool, if it brings one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Body = Mapping[str, Any]


class Wanted(StrEnum):
    """What a program must make of a fault."""

    WHOLE = "whole"
    """The answer, as if nothing had been: the gateway has mended it."""
    FAILED = "failed"
    """Nothing was produced: an error of the program's own, with its status, by which its fallbacks fire."""
    PART = "part"
    """Something was produced: it comes with what is missing, or as the program's own error; never as if it was all."""
    REFUSED = "refused"
    """The provider's filter said no: told as that, or as an error."""


@dataclass(frozen=True)
class Send:
    """Bytes as they are."""

    data: bytes


@dataclass(frozen=True)
class Wait:
    seconds: float


@dataclass(frozen=True)
class Status:
    """An answer without a stream."""

    code: int
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class End(StrEnum):
    RESET = "reset"
    HANG = "hang"


Step = Send | Wait | Status | End
Acts = Callable[["Asked"], Sequence[Step]]


@dataclass(frozen=True)
class Asked:
    """One request, as its fault sees it."""

    body: Body
    answer: Sequence[Mapping[str, Any]]
    """The deltas of a good answer."""
    finish: str
    tool: tuple[str, str] | None
    """The program's own tool, with good arguments."""
    results: int
    """So many results of tools are in the conversation."""
    advised: bool
    """The gateway has taken the tools away, to have it said what came of it."""
    said: bool
    """A part of the answer is in the request already, to be gone on from."""

    @property
    def text(self) -> str:
        return "".join(delta.get("content") or "" for delta in self.answer)


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> Send:
    value = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return Send(b"data: " + json.dumps(value).encode() + b"\n\n")


def say(text: str) -> Send:
    return chunk({"role": "assistant", "content": text})


def end(reason: str = "stop") -> tuple[Step, ...]:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    told = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"
    return chunk({}, reason), Send(told)


def call(name: str, arguments: str) -> Send:
    function = {"name": name, "arguments": arguments}
    return chunk({"role": "assistant", "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})  # fmt: skip


def good(asked: Asked) -> Sequence[Step]:
    """The whole answer; what was said of it already is not said again."""
    if asked.said and asked.tool is None:
        return say(asked.text[len(asked.text) // 2 :]), *end(asked.finish)
    return *map(chunk, asked.answer), *end(asked.finish)


def error(code: int, kind: str = "", message: str = "as it was ordered", **headers: str) -> Status:
    value = {"error": {"message": message, "type": kind or "some_error", "param": None, "code": kind or None}}
    return Status(code, json.dumps(value).encode(), headers={n.replace("_", "-"): v for n, v in headers.items()})


def _half(*ending: Step) -> Acts:
    def acts(asked: Asked) -> Sequence[Step]:
        if asked.tool is not None:
            name, arguments = asked.tool
            return say("I will look."), call(name, arguments[: len(arguments) // 2]), *ending
        return say("" if asked.said else asked.text[: len(asked.text) // 2]), *ending

    return acts


def _half_text(*ending: Step) -> Acts:
    """In the text, also where a tool would be called."""

    def acts(asked: Asked) -> Sequence[Step]:
        text = asked.text or "I will look at the weather, "
        return say("" if asked.said else text[: len(text) // 2]), *ending

    return acts


def _half_call(*ending: Step) -> Acts:
    def acts(asked: Asked) -> Sequence[Step]:
        name, arguments = asked.tool or ("write_file", '{"path": "a.txt", "content": "a lot of words"}')
        return call(name, arguments[: len(arguments) // 2]), *ending

    return acts


def _calls(name: str, arguments: str) -> Acts:
    def acts(asked: Asked) -> Sequence[Step]:
        if asked.advised:
            return say("I tried, and it did not get anywhere."), *end()
        return call(name, arguments), *end("tool_calls")

    return acts


def _own_calls(arguments: str) -> Acts:
    def acts(asked: Asked) -> Sequence[Step]:
        if asked.advised:
            return say("I tried, and it did not get anywhere."), *end()
        return call(asked.tool[0] if asked.tool else "read_file", arguments), *end("tool_calls")

    return acts


def _circles(asked: Asked) -> Sequence[Step]:
    name = ("list_files", "recall")[asked.results % 2]
    return _calls(name, "{}")(asked)


def _steps(asked: Asked) -> Sequence[Step]:
    return _calls("write_file", json.dumps({"path": f"{asked.results}.txt", "content": "a step"}))(asked)


def _after_tool(*ending: Step) -> Acts:
    def acts(asked: Asked) -> Sequence[Step]:
        if not asked.results:
            return call("list_files", "{}"), *end("tool_calls")
        return ending

    return acts


def _slowly(asked: Asked) -> Sequence[Step]:
    text = asked.text or "Hello"
    paced = [step for letter in text for step in (say(letter), Wait(0.05))]
    return *(paced if asked.tool is None else map(chunk, asked.answer)), *end(asked.finish)


def _always(*steps: Step) -> Acts:
    return lambda _: steps


def _thinking(asked: Asked) -> Sequence[Step]:
    return chunk({"reasoning_content": "Let me think about this."}), *good(asked)


@dataclass(frozen=True)
class Fault:
    """One fault: its first `times` requests are acted out, and then all is well."""

    acts: Acts
    wanted: Wanted
    status: int = 0
    """What a program is told, where nothing was produced."""
    times: int = 10_000
    only: str = ""
    """It concerns only those who bring ``tools``, or who bring none (``plain``), or ask for ``data``."""


def _once(acts: Acts, times: int = 1, only: str = "") -> Fault:
    return Fault(acts, Wanted.WHOLE, times=times, only=only)


_FAILED, _PART, _REFUSED, _WHOLE = Wanted.FAILED, Wanted.PART, Wanted.REFUSED, Wanted.WHOLE
_OVERLOADED = Send(b'data: {"error": {"message": "overloaded", "code": 529}}\n\n')
_THOUGHT = chunk({"reasoning_content": "Let me think about this."})
_HTML = b"<html><body>Bad gateway</body></html>"
FAULTS: Mapping[str, Fault] = {
    # statuses
    "wrong key": Fault(_always(error(401, "invalid_api_key")), _FAILED, 401),
    "no money": Fault(_always(error(402, "insufficient_credits")), _FAILED, 402),
    "forbidden": Fault(_always(error(403, "permission_denied")), _FAILED, 403),
    "no such model": Fault(_always(error(404, "model_not_found", "The model does not exist")), _FAILED, 404),
    "bad request": Fault(_always(error(400, "invalid_value", "Unsupported value")), _FAILED, 400),
    "unprocessable": Fault(_always(error(422, "invalid_value", "Unsupported value")), _FAILED, 422),
    "too long": Fault(_always(error(400, "context_length_exceeded", "maximum context length is 8192 tokens")), _FAILED, 400),
    "too large": Fault(_always(error(413, "request_too_large", "Payload too large")), _FAILED, 413),
    "conflict": Fault(_always(error(409, "conflict")), _FAILED, 409),
    "timeout at the provider": Fault(_always(error(408, "timeout")), _FAILED, 408),
    "too fast once": _once(_always(error(429, "rate_limit_exceeded", Retry_After="1"))),
    "too fast": Fault(_always(error(429, "rate_limit_exceeded")), _FAILED, 429),
    "too fast for ten minutes": Fault(_always(error(429, "rate_limit_exceeded", Retry_After="600")), _FAILED, 429),
    "no quota": Fault(_always(error(429, "insufficient_quota", "You exceeded your current quota")), _FAILED, 429),
    "server error once": _once(_always(error(500, "server_error"))),
    "server error": Fault(_always(error(500, "server_error")), _FAILED, 500),
    "overloaded": Fault(_always(error(529, "overloaded_error")), _FAILED, 529),
    "in maintenance": Fault(_always(error(503, "server_error", Retry_After="300")), _FAILED, 503),
    # no chat completion
    "a page": Fault(_always(Status(200, _HTML, "text/html")), _FAILED, 502),
    "a page of a proxy": Fault(_always(Status(502, _HTML, "text/html")), _FAILED, 502),
    "nothing at all": Fault(_always(Status(200)), _FAILED, 502),
    "other data": Fault(_always(Status(200, b'{"hello": 1}')), _FAILED, 502),
    "garbage": Fault(_always(Send(b"\x00\xff\xfe garbage\n\n" * 20)), _FAILED, 502),
    "broken events": Fault(_always(Send(b"data: {not json\n\n" * 5)), _FAILED, 502),
    # before the first word
    "hangs up": Fault(_always(End.RESET), _FAILED, 502),
    "hangs up once": _once(_always(End.RESET)),
    "silence": Fault(_always(End.HANG), _FAILED, 502),
    "silence once": _once(_always(End.HANG)),
    "ends before a word": Fault(_always(Send(b": hello\n\n")), _FAILED, 502),
    "an error in the stream": Fault(_always(_OVERLOADED), _FAILED, 529),
    "empty": Fault(_always(*end()), _FAILED, 502),
    "empty once": _once(_always(*end())),
    "blanks only": Fault(_always(say("  \n "), *end()), _FAILED, 502),
    "thinks only": Fault(_always(_THOUGHT, *end()), _FAILED, 502),
    "thinks first": Fault(_thinking, _WHOLE),
    "slow": Fault(_slowly, _WHOLE),
    # in the text
    "cut in the text once": _once(_half_text(End.RESET), only="plain"),
    "cut in the text": Fault(_half_text(End.RESET), _PART),
    "silence in the text": Fault(_half_text(End.HANG), _PART),
    "ends in the text": Fault(_half_text(), _PART),
    "an error in the text": Fault(_half_text(_OVERLOADED), _PART),
    "too short": Fault(_half_text(*end("length")), _PART),
    "a finish that nobody knows": Fault(lambda a: (*map(chunk, a.answer), *end("eos" if a.finish == "stop" else a.finish)), _WHOLE),
    # in a call
    "cut in a call once": _once(_half_call(End.RESET), only="tools"),
    "cut in a call": Fault(_half_call(End.RESET), _FAILED, 502),
    "silence in a call": Fault(_half_call(End.HANG), _FAILED, 502),
    "half a call that stops": Fault(_half_call(*end()), _FAILED, 502),
    "a call too short": Fault(_half_call(*end("length")), _PART),
    "words, then cut in a call": Fault(_half(End.RESET), _PART, only="tools"),
    "arguments that do not fit": Fault(_own_calls('{"file": 7}'), _PART, only="plain"),
    "arguments that cannot be read": Fault(_own_calls("{not json"), _PART),
    "a tool that is not there": Fault(_calls("read_fil", "{}"), _PART),
    # the agent's own tools
    "a tool that fails": Fault(_calls("read_file", '{"path": "missing.txt"}'), _PART, only="plain"),
    "no progress": Fault(_calls("list_files", "{}"), _PART, only="plain"),
    "circles": Fault(_circles, _PART, only="plain"),
    "endless steps": Fault(_steps, _PART, only="plain"),
    "empty after tools": Fault(_after_tool(*end()), _PART, only="plain"),
    "wrong key after tools": Fault(_after_tool(error(401, "invalid_api_key")), _PART, only="plain"),
    # refusals
    "refused": Fault(_always(*end("content_filter")), _REFUSED),
    "refused in the text": Fault(_half_text(*end("content_filter")), _PART),
    "refused by the model": Fault(_always(chunk({"role": "assistant", "refusal": "I will not."}), *end()), _REFUSED),
}  # fmt: skip
"""All of them, by the name under which they are asked for."""
