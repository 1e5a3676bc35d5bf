"""Other gateways beside ours, for the same work in the same run: ``python -m tests.bench.run --peers FOLDER``.

Each is installed by its name from the package index into an environment of its own below FOLDER (once), and runs as its
documentation says, one process on the core where ours runs, in front of the same model server. They keep other promises than ours (a
proxy keeps none, an agent keeps its sessions in files): their figures say what people are used to, not who is better.

Known to be weak: which release is installed is for the index to say; the page prints it.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import orjson

from tests.bench.load import Stream, ask, exchange
from tests.bench.machine import OTHER_CORE, Measured, process, settle
from tests.ports import free_port

KEY = "sk-bench-0123456789abcdef-0123456789"
"""Some refuse to start with a key that looks weak."""
READY_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of others that answers `/v1/chat/completions`."""

    name: str
    requirement: tuple[str, ...]
    """What pip is asked to install."""
    arguments: Callable[[Path, int, str], list[str]]
    """Writes its configuration into the folder; the command line for the port and the model server's URL."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    fresh: Callable[[], Mapping[str, object]] = dict
    """What a request says besides, so that it does not belong to the conversation of another one."""


def _litellm(folder: Path, port: int, upstream: str) -> list[str]:
    model = {
        "model_name": "bench",
        "litellm_params": {"model": "openai/bench", "api_base": upstream, "api_key": "bench"},
    }
    (folder / "config.yaml").write_text(json.dumps({"model_list": [model]}))  # JSON is YAML
    return [
        "litellm",
        "--config",
        str(folder / "config.yaml"),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        "--num_workers",
        "1",
    ]


def _nanobot(folder: Path, port: int, upstream: str) -> list[str]:
    defaults = {"model": "bench", "provider": "custom", "workspace": str(folder / "workspace")}
    providers = {"custom": {"apiKey": "bench", "apiBase": upstream}}
    (folder / "config.json").write_text(json.dumps({"agents": {"defaults": defaults}, "providers": providers}))
    return ["nanobot", "serve", "--config", str(folder / "config.json"), "--port", str(port), "--host", "127.0.0.1"]


PEERS = (
    Peer("litellm", ("litellm[proxy]",), _litellm,
         {"LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}),
    Peer("nanobot", ("nanobot-ai", "aiohttp"), _nanobot, fresh=lambda: {"session_id": uuid4().hex}),
)  # fmt: skip


def installed(peer: Peer, folder: Path) -> str:
    """Its release, installed into an environment below `folder` if it is not there; "" if the index does not give it."""
    home = folder / peer.name
    if not (home / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        asked = [str(home / "bin" / "pip"), "install", "--quiet", *peer.requirement]
        if (done := subprocess.run(asked, capture_output=True, text=True, check=False)).returncode:
            print(f"  {peer.name} could not be installed: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return ""
    name = peer.requirement[0].partition("[")[0]
    say = f"import importlib.metadata as m; print(m.version({name!r}))"
    said = subprocess.run([str(home / "bin" / "python"), "-c", say], capture_output=True, text=True, check=False)
    return said.stdout.strip()


def _request(peer: Peer, port: int, words: str) -> bytes:
    asked: dict[str, object] = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": words}]}
    body = orjson.dumps({**asked, **peer.fresh()})
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


@asynccontextmanager
async def running(peer: Peer, folder: Path, environments: Path, upstream: int) -> AsyncGenerator[Measured]:
    """It, ready, until the block ends."""
    folder.mkdir(parents=True)
    port = free_port()
    command, *rest = peer.arguments(folder, port, f"http://127.0.0.1:{upstream}/v1")
    binaries = environments / peer.name / "bin"
    env = {**peer.env, "HOME": str(folder)}
    with process(
        [str(binaries / command), *rest],
        port,
        env,
        log=folder / "log",
        python=binaries / "python",
        ready_seconds=READY_SECONDS,
    ) as measured:
        yield measured


async def figures(peer: Peer, measured: Measured, upstream: int, seconds: float) -> dict[str, float]:
    """What it takes for the same work, by the names of our own figures (`tests.bench.cases`)."""
    count = round(seconds * 4)

    async def asked(words: str) -> Stream:
        return await exchange(measured.port, _request(peer, measured.port, words), stream=True)

    await asked("bench tokens=1")
    await settle(1.0)
    found = {"ready after": measured.ready_seconds, "idle memory": measured.resident_mib()}
    before = measured.cpu_seconds()
    # As a stream: the model server of the bench has nothing else
    plain = [await asked("bench tokens=1") for _ in range(count)]
    found["durable turn, CPU"] = (measured.cpu_seconds() - before) * 1000 / count
    found["durable turn, wall time (median)"] = statistics.median(one.seconds for one in plain) * 1000
    words = "bench tokens=2 pace=0.02"
    direct = statistics.median([(await ask(upstream, words)).first_seconds for _ in range(count)])
    first = statistics.median([(await asked(words)).first_seconds for _ in range(count)])
    found["added to the first token, 1 stream"] = (first - direct) * 1000
    tokens = round(seconds / 0.02)
    before = measured.cpu_seconds()
    streams = await asyncio.gather(*(asked(f"bench tokens={tokens} pace=0.02") for _ in range(16)))
    if any(stream.tokens != tokens for stream in streams):
        raise RuntimeError(f"{peer.name}: not every stream was whole")
    found["paced: CPU a token, 16 streams, 20 ms"] = (measured.cpu_seconds() - before) * 1e6 / (16 * tokens)
    return found


async def beside(folder: Path, environments: Path, seconds: float) -> dict[str, dict[str, float]]:
    """The figures of each that can be installed, by its name and release."""
    found: dict[str, dict[str, float]] = {}
    port = free_port()
    with process(["-m", "tests.bench.upstream", str(port)], port, core=OTHER_CORE, log=folder / "peers-upstream.log"):
        for peer in PEERS:
            if release := installed(peer, environments):
                async with running(peer, folder / peer.name, environments, port) as measured:
                    found[f"{peer.name} {release}"] = await figures(peer, measured, port, seconds)
    return found
