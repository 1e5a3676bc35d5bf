"""What programs are told of approvals and of a conversation that is written out: who decided and how, the times, and nothing of what is not kept.
Without a gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import SessionKey
from adapters.contract.callers import Caller
from adapters.contract.sessions import Decision, DecisionFate, OpenApproval, SessionFile, SessionSight, SessionTurn
from adapters.http.common import CALLER
from adapters.http.sessions import managed
from adapters.http.sessions.managed import (
    TURNS_AT_ONCE,
    ManagedSessions,
    approval_id,
    decided_approval,
    decider,
    exported_turn,
    named_approval,
    open_approval,
    refusal_of,
    write_export,
)
from agent_core.failures.exits import ExitCode
from agent_core.messages import InputMessage
from agent_core.rules.consents import Lasting
from agent_core.turn.events import Verdict
from tests.adapters.scripted import ended, text
from tests.adapters.scripted import example as exit_of

SIGHT = SessionSight("s_1", SessionKey("api", "key", "c", person="ada"), 1_700_000_000_999, 2, metadata={"a": "b"})
NAME = approval_id("t_1", "call_1")


@pytest.mark.parametrize(
    ("caller", "named"),
    [
        (Caller("laptop", "ada"), "api:laptop:ada"),
        (Caller("laptop"), "api:laptop"),
        (Caller("", "ada"), "api:configuration:ada"),
        (Caller(""), "api:configuration"),
    ],
)
def test_who_decides_is_written_down_by_key_and_person_as_far_as_that_is_known(caller: Caller, named: str) -> None:
    assert decider(caller) == named


@pytest.mark.parametrize("lasts", Lasting)
@pytest.mark.parametrize("fate", DecisionFate)
@pytest.mark.parametrize("verdict", [Verdict.GIVEN, Verdict.DENIED])
async def test_what_is_asked_for_reaches_whoever_decides_and_what_became_of_it_is_told(
    verdict: Verdict, fate: DecisionFate, lasts: Lasting
) -> None:
    asked: list[tuple[object, ...]] = []

    async def decide(*given: object) -> Decision:
        asked.append(given)
        return Decision(fate, verdict, "api:laptop:ada", 5_999, lasts)

    served = ManagedSessions(cast("Any", SimpleNamespace(decide=decide)), cast("Any", SimpleNamespace(routes=dict)))
    body: dict[str, object] = {"approve": verdict is Verdict.GIVEN, "lasts": lasts.value or "once"}
    handler = next(one for route, one in served.routes().items() if route.name == "DECIDE")
    answer = cast("web.Response", await handler(cast("Any", Asked(orjson.dumps(body)))))
    assert isinstance(answer.body, bytes)
    told = orjson.loads(answer.body)
    assert asked == [(Caller("laptop", "ada").realm, *(named_approval(NAME) or ()), verdict, "api:laptop:ada", lasts)]
    if fate is DecisionFate.DECIDED:
        assert (answer.status, told["status"]) == (200, "approved" if verdict is Verdict.GIVEN else "denied")
        assert (told["decided_by"], told["decided_at"], told["lasts"]) == ("api:laptop:ada", 5, lasts.value or "once")
    else:
        codes = {DecisionFate.UNKNOWN: 404, DecisionFate.FORBIDDEN: 403, DecisionFate.OVER: 410}
        assert answer.status == codes.get(fate, 409)
        assert "status" not in told
        if fate is DecisionFate.OTHERWISE:
            assert told["outspoken"]["decided_at"] == 5


class Asked(dict[Any, Any]):
    """A request of Ada's."""

    match_info: Mapping[str, str] = MappingProxyType({"approval": NAME})

    def __init__(self, body: bytes) -> None:
        super().__init__({CALLER: Caller("laptop", "ada")})
        self._body = body

    async def read(self) -> bytes:
        return self._body


