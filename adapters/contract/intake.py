"""The way in, for all platforms: nothing is confirmed that is not in a table.

Theory. What a platform brings is read (by code of ours or of its library) and acted upon (a message is stored, a chat is moved). Only
when `WayIn.take` returns may the platform be told that it was taken. Whatever is raised on the way is one of two things. `NotAccepted` with
a reason that passes (the storage is away, the gateway stops) goes on to the caller: nothing is confirmed, and the platform brings it again.
Anything else is a mistake of ours: it is tried again for a moment, because much of that passes as well, and then kept raw, in a table, with
the platform's position in the same commit. So one message that nobody can read holds nobody up, and is not lost. What is kept is tried
again after a restart or an upgrade (`gateway.chats.unread`).

What cannot be stored holds up what came behind it; whoever wrote that must not sit before a silent chat. So an adapter that waits to try
again looks ahead (`waiting`), and the intake tells each chat once.

An adapter has no position of its own: what it confirms follows from what `take` came back for.

Laws (tests/chats/test_intake.py), for any exception at any await and any call of what reads: when `take` has returned, it is in a table;
when it has raised, the same may be taken again, and nothing of it is answered twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeVar

import structlog

from adapters.contract.chat import ChatAddress, ChatIntake, ChatMessage, Raw
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.retry import INTAKE

T = TypeVar("T")
log = structlog.get_logger("intake")

ACT_SECONDS = 120.0
"""So long one may take: whatever waits for ever would hold up all that come behind it."""
AGAIN_SECONDS = 1.0
"""Before what cannot be stored is tried again."""
WORDS_CHARS = 300
WAITING_MOST = 200
"""So far is looked ahead of what cannot be stored, to tell the chats of those who wait behind it."""


def in_words(error: BaseException) -> str:
    """What went wrong, as it can be stored and shown."""
    words = f"{type(error).__name__}: {error}"[:WORDS_CHARS]
    return words.encode("utf-8", "replace").decode().replace("\x00", "�")


def as_body(brought: object) -> bytes:
    """What came, as it is kept: ASCII, whatever is in it."""
    return json.dumps(brought, default=repr).encode()


def digest_of(brought: object) -> str:
    """A mark of what came: the same for the same."""
    return hashlib.blake2b(as_body(brought), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Whence:
    """Who is to be told about something that cannot be taken in, as far as it says so."""

    address: ChatAddress | None = None
    person: str = ""
    for_us: bool = False


def raw_of(key: str, brought: object, whence: Callable[[], Whence]) -> Raw:
    """What is kept of something; `whence` may raise whatever it wants, and `key` may be missing."""
    try:
        found = whence()
    except Exception:  # noqa: BLE001 - it is odd, or it would not be kept
        found = Whence()
    key = key or f"body:{digest_of(brought)}"
    return Raw(key=key, body=as_body(brought), address=found.address, person=found.person, for_us=found.for_us)


def key_of(message: ChatMessage | None) -> str:
    """Under which key a message is stored; empty if nothing of it shows there (new words for one that is stored already)."""
    return "" if message is None or message.edited else message.key


async def until_stored(work: Callable[[], Awaitable[T]], refused: Callable[[NotAccepted], None]) -> T:
    """Do it again and again until it can be stored; each time that it cannot be, `refused` is told."""
    while True:
        try:
            return await work()
        except NotAccepted as error:
            refused(error)
            await asyncio.sleep(AGAIN_SECONDS)


class WayIn:
    """That of one account."""

    def __init__(self, account: str, intake: ChatIntake, clock: Clock) -> None:
        self._account = account
        self._intake = intake
        self._clock = clock
        self._last: float | None = None

    @property
    def age_seconds(self) -> float | None:
        """How long ago something of a person's was stored last."""
        return None if self._last is None else self._clock.monotonic() - self._last

    async def take(
        self,
        raw: Callable[[], Raw],
        read: Callable[[], T],
        act: Callable[[T], Awaitable[bool]],
        *,
        key: Callable[[T], str],
        cursor: tuple[str, str] | None = None,
        turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        """Come back when what came is in a table: as a message, as refused, as raw; or when it was rightly left alone.

        `read` makes something of it, without waiting; `act` stores that, and says whether it was a person's doing; `key` is the key under
        which `act` stores it, empty if it has none. `raw` gives what is kept otherwise. `turn` is held while it acts: what waits for that is not late.
        Raises `NotAccepted`: then nothing may be confirmed.
        """
        problem: Exception | None = None
        for attempt in range(1, INTAKE.attempts + 1):
            try:
                said = read()
            except Exception as error:  # noqa: BLE001 - whatever it is, what came must not be lost
                problem = error
                break  # it would be read in the same way again
            try:
                async with turn(), asyncio.timeout(ACT_SECONDS):
                    theirs = await act(said)
                if theirs:
                    self._last = self._clock.monotonic()
            except NotAccepted as refused:
                if refused.code.passes:
                    raise
                problem = refused
            except Exception as error:  # noqa: BLE001
                problem = error
                if await self._stored(key(said), error):
                    return
            else:
                return
            if not INTAKE.over(attempt):
                await asyncio.sleep(INTAKE.seconds(attempt))
        assert problem is not None
        await self._keep(raw(), problem, cursor)

    def waiting(self, refused: NotAccepted, came: Iterable[Callable[[], ChatMessage | None]]) -> None:
        """Something was `refused`; what came since (itself first, each as what reads it) waits for the storage, and its chats are told.

        Nothing is taken by this. Called at each try, so that whoever writes later is told as well; the intake says it once.
        """
        for read in itertools.islice(came, WAITING_MOST):
            try:
                message = read()
                if message is not None:
                    self._intake.waits(message, refused)
            except Exception as error:  # noqa: BLE001 - it is for `take` to say what it is, in its turn
                log.debug("intake.not_looked_at", account=self._account, error=in_words(error))

    async def _stored(self, key: str, error: Exception) -> bool:
        """Whether it is in a table all the same: then it goes its way from there, and only what follows has failed."""
        try:
            stored = bool(key) and await self._intake.known(self._account, key)
        except NotAccepted:
            raise
        except Exception:  # noqa: BLE001 - then it counts as not stored
            return False
        if stored:
            self._last = self._clock.monotonic()
            log.error(
                "intake.half_done", account=self._account, platform_key=key, error=in_words(error), exc_info=error
            )
        return stored

    async def _keep(self, raw: Raw, problem: Exception, cursor: tuple[str, str] | None) -> None:
        words = in_words(problem)
        try:
            await self._intake.keep(self._account, raw, words, cursor)
        except NotAccepted:
            raise
        except Exception as error:
            log.exception("intake.not_kept", account=self._account, platform_key=raw.key, error=in_words(error))
            raise NotAccepted("It could neither be read nor kept.", NotAcceptedCode.STORAGE_AWAY) from error
        self._last = self._clock.monotonic()
        log.error("intake.kept", account=self._account, platform_key=raw.key, error=words, exc_info=problem)
