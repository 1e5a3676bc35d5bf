"""``/v1/chat/completions``: how it is asked and answered.

Statuses and tool activity are comments of the event stream, so that no client takes them for the reply; notices are ordinary text, so that
no client misses them. A refusal stands in the place that is for it and is text as well, as many clients look at the text alone and would show nothing;
only who asks for data has it there alone.

Source: OpenAI's API reference for chat completions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import orjson

from adapters.contract.base import Ended, LeftOpen, Queued, Showing
from adapters.http.api.asked import ApiRequest, KnownItems
from adapters.http.api.beside import all_facts, logprobs_of, made_fields, of_call, opaque_thoughts
from adapters.http.api.facts import BY_US, left_facts, queue_facts
from adapters.http.api.spelling import ApiEndpoint, ApiJob
from adapters.http.api.spoken import Spoken, TextPiece, left_words, text_of
from adapters.http.api.truth import finish_of, refusal_of, shown
from adapters.http.common import Problem, error_object, on_one_line
from adapters.http.errorsas import ErrorsAs
from adapters.http.openai_request import parse
from agent_core.failures.exits import ExitCode
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from agent_core.text.ours import ours
from agent_core.tools.arguments import for_programs
from agent_core.turn.view import View

_TEXT_TAIL = b'},"logprobs":null,"finish_reason":null}]}\n\n'
_DONE = b"data: [DONE]\n\n"
BROKEN_WORDS = (
    "Something went wrong inside the gateway while it was showing this (reference {reference}). The turn itself "
    "goes on; ask again with the same Idempotency-Key to get what came of it."
)


def read(body: bytes, session: str, _: KnownItems | None = None) -> ApiRequest | Problem:
    """The request in a body."""
    chat = parse(body, session)
    if isinstance(chat, Problem):
        return chat
    history, latest = chat.split()
    system = [message for message in chat.messages if message["role"] in ("system", "developer")]
    return ApiRequest(
        model=chat.model,
        history=history,
        latest=latest,
        system=tuple(InputMessage(content=each.get("content"), role=str(each["role"])) for each in system),
        tools=chat.tools,
        parameters=chat.parameters,
        client_output_limit=chat.client_output_limit,
        session=chat.session,
        user=chat.user,
        stream=chat.stream,
        include_usage=chat.include_usage,
        digest=chat.digest,
        wish=chat.wish,
        left_out=chat.left_out,
    )


class Completion:
    """One chat completion."""

    def __init__(self, job: ApiJob) -> None:
        self._asked = job.asked
        self._job = job
        self._data = job.data
        self._said: list[str] = []
        """The data so far, if it is data that was asked for."""
        self._head: dict[str, Json] = {
            # One id for all chunks, also those before the turn begins, and for every retry of the same request.
            "id": f"chatcmpl-{job.ticket.session}-{job.ticket.inbox_id}",
            "object": "chat.completion.chunk",
            "created": job.created,
            "model": job.asked.model or "outspoken",
        }
        head = orjson.dumps({**self._head, "choices": []})
        self._text_head = b"data: " + head.removesuffix(b"]}") + b'{"index":0,"delta":{"content":'
        """What stands before the text in a chunk with text: such a chunk goes out many times a second."""

    def listening(self) -> Spoken:
        return Spoken(data=self._job.data, refusals=self._job.errors is ErrorsAs.STATUS)

    # ------------------------------------------------------------------ streaming

    def begins(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def queued(self, queued: Queued) -> bytes:
        return self._chunk({}, outspoken=queue_facts(queued))

    def says(self, pieces: Sequence[TextPiece]) -> bytes:
        """A chunk for each run of words of the model's or of ours; ours say so."""
        if self._data:
            self._said.append(text_of(pieces))
        if len(pieces) == 1 and not pieces[0].ours and not pieces[0].refusal:
            text = pieces[0].text  # many times a second
            told = orjson.dumps(text)
            return self._text_head + (told if text.isascii() else on_one_line(told)) + _TEXT_TAIL
        chunks: list[bytes] = []
        for (is_ours, refuses), run in itertools.groupby(pieces, key=lambda piece: (piece.ours, piece.refusal)):
            text = text_of(run)
            if refuses:
                refused: dict[str, Json] = {"refusal": text}
                chunks.append(self._chunk(refused if self._job.data else {"content": text, **refused}))
            elif is_ours:
                chunks.append(self._chunk({"content": text, "outspoken": BY_US}))
            else:
                chunks.append(self._text_head + on_one_line(orjson.dumps(text)) + _TEXT_TAIL)
        return b"".join(chunks)

    def ended(self, ended: Ended, rest: Sequence[TextPiece]) -> bytes:
        """The rest of the text, the finish reason with what really happened, usage if asked for, and the end mark."""
        parts = [self.says(rest)]
        calls = self._calls(ended)
        if calls:
            numbered: list[Json] = [{"index": i, **c} for i, c in enumerate(calls) if isinstance(c, dict)]
            parts.append(self._chunk({"tool_calls": numbered}))
        if refusal := refusal_of(ended, self._job.errors):
            parts.append(self._chunk({"refusal": refusal}))
        if beside := {**made_fields(ended), **(opaque_thoughts(ended) if self._job.thinking else {})}:
            parts.append(self._chunk(beside))
        facts = all_facts(ended, self._asked)
        finish = finish_of(ended, "".join(self._said), data=self._job.data)
        parts.append(self._chunk({}, finish, logprobs_of(ended), outspoken=facts))
        if self._asked.include_usage and (usage := usage_of(ended)):
            parts.append(_event({**self._head, "choices": [], "usage": usage}))
        return b"".join([*parts, _DONE])

    def left(self, left: LeftOpen, rest: Sequence[TextPiece]) -> bytes:
        pieces = [*rest, TextPiece(f"\n\n{ours(left_words(keyed=self._job.keyed))}", ours=True)]
        end = self._chunk({}, "length", outspoken=left_facts(left, self._asked.session))
        return self.says(pieces) + end + _DONE

    def broken(self, reference: str) -> bytes:
        said = TextPiece(f"\n\n{ours(BROKEN_WORDS.format(reference=reference))}", ours=True)
        end = self._chunk({}, "length", outspoken={"exit": ExitCode.INTERNAL_ERROR.value, "reference": reference})
        return self.says([said]) + end + _DONE

    def failed(self, problem: Problem) -> bytes:
        return _event(error_object(problem)) + _DONE

    def thinks(self, text: str, behind: str) -> bytes:  # noqa: ARG002 - here it has one place
        return self._chunk({"reasoning_content": text})

    def _calls(self, ended: Ended) -> list[Json]:
        """The client's tool calls, with what their provider wants to have back with them."""
        calls = calls_of(ended)
        if not self._job.thinking:
            return calls
        return [{**call, **of_call(ended, str(call["id"]))} for call in calls if isinstance(call, dict)]

    def _chunk(
        self, delta: dict[str, Json], finish: str | None = None, logprobs: dict[str, Json] | None = None, **more: Json
    ) -> bytes:
        choice: dict[str, Json] = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return _event({**self._head, "choices": [choice], **more})

    # ------------------------------------------------------------------ as one object

    def whole(self, ended: Ended) -> dict[str, Json]:
        errors, data = self._job.errors, self._job.data
        pieces = self.listening().new(shown(ended))
        text = text_of(piece for piece in pieces if not (data and piece.refusal))
        refusal = text_of(piece for piece in pieces if piece.refusal) or refusal_of(ended, errors)
        calls = self._calls(ended)
        content = text or (None if calls or refusal else "")
        message: dict[str, Json] = {"role": "assistant", "content": content, "refusal": refusal or None}
        if calls:
            message["tool_calls"] = calls
        message |= made_fields(ended)
        if self._job.thinking:
            thought = ended.thought.beyond(0)
            message |= {**({"reasoning_content": thought} if thought else {}), **opaque_thoughts(ended)}
        finish, facts = finish_of(ended, text, data=data), all_facts(ended, self._asked)
        return self._object(message, finish, usage_of(ended), facts, logprobs_of(ended))

    def unfinished(self, sight: Queued | Showing | LeftOpen | None) -> dict[str, Json]:
        left = sight if isinstance(sight, LeftOpen) else LeftOpen("", View((), open=True))
        text = f"{text_of(Spoken().new(left.view))}\n\n{ours(left_words(keyed=self._job.keyed))}".lstrip()
        message: dict[str, Json] = {"role": "assistant", "content": text, "refusal": None}
        return self._object(message, "length", {}, left_facts(left, self._asked.session))

    def _object(
        self,
        message: dict[str, Json],
        finish: str,
        usage: dict[str, Json],
        facts: dict[str, Json],
        logprobs: dict[str, Json] | None = None,
    ) -> dict[str, Json]:
        choice: dict[str, Json] = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            **({"usage": usage} if usage else {}),
            "outspoken": facts,
        }


def _event(chunk: Mapping[str, Json]) -> bytes:
    return b"data: " + on_one_line(orjson.dumps(chunk)) + b"\n\n"


def usage_of(ended: Ended) -> dict[str, Json]:
    """What was used, as far as it is known; empty if nothing is."""
    summary = ended.summary
    if not summary.input_tokens and not summary.output_tokens:
        return {}
    used: dict[str, Json] = {
        "prompt_tokens": summary.input_tokens,
        "completion_tokens": summary.output_tokens,
        "total_tokens": summary.input_tokens + summary.output_tokens,
    }
    if summary.cached_tokens:
        used["prompt_tokens_details"] = {"cached_tokens": summary.cached_tokens}
    if summary.reasoning_tokens:
        used["completion_tokens_details"] = {"reasoning_tokens": summary.reasoning_tokens}
    return used


def calls_of(ended: Ended) -> list[Json]:
    """The client's tool calls, as the endpoint spells them."""
    return [
        {
            "id": call.call,
            "type": "function",
            "function": {"name": call.name, "arguments": for_programs(call.arguments)},
        }
        for call in ended.handed
    ]


COMPLETIONS = ApiEndpoint(read, Completion)