@pytest.mark.parametrize("body", [b"{}", b'{"approve": "yes"}', b'{"approve": true, "lasts": "a while"}', b"[]"])
async def test_what_is_no_decision_decides_nothing(body: bytes) -> None:
    served = ManagedSessions(cast("Any", None), cast("Any", SimpleNamespace(routes=dict)))
    handler = next(one for route, one in served.routes().items() if route.name == "DECIDE")
    assert (await handler(cast("Any", Asked(body)))).status == 400


def test_an_approval_is_told_with_its_times_in_seconds_and_its_own_call() -> None:
    one = OpenApproval(SIGHT, "t_1", "call_1", "shell", "Run it?", "{}", 5_999, 65_999, (Lasting.ONCE, Lasting.ALWAYS))
    told = open_approval(one)
    assert (told["id"], told.get("created_at"), told.get("expires_at")) == (NAME, 5, 65)
    assert told.get("offers") == ["once", "always"]
    assert "diff" not in told
    assert named_approval(approval_id("t_1", "call_2")) != named_approval(NAME)
    assert (
        decided_approval(NAME, "t_1", Decision(DecisionFate.DECIDED, Verdict.DENIED, "x", 5_999))["status"] == "denied"
    )
    assert refusal_of(Decision(DecisionFate.DECIDED)) is None


@pytest.mark.parametrize("removed", ["", "no longer kept"])
@pytest.mark.parametrize("closed", [None, 9_999])
def test_of_a_turn_that_is_not_kept_nothing_is_written_out_that_was_said_or_came_of_it(
    removed: str, closed: int | None
) -> None:
    seen = ended(exit_of(ExitCode.RATE_LIMITED), text("a", "SECRET", final=True))
    turn = SessionTurn(
        "t_1", 7, 5_999, closed, told=True, removed=removed, seen=seen, model="m", asked=(InputMessage("hello"),)
    )  # fmt: skip
    told = exported_turn(turn, thinking=False)
    assert (told["opened_at"], told["closed_at"]) == (5, None if closed is None else 9)
    assert (told["exit"], told["removed"]) == ((None, removed) if removed else ("rate_limited", None))
    assert bool(told["notice"]) is not bool(removed)


@given(st.integers(0, 3 * TURNS_AT_ONCE + 1))
def test_a_conversation_is_written_out_whole_however_long_it_is(count: int) -> None:
    turns = [SessionTurn(f"t_{n}", n, 1_000, 2_000, told=True) for n in range(1, count + 1)]
    asked: list[int] = []

    async def page(_: object, number: int, limit: int, *, newest_first: bool) -> list[SessionTurn]:
        assert (limit, newest_first) == (TURNS_AT_ONCE, False)
        asked.append(number)
        assert len(asked) < 9, "it never ends"
        return [one for one in turns if one.number > number][:limit]

    async def remembered(_: object) -> Mapping[str, Any]:
        return {"notes": [{"name": "dog", "value": "Rex", "at": 1}]}

    async def files(_: object) -> list[SessionFile]:
        return [SessionFile("a.txt", 3)]

    access: Any = SimpleNamespace(turns=page, remembered=remembered, files=files)
    written = bytearray()

    class Written(web.StreamResponse):
        async def prepare(self, request: web.BaseRequest) -> None:
            del request

        async def write(self, data: bytes | bytearray | memoryview) -> None:
            written.extend(data)

        async def write_eof(self, data: bytes = b"") -> None:
            written.extend(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(managed, "web", SimpleNamespace(StreamResponse=Written))
        asyncio.run(write_export(access, make_mocked_request("GET", "/"), SIGHT, thinking=False))
    told = orjson.loads(bytes(written))
    assert [one["number"] for one in told["turns"]] == [*range(1, count + 1)]
    assert (told["id"], told["session"], told["created_at"]) == ("c", "s_1", 1_700_000_000)
    assert (told["metadata"], told["files"]) == ({"a": "b"}, [{"path": "a.txt", "size": 3}])
    assert told["remembered"] == {"notes": [{"name": "dog", "value": "Rex", "at": 1}]}
