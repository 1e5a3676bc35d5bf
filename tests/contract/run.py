"""``python -m tests.contract.run``: a gateway with the rehearsal model, and schemathesis against its ``/openapi.json``, as callers and as operators.

schemathesis lives in ``.venv/clients`` with the other programs of others. ``--seconds`` is how long it takes in all. Exits with 1 if
anything was found: an answer that the document does not have, a body that is not as it says, a failure of the server, a bad request that is taken.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.serving import served
from tests.webhooks.test_incoming import configured

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv/clients/bin/schemathesis"
SETTINGS = Path(__file__).with_name("schemathesis.toml")
API_KEY, OPERATOR_KEY = "a-key-for-the-contract", "an-operators-key-for-the-contract"
OURS = ("operators", "console", "health")
"""What belongs to operators; all else is looked at as a caller."""
ENV = {
    "OUTSPOKEN_SERVER__API_KEY": API_KEY,
    "OUTSPOKEN_SERVER__OPERATOR_KEY": OPERATOR_KEY,
    "OUTSPOKEN_SERVER__ERRORS": "auto",
    **configured(),
}


async def looked(url: str, key: str, seconds: int, seed: int, *which: str) -> int:
    """The exit status of one look."""
    words = [
        "--config-file", str(SETTINGS), "run", f"{url}/openapi.json", "--wait-for-schema", "120", "--header", f"Authorization: Bearer {key}", "--max-examples", "25", "--max-time", str(seconds), "--continue-on-failure", "--seed", str(seed), *which,
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:  # it keeps what it found where it is run
        process = await asyncio.create_subprocess_exec(str(PROGRAM), "--no-color", *words, cwd=folder)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def run(seconds: int, seed: int) -> int:
    """0 if nothing was found."""
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder), ENV) as up:
            not_ours = [word for tag in OURS for word in ("--exclude-tag", tag)]
            ours = [word for tag in OURS for word in ("--include-tag", tag)]
            found = await looked(up.url, API_KEY, seconds * 3 // 4, seed, *not_ours)
            return found | await looked(up.url, OPERATOR_KEY, seconds // 4, seed, *ours)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if not PROGRAM.exists():
        sys.exit("schemathesis is not there; `make setup` makes .venv/clients.")
    sys.exit(asyncio.run(run(asked.seconds, asked.seed)))


if __name__ == "__main__":
    main()
