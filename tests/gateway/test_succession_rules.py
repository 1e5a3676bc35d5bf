"""Who waits for a database, and who is told that there is none: the rules of `gateway.succession`, without a process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest

import gateway.daemon as daemon
from agent_core.store.errors import (
    AlreadyRunning,
    CannotOpenNow,
    Damaged,
    LeaseLost,
    StoppedWaiting,
    StorageUnavailable,
)
from gateway.config.paths import find_paths
from gateway.config.reading import CannotServe, load
from gateway.daemon import Stopping
from gateway.observe.notify import Notifier
from gateway.succession import succession, takeover
from gateway.succession.closeddoor import ClosedDoor
from gateway.succession.succession import Succession
from gateway.succession.takeover import Takeover
from tests.ports import free_port

TAKEN = AlreadyRunning("Another gateway has it.", 4711)
AWAY = CannotOpenNow("The server does not answer.")


def of(
    tmp_path: Path, asked: asyncio.Event, told: list[str], *, standby: bool, takeover: bool = False, port: int = 0
) -> Succession:
    env = {"OUTSPOKEN_STORAGE__STANDBY": str(standby).lower(), "OUTSPOKEN_SERVER__PORT": str(port or free_port())}
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    return Succession(load(None, env).config, paths, asked, told.append, takeover=takeover)


def free(port: int) -> None:
    """Raises OSError if somebody listens there."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(succession, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(succession, "AWAY_SECONDS", 0.0)


@pytest.mark.parametrize("standby", [False, True])
@pytest.mark.parametrize("lives", [0, 1])
@pytest.mark.parametrize("error", [AWAY, TAKEN])
async def test_a_database_that_cannot_be_had_is_waited_for_by_who_had_it_or_stands_by(
    tmp_path: Path, error: CannotOpenNow, lives: int, *, standby: bool
) -> None:
    told: list[str] = []
    one = of(tmp_path, asyncio.Event(), told, standby=standby)
    for _ in range(lives):
        await one.opened()
    assert (one.waits is not None) is standby
    if lives or (standby and error is AWAY):
        await one.cannot_open(error)
        await one.cannot_open(error)
        assert told == [succession.AWAY], "it is said once"
    else:
        with pytest.raises(CannotOpenNow):
            await one.cannot_open(error)
    await one.close()


LOST = LeaseLost("Node 7 has lost its lock.")
GONE = StorageUnavailable("The database cannot be read.")


@pytest.mark.parametrize("lives", [0, 1])
@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (LOST, True),
        (GONE, True),
        (ExceptionGroup("tasks", [GONE, ExceptionGroup("more", [LOST])]), True),
        (Damaged("Rows cannot be read."), False),
        (ExceptionGroup("tasks", [GONE, ValueError("a mistake")]), False),
        (ValueError("a mistake"), False),
    ],
)
async def test_a_later_life_that_loses_its_database_while_it_begins_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, lives: int, *, waits: bool
) -> None:
    @asynccontextmanager
    async def begins(*_: object, **__: object) -> AsyncGenerator[None]:
        raise error
        yield

    monkeypatch.setattr(daemon, "serving", begins)
    told: list[str] = []
    one = of(tmp_path, asyncio.Event(), told, standby=False)
    for _ in range(lives):
        await one.opened()
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    config = load(None, {}).config
    live = daemon._live(config, paths, Stopping(), one, Notifier(""), lambda _: None)
    if waits and lives:
        assert await live is config
        assert told == [succession.AWAY]
    else:
        with pytest.raises(type(error)):
            await live
    await one.close()


@pytest.mark.parametrize("lost", [False, True])
async def test_a_life_that_lost_its_database_ends_in_a_hurry_and_the_next_one_is_found_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lost: bool
) -> None:
    stopping, ended = Stopping(), list[bool]()
    up = SimpleNamespace(url="http://127.0.0.1:4711", lost=asyncio.Event(), rehearsal=True, recovered=0)
    (up.lost if lost else stopping.asked).set()

    @asynccontextmanager
    async def serves(*_: object, **__: object) -> AsyncGenerator[object]:
        yield up
        ended.append(stopping.hurry.is_set())

    monkeypatch.setattr(daemon, "serving", serves)
    one = of(tmp_path, stopping.asked, [], standby=False)
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    paths.state_dir.mkdir(parents=True, exist_ok=True)
    config = load(None, {"OUTSPOKEN_SERVER__PORT": "0"}).config
    after = await daemon._live(config, paths, stopping, one, Notifier(""), lambda _: None)
    assert ended == [lost], "it has nothing left to wait for"
    assert after.server.port == 4711, "whoever knows where this one is finds the next one there"
    await one.close()


