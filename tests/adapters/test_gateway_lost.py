"""A gateway that goes away under a question is waited for, for so long, and the answer is shown once; what it refuses is told at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from adapters.mcpserver.doing import GatewayWay, _answered, _explain, _Hearing, _not_asked
from adapters.mcpserver.reading import ReadArguments
from adapters.terminal import ask
from adapters.terminal.ask import UNFINISHED, Answer, GatewayLost, GatewayRefused, stream


class Gateway:
    """Tells what a script says: (kind, text) or what it fails with; time passes with each connection."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *script: tuple[str, str] | Exception, seconds: float = 10.0
    ) -> None:
        self.script, self.now, self.asked = [*script], 100.0, 0

        async def once(*_: object) -> AsyncIterator[tuple[str, str]]:
            self.asked += 1
            self.now += seconds
            while self.script:
                told = self.script.pop(0)
                if isinstance(told, Exception):
                    raise told
                yield told
                if told[1] == "[DONE]":
                    return
            raise GatewayLost("It does not answer.")

        async def sleep(_: float) -> None:
            """Nobody waits here."""

        monkeypatch.setattr(ask, "_once", once)
        monkeypatch.setattr(ask, "asyncio", SimpleNamespace(sleep=sleep))
        monkeypatch.setattr(ask, "time", SimpleNamespace(monotonic=lambda: self.now))

    async def heard(self, **more: float) -> list[tuple[str, str]]:
        return [one async for one in stream("http://here", None, "hello", "", **more)]  # pyright: ignore[reportArgumentType]


LOST = GatewayLost("It went away.")


async def test_what_was_stored_is_asked_for_again_and_comes_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(
        monkeypatch, ("data", "a"), LOST, LOST, GatewayRefused("starting", 503), ("data", "a"), ("data", "[DONE]")
    )
    kinds = [kind for kind, _ in await gateway.heard()]
    assert kinds == ["data", "lost", "again", "data", "data"]
    assert gateway.asked == 4


async def test_a_gateway_that_does_not_come_back_is_given_up_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gateway = Gateway(monkeypatch, ("data", "a"), LOST)
    with pytest.raises(GatewayLost, match="did not come back"):
        await gateway.heard(back_seconds=60.0)
    assert gateway.asked == 1 + 6, "for a minute, each ten seconds"


async def test_the_time_begins_anew_when_it_has_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(monkeypatch, ("data", "a"), *[LOST] * 5, ("data", "a"), *[LOST] * 5, ("data", "[DONE]"))
    kinds = [kind for kind, _ in await gateway.heard(back_seconds=60.0)]
    assert kinds == ["data", "lost", "again", "data", "lost", "again", "data"]


@pytest.mark.parametrize("error", [LOST, GatewayRefused("bad", 400), GatewayRefused("down", 503)])
@pytest.mark.parametrize("before", [[], [("waits", "nothing can be stored")]])
async def test_what_was_not_taken_is_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, before: list[tuple[str, str]], error: Exception
) -> None:
    gateway = Gateway(monkeypatch, *before, error)
    with pytest.raises(type(error)):
        await gateway.heard()
    assert gateway.asked == 1


async def test_what_is_refused_after_it_came_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(monkeypatch, ("data", "a"), LOST, GatewayRefused("the key is over", 401))
    with pytest.raises(GatewayRefused):
        await gateway.heard()
    assert gateway.asked == 2


# ---------------------------------------------------------------------- other agents

ASKED = ReadArguments({"question": "hello"}, {})


def hearing(exit_: str, **more: object) -> _Hearing:
    return _Hearing(Answer(text=["some"], exit=exit_, turn="t_1", **more))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("exit_", ["answered", "provider_down", "stopped", "", "something new"])
def test_only_a_whole_answer_is_none_of_an_error(exit_: str) -> None:
    reply = _answered(ASKED, "k", hearing(exit_))
    clean = exit_ == "answered"
    assert reply.failed is not clean
    assert reply.structured["clean"] is clean
    assert reply.structured["answer"] == "some"
    assert bool(reply.structured["notice"]) is not clean, "what is missing is said"
    assert reply.structured["key"] == "k"
    assert ("some" in reply.text) is True


@pytest.mark.parametrize("turn", ["t_1", ""])
def test_of_what_nobody_knows_how_it_ended_it_is_no_answer(turn: str) -> None:
    heard = _Hearing(Answer(text=["so"], turn=turn))
    reply = _not_asked(ASKED, "k", "unknown", "It went away.", heard)
    assert reply.failed
    assert (reply.structured["exit"], reply.structured["exit_code"]) == ("unknown", UNFINISHED)
    assert reply.structured["turn"] == (turn or None)


@pytest.mark.parametrize("operates", [True, False])
async def test_who_only_talks_is_told_of_their_own_turns_alone(
    monkeypatch: pytest.MonkeyPatch, *, operates: bool
) -> None:
    asked: list[tuple[object, str]] = []

    class Remote:
        def __init__(self, _: str, key: object, *__: object) -> None:
            self.key = key

        async def call(self, method: str, path: str) -> dict[str, object]:
            asked.append((self.key, f"{method} {path}"))
            return {"lines": ["It went well."]}

    monkeypatch.setattr("adapters.mcpserver.doing.Remote", Remote)
    way = GatewayWay("http://here", "talks", "operates", operates=operates)
    reply = await _explain(ReadArguments({"id": "t_1/x"}, {}), way)
    told = ("operates", "GET /console/api/explain/t_1%2Fx") if operates else ("talks", "GET /api/turns/t_1%2Fx/why")
    assert asked == [told]
    assert reply.text == "It went well."
