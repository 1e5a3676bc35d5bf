"""What OpenAI's API has not: the caller's conversations as a list, beginning one anew, all of one as a document; and approvals."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

import orjson
from aiohttp import web

from adapters.contract.base import Ended
from adapters.contract.callers import CONFIGURED, Caller
from adapters.contract.sessions import Decision, DecisionFate, OpenApproval, SessionAccess, SessionSight, SessionTurn
from adapters.delivery.parts import call_mark
from adapters.http.common import CALLER, HEADERS, LASTS_WORDS, Problem, lasting_of
from adapters.http.routes import Handler, HttpRoute
from adapters.http.sessions.conversations import (
    Conversations,
    NotServed,
    answer,
    body_of,
    conversation_object,
    list_of,
    page_of,
    refusing,
)
from adapters.http.sessions.items import items
from adapters.http.sessions.sentfiles import file_response, files_in, named_file
from adapters.http.sessions.shapes import ApprovalList, ApprovalObject, ExportedFile, ExportedTurn, SentFileName
from agent_core.failures.notices import for_programs
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.turn.events import Verdict
from agent_core.turn.view import BubbleKind, View

TURNS_AT_ONCE = 20
_APPROVAL = re.compile(r"appr_(t_[0-9a-z]+)_([0-9a-f]{12})")
NO_SUCH_AFTER = Problem(404, "after names no conversation of yours.", param="after", code="conversation_not_found")
NO_APPROVAL = Problem(404, "There is no such approval.", param="approval_id", code="approval_not_found")


@dataclass(frozen=True, slots=True)
class ManagedSessions:
    """Serves it."""

    access: SessionAccess
    conversations: Conversations

    def routes(self) -> Mapping[HttpRoute, Handler]:
        served: Mapping[HttpRoute, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            HttpRoute.LIST_SESSIONS: self._list,
            HttpRoute.RESET_SESSION: self._reset,
            HttpRoute.EXPORT_SESSION: self._export,
            HttpRoute.SENT_FILE: self._sent,
            HttpRoute.LIST_APPROVALS: self._approvals,
            HttpRoute.DECIDE: self._decide,
        }
        return {**self.conversations.routes(), **{route: refusing(handler) for route, handler in served.items()}}

    # ------------------------------------------------------------------ conversations

    async def _list(self, request: web.Request) -> web.StreamResponse:
        asked, realm = page_of(request), request[CALLER].realm
        after = await self.access.find(realm, asked.after) if asked.after else None
        if asked.after and after is None:
            raise NotServed(NO_SUCH_AFTER)
        found = await self.access.page(realm, after, asked.limit + 1, newest_first=asked.newest_first)
        page = [conversation_object(sight) for sight in found[: asked.limit]]
        return answer(list_of(page, more=len(found) > len(page)))

    async def _reset(self, request: web.Request) -> web.StreamResponse:
        sight = await self.conversations.sight(request)
        return answer(conversation_object(await self.access.reset(sight)))

    async def _export(self, request: web.Request) -> web.StreamResponse:
        sight = await self.conversations.sight(request)
        return await write_export(self.access, request, sight, thinking=self.conversations.shows_thinking(request))

    async def _sent(self, request: web.Request) -> web.StreamResponse:
        sight, found = await self.conversations.sight(request), named_file(request.match_info["file"])
        return await file_response(request, await self.access.sent(sight, *found) if found is not None else None)

    # ------------------------------------------------------------------ approvals

    async def _approvals(self, request: web.Request) -> web.StreamResponse:
        found = await self.access.approvals(request[CALLER].realm)
        return answer(ApprovalList(object="list", data=[open_approval(one) for one in found], has_more=False))

    async def _decide(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["approval"]
        if (found := named_approval(name)) is None:
            raise NotServed(NO_APPROVAL)
        body = await body_of(request)
        approve = body.get("approve")
        if not isinstance(approve, bool):
            raise NotServed(Problem(400, "approve must be true or false.", param="approve", code="invalid_value"))
        if (lasts := lasting_of(body.get("lasts"))) is None:
            raise NotServed(Problem(400, LASTS_WORDS, param="lasts", code="invalid_value"))
        verdict, caller = Verdict.GIVEN if approve else Verdict.DENIED, request[CALLER]
        decision = await self.access.decide(caller.realm, *found, verdict, decider(caller), lasts)
        if (problem := refusal_of(decision)) is not None:
            raise NotServed(problem)
        return answer(decided_approval(name, found[0], decision))


async def write_export(
    access: SessionAccess, request: web.Request, sight: SessionSight, *, thinking: bool
) -> web.StreamResponse:
    """Written turn by turn: a long conversation is never in memory as a whole."""
    head: dict[str, Json] = {
        "object": "outspoken.export",
        "version": 1,
        "id": sight.name,
        "session": sight.session,
        "created_at": sight.created_at // 1000,
        "metadata": {**sight.metadata},
        "remembered": {**await access.remembered(sight)},
        "files": [dict(ExportedFile(path=one.path, size=one.size)) for one in await access.files(sight)],  # pyright: ignore[reportAssignmentType]
    }
    turns = await access.turns(sight, 0, TURNS_AT_ONCE, newest_first=False)
    name = f"{sight.session}.json"
    response = web.StreamResponse(
        headers={"Content-Type": "application/json", "Content-Disposition": f'attachment; filename="{name}"'}
    )
    response.headers.update(request.get(HEADERS, {}))
    await response.prepare(request)
    await response.write(orjson.dumps(head).removesuffix(b"}") + b',"turns":[')
    comma = b""
    while turns:
        told = [orjson.dumps(exported_turn(turn, thinking=thinking)) for turn in turns]
        await response.write(comma + b",".join(told))
        comma, last = b",", turns[-1].number
        turns = await access.turns(sight, last, TURNS_AT_ONCE, newest_first=False)
    await response.write(b"]}")
    await response.write_eof()
    return response


def decider(caller: Caller) -> str:
    """Who decides, as it is journalled: the person, as far as somebody said who, with the key."""
    key = f"api:{caller.key or CONFIGURED}"
    return f"{key}:{caller.person}" if caller.person else key


def approval_id(turn: str, call: str) -> str:
    """By which an approval is named."""
    return f"appr_{turn}_{call_mark(call)}"


def named_approval(name: str) -> tuple[str, str] | None:
    """(turn, mark of the call) of what is named so; None if nothing ever is."""
    found = _APPROVAL.fullmatch(name)
    return (found[1], found[2]) if found is not None else None


def open_approval(one: OpenApproval) -> ApprovalObject:
    """One that waits. Pure."""
    found = ApprovalObject(
        id=approval_id(one.turn, one.call),
        object="outspoken.approval",
        status="open",
        turn=one.turn,
        conversation=one.session.name,
        session=one.session.session,
        tool=one.tool,
        question=one.question,
        arguments=one.arguments,
        created_at=one.asked_at // 1000,
        expires_at=one.until // 1000,
        offers=[lasts.value or "once" for lasts in one.offers],
    )
    if one.diff:
        found["diff"] = one.diff
    return found


def decided_approval(name: str, turn: str, decision: Decision) -> ApprovalObject:
    """One that was decided. Pure."""
    return ApprovalObject(
        id=name,
        object="outspoken.approval",
        status="approved" if decision.verdict is Verdict.GIVEN else "denied",
        turn=turn,
        decided_by=decision.by,
        decided_at=decision.at // 1000,
        lasts=decision.lasts.value or "once",
    )


def refusal_of(decision: Decision) -> Problem | None:
    """Why it was not decided so; None if it was. Pure."""
    match decision.fate:
        case DecisionFate.DECIDED:
            return None
        case DecisionFate.UNKNOWN:
            return NO_APPROVAL
        case DecisionFate.OTHERWISE:
            status = "approved" if decision.verdict is Verdict.GIVEN else "denied"
            facts: dict[str, Json] = {
                "status": status, "decided_by": decision.by, "decided_at": decision.at // 1000,
            }  # fmt: skip
            return Problem(409, f"It was {status} before, by {decision.by}.", code="already_decided", facts=facts)
        case DecisionFate.FORBIDDEN:
            words = f"Only {decision.by} may decide that ([tools] approvers). It still waits."
            return Problem(403, words, "permission_error", code="not_an_approver")
        case DecisionFate.OVER:
            return Problem(410, "That is over; nothing waits for a decision any more.", code="approval_gone")
        case DecisionFate.ELSEWHERE:
            words = (
                "The turn is not run by this process just now, or the answer cannot be stored. Ask again in a moment."
            )
            return Problem(409, words, code="conversation_busy", retry_after=5)


def exported_turn(turn: SessionTurn, *, thinking: bool) -> ExportedTurn:
    """A turn as it is exported. Pure."""
    ended = turn.seen if isinstance(turn.seen, Ended) else None
    seen = ended.view if ended is not None else View((), open=False)
    return ExportedTurn(
        turn=turn.turn,
        number=turn.number,
        opened_at=turn.opened_at // 1000,
        closed_at=turn.closed_at // 1000 if turn.closed_at is not None else None,
        told=turn.told,
        removed=turn.removed or None,
        exit=ended.exit.code.value if ended is not None and not turn.removed else None,
        notice=next(
            (
                for_programs(b.text, seen.language)
                for b in seen.bubbles
                if b.kind is BubbleKind.NOTICE and not turn.removed
            ),
            None,
        ),
        model=turn.model or None,
        agent=turn.agent or None,
        sent=[SentFileName(id=one, name=name) for one, name in files_in(turn.turn, seen)] if not turn.removed else [],
        items=items(turn, thinking=thinking),
        messages=[*turn.messages],
    )
