"""One question, one answer: what ``outspoken ask`` does, over the gateway's own OpenAI-compatible API.

The model's text goes to standard output as it comes; what the gateway itself says (notices, statuses, the footer) goes to standard error, so that
the output can be piped and holds nothing but the model's words.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import platform
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TextIO

import aiohttp
import orjson

from adapters.terminal.screen import draw
from agent_core.text.shown import plain
from agent_core.tools.base import Json
from agent_core.turn.exits import ExitCode, process_status

SILENCE_SECONDS = 60.0
"""The gateway sends a sign of life every 10 s; so long without one means that it is gone."""
UNFINISHED = 15
"""Exit status if the gateway was lost before the end."""


_KNOWN = frozenset(code.value for code in ExitCode)


class GatewayLost(Exception):
    """The gateway cannot be reached, or went away; the words say what to do."""


class GatewayRefused(Exception):
    """The gateway did not take the request; the words are its own."""


@dataclass(slots=True)
class Answer:
    """What came of one question."""

    text: list[str] = field(default_factory=list[str])
    exit: str = ""
    seconds: float = 0.0
    steps: int = 0
    tool_calls: int = 0
    turn: str = ""
    model: str = ""
    recovered: tuple[str, ...] = ()
    """What had gone wrong on the way, and was mended."""
    left: bool = False
    """The gateway was stopped; the turn goes on after its restart."""
    notices: list[str] = field(default_factory=list[str])
    """What the gateway itself said."""

    def status(self) -> int:
        """The process's exit status: 0 only for a clean exit."""
        return process_status(ExitCode(self.exit)) if self.exit in _KNOWN else UNFINISHED

    def to_json(self) -> dict[str, Json]:
        return {
            "text": "".join(self.text),
            "notice": "\n".join(self.notices) or None,
            "exit": self.exit,
            "clean": self.status() == 0,
            "seconds": self.seconds,
            "steps": self.steps,
            "tool_calls": self.tool_calls,
            "turn": self.turn,
            "model": self.model,
            "recovered": list(self.recovered),
        }


async def ask(
    url: str,
    key: str | None,
    words: str,
    *,
    session: str,
    as_json: bool,
    cancel_on_leave: bool,
    out: TextIO,
    err: TextIO,
) -> int:
    """Ask, show, and give the exit status. Raises `GatewayLost` and `GatewayRefused`."""
    answer = Answer()
    shown = StatusLine(err, enabled=not as_json and capable(err))
    async for kind, data in stream(url, key, words, session, cancel_on_leave=cancel_on_leave):
        if kind == "comment":
            shown.show(data)
            continue
        delta = take(answer, data)
        if delta and not as_json:
            shown.clear()
            out.write(delta)
            out.flush()
    shown.clear()
    if not as_json and "".join(answer.text) and not "".join(answer.text[-1:]).endswith("\n"):
        out.write("\n")
        out.flush()
    if not answer.exit:
        raise GatewayLost("The gateway closed the connection before the end. Whether the work went on is not known.")
    if as_json:
        out.write(orjson.dumps(answer.to_json(), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        err.writelines(f"{notice}\n" for notice in answer.notices)
        err.write(footer(answer) + "\n")
    return answer.status()


def footer(answer: Answer) -> str:
    """The lines behind an answer: what was mended on the way; time, steps, tool calls, and how it ended if not cleanly."""
    parts = [f"{answer.seconds:.1f} s", _count(answer.steps, "step"), _count(answer.tool_calls, "tool call")]
    if answer.left:
        parts.append("goes on after the gateway's restart")
    elif answer.status() != 0:
        parts.append(f"ended: {answer.exit}")
    return "\n".join([*(f"[{words}]" for words in answer.recovered), f"[{' · '.join(parts)}]"])


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


async def stream(
    url: str, key: str | None, words: str, session: str, *, cancel_on_leave: bool = False
) -> AsyncIterator[tuple[str, str]]:
    """(``comment`` | ``data``, text) as they come. Leaving early lets the turn go on, unless `cancel_on_leave`."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if cancel_on_leave:
        headers["X-Outspoken-Disconnect"] = "cancel"
    if session:
        headers["X-Outspoken-Session"] = session
    body = orjson.dumps(
        {"model": "outspoken", "stream": True, "messages": [{"role": "user", "content": words}], "user": _me()}
    )
    headers["Content-Type"] = "application/json"
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=SILENCE_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.post(f"{url}/v1/chat/completions", data=body, headers=headers) as response,
        ):
            if response.status != 200:
                raise GatewayRefused(_refusal(response.status, await response.read()))
            async for line in response.content:
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                if text.startswith(":"):
                    yield "comment", text[1:].strip()
                elif text.startswith("data:"):
                    yield "data", text[5:].strip()
    except aiohttp.ClientConnectorError as error:
        raise GatewayLost(f"No gateway answers at {url}. Start it with: outspoken run") from error
    except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
        raise GatewayLost(f"The connection to the gateway at {url} was lost ({type(error).__name__}).") from error


def _me() -> str:
    """Whose memory it is: who is logged in on which machine. Said as a digest, as it may be passed on to a model's provider."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        name = str(os.getuid())
    return (
        "terminal-" + hashlib.blake2b(f"{name}@{platform.node()}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    )


def _refusal(status: int, body: bytes) -> str:
    try:
        message = orjson.loads(body)["error"]["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = ""
    return message if isinstance(message, str) and message else f"The gateway answered with HTTP {status}."


def take(answer: Answer, data: str) -> str:
    """Note what a chunk says; the model's text in it."""
    if data == "[DONE]":
        return ""
    chunk: Json = orjson.loads(data)
    if not isinstance(chunk, dict):
        return ""
    facts = chunk.get("outspoken")
    if isinstance(facts, dict):
        _note(answer, facts)
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    delta = choice.get("delta") if isinstance(choice, dict) else None
    text = delta.get("content") if isinstance(delta, dict) else None
    if not isinstance(text, str):
        return ""
    if isinstance(delta, dict) and delta.get("outspoken"):
        answer.notices.append(text.strip())
        return ""
    answer.text.append(text)
    return text


def _note(answer: Answer, facts: dict[str, Json]) -> None:
    answer.left = facts.get("going_on") is True
    for name in ("exit", "turn", "model"):
        value = facts.get(name)
        if isinstance(value, str):
            setattr(answer, name, value)
    for name in ("steps", "tool_calls"):
        value = facts.get(name)
        if isinstance(value, int):
            setattr(answer, name, value)
    recovered = facts.get("recovered")
    if isinstance(recovered, list):
        answer.recovered = tuple(words for words in recovered if isinstance(words, str))
    seconds = facts.get("seconds")
    if isinstance(seconds, int | float):
        answer.seconds = float(seconds)


def capable(stream: TextIO) -> bool:
    """Whether it is a terminal on which a line can be replaced, and dimmed."""
    return stream.isatty() and (sys.platform == "win32" or os.environ.get("TERM", "") not in {"", "dumb"})


class StatusLine:
    """One line on the terminal that is replaced, and gone once text comes."""

    def __init__(self, err: TextIO, *, enabled: bool) -> None:
        self._err = err
        self._enabled = enabled
        self._shown = False

    def show(self, words: str) -> None:
        if self._enabled and words and words != "keep-alive" and not words.startswith("turn "):
            draw(self._err, "\r\x1b[2K\x1b[2m")
            self._err.write(plain(words[:100]))
            draw(self._err, "\x1b[0m")
            self._err.flush()
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            draw(self._err, "\r\x1b[2K")
            self._err.flush()
            self._shown = False
