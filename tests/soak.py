"""``python -m tests.soak``: the long proofs, one after the other, each a process of its own. Takes about an hour on two cores.

``--quick`` runs each for a tenth of its length. Names as arguments run only those.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time


def commands(share: float) -> dict[str, list[list[str]]]:
    """What is run, by name; the processes of one name run at the same time."""
    half = round(100_000 * share)
    return {
        "simulation": [
            ["tests.sim.run", "--turns", str(half), "--seed", str(seed), "--all"] for seed in (1_000_000, 2_000_000)
        ],
        "the whole daemon": [
            ["tests.sim.whole.run", "--turns", str(round(10_000 * share)), "--seed", str(seed)]
            for seed in (1_000_000, 2_000_000)
        ],
        "odd upstreams": [
            ["tests.sim.run", "--turns", str(half), "--seed", str(seed), "--all"] for seed in (10_000_000, 15_000_000)
        ],
        "several gateways, simulated": [
            ["tests.sim.run", "--turns", str(round(2_000 * share)), "--seed", str(seed), "--all"]
            for seed in (21_000_000, 22_000_000, 26_000_000)
        ],
        "exploration": [["tests.explore.run", "--transitions", str(round(1_000_000 * share))]],
        "knowledge": [
            ["tests.knowledge.run", "--scripts", str(half), "--seed", str(seed)] for seed in (1_000_000, 2_000_000)
        ],
        "several gateways": [
            ["tests.several.storm", "--seconds", str(round(600 * share)), "--chats", "2000", "--rate", "20"]
        ],
        "power cuts": [["tests.power.run", "--cuts", str(round(10_000 * share))]],
        "fuzzing": [["tests.fuzz.run", "--seconds", str(round(240 * share))]],
        "kills": [
            ["tests.kills.run", "--kills", str(round(200 * share))],
            ["tests.kills.load", "--kills", str(round(300 * share))],
        ],
        "properties": [
            ["pytest", "-q", "--processes", "2", "-m", "hypothesis", "--hypothesis-profile", "soak", "tests"]
        ],
        "the way in": [["pytest", "-q", "--processes", "2", "tests/chats/test_intake.py"]],
        "programs of others": [
            ["tests.clients.matrix"],
            ["pytest", "-q", "--processes", "2", "tests/clients/test_refused.py"],
        ],
        "contract": [
            ["tests.contract.run", "--seconds", str(round(600 * share)), "--seed", str(time.time_ns() % 10_000)]
        ],
        "the protocol's model": [["tests.model.run"]],
        "every platform": [["pytest", "-q", "--processes", "4", "tests/chats"]],
        "what `make test` leaves out": [["pytest", "-q", "--processes", "12", "--again", "30", "--seldom"]],
        "every case": [
            ["pytest", "-q", "--processes", "2", "-m", "some"],
            ["pytest", "-q", "tests/corpora/test_hostile.py", "tests/laws/test_sabotaged.py"],
        ],
        "many open turns": [["pytest", "-q", "tests/gateway/test_keeper.py", "-k", "hundreds_of_open_turns"]],
        "on PostgreSQL": [["pytest", "-q", "--processes", "2", "tests/postgres"]],
        "deployment": [["tests.deploy.real.run"]],
        "planted mistakes": [["pytest", "-q", "tests/sim/test_mutants.py"]],
    }


def main() -> None:
    """Entry point; exits with 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help=f"only these: {', '.join(commands(1))}")
    parser.add_argument("--quick", action="store_true", help="a tenth of each")
    asked = parser.parse_args()
    chosen = commands(0.1 if asked.quick else 1.0)
    if unknown := set(asked.name) - set(chosen):
        parser.error(f"no such proof: {', '.join(sorted(unknown))}")
    failed: list[str] = []
    for name, processes in chosen.items():
        if asked.name and name not in asked.name:
            continue
        print(f"== {name}", flush=True)
        began = time.monotonic()
        everything = {
            **os.environ,
            "TESTS_ALL_MUTANTS": "1",
            "TESTS_ALL_PLACES": "1",
            "TESTS_ALL_POSTGRES": "1",
            "TESTS_ALL_CLIENTS": "1",
            "TESTS_ALL_CHATS": "1",
            "TESTS_ALL_CASES": "1",
            "TESTS_ALL_TURNS": "1",
        }
        running = [subprocess.Popen([sys.executable, "-m", *words], env=everything) for words in processes]
        statuses = [process.wait() for process in running]
        if any(statuses):
            failed.append(name)
        print(f"== {name}: {time.monotonic() - began:.0f} s\n", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "all of it holds")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
