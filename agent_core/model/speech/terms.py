"""Who turns speech into text or text into speech, and for how long they are waited for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import TypeVar

from agent_core.causes import BreakCause
from agent_core.limits.budgets import CallSpent
from agent_core.records import dataclass
from agent_core.settings import CONNECT_SECONDS
from agent_core.tools.base import NotPaid, Purse

T = TypeVar("T")
TOKENS_A_SECOND = 10
"""Of sound, where nobody tells: one for each tenth of a second, as OpenAI counts."""


@dataclass(frozen=True, slots=True)
class SpeechTerms:
    """An endpoint, or a program in its place. Times in seconds."""

    command: tuple[str, ...] = ()
    """The program with its arguments; empty: the endpoint is asked."""
    url: str = ""
    """Address of the API, with its ``/v1``."""
    model: str = ""
    key: str = field(default="", repr=False)
    """Empty: none is sent."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    language: str = ""
    """In which people speak; empty: whoever listens finds out."""
    voice: str = ""
    connect_seconds: float = CONNECT_SECONDS
    stall_seconds: float = 45.0
    """How long one try may be silent."""
    seconds: float = 150.0
    """How long it may take in all, with every try and every pause."""


class SpeechFailed(Exception):
    """There is no result; the words say why, for a person, and go on from "that failed: "."""

    def __init__(self, words: str, *, lasts: bool = True, cause: BreakCause | None = None) -> None:
        super().__init__(words)
        self.lasts = lasts
        """Another sound would meet the same, and take as long."""
        self.cause = cause
        """Of an endpoint: how its last try broke."""


_PURSE: ContextVar[Purse | None] = ContextVar("purse", default=None)


@contextmanager
def paid_by(purse: Purse | None) -> Generator[None]:
    """A block whose calls of endpoints this pays for; None: nobody counts them."""
    before = _PURSE.set(purse)
    try:
        yield
    finally:
        _PURSE.reset(before)


async def paid(kind: str, model: str, most: CallSpent, call: Callable[[], Awaitable[tuple[T, CallSpent]]]) -> T:
    """What a call gives, which somebody pays for. `most`: what it may use. Raises `SpeechFailed`, also without room in a budget."""
    purse = _PURSE.get()
    if purse is None:
        return (await call())[0]

    async def told() -> tuple[T | SpeechFailed, CallSpent]:
        try:
            return await call()
        except SpeechFailed as error:
            return error, CallSpent(cause=error.cause)

    try:
        made = await purse.pay(kind, model, most, told)
    except NotPaid as error:
        raise SpeechFailed(str(error).rstrip(".")) from error
    if isinstance(made, SpeechFailed):
        raise made
    return made
