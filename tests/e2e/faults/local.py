"""What the tables of local servers and of what stands before them are written with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_core.failures.exits import ExitCode
from tests.e2e.faults.playing import AFTER, DONE, FINE, HALF, WELL, WRITE, Fault
from tests.e2e.upstream import HEAD, Reply, Rule, call, end, status

__all__ = (
    "AFTER",
    "DONE",
    "FINE",
    "HALF",
    "WELL",
    "WRITE",
    "calls",
    "chunked",
    "local",
    "many",
    "refuse",
    "roles",
    "tool",
)
Body = dict[str, Any]


def local(
    name: str,
    source: str,
    replies: Sequence[Reply],
    *,
    ends: ExitCode = ExitCode.ANSWERED,
    or_ends: ExitCode | None = None,
    says: str | None = None,
    ran: int | tuple[str, ...] | None = None,
    read: tuple[str, ...] = (),
    asked: int = 8,
    rule: Rule | None = None,
) -> Fault:
    """A row. What is said and how many calls are run follows from the last reply, if nothing else is given."""
    works = replies[-1] is AFTER
    if says is None:
        says = (DONE if works else WELL) if ends is ExitCode.ANSWERED else ""
    if ran is None:
        ran = len(read) or int(works)
    tools = ("write_file",) * ran if isinstance(ran, int) else ran
    return Fault(name, source, replies, says, ends, most=asked, ran=tools, rule=rule, read=read, or_ends=or_ends)


def tool(then: Reply, arguments: str = WRITE) -> Sequence[Reply]:
    return ((HEAD, call("write_file", arguments), end("tool_calls")), then)


def refuse(http: int, words: str, kind: str = "invalid_request_error", **more: Any) -> bytes:
    """A refusal in the form that OpenAI gave it."""
    return status(http, json.dumps({"error": {"message": words, "type": kind, "param": None, "code": None, **more}}))


def many(replies: Sequence[Reply], last: Reply) -> Sequence[Reply]:
    return (*replies, last)


def calls(body: Body) -> list[str]:
    """The arguments of all calls in the conversation that a request carries."""
    return [c["function"]["arguments"] for message in body["messages"] for c in message.get("tool_calls") or ()]


def roles(body: Body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def chunked(*parts: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    """A body in chunks."""
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + last
