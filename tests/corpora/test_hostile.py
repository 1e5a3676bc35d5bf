"""Whatever a pattern, a page or an answer is, the loop goes on: the hostile corpus through the real tools, with the lag of a real loop.

What is asserted is the processor time of the loop's thread between two of its rounds, because a busy machine makes everything late; what is
printed is what was seen by the clock as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.discord.pieces import pieces as discord
from adapters.slack.pieces import pieces as slack
from adapters.telegram.pieces import pieces as telegram
from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.tools.base import ToolContext, ToolOutcome, ToolStatus
from agent_core.tools.builtin.fetch import FetchUrl
from agent_core.tools.builtin.readers import readers
from agent_core.tools.registry import ArgumentsUnreadable, NoSuchTool, Runnable, ToolRegistry
from agent_core.workers.pool import Workers
from gateway.delivery.forming import Forming, FormParts
from tests.corpora.hostile import FIRST, LAST, LINES, PATTERNS, Page, answers, pages
from tests.sampled import chosen

pytestmark = pytest.mark.timeout(600)
MOST_SECONDS = 1.0
"""What is promised is a quarter of it, and printed as a figure; on a machine that is busy with other things, also CPU time is longer."""
FEW = 20
"""So many of each corpus are tried each time; all of them in `make soak`. To try one takes as long as ten ordinary tests."""
FORMS: tuple[FormParts, ...] = (telegram, discord, slack)


@dataclass(slots=True)
class Lag:
    """How long one round of the loop took at most: by the clock, and of the loop's thread alone."""

    clock: float = 0.0
    thread: float = 0.0

    def __str__(self) -> str:
        return f"the loop was held for at most {self.clock * 1000:.0f} ms ({self.thread * 1000:.0f} ms of its own)"


@asynccontextmanager
async def sampled() -> AsyncGenerator[Lag]:
    lag = Lag()

    async def sample() -> None:
        while True:
            clock, thread = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.002)
            lag.clock = max(lag.clock, time.perf_counter() - clock - 0.002)
            lag.thread = max(lag.thread, time.thread_time() - thread)

    task = asyncio.create_task(sample())
    await asyncio.sleep(0.01)
    try:
        yield lag
    finally:
        await asyncio.sleep(0.01)
        task.cancel()


def context(workspace: Path) -> ToolContext:
    return ToolContext("t", "c", "t:c", workspace, "m", SystemClock(), lambda _: None)


async def several(work: Callable[[int], Awaitable[None]], count: int, at_once: int = 3) -> None:
    """Each of `count` pieces of work, a few at a time."""
    numbers = iter(range(count))

    async def one() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(one())


async def test_no_pattern_holds_the_loop(tmp_path: Path, figure: Callable[[str], None]):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text((LINES + "\n") * 4)
    found: list[ToolOutcome] = []
    patterns = chosen("patterns", PATTERNS, FEW)
    async with Workers() as workers, sampled() as lag:
        registry = ToolRegistry(readers(workers))
        spec = next(spec for spec in registry.specs() if spec.name == "search_files")

        async def search(number: int) -> None:
            arguments: dict[str, Json] = {"query": patterns[number], "regex": True}
            found.append(await registry.run(Runnable(spec, arguments), context(tmp_path)))

        await several(search, len(patterns))
    assert len(found) == len(patterns)
    assert len(PATTERNS) >= 60
    assert all(outcome.text for outcome in found)
    assert sum(outcome.status is ToolStatus.OK for outcome in found) > len(patterns) // 3
    assert lag.thread < MOST_SECONDS, lag
    figure(f"{len(patterns)} hostile patterns: {lag}; {told(found)}")


def told(found: Iterable[ToolOutcome]) -> str:
    states = [outcome.status for outcome in found]
    return ", ".join(f"{states.count(state)} {state.value}" for state in ToolStatus if state in states)


