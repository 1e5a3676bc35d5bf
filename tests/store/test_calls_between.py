"""Words between nodes, without a database: what could not be said is said later, in its order, and nobody hears their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.store.slices import calls
from agent_core.store.slices.calls import MOST_WAITING, NodeCalls

MINE, OTHER = 7, 8


class Wire:
    """The driver's connection: notes what is sent, and fails as it is told."""

    def __init__(self, *errors: BaseException | None) -> None:
        self.sent: list[list[str]] = []
        self.errors = list(errors)
        self.meanwhile: Callable[[], None] = lambda: None
        self.told: Callable[..., None] = lambda *_: None

    def get_server_pid(self) -> int:
        return MINE

    async def add_listener(self, _channel: str, told: Callable[..., None]) -> None:
        self.told = told

    async def fetch(self, _query: str, *arguments: Any) -> None:
        self.meanwhile()
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        self.sent.append(arguments[1] if arguments else [])

    async def get_raw_connection(self) -> Any:
        return SimpleNamespace(driver_connection=self)


def spoken(heard: list[str] | None = None, missed: list[str] | None = None) -> NodeCalls:
    lost = missed if missed is not None else list[str]()
    return NodeCalls(cast("Any", None), (heard if heard is not None else []).append, lambda: lost.append("missed"))


@pytest.mark.parametrize("error", [OSError("gone"), TimeoutError(), asyncio.CancelledError()])
async def test_what_could_not_be_said_is_said_with_what_came_since(error: BaseException) -> None:
    node, wire = spoken(), Wire(error)
    for word in ("a", "b", "a"):
        node.call(word)
    wire.meanwhile = lambda: node.call("c")
    with pytest.raises(type(error)):
        await node._say(wire)
    wire.meanwhile = lambda: node.call("a")  # it is about something newer
    await node._say(wire)
    wire.meanwhile = lambda: None
    await node._say(wire)
    await node._say(wire)
    assert wire.sent == [["a", "b", "c"], ["a"], []]


async def test_words_wait_within_bounds() -> None:
    node, wire = spoken(), Wire()
    for number in range(2 * MOST_WAITING):
        node.call(str(number))
    await node._say(wire)
    assert wire.sent == [[str(number) for number in range(MOST_WAITING)]]


@pytest.mark.parametrize("word", ["x" * 8_000, "語" * 2_667, "a\0b", "\ud800"])
async def test_what_no_word_can_carry_is_not_said_and_keeps_no_other_from_being_said(word: str) -> None:
    node, wire = spoken(), Wire()
    for one in ("a", word, "b", "x" * 7_999):
        node.call(one)
    await node._say(wire)
    assert wire.sent == [["a", "b", "x" * 7_999]]


async def test_a_node_hears_the_others_and_looks_for_what_it_may_have_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LOOK_SECONDS", 60.0)
    heard, missed = list[str](), list[str]()
    node, wire = spoken(heard, missed), Wire()
    serving = asyncio.create_task(node._serve(cast("Any", wire)))
    async with asyncio.timeout(20):
        while not wire.sent:
            await asyncio.sleep(0)
    wire.told(wire, MINE, "outspoken", "mine")
    wire.told(wire, OTHER, "outspoken", "theirs")
    assert (heard, missed) == (["theirs"], ["missed"])
    node.call("now")
    async with asyncio.timeout(20):
        while ["now"] not in wire.sent:
            await asyncio.sleep(0)
    serving.cancel()
    await asyncio.wait([serving])
    node._bell.close()
