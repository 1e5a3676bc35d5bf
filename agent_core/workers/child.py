"""The worker's side: one job after the other, read from the standard input, answered on the standard output.

A worker is a fresh interpreter, not a copy of the gateway: it has none of its sockets, files, secrets or memory. It limits itself
before it reads a first job, dies with the gateway, and leaves stopping to it: a signal that ends the gateway must not end
the jobs of turns that are still given time.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from time import monotonic
from typing import BinaryIO, TypeAlias, cast

from agent_core.jsonvalue import Json
from agent_core.workers.confines import Confines, read
from agent_core.workers.wire import HEAD_BYTES, Unsendable, frame, lengths, value_of

Work: TypeAlias = Callable[[dict[str, Json], bytes], Json]
"""A job's function: what is asked, and bytes beside it."""

NICE = 5
"""The gateway's loop goes first."""
_KILL_WITH_PARENT = 1
"""``PR_SET_PDEATHSIG`` of ``prctl``."""


BEAT_SECONDS = 0.2
"""How far a job is, is told this often at most: each time somebody's chat is looked at anew."""

_answers: BinaryIO
"""Where what is said on the way goes."""
_speaks = allocate_lock()
"""Whoever has it may write: a job may have begun threads."""
_over = [0]
"""How many jobs are over: the number of the running one."""


def sayer() -> Callable[[str], None]:
    """What tells the gateway how far the running job is. It is mute once that is over, and in a copy of this process."""
    number, process, latest = _over[0], os.getpid(), -BEAT_SECONDS

    def say(words: str) -> None:
        nonlocal latest
        with _speaks:
            now = monotonic()
            if number == _over[0] and process == os.getpid() and now - latest >= BEAT_SECONDS:
                latest = now
                _answers.write(frame({"beat": words}))
                _answers.flush()

    return say


def main() -> None:
    """Serve until the gateway closes the pipe."""
    global _answers
    parent, confines, process = int(sys.argv[1]), read(sys.argv[2]), os.getpid()
    requests, _answers = _pipes()
    answers = _answers
    _limit(parent, confines)
    answers.write(frame({"ready": True}))
    answers.flush()
    while (asked := _next(requests)) is not None:
        answer = _answer(*asked, confines)
        if os.getpid() != process:  # a job has made a copy of this process, and that has nothing to answer
            os._exit(0)
        if confines.processes:
            from agent_core.workers.left import end_own

            end_own()
        with _speaks:
            _over[0] += 1
            answers.write(answer)
            answers.flush()


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes, out of the way of whatever a library prints, and of what a job or a program of its reads: that would be the next request."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for taken in (0, 1):
        os.dup2(nowhere, taken)
    os.close(nowhere)
    return requests, answers


def _limit(parent: int, confines: Confines) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stay)  # ignored, they would be ignored by whatever programs a job begins as well
    for kind, most in (
        (resource.RLIMIT_AS, confines.memory_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, confines.file_bytes),
        (resource.RLIMIT_NOFILE, confines.open_files),
        *(() if confines.processes else ((resource.RLIMIT_NPROC, 0),)),
    ):
        with suppress(ValueError, OSError):  # a system that has no such limit, or a lower one
            resource.setrlimit(kind, (most, most))
    with suppress(OSError):
        os.nice(NICE)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123 - pathlib is slower to import
        score.write("800")  # when memory is short, the kernel is to take a worker and not the gateway
    _die_with(parent)
    if confines.processes:
        from agent_core.workers.left import take_orphans

        take_orphans()


def _stay(number: int, frame: object) -> None:
    """The gateway says when it is over."""


def _die_with(parent: int) -> None:
    """Idle workers see the end of the pipe; this is for those in the middle of a job."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_KILL_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it could be said
            raise SystemExit(0)


def _next(requests: BinaryIO) -> tuple[dict[str, Json], bytes] | None:
    head = requests.read(HEAD_BYTES)
    if len(head) < HEAD_BYTES:
        return None
    body, blob = lengths(head)
    return value_of(requests.read(body)), requests.read(blob)


def _answer(asked: dict[str, Json], blob: bytes, confines: Confines) -> bytes:
    """A job's result, or what went wrong with it; never a word of what it was about."""
    try:
        _limit_seconds(asked["seconds"])
        work, request = _work(str(asked["job"])), asked["request"]
        assert isinstance(request, dict)
        return frame({"done": work(request, blob), "worn": _worn(confines)})
    except MemoryError:
        return frame({"failed": "memory"})
    except RecursionError:
        return frame({"failed": "depth"})
    except Unsendable:
        return frame({"failed": "bug", "error": "Unsendable"})
    except Exception as error:  # noqa: BLE001 - told to the gateway, which logs it
        return frame({"failed": "bug", "error": type(error).__name__, "source": _source(error)})


def _worn(confines: Confines) -> bool:
    """Whether jobs have left so much behind here that the next one could lack it."""
    try:
        open_files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - pathlib is slower to import
        with open("/proc/self/statm", "rb") as sizes:  # noqa: PTH123
            memory = int(sizes.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:  # a system without it
        return False
    except OSError:  # not even that can be opened
        return True
    return open_files > confines.open_files // 2 or memory > confines.memory_bytes // 2


def _work(name: str) -> Work:
    module, _, function = name.partition(":")
    return cast("Work", getattr(import_module(module), function))


def _limit_seconds(seconds: Json) -> None:
    """Processor time for the next job; the gateway's own limit comes first, if it still lives."""
    assert isinstance(seconds, int | float)
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + 2
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def _source(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
