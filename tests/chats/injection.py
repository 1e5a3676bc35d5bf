"""Raises an exception at any one place of a piece of code: at the n-th call of a function in the files given, or by the n-th thing that it
waits for. So a test can try all places, one after the other, and none can be forgotten."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any, Generic, TypeVar

from tests.chats.harness import ROOT

T = TypeVar("T")


class Injected(Exception):
    """Nobody expects it."""


@dataclass
class Places:
    """What was met."""

    count: int = 0
    hit: str = ""
    """Where it was raised; empty if there were fewer places."""


@contextmanager
def raising(
    number: int,
    files: Sequence[str],
    functions: Sequence[str] = (),
    error: type[BaseException] = Injected,
    spared: tuple[str, ...] = (),
) -> Generator[Places]:
    """In the block, raise at place `number` (from 1) in `files` (paths from the root of the source) and `functions` (qualified names).

    Nothing is raised in functions whose qualified names begin with one of `spared`.
    """
    wanted = frozenset(str(ROOT / file) for file in files)
    named = frozenset(functions)
    places = Places()
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not _among(code, wanted, named, spared):
            return
        if frame.f_lineno != code.co_firstlineno:  # a coroutine that goes on after it has waited
            return
        places.count += 1
        if places.count == number:
            sys.settrace(before)  # what is traced takes its time
            places.hit = f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}:{frame.f_lineno}"
            raise error(places.hit)

    sys.settrace(trace)
    try:
        yield places
    finally:
        sys.settrace(before)


@cache
def _among(code: CodeType, files: frozenset[str], functions: frozenset[str], spared: tuple[str, ...]) -> bool:
    wanted = code.co_filename in files or code.co_qualname in functions
    return wanted and not code.co_qualname.startswith(spared)


class Thrown(Generic[T]):
    """Awaits something, and raises in place of the n-th thing that it waits for, once that is there."""

    def __init__(self, work: Awaitable[T], number: int, places: Places, error: type[BaseException] = Injected) -> None:
        self._work = work
        self._number = number
        self._places = places
        self._error = error

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._work.__await__()
        answer: Any = None
        step: Callable[[Any], Any] = steps.send
        while True:
            try:
                waited_for = step(answer)
            except StopIteration as end:
                return end.value
            answer, step = None, steps.send
            try:
                answer = yield waited_for
            except BaseException as error:  # noqa: BLE001 - it goes where it belongs
                answer, step = error, steps.throw
                continue
            self._places.count += 1
            if self._places.count == self._number:
                self._places.hit = f"await {self._number}"
                answer, step = self._error(self._places.hit), steps.throw