async def answer(page: Page | None, writer: asyncio.StreamWriter) -> None:
    if page is not None:
        lines = [
            "HTTP/1.1 302 Found" if any(name == "Location" for name, _ in page.headers) else "HTTP/1.1 200 OK",
            f"Content-Type: {page.kind}",
            f"Content-Length: {len(page.body)}",
            *([f"Content-Encoding: {page.packed}"] if page.packed else []),
            *(f"{name}: {value}" for name, value in page.headers),
            "Connection: close",
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + page.body)
    writer.close()


@asynccontextmanager
async def site(found: list[Page]) -> AsyncGenerator[str]:
    """A server with these pages, by their number; its address."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        number = line.split()[1].strip(b"/")
        await answer(found[int(number)] if number.isdigit() else None, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_no_page_holds_the_loop(tmp_path: Path, figure: Callable[[str], None]):
    corpus = chosen("pages", list(pages()), FEW)
    found: list[ToolOutcome] = []
    async with Workers() as workers, site(corpus) as address, sampled() as lag:
        registry = ToolRegistry([FetchUrl(workers, refuse=lambda _: None)])
        (spec,) = registry.specs()

        async def read(number: int) -> None:
            called = Runnable(spec, {"url": f"{address}/{number}"})
            found.append(await registry.run(called, context(tmp_path / str(number % 3))))

        await several(read, len(corpus))
    assert len(found) == len(corpus)
    assert len(list(pages())) >= 60
    assert all(outcome.text for outcome in found)
    assert sum(outcome.status is ToolStatus.OK for outcome in found) > len(corpus) // 2
    assert lag.thread < MOST_SECONDS, lag
    figure(f"{len(corpus)} hostile pages and charsets: {lag}; {told(found)}")


async def test_no_answer_in_markdown_holds_the_loop_and_none_is_lost(figure: Callable[[str], None]):
    corpus = chosen("answers", list(answers()), FEW)
    lost: list[str] = []
    async with Workers(3) as workers, sampled() as lag:
        forming = Forming(workers)

        async def form(number: int) -> None:
            name, markdown = corpus[number]
            by = FORMS[number % len(FORMS)]
            await forming.growing(by, markdown[: len(markdown) // 2])
            text = "".join(piece.text for piece in await forming.final(by, markdown))
            if FIRST not in text or LAST not in text:
                lost.append(name)

        await several(form, len(corpus))
    assert len(list(answers())) >= 40
    assert lost == []
    assert lag.thread < MOST_SECONDS, lag
    figure(f"{len(corpus)} hostile answers in Markdown: {lag}")


NAMES = ["x" * 1_000_000, "ab" * 300_000, "", "\0", "read_file" * 50_000, "é" * 300_000]
ARGUMENTS = [
    "[" * 200_000, '{"a":' * 100_000, "1" * 500_000, '"' + "\\" * 300_000, '{"path":"' + "\\u0041" * 100_000 + '"}', " " * 500_000 + "{",
    '"' * 200_000, '{"path": ' + "9" * 4_000 + "}", "{" + ",".join(f'"k{n}":1' for n in range(60_000)) + "}",
    '{"path": [' + "[]," * 100_000 + "[]]}", "\ufeff" * 100_000, "nul" * 100_000, '{"path":"\\ud800"}', "-" * 300_000, "\t" * 300_000,
]  # fmt: skip


async def test_no_name_and_no_arguments_of_a_call_hold_the_loop(figure: Callable[[str], None]):
    registry = ToolRegistry(readers(Workers()))
    async with sampled() as lag:
        for name in NAMES:
            assert isinstance(registry.check(name, "{}"), NoSuchTool)
            await asyncio.sleep(0.003)
        for arguments in ARGUMENTS:
            checked = registry.check("read_file", arguments)
            assert isinstance(checked, ArgumentsUnreadable | Runnable)
            await asyncio.sleep(0.003)
    assert lag.thread < MOST_SECONDS, lag
    figure(f"{len(NAMES) + len(ARGUMENTS)} hostile tool calls: {lag}")
