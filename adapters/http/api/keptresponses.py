"""Responses that are kept: asked for by their id, cancelled, deleted, and what was asked with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson
from aiohttp import web

from adapters.contract.base import Ended, FromApi, Gateway, KeptResponse, LeftOpen, Showing, Sight
from adapters.contract.callers import Caller
from adapters.http.api.answering import ApiAnswering
from adapters.http.api.asked import ApiRequest
from adapters.http.api.beside import with_data
from adapters.http.api.completions import Completion
from adapters.http.api.responses import ResponseSpelling
from adapters.http.api.responsesread import SEALED, included, response_ref
from adapters.http.api.spelling import ApiJob, Spelling
from adapters.http.api.taking import NO_RESPONSE
from adapters.http.common import CALLER, Problem, problem_response
from adapters.http.errorsas import ErrorsAs
from adapters.http.sealing import Seals
from adapters.http.sessions.pages import paging
from adapters.http.theirs import asked_by
from agent_core.jsonvalue import Json
from agent_core.messages import Message, text_of
from agent_core.records import dataclass
from agent_core.text.patterns import late

GLANCE_SECONDS = 0.05
"""How long a look at a response waits for something to see."""
CANCEL_TRIES = 20
MOST_REFERRED = 1_000
"""A request refers to items of so many responses."""
NO_SUCH_AFTER = Problem(404, "after names no item of this response.", param="after", code="item_not_found")
STILL_RUNNING = Problem(
    409, "Its turn was asked to stop, and has not ended yet. Ask again in a moment.", code="conversation_busy", retry_after=5,
)  # fmt: skip
_ITEM = late(r"(msg|rs|fc|ctc|mcp|ig|in)_(s_[0-9a-z]+)_([0-9]{1,18})_.{1,200}")
_COMPLETION = late(r"chatcmpl-(s_[0-9a-z]+)-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class KeptResponses:
    """Serves what is kept."""

    gateway: Gateway
    answering: ApiAnswering
    dressed: Callable[[web.Request, ApiJob], ApiJob]
    """Adds to a job what depends on who asks."""
    seals: Seals | None

    async def get(self, request: web.Request) -> web.StreamResponse:
        """The response as it is now, or its stream: all of it, or what comes behind an event."""
        kept = await self._kept(request)
        if isinstance(kept, Problem):
            return problem_response(kept)
        stream = request.query.get("stream", "").lower() == "true"
        after = _starting_after(request.query.get("starting_after", ""), kept, stream=stream)
        if isinstance(after, Problem):
            return problem_response(after)
        include = included([*request.query.getall("include", ()), *request.query.getall("include[]", ())])
        if isinstance(include, Problem):
            return problem_response(include)
        if self.seals is not None and SEALED in include:
            await self.seals.at_hand()
        job = replace(self.dressed(request, job_of(kept, stream=stream, include=include)), after=after)
        async with self.gateway.follow(kept.ticket, stored_alone=stream and job.placed) as follower:
            if job.asked.stream:
                return await self.answering.answer(request, job, ResponseSpelling(job), follower)
            return _json(await self._now(kept, job))

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """Stop it; the response as it is then."""
        kept = await self._kept(request)
        if isinstance(kept, Problem):
            return problem_response(kept)
        return _json(await self._stopped(kept, ResponseSpelling(self.dressed(request, job_of(kept, stream=False)))))

    async def cancel_completion(self, request: web.Request) -> web.StreamResponse:
        """The same of a chat completion that its client waits for in another connection."""
        found = _COMPLETION.fullmatch(request.match_info["completion"])
        kept = await self.gateway.request(found[1], int(found[2])) if found is not None else None
        if kept is None or not asked_by(kept.inbound, request[CALLER]):
            words = "There is no such completion, or it is not kept any longer."
            return problem_response(Problem(404, words, param="completion_id", code="completion_not_found"))
        return _json(await self._stopped(kept, Completion(replace(job_of(kept, stream=False), errors=ErrorsAs.WORDS))))

    async def _stopped(self, kept: KeptResponse, spelling: Spelling) -> dict[str, Json]:
        """The object of a request that is stopped, if it has not ended before."""
        return await _told(await self._seen_stopped(kept), spelling)

    async def _seen_stopped(self, kept: KeptResponse) -> Sight | None:
        """What was seen last of a request that is stopped: its end, if that came."""
        sight: Sight | None = None
        async with self.gateway.follow(kept.ticket) as follower:
            for _ in range(CANCEL_TRIES):  # a turn that is just being opened does not hear the first
                await self.gateway.stop_message(kept.ticket)
                while (seen := await follower.next(GLANCE_SECONDS)) is not None:
                    sight = seen
                    if isinstance(sight, Ended | LeftOpen):
                        return sight
        return sight

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Stop it, and forget it."""
        kept = await self._kept(request)
        if isinstance(kept, Problem):
            return problem_response(kept)
        if isinstance(await self._seen_stopped(kept), Showing | LeftOpen):  # what it says from now on would be kept
            return problem_response(STILL_RUNNING)
        await self.gateway.delete_response(kept)
        return _json({"id": request.match_info["response"], "object": "response.deleted", "deleted": True})

    async def items(self, request: web.Request) -> web.StreamResponse:
        """What was asked with it, the latest first unless it is asked for otherwise."""
        kept = await self._kept(request)
        if isinstance(kept, Problem):
            return problem_response(kept)
        asked, items = paging(request.query), input_items(kept.inbound, _mark_of(kept))
        if isinstance(asked, Problem):
            return problem_response(asked)
        if asked.newest_first:
            items.reverse()
        if asked.after:
            ids = [item["id"] for item in items]
            if asked.after not in ids:
                return problem_response(NO_SUCH_AFTER)
            items = items[ids.index(asked.after) + 1 :]
        page = items[: asked.limit]
        return _json(
            {
                "object": "list",
                "data": [*page],
                "first_id": page[0]["id"] if page else None,
                "last_id": page[-1]["id"] if page else None,
                "has_more": len(items) > len(page),
            }
        )

    async def _kept(self, request: web.Request) -> KeptResponse | Problem:
        found = response_ref(request.match_info["response"])
        kept = await self.gateway.response(*found) if found is not None else None
        if kept is None or not asked_by(kept.inbound, request[CALLER]):
            return Problem(404, NO_RESPONSE, param="response_id", code="response_not_found")
        return kept

    async def named(self, names: Sequence[str], caller: Caller) -> dict[str, Json]:
        """Items of kept responses by their ids: None for a thought that is not shown. What is not there, or is not theirs, is missing."""
        found: dict[str, Json] = {}
        asked: dict[tuple[str, int], list[str]] = {}
        for name in names:
            if (whose := _ITEM.fullmatch(name)) is not None:
                asked.setdefault((whose[2], int(whose[3])), []).append(name)
        for ref, here in [*asked.items()][:MOST_REFERRED]:
            kept = await self.gateway.response(*ref)
            if kept is None or not asked_by(kept.inbound, caller):
                continue
            job = replace(job_of(kept, stream=False), thinking=True)
            output = (await self._now(kept, job)).get("output")
            items = {str(one["id"]): one for one in output if isinstance(one, dict)} if isinstance(output, list) else {}
            items |= {str(one["id"]): one for one in input_items(kept.inbound, _mark_of(kept))}
            found |= {name: items.get(name) for name in here if name in items or name.startswith("rs_")}
        return found

    async def _now(self, kept: KeptResponse, job: ApiJob) -> dict[str, Json]:
        async with self.gateway.follow(kept.ticket) as follower:
            sight = await follower.next(GLANCE_SECONDS)
        return await _told(sight, ResponseSpelling(job))


