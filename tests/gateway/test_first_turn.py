"""The first turn makes nothing that was to be made before it. ``python -m tests.gateway.test_first_turn`` prints `gateway/everyturn.txt` anew."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from agent_core.model.client import ModelClient
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.store import open_store
from agent_core.text.redaction import Redactor
from gateway.warming import CHANGED, EVERY_TURN, STORED, warmed

ROOT = Path(__file__).parents[2]
OURS = ("agent_core.", "adapters.", "gateway.")
SOME = 8
"""So many may have come since the list was printed. More: print it anew."""
SERVE = """
import asyncio, functools, sys

import aiohttp

from agent_core import records, storedjson

made = []
real = records._method


def method(cls, name, asked):
    made.append(f"{cls.__module__} {cls.__name__} {name}")
    return real(cls, name, asked)


records._method = method
planned = storedjson.plan.__wrapped__


def plan(kind):
    made.append(f"{kind.__module__} {kind.__name__} stored")
    return planned(kind)


storedjson.plan = functools.cache(plan)
taking = records.fields_taken.__wrapped__


def fields_taken(kind):
    made.append(f"{kind.__module__} {kind.__name__} changed")
    return taking(kind)


records.fields_taken = functools.cache(fields_taken)


async def run():
    import gateway.daemon as daemon
    import gateway.warming
    from agent_core.store.database import direct
    from gateway.operate.context import configure_logs, load_all

    gateway.warming.WARM_SECONDS = 0
    if sys.argv[1] == "bare":
        from pathlib import Path
        gateway.warming.EVERY_TURN = Path("/dev/null")
    loaded, paths = load_all(None)
    configure_logs(loaded.config)
    async with daemon.serving(loaded.config, paths) as up:
        async with asyncio.timeout(60):
            while any(task.get_name() == "warming" for task in asyncio.all_tasks()):
                await asyncio.sleep(0.05)
        made.clear()
        said = [kind.cache_info().misses for kind in (direct._question, direct._change)]
        before = set(sys.modules)
        body = {"model": loaded.config.model.name, "stream": True, "messages": [{"role": "user", "content": "hello"}]}
        async with aiohttp.ClientSession() as client, client.post(f"{up.url}/v1/chat/completions", json=body) as answer:
            assert answer.status == 200, await answer.text()
            assert b"[DONE]" in await answer.read()
        print("\\n".join(sorted(set(made))))
        said = [kind.cache_info().misses - before for kind, before in zip((direct._question, direct._change), said)]
        print("worded", sum(said))
        print(*("loaded " + name for name in sorted(set(sys.modules) - before)), sep="\\n")


asyncio.run(run())
"""


def first_turn(folder: Path, *, bare: bool = False) -> tuple[list[str], list[str], int]:
    """Which methods of records the first turn of a gateway makes, what it loads, and how many statements it puts into words; `bare`: of one that
    has made none of these methods before."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OUTSPOKEN_", "OPENAI_"))},
        "OUTSPOKEN_HOME": str(folder),
        "OUTSPOKEN_SERVER__PORT": "0",
        "OUTSPOKEN_LOG__FORMAT": "json",
    }
    command = [sys.executable, "-c", SERVE, "bare" if bare else "warm"]
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=240)
    lines = ran.stdout.splitlines()
    names = [line.split() for line in lines]
    made = [" ".join(one) for one in names if len(one) == 3 and one[0].startswith(OURS) and "rehearsal" not in one[0]]
    worded = next(int(line.split()[1]) for line in lines if line.startswith("worded "))
    loaded = [line.split()[1] for line in lines if line.startswith("loaded ") and "rehearsal" not in line]
    return made, loaded, worded


def test_the_first_turn_makes_no_more_than_the_second_and_loads_nothing(tmp_path: Path) -> None:
    made, loaded, worded = first_turn(tmp_path)
    assert len(made) <= SOME
    assert not loaded
    assert not worded


class OutOfDescriptors(ModelClient):
    """Of a gateway that has no file descriptor left just now."""

    async def warm(self) -> None:
        raise OSError(errno.EMFILE, "Too many open files", "agent_core/model/stream/alike.py")


async def test_what_cannot_be_made_beforehand_ends_no_gateway(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.warming.WARM_SECONDS", 0)
    clock = SystemClock()
    async with open_store(sqlite, clock=clock, ids=SystemIds(clock), version="1") as store:
        await warmed(OutOfDescriptors((), clock, Redactor()), store)


def test_each_line_names_a_method_that_is_there() -> None:
    for line in EVERY_TURN.read_text("utf-8").splitlines():
        module, record, method = line.split()
        found = getattr(__import__(module, fromlist=[record]), record)
        assert is_dataclass(found) if method in (STORED, CHANGED) else hasattr(found, method), line


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.stdout.write("".join(f"{line}\n" for line in first_turn(Path(made), bare=True)[0]))
