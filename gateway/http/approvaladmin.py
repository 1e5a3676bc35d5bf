"""What waits for somebody's word anywhere, for whoever runs the gateway: ``/api/approvals``. Needs the operators' key, as `gateway.http.admin`.

Whoever runs the gateway is everybody's admin, and no more: where `[tools] approvers` names no admins, they are told who may decide. Each decision is
in the audit before it is said to be made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from adapters.http.common import LASTS_WORDS, Problem, guarded, lasting_of, problem_response
from adapters.http.entrance import NotJson, json_of
from adapters.http.routes import HttpRoute
from agent_core.jsonvalue import Json
from agent_core.ports import Clock, Ids
from agent_core.store.audit import AuditRow
from agent_core.turn.events import Verdict
from gateway.commands.deciders import operator_refused
from gateway.http.admin import BY, json_response

if TYPE_CHECKING:
    from adapters.contract.sessions import OpenApproval
    from gateway.conversations.deciding import AskedHere, Deciding
    from gateway.queues.queue import Waiting

log = structlog.get_logger("gateway")


class ApprovalAdmin:
    """Serves them. `deciding` is asked when somebody first looks."""

    def __init__(self, deciding: Callable[[], Deciding], clock: Clock, ids: Ids, key: str | None) -> None:
        self._deciding = deciding
        self._clock = clock
        self._ids = ids
        self._key = key

    def routes(self) -> list[web.RouteDef]:
        return [
            HttpRoute.OPEN_APPROVALS.served(guarded(self._key, self._list)),
            HttpRoute.DECIDE_ANY.served(guarded(self._key, self._decide)),
        ]

    async def _list(self, _: web.Request) -> web.Response:
        found = await self._deciding().everybodys()
        return json_response({"approvals": [self._table(asked, one) for asked, one in found]})

    def _table(self, asked: AskedHere, one: OpenApproval) -> dict[str, Json]:
        from adapters.http.sessions.managed import approval_id

        return {
            "id": approval_id(one.turn, one.call),
            "place": one.place,
            "asker": one.asker,
            "tool": one.tool,
            "question": one.question,
            "diff": one.diff,
            "arguments": one.arguments,
            "asked_at": one.asked_at,
            "until": one.until,
            "seconds_left": max(0, (one.until - self._clock.now_ms()) // 1000),
            "offers": [lasts.value or "once" for lasts in one.offers],
            "session": one.session.session,
            "turn": one.turn,
            "only": self._refused(asked.messages),
        }

    def _refused(self, messages: Sequence[Waiting]) -> str:
        """Who may decide, if whoever runs the gateway may not."""
        return operator_refused(messages, self._deciding().stopping.approvers)

    async def _decide(self, request: web.Request) -> web.Response:
        from adapters.http.sessions.managed import named_approval, refusal_of

        try:
            body = json_of(await request.read())
        except NotJson as error:
            return problem_response(Problem(400, str(error)))
        name, approve = (body.get("id"), body.get("approve")) if isinstance(body, dict) else (None, None)
        if not isinstance(body, dict) or not isinstance(name, str) or not isinstance(approve, bool):
            return problem_response(Problem(400, "id must be an approval's, and approve true or false."))
        if (lasts := lasting_of(body.get("lasts"))) is None:
            return problem_response(Problem(400, LASTS_WORDS, param="lasts"))
        if (found := named_approval(name)) is None:
            return problem_response(Problem(404, "There is no such approval.", param="id"))
        deciding, (turn, mark) = self._deciding(), found
        # Asked of the turn, not of what it is seen to wait for: that is not to be seen while something of it is being stored.
        messages, verdict = await deciding.answers(turn), Verdict.GIVEN if approve else Verdict.DENIED
        refused = "" if messages is None else self._refused(messages)
        before = self._clock.now_ms()
        decision = await deciding.decide_as_operator(turn, mark, verdict, BY, lasts, refused)
        if (problem := refusal_of(decision)) is not None:
            return problem_response(problem)
        # Else it was decided so before, and is in the audit if it was by hand
        if decision.by == BY and decision.at >= before:
            how = f" ({decision.lasts.value})" if decision.lasts.value else ""
            words = f"The call {name} was {'approved' if approve else 'denied'}{how}."
            entry = AuditRow(
                self._ids.new("a"), self._clock.now_ms(), BY, "approve" if approve else "deny", f"turn {turn}", words
            )
            await deciding.store.deliveries.act(entry)
            log.info("approval.by_hand", turn=turn, verdict=verdict.value)
        lasted, status = decision.lasts.value or "once", "approved" if decision.verdict is Verdict.GIVEN else "denied"
        return json_response({"id": name, "status": status, "lasts": lasted, "decided_by": decision.by})
