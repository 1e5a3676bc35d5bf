"""One question, one answer: what ``outspoken ask`` does, over the gateway's own OpenAI-compatible API.

The model's text goes to standard output as it comes; what the gateway itself says (notices, statuses, the footer) goes to standard error, so that
the output can be piped and holds nothing but the model's words.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import os
import platform
import secrets
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from typing import TextIO

import aiohttp
import orjson

from adapters import refusing
from adapters.checks.probe import Question, health
from adapters.contract.callers import AT_TERMINAL
from adapters.terminal.screen import draw, width
from adapters.text.clusters import cut
from agent_core.failures.exits import EXITS, ExitCode
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.shown import plain
from agent_core.text.tongue import known_sentence, number, sentence, speak, speak_many, spoken_now

AGAIN_SECONDS = 1.0
"""How often a gateway that was lost is tried again."""
BACK_SECONDS = 300.0
"""How long it is waited for."""
SILENCE_SECONDS = 60.0
"""The gateway sends a sign of life every 10 s; so long without one means that it is gone."""
SLOW_SECONDS = 1.5
"""So long an answer may take to begin before it is said what is waited for."""
UNFINISHED = 15
"""Exit status if the gateway was lost before the end."""


LOST = sentence(
    "The connection to the gateway was lost. Your message is stored, and its work goes on when the gateway is back; "
    "waiting for it (Ctrl-C: wait no longer)."
)
NOT_BACK = sentence(
    "The gateway at {url} did not come back within {minutes} minutes. Your message is stored: when the gateway runs again, it "
    "goes on with it, and the answer stands in this conversation."
)

NOT_STORED_YET = sentence(
    "The gateway cannot store anything just now, so your message is not taken yet; waiting for it, a minute at most "
    "(Ctrl-C: wait no longer)."
)
NOT_ANSWERED_YET = sentence(
    "The gateway has not answered yet; waiting for it, a minute at most (Ctrl-C: wait no longer)."
)

_KNOWN = frozenset(code.value for code in ExitCode)


class GatewayLost(Exception):
    """The gateway cannot be reached, or went away; the words say what to do."""


class GatewayRefused(Exception):
    """The gateway did not take the request; the words are its own."""

    def __init__(self, words: str, status: int = 0, code: str = "") -> None:
        super().__init__(words)
        self.status, self.code = status, code


class Shown:
    """What of an answer stands on the screen: when it comes from its beginning again, only the rest is new."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._before = ""
        self._again = 0  # how much of what was shown has come again

    def again(self) -> None:
        """It comes from its beginning once more."""
        self._before = "".join(self._shown)
        self._again = 0

    def new(self, text: str) -> str:
        """What of `text` is not on the screen yet."""
        known = self._before[self._again : self._again + len(text)]
        self._again += len(known)
        if text.startswith(known):
            text = text[len(known) :]
        else:  # it was written anew
            text = self._before[: self._again - len(known)] + text
            self._shown, self._before = [text], ""
            return f"\n{text}"
        self._shown.append(text)
        return text


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
    """The gateway stopped, or lost its database; the turn goes on afterwards."""
    notices: list[str] = field(default_factory=list[str])
    """What the gateway itself said."""

    def status(self) -> int:
        """The process's exit status: 0 only for a clean exit."""
        return EXITS[ExitCode(self.exit)].kind.status if self.exit in _KNOWN else UNFINISHED

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
    screen = Shown()
    async for kind, data in stream(url, key, words, session, cancel_on_leave=cancel_on_leave):
        match kind:
            case "comment":
                shown.show(data)
            case "waits" | "lost":
                shown.clear()
                err.write(f"{data}\n")
                err.flush()
            case "again":
                answer = Answer()
                screen.again()
            case _:
                delta = screen.new(take(answer, data))
                if delta and not as_json:
                    shown.clear()
                    out.write(delta)
                    out.flush()
    shown.clear()
    if not as_json and "".join(answer.text) and not "".join(answer.text[-1:]).endswith("\n"):
        out.write("\n")
        out.flush()
    if not answer.exit:
        raise GatewayLost("The gateway did not say how it ended. outspoken explain tells what is known.")
    if as_json:
        out.write(orjson.dumps(answer.to_json(), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        err.writelines(f"{notice}\n" for notice in answer.notices)
        err.write(footer(answer) + "\n")
    return answer.status()


def footer(answer: Answer) -> str:
    """The lines behind an answer: what was mended on the way; time, steps, tool calls, and how it ended if not cleanly."""
    parts = [
        speak("{count} s", count=number(answer.seconds, 1)),
        speak_many("{count} step", "{count} steps", answer.steps),
        speak_many("{count} tool call", "{count} tool calls", answer.tool_calls),
    ]
    if answer.left:
        parts.append(speak("not over yet; goes on in the gateway"))
    elif answer.status() != 0:
        parts.append(speak("ended: {exit}", exit=answer.exit))
    return "\n".join([*(f"[{words}]" for words in answer.recovered), f"[{' · '.join(parts)}]"])


async def stream(
    url: str,
    key: str | None,
    words: str,
    session: str,
    *,
    cancel_on_leave: bool = False,
    more: Mapping[str, str] | None = None,
    model: str = "outspoken",
    user: str | None = None,
    back_seconds: float = BACK_SECONDS,
) -> AsyncIterator[tuple[str, str]]:
    """(kind, text) as they come: ``comment`` and ``data`` are the gateway's. ``waits``, with words for the person: it has not taken the message
    yet. ``lost``, with words as well: the gateway is gone, the message is stored, and the gateway is waited for. ``again``: it is back, and the answer comes from its beginning.

    `more` headers come before those that are made here; `user` is whose memory it is, not said: that of whoever is logged in here.

    Leaving early lets the turn go on, unless `cancel_on_leave`: then the gateway is this process's own, or the person's to stop.
    Raises `GatewayLost` if it does not answer, or not come back, and `GatewayRefused`.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers["X-Outspoken-Errors"] = "words"  # a person reads it; the exit stands beside the words
    headers["Idempotency-Key"] = secrets.token_hex(12)  # whoever asks again with it gets the same turn
    if cancel_on_leave:
        headers["X-Outspoken-Disconnect"] = "cancel"
    if session:
        headers["X-Outspoken-Session"] = session
    headers |= more or {}
    whose: dict[str, Json] = {"user": whoever_is_here() if user is None else user} if user != "" else {}
    body = orjson.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": words}], **whose})
    headers["Content-Type"] = "application/json"
    if now_spoken := spoken_now():
        headers["Accept-Language"] = now_spoken
    stored, lost_at = False, 0.0
    while True:
        try:
            async for kind, data in _once(url, body, headers):
                if lost_at and kind == "waits":
                    continue  # it is waited for already, and that it does not answer is no sign of life
                if lost_at:
                    lost_at = 0.0
                    yield "again", ""
                stored = stored or kind != "waits"
                yield kind, data
            return
        except (GatewayLost, GatewayRefused) as error:
            if isinstance(error, GatewayRefused) and not (lost_at and error.status >= 500):
                raise
            if not stored:
                raise
            now = time.monotonic()
            if not lost_at:
                lost_at = now
                yield "lost", f"[outspoken] {speak(LOST)}"
            if now - lost_at >= back_seconds:
                raise GatewayLost(speak(NOT_BACK, url=url, minutes=round(back_seconds / 60))) from error
        await asyncio.sleep(AGAIN_SECONDS)


async def _once(url: str, body: bytes, headers: Mapping[str, str]) -> AsyncIterator[tuple[str, str]]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=SILENCE_SECONDS)
    over = False
    try:
        async with aiohttp.ClientSession(timeout=timeout) as http:
            posted = asyncio.ensure_future(_posted(http, f"{url}/v1/chat/completions", body, headers))
            try:
                begun, _ = await asyncio.wait({posted}, timeout=SLOW_SECONDS)
                if not begun:
                    yield "waits", f"[outspoken] {await _not_yet(url)}"
                response = await posted
            finally:
                posted.cancel()
            async with response:
                if response.status != 200:
                    raise GatewayRefused(_refusal(response.status, await response.read()), response.status)
                async for line in response.content:
                    text = line.decode("utf-8", "replace").rstrip("\r\n")
                    if text.startswith(":"):
                        yield "comment", text[1:].strip()
                    elif text.startswith("data:"):
                        over = text[5:].strip() == "[DONE]"
                        yield "data", text[5:].strip()
    except aiohttp.ClientConnectorError as error:
        raise GatewayLost(speak("No gateway answers at {url}. Start it with: outspoken run", url=url)) from error
    except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
        raise GatewayLost(
            speak(
                "The connection to the gateway at {url} was lost ({why}).", url=url, why=speak(refusing.broken(error))
            )
        ) from error
    if not over:
        raise GatewayLost(speak("The gateway at {url} closed the connection before the end.", url=url))


async def _posted(
    http: aiohttp.ClientSession, url: str, body: bytes, headers: Mapping[str, str]
) -> aiohttp.ClientResponse:
    return await http.post(url, data=body, headers=headers)


async def _not_yet(url: str) -> str:
    """What a request waits for that is not answered."""
    able = await health(url, Question.READY, None, SLOW_SECONDS)
    return speak(NOT_ANSWERED_YET if able.yes else NOT_STORED_YET)


def whoever_is_here() -> str:
    """Whose memory it is: who is logged in on which machine. Said as a digest, as it may be passed on to a model's provider."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        name = str(os.getuid())
    return (
        AT_TERMINAL + hashlib.blake2b(f"{name}@{platform.node()}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    )


def _refusal(status: int, body: bytes) -> str:
    if status == 401:  # the API's own words tell a program of a header
        return speak(
            "The gateway wants a key that is good. Put it into OUTSPOKEN_KEY; “outspoken keys add NAME” makes one."
        )
    try:
        message = orjson.loads(body)["error"]["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = ""
    return (
        message
        if isinstance(message, str) and message
        else speak("The gateway answered with HTTP {status}.", status=status)
    )


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
    """One line on the terminal that is replaced, and gone once text comes. What is wider than the terminal is cut: of two rows only one is replaced."""

    def __init__(self, err: TextIO, *, enabled: bool) -> None:
        self._err = err
        self._enabled = enabled
        self._shown = False

    def show(self, words: str) -> None:
        if words.startswith("turn "):
            words = speak("Working …")
        if self._enabled and words and words != "keep-alive":
            draw(self._err, "\r\x1b[2K\x1b[2m")
            self._err.write(cut(plain(known_sentence(words)), width(self._err) - 1))
            draw(self._err, "\x1b[0m")
            self._err.flush()
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            draw(self._err, "\r\x1b[2K")
            self._err.flush()
            self._shown = False
