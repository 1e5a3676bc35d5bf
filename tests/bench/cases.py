"""What is measured, one function a figure (or a few that belong together). Each gives `Figure`s; `run` prints and judges them."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.load import Stream, ask, ask_many
from tests.bench.machine import OTHER_CORE, Measured, process, settle
from tests.ports import free_port


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    """What it should not exceed (or, with `at_least`, not fall short of); None if it is only told."""
    at_least: bool = False
    reference: float | None = None
    """The same of the reference gateway, or of the upstream asked directly."""

    @property
    def kept(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True, slots=True)
class Bench:
    """The three servers."""

    upstream: Measured
    reference: Measured
    gateway: Measured
    home: Path
    seconds: float
    """How long each paced pair takes, ours and the reference's; the others are in proportion."""


@asynccontextmanager
async def servers(folder: Path, seconds: float) -> AsyncGenerator[Bench]:
    """All three, each a process of its own; what is measured on one core, the rest on the other."""
    up, ref, gate = free_port(), free_port(), free_port()
    url = f"http://127.0.0.1:{up}/v1"
    env = {
        "OUTSPOKEN_HOME": str(folder / "home"),
        "OUTSPOKEN_SERVER__PORT": str(gate),
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "bench",
        "OUTSPOKEN_MODEL__NAME": "bench",
    }
    with (
        process(["-m", "tests.bench.upstream", str(up)], up, core=OTHER_CORE, log=folder / "upstream.log") as upstream,
        process(["-m", "tests.bench.reference", str(ref), url], ref, log=folder / "reference.log") as reference,
        process(["-m", "gateway", "run"], gate, env, log=folder / "gateway.log") as gateway,
    ):
        yield Bench(upstream, reference, gateway, folder / "home", seconds)


def _whole(streams: list[Stream], tokens: int) -> None:
    """A figure of broken streams is none."""
    broken = [s for s in streams if s.status != 200 or not s.whole or s.tokens != tokens]
    if broken:
        raise RuntimeError(f"{len(broken)} of {len(streams)} streams were not whole, the first: {broken[0]}")


async def _cpu_per_token(server: Measured, words: str, streams: int, tokens: int) -> float:
    """CPU microseconds a token, the streams' beginning and end included."""
    await ask(server.port, "bench tokens=1")
    await settle()
    before = server.cpu_seconds()
    _whole(await ask_many(server.port, words, streams), tokens)
    await settle(0.1)
    return (server.cpu_seconds() - before) * 1e6 / (streams * tokens)


async def paced(bench: Bench) -> list[Figure]:
    """16 streams with a token each 20 ms: what a token costs, ours by the reference's."""
    tokens = round(bench.seconds / 0.04)
    words = f"bench tokens={tokens} pace=0.02"
    pairs: list[tuple[float, float]] = []
    for _ in range(3):  # in turn, and the median: a machine's speed wanders
        ours = await _cpu_per_token(bench.gateway, words, 16, tokens)
        pairs.append((ours, await _cpu_per_token(bench.reference, words, 16, tokens)))
    ours, theirs = sorted(pairs, key=lambda pair: pair[0] / pair[1])[1]
    return [
        Figure("paced: CPU a token, 16 streams, 20 ms", ours, "µs", reference=theirs),
        Figure("paced: by the reference", ours / theirs, "×", limit=1),
    ]


async def full_speed(bench: Bench) -> list[Figure]:
    """As fast as the upstream can."""
    figures: list[Figure] = []
    for streams in (1, 16):
        tokens = round(bench.seconds * 4_000 / streams)
        ours = await _cpu_per_token(bench.gateway, f"bench tokens={tokens}", streams, tokens)
        theirs = await _cpu_per_token(bench.reference, f"bench tokens={tokens}", streams, tokens)
        name = f"full speed: CPU a token, {streams} stream{'s' * (streams > 1)}"
        figures.append(Figure(name, ours, "µs", limit=10, reference=theirs))
    return figures


async def _one_by_one(port: int, words: str, count: int, read: Callable[[Stream], float], *, stream: bool) -> float:
    """The median of `count` turns, one after another, in ms."""
    await ask(port, words, stream=stream)
    seen = [await ask(port, words, stream=stream) for _ in range(count)]
    return statistics.median(read(one) for one in seen) * 1000


async def turns(bench: Bench) -> list[Figure]:
    """What a whole turn takes that is durable, and what a tool adds to it."""
    count = round(bench.seconds * 20)

    async def whole(port: int, words: str) -> float:
        return await _one_by_one(port, words, count, lambda s: s.seconds, stream=False)

    await whole(bench.gateway.port, "bench tokens=1")  # what is made once is made
    before = bench.gateway.cpu_seconds()
    plain = await whole(bench.gateway.port, "bench tokens=1")
    used = (bench.gateway.cpu_seconds() - before) * 1000 / (count + 1)
    written = await _log_growth(bench, 50)
    tools = await whole(bench.gateway.port, "bench tokens=1 tools=4")
    direct = await _one_by_one(bench.upstream.port, "bench tokens=1", count, lambda s: s.seconds, stream=True)
    return [
        Figure("durable turn, wall time (median)", plain, "ms", limit=5, reference=direct),
        Figure("durable turn, CPU", used, "ms", limit=3),
        Figure(
            "tool round trip adds (median of four in a turn)", (tools - plain) / 4, "ms", limit=1.5, reference=direct
        ),
        Figure("written to the database's log for a plain turn", written, "KiB", limit=16),
    ]


