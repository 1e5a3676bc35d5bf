"""The loop is watched: what holds it is in the log, with its stack, also where nothing of Python can run meanwhile."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.observe.looplag import LoopWatch, stack_of

ROOT = Path(__file__).parents[2]


def waits() -> None:
    time.sleep(2.6)


def computes() -> None:
    end = time.monotonic() + 2.6
    while time.monotonic() < end:
        pass


def keeps_the_lock() -> None:
    """For a few seconds in C, as long as the machine needs."""
    length, took = 18, 0.0
    while took < 2.6:
        began = time.monotonic()
        re.search("(a|a)*$", "a" * length + "b")
        took = time.monotonic() - began
        length += 1


async def held_by(work: object, notes: Path | None) -> tuple[list[dict[str, object]], float]:
    assert callable(work)
    lags: list[float] = []
    watch = LoopWatch(lags.append)
    with capture_logs() as lines:
        async with watch.watching(notes):
            await asyncio.sleep(0.6)
            work()
            await asyncio.sleep(0.6)
    assert max(lags) == watch.longest
    return [dict(line) for line in lines], watch.longest


async def test_code_that_waits_is_named_while_it_does(tmp_path: Path):
    lines, longest = await held_by(waits, tmp_path / "notes")
    assert [line["event"] for line in lines] == ["loop.held", "loop.went_on"]
    assert "test_looplag.py" in str(lines[0]["frames"])
    assert ":waits" in str(lines[0]["frames"])
    assert longest >= 1.5


async def test_code_that_computes_is_named(tmp_path: Path):
    lines, _ = await held_by(computes, tmp_path / "notes")
    assert [line["event"] for line in lines] == ["loop.held", "loop.went_on"]
    assert ":computes" in str(lines[0]["frames"])


async def test_code_that_keeps_the_interpreters_lock_is_named_when_it_is_over(tmp_path: Path):
    lines, _ = await held_by(keeps_the_lock, tmp_path / "notes")
    held = [line for line in lines if line["event"] == "loop.held"]
    assert any(":keeps_the_lock" in str(line["frames"]) for line in held)
    assert lines[-1]["event"] == "loop.went_on"
    assert (tmp_path / "notes").read_text() == ""
    assert (tmp_path / "notes").stat().st_mode & 0o077 == 0


async def test_a_loop_that_runs_is_no_word_worth():
    lags: list[float] = []
    with capture_logs() as lines:
        async with LoopWatch(lags.append).watching():
            await asyncio.sleep(1.2)
    assert lags
    assert [line for line in lines if line["event"] == "loop.held"] == [] or max(
        lags
    ) >= 1  # a machine that was stopped


async def test_what_a_process_noted_that_never_went_on_is_told_by_the_next_one(tmp_path: Path):
    notes = tmp_path / "notes"
    notes.write_text(
        'Timeout (0:00:01)!\nThread 0x00007f0000000001 (most recent call first):\n  File "/a/b/re/__init__.py", line 176 in search\n'
        '  File "/a/b/x.py", line 9 in f\n'
    )
    with capture_logs() as lines:
        async with LoopWatch(lambda _: None).watching(notes):
            pass
    assert [line["event"] for line in lines] == ["loop.was_held"]
    assert lines[0]["frames"] == ["b/re/__init__.py:176:search", "a/b/x.py:9:f"]
    assert notes.read_text() == ""


async def test_a_place_that_cannot_be_written_is_told_and_the_rest_goes_on(tmp_path: Path):
    with capture_logs() as lines:
        async with LoopWatch(lambda _: None).watching(tmp_path / "missing" / "notes"):
            await asyncio.sleep(0)
    assert [line["event"] for line in lines] == ["loop.not_noted"]


def test_the_last_stack_is_read():
    noted = (
        "Thread 0x0000000000000002 (most recent call first):\n"
        '  File "/x/other.py", line 1 in other\n\n'
        "Thread 0x0000000000000001 (most recent call first):\n"
        '  File "/x/mine.py", line 2 in mine\n  File "/x/mine.py", line 3 in <module>\n\n'
        'Current thread\'s C stack trace (most recent call first):\n  Binary file "/usr/lib/libc.so"\n'
    )
    assert stack_of(noted) == ["/x/mine.py:2:mine", "/x/mine.py:3:<module>"]
    assert stack_of("") == []


HANGING = """
import asyncio, os, re, sys, threading, time
from pathlib import Path
from gateway.observe.looplag import LoopWatch

async def run():
    async with LoopWatch(lambda late: None).watching(Path(sys.argv[1])):
        await asyncio.sleep(0)
        print("hangs", flush=True)
        re.search("(a|a)*$", "a" * 60 + "b")

asyncio.run(run())
"""


@pytest.mark.parametrize(("sent", "event"), [(signal.SIGABRT, "loop.was_held"), (signal.SIGSEGV, "process.crashed")])
async def test_where_a_process_died_is_told_by_the_next_one(tmp_path: Path, sent: signal.Signals, event: str):
    notes = tmp_path / "notes"
    hanging = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(notes)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert hanging.stdout is not None
    assert await asyncio.to_thread(hanging.stdout.readline) == b"hangs\n"
    await asyncio.sleep(0.2)
    hanging.send_signal(sent)
    assert await asyncio.to_thread(hanging.wait) == -sent
    hanging.stdout.close()
    with capture_logs() as lines:
        async with LoopWatch(lambda _: None).watching(notes):
            pass
    assert [line["event"] for line in lines] == [event]
    assert any(":search" in str(frame) for frame in lines[0]["frames"])


MOVING = """
import asyncio, sys, threading, time
from pathlib import Path
from gateway.observe import looplag

looplag.BEAT_SECONDS = looplag.HELD_SECONDS = 0.002

def deep(n):
    return deep(n - 1) + 1 if n else 0

def others(end):
    while time.monotonic() < end:
        thread = threading.Thread(target=deep, args=(200,))
        thread.start()
        thread.join()

async def run():
    end = time.monotonic() + 4
    threading.Thread(target=others, args=(end,)).start()
    async with looplag.LoopWatch(lambda late: None).watching(Path(sys.argv[1])):
        while time.monotonic() < end:
            until = time.monotonic() + 0.02
            while time.monotonic() < until:
                [deep(n) for n in range(0, 300, 7)]
            await asyncio.sleep(0.003)

asyncio.run(run())
"""


async def test_a_busy_process_survives_being_looked_at(tmp_path: Path):
    """Code that works on while its stack is read: one look in some hundred was its end, when nobody held the interpreter's lock."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", MOVING, str(tmp_path / "notes")],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


async def test_notes_of_which_a_disk_has_made_something_else_keep_nobody_from_starting(tmp_path: Path):
    notes = tmp_path / "notes"
    notes.write_bytes(b'\xff\xfe\x00 (most recent call first):\n  File "/a/b/x.py", line 9 in f\n')
    with capture_logs() as lines:
        async with LoopWatch(lambda _: None).watching(notes):
            await asyncio.sleep(0)
    assert [(line["event"], line["frames"]) for line in lines] == [("loop.was_held", ["a/b/x.py:9:f"])]
    assert notes.read_bytes() == b""
