"""What a platform brought and nobody could take in: kept as it came, its person and the operators told, and tried again.

Theory. It is kept in the commit that stores the platform's position (`UnreadBox.keep`), so it is confirmed only when it is safe here. One task
looks at what is kept: at the start, when something is kept, and every minute. How often each was tried is stored before it is tried.
`next_step` decides, purely.

Laws (tests/store/test_unread.py): it is tried at most so many times as `UNREAD` says with one version of the program, at growing pauses, and at once
after a restart; another version begins anew; what is older than `KEEP_MS` is tried no more. Its person is told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from enum import Enum, auto

import structlog

from adapters.contract.chat import ChatAddress, Raw
from adapters.contract.intake import in_words
from adapters.contract.notaccepted import NotAccepted
from agent_core.bell import Bell
from agent_core.beside import beside
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.retry import UNREAD
from agent_core.store.inbox.rows import UnreadRow, UnreadState
from agent_core.store.store import StorageUnavailable, Store
from agent_core.text.tongue import sentence
from gateway.version import program_version

log = structlog.get_logger("intake")

LOOK_SECONDS = 60.0
KEEP_MS = 7 * 24 * 3_600_000
"""As long as redeliveries are known again: what is answered after that would be answered out of the blue."""
TRY_SECONDS = 60.0
WORDS = sentence(
    "⚠️ I received a message of yours, but a mistake of mine kept me from reading it, so nothing was done. It is kept, those who run me are "
    "told, and I try it again. If it is urgent, send it again in other words."
)


class UnreadStep(Enum):
    """What is to be done with something that is kept."""

    WAIT = auto()
    TRY = auto()
    GIVE_UP = auto()


def next_step(row: UnreadRow, now: int, version: str, started_at: int) -> UnreadStep:
    """What is to be done with a row now. Pure."""
    if now - row.received_at > KEEP_MS:
        return UnreadStep.GIVE_UP if row.state is UnreadState.WAITING else UnreadStep.WAIT
    if row.version != version:
        return UnreadStep.TRY
    if row.state is not UnreadState.WAITING:
        return UnreadStep.WAIT
    if UNREAD.over(row.tries):
        return UnreadStep.GIVE_UP
    if row.tried_at < started_at:
        return UnreadStep.TRY
    waited = now - row.tried_at
    return UnreadStep.TRY if not 0 <= waited < UNREAD.ms(row.tries) else UnreadStep.WAIT


def taken_up(row: UnreadRow, now: int, version: str) -> UnreadRow:
    """The row as it is stored before it is tried. Pure."""
    tries = row.tries + 1 if row.version == version else 1
    return replace(row, tries=tries, version=version, tried_at=now, state=UnreadState.WAITING)


@dataclass(frozen=True, slots=True)
class TakesAgain:
    """How what an account brought is taken in."""

    connected: Callable[[], bool]
    again: Callable[[bytes], Awaitable[None]]
    """Takes in what is kept. Raises whatever went wrong, and `NotAccepted` if that is not to be counted."""


TellPerson = Callable[[ChatAddress, str, str], Awaitable[object]]
"""(chat, key under which it is said once, words). Raises whatever went wrong."""


class UnreadBox:
    """All that is kept. Make it inside the event loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.version = program_version()
        self.bell = Bell()
        """Rings when it is to be looked soon."""
        self.counts: Mapping[str, int] = {}
        """How much is kept, by account, as of the last look."""

    async def keep(self, account: str, raw: Raw, words: str, cursor: tuple[str, str] | None, *, tell: bool) -> None:
        """Keep it. Raises `StorageUnavailable`."""
        now = self._clock.now_ms()
        chat = raw.address.text() if tell and raw.address is not None else ""
        row = UnreadRow(account, raw.key, raw.body, words, self.version, now, chat, tried_at=now)
        if await self._store.unread.keep(row, cursor):
            self.counts = {**self.counts, account: self.counts.get(account, 0) + 1}
        self.bell.ring()


class UnreadTries:
    """Tries again what is kept, by the account's `ways`. `running` is its life."""

    def __init__(
        self, box: UnreadBox, ways: Mapping[str, TakesAgain], store: Store, clock: Clock, tell: TellPerson | None = None
    ) -> None:
        self._box = box
        self._ways = ways
        self._store = store
        self._clock = clock
        self._started_at = clock.now_ms()
        self._tell_person = tell

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """What is kept is tried again, for the block."""
        try:
            async with beside(self._run, "unread"):
                yield
        finally:
            self._box.bell.close()

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except StorageUnavailable as error:
                log.info("intake.not_looked", error=str(error))
            except Exception:
                log.exception("intake.look_failed")
            await self._box.bell.wait(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once at all that is kept."""
        self._box.counts = await self._store.unread.counts()
        if not self._box.counts:
            return
        for row in await self._store.unread.waiting(self._box.version):
            if row.chat and not row.told:
                row = await self._tell(row)  # noqa: PLW2901
            await self._step(row)
        self._box.counts = await self._store.unread.counts()

    async def _tell(self, row: UnreadRow) -> UnreadRow:
        if self._tell_person is None:
            return row
        told = replace(row, told=True)
        try:
            await self._tell_person(ChatAddress.of(row.chat), f"unread:{row.platform_key}", WORDS)
            await self._store.unread.change(told)
        except StorageUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - the next look tries again
            log.warning(
                "intake.person_not_told", account=row.account, platform_key=row.platform_key, error=in_words(error)
            )
            return row
        return told

    async def _step(self, row: UnreadRow) -> None:
        now = self._clock.now_ms()
        match next_step(row, now, self._box.version, self._started_at):
            case UnreadStep.WAIT:
                return
            case UnreadStep.GIVE_UP:
                await self._store.unread.change(replace(row, state=UnreadState.GIVEN_UP))
                log.error("intake.given_up", account=row.account, platform_key=row.platform_key, error=row.words)
            case UnreadStep.TRY:
                way = self._ways.get(row.account)
                if way is not None and way.connected():
                    await self._try(taken_up(row, now, self._box.version), way)

    async def _try(self, row: UnreadRow, way: TakesAgain) -> None:
        await self._store.unread.change(row)
        try:
            async with asyncio.timeout(TRY_SECONDS):
                await way.again(row.body)
        except (NotAccepted, StorageUnavailable) as error:
            await self._store.unread.change(replace(row, tries=row.tries - 1))  # the moment was wrong, not what is kept
            log.info("intake.not_now", account=row.account, platform_key=row.platform_key, error=str(error))
        except Exception as error:  # noqa: BLE001 - the law of what is kept: whatever it is, it stays kept
            row = replace(row, words=in_words(error))
            await self._store.unread.change(row)
            log.warning(
                "intake.not_read", account=row.account, platform_key=row.platform_key, error=row.words, times=row.tries
            )
        else:
            await self._store.unread.change(replace(row, state=UnreadState.DONE))
            log.info("intake.read", account=row.account, platform_key=row.platform_key, times=row.tries)
