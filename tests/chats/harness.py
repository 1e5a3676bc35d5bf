"""What the conformance suite needs of a platform: people who act, a screen to look at, and things that go wrong.

To hold another adapter to the suite, write a `Harness` for its platform (a server that speaks its protocol) and add it to
`HARNESSES` in `test_conformance`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from agent_core.ports import Clock
from gateway.daemon import Serving
from tests import elsewhere
from tests.chats.model import ScriptedModel
from tests.forked import Forked, first_line, start
from tests.laws.look import is_lawful
from tests.serving import QUICK, served

ROOT = Path(__file__).parents[2]
START_SECONDS = 120.0
"""How long a process may take to be up: imports take their time where many others work."""


class Leaves(Enum):
    """What a test leaves behind in the database."""

    LAWFUL = auto()
    DAMAGED = auto()
    """Somebody has changed rows in it on purpose."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as a person sees it."""

    id: str
    text: str
    mine: bool
    """The bot wrote it."""
    buttons: tuple[str, ...] = ()
    edits: int = 0
    silent: bool = False
    file: str = ""
    """The name of the file that it carries."""
    data: bytes = b""
    reply_to: str = ""
    code: tuple[str, ...] = ()
    """The pieces that are shown as blocks of code."""
    bold: tuple[str, ...] = ()


class Place(Protocol):
    """A chat, or a topic of one."""


class Scene(Protocol):
    """What a gateway needs in order to run: a model, a folder, and platforms."""

    model: ScriptedModel
    folder: Path

    def env(self) -> Mapping[str, str]: ...

    async def ready(self) -> None:
        """Come back when the bot hears people."""
        ...


class Harness(Scene, Protocol):
    """One platform under test."""

    name: str
    by_draft: bool
    """Text on its way is a draft in private chats, and no message."""
    answers_once: bool
    """A lost answer never leads to a second message."""
    shows_typing: bool
    """People see that the bot is typing."""
    plain_shows: bool
    """Markup is apart from the text, so that a text without it is seen to be plain."""

    def person(self, name: str) -> Any: ...

    def id_of(self, person: Any) -> str: ...

    def private(self, person: Any) -> Any: ...

    def group(self, *people: Any) -> Any: ...

    def chat_of(self, place: Any) -> str:
        """The chat's id, as the platform gives it."""
        ...

    def topics(self, *people: Any) -> tuple[Any, Any, Any]:
        """A group with two topics: (group, topic, topic)."""
        ...

    def say(self, place: Any, person: Any, text: str, *, mention: bool = False, reply_to: str = "") -> str:
        """A person writes; the message's id."""
        ...

    def command(self, place: Any, person: Any, name: str, words: str = "", *, other: bool = False) -> None: ...

    def edit(self, place: Any, message: str, text: str) -> None: ...

    def attach(self, place: Any, person: Any, name: str, data: bytes, mime: str, caption: str) -> None: ...

    def voice(self, place: Any, person: Any, data: bytes) -> None:
        """A person says something into the chat."""
        ...

    def album(self, place: Any, person: Any, pictures: Sequence[bytes], caption: str) -> None: ...

    def press(self, place: Any, person: Any, message: str, label: str) -> None: ...

    def forge(self, place: Any, person: Any, message: str, data: str) -> None:
        """A modified client presses a button that is not there: what comes back is of its own making."""
        ...

    def remove(self, place: Any, message: str) -> None: ...

    def redeliver(self) -> None:
        """The last event comes again."""
        ...

    def odd_event(self, place: Any) -> None:
        """An event comes that nobody can read."""
        ...

    def seen(self, place: Any) -> list[Seen]: ...

    def preview(self, place: Any) -> str:
        """Text on its way that is no message."""
        ...

    def typing(self, place: Any) -> bool: ...

    def menu(self) -> list[str]:
        """The commands that people are offered."""
        ...

    def block(self, place: Any) -> None: ...

    def silence(self, group: Any) -> None:
        """The bot may not write in the group any more."""
        ...

    def fail_sends(self, *faults: str) -> None:
        """The next messages fail like this: ``503``, ``lost`` (done, but the answer is lost), ``reset``, ``form``, ``ok``."""
        ...

    def flood(self, seconds: float) -> None:
        """The next message is refused as too fast."""
        ...

    def flooded(self) -> bool:
        """Whether something was refused as too fast."""
        ...

    def writes_since(self, seconds: float) -> int:
        """How many calls that write to a chat (drafts and typing included) came since so many seconds ago."""
        ...

    def deafen(self) -> None:
        """The connection stays open, and nothing comes through it any more."""
        ...

    def wrong_token(self) -> Mapping[str, str]:
        """Settings with a token that is not let in."""
        ...

    async def until(self, condition: Callable[[], bool], within: float = 10.0) -> None: ...


