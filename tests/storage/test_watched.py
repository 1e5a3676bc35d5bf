"""What is known of a storage that does not go: who is refused meanwhile and with which words, when damage is everybody's, and when everything is looked
through. Beside a storage that is made up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.notaccepted import NotAcceptedCode
from agent_core.signals import Committed, TurnClosed
from agent_core.store.errors import CannotOpen
from agent_core.store.keeping.checking import Soundness
from agent_core.store.store import StorageFull, StorageUnavailable
from gateway.config.paths import resolve
from gateway.config.sections import Config
from gateway.storage import soundness
from gateway.storage.damage import DamageMet
from gateway.storage.leftovers import leftovers
from gateway.storage.soundness import SoundnessWatch
from gateway.storage.spread import MANY, MINUTE
from gateway.storage.storewatch import FULL_SECONDS, MIB, StoreWatch
from tests.store.support import FakeClock

LEAST = 64 * MIB


class Storage:
    """Takes a write or not, and counts how often it is asked for how much room."""

    def __init__(self, error: StorageUnavailable | None = None) -> None:
        self.error = error
        self.asked: list[int] = []

    async def check(self, timeout_seconds: float = 5.0, room_bytes: int = 0) -> None:
        del timeout_seconds
        self.asked.append(room_bytes)
        if self.error is not None:
            raise self.error

    def astray(self) -> bool:
        return False


# ---------------------------------------------------------------------- who is refused


@pytest.mark.parametrize(
    ("error", "code", "again"),
    [
        (None, None, 0),
        (StorageUnavailable("locked"), NotAcceptedCode.STORAGE_AWAY, 0),
        (StorageFull("no room"), NotAcceptedCode.STORAGE_FULL, FULL_SECONDS),
    ],
)
async def test_after_a_commit_that_failed_the_next_may_be_tried_until_it_is_known_why(
    error: StorageUnavailable | None, code: NotAcceptedCode | None, again: int
) -> None:
    watch = StoreWatch(Storage(error), FakeClock())
    assert watch.refusal() is None
    watch.on(Committed(1, 0.1, stored=False))
    assert watch.refusal() is None, "nobody knows yet whether the next fails as well"
    assert await watch.works() is (error is None)
    refused = watch.refusal()
    assert (refused.code if refused else None) == code
    assert (refused.retry_after_seconds if refused else 0) == again


async def test_what_all_need_and_is_damaged_refuses_everybody_whatever_is_stored() -> None:
    watch = StoreWatch(Storage(), FakeClock(), damaged=lambda: True)
    watch.on(Committed(1, 0.1, stored=True))
    assert not await watch.works()
    refused = watch.refusal()
    assert refused is not None
    assert refused.code is NotAcceptedCode.STORAGE_DAMAGED


async def test_a_storage_that_did_not_go_is_tried_with_a_write_that_needs_room_and_one_that_goes_without() -> None:
    storage, clock = Storage(), FakeClock()
    watch = StoreWatch(storage, clock)
    await watch.works()
    clock.now += 60_000
    watch.on(Committed(1, 0.1, stored=False))
    await watch.works()
    assert [room > 0 for room in storage.asked] == [False, True]


async def test_what_room_is_left_is_not_taken_for_a_try_and_is_enough_again_only_with_a_margin() -> None:
    room, storage, clock = [LEAST - 1], Storage(), FakeClock()
    watch = StoreWatch(storage, clock, lambda: room[0], LEAST)
    works: list[bool] = []
    for free in (LEAST - 1, LEAST, LEAST + LEAST // 4):
        room[0] = free
        clock.now += 10_000
        works.append(await watch.works())
        assert watch.free_bytes == free
        refused = watch.refusal()
        assert (refused.code if refused else None) == (None if works[-1] else NotAcceptedCode.STORAGE_FULL)
    assert works == [False, False, True]
    assert len(storage.asked) == 1, "when there was room again"


# ---------------------------------------------------------------------- whose damage it is


def ended(surface: str, *, clean: bool = True) -> TurnClosed:
    return TurnClosed(turn="t", session="s", surface=surface, exit="answered", clean=clean, began_at=1, ended_at=2)


def met(*acts: str | float | TurnClosed, usable: bool = False) -> DamageMet:
    """A chat that meets damage, seconds that pass, or a turn that ends."""
    clock = FakeClock()
    damage = DamageMet(clock)
    for act in acts:
        match act:
            case str():
                damage.meet(act, LookupError("torn"), usable=usable)
            case TurnClosed():
                damage.on(act)
            case _:
                clock.now += round(act * 1000)
    return damage


CHATS = [f"telegram/1/{number}//" for number in range(MANY)]


@pytest.mark.parametrize(
    ("acts", "everybodys"),
    [
        (CHATS, True),
        (CHATS[:-1], False),
        ([CHATS[0], MINUTE + 1, *CHATS[1:]], False),
        ([*CHATS[:-1], ended("telegram"), CHATS[-1]], False),
        ([*CHATS[:-1], ended("telegram", clean=False), CHATS[-1]], True),
        ([*CHATS[:-1], ended("slack"), CHATS[-1]], True),
        ([*CHATS, ended("telegram")], True),
        ([CHATS[0], 5.0, CHATS[0]], True),
    ],
)
def test_damage_is_everybodys_where_new_conversations_fail_and_an_answer_of_their_platform_alone_speaks_against_it(
    acts: list[str | float | TurnClosed], everybodys: bool
) -> None:
    assert met(*acts).everybodys is everybodys


def test_it_is_over_when_everything_was_found_sound_and_whoever_waits_for_that_is_told() -> None:
    damage = met(*CHATS)
    before = damage.sounds
    damage.sound()
    assert (damage.everybodys, damage.sounds) == (False, before + 1)
    damage.meet(CHATS[0], LookupError("torn"), usable=True)
    assert not damage.everybodys, "what was met before is forgotten"


# ---------------------------------------------------------------------- when everything is looked through


class Looked:
    """A watch over a database that is made up: how often it was looked through, and who was told that it is sound."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, crashed: bool | None) -> None:
        self.damages, self.looks, self.sound = 0, 0, 0
        self.found: Soundness | Exception = Soundness()
        self.again = False
        self.watch = SoundnessWatch(
            "db",
            cast("Any", SimpleNamespace(left=SimpleNamespace(crashed_before=self._crashed), node=7)),
            FakeClock(),
            lambda: self.damages,
            lambda: self.again,
            self._is_sound,
        )
        self._died = crashed
        self.waits: list[tuple[float, int]] = []
        """How long it waits each time, and how often it had looked by then."""
        self.steps: list[Callable[[], None]] = []
        """What happens at each of its rests."""
        monkeypatch.setattr(soundness, "check", self._check)
        monkeypatch.setattr(soundness, "asyncio", SimpleNamespace(sleep=self._sleep))

    async def _crashed(self, node: int) -> bool:
        assert node == 7
        if self._died is None:
            raise StorageUnavailable("away")
        return self._died

    async def _check(self, where: str) -> Soundness:
        assert where == "db"
        self.looks += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def _is_sound(self) -> None:
        self.sound += 1

    async def _sleep(self, seconds: float) -> None:
        self.waits.append((seconds, self.looks))
        if not self.steps:
            raise asyncio.CancelledError
        self.steps.pop(0)()

    async def run(self, *steps: Callable[[], None]) -> Looked:
        self.steps = [*steps]
        with pytest.raises(asyncio.CancelledError):
            await self.watch._run()
        return self


