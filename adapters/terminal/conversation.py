"""The conversation in a terminal: what ``outspoken chat`` does, over the gateway's own OpenAI-compatible API.

Lines in, streamed text out. Statuses are one line that is replaced; notices come as text, as on every surface. Ctrl-C while an
answer comes stops the turn; at the prompt it clears the line; Ctrl-D leaves.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import aiohttp
import orjson

from adapters import refusing
from adapters.contract.base import REHEARSAL_WORDS
from adapters.terminal import deciding
from adapters.terminal.ask import Answer, GatewayLost, GatewayRefused, Shown, StatusLine, capable, footer, stream, take
from adapters.terminal.operator import Remote, Table, tables
from adapters.terminal.screen import draw, typed
from agent_core.jsonvalue import Json
from agent_core.text.shown import plain, shortened
from agent_core.text.tongue import sentence, speak, spelled, spoken_now
from agent_core.text.typed import as_command

LEAVE = ("/quit", sentence("leave (or Ctrl-D)"))
HELP = (
    ("/new", sentence("begin a new conversation")),
    ("/why", sentence("why the last turn went as it did")),
    ("/help", sentence("this list")),
    LEAVE,
    ("Ctrl-C", sentence("stop the answer that is coming")),
)

ELSEWHERE = sentence(
    "{command} works in the chats and on the web page, but not in a terminal. Say in a sentence what you want, or type {/help}."
)
_COMMAND = re.compile(r"/[a-z_]+", re.IGNORECASE)
"""What is no path and nothing to say."""

ReadLine = Callable[[], Awaitable[str]]
APPROVAL_COMMENT, KEEP_ALIVE = "waiting for approval of ", "keep-alive"


class Lines:
    """What somebody types. A line that nobody waits for any more is the next one's: a pipe cannot be asked to give it back."""

    def __init__(self, read: ReadLine, beside: ReadLine | None = None) -> None:
        """`beside`: how it is read while an answer comes, where somebody types: Ctrl-C is the answer's then."""
        self._read = read
        self._beside = beside
        self._coming: asyncio.Future[str] | None = None

    async def next(self, *, beside: bool = False) -> str:
        """The next line; or `beside` an answer that comes. Raises `EOFError`, and `KeyboardInterrupt` where somebody types, and has typed nothing yet."""
        if self._beside is not None:  # the prompt is taken off the screen when nobody waits any more
            return typed(await (self._beside() if beside else self._read()))
        if self._coming is None:
            self._coming = asyncio.ensure_future(self._read())
        line = await asyncio.shield(self._coming)
        self._coming = None
        return typed(line)


class Decider:
    """Asks whoever sits at the terminal about the call that waits, beside the answer that comes. Use it as an async context manager."""

    def __init__(self, url: str, key: str | None, lines: Lines, stop: Callable[[], object]) -> None:
        """`stop`: the answer is wanted no more."""
        self._stop = stop
        self._remote = Remote(url, key)
        self._lines = lines
        self._colours = capable(sys.stderr) and not os.environ.get("NO_COLOR")
        self._task: asyncio.Task[None] | None = None
        self._decided: set[str] = set()
        self._sending = False

    @property
    def asks(self) -> bool:
        """A question stands on the screen."""
        return self._task is not None and not self._task.done()

    def begin(self, turn: str) -> None:
        """The turn waits for somebody's word."""
        if not self.asks:
            self._task = asyncio.create_task(self._ask(turn))

    async def end(self) -> None:
        """Nothing waits any more: it was decided here or elsewhere, or its time was up."""
        if self._sending and self._task is not None:  # the answer may be here before it is said that it counts
            await asyncio.wait({self._task})
        elif self.asks:
            _aside(speak("That is decided; nothing waits any more."))
        await self.__aexit__()

    async def __aenter__(self) -> Decider:
        return self

    async def __aexit__(self, *_: object) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _ask(self, turn: str) -> None:
        try:
            found = tables((await self._remote.call("GET", "/v1/outspoken/approvals")).get("data"))
            one = deciding.waits_here(found, turn)
            if one is None or str(one.get("id")) in self._decided:
                return
            _shown("\n".join(deciding.asked_lines(one, colours=self._colours)))
            await self._decide(one)
        except (GatewayLost, GatewayRefused) as error:  # it still waits, and is asked about again
            _aside(str(error))

    async def _decide(self, one: Table) -> None:
        choice: deciding.TypedChoice | None = None
        while choice is None:
            _shown(deciding.choices_words(one, colours=self._colours))
            try:
                said = await self._lines.next(beside=True)
                choice = deciding.choice_of(said, one)
                if choice is None and said.strip():
                    _aside(
                        speak("“{words}” decides nothing here. Ctrl-C stops the answer.", words=plain(shortened(said)))
                    )
            except EOFError:
                _aside(speak("Nothing more can be read here."))
                choice = deciding.TypedChoice(approve=False)
            except KeyboardInterrupt:
                self._stop()
                return
        body: dict[str, Json] = {"approve": choice.approve, "lasts": choice.lasts}
        self._sending = True
        try:
            await self._remote.call("POST", f"/v1/outspoken/approvals/{one.get('id')}", body)
        finally:
            self._sending = False
        self._decided.add(str(one.get("id")))
        _aside(deciding.decided_words(choice))