async def _log_growth(bench: Bench, turns: int) -> float:
    """KiB that a turn adds to SQLite's write-ahead log. A log that was copied back meanwhile grows from its start again."""
    (log,) = bench.home.rglob("*.db-wal")
    grown: list[float] = []
    for _ in range(3):
        before = log.read_bytes()
        for _ in range(turns):
            await ask(bench.gateway.port, "bench tokens=1", stream=False)
        after = log.read_bytes()
        frame = int.from_bytes(after[8:12]) + 24  # a page, and its head
        changed = sum(after[i : i + frame] != before[i : i + frame] for i in range(32, len(after), frame))
        grown.append(changed * frame / turns / 1024)
    return statistics.median(grown)


async def first_token(bench: Bench) -> list[Figure]:
    """How much later the first token comes than from the upstream itself."""
    count = round(bench.seconds * 10)
    words = "bench tokens=2 pace=0.02"

    async def one(port: int) -> float:
        return await _one_by_one(port, words, count, lambda s: s.first_seconds, stream=True)

    async def many(port: int) -> float:
        medians: list[float] = []
        for _ in range(5):
            medians.append(statistics.median(s.first_seconds for s in await ask_many(port, words, 64)))
            await settle(0.2)
        return statistics.median(medians) * 1000

    alone, alone_direct = await one(bench.gateway.port), await one(bench.upstream.port)
    crowd, crowd_direct = await many(bench.gateway.port), await many(bench.upstream.port)
    rush, rush_direct = await _rush(bench.gateway.port, words), await _rush(bench.upstream.port, words)
    return [
        Figure("added to the first token, 1 stream", alone - alone_direct, "ms", limit=3, reference=alone_direct),
        Figure("added to the first token, 64 at once", crowd - crowd_direct, "ms", limit=40, reference=crowd_direct),
        Figure("added to the first token, 500 in a second", rush - rush_direct, "ms", limit=300, reference=rush_direct),
    ]


async def _rush(port: int, words: str) -> float:
    """The median first token of 500 streams that begin within a second, in ms."""

    async def one(after: float) -> Stream:
        await asyncio.sleep(after)
        return await ask(port, words)

    seen = await asyncio.gather(*(one(number / 500) for number in range(500)))
    await settle(0.5)
    return statistics.median(stream.first_seconds for stream in seen) * 1000


async def fairness(bench: Bench) -> list[Figure]:
    """How much longer another's frame takes at most beside one stream that is as fast as it can be, or a large result."""

    async def gaps() -> float:
        return max(stream.longest_gap for stream in await ask_many(bench.gateway.port, "bench tokens=100 pace=0.02", 8))

    calm = statistics.median([await gaps() for _ in range(3)])
    greedy = asyncio.create_task(ask(bench.gateway.port, "bench tokens=40000"))
    beside = await gaps()
    await greedy
    return [
        Figure(
            "one greedy stream adds to another's frame", (beside - calm) * 1000, "ms", limit=50, reference=calm * 1000
        )
    ]


async def open_streams(bench: Bench) -> list[Figure]:
    """A thousand streams that are open at the same time."""
    await settle(1.0)
    idle = bench.gateway.resident_mib()
    asking = asyncio.create_task(ask_many(bench.gateway.port, "bench tokens=10 pace=1.5", 1_000))
    peak = idle
    while not asking.done():
        await asyncio.sleep(0.5)
        peak = max(peak, bench.gateway.resident_mib())
    streams = await asking
    refused = sum(stream.status != 200 for stream in streams)
    _whole([stream for stream in streams if stream.status == 200], 10)
    await settle(5.0)
    left = bench.gateway.resident_mib() - idle
    return [
        Figure("1 000 open streams: memory over idle", peak - idle, "MiB", limit=35),
        Figure("1 000 open streams: not given back after 5 s", left, "MiB"),
        Figure("1 000 open streams: refused", refused, "", limit=0),
    ]


async def idle(bench: Bench) -> list[Figure]:
    """A gateway that has nothing to do. Measured before anything else."""
    await settle(2.0)
    before, began = bench.gateway.cpu_seconds(), time.monotonic()
    await asyncio.sleep(bench.seconds)
    share = (bench.gateway.cpu_seconds() - before) / (time.monotonic() - began) * 100
    return [
        Figure("ready after", bench.gateway.ready_seconds, "s", limit=0.9),
        Figure("idle memory", bench.gateway.resident_mib(), "MiB", limit=65),
        Figure("idle CPU", share, "% of a core", limit=0.3),
    ]


Case = Callable[[Bench], Awaitable[list[Figure]]]
CASES: tuple[Case, ...] = (idle, first_token, turns, paced, full_speed, fairness, open_streams)
"""In this order: what comes late may leave memory behind."""
