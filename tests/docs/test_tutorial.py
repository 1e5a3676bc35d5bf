"""The tutorial is played as it stands: its commands in a shell, its files written, its conversations with a Telegram of our own.

Blocks of `sh` are run, `console` is compared with what is printed, `toml` and `python` are put into the file that the words before them
name, and `chat` and `group` are said and awaited. `…` stands for anything.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, read
from tests.fakes.telegram import Chat, TelegramFake, User
from tests.ports import free_port
from tests.program import program

PAGE = ROOT / "docs" / "tutorial.md"
PATIENCE_SECONDS = 120.0


def fits(pattern: str, text: str) -> re.Match[str] | None:
    """Whether a text is as a line of the page shows it; white space of any kind is one blank."""
    parts = [re.escape(" ".join(part.split())) for part in pattern.split("…")]
    return re.search(r".*?".join(parts), " ".join(text.split()))


def test_what_stands_for_anything_does_and_nothing_else() -> None:
    assert fits("It shows ….", "This is what came back:\n\nIt shows 4.")
    assert not fits("It shows ….", "It showed 4.")
    assert fits("$ a\n…\n 1. x", "$ a b\n 1. x")


class Played:
    """Who reads the tutorial, at two terminals and a telephone."""

    def __init__(self, folder: Path, fake: TelegramFake) -> None:
        self.fake = fake
        self.folder = folder
        self.code = ""
        self.gateway: asyncio.subprocess.Process | None = None
        bin_ = folder / "bin"
        bin_.mkdir()
        self.program = program(bin_)
        self.port = str(free_port())
        self.env = {
            "PATH": f"{bin_}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "OUTSPOKEN_HOME": str(folder / "bot"),
            "OUTSPOKEN_SERVER__PORT": self.port,
            "OUTSPOKEN_TELEGRAM__API_BASE": fake.origin,
        }
        self.ada: User = fake.people.user("Ada")
        self.private: Chat = fake.people.private(self.ada)
        self.group: Chat = fake.people.group("Friends", self.ada)
        self.since: dict[int, int] = {}

    async def run(self, command: str, typed: str = "") -> tuple[int, str]:
        shell = await asyncio.create_subprocess_exec(
            "bash", "-c", command, cwd=ROOT, env=self.env,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        out, _ = await asyncio.wait_for(shell.communicate(typed.encode()), PATIENCE_SECONDS)
        return shell.returncode or 0, out.decode()

    async def start(self) -> None:
        """`make run`, whose installing is tested elsewhere."""
        await self.stop()
        with (self.folder / "log").open("ab") as log:
            self.gateway = await asyncio.create_subprocess_exec(
                self.program, "run", cwd=ROOT, env=self.env, stdout=log, stderr=log
            )
        up = f"until curl --silent --fail --output /dev/null http://127.0.0.1:{self.port}/readyz; do sleep 0.2; done"
        await self.run(up)

    async def stop(self) -> None:
        if self.gateway is not None and self.gateway.returncode is None:
            self.gateway.send_signal(signal.SIGINT)
            await asyncio.wait_for(self.gateway.wait(), 60)

    async def shell(self, block: Block) -> None:
        for line in block.text.splitlines():
            if line == "make run":
                await self.start()
                continue
            typed = f"{self.fake.token}\n" if line.startswith("outspoken setup") else ""
            status, out = await self.run(line.replace("CODE", self.code), typed)
            assert status == 0, f"{line}\n{out}"

    async def console(self, block: Block) -> None:
        command, _, shown = block.text.partition("\n")
        _, out = await self.run(command.removeprefix("$ "))
        assert fits(shown, out), f"{command}\n{out}"

    async def talk(self, block: Block, chat: Chat) -> None:
        for line in block.text.splitlines():
            who, _, words = line.partition(": ")
            if who == "you":
                said = self.fake.people.say(chat, self.ada, words.replace("@yourbot", f"@{self.fake.bot.username}"))
                self.since[chat.id] = said.id
            else:
                await self.hear(chat, words)

    def texts(self, chat: Chat) -> list[str]:
        """What the bot has said since the person last spoke."""
        since = self.since.get(chat.id, 0)
        return [one.text for one in self.fake.shown(chat).messages if one.by_bot and one.id > since]

    async def hear(self, chat: Chat, words: str) -> None:
        pattern = words.replace("CODE)", "…")

        def heard() -> bool:
            return any(fits(pattern, text) for text in self.texts(chat))

        await self.until(heard, lambda: f"{words}\n{self.texts(chat)}")
        if "CODE" in words:
            found = re.search(r"approve (\w+)\)", self.texts(chat)[-1])
            assert found
            self.code = found[1]

    async def until(self, condition: Callable[[], bool], what: Callable[[], str]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not condition():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"{what()}\n{(self.folder / 'log').read_text('utf-8')}")


@asynccontextmanager
async def reader(folder: Path) -> AsyncGenerator[Played]:
    async with TelegramFake() as fake:
        played = Played(folder, fake)
        try:
            yield played
        finally:
            await played.stop()


def file_of(block: Block, text: str) -> str:
    """The file that the last words before a block name."""
    before = "\n".join(text.splitlines()[: block.line - 1])
    return re.findall(r"`~/(bot/[\w./]+\.(?:toml|py))`", before)[-1]


@pytest.mark.timeout(280)
@pytest.mark.skipif(os.name != "posix", reason="signals and a shell")
async def test_each_step_of_the_tutorial_works(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    blocks = read(PAGE).blocks
    assert {"sh", "console", "chat", "group", "toml", "python"} <= {block.language for block in blocks}
    async with reader(tmp_path) as played:
        for block in blocks:
            match block.language:
                case "sh":
                    await played.shell(block)
                case "console":
                    await played.console(block)
                case "chat":
                    await played.talk(block, played.private)
                case "group":
                    await played.talk(block, played.group)
                case "toml" | "python":
                    file = tmp_path / file_of(block, text)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(block.text, "utf-8")
                case _:
                    continue  # asks for an account of the reader's
        played.since.clear()
        assert len(played.texts(played.group)) == 1, "it kept quiet about what was not for it"
