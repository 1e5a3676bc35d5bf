"""``python -m tests.knowledge.run --scripts 100000``: knowledge never hurts, for so many scripts of a provider."""

from __future__ import annotations

import argparse
import sys
import time

from tests.knowledge.playing import hurts, play, script


def main() -> None:
    """Entry point; exits with 1 if a script is found that knowledge spoils."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scripts", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="the first number")
    parser.add_argument("--only", type=int, help="this one, in full")
    asked = parser.parse_args()
    if asked.only is not None:
        one = script(asked.only)
        print(one, play(one, type(one.known)()), play(one, one.known), hurts(one), sep="\n")
        return
    began = time.monotonic()
    bad = 0
    for seed in range(asked.seed, asked.seed + asked.scripts):
        found = hurts(script(seed))
        if found:
            bad += 1
            if bad <= 20:
                print(f"script {seed}: {'; '.join(found)}")
    print(f"knowledge: {asked.scripts} scripts in {time.monotonic() - began:.0f} s, {bad} spoilt by what was known")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
