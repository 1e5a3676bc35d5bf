"""``/v1/responses``: how it is answered, as a stream of typed events and as one object.

Each bubble of the turn is an item: what the model says a message, a call of the gateway's own tools an ``mcp_call`` of the server ``outspoken``
(which clients show, and do not carry out), a call of the client's tools a ``function_call``. What the gateway says stands in ``error`` and in the
``outspoken`` object; for people (`ErrorsAs.WORDS`) it is a message as well.

Laws (tests/adapters/test_responses.py): every event and object is as the published schema has it; numbers of events have no gap, items are begun
before they grow and are over before the response is; what was streamed is what the object says at the end.

Source: OpenAI's API reference for responses, and the types of its Python SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from adapters.contract.base import Ended, LeftOpen, Queued, Showing
from adapters.http.api.beside import all_facts
from adapters.http.api.facts import LEFT_OPEN, left_facts, queue_facts
from adapters.http.api.responsesread import CUSTOM, SPACES, read
from adapters.http.api.spelling import ApiEndpoint, ApiJob
from adapters.http.api.spoken import Spoken, TextPiece, left_words
from adapters.http.api.truth import finish_of, known_words, refusal_of, shown, status_of
from adapters.http.common import Problem
from adapters.http.errorsas import ErrorsAs
from agent_core.failures import exits
from agent_core.failures.exits import Exit, ExitCode
from agent_core.failures.notices import ExitClass, NotStarted
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.turn.state import ActivityState, CallItem
from agent_core.turn.view import Bubble

SERVER = "outspoken"
"""Whose tools an ``mcp_call`` is of."""
_TOLD_AS_IT_CAME = (
    "temperature",
    "top_p",
    "user",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "top_logprobs",
)
_OVER = frozenset({ActivityState.DONE, ActivityState.FAILED, ActivityState.NOT_RUN, ActivityState.UNSURE})


@dataclass(slots=True)
class _Message:
    """The message that is growing."""

    key: str
    id: str
    index: int
    ours: bool
    head: bytes
    texts: list[str]


class ResponseSpelling:
    """One response."""

    def __init__(self, job: ApiJob) -> None:
        self._job = job
        asked, ticket = job.asked, job.ticket
        self._mark = f"{ticket.session}_{ticket.inbox_id}"
        self._again = asked.again or {}
        custom = self._again.get(CUSTOM)
        self._custom = custom if isinstance(custom, list) else []
        spaces = self._again.get(SPACES)
        self._spaces = spaces if isinstance(spaces, dict) else {}
        self._number = 0
        self._output: list[dict[str, Json]] = []
        self._calls: dict[str, int] = {}
        """Where calls of the gateway's tools stand that are not over."""
        self._over: set[str] = set()
        """Those that are over."""
        self._growing: _Message | None = None
        self._thought: _Message | None = None
        """What the model thinks, while it grows."""
        self._queued = False

    def listening(self) -> Spoken:
        return Spoken(data=self._job.data, apart=True, ours=self._job.errors is ErrorsAs.WORDS)

    # ------------------------------------------------------------------ streaming

    def begins(self) -> bytes:
        return self._about("response.created", "in_progress") + self._about("response.in_progress", "in_progress")

    def queued(self, queued: Queued) -> bytes:
        if self._queued:
            return b""
        self._queued = True
        return self._event("response.queued", response={**self._object("queued"), "outspoken": queue_facts(queued)})

    def says(self, pieces: Sequence[TextPiece]) -> bytes:
        growing = self._growing
        if len(pieces) == 1 and growing is not None and growing.key == pieces[0].key and pieces[0].act is None:
            return self._grow(growing, pieces[0].text)  # as nearly always: many times a second
        return b"".join(map(self._says, pieces))

    def thinks(self, text: str) -> bytes:
        opened = b""
        if self._thought is None:
            opened = self._close(None)
            index = len(self._output)
            made = f"rs_{self._mark}_{index}"
            self._thought = _Message("", made, index, ours=False, head=b"", texts=[])
            item: dict[str, Json] = {"id": made, "type": "reasoning", "summary": [], "status": "in_progress"}
            self._output.append(item)
            opened += self._event("response.output_item.added", output_index=index, item=item)
            part: dict[str, Json] = {"type": "summary_text", "text": ""}
            opened += self._event("response.reasoning_summary_part.added", **self._where(self._thought), part=part)
        self._thought.texts.append(text)
        where = self._where(self._thought)
        return opened + self._event("response.reasoning_summary_text.delta", **where, delta=text)

    @staticmethod
    def _where(thought: _Message) -> dict[str, Json]:
        return {"item_id": thought.id, "output_index": thought.index, "summary_index": 0}

    def _thought_over(self) -> bytes:
        """Something else begins: the thought that was growing is whole."""
        thought, self._thought = self._thought, None
        if thought is None:
            return b""
        where, part = self._where(thought), {"type": "summary_text", "text": "".join(thought.texts)}
        item: dict[str, Json] = {"id": thought.id, "type": "reasoning", "summary": [{**part}], "status": "completed"}
        self._output[thought.index] = item
        return (
            self._event("response.reasoning_summary_text.done", **where, text=part["text"])
            + self._event("response.reasoning_summary_part.done", **where, part={**part})
            + self._event("response.output_item.done", output_index=thought.index, item=item)
        )

    def ended(self, ended: Ended, rest: Sequence[TextPiece]) -> bytes:
        said = self._all(ended, rest)
        whole = self._finished(ended)
        match whole["status"]:
            case "completed":
                kind = "response.completed"
            case "failed":
                kind = "response.failed"
            case _:
                kind = "response.incomplete"
        return said + self._event(kind, response=whole)

    def _all(self, ended: Ended, rest: Sequence[TextPiece]) -> bytes:
        """All items that are still to come."""
        said = self.says(rest) + self._close(ended.exit)
        said += b"".join(map(self._handed, ended.handed))
        refusal = refusal_of(ended, self._job.errors)
        return said + self._refusal(refusal) if refusal else said

    def left(self, left: LeftOpen, rest: Sequence[TextPiece]) -> bytes:
        words = left_words(keyed=self._job.keyed)
        facts = left_facts(left, self._job.asked.session)
        return self.says(rest) + self._event("error", code=LEFT_OPEN, message=words, param=None, outspoken=facts)

    def broken(self, reference: str) -> bytes:
        words = f"Something went wrong inside the gateway while it was showing this (reference {reference}). Get the response by its id."
        return self._event("error", code=ExitCode.INTERNAL_ERROR.value, message=words, param=None)

    def failed(self, problem: Problem) -> bytes:
        error: dict[str, Json] = {
            "code": _error_code(problem.status), "message": problem.message, "param": problem.param, "type": problem.code,
        }  # fmt: skip
        whole: dict[str, Json] = {**self._object("failed"), "error": error, "outspoken": dict(problem.facts)}
        return self.begins() + self._event("response.failed", response=whole)

    # ------------------------------------------------------------------ as one object

    def whole(self, ended: Ended) -> dict[str, Json]:
        if self._job.thinking and (thought := ended.thought.beyond(0)):
            self.thinks(thought)
        self._all(ended, self.listening().new(shown(ended)))
        return self._finished(ended)

    def unfinished(self, sight: Queued | Showing | LeftOpen | None) -> dict[str, Json]:
        match sight:
            case None:
                return self._object("queued")
            case Queued():
                return {**self._object("queued"), "outspoken": queue_facts(sight)}
            case Showing():
                self.says(self.listening().new(sight.view))
                return {**self._object("in_progress"), "outspoken": {"turn": sight.turn, "going_on": True}}
            case LeftOpen():
                self.says(self.listening().new(sight.view))
                return {**self._object("in_progress"), "outspoken": left_facts(sight, self._job.asked.session)}

    # ------------------------------------------------------------------ items

    def _says(self, piece: TextPiece) -> bytes:
        if piece.act is not None:
            return self._act(piece.act)
        growing = self._growing
        if growing is not None and growing.key == piece.key:
            return self._grow(growing, piece.text)
        closed = self._close(None)
        opened, message = self._message(piece)
        return closed + opened + self._grow(message, piece.text)

    def _message(self, piece: TextPiece) -> tuple[bytes, _Message]:
        made, index = f"msg_{self._mark}_{piece.key}", len(self._output)
        item = _message_item(made, "in_progress", None, [], ours=piece.ours)
        self._output.append(item)
        where: dict[str, Json] = {"item_id": made, "output_index": index, "content_index": 0}
        head = orjson.dumps({"type": "response.output_text.delta", **where, "logprobs": []})
        head = b"event: response.output_text.delta\ndata: " + head.removesuffix(b"}") + b',"sequence_number":'
        self._growing = _Message(piece.key, made, index, piece.ours, head, [])
        added = self._event("response.output_item.added", output_index=index, item=item)
        return added + self._event("response.content_part.added", **where, part=_text_part("")), self._growing

    def _grow(self, message: _Message, text: str) -> bytes:
        message.texts.append(text)
        number = self._number
        self._number = number + 1
        return b'%b%d,"delta":%b}\n\n' % (message.head, number, orjson.dumps(text))

    def _close(self, ending: Exit | None) -> bytes:
        """The message that was growing is over: because something else begins (None), or at the end."""
        thought = self._thought_over()
        message, self._growing = self._growing, None
        if message is None:
            return thought
        last = ending is not None
        apart = b"" if last else self._grow(message, "\n\n")  # for those who put all texts behind one another
        part, phase = _text_part("".join(message.texts)), None if message.ours else "commentary"
        if last and not message.ours:
            phase = "final_answer"
        whole = ending is None or ending.kind in (ExitClass.CLEAN, ExitClass.HANDED) or message.ours
        item = _message_item(message.id, "completed" if whole else "incomplete", phase, [part], ours=message.ours)
        self._output[message.index] = item
        where: dict[str, Json] = {"item_id": message.id, "output_index": message.index, "content_index": 0}
        return (
            apart
            + self._event("response.output_text.done", **where, text=part["text"], logprobs=[])
            + self._event("response.content_part.done", **where, part=part)
            + self._event("response.output_item.done", output_index=message.index, item=item)
        )

    def _act(self, call: Bubble) -> bytes:
        """A call of the gateway's own tools has come further."""
        made = f"mcp_{self._mark}_{call.key}"
        item: dict[str, Json] = {
            "id": made, "type": "mcp_call", "server_label": SERVER, "name": call.tool, "arguments": call.arguments or "{}",
            "output": None, "error": _tool_error(call), "approval_request_id": None, "status": _tool_status(call),
        }  # fmt: skip
        begun = b""
        if call.key not in self._calls:
            begun = self._close(None)
            self._calls[call.key] = len(self._output)
            self._output.append(item)
            where: dict[str, Json] = {"item_id": made, "output_index": self._calls[call.key]}
            started = {**item, "arguments": "", "status": "in_progress", "error": None}
            begun += self._event("response.output_item.added", output_index=self._calls[call.key], item=started)
            begun += self._event("response.mcp_call.in_progress", **where)
            begun += self._event("response.mcp_call_arguments.done", **where, arguments=item["arguments"])
        index = self._calls[call.key]
        if call.state not in _OVER or call.key in self._over:
            return begun
        self._over.add(call.key)
        self._output[index] = item
        kind = "response.mcp_call.completed" if item["status"] == "completed" else "response.mcp_call.failed"
        ended = self._event(kind, item_id=made, output_index=index)
        return begun + ended + self._event("response.output_item.done", output_index=index, item=item)

    def _handed(self, call: CallItem) -> bytes:
        """A call that the client has to carry out."""
        index = len(self._output)
        if call.name in self._custom:
            return self._custom_call(call, index)
        made, arguments = f"fc_{self._mark}_{index}", call.arguments or "{}"
        item: dict[str, Json] = {
            "id": made, "type": "function_call", "call_id": call.call, "arguments": arguments, "status": "completed",
            **self._named(call.name),
        }  # fmt: skip
        self._output.append(item)
        where: dict[str, Json] = {"item_id": made, "output_index": index}
        begun = {**item, "arguments": "", "status": "in_progress"}
        return (
            self._event("response.output_item.added", output_index=index, item=begun)
            + self._event("response.function_call_arguments.delta", **where, delta=arguments)
            + self._event("response.function_call_arguments.done", **where, name=item["name"], arguments=arguments)
            + self._event("response.output_item.done", output_index=index, item=item)
        )

    def _named(self, name: str) -> dict[str, Json]:
        """What a tool is called where the client has it."""
        found = self._spaces.get(name)
        return {"name": found[1], "namespace": found[0]} if isinstance(found, list) else {"name": name}

    def _custom_call(self, call: CallItem, index: int) -> bytes:
        made, given = f"ctc_{self._mark}_{index}", _input_of(call.arguments)
        item: dict[str, Json] = {
            "id": made, "type": "custom_tool_call", "call_id": call.call, "input": given, **self._named(call.name),
        }  # fmt: skip
        self._output.append(item)
        where: dict[str, Json] = {"item_id": made, "output_index": index}
        return (
            self._event("response.output_item.added", output_index=index, item={**item, "input": ""})
            + self._event("response.custom_tool_call_input.delta", **where, delta=given)
            + self._event("response.custom_tool_call_input.done", **where, input=given)
            + self._event("response.output_item.done", output_index=index, item=item)
        )

    def _refusal(self, words: str) -> bytes:
        made, index = f"msg_{self._mark}_refusal", len(self._output)
        part: dict[str, Json] = {"type": "refusal", "refusal": words}
        item = _message_item(made, "completed", "final_answer", [part], ours=False)
        self._output.append(item)
        where: dict[str, Json] = {"item_id": made, "output_index": index, "content_index": 0}
        begun = {**item, "status": "in_progress", "content": []}
        return (
            self._event("response.output_item.added", output_index=index, item=begun)
            + self._event("response.content_part.added", **where, part={"type": "refusal", "refusal": ""})
            + self._event("response.refusal.delta", **where, delta=words)
            + self._event("response.refusal.done", **where, refusal=words)
            + self._event("response.content_part.done", **where, part=part)
            + self._event("response.output_item.done", output_index=index, item=item)
        )

    # ------------------------------------------------------------------ the object

    def _finished(self, ended: Ended) -> dict[str, Json]:
        texts = [_said(item) for item in self._output if item["type"] == "message"]
        finish = finish_of(ended, texts[-1] if texts else "", data=self._job.data)
        status, reason, error = "completed", None, None
        if ended.exit.kind is ExitClass.REFUSED:
            status, reason = "incomplete", "content_filter"
        elif isinstance(ended.exit, exits.Cut) or (finish == "length" and ended.exit.kind is ExitClass.CLEAN):
            status, reason = "incomplete", "max_output_tokens"
        elif _was_cancelled(ended.exit):
            status = "cancelled"
        elif ended.exit.kind not in (ExitClass.CLEAN, ExitClass.HANDED):
            status, error = "failed", _error_of(ended.exit)
        return {
            **self._object(status),
            "incomplete_details": None if reason is None else {"reason": reason},
            "error": error,
            "usage": _usage_of(ended),
            "completed_at": self._job.created + ended.summary.seconds if status == "completed" else None,
            "outspoken": all_facts(ended, self._job.asked),
        }

    def _about(self, kind: str, status: str) -> bytes:
        return self._event(kind, response=self._object(status))

    def _object(self, status: str) -> dict[str, Json]:
        asked, again = self._job.asked, self._again
        reasoning, text = again.get("reasoning"), again.get("text")
        return {
            "id": f"resp_{self._mark}",
            "object": "response",
            "created_at": self._job.created,
            "status": status,
            "background": again.get("background", False),
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "instructions": again.get("instructions"),
            "max_output_tokens": again.get("max_output_tokens"),
            "max_tool_calls": None,
            "metadata": again.get("metadata", {}),
            "model": asked.model or "outspoken",
            "output": [*self._output],
            "parallel_tool_calls": asked.parameters.get("parallel_tool_calls", True),
            "previous_response_id": again.get("previous_response_id"),
            "conversation": {"id": asked.session} if asked.session else None,
            "reasoning": {"effort": None, "summary": None, **(reasoning if isinstance(reasoning, dict) else {})},
            "store": asked.kept,
            "text": {"format": {"type": "text"}, **(text if isinstance(text, dict) else {})},
            "tool_choice": again.get("tool_choice", "auto"),
            "tools": _tools(asked.tools, self._custom, self._spaces),
            "truncation": again.get("truncation", "disabled"),
            "usage": None,
            **{name: asked.parameters.get(name) for name in _TOLD_AS_IT_CAME},
        }

    def _event(self, kind: str, **facts: Json) -> bytes:
        event: dict[str, Json] = {"type": kind, "sequence_number": self._number, **facts}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(event))


