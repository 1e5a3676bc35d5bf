"""What every incident needs: a gateway with ordinary traffic, and somebody who types the commands of the documentation."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import structlog
from click.testing import CliRunner

from agent_core.text.redaction import Redactor
from gateway.cli.command import cli
from gateway.config.types import LogFormat, LogLevel
from gateway.daemon import Serving
from gateway.observe.logging import configure
from tests import elsewhere
from tests.chats.discord_harness import DiscordHarness
from tests.chats.harness import Harness, answer, environment, status
from tests.chats.slack_harness import SlackHarness
from tests.chats.telegram_harness import TelegramHarness, Where
from tests.fakes.discord import PRIVILEGED, DiscordFake, Intent
from tests.fakes.slack import SlackFake
from tests.fakes.telegram import TelegramFake, User
from tests.incidents.model import TroubledModel, troubled_model
from tests.ports import free_port
from tests.serving import QUICK, served

HASTE = {
    **QUICK,
    "OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "3",
    "OUTSPOKEN_MODEL__STALL_SECONDS": "1",
    "OUTSPOKEN_MODEL__REMEDY_SECONDS": "1",
    "OUTSPOKEN_MODEL__ATTEMPTS": "2",
    "OUTSPOKEN_LOG__FORMAT": "json",
}
PATIENCE = 30.0
"""Seconds until something that was staged must be there; machines are slow."""


@dataclass
class Operator:
    """Where whoever knows only the documentation sits: what they see, and what the commands say."""

    env: Mapping[str, str]
    log: Path
    url: str
    named: dict[str, str] = field(default_factory=dict[str, str])
    """What stands for MESSAGE, CHAT and so on in the documentation's commands."""

    async def run(self, command: str) -> str:
        """Type it; all that it prints, on one line."""
        words = [self.named.get(word, word) for word in shlex.split(command)]
        if words == ["/readyz"]:
            async with aiohttp.ClientSession() as http, http.get(f"{self.url}/readyz") as response:
                said = " ".join((await response.json())["problems"])
        else:
            assert words[0] == "outspoken", command
            done = await asyncio.to_thread(lambda: CliRunner(env=dict(self.env)).invoke(cli, words[1:]))
            assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
            said = done.output
        return " ".join(said.split())


@dataclass
class Scene:
    """A gateway that runs on Telegram, with people who use it."""

    chat: TelegramHarness
    model: TroubledModel
    up: Serving
    operator: Operator

    async def newcomer(self, name: str = "Ada") -> tuple[Where, User]:
        """Somebody who has talked to the bot already."""
        person = self.chat.person(name)
        place = self.chat.private(person)
        self.chat.say(place, person, f"say good day {name}")
        await answer(self.chat, place, f"good day {name}", PATIENCE)
        return place, person

    async def traffic(self) -> None:
        """Three people ask and are answered."""
        async with asyncio.TaskGroup() as group:
            for name in ("Kim", "Lee", "Max"):
                group.create_task(self.newcomer(name))

    def say(self, place: Where, person: User, words: str) -> str:
        """The message that the operator will ask about, by the id that the platform shows."""
        said = f"{place.chat.id}:{self.chat.say(place, person, words)}"
        self.operator.named["MESSAGE"] = said
        return said

    async def noticed(self, place: Where, words: str = "⚠️") -> str:
        """Come back when the bot has said this."""
        return (await answer(self.chat, place, words, PATIENCE)).text


@contextmanager
def logged(file: Path) -> Generator[None]:
    """The log of this process goes into a file, as that of the service does; everything is put back after it."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    with file.open("w") as stream:
        try:
            configure(LogLevel.INFO, LogFormat.JSON, Redactor.of([]), stream)
            yield
        finally:
            structlog.reset_defaults()
            logging.captureWarnings(False)
            root.handlers[:] = before
            root.setLevel(level)


@asynccontextmanager
async def gateway_of(chat: Harness, **more: str) -> AsyncGenerator[tuple[Serving, Operator]]:
    """The gateway of these platforms, and the operator beside it."""
    port = str(free_port())
    env = {
        **HASTE,
        **elsewhere.settings(),
        **environment(chat, **more),
        "OUTSPOKEN_SERVER__PORT": port,
        "OUTSPOKEN_HOME": str(chat.folder),
    }
    log = chat.folder / "gateway.log"
    with logged(log):
        async with served(chat.folder, env) as up:
            yield up, Operator(env, log, up.url, {"gateway.log": str(log)})


async def until_told(url: str, told: Callable[[str], bool]) -> None:
    """Until the gateway's status says so."""
    latest = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while not told(latest):
                await asyncio.sleep(0.1)
                latest = str(await status(url))
    except TimeoutError:
        raise AssertionError(f"That is not told: {latest}") from None


@asynccontextmanager
async def telegram(folder: Path, **more: str) -> AsyncGenerator[Scene]:
    """A gateway on Telegram."""
    async with AsyncExitStack() as stack:
        fake, model = await stack.enter_async_context(TelegramFake()), await stack.enter_async_context(troubled_model())
        chat = TelegramHarness(fake, model, folder)
        up, operator = await stack.enter_async_context(gateway_of(chat, **more))
        await fake.until(lambda: fake.polled, PATIENCE)
        yield Scene(chat, model, up, operator)


@asynccontextmanager
async def discord(folder: Path, granted: Intent = PRIVILEGED) -> AsyncGenerator[DiscordHarness]:
    """A Discord that lets the bot have these intents, and a model."""
    async with DiscordFake(granted=granted) as fake, troubled_model() as model:
        yield DiscordHarness(fake, model, folder)


@asynccontextmanager
async def slack(folder: Path) -> AsyncGenerator[SlackHarness]:
    """A Slack, and a model."""
    async with SlackFake() as fake, troubled_model() as model:
        yield SlackHarness(fake, model, folder)
