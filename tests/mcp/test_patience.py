"""How long a call may be silent: what a person takes to answer is not the server's silence, and a call whose time is over asks nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core.jsonvalue import Json
from agent_core.patience import Limit
from agent_core.tools.asking import MOST_SECONDS, AnswerAction, ToolAnswer
from agent_core.tools.mcp import server
from agent_core.tools.mcp.calling import Silent
from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.listed import Listing
from agent_core.tools.mcp.server import McpServer
from agent_core.tools.mcp.terms import ServerTerms
from tests.store.support import FakeClock

Ask = Callable[[str, Json, str], Awaitable[ToolAnswer]]
Works = Callable[[Callable[[str], None], Ask], Awaitable[Mapping[str, Json]]]
SILENCE, WHOLE = 7.0, 60.0
DONE: Mapping[str, Json] = {"content": []}


class Seen(Limit):
    """Keeps to where it was moved."""

    moves: list[float]

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        Seen.moves = [seconds]

    def move(self, seconds: float) -> None:
        Seen.moves.append(seconds)
        super().move(seconds)


def serving(works: Works) -> McpServer:
    """A server whose calls go like this."""

    async def call(_tool: str, _arguments: object, heard: Any, ask: Ask) -> Mapping[str, Json]:
        return await works(heard, ask)

    terms = ServerTerms("desk", "desk__", ("desk",), silence_seconds=SILENCE, limit_seconds=WHOLE)
    made = McpServer(terms, SimpleNamespace(), FakeClock(), lambda _: None, Listing())  # type: ignore[arg-type]
    made._connected = SimpleNamespace(link=McpLink(), call=call)  # type: ignore[assignment]
    return made


async def says(words: str, _schema: Json, _address: str) -> ToolAnswer:
    await asyncio.sleep(0)
    return ToolAnswer(AnswerAction.ACCEPT, {"said": words})


@pytest.mark.parametrize("questions", [0, 1, 2])
async def test_who_asks_a_person_is_not_silent_whatever_else_it_says_meanwhile(
    questions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "Limit", Seen)
    answered, told = asyncio.Event(), list[str]()
    meanwhile = 0.0

    async def waits(words: str, _schema: Json, _address: str) -> ToolAnswer:
        if words == "0":
            await answered.wait()
        return ToolAnswer(AnswerAction.ACCEPT)

    async def works(heard: Callable[[str], None], ask: Ask) -> Mapping[str, Json]:
        nonlocal meanwhile
        asked = [asyncio.create_task(says_(ask, str(n))) for n in range(questions)]
        while len(Seen.moves) < 1 + 2 * questions - bool(questions):  # all are put, and all but the first are answered
            await asyncio.sleep(0)
        heard("half of it")
        meanwhile = Seen.moves[-1]
        answered.set()
        await asyncio.gather(*asked)
        return DONE

    async def says_(ask: Ask, words: str) -> ToolAnswer:
        return await ask(words, {}, "")

    async with asyncio.timeout(20):
        assert await serving(works).call("book", {}, told.append, waits) == DONE
    assert told == ["half of it"]
    assert meanwhile == SILENCE + (MOST_SECONDS if questions else 0)
    assert Seen.moves[-1] == SILENCE, "and then the server's time counts again"


async def test_what_people_take_in_all_is_not_the_calls_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[asyncio.Timeout] = []
    original = asyncio.timeout

    def timeout(seconds: float | None) -> asyncio.Timeout:
        made.append(original(seconds))
        return made[-1]

    monkeypatch.setattr(server.asyncio, "timeout", timeout)
    loop, passed = asyncio.get_running_loop(), [0.0]
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + passed[0])
    left: list[float] = []

    async def works(_heard: Callable[[str], None], ask: Ask) -> Mapping[str, Json]:
        for _ in range(3):
            left.append((made[0].when() or 0) - loop.time())
            await ask("Seats?", {}, "")
        left.append((made[0].when() or 0) - loop.time())
        return DONE

    async def after_half_an_hour(words: str, schema: Json, address: str) -> ToolAnswer:
        left.append((made[0].when() or 0) - asyncio.get_running_loop().time())
        passed[0] += 1_800
        return await says(words, schema, address)

    await serving(works).call("book", {}, lambda _: None, after_half_an_hour)
    assert [WHOLE - 20 < one <= WHOLE for one in left[::2]] == [True] * 4
    assert [one > MOST_SECONDS for one in left[1::2]] == [True] * 3


async def test_a_call_whose_time_is_over_asks_nobody() -> None:
    goes_on, asked, late = asyncio.Event(), list[str](), list[Mapping[str, Json]]()

    async def works(_heard: Callable[[str], None], ask: Ask) -> Mapping[str, Json]:
        await goes_on.wait()
        answer = await ask("Seats?", {}, "")
        return {"answer": answer.action.value}

    async def asks(words: str, schema: Json, address: str) -> ToolAnswer:
        asked.append(words)
        return await says(words, schema, address)

    async def hears(found: Mapping[str, Json]) -> None:
        late.append(found)

    desk = serving(works)
    desk.terms = ServerTerms("desk", "desk__", ("desk",), silence_seconds=0.01, limit_seconds=WHOLE)
    with pytest.raises(Silent):
        await desk.call("book", {}, lambda _: None, asks, hears)
    goes_on.set()
    async with asyncio.timeout(20):
        while not late:
            await asyncio.sleep(0.001)
    assert (asked, late) == ([], [{"answer": "cancel"}])
