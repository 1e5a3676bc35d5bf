"""Plays tables of faults through the whole gateway: real core, real client, bytes on a socket; with the one model alone, and with another to fall back to.

A `Fault` says what a provider sends, who documented or reported it, and what a person must get. Beside that these hold for all of them: nothing
silent, nothing hung, ``stop`` for answers alone, a notice is marked as the gateway's, no secret, no mark-up and no thought is shown, no answer
twice, few calls, and every request is one that a strict provider takes.

To add one: a row in a table of this folder (a new table: in `test_faults.TABLES`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent_core.failures.exits import ExitCode
from agent_core.settings import Route
from agent_core.text.ours import MARK
from gateway.sessions.chain import ModelChain
from tests.e2e.upstream import HEAD, Reply, Rule, Upstream, call, end, text, upstream
from tests.serving import served

SECRET = "sk-proj-doNotShowMe123456"
THOUGHT = "PRIVATE-THOUGHT"
"""What models think in these tables; nobody is shown it."""
WELL = "All is well."
FINE: Reply = (HEAD, text("All is "), text("well."), end())
WRITE = '{"path": "a.txt", "content": "hello"}'
HALF = '{"path": "a.txt", "content": "hel'
AFTER: Reply = (HEAD, text("The work "), text("is done."), end())
DONE = "The work is done."
CALLS: Reply = (HEAD, call("write_file", WRITE), end("tool_calls"))
AT_ONCE = 16
PATIENT = {"OUTSPOKEN_MODEL__STALL_SECONDS": "6", "OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "12"}
"""Where many tests run, a reply that is sent at once takes some seconds too; nearly all of these have nothing to wait for."""
NEVER = (SECRET, THOUGHT, "tool_call", "<think", "</think", "<|", "data:", "{", "Traceback")
"""What stands in no answer and no notice."""
_SOURCE = re.compile(r"[\w.-]+/[\w.-]+#\d+|https://[^\s]+")


@dataclass(frozen=True)
class Fault:
    """One row."""

    name: str
    source: str
    """``owner/repository#number`` or the address of a page."""
    replies: Sequence[Reply]
    """Of the model that is asked first, one an attempt; the last one again and again."""
    says: str = WELL
    """The whole answer; of a turn that is told, words of its notice."""
    ends: ExitCode = ExitCode.ANSWERED
    """With this model alone."""
    other: ExitCode = ExitCode.ANSWERED
    """With another model that is well."""
    other_says: str | None = None
    """The whole answer with another model; None: anything."""
    most: int = 8
    """So often is this model asked at most."""
    ran: tuple[str, ...] = ()
    """The tools that were run for this model, in their order."""
    tokens: tuple[int, int] | None = None
    """(in, out) as they are booked."""
    never: tuple[str, ...] = ()
    rule: Rule | None = None
    """What this model's server answers to a request that it does not take, whatever `replies` are."""
    read: tuple[str, ...] = ()
    """Arguments of calls as they were meant."""
    or_ends: ExitCode | None = None
    """With this model alone, if the client library reads the end of the connection before it tells what was wrong with the bytes (aiohttp, on a busy machine)."""


@dataclass(frozen=True)
class Outcome:
    """What a person got, and what it took."""

    said: str
    finish: str
    code: str
    tokens: tuple[int, int]


@dataclass
class Played:
    """All of a table."""

    model: Upstream
    other: Upstream
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])


class _Always(dict[str, Sequence[Reply]]):
    """A model that is well, whatever it is asked."""

    def __missing__(self, name: str) -> Sequence[Reply]:
        return (FINE,)


async def ask(http: aiohttp.ClientSession, url: str, name: str) -> Outcome:
    """One person asks."""
    body = {
        "model": name,
        "stream": True,
        "stream_options": {"include_usage": True},
        "user": name,
        "messages": [{"role": "user", "content": f"scenario: {name}"}],
    }
    said, finish, code, tokens = "", "", "", (0, 0)
    async with asyncio.timeout(100), http.post(f"{url}/v1/chat/completions", json=body) as response:
        assert response.status == 200, await response.text()
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            code = chunk.get("outspoken", {}).get("exit") or code
            if chunk.get("usage"):
                tokens = (chunk["usage"]["prompt_tokens"], chunk["usage"]["completion_tokens"])
            for choice in chunk["choices"]:
                said += choice["delta"].get("content") or ""
                finish = choice["finish_reason"] or finish
    return Outcome(said, finish, code, tokens)