async def test_what_stands_by_waits_until_it_is_told_to_stop(tmp_path: Path) -> None:
    asked, told, port = asyncio.Event(), list[str](), free_port()
    one = of(tmp_path, asked, told, standby=True, port=port)
    assert one.waits is not None
    await one.waits(TAKEN)
    await one.waits(TAKEN)
    assert told == [succession.STANDBY]
    with pytest.raises(OSError, match="in use"):
        free(port)
    await one.opened()
    free(port)  # the gateway's own door opens where the other one was
    await one.waits(TAKEN)
    assert told == [succession.STANDBY] * 2, "it has served meanwhile"
    asked.set()
    with pytest.raises(StoppedWaiting):
        await one.waits(TAKEN)
    await one.close()


async def test_a_predecessor_is_ended_by_a_first_life_alone(tmp_path: Path) -> None:
    one = of(tmp_path, asyncio.Event(), [], standby=False, takeover=True)
    assert one.waits is not None
    with pytest.raises(AlreadyRunning):
        await one.waits(TAKEN)  # nobody has the file open
    await one.opened()
    await one.waits(TAKEN)  # another one took over, and is not ended in turn
    await one.close()


def test_nobody_takes_over_what_may_run_on_another_machine(tmp_path: Path) -> None:
    env = {"OUTSPOKEN_STORAGE__URL": "postgresql://u@h/d"}
    paths = find_paths({"OUTSPOKEN_HOME": str(tmp_path)})
    with pytest.raises(CannotServe, match="standby"):
        Succession(load(None, env).config, paths, asyncio.Event(), print, takeover=True)


async def test_the_closed_door_is_alive_not_ready_and_makes_room() -> None:
    port = free_port()
    door = ClosedDoor("127.0.0.1", port)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
        await door.show("standby", "It stands by.")
        await door.show("no_database", "It is away.")
        async with http.get("/healthz") as alive, http.get("/readyz") as ready, http.post("/v1/responses") as asked:
            assert (alive.status, ready.status, asked.status) == (200, 503, 503)
            assert (await ready.json())["problems"] == ["It is away."]
            assert asked.headers["Retry-After"] == "2"
    await door.away()
    free(port)


def test_a_predecessor_is_asked_twice_then_killed_and_another_one_is_asked_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    now, open_in = [0.0], {4711, 4712}

    def kill(process: int, number: int) -> None:
        sent.append((process, number))

    def has_open(process: int, _: object) -> bool:
        return process in open_in

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(takeover.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(takeover, "has_open", has_open)
    one = Takeover(tmp_path / "db")
    for _ in range(5):
        one.step(TAKEN)
        now[0] += 1.0
    term = (4711, signal.SIGTERM)
    assert sent == [term, term], "in order, then in a hurry"
    now[0] = takeover.PATIENCE_SECONDS + 0.1
    one.step(AlreadyRunning("It has taken its number out.", 0))
    assert sent[2:] == [(4711, signal.SIGKILL)]
    one.step(AlreadyRunning("Another one.", 4712))
    assert sent[3:] == [(4712, signal.SIGTERM)]
    open_in.clear()
    one.step(AlreadyRunning("Another one.", 4712))  # it has just ended
    with pytest.raises(AlreadyRunning):
        one.step(AlreadyRunning("A stranger's number.", 99))
    assert len(sent) == 4


def test_a_first_signal_stops_in_order_a_second_in_a_hurry_and_a_new_life_takes_its_time() -> None:
    stopping = Stopping()
    assert stopping.ask()
    assert (stopping.asked.is_set(), stopping.hurry.is_set()) == (True, False)
    assert not stopping.ask(), "nothing is left that a third could hurry"
    assert stopping.hurry.is_set()
    stopping.begin_anew()
    assert (stopping.asked.is_set(), stopping.hurry.is_set()) == (True, False)
