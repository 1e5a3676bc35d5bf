"""A gateway that runs and does not answer: what whoever asks is told, and how soon."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from adapters.checks.probe import Answering
from gateway.observe import lifesign
from gateway.observe.lifesign import BEAT_SECONDS, FILE_NAME, SILENT_SECONDS, LifeSign, judge, sign_of, signs_of_life
from tests.gateway.test_process import daemon, environment, outspoken
from tests.ports import free_port

URL = "http://127.0.0.1:8787"
SIGNS = st.none() | st.builds(LifeSign, st.integers(1, 2**22), st.floats(0, 2e9), st.booleans())


@given(st.sampled_from(Answering), SIGNS, st.none() | st.integers(0, 2**22), st.floats(0, 2e9))
def test_who_answers_is_found_who_runs_and_is_silent_is_named_and_nobody_else_is(
    reply: Answering, sign: LifeSign | None, holder: int | None, now: float
) -> None:
    found = judge(reply, URL, sign, holder, now)
    if reply is Answering.GATEWAY:
        assert (found.url, found.trouble) == (URL, "")
        return
    assert found.url == ""
    runs = sign.pid if sign is not None else holder
    assert bool(found.trouble) is bool(runs or reply is Answering.SILENT)
    assert bool(found.trouble) is bool(found.fix)
    if runs:
        assert f"process {runs}" in found.trouble
    if sign is not None and sign.stopped:
        assert f"kill -CONT {sign.pid}" in found.fix
    elif sign is not None:
        assert ("It hangs." in found.fix) is (now - sign.seen_at >= SILENT_SECONDS)


def test_since_when_is_said() -> None:
    found = judge(Answering.SILENT, URL, LifeSign(7, 1_800_000_000), 7, 1_800_000_035)
    assert found.trouble.endswith("its loop turned last at 08:00:00 UTC, 35 s ago.")


async def test_the_sign_is_there_while_the_process_is_and_is_as_old_as_the_loops_last_turn(tmp_path: Path) -> None:
    assert sign_of(tmp_path) is None
    async with signs_of_life(tmp_path):
        await asyncio.sleep(0)
        first = sign_of(tmp_path)
        assert first is not None
        assert (first.pid, first.stopped) == (os.getpid(), False)
        assert abs(first.seen_at - time.time()) < BEAT_SECONDS
        time.sleep(0.3)
        assert sign_of(tmp_path) == first
    assert sign_of(tmp_path) is None
    assert (tmp_path / FILE_NAME).exists()


async def test_a_disk_that_takes_no_sign_for_a_while_is_said_once_and_signs_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(
        [None, OSError(errno.EROFS, "read-only"), OSError(errno.EROFS, "read-only"), None, OSError(errno.EIO, "bad")]
    )
    over = asyncio.Event()

    def utime(handle: int) -> None:
        del handle
        answer = next(answers, over)
        if answer is over:
            over.set()
        elif isinstance(answer, OSError):
            raise answer

    monkeypatch.setattr(os, "utime", utime)
    monkeypatch.setattr(lifesign, "BEAT_SECONDS", 0)
    with capture_logs() as said:
        async with signs_of_life(tmp_path):
            await over.wait()
    assert [(one["event"], one["error"]) for one in said] == [
        ("gateway.no_sign", "read-only"),
        ("gateway.no_sign", "bad"),
    ]


async def test_where_no_file_can_be_made_the_block_runs_without_signs(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    async with signs_of_life(tmp_path):
        assert sign_of(tmp_path) is None


def test_of_a_gateway_that_hangs_every_command_says_so_in_time_and_what_to_do(tmp_path: Path) -> None:
    env = environment(tmp_path, free_port())
    with daemon(env, tmp_path / "log") as running:
        running.send_signal(signal.SIGSTOP)
        try:
            for words in (["status"], ["status", "--json"], ["send", "--to", "telegram/1", "hi"], ["access", "list"], ["ask", "hi"], ["chat"]):  # fmt: skip
                began = time.monotonic()
                found = outspoken(env, *words)
                assert found.returncode == 75, (words, found.stderr)
                assert f"A gateway runs (process {running.pid}) and does not answer" in found.stderr
                assert f"kill -CONT {running.pid}" in found.stderr
                assert "Traceback" not in found.stderr
                assert time.monotonic() - began < 60, words
            assert "nothing was sent" in outspoken(env, "send", "--to", "telegram/1", "hi").stderr
            bare = outspoken(env)
            assert (bare.returncode, f"process {running.pid}" in bare.stdout) == (0, True)
            assert "outspoken run" not in bare.stdout
            doctor = outspoken(env, "doctor")
            assert doctor.returncode == 1
            assert f"PROBLEM gateway: A gateway runs (process {running.pid})" in doctor.stdout
            assert "is no outspoken gateway" not in doctor.stdout
            alive = outspoken(env, "health", "alive", "--timeout", "1")
            assert (alive.returncode, "does not answer within 1 s" in alive.stderr) == (1, True)
        finally:
            running.send_signal(signal.SIGCONT)
        assert outspoken(env, "status").returncode == 0


def test_somebody_else_at_the_port_who_says_nothing_is_no_gateway(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        found = outspoken(environment(tmp_path, deaf.getsockname()[1]), "status")
    assert found.returncode == 75
    assert "is no gateway of this state directory" in found.stderr


async def test_whoever_looks_while_a_gateway_starts_costs_it_no_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifesign, "BEAT_SECONDS", 0)
    (tmp_path / FILE_NAME).touch()
    with (tmp_path / FILE_NAME).open("rb") as looks:
        fcntl.flock(looks, fcntl.LOCK_SH)
        async with signs_of_life(tmp_path):
            await asyncio.sleep(0)
            fcntl.flock(looks, fcntl.LOCK_UN)
            async with asyncio.timeout(30):
                while (found := sign_of(tmp_path)) is None:
                    await asyncio.sleep(0)
            assert found.pid == os.getpid()
    assert sign_of(tmp_path) is None