async def play(faults: Sequence[Fault], home: Path, patch: pytest.MonkeyPatch, *, fallback: bool) -> Played:
    """Each fault is a model of its own, so that nothing which one of them teaches touches another."""
    usual = ModelChain.routes

    async def routes(chain: ModelChain, model: str) -> tuple[Route, ...]:
        first, *others = await usual(chain, "")
        return (replace(first, model=model), *others)

    def never(*_: object) -> None:
        pass

    patch.setattr(ModelChain, "routes", routes)
    patch.setattr(ModelChain, "set_aside", never)  # they have one key between them
    patch.setattr(ModelChain, "names", tuple(fault.name for fault in faults))
    scripts = {**{fault.name: fault.replies for fault in faults}, "unnamed": (FINE,)}
    rules = {fault.name: fault.rule for fault in faults if fault.rule is not None}
    async with upstream(scripts, rules) as model, upstream(_Always()) as other:
        env = {
            "OUTSPOKEN_MODEL__BASE_URL": model.url,
            "OUTSPOKEN_MODEL__NAME": "m",
            "OUTSPOKEN_MODEL__API_KEY": SECRET,
            **PATIENT,
        }
        if fallback:
            env["OUTSPOKEN_MODEL__FALLBACKS"] = json.dumps([{"name": "other", "base_url": other.url}])
        played = Played(model, other)
        async with served(home, env) as up, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            limit = asyncio.Semaphore(AT_ONCE)

            async def one(fault: Fault) -> None:
                async with limit:
                    played.outcomes[fault.name] = await ask(http, up.url, fault.name)

            await asyncio.gather(*(one(fault) for fault in faults))
    return played


def complaints(fault: Fault, played: Played, *, fallback: bool) -> list[str]:
    """What is wrong with how a fault ended; empty if nothing."""
    got = played.outcomes[fault.name]
    wanted = {fault.other} if fallback else {fault.ends, fault.or_ends or fault.ends}
    answered = got.code == ExitCode.ANSWERED
    found: list[str] = []
    if got.code not in wanted:
        found.append(f"ended as {got.code} instead of {' or '.join(sorted(wanted))}")
    if not got.said.strip():
        found.append("silent")
    if (got.finish == "stop") != answered:
        found.append(f"finish reason {got.finish} for {got.code}")
    if not answered and MARK not in got.said:
        found.append("nothing of the gateway's says so")
    words = fault.other_says if fallback else fault.says
    if words is not None and (got.said.strip() != words if answered else words not in got.said):
        found.append(f"does not say {words!r}")
    found += [f"shows {never!r}" for never in (*NEVER, *fault.never) if never in got.said]
    found += [f"says {said!r} twice" for said in (WELL, DONE) if got.said.count(said) > 1]
    asked = played.model.asked[fault.name]
    if not 1 <= asked <= fault.most:
        found.append(f"asked {asked} times")
    if not fallback:
        latest = played.model.latest.get(fault.name, [])
        ran = _ran(latest)
        if ran != fault.ran:
            found.append(f"ran {ran}")
        asked_for = [each["function"]["arguments"] for message in latest for each in message.get("tool_calls") or ()]
        found += [f"did not read {arguments}" for arguments in fault.read if arguments not in asked_for]
        if fault.tokens is not None and got.tokens != fault.tokens:
            found.append(f"booked {got.tokens}")
    return [f"{fault.name} ({fault.source}): {one}; said: {got.said!r}" for one in found]


def _ran(messages: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The tools whose results stand in a request."""
    names: dict[str, str] = {}
    for message in messages:
        asked: list[dict[str, Any]] = message.get("tool_calls") or []
        names |= {call["id"]: call["function"]["name"] for call in asked}
    return tuple(names[message["tool_call_id"]] for message in messages if message["role"] == "tool")


def ill_formed(faults: Sequence[Fault]) -> list[str]:
    """What is wrong with a table itself."""
    names = [fault.name for fault in faults]
    return [f"twice: {name}" for name in set(names) if names.count(name) > 1] + [
        f"no source: {fault.name}" for fault in faults if not _SOURCE.fullmatch(fault.source)
    ]
