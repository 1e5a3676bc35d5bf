"""Jobs for the tests of workers, most of them bad ones."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import time
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.workers.wire import frame


def echo(request: dict[str, Json], blob: bytes) -> Json:
    return {"request": request, "bytes": len(blob)}


def surroundings(request: dict[str, Json], blob: bytes) -> Json:
    found: list[Json] = []
    for one in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(one.readlink()).partition(":")[0])
        except OSError:
            continue  # the folder itself
    environment: dict[str, Json] = dict(os.environ)
    core, memory = resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_AS)
    return {"open": found, "environment": environment, "core": [*core], "memory": [*memory], "arguments": [*sys.argv]}


def spin(request: dict[str, Json], blob: bytes) -> Json:
    while True:
        pass


def hold(request: dict[str, Json], blob: bytes) -> Json:
    """For ever in C, without letting the interpreter's lock go."""
    return re.search("(a|a)*$", "a" * 60 + "b") is not None


def hog(request: dict[str, Json], blob: bytes) -> Json:
    return len(b"x" * (4 << 30))


def deep(request: dict[str, Json], blob: bytes) -> Json:
    return deep(request, blob)


def die(request: dict[str, Json], blob: bytes) -> Json:
    os.kill(os.getpid(), signal.SIGSEGV)
    return None


def leave(request: dict[str, Json], blob: bytes) -> Json:
    os._exit(0)


def big(request: dict[str, Json], blob: bytes) -> Json:
    return "x" * 20_000_000


def wrong(request: dict[str, Json], blob: bytes) -> Json:
    raise ValueError("a secret")


def unsayable(request: dict[str, Json], blob: bytes) -> Json:
    return "\ud800"


def babble(request: dict[str, Json], blob: bytes) -> Json:
    """As a library that was taken over might: bytes that are no frame."""
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, b"\xff" * 1000)
        except OSError:
            continue
    return None


def sleep(request: dict[str, Json], blob: bytes) -> Json:
    seconds = request.get("seconds", 60)
    assert isinstance(seconds, int | float)
    time.sleep(seconds)
    return os.getpid()


def write(request: dict[str, Json], blob: bytes) -> Json:
    try:
        Path(str(request["path"])).write_text("x")
    except OSError as error:
        return error.strerror
    return "written"


def lie(request: dict[str, Json], blob: bytes) -> Json:
    """As one whose worker a page has taken over: it fails in a way that there is not."""
    return _answered(frame({"failed": "otherwise", "error": "x" * 500}))


def mumble(request: dict[str, Json], blob: bytes) -> Json:
    """It says neither that it is done nor that it failed."""
    return _answered(frame({}))


def _answered(said: bytes) -> Json:
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, said)
        except OSError:
            continue
    time.sleep(60)
    return None