class _Chat:
    """One conversation."""

    def __init__(self, url: str, key: str | None, session: str, lines: Lines) -> None:
        self._lines = lines
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
                speak("It goes on when the gateway is back; the answer then stands in this conversation.")
                if self._waiting
                else spelled(speak("Stopped. Whatever had not run yet will not run; {/why} tells what had."))
            )
        except (GatewayLost, GatewayRefused) as error:
            self._status.clear()
            _aside(str(error))
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _show(self, words: str) -> None:
        answer, screen = Answer(), Shown()
        self._waiting = False
        itself = asyncio.current_task()
        assert itself is not None
        async with Decider(self._url, self._key, self._lines, itself.cancel) as asking:
            answer = await self._follow(words, answer, screen, asking)
        self._status.clear()
        sys.stdout.write("\n")
        if not answer.exit:
            raise GatewayLost(speak("The gateway did not say how it ended."))
        for notice in answer.notices:
            _aside(notice)
        _aside(footer(answer))

    async def _follow(self, words: str, answer: Answer, screen: Shown, asking: Decider) -> Answer:
        more = {"X-Outspoken-Approvals": "wait"}
        async for kind, data in stream(self._url, self._key, words, self.session, cancel_on_leave=True, more=more):
            match kind:
                case "comment" if data.startswith(APPROVAL_COMMENT):
                    self._status.clear()
                    asking.begin(self._last_turn)
                case "comment":
                    if data.startswith("turn "):
                        self._last_turn = data.removeprefix("turn ")
                    if data != KEEP_ALIVE:
                        await asking.end()
                    if not asking.asks:
                        self._status.show(data)
                case "waits":
                    self._status.clear()
                    _aside(data)
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
                        await asking.end()
                        self._status.clear()
                        sys.stdout.write(text)
                        sys.stdout.flush()
        return answer

    async def why(self) -> None:
        """Print the story of the last turn."""
        if not self._last_turn:
            _aside(speak("There was no turn yet."))
            return
        try:
            body = await _asked(f"{self._url}/api/turns/{self._last_turn}/why", self._key, 10)
        except _UNREACHABLE as error:
            _aside(speak("The gateway could not say: {why}.", why=speak(refusing.broken(error))))
            return
        lines = body.get("lines") if isinstance(body, dict) else None
        for line in lines if isinstance(lines, list) else [speak("Nothing is known of it.")]:
            _aside(str(line))


def _help_line(what: str, words: str) -> str:
    return f"{what:<8} {speak(words)}"


def _help_words() -> str:
    lines = [_help_line(*one) for one in HELP]
    waits = speak(
        "What waits for your approval is shown, and decided by a word: approve, conversation, always or deny."
    )
    return "\n".join([*lines, waits])


