"""A turn is closed by one function: whoever ends it, what follows from its end is the same, and follows once."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.contract.base import Ticket
from agent_core.driver.modelcalls import ModelCaller
from agent_core.failures.exits import ExitCode
from agent_core.machine.turn import Turn
from agent_core.model.client import Sink
from agent_core.signals import Signal, TurnClosed
from agent_core.store.store import Damaged
from agent_core.store.turns.rows import TurnState
from agent_core.turn.effects import CallModel
from tests.gateway.rig import QUICK, Rig, chunk, gateway
from tests.source import nodes

ROOT = Path(__file__).parents[2]
WATCH: dict[str, Any] = {"watch_look_seconds": 0.2, "watch_grace_seconds": 0.3}


async def answers(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
    if messages[-1]["content"] == "hold on":
        await asyncio.sleep(30)
    await response.write(chunk({"content": "here"}) + chunk({}, "stop"))


async def by_its_driver(rig: Rig, patched: pytest.MonkeyPatch) -> tuple[Ticket, ExitCode]:
    return await rig.hub.accept(rig.inbound("hello")), ExitCode.ANSWERED


async def by_the_watchdog(rig: Rig, patched: pytest.MonkeyPatch) -> tuple[Ticket, ExitCode]:
    async def loses_it(caller: ModelCaller, turn: Turn, effect: CallModel, sink: Sink) -> None: ...

    patched.setattr(ModelCaller, "call", loses_it)
    return await rig.hub.accept(rig.inbound("hello")), ExitCode.INTERNAL_ERROR


async def because_its_rows_are_damaged(rig: Rig, patched: pytest.MonkeyPatch) -> tuple[Ticket, ExitCode]:
    ticket = await rig.hub.accept(rig.inbound("hold on"))
    async with asyncio.timeout(60):
        while not rig.model.requests:
            await asyncio.sleep(0.01)
    assert await rig.hub.aside.put(ticket.session, Damaged("as a test says"))
    return ticket, ExitCode.INTERNAL_ERROR


Way = Callable[[Rig, pytest.MonkeyPatch], Any]


@pytest.mark.parametrize("way", [by_its_driver, by_the_watchdog, because_its_rows_are_damaged])
async def test_however_a_turn_ends_it_is_told_once_and_stored_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    signals: list[Signal] = []
    with capture_logs() as logs:
        async with gateway(tmp_path, answers, settings=QUICK, tell=signals.append, **WATCH) as rig:
            ticket, code = await way(rig, monkeypatch)
            async with asyncio.timeout(60):
                while (
                    (row := await rig.store.inbox.one(ticket.inbox_id)) is None
                    or not row.turn
                    or not (await rig.store.turns.journal(row.turn))
                    or (stored := await rig.store.turns.one(row.turn)) is None
                    or stored.state is not TurnState.CLOSED
                ):
                    await asyncio.sleep(0.02)
            async with asyncio.timeout(60):
                while (queue := rig.hub.queues.of(ticket.session)) is not None and queue.running is not None:
                    await asyncio.sleep(0.02)
            kinds = [entry.kind for entry in await rig.store.turns.journal(row.turn)]
    closed = [one for one in signals if isinstance(one, TurnClosed)]
    assert [one.exit for one in closed] == [code.value]
    assert [line["exit"] for line in logs if line["event"] == "turn.ended"] == [code.value]
    assert (stored.exit, kinds.count("TurnEnded"), kinds[-1]) == (code.value, 1, "TurnEnded")


# ---------------------------------------------------------------------- nobody else does it

CLOSING = "agent_core/driver/closing.py"
ENDS: dict[str, frozenset[str]] = {
    "TurnEnded()": frozenset({CLOSING, "agent_core/judging/ends.py"}),
    "TurnClosed()": frozenset({CLOSING}),
    "turn.ended in the log": frozenset({CLOSING}),
    "Store.close": frozenset({CLOSING}),
    "Close()": frozenset({"agent_core/store/turns/access.py"}),
    "Asides.end_turn": frozenset({CLOSING}),
    # A backup that is put back: nothing runs, and nobody is told by a gateway. Its rows come from `closing_of`.
    "SQL that closes a turn": frozenset({"gateway/operate/database.py"}),
}
"""What is part of ending a turn, and who may do it."""


def ends_in(source: str) -> Iterator[str]:
    """What a module does of what ends a turn."""
    for node in nodes(source):
        match node:
            case ast.Call(func=ast.Name(id="TurnEnded" | "TurnClosed" | "Close" as name)):
                yield f"{name}()"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log")), args=[ast.Constant(value="turn.ended")]):
                yield "turn.ended in the log"
            case ast.Call(func=ast.IfExp(), args=[ast.Constant(value="turn.ended")]):
                yield "turn.ended in the log"
            # Nothing else is closed with so much
            case ast.Call(func=ast.Attribute(attr="close"), args=given) if len(given) >= 5:
                yield "Store.close"
            case ast.Call(func=ast.Attribute(attr="end_turn")):
                yield "Asides.end_turn"
            case ast.Constant(value=str(words)) if re.search(r"update turns set state", words, re.IGNORECASE):
                yield "SQL that closes a turn"
            case _:
                pass


def test_nobody_else_ends_a_turn() -> None:
    found: dict[str, set[str]] = {what: set() for what in ENDS}
    for package in ("agent_core", "adapters", "gateway"):
        for path in (ROOT / package).rglob("*.py"):
            for what in ends_in(path.read_text()):
                found[what].add(str(path.relative_to(ROOT)))
    assert found == ENDS


def test_a_module_that_ends_a_turn_by_itself_is_found() -> None:
    own = "async def end(store): await store.close(session, epoch, turn, rows, code, now, parts)\nlog.error('turn.ended', turn=1)"
    assert set(ends_in(own)) == {"Store.close", "turn.ended in the log"}