def nothing() -> None:
    """Time passes."""


@pytest.mark.parametrize(("crashed", "looks"), [(True, 1), (False, 0), (None, 1)])
async def test_it_is_looked_after_a_process_that_died_or_where_that_is_not_known(
    monkeypatch: pytest.MonkeyPatch, crashed: bool | None, looks: int
) -> None:
    looked = await Looked(monkeypatch, crashed=crashed).run(*[nothing] * 5)
    assert looked.looks == looks
    assert looked.waits[0] == (soundness.BEGIN_SECONDS, 0), "others come first"
    rests = [seconds for seconds, looks_then in looked.waits if looks_then == 1]
    assert not looks or rests[0] == soundness.AGAIN_SECONDS


async def test_each_damage_is_a_reason_once_and_whoever_wants_it_again_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Looked(monkeypatch, crashed=False)

    def damaged() -> None:
        looked.damages += 1

    def wanted() -> None:
        looked.again = True

    def wanted_no_more() -> None:
        looked.again = False

    await looked.run(nothing, damaged, nothing, nothing, nothing, nothing)
    assert looked.looks == 1
    await looked.run(nothing, nothing, wanted, wanted_no_more, nothing)
    assert looked.looks == 3, "of a process that begins, and of who wants it"


@pytest.mark.parametrize(
    ("found", "looks"), [(Soundness(), 1), (CannotOpen("it is away"), 3), (RuntimeError("a mistake"), 1)]
)
async def test_what_could_not_be_looked_at_is_looked_at_later(
    monkeypatch: pytest.MonkeyPatch, found: Soundness | Exception, looks: int
) -> None:
    looked = Looked(monkeypatch, crashed=True)
    looked.found = found

    def is_back() -> None:
        looked.found = Soundness()

    await looked.run(nothing, nothing, nothing, nothing, is_back, *[nothing] * 4)
    assert looked.looks == looks
    assert bool(looked.watch.at) is not isinstance(found, RuntimeError)