def _message_item(made: str, status: str, phase: str | None, content: list[Json], *, ours: bool) -> dict[str, Json]:
    item: dict[str, Json] = {"id": made, "type": "message", "role": "assistant", "status": status, "content": content}
    if phase is not None:
        item["phase"] = phase
    return {**item, "outspoken": {"by": "gateway"}} if ours else item


def _text_part(text: str) -> dict[str, Json]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _said(item: Mapping[str, Json]) -> str:
    parts = item["content"]
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def _tools(tools: Sequence[Mapping[str, Json]], custom: Sequence[Json], spaces: Mapping[str, Json]) -> list[Json]:
    """The client's tools, as it brought them."""
    told: list[Json] = []
    inner: dict[str, list[Json]] = {}
    for tool in tools:
        function = tool.get("function")
        found: dict[str, Json] = dict(function) if isinstance(function, dict) else {}
        flat, where = str(found.get("name")), spaces.get(str(found.get("name")))
        among = told
        if isinstance(where, list):
            space, found["name"] = str(where[0]), where[1]
            if space not in inner:
                inner[space] = []
                told.append({"type": "namespace", "name": space, "description": "", "tools": inner[space]})
            among = inner[space]
        if flat in custom:
            among.append({"type": "custom", "name": found["name"], "description": found.get("description")})
        else:
            among.append({"type": "function", "parameters": None, "strict": None, **found})
    return told


