"""What the service manager is told, and when."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.observe.notify import BEATS, Manager, managed, manager
from tests.gateway.test_process import environment

LIMIT_SECONDS = 60.0


@contextmanager
def listening(path: str) -> Generator[socket.socket]:
    """A service manager's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(path)
        made.settimeout(LIMIT_SECONDS)
        yield made


def waiting(manager_socket: socket.socket) -> list[str]:
    """What has come so far."""
    found: list[str] = []
    manager_socket.setblocking(False)
    while True:
        try:
            found.append(manager_socket.recv(4096).decode())
        except BlockingIOError:
            return found


@given(limit=st.integers(0, 10**12), pid=st.integers(1, 2**22), other=st.integers(1, 2**22))
def test_signs_of_life_come_several_times_within_the_managers_patience(limit: int, pid: int, other: int):
    env = {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": str(limit), "WATCHDOG_PID": str(other)}
    expected = limit / 1e6 / BEATS if other == pid else 0
    assert manager(env, pid) == Manager("/run/n", expected)
    assert manager({**env, "WATCHDOG_PID": str(pid)}, pid).beat_seconds * 2 <= limit / 1e6


@given(st.dictionaries(st.sampled_from(["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]), st.text(max_size=12)))
def test_whatever_the_environment_says_there_is_a_manager_or_none(env: dict[str, str]):
    found = manager(env, 7)
    assert found.beat_seconds >= 0
    assert bool(found.address) == (env.get("NOTIFY_SOCKET", "")[:1] in ("/", "@") and len(env["NOTIFY_SOCKET"]) > 1)
    assert found.address or not found.beat_seconds


def test_an_abstract_address_begins_with_a_nul():
    assert manager({"NOTIFY_SOCKET": "@here"}, 1).address == "\0here"


async def test_a_loop_that_hangs_gives_no_sign_of_life_and_one_that_turns_does(tmp_path: Path):
    path = str(tmp_path / "n")
    with listening(path) as theirs:
        async with managed({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "60000"}):
            async with asyncio.timeout(LIMIT_SECONDS):
                seen = 0
                while seen < 3:
                    await asyncio.sleep(0.005)
                    seen += waiting(theirs).count("WATCHDOG=1")
            waiting(theirs)
            time.sleep(0.3)
            assert waiting(theirs) == []
        await asyncio.sleep(0.1)
        waiting(theirs)
        await asyncio.sleep(0.1)
        assert waiting(theirs) == [], "nobody beats after the block"


async def test_a_manager_that_is_gone_hinders_nothing_and_is_told_again_when_it_is_back(tmp_path: Path):
    path = str(tmp_path / "n")
    async with managed({"NOTIFY_SOCKET": path}) as notifier:
        notifier.tell(READY="1")
        with listening(path) as theirs:
            notifier.tell(READY="1", STATUS="fine")
            assert waiting(theirs) == ["READY=1\nSTATUS=fine"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory protection by prctl is Linux's")
def test_the_daemon_says_ready_and_stopping_and_needs_no_memory_that_is_written_and_executed(tmp_path: Path):
    """As the unit runs it: MemoryDenyWriteExecute= is a filter of the same calls that this prctl refuses."""
    path = str(tmp_path / "n")
    protect = "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execv(sys.executable, [sys.executable, '-m', 'gateway', 'run'])"
    env = environment(tmp_path, 0, NOTIFY_SOCKET=path, WATCHDOG_USEC="300000")
    with listening(path) as theirs:
        with (tmp_path / "log").open("wb") as log:
            daemon = subprocess.Popen([sys.executable, "-c", protect], env=env, stdout=log, stderr=log)
        try:
            told: list[str] = []
            while not any(words.startswith("READY=1\nSTATUS=Serving at http://127.0.0.1:") for words in told):
                told.append(theirs.recv(4096).decode())
            assert told[:1] == ["WATCHDOG=1"], "it lives before it is ready"
            told.clear()
            while told.count("WATCHDOG=1") < 3:
                told.append(theirs.recv(4096).decode())
            os.kill(daemon.pid, signal.SIGTERM)
            while not any(words.startswith("STOPPING=1") for words in told):
                told.append(theirs.recv(4096).decode())
            assert daemon.wait(LIMIT_SECONDS) == 0
        except TimeoutError:
            pytest.fail((tmp_path / "log").read_text())
        finally:
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait(10)
