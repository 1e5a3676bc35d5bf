"""What a turn leaves behind: nothing that waits for the collector of cycles, which would find it late, and look through all of the rest for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TURNS = 20
SERVE = """
import asyncio, gc, sys

import aiohttp

import gateway.daemon as daemon
from gateway.operate.context import configure_logs, load_all


async def run():
    loaded, paths = load_all(None)
    configure_logs(loaded.config)
    async with daemon.serving(loaded.config, paths) as up, aiohttp.ClientSession() as client:

        async def turns(count):
            for number in range(count):
                body = {
                    "model": loaded.config.model.name,
                    "stream": number % 2 == 0,
                    "messages": [{"role": "user", "content": "count to 3"}],
                }
                async with client.post(f"{up.url}/v1/chat/completions", json=body) as answer:
                    assert answer.status == 200, await answer.text()
                    await answer.read()
            await asyncio.sleep(0.5)

        await turns(4)
        gc.collect()
        gc.disable()
        await turns(int(sys.argv[1]))
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        ours = ("agent_core.", "adapters.", "gateway.")
        kinds = (type(one) for one in gc.garbage)
        print("left:", *sorted({kind.__name__ for kind in kinds if kind.__module__.startswith(ours)}))


asyncio.run(run())
"""


def test_a_turn_that_is_over_leaves_nothing_to_the_collector(tmp_path: Path) -> None:
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OUTSPOKEN_", "OPENAI_"))},
        "OUTSPOKEN_HOME": str(tmp_path),
        "OUTSPOKEN_SERVER__PORT": "0",
        "OUTSPOKEN_LOG__FORMAT": "json",
    }
    command = [sys.executable, "-c", SERVE, str(TURNS)]
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=240)
    assert ran.stdout.splitlines()[-1] == "left:"
