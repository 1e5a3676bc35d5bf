"""``python -m tests.kills.load --kills 300 --seed 1``: kills a gateway that works for sixteen conversations with file tools.

Each task writes a file, appends to one, edits the first and appends again. The process dies at random moments, whatever it is doing. In
the end every task has its end, and the files are compared to the byte: nothing lost, nothing done twice. How many were told to be
interrupted, and how long people waited after each start, is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kills.model import load_calls
from tests.kills.run import environment, listening, living
from tests.ports import free_port
from tests.pressure import SLOWEST

CONVERSATIONS = 16
LONGEST_SECONDS = 2.5
"""No gateway lives longer, on a machine that is not busy."""
STEPS = 5
"""So often at least the model is asked in each conversation while a gateway lives for so long: once for each step of a task. On a quiet machine it is
more."""
FEW = 3
"""In a short run a share says nothing."""
STILL_SECONDS = 120.0
"""Nobody waits for longer while nothing is heard, of the people or of the model."""


@dataclass
class Outcome:
    """What came of it."""

    kills: int = 0
    exits: Counter[str] = field(default_factory=Counter[str])
    again: int = 0
    """Tasks whose connection broke at least once."""
    aside: int = 0
    """Tasks that were set aside, because the process died again and again before they made progress."""
    lost: list[str] = field(default_factory=list[str])
    twice: list[str] = field(default_factory=list[str])
    unsure: list[str] = field(default_factory=list[str])
    """Tasks of which something was told to be not known."""
    broken: list[str] = field(default_factory=list[str])
    waits: list[float] = field(default_factory=list[float])
    """Seconds from an open port to the first word of an answer."""
    answers: list[float] = field(default_factory=list[float])
    """And to the first whole answer, where there was time for one."""


def run(kills: int, seed: int, home: Path) -> Outcome:
    """All kills, the quiet end, and the comparison."""
    draw = random.Random(seed)
    outcome = Outcome()
    port, model_port = free_port(), free_port()
    model_log, people_log, stop = home / "model.log", home / "people.log", home / "stop"
    people_log.touch()
    env = environment(home, port, model_port)
    model = subprocess.Popen([sys.executable, "-m", "tests.kills.model", str(model_port), str(model_log)])
    listening(model_port)
    told = [sys.executable, "-m", "tests.kills.people", str(port), str(people_log), str(CONVERSATIONS), str(stop)]
    people = subprocess.Popen(told)
    opened: list[float] = []
    patient = False
    try:
        while outcome.kills < kills:
            with living(env, home, port) as pid:
                opened.append(time.time())
                _live(draw.uniform(0.05, LONGEST_SECONDS), model_log)
                os.kill(pid, signal.SIGKILL)
                outcome.kills += 1
        with living(env, home, port):
            opened.append(time.time())
            stop.touch()
            patient = _ended(people, (model_log, people_log))
    finally:
        for process in (people, model):
            process.terminate()
            process.wait(10)
    heard = [json.loads(line) for line in people_log.read_text().splitlines()]
    if not patient:
        begun, ended = ({line["task"] for line in heard if line["what"] == what} for what in ("begin", "end"))
        told = {line["task"]: line["said"] for line in heard if line["what"] == "told"}
        outcome.broken += [
            f"no end, and nothing new for {STILL_SECONDS:.0f} s: {task}, told last: {told.get(task)}"
            for task in sorted(begun - ended)
        ]
    _compare(outcome, home, heard)
    _check_conversations(outcome, model_log)
    for what, found in (("word", outcome.waits), ("end", outcome.answers)):
        times = sorted(line["at"] for line in heard if line["what"] == what)
        for since, until in zip(opened, [*opened[1:], float("inf")], strict=True):
            found.extend([at - since for at in times if since <= at < until][:1])
    return outcome


def _live(seconds: float, log: Path) -> None:
    """Let the gateway live for so long, and on a busy machine until it has come to something: who dies each time before anything was done has done it himself,
    as far as the next one knows, and is set aside."""
    began, wanted = time.monotonic(), _asked(log) + CONVERSATIONS * STEPS * seconds / LONGEST_SECONDS
    time.sleep(seconds)
    while _asked(log) < wanted and time.monotonic() - began < SLOWEST * seconds:
        time.sleep(0.02)


def _asked(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def _ended(people: subprocess.Popen[bytes], logs: tuple[Path, ...]) -> bool:
    """Wait until everybody has an end, as long as anything is heard; whether it came to that."""
    heard, since = [0], time.monotonic()
    while people.poll() is None:
        sizes = [log.stat().st_size for log in logs if log.exists()]
        if sizes != heard:
            heard, since = sizes, time.monotonic()
        elif time.monotonic() - since > STILL_SECONDS:
            return False
        time.sleep(0.1)
    return people.returncode == 0


def _files(home: Path) -> dict[str, list[str]]:
    """The content of every file in a workspace, by name; several workspaces may hold one of the same name."""
    found: dict[str, list[str]] = {}
    for file in (home / "workspaces").rglob("*"):
        if file.is_file():
            found.setdefault(file.name, []).append(file.read_text())
    return found


def _compare(outcome: Outcome, home: Path, heard: list[dict[str, Any]]) -> None:
    files = _files(home)
    lines = Counter(
        line for name in ("log.txt", "shared.txt") for text in files.get(name, ()) for line in text.split("\n")
    )
    ends = Counter(line["task"] for line in heard if line["what"] == "end")
    outcome.broken += [f"{task} had {count} ends" for task, count in ends.items() if count > 1]
    for line in heard:
        if line["what"] != "end":
            continue
        task = line["task"]
        outcome.exits[line["exit"]] += 1
        outcome.again += line["tries"] > 1
        appended = [lines.pop(f"{task}.{number}", 0) for number in range(2)]
        outcome.twice += [f"{task}: {appended}"] if max(appended) > 1 else []
        if "may or may not" in line["said"]:
            outcome.unsure.append(f"{task}: {line['said']}")
        elif line["exit"] == "answered":
            if f"finished {task}." not in line["said"]:
                outcome.broken.append(f"{task} was answered with {line['said']!r}")
            if appended != [1, 1] or files.get(f"{task}.txt") != [f"beta {task}\n"]:
                outcome.lost.append(f"{task}: appended {appended}, {files.get(f'{task}.txt')}")
        elif "was set aside" in line["said"]:
            outcome.aside += 1
        elif line["exit"] != "interrupted_by_restart":
            outcome.broken.append(f"{task} ended with {line['exit']}: {line['said']!r}")
    outcome.broken += [f"a line that nobody was told of: {line!r}" for line in lines if line]
    if not outcome.aside:  # who is set aside in the middle of a write leaves one, until the upkeep comes
        outcome.broken += [f"a part of a file was left: {name}" for name in files if name.endswith(".part")]


def _check_conversations(outcome: Outcome, log: Path) -> None:
    for line in log.read_text().splitlines():
        request = json.loads(line)
        outcome.broken += [f"invalid conversation for {request['task']}: {p}" for p in request["problems"]]


def main() -> None:
    """Entry point; exits with 1 if something was lost or done twice, or more than 5 % (and more than a few) were interrupted or set aside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="outspoken-kills-") as name:
        outcome = run(asked.kills, asked.seed, Path(name))
    tasks = sum(outcome.exits.values())
    told = outcome.exits["interrupted_by_restart"] + outcome.aside
    print(f"{outcome.kills} kills under {CONVERSATIONS} conversations in {time.monotonic() - began:.0f} s")
    print(
        f"{tasks} tasks of {len(load_calls('x'))} calls each, {outcome.again} of them asked for again: {dict(outcome.exits)}"
    )
    print(
        f"{len(outcome.lost)} lost, {len(outcome.twice)} done twice, {len(outcome.unsure)} not known, "
        f"{100 * told / max(1, outcome.again):.1f} % of those that met a kill told as interrupted "
        f"or set aside ({outcome.aside})"
    )
    for what, found in (("word", outcome.waits), ("whole answer", outcome.answers)):
        waits = sorted(found) or [0.0]
        print(
            f"from the open port to the first {what} ({len(found)} times): median {waits[len(waits) // 2]:.2f} s, longest {waits[-1]:.2f} s"
        )
    wrong = outcome.lost + outcome.twice + outcome.broken
    print("\n".join([*wrong[:20], *outcome.unsure[:5]]))
    sys.exit(bool(wrong) or told > max(FEW, 0.05 * outcome.again))


if __name__ == "__main__":
    main()
