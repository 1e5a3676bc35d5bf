"""What whoever runs the gateway decides stands in the audit once: when they decide it, and not if somebody else has, or they ask again."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from adapters.contract.sessions import Decision, DecisionFate
from agent_core.rules.consents import Lasting
from agent_core.store.audit import AuditRow
from agent_core.store.turns.rows import TurnState
from agent_core.turn.events import Verdict
from gateway.conversations import deciding
from gateway.conversations.deciding import Deciding
from gateway.http import approvaladmin
from gateway.http.admin import BY
from gateway.http.approvaladmin import ApprovalAdmin
from tests.adapters.scripted import CountedIds, StillClock

NAME = "appr_t_1_0123456789ab"
NOW = StillClock().now_ms()


class Decides:
    """Gives the decision that a test wants, and keeps what is noted."""

    def __init__(self, decision: Decision, answers: object = None) -> None:
        self.decision, self._answers = decision, answers
        self.noted: list[AuditRow] = []
        self.refused: list[object] = []
        self.store = SimpleNamespace(deliveries=SimpleNamespace(act=self._act))
        self.stopping = SimpleNamespace(approvers=("some",))

    async def _act(self, entry: AuditRow) -> None:
        self.noted.append(entry)

    async def answers(self, turn: str) -> object:
        assert turn == "t_1"
        return self._answers

    async def decide_as_operator(self, *given: object) -> Decision:
        self.refused.append(given[-1])
        return self.decision


async def answered(decision: Decision, *, approve: bool) -> tuple[int, list[AuditRow]]:
    decides = Decides(decision)
    app = web.Application()
    app.add_routes(ApprovalAdmin(lambda: cast("Any", decides), StillClock(), CountedIds(), None).routes())
    async with TestClient(TestServer(app)) as client:
        body = json.dumps({"id": NAME, "approve": approve})
        response = await client.post("/api/approvals", data=body, headers={"Content-Type": "application/json"})
        return response.status, decides.noted


@pytest.mark.parametrize(
    ("fate", "by", "since_ms", "noted"),
    [
        (DecisionFate.DECIDED, BY, 0, True),
        (DecisionFate.DECIDED, BY, 20, True),
        (DecisionFate.DECIDED, BY, -1, False),  # they say it again
        (DecisionFate.DECIDED, "Ada", 0, False),
        (DecisionFate.OTHERWISE, BY, 0, False),
        (DecisionFate.OVER, BY, 0, False),
        (DecisionFate.UNKNOWN, "", 0, False),
        (DecisionFate.FORBIDDEN, BY, 0, False),
        (DecisionFate.ELSEWHERE, BY, 0, False),
    ],
)
@pytest.mark.parametrize("approve", [True, False])
async def test_each_decision_by_hand_is_in_the_audit_once(
    fate: DecisionFate, by: str, since_ms: int, *, noted: bool, approve: bool
) -> None:
    verdict = Verdict.GIVEN if approve else Verdict.DENIED
    decision = Decision(fate, verdict, by, NOW + since_ms, Lasting.CONVERSATION)
    status, found = await answered(decision, approve=approve)
    assert (status == 200) is (fate is DecisionFate.DECIDED)
    acts = [(one.act, one.object, one.who) for one in found]
    assert acts == ([("approve" if approve else "deny", "turn t_1", BY)] if noted else [])


@pytest.mark.parametrize("words", ["", "the admins of the chat"])
@pytest.mark.parametrize("there", [True, False])
async def test_where_others_are_named_to_decide_whoever_runs_it_is_told_who(
    monkeypatch: pytest.MonkeyPatch, words: str, *, there: bool
) -> None:
    def refused(messages: object, approvers: object) -> str:
        assert (messages, approvers) == (("what was asked",), ("some",))
        return words

    monkeypatch.setattr(approvaladmin, "operator_refused", refused)
    answers = ("what was asked",) if there else None
    decides = Decides(Decision(DecisionFate.FORBIDDEN, by=words), answers)
    app = web.Application()
    app.add_routes(ApprovalAdmin(lambda: cast("Any", decides), StillClock(), CountedIds(), None).routes())
    async with (
        TestClient(TestServer(app)) as client,
        client.post("/api/approvals", json={"id": NAME, "approve": True}) as response,
    ):
        assert response.status == 403
    assert decides.refused == [words if there else ""]
    assert decides.noted == []


@pytest.mark.parametrize(
    ("here", "state", "found"),
    [
        (True, TurnState.OPEN, ("asked here",)),
        (False, TurnState.OPEN, ("asked elsewhere",)),
        (False, TurnState.CLOSED, None),
        (False, None, None),
    ],
)
async def test_who_asked_is_known_wherever_the_turn_runs_and_while_something_of_it_is_being_stored(
    monkeypatch: pytest.MonkeyPatch, found: tuple[str, ...] | None, state: TurnState | None, *, here: bool
) -> None:
    storing = SimpleNamespace(
        identity=SimpleNamespace(turn="t_1"), over=False, seen=SimpleNamespace(committing=True), turn=None
    )
    running = [SimpleNamespace(driver=storing, messages=["asked here"])] if here else []

    async def inputs(_: str) -> list[str]:
        return ["asked elsewhere"]

    async def one(_: str) -> object:
        return None if state is None else SimpleNamespace(state=state)

    def as_it_is(row: object) -> object:
        return row

    monkeypatch.setattr(deciding, "waiting_of", as_it_is)
    store = SimpleNamespace(turns=SimpleNamespace(one=one), inbox=SimpleNamespace(inputs=inputs))
    stopping = SimpleNamespace(queues=SimpleNamespace(running=lambda: running))
    asking: Any = Deciding(cast("Any", store), cast("Any", stopping), cast("Any", None))
    assert await asking.answers("t_1") == found
