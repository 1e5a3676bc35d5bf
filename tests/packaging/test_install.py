"""`make run` says how far it is while pip works, and what pip complains of if it fails."""

from __future__ import annotations

import os
import pty
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.installed import ROOT

PIP = """
import sys, os
print("Looking in indexes: somewhere")
print("WARNING: something that nobody has to read", file=sys.stderr)
print("Ignoring pywin32: markers do not match")
print("Processing /srv/wheels/aiosignal-1.4.0-py3-none-any.whl (from -r x.lock (line 1))")
print("Collecting discord.py==2.7.1 (from -r x.lock (line 2))")
if os.environ.get("BROKEN"):
    print("ERROR: no such hash", file=sys.stderr)
    sys.exit(1)
print("Installing collected packages: aiosignal, discord.py")
open("asked", "a").write(" ".join(sys.argv[1:]) + "\\n")
"""


def played(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which pip is a script, and two files to install."""
    (folder / "pip").mkdir()
    (folder / "pip" / "__init__.py").touch()
    (folder / "pip" / "__main__.py").write_text(PIP)
    for name in ("x.lock", "y.lock"):
        (folder / name).write_text(
            "aiosignal==1.4.0 \\\n  --hash=1\ndiscord.py==2.7.1 \\\n  --hash=2\npywin32==312 ; x\n"
        )
    return {**os.environ, "PYTHONPATH": str(folder), **more}


def command(*locks: str) -> list[str]:
    return [sys.executable, str(ROOT / "deploy" / "install.py"), *locks]


def test_where_lines_are_kept_a_few_say_how_far_it_is_and_each_file_has_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        command("x.lock", "y.lock"), cwd=tmp_path, env=played(tmp_path), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "  x.lock: package 1 of 2, aiosignal"
    assert [line.rsplit(",", 1)[0] for line in lines if " s" in line[-2:]] == [
        "  x.lock: 2 packages",
        "  y.lock: 2 packages",
    ]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.rpartition("-")[2] for line in asked] == ["x.lock", "y.lock"]
    assert all("--require-hashes" in line for line in asked)


def test_a_terminal_sees_one_line_that_changes(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(command("x.lock"), cwd=tmp_path, env=played(tmp_path), stdout=theirs) as running:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break  # the terminal's other end is closed: it is over
            shown += piece
    os.close(ours)
    assert running.returncode == 0
    steps = shown.decode().split("\r\x1b[K")
    assert [step.strip().rsplit(",", 1)[0] for step in steps if step] == [
        "x.lock: package 1 of 2",
        "x.lock: package 2 of 2",
        "x.lock: writing 2 packages",
        "x.lock: 2 packages",
    ]
    assert shown.count(b"\n") == 1


def test_what_pip_complains_of_is_shown_if_it_fails_and_the_next_file_is_not_begun(tmp_path: Path) -> None:
    done = subprocess.run(
        command("x.lock", "y.lock"),
        cwd=tmp_path,
        env=played(tmp_path, BROKEN="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "x.lock: could not be installed. pip says:" in done.stdout
    assert "ERROR: no such hash" in done.stderr
    assert "y.lock" not in done.stdout


@pytest.mark.parametrize(("many", "processors", "files"), [(1, 8, 1), (39, 8, 1), (40, 8, 2), (200, 2, 2), (200, 1, 1)])
def test_packages_are_dealt_out_to_several_and_none_is_lost(many: int, processors: int, files: int) -> None:
    lock = "# how it was made\n" + "".join(
        f"name{n}==1 \\\n    --hash=sha256:{n} \\\n    --hash=sha256:b\n" for n in range(many)
    )
    parts: Callable[[str, int], list[str]] = runpy.run_path(str(ROOT / "deploy" / "install.py"))["parts"]
    dealt = parts(lock, processors)
    assert len(dealt) == files
    assert sorted("".join(dealt).splitlines()) == sorted(lock.splitlines()[1:])
