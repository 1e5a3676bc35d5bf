"""Questions of running tools to the person: put down, waited for, and handed back once what was said is committed.

It decides nothing: `agent_core.tools.asking` says what is asked and what an answer amounts to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TypeAlias

from agent_core.driver.watcher import STORAGE_AWAY
from agent_core.jsonvalue import Json
from agent_core.patience import Limit
from agent_core.records import dataclass
from agent_core.text.tongue import speak
from agent_core.tools.asking import ANSWERED_ALREADY, AskedStep, PersonAsked, ToolAnswer, kept

KEEP_SECONDS = 10.0
"""Whoever answers is told what became of it when it is committed, or after this time."""
Intend: TypeAlias = Callable[[Json], Awaitable[None]]
"""Puts down an intention; returns when it is committed."""
_Told: TypeAlias = "asyncio.Future[str | None]"


@dataclass(slots=True)
class _Asking:
    """A call that asks."""

    said: asyncio.Queue[tuple[str, str, AskedStep | None, _Told]] = field(
        default_factory=asyncio.Queue[tuple[str, str, "AskedStep | None", _Told]]
    )
    """Words, whose they are, what they answer, and who waits to be told."""
    seen: AskedStep | None = None
    """What was put down last: whoever answers now answers this, though the next question may be on its way already."""


class OpenQuestions:
    """What the calls of a turn ask now."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str, _Asking] = {}

    @property
    def asked(self) -> bool:
        """Whether any call waits for an answer."""
        return bool(self._open)

    def asks(self, call: str) -> bool:
        """Whether a call waits for an answer."""
        return call in self._open

    async def ask(self, call: str, asking: PersonAsked, seconds: float, intend: Intend) -> ToolAnswer:
        """Wait until it is answered, at most so long."""
        here = self._open[call] = _Asking()
        said = here.said
        heard: _Told | None = None
        words = ""

        async def put_down() -> None:
            await intend(kept(asking.steps))
            if heard is not None and not heard.done():
                heard.set_result(words)
            here.seen = asking.steps[-1]

        asking.begin()
        try:
            async with Limit(max(0.0, seconds)):
                while True:
                    await put_down()
                    if asking.action is not None:
                        return asking.result()
                    answer, by, seen, heard = await said.get()
                    stands = seen is None or seen is asking.steps[-1]
                    words = asking.answer(answer, by) if stands else speak(ANSWERED_ALREADY)
        except TimeoutError:
            asking.expire()
            await put_down()
            return asking.result()
        finally:
            del self._open[call]
            late = [said.get_nowait()[-1] for _ in range(said.qsize())]
            # Nothing becomes of what these have said, and they learn that now.
            for told in late if heard is None else (heard, *late):
                if not told.done():
                    told.set_result(None)

    async def answer(self, call: str, words: str, by: str) -> str | None:
        """Somebody answers what a call asks (without a call: whichever asks). What they are told; None if nothing is asked (any more). What cannot be
        stored just now counts once it can."""
        here = self._open.get(call) if call else next(iter(self._open.values()), None)
        if here is None:
            return None
        told: _Told = asyncio.get_running_loop().create_future()
        here.said.put_nowait((words, by, here.seen, told))
        try:
            async with asyncio.timeout(KEEP_SECONDS):
                return await told
        except TimeoutError:
            return speak(STORAGE_AWAY)
