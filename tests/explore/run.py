"""``python -m tests.explore.run --transitions 1000000``: walks over the machine's states and prints what was seen."""

from __future__ import annotations

import argparse
import sys
import time

from tests.explore.walk import Found, Walk


def report(found: Found, seconds: float) -> str:
    """The walk in words."""
    whole = "all of them" if found.complete else "as far as the limit allowed"
    lines = [
        f"{found.states} states, {found.transitions} transitions ({whole}), {found.deepest} events deep, {seconds:.1f} s",
        "ends: " + ", ".join(f"{code} {count}" for code, count in found.ends.most_common()),
        "events: " + ", ".join(f"{kind} {count}" for kind, count in found.events.most_common()),
        *found.broken[:20],
    ]
    return "\n".join(lines)


def main() -> None:
    """Entry point; exits with 1 if a law is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transitions", type=int, default=1_000_000)
    asked = parser.parse_args()
    began = time.monotonic()
    found = Walk(asked.transitions).run()
    print(report(found, time.monotonic() - began))
    sys.exit(bool(found.broken))


if __name__ == "__main__":
    main()
