"""Runs a command to its exit status: known problems become words on standard error, never a traceback."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar, cast

import click

PROBLEM, TRY_AGAIN, CONFIGURATION = 1, 75, 78

T = TypeVar("T")


def guarded(work: Callable[[], Coroutine[Any, Any, int]]) -> NoReturn:
    """Run a command to its exit status; known problems become words, not tracebacks."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            status = runner.run(work())
            sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except Exception as error:  # noqa: BLE001 - known problems become words, others are raised again
        status = _problem(error)
    sys.exit(status)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop, which costs an eighth less a token; Python's own where there is no uvloop (Windows)."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def in_words(work: Callable[[], T]) -> T:
    try:
        return work()
    except Exception as error:  # noqa: BLE001
        sys.exit(_problem(error))


def _alone(error: Exception) -> Exception:
    """What was raised, if a group of tasks raised nothing else."""
    if not isinstance(error, ExceptionGroup):
        return error
    inner = cast("ExceptionGroup[Exception]", error).exceptions
    return _alone(inner[0]) if len(inner) == 1 else cast("Exception", error)


def _no_more_files(error: BaseException | None) -> bool:
    """This process, or the machine, may open no further file: that is why this, or one of what it came of or holds, was raised."""
    if error is None:
        return False
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return True
    inner = cast("BaseExceptionGroup[BaseException]", error).exceptions if isinstance(error, BaseExceptionGroup) else ()
    return any(map(_no_more_files, (*inner, error.__cause__)))


def _files_words() -> str:
    try:
        import resource
    except ImportError:
        return "Too many files are open."
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return f"Too many files are open: this process may have {most} open at once. Allow it more: ulimit -n 1024 in a shell, LimitNOFILE= of systemd."


def _print_no_more() -> None:
    """What is left for standard output has no place to go, and is not tried again at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _problem(error: Exception) -> int:
    """Say what is wrong; the exit status for it. What is no known problem is a bug, and raised again."""
    if _no_more_files(error):  # before anything is imported: a module is a file, too
        click.echo(_files_words(), err=True)
        return TRY_AGAIN
    from adapters.terminal.ask import GatewayLost, GatewayRefused
    from agent_core.store.database.trouble import cannot_start, only
    from agent_core.store.errors import CannotOpen, CannotOpenNow, StorageUnavailable
    from agent_core.store.keeping.backup import CannotCopy
    from gateway.config.paths import PathsError
    from gateway.config.reading import CannotServe, ConfigError
    from gateway.explain.ids import CannotExplain
    from gateway.operate.bundle import CannotBundle
    from gateway.operate.replay import CannotReplay
    from gateway.operate.triage.reading import CANNOT_TELL, CannotTriage

    error = _alone(error)
    away = only(error, StorageUnavailable)
    if away is not None:  # whatever was to be read or written, at a start or by a command
        error = cannot_start(away)
    match error:
        case CannotOpenNow():
            status = TRY_AGAIN
        case ConfigError() | CannotServe() | PathsError() | CannotOpen():
            status = CONFIGURATION
        case GatewayRefused(status=HTTPStatus.SERVICE_UNAVAILABLE | HTTPStatus.INSUFFICIENT_STORAGE):
            status = TRY_AGAIN
        case GatewayRefused() | CannotBundle() | CannotCopy() | CannotExplain() | CannotReplay():
            status = PROBLEM
        case CannotTriage():
            status = CANNOT_TELL
        case GatewayLost():
            status = TRY_AGAIN
        case BrokenPipeError():
            _print_no_more()
            return PROBLEM
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG):
            _print_no_more()
            click.echo(f"There is no room to write it all: {error.strerror}.", err=True)
            return PROBLEM
        case _:
            raise error
    click.echo(str(error), err=True)
    return status