async def _told(sight: Sight | None, spelling: Spelling) -> dict[str, Json]:
    """The object of what was seen, with the data of what it made."""
    return spelling.whole(await with_data(sight)) if isinstance(sight, Ended) else spelling.unfinished(sight)


def _starting_after(given: str, kept: KeptResponse, *, stream: bool) -> int | Problem:
    """Behind which event a stream begins."""
    if not given or not stream:
        return -1
    if not given.isdecimal() or len(given) > 15:
        return Problem(400, "starting_after must be the number of an event.", param="starting_after")
    if not (kept.inbound.response or {}).get("background"):
        words = "Only the stream of a response that was asked for with background can be gone on with; leave starting_after out."
        return Problem(400, words, param="starting_after", code="unsupported_parameter")
    return int(given)


def _mark_of(kept: KeptResponse) -> str:
    return f"{kept.ticket.session}_{kept.ticket.inbox_id}"


def job_of(kept: KeptResponse, *, stream: bool, include: Sequence[str] = ()) -> ApiJob:
    """A kept request as if it had just been accepted: told as the object of a response, in which failures have their place."""
    inbound = kept.inbound
    again: dict[str, Json] = {**(inbound.response or {})}
    if include:
        again["include"] = [*include]
    asked = ApiRequest(
        model=inbound.model,
        history=inbound.own_history or (),
        latest=inbound.input,
        system=(),
        tools=inbound.client_tools,
        parameters=inbound.request,
        client_output_limit=inbound.client_output_limit,
        session=inbound.session.chat if inbound.session.account == "key" else "",
        user=inbound.memory_scope.partition("/")[2],
        stream=stream,
        include_usage=True,
        digest=inbound.digest,
        background=True,
        most_tool_calls=inbound.most_tool_calls,
        kept=True,
        again=again,
    )
    return ApiJob(
        asked=asked,
        ticket=kept.ticket,
        request_id="",
        created=kept.received_at // 1000,
        headers={},
        keyed=False,
        errors=ErrorsAs.STATUS,
        placed=again.get("background") is True,
    )