def _aside(words: str) -> None:
    dim, plain = ("\x1b[2m", "\x1b[0m") if capable(sys.stderr) and not os.environ.get("NO_COLOR") else ("", "")
    draw(sys.stderr, dim)
    sys.stderr.write(words)
    draw(sys.stderr, f"{plain}\n")
    sys.stderr.flush()


def _shown(words: str) -> None:
    """Words of ours with colours, in which everything that others wrote was made harmless."""
    draw(sys.stderr, f"{words}\n")
    sys.stderr.flush()


def _reader() -> Lines:
    """Lines from a person (with history and editing), or from a pipe."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):

        async def from_pipe() -> str:
            line = await asyncio.to_thread(sys.stdin.readline)
            if not line:
                raise EOFError
            return line

        return Lines(from_pipe)
    from prompt_toolkit import PromptSession

    prompt: PromptSession[str] = PromptSession("› ")

    async def from_person() -> str:
        try:
            return await prompt.prompt_async()
        except KeyboardInterrupt:
            if prompt.default_buffer.text:  # what was begun is dropped, and nothing else
                return ""
            raise

    return Lines(from_person, partial(prompt.prompt_async, handle_sigint=False))


async def chat(url: str, key: str | None, session: str, *, new: bool) -> int:
    """Talk until the person leaves. The exit status is 0."""
    lines = _reader()
    talk = _Chat(url, key, _fresh() if new else session, lines)
    rehearsal, elsewhere = await _about(url, key)
    _aside(spelled(speak("outspoken – talking to {url}. {/help} lists what can be typed.", url=url)))
    if rehearsal:
        _aside(speak(REHEARSAL_WORDS))
    if sys.stderr.isatty() and not capable(sys.stderr):
        _aside(
            speak(
                "This terminal cannot replace a line, so you do not see what I am doing. If it can: TERM=xterm-256color"
            )
        )
    leaves = False
    while True:
        try:
            typed = (await lines.next()).strip()
            words = as_command(typed)
        except KeyboardInterrupt:
            if leaves:
                return 0
            leaves = True
            _aside(_help_line(*LEAVE))
            continue
        except EOFError:
            return 0
        leaves = False
        first, *rest = words.split(maxsplit=1) or [""]
        match first:
            case "":
                continue
            case "/quit" | "/exit":
                return 0
            case "/help":
                _aside(_help_words())
            case "/new":
                talk.session = _fresh()
                _aside(speak("A new conversation."))
                if rest:
                    await talk.say(rest[0])
            case "/why":
                await talk.why()
            case _ if first in elsewhere:
                _aside(spelled(speak(ELSEWHERE, command=first)))
            case _ if _COMMAND.fullmatch(words):
                _aside(spelled(speak("There is no command {command}. {/help} lists them.", command=words)))
            case _:
                await talk.say(typed)


def _fresh() -> str:
    return f"terminal-{secrets.token_hex(6)}"


async def _about(url: str, key: str | None) -> tuple[bool, frozenset[str]]:
    """Whether the rehearsal model answers there, and which commands there are on its page."""
    try:
        body = await _asked(f"{url}/api/about", key, 5)
    except _UNREACHABLE as error:
        raise GatewayLost(f"The gateway at {url} does not answer: {refusing.broken(error)}.") from error
    if not isinstance(body, dict):
        return False, frozenset()
    commands = body.get("commands")
    listed = commands if isinstance(commands, list) else []
    return body.get("rehearsal") is True, frozenset(f"/{one.get('name')}" for one in listed if isinstance(one, dict))


_UNREACHABLE = (aiohttp.ClientError, TimeoutError, orjson.JSONDecodeError)


async def _asked(address: str, key: str | None, seconds: float) -> Json:
    """The gateway's answer. Raises what `_UNREACHABLE` names."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if now_spoken := spoken_now():
        headers["Accept-Language"] = now_spoken
    timeout = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=timeout) as http, http.get(address, headers=headers) as response:
        return orjson.loads(await response.read())
