"""What a person wants of every answer, in their own words: kept beside what is remembered of them, told to the model, and forgotten with them.

Theory. They are one person's: whoever reads an answer must have been able to say what it should be like. So they count where one person is answered
(a private chat, the page), and in a group nobody's do. A program brings instructions of its own.

Law (tests/gateway/test_instructions.py): they are told in every conversation of that person's and in nobody else's.
"""

from __future__ import annotations

from adapters.contract.base import FromChat, Inbound
from adapters.contract.chat import ChatKind
from agent_core.ports import Clock
from agent_core.store.memory.access import StoredMemory
from gateway.limits.whose import UNNAMED, memory_of
from gateway.sharing.portion import Portion, SomeKept

INSTRUCTIONS = "instructions"
"""The kind under which they are kept."""
MOST_CHARS = 4_000
BEGIN = "What the person who writes wants of every answer, in their own words. Keep to it as far as what stands above allows:"


class OwnInstructions:
    """Every method raises `StorageUnavailable`."""

    most_chars = MOST_CHARS

    def __init__(self, memory: StoredMemory, clock: Clock, portion: Portion) -> None:
        self._memory = memory
        self._clock = clock
        self._kept = SomeKept(memory, INSTRUCTIONS, clock, portion)

    async def told(self, inbound: Inbound) -> str:
        """What the model is told of them in a turn that answers this message; empty: nothing."""
        if not may_have(inbound) or not await self._kept.any():
            return ""
        found = await self.read(memory_of(inbound))
        return f"{BEGIN}\n\n{found}" if found else ""

    async def read(self, scope: str, browser: str = "") -> str:
        """Those of the person with this memory, or of a browser's; empty: none."""
        scope = _of_page(scope, browser)
        return next((value for _, value, _ in await self._memory.entries(scope, INSTRUCTIONS)), "")

    async def write(self, scope: str, browser: str, text: str) -> None:
        """These count from the next turn on; an empty text takes them back."""
        scope = _of_page(scope, browser)
        if not text:
            await self._memory.delete(scope, INSTRUCTIONS, INSTRUCTIONS)
            return
        await self._memory.put(scope, INSTRUCTIONS, INSTRUCTIONS, text[:MOST_CHARS], at_ms=self._clock.now_ms())
        self._kept.added()


def may_have(inbound: Inbound) -> bool:
    """One person is answered, and it is known who. Pure."""
    if isinstance(inbound, FromChat):
        return inbound.chat.kind is ChatKind.PRIVATE
    return (
        inbound.session.platform == "web" and inbound.task is None and memory_of(inbound).partition("/")[0] != "session"
    )


def _of_page(scope: str, browser: str) -> str:
    return f"{scope}/{browser}" if scope in UNNAMED else scope
