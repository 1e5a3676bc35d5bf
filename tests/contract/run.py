"""``python -m tests.contract.run``: a gateway with the rehearsal model, and schemathesis against its ``/openapi.json``, as callers and as operators.

schemathesis lives in ``.venv/clients`` with the other programs of others. ``--seconds`` is how long it takes in all, and as long as each operation of
operators needs to be asked once in each of its ways. Exits with 1 if anything was found: an answer that the document does not have, a body that is not
as it says, a failure of the server, a bad request that is taken; or if by some operation of operators nothing was ever done.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract.known import Known, peopled, written
from tests.serving import served
from tests.webhooks.test_incoming import configured

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv/clients/bin/schemathesis"
VALUES = ROOT / "tests/clients/programs"
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


@dataclass(frozen=True)
class Look:
    """What came of one."""

    status: int
    asked: set[str]
    """Operations that were asked."""
    done: set[str]
    """Those by which something was done."""


async def looked(url: str, key: str, known: Known, *which: str) -> Look:
    """Looks at some operations."""
    words = [
        "--config-file", str(SETTINGS), "run", f"{url}/openapi.json", "--wait-for-schema", "120", "--header", f"Authorization: Bearer {key}", "--max-examples", "25", "--continue-on-failure", *which,
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:  # it keeps what it found where it is run
        env = {
            **os.environ,
            "SCHEMATHESIS_HOOKS": "contract_values",
            "PYTHONPATH": str(VALUES),
            **written(known, folder := Path(name)),
        }
        process = await asyncio.create_subprocess_exec(str(PROGRAM), "--no-color", *words, cwd=folder, env=env)
        try:
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        answered = {line.partition(" ")[::2] for line in (folder / "answered").read_text().splitlines()}
        return Look(status, {label for _, label in answered}, {label for code, label in answered if code[:1] == "2"})


def operators() -> set[str]:
    """Their operations, but for streams without an end."""
    paths: dict[str, dict[str, Any]] = json.loads((ROOT / "docs/openapi.json").read_text())["paths"]
    return {
        f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method, one in operations.items()
        if {*one.get("tags", ())} & {*OURS} and not path.endswith("/live")
    }


async def run(seconds: int, seed: int) -> int:
    """0 if nothing was found."""
    not_ours = [word for tag in OURS for word in ("--exclude-tag", tag)]
    ours = [word for tag in OURS for word in ("--include-tag", tag)]
    limit = ("--seed", str(seed), "--max-time")
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder), ENV) as up:
            callers = await looked(up.url, API_KEY, {}, *not_ours, *limit, str(seconds * 3 // 4))
    with tempfile.TemporaryDirectory() as folder:
        async with peopled(Path(folder), OPERATOR_KEY, ENV) as (url, known):
            # Each of them first, however long that takes; then, of what comes out of what, as much as there is time for.
            each = await looked(url, OPERATOR_KEY, known, *ours, *limit[:2], "--phases", "coverage,fuzzing")
            then = await looked(url, OPERATOR_KEY, known, *ours, *limit, str(seconds // 4))
    missing = operators() - each.done
    print(f"callers: {len(callers.asked)} operations were asked, by {len(callers.done)} of them something was done")
    print("\n".join(f"nothing was ever done by {one}" for one in sorted(missing)))
    return callers.status | each.status | then.status | (not callers.done) | bool(missing)


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
