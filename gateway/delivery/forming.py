"""Texts of the model formatted for a chat, without holding the loop: short ones at once, others by a worker.

Laws (tests hold them): the loop formats at most `AT_ONCE_CHARS` characters of a text; nothing of a text is lost, whatever it is: one that a
worker cannot format in its time is shown whole, without form; text on its way that takes too long is left as it was shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Protocol, TypeVar

import structlog

from adapters.contract.chat import Piece
from adapters.delivery.formjob import decoded
from adapters.delivery.parts import Picture
from agent_core.records import dataclass
from agent_core.workers.pool import Job, Workers, WorkFailed

log = structlog.get_logger("delivery")

T = TypeVar("T")

AT_ONCE_CHARS, AT_ONCE_MARKS = 3_000, 300
"""Texts of up to so many characters, and so many marks among them, take milliseconds; a thousand open brackets take a hundred times as long."""
_MARKS = "[*_~`<!"
GROWING_CHARS = 60_000
"""A text on its way that is longer is shown again when it is there: nobody reads twenty messages as they grow."""
SIGN_SECONDS = 2.0
"""While a worker formats, whoever waits for it says this often that it is at work: each job has a limit of its own, and the line before it none."""
AT_A_TIME = 8
"""So many pieces are read of a worker's answer before the loop does something else."""
WORKERS = 2
FINAL = Job("adapters.delivery.formjob:work", 8.0, 20_000_000)
GROWING = Job("adapters.delivery.formjob:work", 3.0, 4_000_000)


def at_once(markdown: str) -> bool:
    """Whether a text can be formatted without holding the loop. Pure."""
    return len(markdown) <= AT_ONCE_CHARS and sum(map(markdown.count, _MARKS)) <= AT_ONCE_MARKS


class FormParts(Protocol):
    """`ChatPort.parts`."""

    def __call__(self, markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]: ...


class Forming:
    """Formats. Without workers, everything at once: for tests, and programs that serve nobody."""

    def __init__(self, workers: Workers | None = None) -> None:
        self._workers = workers

    async def final(self, form: FormParts, markdown: str) -> tuple[Piece, ...]:
        """The pieces of a text that is whole; without form, if it cannot be formatted in time."""
        if self._workers is None or at_once(markdown) or _name(form) is None:
            return form(markdown, growing=False)
        for plain in (False, True):
            try:
                return await self._by_worker(self._workers, FINAL, form, markdown, plain=plain)
            except WorkFailed:
                continue
        # Not even a worker for its plain form: the time for that grows with the text alone, and a thread leaves the loop free.
        return await asyncio.to_thread(form, markdown, growing=False, plain=True)

    async def growing(self, form: FormParts, markdown: str) -> tuple[Piece, ...] | None:
        """The pieces of a text that still grows; None if that takes too long."""
        if self._workers is None or at_once(markdown) or _name(form) is None:
            return form(markdown, growing=True)
        if len(markdown) > GROWING_CHARS:
            return None
        try:
            return await self._by_worker(self._workers, GROWING, form, markdown, plain=False)
        except WorkFailed:
            return None

    async def _by_worker(
        self, workers: Workers, job: Job, form: FormParts, markdown: str, *, plain: bool
    ) -> tuple[Piece, ...]:
        found = await workers.run(
            job,
            {"by": _name(form), "growing": job is GROWING, "plain": plain},
            markdown.encode("utf-8", "surrogatepass"),
        )
        assert isinstance(found, list)
        pieces: list[Piece] = []
        for one in found:
            pieces.append(decoded(one))
            if not len(pieces) % AT_A_TIME:
                await asyncio.sleep(0)
        return tuple(pieces)


def _name(form: FormParts) -> str | None:
    """Where a worker finds the function; None for one that is not a module's own."""
    module, name = getattr(form, "__module__", None), getattr(form, "__qualname__", "")
    return f"{module}:{name}" if isinstance(module, str) and name.isidentifier() else None


def _unheard() -> None:
    """Nobody watches whether anything goes on."""


async def _signed(work: Awaitable[T], sign: Callable[[], None]) -> T:
    """What comes of it; while it lasts, `sign` is called."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait((task,), timeout=SIGN_SECONDS))[0]:
            sign()
        return task.result()
    finally:
        task.cancel()


@dataclass(slots=True)
class Texts:
    """The texts of one turn as one chat shows them: a final one is formatted once, of the others the last state is kept."""

    form: Callable[[], FormParts]
    forming: Callable[[], Forming]
    at_work: Callable[[], None] = _unheard
    """Called again and again while a text is formatted: whoever waits for it is not stuck."""
    _finals: dict[str, tuple[Piece, ...]] = field(default_factory=dict[str, tuple[Piece, ...]])
    _grown: dict[str, tuple[Piece, ...]] = field(default_factory=dict[str, tuple[Piece, ...]])

    def pieces(self, markdown: str, growing: bool) -> tuple[Piece, ...]:
        """A text that was prepared, or is short; a final one that is neither is formatted at once, so that nothing is lost."""
        if growing:
            found = self._grown.get(markdown)
            return self.form()(markdown, growing=True) if found is None else found
        if markdown not in self._finals:
            self._finals[markdown] = self.form()(markdown, growing=False)
        return self._finals[markdown]

    async def shown(self, show: Callable[[Callable[[str, bool], tuple[Piece, ...]]], Picture]) -> Picture | None:
        """What `show` shows, its long texts formatted elsewhere. None if one that grows cannot be shown as it is now.

        Mostly there is none: then it is shown once, and nothing is waited for.
        """
        asked: list[tuple[str, bool]] = []
        grown: dict[str, tuple[Piece, ...]] = {}

        def short(markdown: str, growing: bool) -> tuple[Piece, ...]:
            if growing and markdown in self._grown:
                grown[markdown] = self._grown[markdown]
            elif not at_once(markdown) and (growing or markdown not in self._finals):
                asked.append((markdown, growing))
                return ()
            found = self.pieces(markdown, growing)
            if growing:
                grown[markdown] = found  # or it would be formatted anew at each look until there is more
            return found

        picture = show(short)
        for markdown, growing in asked:
            if not growing:
                if markdown not in self._finals:
                    self._finals[markdown] = await _signed(self.forming().final(self.form(), markdown), self.at_work)
            elif (found := await self.forming().growing(self.form(), markdown)) is not None:
                grown[markdown] = found
            else:
                return None
        self._grown = grown or self._grown  # a look at which none is due asks for none
        return show(self.pieces) if asked else picture