def _tool_status(call: Bubble) -> str:
    match call.state:
        case ActivityState.DONE:
            return "completed"
        case ActivityState.FAILED:
            return "failed"
        case ActivityState.NOT_RUN | ActivityState.UNSURE:
            return "incomplete"
        case _:
            return "in_progress"


def _tool_error(call: Bubble) -> Json:
    match call.state:
        case ActivityState.FAILED:
            words = f"{call.tool} failed."
        case ActivityState.NOT_RUN:
            words = f"{call.tool} was not run."
        case ActivityState.UNSURE:
            words = f"{call.tool} may or may not have been done."
        case _:
            return None
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": words}]}


def _input_of(arguments: str) -> str:
    """The text in a call of a tool that takes one."""
    try:
        value: Json = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments
    given = value.get("input") if isinstance(value, dict) else None
    return given if isinstance(given, str) else arguments


def _was_cancelled(ending: Exit) -> bool:
    """Somebody wanted it so, before it began or while it ran."""
    withdrawn = isinstance(ending, exits.NeverStarted) and ending.reason is NotStarted.WITHDRAWN
    return withdrawn or ending.code is ExitCode.STOPPED


def _error_code(status: int) -> str:
    """The published code that comes nearest."""
    if status == 429:
        return "rate_limit_exceeded"
    return "invalid_prompt" if status in (400, 413, 422) else "server_error"


def _error_of(ending: Exit) -> dict[str, Json]:
    words = known_words(ending)
    return {"code": _error_code(status_of(ending)), "message": words, "param": None, "type": ending.code.value}


def _usage_of(ended: Ended) -> Json:
    summary = ended.summary
    if not summary.input_tokens and not summary.output_tokens:
        return None
    return {
        "input_tokens": summary.input_tokens,
        "input_tokens_details": {"cached_tokens": summary.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": summary.output_tokens,
        "output_tokens_details": {"reasoning_tokens": summary.reasoning_tokens},
        "total_tokens": summary.input_tokens + summary.output_tokens,
    }


RESPONSES = ApiEndpoint(read, ResponseSpelling)