def answers(harness: Harness, place: Any) -> list[Seen]:
    """What the bot has written. No command of it stands in braces: the platform spells it (`agent_core.text.tongue.spelled`)."""
    mine = [one for one in harness.seen(place) if one.mine]
    assert not [one.text for one in mine if "{/" in one.text]
    return mine


def texts(harness: Harness, place: Any) -> list[str]:
    return [one.text for one in answers(harness, place)]


async def answer(harness: Harness, place: Any, words: str, within: float = 30.0) -> Seen:
    """The bot's message with these words."""

    def found() -> Seen | None:
        return next((one for one in answers(harness, place) if words in one.text), None)

    try:
        await harness.until(lambda: found() is not None, within)
    except AssertionError:
        raise AssertionError(f"{words!r} is not among {texts(harness, place)}") from None
    seen = found()
    assert seen is not None
    return seen


async def quiet(harness: Harness, place: Any, seconds: float = 0.7) -> None:
    """Come back when nothing has changed for a while."""
    before = harness.seen(place)
    while True:
        await asyncio.sleep(seconds)
        now = harness.seen(place)
        if now == before:
            return
        before = now


@asynccontextmanager
async def running(harness: Scene, left: Leaves = Leaves.LAWFUL, /, **more: str) -> AsyncGenerator[Serving]:
    """The gateway in this process, connected, with the platform and the scripted model. What it leaves behind breaks no law, unless somebody
    damages it on purpose."""
    async with starting(harness, left, **more) as up:
        await harness.ready()
        yield up


@asynccontextmanager
async def starting(harness: Scene, left: Leaves = Leaves.LAWFUL, /, **more: str) -> AsyncGenerator[Serving]:
    """The same, where the connection may never come."""
    clock: Clock | None = getattr(harness, "clock", None)
    env = environment(harness, **more)
    async with served(harness.folder, env, clock) as up:
        yield up
    if left is Leaves.LAWFUL:
        await is_lawful(env.get("OUTSPOKEN_STORAGE__URL") or elsewhere.database_of(harness.folder), clock)


def environment(harness: Scene, **more: str) -> dict[str, str]:
    model = {"OPENAI_BASE_URL": harness.model.url, "OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m1"}
    return {**model, **harness.env(), **more}


@dataclass
class Process:
    """The gateway in a process of its own, which can be killed."""

    inner: Forked
    url: str

    async def kill(self) -> None:
        """As a power cut would."""
        await asyncio.to_thread(self.inner.kill)


def begun(harness: Scene, **more: str) -> tuple[Forked, Path]:
    """The gateway as a process, which may die before it is ready, and the file with what it says."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    home = {"OUTSPOKEN_HOME": str(harness.folder), "OUTSPOKEN_LOG__FORMAT": "json"}
    env = {**kept, **QUICK, **elsewhere.settings(), **environment(harness, **more), **home}
    out = harness.folder / f"out-{time.monotonic_ns()}"
    inner = start(["run"], env, out=out, err=harness.folder / "log", prelude=getattr(harness, "prelude", ""))
    return inner, out


@asynccontextmanager
async def process(harness: Scene, **more: str) -> AsyncGenerator[Process]:
    """The gateway as a process; killed at the end, if it still runs."""
    inner, out = begun(harness, **more)
    try:
        line = await asyncio.to_thread(first_line, inner, out, START_SECONDS)
        async with asyncio.timeout(START_SECONDS):
            await harness.ready()
        yield Process(inner, line.rsplit(" ", 1)[-1].strip())
    finally:
        await asyncio.to_thread(inner.kill)


def taken_in(folder: Path, words: str) -> bool:
    """Whether a message with these words is stored."""
    return any(words.encode() in bytes(body) for (body,) in elsewhere.rows(folder, "SELECT body FROM inbox"))


async def status_until(url: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """What the gateway says of itself, as soon as this holds."""
    async with asyncio.timeout(START_SECONDS):
        while not holds(told := await status(url)):
            await asyncio.sleep(0.1)
        return told


async def status(url: str) -> dict[str, Any]:
    """What the gateway says of itself."""
    async with aiohttp.ClientSession() as http, http.get(f"{url}/status") as response:
        return await response.json()
