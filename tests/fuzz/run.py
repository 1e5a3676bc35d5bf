"""``python -m tests.fuzz.run --seconds 120``: fuzzes each target with atheris (coverage guided), a process each.

An input that takes longer than 10 s is a hang, more than 1 GiB is growth; both and any exception stop the target, and the input
is kept. Exits with 1 if anything was found, with 3 where there is no atheris for this Python.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HANG_SECONDS = 10
MEMORY_MIB = 1024


def child(name: str, arguments: list[str]) -> None:
    """One target, in this process, for ever or until atheris says so."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["agent_core", "adapters", "gateway"]):
        targets = importlib.import_module("tests.fuzz.targets")
    atheris.Setup([sys.argv[0], *arguments], targets.TARGETS[name])
    atheris.Fuzz()


def fuzz(name: str, seconds: int, seeds: list[bytes], keep: Path) -> tuple[str, bool]:
    """(a line of the table, whether nothing was found)."""
    with tempfile.TemporaryDirectory(prefix="outspoken-fuzz-") as folder:
        corpus = Path(folder)
        for number, seed in enumerate(seeds):
            (corpus / f"seed{number}").write_bytes(seed)
        limits = [f"-max_total_time={seconds}", f"-timeout={HANG_SECONDS}", f"-rss_limit_mb={MEMORY_MIB}"]
        arguments = [*limits, "-print_final_stats=1", "-max_len=4096", f"-artifact_prefix={keep}/{name}-", str(corpus)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.run", "--child", name, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
    said = done.stdout + done.stderr
    runs, memory = (_last(pattern, said) for pattern in (r"number_of_executed_units: (\d+)", r"peak_rss_mb: +(\d+)"))
    covered = _last(r"cov: (\d+)", said)
    ok = done.returncode == 0
    line = f"{name:20} {runs:>10} inputs {covered:>6} branches {memory:>5} MiB at most  {'nothing found' if ok else 'FOUND'}"
    return line if ok else f"{line}\n{said[-3000:]}", ok


def _last(pattern: str, text: str) -> str:
    found = re.findall(pattern, text)
    return found[-1] if found else "?"


def main() -> None:
    """Entry point."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
        return
    from tests.fuzz.seeds import SEEDS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*", help=f"only these: {', '.join(SEEDS)}")
    parser.add_argument("--seconds", type=int, default=120, help="for each target")
    asked = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("There is no atheris for this Python, so nothing was fuzzed. It comes with the dependency group 'fuzz'.")
        sys.exit(3)
    keep = Path("tests/.out")
    keep.mkdir(parents=True, exist_ok=True)
    results = [
        fuzz(name, asked.seconds, SEEDS[name], keep) for name in SEEDS if not asked.target or name in asked.target
    ]
    print("\n".join(line for line, _ in results))
    sys.exit(not all(ok for _, ok in results))


if __name__ == "__main__":
    main()
