"""Install what lock files name, and say meanwhile how far it is: ``python deploy/install.py requirements.lock …``.

pip itself either says nothing for a minute or prints some hundreds of lines. What it complains of is shown if it fails. Nothing is
compiled beforehand: a start compiles what it imports, which is a tenth of what is installed. Standard library only, and any Python
since 3.11: nothing else is there yet.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color")
INSTALL = ("install", "--no-compile", "--no-deps", "--require-hashes", "--progress-bar", "off")
"""A lock names everything that is needed; each of several pips is told of a part."""
PACKAGE = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)
FEWEST = 20
"""Packages for which one more pip is worth its start."""
PINNED = re.compile(r"^[A-Za-z0-9._-]+==", re.MULTILINE)
FOUND = re.compile(r"(?:Collecting|Processing|Requirement already satisfied:) (?:\S*/)?([A-Za-z0-9._-]+?)(?=[=\s]|-\d)")
EVERY_SECONDS = 3.0
"""Where nobody sees a line being replaced (a file, a service), a new one is written so often."""


class Said:
    """One line that is written anew where a terminal shows it, and now and then a new one elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._last = float("-inf")

    def __call__(self, words: str, now: float) -> None:
        if self._terminal:
            print(f"\r\x1b[K  {words}", end="", flush=True)
        elif now - self._last >= EVERY_SECONDS:
            self._last = now
            print(f"  {words}", flush=True)

    def last(self, words: str) -> None:
        print(f"\r\x1b[K  {words}" if self._terminal else f"  {words}", flush=True)


def parts(lock: str, most: int) -> list[str]:
    """The packages of a lock file, dealt out to at most so many: a file of few packages stays whole."""
    packages = [package for package in PACKAGE.split(lock) if PINNED.match(package)]
    count = max(1, min(most, len(packages) // FEWEST))
    return ["".join(packages[number::count]) for number in range(count)]


def install(lock: Path, said: Said) -> int:
    """Install one file's packages, by several pips at once where there are several processors; the exit status of one that failed."""
    began = time.monotonic()
    text = lock.read_text("utf-8")
    with tempfile.TemporaryDirectory(prefix="outspoken-install-") as folder:
        pips: list[Pip] = []
        for number, part in enumerate(parts(text, os.cpu_count() or 1)):
            (asked := Path(folder, f"{number}-{lock.name}")).write_text(part, "utf-8")
            pips.append(Pip(asked))
        found = _followed(pips, lock.name, len(PINNED.findall(text)), said)
        failed = [pip for pip in pips if pip.process.wait()]
        for pip in failed:
            said.last(f"{lock.name}: could not be installed. pip says:")
            print(pip.complaints.read_text("utf-8"), file=sys.stderr)
    if failed:
        return failed[0].process.returncode
    said.last(f"{lock.name}: {found} packages, {time.monotonic() - began:.0f} s")
    return 0


class Pip:
    """One that installs the packages of a file."""

    def __init__(self, asked: Path) -> None:
        self.complaints = asked.with_suffix(".err")
        with self.complaints.open("w") as err:
            command = [*PIP, *INSTALL, "--requirement", str(asked)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True)

    def say(self, lines: SimpleQueue[str]) -> None:
        """Everything that it says, and an empty line at its end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.put(line)
        lines.put("")


def _followed(pips: list[Pip], name: str, total: int, said: Said) -> int:
    """Say how far they are until all are over; how many packages there were."""
    lines = SimpleQueue[str]()
    for pip in pips:
        Thread(target=pip.say, args=(lines,), daemon=True).start()
    found, over, writing = 0, 0, 0
    while over < len(pips):
        line = lines.get()
        if package := FOUND.match(line):
            found += 1
            said(f"{name}: package {found} of {max(total, found)}, {package[1]}", time.monotonic())
        elif line.startswith("Installing"):
            writing += 1
            if writing == len(pips):
                said(f"{name}: writing {found} packages", time.monotonic())
        else:
            over += not line
            total -= line.startswith("Ignoring ")
    return found


def main(locks: list[str]) -> int:
    said = Said()
    return next((status for lock in locks if (status := install(Path(lock), said))), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
