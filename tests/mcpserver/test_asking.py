"""A question of a client, as the gateway is asked it: under one key from the first try to the last, stopped when nobody hears its answer any more, and each
piece of the answer in it once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson
import pytest

from adapters.mcpserver import doing
from adapters.mcpserver.catalogue import SERVED, ServedName
from adapters.mcpserver.doing import MOST_PICTURES, GatewayWay, ToolReply, done
from adapters.mcpserver.reading import ReadArguments
from adapters.terminal.ask import Answer, GatewayLost, GatewayRefused
from agent_core.failures.exits import ExitCode

ASK = next(one for one in SERVED if one.name is ServedName.ASK)
ENDS = ("data", orjson.dumps({"outspoken": {"exit": "answered"}}).decode())
LEFT = ("data", orjson.dumps({"outspoken": {"going_on": True, "turn": "t1"}}).decode())
Said = tuple[str, str]


def text(words: str) -> Said:
    return "data", orjson.dumps({"choices": [{"delta": {"content": words}}]}).decode()


def pictures(count: int) -> Said:
    one = {"image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    return "data", orjson.dumps({"choices": [{"delta": {"images": [one] * count}}]}).decode()


class Gateway:
    """Says what is next each time that it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *says: Sequence[Said | Exception]) -> None:
        self.says, self.asked = [*says], list[dict[str, str]]()
        monkeypatch.setattr(doing, "stream", self._stream)
        monkeypatch.setattr(doing, "AGAIN_SECONDS", 0.0)

    async def _stream(self, *_: object, more: dict[str, str], **__: Any) -> AsyncGenerator[Said]:
        self.asked.append(more)
        for one in self.says.pop(0):
            if isinstance(one, Exception):
                raise one
            yield one

    async def ask(self, **more: str) -> ToolReply:
        async def heard(_: str) -> None: ...

        way = GatewayWay("http://127.0.0.1:9", None, None, more={"X-Mine": "1"})
        return await done(ASK, {"question": "hello", **more}, way, heard)


async def test_whoever_asks_and_goes_away_has_its_turn_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(monkeypatch, [text("well"), ENDS])
    reply = await gateway.ask()
    assert (reply.failed, reply.text) == (False, "well")
    assert gateway.asked[0]["X-Outspoken-Disconnect"] == "cancel"
    assert gateway.asked[0]["X-Mine"] == "1"


@pytest.mark.parametrize("key", ["", "mine"])
async def test_a_question_is_asked_under_one_key_however_often_and_answered_once(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    gateway = Gateway(
        monkeypatch,
        [text("hal"), LEFT],
        [GatewayLost("gone")],
        [GatewayRefused("not yet", 503)],
        [text("ha"), ("again", ""), text("hal"), text("lo"), ENDS],
    )
    reply = await gateway.ask(**({"key": key} if key else {}))
    assert (reply.failed, reply.text) == (False, "hallo")
    (used,) = {one["Idempotency-Key"] for one in gateway.asked}
    assert len(gateway.asked) == 4
    assert used == key or (not key and used)


@pytest.mark.parametrize("counts", [[1], [MOST_PICTURES], [3, MOST_PICTURES], [100]])
async def test_pictures_have_a_bound_and_each_stands_in_the_answer_once(
    monkeypatch: pytest.MonkeyPatch, counts: list[int]
) -> None:
    gateway = Gateway(monkeypatch, [pictures(2), LEFT], [*map(pictures, counts), ENDS])
    assert len((await gateway.ask()).pictures) == min(MOST_PICTURES, sum(counts))


@pytest.mark.parametrize("begun", [False, True])
async def test_what_was_lost_is_told_with_the_key_only_if_something_may_have_begun(
    monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    gateway = Gateway(monkeypatch, [*([("comment", "turn t1")] if begun else []), GatewayLost("It is gone.")])
    reply = await gateway.ask(key="mine")
    assert reply.failed
    assert ("mine" in reply.text) is begun
    assert reply.structured["exit"] == ("unknown" if begun else "not_started")


@pytest.mark.parametrize(
    ("status", "told"), [(401, "not_started"), (429, "not_started"), (500, "unknown"), (503, "unknown")]
)
async def test_a_refusal_says_that_nothing_has_begun_unless_the_gateway_had_trouble_of_its_own(
    monkeypatch: pytest.MonkeyPatch, status: int, told: str
) -> None:
    reply = await Gateway(monkeypatch, [GatewayRefused("No.", status)]).ask()
    assert reply.failed
    assert reply.structured["exit"] == told


@pytest.mark.parametrize("notices", [[], ["It broke off."]])
def test_that_an_answer_is_not_whole_is_said_where_nothing_else_says_why(notices: list[str]) -> None:
    ended = Answer(text=["Half"], exit=ExitCode.BROKEN_IN_TEXT.value, notices=notices)
    reply = doing._answered(ReadArguments({}, {}), "k", doing._Hearing(ended))
    (said,) = notices or [f"The answer is not whole: the turn ended as {ended.exit}."]
    assert (reply.text, reply.structured["notice"], reply.failed) == (f"Half\n\n{said}", said, True)
