"""``outspoken`` as a file that a shell or another program runs. It is forked from a process in which the imports are done, as `tests.forked` does:
these take most of a second, and a page of the documentation has ten commands.

The file is a small program that has the command run with its own arguments, environment, folder and streams, hands on what signals it gets, and ends
as the command does. Whoever kills it kills the command. What tests the start of the interpreter itself runs `python -m gateway` instead.
"""

from __future__ import annotations

import ast
import contextlib
import os
import selectors
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from multiprocessing import current_process, parent_process
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NoReturn

from tests import forked

RUNS = r"""#!{python} -IS
import array, os, signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {{1, 2, 15}})
line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
told = repr((sys.argv[1:], dict(os.environ), os.getcwd())).encode()
line.sendmsg([len(told).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
line.sendall(told)
for number in (1, 2, 15):
    signal.signal(number, lambda number, _: line.sendall(bytes([number])))
signal.pthread_sigmask(signal.SIG_UNBLOCK, {{1, 2, 15}})
status = int.from_bytes(line.recv(4) or bytes([0, 0, 0, 70]), "big", signed=True)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


class _Server:
    """The process that forks the commands, if it has begun."""

    process: ForkServerProcess | None = None
    owner = 0
    address = ""


def begin() -> None:
    """Start it. Processes that are forked from this one share it."""
    _Server.address = f"{tempfile.mkdtemp(prefix='outspoken-runs-')}/line"
    _Server.owner = os.getpid()
    with socket.socket(socket.AF_UNIX) as asked:
        asked.bind(_Server.address)
        asked.listen(100)  # here, so that whoever asks before the process is there is heard by it
        _Server.process = forked.other(_serve, asked)


def end() -> None:
    """At the end of whoever has started it."""
    if _Server.process is not None and _Server.owner == os.getpid():
        _Server.process.kill()
        _Server.process.join()
        Path(_Server.address).unlink(missing_ok=True)
        Path(_Server.address).parent.rmdir()
        _Server.process = None


def program(folder: Path) -> Path:
    """Writes the file ``outspoken`` into the folder."""
    if _Server.process is None:
        begin()
    file = folder / "outspoken"
    file.write_text(RUNS.format(python=sys.executable, address=_Server.address))
    file.chmod(0o755)
    return file


def servers() -> list[int]:
    """The process that forks the commands, if it has begun."""
    pid = None if _Server.process is None else _Server.process.pid
    return [] if pid is None else [pid]


def _serve(asked: socket.socket) -> None:
    """Run what is asked for, until nobody is left who could ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    above = parent_process()
    assert above is not None
    with selectors.DefaultSelector() as selector:
        selector.register(above.sentinel, selectors.EVENT_READ, sys.exit)
        selector.register(asked, selectors.EVENT_READ, lambda: _begin(asked.accept()[0], selector))
        while True:
            for key, _ in selector.select():
                key.data()


def _begin(line: socket.socket, selector: selectors.BaseSelector) -> None:
    size, streams, _, _ = socket.recv_fds(line, 8, 3)
    told = b""
    while len(told) < int.from_bytes(size, "big"):
        told += line.recv(1 << 16)
    words, env, folder = ast.literal_eval(told.decode())
    child = os.fork()
    if child == 0:
        vars(current_process())["_config"]["daemon"] = False  # it may have children
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        _end(lambda: forked.as_command(words, env))
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)

    def heard() -> None:
        try:
            signals = line.recv(16)
        except ConnectionError:
            signals = b""
        for number in signals or [signal.SIGKILL]:
            os.kill(child, number)
        if not signals:
            selector.unregister(line)

    def told_of_end() -> None:
        selector.unregister(ended)
        os.close(ended)
        if line in selector.get_map():
            selector.unregister(line)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(OSError):  # nobody waits for it
            line.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
        line.close()

    selector.register(line, selectors.EVENT_READ, heard)
    selector.register(ended, selectors.EVENT_READ, told_of_end)


def _end(command: Callable[[], None]) -> NoReturn:
    """As an interpreter ends when its program does."""
    status = 1
    try:
        command()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - it may not return into the code of whoever forked it
        traceback.print_exc()
    finally:
        vars(threading)["_shutdown"]()  # waits for threads, and tells those of executors first
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
