"""The conversation in a terminal: what ``outspoken chat`` does, over the gateway's own OpenAI-compatible API.

Lines in, streamed text out. Statuses are one line that is replaced; notices come as text, as on every surface. Ctrl-C while an
answer comes stops the turn; at the prompt it clears the line; Ctrl-D leaves.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable

import aiohttp
import orjson

from adapters.contract.base import REHEARSAL_WORDS
from adapters.terminal.ask import Answer, GatewayLost, GatewayRefused, Shown, StatusLine, capable, footer, stream, take
from adapters.terminal.screen import draw
from agent_core.jsonvalue import Json

HELP = """\
/new     begin a new conversation
/why     why the last turn went as it did
/help    this list
/quit    leave (or Ctrl-D)
Ctrl-C   stop the answer that is coming"""

ReadLine = Callable[[], Awaitable[str]]


class _Chat:
    """One conversation."""

    def __init__(self, url: str, key: str | None, session: str) -> None:
        self._url = url
        self._key = key
        self.session = session
        self._status = StatusLine(sys.stderr, enabled=capable(sys.stderr))
        self._last_turn = ""
        self._waiting = False
        """The gateway is gone, and waited for."""

    async def say(self, words: str) -> None:
        """Send the words and show what comes, to its end or until Ctrl-C."""
        loop = asyncio.get_running_loop()
        showing = asyncio.ensure_future(self._show(words))
        loop.add_signal_handler(signal.SIGINT, showing.cancel)
        try:
            await showing
        except asyncio.CancelledError:
            if not showing.cancelled():
                raise
            self._status.clear()
            sys.stdout.write("\n")
            _aside(
                "It goes on when the gateway is back; the answer then stands in this conversation."
                if self._waiting
                else "Stopped. Whatever had not run yet will not run; /why tells what had."
            )
        except (GatewayLost, GatewayRefused) as error:
            self._status.clear()
            _aside(str(error))
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _show(self, words: str) -> None:
        answer, screen = Answer(), Shown()
        self._waiting = False
        async for kind, data in stream(self._url, self._key, words, self.session, cancel_on_leave=True):
            match kind:
                case "comment":
                    if data.startswith("turn "):
                        self._last_turn = data.removeprefix("turn ")
                    self._status.show(data)
                case "lost":
                    self._waiting = True
                    self._status.clear()
                    sys.stdout.write("\n")
                    _aside(data)
                case "again":
                    self._waiting = False
                    answer = Answer()
                    screen.again()
                case _:
                    text = screen.new(take(answer, data))
                    self._last_turn = answer.turn or self._last_turn
                    if text:
                        self._status.clear()
                        sys.stdout.write(text)
                        sys.stdout.flush()
        self._status.clear()
        sys.stdout.write("\n")
        if not answer.exit:
            raise GatewayLost("The gateway did not say how it ended. /why tells what is known.")
        for notice in answer.notices:
            _aside(notice)
        _aside(footer(answer))

    async def why(self) -> None:
        """Print the story of the last turn."""
        if not self._last_turn:
            _aside("There was no turn yet.")
            return
        try:
            body = await _asked(f"{self._url}/api/turns/{self._last_turn}/why", self._key, 10)
        except _UNREACHABLE as error:
            _aside(f"The gateway could not say: {type(error).__name__}.")
            return
        lines = body.get("lines") if isinstance(body, dict) else None
        for line in lines if isinstance(lines, list) else ["Nothing is known of it."]:
            _aside(str(line))


def _aside(words: str) -> None:
    dim, plain = ("\x1b[2m", "\x1b[0m") if capable(sys.stderr) and not os.environ.get("NO_COLOR") else ("", "")
    draw(sys.stderr, dim)
    sys.stderr.write(words)
    draw(sys.stderr, f"{plain}\n")
    sys.stderr.flush()


def _reader() -> ReadLine:
    """Lines from a person (with history and editing), or from a pipe."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):

        async def from_pipe() -> str:
            line = await asyncio.to_thread(sys.stdin.readline)
            if not line:
                raise EOFError
            return line

        return from_pipe
    from prompt_toolkit import PromptSession

    prompt: PromptSession[str] = PromptSession("› ")
    return prompt.prompt_async


async def chat(url: str, key: str | None, session: str, *, new: bool) -> int:
    """Talk until the person leaves. The exit status is 0."""
    talk = _Chat(url, key, _fresh() if new else session)
    about = await _about(url, key)
    _aside(f"outspoken – talking to {url}. /help lists what can be typed.")
    if about:
        _aside(REHEARSAL_WORDS)
    if sys.stderr.isatty() and not capable(sys.stderr):
        _aside("This terminal cannot replace a line, so you do not see what I am doing. If it can: TERM=xterm-256color")
    read = _reader()
    while True:
        try:
            words = (await read()).strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        match words:
            case "":
                continue
            case "/quit" | "/exit":
                return 0
            case "/help":
                _aside(HELP)
            case "/new":
                talk.session = _fresh()
                _aside("A new conversation.")
            case "/why":
                await talk.why()
            case _ if words.startswith("/") and " " not in words:
                _aside(f"There is no command {words}. /help lists them.")
            case _:
                await talk.say(words)


def _fresh() -> str:
    return f"terminal-{secrets.token_hex(6)}"


async def _about(url: str, key: str | None) -> bool:
    """Whether the rehearsal model answers there."""
    try:
        body = await _asked(f"{url}/api/about", key, 5)
    except _UNREACHABLE as error:
        raise GatewayLost(f"The gateway at {url} does not answer ({type(error).__name__}).") from error
    return isinstance(body, dict) and body.get("rehearsal") is True


_UNREACHABLE = (aiohttp.ClientError, TimeoutError, orjson.JSONDecodeError)


async def _asked(address: str, key: str | None, seconds: float) -> Json:
    """The gateway's answer. Raises what `_UNREACHABLE` names."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=timeout) as http, http.get(address, headers=headers) as response:
        return orjson.loads(await response.read())
