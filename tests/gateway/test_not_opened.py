"""A turn that cannot be opened: what becomes of the messages that it was to answer, for each reason."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from adapters.contract.chat import ChatAddress
from adapters.contract.contents import decode
from agent_core.failures.notices import NotStarted
from agent_core.failures.shortage import NO_DISK, NO_FILES, NO_MEMORY
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.store import Conflict, Damaged, Fenced, LeaseLost, StorageUnavailable
from agent_core.text.tongue import speaking
from gateway.chats.voice import ChatVoice
from gateway.delivery.surface import Surface
from gateway.delivery.words import Words
from gateway.queues.inbox import NO_MODEL, NOT_OPENED
from gateway.queues.languages import LanguageRules, Languages
from gateway.queues.prefs import Prefs
from gateway.queues.queue import SessionQueue, Waiting
from gateway.queues.queues import Queues
from gateway.sessions.opening import NoWay, TurnOpener
from tests.agent_core.turns import gives
from tests.gateway.test_accepting import in_chat
from tests.gateway.test_sender import CHAT, Chat, chat
from tests.gateway.test_slots import message


def because(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


class World:
    """An opener that fails, and what it does then."""

    def __init__(self, error: Exception, *, left: bool = False, dropped: bool = False, aside: bool = False) -> None:
        self.error, self.given_up, self.found = error, list[tuple[list[int], str, NotStarted]](), list[str]()
        self._left, self._dropped, self._aside = left, dropped, aside
        self.queue = SessionQueue("a", "s", 3)
        self.queue.waiting = [message("a", 1), message("a", 2)]
        self.store = SimpleNamespace(left=SimpleNamespace(turns=self._turns))
        self.left = SimpleNamespace(find=self._find)
        self.aside = SimpleNamespace(put=self._put)

    async def _open_or_give_up(self, *of: Any) -> object:
        return await vars(TurnOpener)["_open_or_give_up"](self, *of)

    async def _try_to_open(self, *_: object) -> None:
        raise self.error

    async def _turns(self, session: str) -> list[str]:
        return [session] if self._left else []

    async def _find(self, session: str) -> None:
        self.found.append(session)

    async def _put(self, *_: object) -> bool:
        return self._aside

    async def _dropped_meanwhile(self, *_: object) -> bool:
        return self._dropped

    async def _give_up(self, queue: SessionQueue, messages: list[Waiting], reason: str, told: NotStarted) -> None:
        assert queue is self.queue
        self.given_up.append(([one.inbox_id for one in messages], reason, told))

    async def open(self) -> None:
        with capture_logs():
            assert await TurnOpener.open(cast("Any", self), self.queue, (self.queue.waiting[0],)) is None

    @property
    def waiting(self) -> list[int]:
        return [one.inbox_id for one in self.queue.waiting]


async def test_what_an_earlier_process_left_open_comes_first_and_then_what_waits_behind_it() -> None:
    world = World(Conflict("a turn is open"), left=True)
    await world.open()
    assert (world.queue.blocked, world.found, world.given_up, world.waiting) == (True, ["s"], [], [1, 2])


async def test_what_was_dropped_while_it_was_opened_is_given_up_by_nobody_else() -> None:
    world = World(Conflict("it is dropped"), dropped=True)
    await world.open()
    assert (world.queue.blocked, world.found, world.given_up) == (False, [], [])


@pytest.mark.parametrize("error", [Fenced("another's"), LeaseLost("it is over")])
async def test_what_is_another_gateways_by_now_waits_there_and_not_here(error: Exception) -> None:
    world = World(error)
    await world.open()
    assert (world.waiting, world.queue.epoch, world.given_up) == ([], 0, []), "nothing of it is ours to give up"


@pytest.mark.parametrize(
    ("error", "reason", "told"),
    [
        (NoWay("no model"), NO_MODEL, NotStarted.NO_MODEL),
        (Conflict("odd"), NOT_OPENED, NotStarted.NOT_OPENED),
        (ZeroDivisionError("ours"), NOT_OPENED, NotStarted.NOT_OPENED),
        (OSError(errno.EMFILE, "Too many open files"), NO_FILES, NotStarted.SHORT),
        (OSError(errno.ENOSPC, "No space left on device"), NO_DISK, NotStarted.SHORT),
        (
            because(ValueError("odd"), OSError(errno.ENFILE, "Too many open files in system")),
            NO_FILES,
            NotStarted.SHORT,
        ),
        (ExceptionGroup("two", [ValueError("odd"), MemoryError()]), NO_MEMORY, NotStarted.SHORT),
        (OSError(errno.EACCES, "Permission denied"), NOT_OPENED, NotStarted.NOT_OPENED),
    ],
)
async def test_what_cannot_be_opened_is_given_up_with_its_reason_and_what_is_behind_it_waits(
    error: Exception, reason: str, told: NotStarted
) -> None:
    world = World(error)
    await world.open()
    assert world.given_up == [([1], reason, told)]
    assert not world.queue.blocked


@pytest.mark.parametrize("aside", [True, False])
@pytest.mark.parametrize("error", [StorageUnavailable("away"), Damaged("damaged")])
async def test_while_the_storage_is_away_all_waits_and_what_is_damaged_is_set_aside_if_that_can_be_stored(
    error: Exception, aside: bool
) -> None:
    world = World(error, aside=aside)
    if aside and isinstance(error, Damaged):
        await world.open()
    else:
        with pytest.raises(type(error)):
            await world.open()
    assert (world.given_up, world.waiting) == ([], [1, 2])


async def test_only_what_was_withdrawn_while_it_was_opened_is_given_up_and_the_rest_is_tried_again() -> None:
    world = World(Conflict("one of them is not new"))
    both = tuple(world.queue.waiting)
    del world.queue.waiting[0]
    with capture_logs():
        assert await TurnOpener.open(cast("Any", world), world.queue, both) is None
    assert world.given_up == [([1], NOT_OPENED, NotStarted.NOT_OPENED)]
    assert world.waiting == [2]


# ---------------------------------------------------------------------- what is told of it


class Inbox:
    """Messages are dropped here with what is told of them, or that fails."""

    def __init__(self, fails: Exception | None) -> None:
        self.fails, self.dropped = fails, dict[int, Sequence[DeliveryRow]]()

    async def drop(self, number: int, reason: str, session: str, epoch: int, rows: Sequence[DeliveryRow]) -> None:
        assert (reason, session, epoch) == (NOT_OPENED, "s", 3)
        if self.fails is not None:
            raise self.fails
        self.dropped[number] = rows


def gives_later(value: object) -> Any:
    async def give(*_: object) -> object:
        if isinstance(value, Exception):
            raise value
        return value

    return give


def giving_up(there: Chat, inbox: Inbox, sessions: Any = None) -> Any:
    """An opener whose chat is real."""

    def when_there(_: ChatAddress, work: Callable[[Surface], None]) -> None:
        work(there.surface)

    surfaces: Any = SimpleNamespace(at=gives(there.surface), when_there=when_there)
    words = Words(surfaces, cast("Any", SimpleNamespace(knows=gives(True))), cast("Any", None))
    no_session: Any = SimpleNamespace(one=gives_later(None))
    languages = Languages(LanguageRules(), Queues(), cast("Any", SimpleNamespace(sessions=sessions or no_session)))
    voice = ChatVoice(cast("Any", SimpleNamespace(words=words)), gives(cast("Any", None)), languages)
    return SimpleNamespace(store=SimpleNamespace(inbox=inbox), chats=voice)


@pytest.mark.parametrize("fails", [None, Conflict("its turn has begun"), StorageUnavailable("away")])
async def test_whoever_wrote_what_cannot_be_opened_is_told_in_one_commit_with_that_or_it_waits_on(
    fails: Exception | None,
) -> None:
    queue, inbox = SessionQueue("a", "s", 3), Inbox(fails)
    first, second = message("a", 1), message("a", 2)
    first.inbound = in_chat("2", 1)
    queue.waiting = [first, second]
    async with chat() as there:
        gives_up = vars(TurnOpener)["_give_up"](
            giving_up(there, inbox), queue, [first], NOT_OPENED, NotStarted.NOT_OPENED
        )
        if isinstance(fails, StorageUnavailable):
            with pytest.raises(StorageUnavailable):
                await gives_up
            assert queue.waiting == [first, second], "it is tried again"
        else:
            await gives_up
            assert queue.waiting == [second]
        if fails is None:
            (row,) = inbox.dropped[1]
            assert (row.surface, row.origin) == (CHAT.text(), "inbox:1")
            await there.until(lambda: there.port.calls)
            assert NotStarted.NOT_OPENED.said() in there.port.calls[0][1]
        else:
            assert there.surface.ledger.waiting == [], "nothing of it is said, nor later"
        assert there.surface.ledger.held == set()


@pytest.mark.parametrize(
    ("stored", "language"),
    [(SimpleNamespace(policy=Prefs(language="de").encode()), "de"), (None, ""), (Damaged("a page"), "")],
)
async def test_what_is_not_run_is_told_in_the_language_that_its_conversation_has_chosen(
    stored: object, language: str
) -> None:
    """Nothing of it ran in this process; what cannot be read is told all the same."""
    queue, inbox, first = SessionQueue("a", "s", 3), Inbox(None), message("a", 1)
    first.inbound = in_chat("2", 1)
    async with chat() as there:
        opener = giving_up(there, inbox, SimpleNamespace(one=gives_later(stored)))
        await vars(TurnOpener)["_give_up"](opener, queue, [first], NOT_OPENED, NotStarted.NOT_OPENED)
        (row,) = inbox.dropped[1]
    with speaking(language):
        assert NotStarted.NOT_OPENED.said() in decode(row.want).body.text


async def test_what_may_have_ended_the_process_is_noted_before_anything_of_it_is_looked_into_again() -> None:
    """Files that came with it are read, and a driver is made, as soon as a turn is prepared: that is where it may end once more."""
    done: list[str] = []

    async def opening(session: str) -> None:
        done.append(f"noted {session}")

    async def prepare(*_: object) -> Any:
        done.append("prepared")
        return SimpleNamespace(opening="its first event")

    async def stored(_opening: object, messages: Sequence[int]) -> None:
        done.append(f"open {messages}")

    queue = SessionQueue("a", "s", 3)
    opener = SimpleNamespace(
        left=SimpleNamespace(opening=opening), prepare=prepare, store=SimpleNamespace(turns=SimpleNamespace(open=stored)),
        opened=gives("a driver"),
    )  # fmt: skip
    await vars(TurnOpener)["_try_to_open"](opener, queue, (message("a", 1),))
    assert done == ["noted s", "prepared", "open [1]"]