def input_items(inbound: FromApi, mark: str) -> list[dict[str, Json]]:
    """What was asked, as items in their order. Pure."""
    messages = [*(inbound.own_history or ()), *(message.to_message() for message in inbound.input)]
    items: list[dict[str, Json]] = []
    for message in messages:
        for item in items_of(message, whole=True):
            items.append({"id": f"in_{mark}_{len(items)}", **item})
    return items


def items_of(message: Message, *, whole: bool = False) -> list[dict[str, Json]]:
    """The items of a message; `whole`: with its pictures, sounds and files, which else are only named in its words."""
    content = message.get("content")
    words, calls = text_of(content), message.get("tool_calls")
    enclosed = (
        [_part(part) for part in content] if whole and isinstance(content, list) and not _is_text(content) else []
    )
    if message["role"] == "tool":
        call, output = message.get("tool_call_id"), enclosed or words
        return [{"type": "function_call_output", "call_id": call, "output": output, "status": "completed"}]
    if enclosed and message["role"] != "assistant":
        return [{"type": "message", "role": message["role"], "status": "completed", "content": enclosed}]
    found: list[dict[str, Json]] = []
    if words or not calls:
        kind = "output_text" if message["role"] == "assistant" else "input_text"
        part: dict[str, Json] = {"type": kind, "text": words}
        if kind == "output_text":
            part |= {"annotations": [], "logprobs": []}
        found.append({"type": "message", "role": message["role"], "status": "completed", "content": [part]})
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            told = {"name": function.get("name"), "arguments": function.get("arguments")}
            found.append({"type": "function_call", "call_id": call.get("id"), **told, "status": "completed"})
    return found


def _is_text(content: list[Json]) -> bool:
    return all(isinstance(part, dict) and part.get("type") == "text" for part in content)


def _part(part: Json) -> Json:
    """A part of a message's content, as it was brought."""
    found = part if isinstance(part, dict) else {}
    inner = found.get(str(found.get("type")))
    match found.get("type"):
        case "image_url" if isinstance(inner, dict):
            return {"type": "input_image", "image_url": inner.get("url"), "detail": inner.get("detail") or "auto"}
        case "file" if isinstance(inner, dict):
            return {"type": "input_file", **inner}
        case "input_audio":
            return {"type": "input_audio", "input_audio": inner}
        case _:
            return {"type": "input_text", "text": text_of([part])}


def _json(value: dict[str, Json]) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
