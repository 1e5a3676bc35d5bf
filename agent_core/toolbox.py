"""What a tool of one's own is written with (docs/tools.md). Of all that the gateway consists of, tools are promised this module alone.

A tool is a function with type hints and a docstring. What it is decorated with says how safe it is to run it again when nobody knows whether it
was done, after a crash for example: that decides what the gateway may do then. A function without a decorator counts as an `effect`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

from agent_core.records import dataclass

SECONDS = 60.0
LONGEST_SECONDS = 3600.0
MARK = "__outspoken_tool__"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Marked:
    """What a decorator said of a function."""

    effect: str
    seconds: float
    outside: bool | None = None
    """Others see anything of a call; None: they do of one that has an effect."""
    foreign: bool = True
    """What it gives holds words of others."""


@dataclass(frozen=True)
class Call:
    """What a tool may know of the call that it works for: a parameter with this type is given it, and the model does not see it."""

    workspace: Path
    """The conversation's folder, which is also the current one. What lies there can be sent, read and counted."""
    key: str
    """The same for one call, however often it is run: what a `keyed` tool hands to those that it asks for something."""
    again: bool
    """The call was begun before by a process that is dead: it may have been done."""
    say: Callable[[str], None]

    def progress(self, words: str) -> None:
        """Say how far it is: people see it while they wait."""
        self.say(words)


class NotDone(Exception):
    """Raise it when a call cannot be carried out and nothing was done: the model reads the words and may go on from there."""


@overload
def pure(function: Function, /) -> Function: ...
@overload
def pure(
    *, seconds: float = SECONDS, outside: bool | None = None, foreign: bool = True
) -> Callable[[Function], Function]: ...
def pure(
    function: Function | None = None,
    /,
    *,
    seconds: float = SECONDS,
    outside: bool | None = None,
    foreign: bool = True,
) -> Function | Callable[[Function], Function]:
    """It only reads: it may run again, and beside others. After so many seconds it is stopped.

    `outside`: others see its arguments, in any case. `foreign`: what it gives may hold words of others, which must not make the model do anything.
    """
    return _mark(Marked("pure", seconds, outside, foreign), function)


@overload
def keyed(function: Function, /) -> Function: ...
@overload
def keyed(
    *, seconds: float = SECONDS, outside: bool = True, foreign: bool = True
) -> Callable[[Function], Function]: ...
def keyed(
    function: Function | None = None,
    /,
    *,
    seconds: float = SECONDS,
    outside: bool = True,
    foreign: bool = True,
) -> Function | Callable[[Function], Function]:
    """It has an effect, and run again with the same `Call.key` it changes nothing more. After so many seconds it is stopped.

    `outside`: others than the person see its effect. `foreign`: what it gives may hold words of others, which must not make the model do anything.
    """
    return _mark(Marked("keyed", seconds, outside, foreign), function)


@overload
def effect(function: Function, /) -> Function: ...
@overload
def effect(
    *, seconds: float = SECONDS, outside: bool = True, foreign: bool = True
) -> Callable[[Function], Function]: ...
def effect(
    function: Function | None = None,
    /,
    *,
    seconds: float = SECONDS,
    outside: bool = True,
    foreign: bool = True,
) -> Function | Callable[[Function], Function]:
    """It has an effect that may happen twice, so it is never run again. After so many seconds it is stopped.

    `outside`: others than the person see its effect. `foreign`: what it gives may hold words of others, which must not make the model do anything.
    """
    return _mark(Marked("effect", seconds, outside, foreign), function)


def _mark(marked: Marked, function: Function | None) -> Function | Callable[[Function], Function]:
    """The function with its mark; where the decorator was used with parentheses, what marks the one that follows."""
    if function is not None and not callable(function):
        raise TypeError(f"what stands in the parentheses has to be named: @{marked.effect}(seconds={function!r})")
    if not 0 < marked.seconds <= LONGEST_SECONDS:
        raise ValueError(f"seconds has to be more than 0 and at most {LONGEST_SECONDS:g}")

    def mark(one: Function) -> Function:
        setattr(one, MARK, marked)
        return one

    return mark if function is None else mark(function)
