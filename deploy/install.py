"""Install what lock files name, and say meanwhile how far it is: ``python deploy/install.py requirements.lock …``.

pip itself either says nothing for a minute or prints some hundreds of lines. What it complains of is shown if it fails. Nothing is
compiled beforehand: a start compiles what it imports, which is a tenth of what is installed. Standard library only, and any Python
since 3.11: nothing else is there yet.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color")
INSTALL = ("install", "--no-compile", "--require-hashes", "--progress-bar", "off")
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


def install(lock: Path, said: Said) -> int:
    """Install one file's packages; pip's exit status."""
    began = time.monotonic()
    total, found = len(PINNED.findall(lock.read_text("utf-8"))), 0
    with tempfile.TemporaryFile("w+") as complaints:
        command = [*PIP, *INSTALL, "--requirement", str(lock)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True) as pip:
            assert pip.stdout is not None
            for line in pip.stdout:
                if name := FOUND.match(line):
                    found += 1
                    words = f"{lock.name}: package {found} of {max(total, found)}, {name[1]}"
                elif line.startswith("Installing"):
                    words = f"{lock.name}: writing {found} packages"
                else:
                    total -= line.startswith("Ignoring ")
                    continue
                said(words, time.monotonic())
        if pip.returncode:
            said.last(f"{lock.name}: could not be installed. pip says:")
            complaints.seek(0)
            print(complaints.read(), file=sys.stderr)
        else:
            said.last(f"{lock.name}: {found} packages, {time.monotonic() - began:.0f} s")
    return pip.returncode


def main(locks: list[str]) -> int:
    said = Said()
    return next((status for lock in locks if (status := install(Path(lock), said))), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
