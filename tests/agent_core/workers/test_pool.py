"""Workers: limits, replacement, and that nothing of them is left, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.jsonvalue import Json
from agent_core.workers.child import _worn
from agent_core.workers.confines import OWN, Confines
from agent_core.workers.pool import Job, Workers, WorkerTrouble, WorkFailed, _spawned

PATIENCE = 30.0


def job(name: str, seconds: float = 20.0, answer_bytes: int = 1_000_000) -> Job:
    return Job(f"tests.agent_core.workers.jobs:{name}", seconds, answer_bytes)


async def trouble(workers: Workers, wanted: Job, **request: Json) -> WorkerTrouble:
    with pytest.raises(WorkFailed) as failed:
        await workers.run(wanted, request)
    return failed.value.trouble


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


def gone(pid: int) -> bool:
    """Whether a process is over; one that nobody has asked for its exit status yet is."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_a_worker_begins_with_the_first_job_is_used_again_and_ends_when_it_is_idle():
    async with Workers(idle_seconds=0.1) as workers:
        assert workers.processes == []
        assert await workers.run(job("echo"), {"a": "ü"}, b"x" * 300_000) == {"request": {"a": "ü"}, "bytes": 300_000}
        first = workers.processes
        await workers.run(job("echo"), {})
        assert workers.processes == first
        await until(lambda: workers.processes == [])
        await until(lambda: gone(first[0]))
        await workers.run(job("echo"), {})