@pytest.mark.parametrize(
    ("found", "sound", "words"),
    [
        (Soundness(), 1, ""),
        (Soundness(not_looked="amcheck is not there"), 0, ""),
        (Soundness(("turns: torn",), broken=("turns",)), 0, "damaged in turns"),
        (CannotOpen("it is away"), 0, ""),
        (RuntimeError("a mistake"), 0, ""),
    ],
)
async def test_it_is_sound_only_if_all_was_looked_at_and_nothing_is_damaged(
    monkeypatch: pytest.MonkeyPatch, found: Soundness | Exception, sound: int, words: str
) -> None:
    looked = Looked(monkeypatch, crashed=True)
    looked.found = found
    await looked.run(nothing, nothing)
    assert (looked.looks, looked.sound) == (1, sound)
    assert words in looked.watch.words()
    assert bool(looked.watch.words()) is bool(words)
    assert looked.watch.places() == len(found.complaints if isinstance(found, Soundness) else ())
    assert (looked.watch.status()["looked_at"] is None) is isinstance(found, Exception)


# ---------------------------------------------------------------------- a database that is missing


def begun(path: Path, content: bytes = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("there", "named"),
    [
        ([], ""),
        (["outspoken.db-wal"], "outspoken.db-wal"),
        (["outspoken.db.before-0029"], "outspoken.db.before-0029"),
        (["workspaces/someone/notes.txt"], "workspaces in"),
        (["outbox/send-1/a.csv"], "files on their way in"),
        (["other.db-wal", "outspoken.toml"], ""),
        (["outspoken.db", "outspoken.db-wal", "workspaces/someone/notes.txt"], ""),
    ],
)
def test_a_database_is_missed_exactly_where_something_of_one_is_left(
    tmp_path: Path, there: list[str], named: str
) -> None:
    paths = resolve({"OUTSPOKEN_HOME": str(tmp_path)}, tmp_path)
    for name in there:
        begun(tmp_path / name)
    found = leftovers(Config(), paths)
    assert named in found
    assert bool(found) is bool(named)
    begun(paths.database, b"")
    if "outspoken.db" not in there:
        assert leftovers(Config(), paths) == found, "an empty one is none"