async def test_a_worker_that_has_done_its_share_is_replaced(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent_core.workers.pool.JOBS", 2)
    async with Workers() as workers:
        there: list[list[int]] = []
        for _ in range(3):
            await workers.run(job("echo"), {})
            there.append(workers.processes)
        (first,), second, (third,) = there
        assert second == [], "what a library has not given back goes with it"
        assert third != first
        await until(lambda: gone(first))


async def test_a_worker_has_no_file_no_secret_and_no_socket_of_the_gateway(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("OUTSPOKEN_SECRET", "xyzzy")
    with (tmp_path / "database").open("w") as file:
        os.set_inheritable(file.fileno(), False)
        async with Workers() as workers:
            seen = await workers.run(job("surroundings"), {})
    assert isinstance(seen, dict)
    assert "xyzzy" not in str(seen)
    found = set(map(str, seen["open"] if isinstance(seen["open"], list) else []))
    # libffi 3.5 keeps its own file open.
    assert {one for one in found if "/libffi.so" not in one} <= {"pipe", "/dev/null", "socket"}
    assert seen["core"] == [0, 0]
    assert seen["memory"] == [512 * 1024 * 1024] * 2


async def test_of_those_who_wait_so_many_are_let_in_as_there_are_workers_and_no_more(monkeypatch: pytest.MonkeyPatch):
    at_work: list[int] = []

    async def works(workers: Workers, *_: object) -> Json:
        at_work.append(len(workers._owners))
        await asyncio.sleep(0)
        return None

    monkeypatch.setattr(Workers, "_run", works)
    workers = Workers(2)
    await asyncio.wait_for(asyncio.gather(*(workers.run(job("echo"), {}) for _ in range(9))), 5)
    assert (len(at_work), max(at_work)) == (9, 2)
    await workers.aclose()


@pytest.mark.parametrize(
    ("bad", "seconds", "answer_bytes", "expected"),
    [
        ("spin", 0.5, 1000, WorkerTrouble.SLOW),
        ("hold", 0.5, 1000, WorkerTrouble.SLOW),
        ("sleep", 0.5, 1000, WorkerTrouble.SLOW),
        ("hog", 20, 1000, WorkerTrouble.MEMORY),
        ("deep", 20, 1000, WorkerTrouble.DEPTH),
        ("die", 20, 1000, WorkerTrouble.DIED),
        ("leave", 20, 1000, WorkerTrouble.DIED),
        ("big", 20, 1000, WorkerTrouble.SIZE),
        ("wrong", 20, 1000, WorkerTrouble.BUG),
        ("unsayable", 20, 1000, WorkerTrouble.BUG),
        ("missing", 20, 1000, WorkerTrouble.BUG),
        ("babble", 20, 1000, WorkerTrouble.SIZE),
        ("lie", 20, 1000, WorkerTrouble.BUG),
        ("mumble", 20, 1000, WorkerTrouble.BUG),
    ],
)
async def test_a_bad_job_fails_alone_and_the_next_one_has_a_fresh_worker(
    bad: str, seconds: float, answer_bytes: int, expected: WorkerTrouble
):
    async with Workers() as workers:
        await workers.run(job("echo"), {})
        (before,) = workers.processes
        assert await trouble(workers, job(bad, seconds, answer_bytes)) is expected
        await workers.run(job("echo"), {})
        assert workers.processes != [before]
        await until(lambda: gone(before))


async def test_the_loop_runs_on_while_a_worker_is_held_in_c():
    async with Workers() as workers:
        await workers.run(job("echo"), {})
        held = asyncio.create_task(trouble(workers, job("hold", 1.0)))
        rounds = 0
        while not held.done():
            await asyncio.sleep(0.005)
            rounds += 1
        assert rounds > 20
        assert await held is WorkerTrouble.SLOW


async def test_who_cancels_a_job_ends_it():
    async with Workers() as workers:
        running = asyncio.create_task(workers.run(job("spin"), {}))
        await until(lambda: bool(workers.processes))
        await asyncio.sleep(0.2)
        (pid,) = workers.processes
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        await until(lambda: gone(pid))
        assert workers.processes == []


async def test_an_idle_worker_that_was_killed_is_replaced_without_a_word():
    async with Workers() as workers:
        await workers.run(job("echo"), {})
        (pid,) = workers.processes
        os.kill(pid, signal.SIGKILL)
        await until(lambda: workers.processes == [])
        await workers.run(job("echo"), {})


async def test_signals_that_end_the_gateway_leave_its_jobs_time():
    async with Workers() as workers:
        running = asyncio.create_task(workers.run(job("sleep"), {"seconds": 1}))
        await until(lambda: bool(workers.processes))
        await asyncio.sleep(0.3)
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(workers.processes[0], one)
        assert isinstance(await running, int)


async def test_what_has_no_form_in_json_is_refused_before_it_is_sent():
    async with Workers() as workers:
        assert await trouble(workers, job("echo"), text="\ud800") is WorkerTrouble.UNSENDABLE
        assert await trouble(workers, job("echo"), number=2**70) is WorkerTrouble.UNSENDABLE
        assert workers.processes == []


async def test_one_owner_has_one_worker_at_a_time_and_others_go_past():
    async with Workers(2) as workers:
        mine = [asyncio.create_task(workers.run(job("sleep"), {"seconds": 0.6}, owner="me")) for _ in range(3)]
        await asyncio.sleep(0)
        await workers.run(job("echo"), {}, owner="you")
        assert not any(one.done() for one in mine)
        pids = await asyncio.gather(*mine)
        assert len(set(map(str, pids))) == 1 or len(workers.processes) <= 2


async def test_who_finds_a_long_line_is_told_at_once_and_a_place_that_is_given_up_is_taken():
    async with Workers(1, line=1) as workers:
        running = asyncio.create_task(workers.run(job("sleep"), {"seconds": 0.5}))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(workers.run(job("echo"), {}))
        await asyncio.sleep(0)
        assert await trouble(workers, job("echo")) is WorkerTrouble.BUSY
        waiting.cancel()
        await asyncio.wait({waiting})
        after = asyncio.create_task(workers.run(job("echo"), {}))
        await running
        await after


async def test_a_place_that_is_given_up_in_the_moment_of_being_given_is_taken_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
):
    async def works(*_: object) -> Json:
        await may_end.wait()
        return None

    def left(of: Workers, owner: object) -> None:
        leave(of, owner)
        if not waiting.done() and not waiting.cancelling():
            waiting.cancel()  # it has a worker by now, and does not know yet

    leave, may_end = Workers._leave, asyncio.Event()
    monkeypatch.setattr(Workers, "_run", works)
    workers = Workers(1)
    running, waiting, after = (asyncio.create_task(workers.run(job("echo"), {})) for _ in range(3))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    monkeypatch.setattr(Workers, "_leave", left)
    may_end.set()
    await asyncio.wait_for(running, 5)
    await asyncio.wait_for(after, 5)
    assert waiting.cancelled()
    await workers.aclose()


async def test_a_line_has_an_end_and_moves_on_in_its_order(monkeypatch: pytest.MonkeyPatch):
    served: list[str] = []

    async def works(_workers: Workers, work: Job, *_: object) -> Json:
        served.append(work.target)
        await may_end.wait()
        return None

    may_end = asyncio.Event()
    monkeypatch.setattr(Workers, "_run", works)
    workers = Workers(1, line=2)
    asked = [asyncio.create_task(workers.run(Job(f"j{number}", 9), {})) for number in range(3)]
    await asyncio.sleep(0)
    for _ in range(3):
        with pytest.raises(WorkFailed) as failed:
            await asyncio.wait_for(workers.run(Job("one too many", 9), {}), 5)
        assert failed.value.trouble is WorkerTrouble.BUSY
    may_end.set()
    await asyncio.wait_for(asyncio.gather(*asked), 5)
    assert served == ["j0", "j1", "j2"]
    await workers.aclose()


@pytest.mark.parametrize(
    ("open_files", "memory_bytes", "worn"), [(10**6, 2**60, False), (2, 2**60, True), (10**6, 2**20, True)]
)
def test_a_worker_is_worn_when_half_of_what_it_may_have_is_gone(open_files: int, memory_bytes: int, worn: bool):
    assert _worn(replace(OWN, open_files=open_files, memory_bytes=memory_bytes)) is worn


async def test_a_worker_that_does_not_begin_is_ended_and_said_to_be_none(monkeypatch: pytest.MonkeyPatch):
    begun: list[int] = []

    async def counted(confines: Confines) -> asyncio.subprocess.Process:
        process = await _spawned(confines)
        begun.append(process.pid)
        return process

    monkeypatch.setattr("agent_core.workers.pool._spawned", counted)
    monkeypatch.setattr("agent_core.workers.pool._BOOT", "import time; time.sleep(600)")
    monkeypatch.setattr("agent_core.workers.pool.START_SECONDS", 0.05)
    async with Workers() as workers:
        assert await trouble(workers, job("echo")) is WorkerTrouble.NO_PROCESS
        await until(lambda: gone(begun[0]))


async def test_closing_ends_what_runs_and_what_waits_and_takes_nothing_more():
    workers = Workers(1)
    running = asyncio.create_task(trouble(workers, job("spin")))
    await until(lambda: bool(workers.processes))
    waiting = asyncio.create_task(trouble(workers, job("echo")))
    await asyncio.sleep(0.1)
    pids = workers.processes
    await workers.aclose()
    assert await running is WorkerTrouble.CLOSED
    assert await waiting is WorkerTrouble.CLOSED
    assert await trouble(workers, job("echo")) is WorkerTrouble.CLOSED
    assert all(map(gone, pids))


PARENT = """
    import asyncio
    from agent_core.workers.pool import Job, Workers

    async def main():
        async with Workers() as workers:
            await workers.run(Job("tests.agent_core.workers.jobs:echo", 20), {})
            busy = asyncio.create_task(workers.run(Job("tests.agent_core.workers.jobs:hold", 60), {}, owner=1))
            await workers.run(Job("tests.agent_core.workers.jobs:echo", 20), {}, owner=2)
            while len(workers.processes) < 2:
                await asyncio.sleep(0.01)
            print('PIDS', *workers.processes, flush=True)
            await busy

    asyncio.run(main())
"""


async def test_no_worker_outlives_a_gateway_that_is_killed():
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(PARENT), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    async with asyncio.timeout(PATIENCE):
        while not (said := await parent.stdout.readline()).startswith(b"PIDS"):  # what it logs before
            assert said
        pids = [int(one) for one in said.split()[1:]]
    assert len(pids) == 2
    parent.kill()
    await parent.wait()
    await until(lambda: all(map(gone, pids)))


async def test_a_worker_cannot_write_a_file(tmp_path: Path):
    async with Workers() as workers:
        said = await workers.run(job("write"), {"path": str(tmp_path / "x")})
    assert said != "written"
    assert not (tmp_path / "x").exists() or (tmp_path / "x").read_bytes() == b""
