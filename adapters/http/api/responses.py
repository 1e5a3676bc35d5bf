"""``/v1/responses``: how it is answered, as a stream of typed events and as one object.

Each bubble of the turn is an item: what the model says a message, a call of the gateway's own tools an ``mcp_call`` of the server ``outspoken``
(which clients show, and do not carry out), a call of the client's tools a ``function_call``; what it thinks is an item of reasoning behind the bubble
after which it was thought. What the gateway says stands in ``error`` and in the ``outspoken`` object; for people (`ErrorsAs.WORDS`) it is a message
as well, behind all that the model says.

The order of items is that of the turn, whenever somebody looks: what is thought in the middle of a text is told behind it. So a response that is
asked for again is the one that was streamed. Numbers of events count on by one; of a response in the background, whose stream can be gone on with
behind any of them, a piece of text counts as many as it has characters, calls of the gateway's tools that run side by side are told one after the
other, and a text is cut at the same places whenever it is told: some clients (OpenAI's `responses.stream(response_id=…, starting_after=…)`) ask for all
of the stream, and leave out by the numbers what they have had.

Laws (tests/adapters/test_responses.py): every event and object is as the published schema has it; numbers of events have no gap (but for lengths of
texts in the background), items are begun before they grow and are over before the response is; what was streamed is what the object says at the end; what
comes behind an event is the same whenever it is asked for.

Source: OpenAI's API reference for responses, and the types of its Python SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import orjson

from adapters.contract.base import Ended, LeftOpen, Queued, Showing
from adapters.http.api.beside import all_facts
from adapters.http.api.facts import LEFT_OPEN, left_facts, queue_facts
from adapters.http.api.responseitems import (
    OVER,
    Item,
    annotations_of,
    input_of,
    logprobs_in,
    message_item,
    own_call_item,
    pictures_of,
    refusal_part,
    said_in,
    sound_of,
    text_part,
    thought_item,
    tools_told,
)
from adapters.http.api.responsesread import CUSTOM, SEALED, SPACES, read, thoughts_back
from adapters.http.api.spelling import ApiEndpoint, ApiJob
from adapters.http.api.spoken import Spoken, TextPiece, left_words
from adapters.http.api.truth import finish_of, known_words, refusal_of, shown, status_of
from adapters.http.common import Problem, on_one_line
from adapters.http.errorsas import ErrorsAs
from agent_core.failures import exits
from agent_core.failures.exits import Exit, ExitCode
from agent_core.failures.notices import ExitClass, NotStarted
from agent_core.jsonvalue import Json
from agent_core.records import NONE, dataclass
from agent_core.tools.arguments import for_programs
from agent_core.turn.state import CallItem
from agent_core.turn.view import Bubble

_DEFAULTS: Mapping[str, Json] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "service_tier": "default",
    "parallel_tool_calls": True,
    "user": None,
    "safety_identifier": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
}
"""What is told again as it came, and what the published schema has where nothing came."""


@dataclass(slots=True)
class _Growing:
    """The message, or the thought, that is growing."""

    key: str
    """Of the bubble; of a thought: of that behind which it stands."""
    id: str
    index: int
    kind: str
    """Of its pieces' events."""
    head: bytes
    """What stands in them before their numbers."""
    ours: bool = False
    texts: list[str] = field(default_factory=list[str])
    held: str = ""
    """Its end that is not told yet, where it is told in pieces of one size."""

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def part(self) -> Item:
        return refusal_part(self.text) if self.kind == _REFUSAL else text_part(self.text)


PIECE = 4
"""Characters of a piece of text where numbers stand for places: about as many as a token has."""
_TEXT, _REFUSAL, _THOUGHT = "response.output_text", "response.refusal", "response.reasoning_summary_text"


class ResponseSpelling:
    """One response."""

    def __init__(self, job: ApiJob) -> None:
        self._job = job
        asked, ticket = job.asked, job.ticket
        self._mark = f"{ticket.session}_{ticket.inbox_id}"
        self._again = asked.again or {}
        custom = self._again.get(CUSTOM)
        self._custom = frozenset(map(str, custom)) if isinstance(custom, list) else NONE
        spaces = self._again.get(SPACES)
        self._spaces = spaces if isinstance(spaces, dict) else {}
        self._number = 0
        self._after = job.after
        self._placed = job.placed
        """Numbers of events stand for places of the response."""
        self._output: list[Item] = []
        self._calls: dict[str, int] = {}
        """Where calls of the gateway's tools stand."""
        self._over: set[str] = set()
        """Those that are over."""
        self._running = ""
        """The one before which no other is told, where numbers stand for places."""
        self._waiting: dict[str, Bubble] = {}
        self._message: _Growing | None = None
        self._messages: dict[str, int] = {}
        """How many messages each bubble has come to: more than one, if it was taken back."""
        self._thought: _Growing | None = None
        """What the model thinks, while it grows."""
        self._thoughts = 0
        self._held: list[tuple[str, str]] = []
        """What was thought behind a bubble that is not told, or not over."""
        self._notes: list[TextPiece] = []
        """What the gateway says."""
        self._queued = False

    def listening(self) -> Spoken:
        status = self._job.errors is ErrorsAs.STATUS
        return Spoken(data=self._job.data, apart=True, ours=not status, refusals=status)

    # ------------------------------------------------------------------ streaming

    def begins(self) -> bytes:
        begun = self._about("response.created", "in_progress") + self._about("response.in_progress", "in_progress")
        self._number += self._placed  # whether it was queued or not
        return begun

    def queued(self, queued: Queued) -> bytes:
        if self._queued:
            return b""
        self._queued = True
        self._number -= self._placed
        return self._event("response.queued", response={**self._object("queued"), "outspoken": queue_facts(queued)})

    def says(self, pieces: Sequence[TextPiece]) -> bytes:
        message = self._message
        if len(pieces) == 1 and message is not None and message.key == pieces[0].key and pieces[0].act is None:
            return self._grow(message, pieces[0].text)  # as nearly always: many times a second
        return b"".join(map(self._says, pieces))

    def thinks(self, text: str, behind: str) -> bytes:
        told = not behind or behind in self._messages or behind in self._calls
        if told and (self._message is None or self._message.key != behind):
            return self._think(text, behind)
        self._held.append((behind, text))
        return b""

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
        said = self.says(rest) + self._last(ended) + self._release(all_of_it=True) + self._thought_over()
        while self._notes:
            said += self._opened(self._notes.pop(0)) + self._close(ended.exit)
        said += b"".join(self._picture(item) for item in pictures_of(ended, self._mark))
        said += self._sealed(ended) + b"".join(self._handed(n, call) for n, call in enumerate(ended.handed))
        refusal = refusal_of(ended, self._job.errors)
        if refusal:
            said += self._opened(TextPiece(refusal, key="refusal", refusal=True)) + self._close(ended.exit)
        return said

    def left(self, left: LeftOpen, rest: Sequence[TextPiece]) -> bytes:
        words = left_words(keyed=self._job.keyed)
        facts = left_facts(left, self._job.asked.session)
        return self.says(rest) + self._aside(code=LEFT_OPEN, message=words, param=None, outspoken=facts)

    def broken(self, reference: str) -> bytes:
        words = f"Something went wrong inside the gateway while it was showing this (reference {reference}). Get the response by its id."
        return self._aside(code=ExitCode.INTERNAL_ERROR.value, message=words, param=None)

    def failed(self, problem: Problem) -> bytes:
        error: dict[str, Json] = {
            "code": _error_code(problem.status), "message": problem.message, "param": problem.param, "type": problem.code,
        }  # fmt: skip
        whole: dict[str, Json] = {**self._object("failed"), "error": error, "outspoken": dict(problem.facts)}
        return self.begins() + self._event("response.failed", response=whole)

    # ------------------------------------------------------------------ as one object

    def whole(self, ended: Ended) -> dict[str, Json]:
        if self._job.thinking:
            for behind, text in ended.thought.placed(0):
                self.thinks(text, behind)
        self._all(ended, self.listening().new(shown(ended)))
        return self._finished(ended)

    def unfinished(self, sight: Queued | Showing | LeftOpen | None) -> dict[str, Json]:
        match sight:
            case None:
                return self._object("queued")
            case Queued():
                return {**self._object("queued"), "outspoken": queue_facts(sight)}
            case Showing():
                for behind, text in sight.thought.placed(0) if self._job.thinking else ():
                    self.thinks(text, behind)
                self.says(self.listening().new(sight.view))
                self._show_growing()
                return {**self._object("in_progress"), "outspoken": {"turn": sight.turn, "going_on": True}}
            case LeftOpen():
                self.says(self.listening().new(sight.view))
                self._show_growing()
                return {**self._object("in_progress"), "outspoken": left_facts(sight, self._job.asked.session)}

    def _show_growing(self) -> None:
        if (message := self._message) is not None:
            item = message_item(message.id, "in_progress", None, [message.part], ours=message.ours)
            self._output[message.index] = item
        if (thought := self._thought) is not None:
            self._output[thought.index] = thought_item(thought.id, "in_progress", thought.text)

    # ------------------------------------------------------------------ what is said

    def _says(self, piece: TextPiece) -> bytes:
        if piece.act is not None:
            return self._act(piece.act)
        if piece.ours:  # it has no place among what the model thinks
            self._notes.append(piece)
            return b""
        message = self._message
        if message is not None and message.key == piece.key:
            return self._grow(message, piece.text)
        return self._opened(piece)

    def _opened(self, piece: TextPiece) -> bytes:
        before = self._close(None)
        opened, message = self._begin(piece)
        return before + opened + self._grow(message, piece.text)

    def _begin(self, piece: TextPiece) -> tuple[bytes, _Growing]:
        times = self._messages.get(piece.key, 0)
        self._messages[piece.key] = times + 1
        made = f"msg_{self._mark}_{piece.key}{f'_{times + 1}' if times else ''}"
        kind = _REFUSAL if piece.refusal else _TEXT
        where: dict[str, Json] = {"item_id": made, "output_index": len(self._output), "content_index": 0}
        beside: dict[str, Json] = where if piece.refusal else {**where, "logprobs": []}
        self._message = message = _Growing(piece.key, made, len(self._output), kind, _head(kind, beside), piece.ours)
        item = message_item(made, "in_progress", None, [], ours=piece.ours)
        added = self._added(item)
        return added + self._event("response.content_part.added", **where, part=message.part), message

    def _grow(self, growing: _Growing, text: str) -> bytes:
        growing.texts.append(text)
        if not self._placed:
            return self._piece(growing, text)
        if not text:
            return self._piece(growing, "")
        held = growing.held + text
        told = len(held) - len(held) % PIECE
        growing.held = held[told:]
        return self._pieces(growing, held[:told])

    def _all_told(self, growing: _Growing) -> bytes:
        """It grows no more, so what is left of it is a piece, too."""
        held, growing.held = growing.held, ""
        return self._pieces(growing, held)

    def _pieces(self, growing: _Growing, text: str) -> bytes:
        return b"".join(self._piece(growing, text[at : at + PIECE]) for at in range(0, len(text), PIECE))

    def _piece(self, growing: _Growing, text: str) -> bytes:
        number = self._number
        self._number = number + 1
        if self._placed:
            self._number = number + (len(text) or 1)
            if self._number - 1 <= self._after:
                return b""
            text = text[max(0, self._after + 1 - number) :]
            number = self._number - 1
        told = orjson.dumps(text)
        return b'%b%d,"delta":%b}\n\n' % (growing.head, number, told if text.isascii() else on_one_line(told))

    def _close(self, ending: Exit | None, ended: Ended | None = None) -> bytes:
        """What was growing is over: because something else begins (None), or at the end. Then comes what was thought behind it."""
        thought = self._thought_over()
        message = self._message
        if message is None:
            return thought + self._release() + self._thought_over()
        # for those who put all texts behind one another
        alone = message.kind == _REFUSAL or (ending is not None and not self._notes)
        apart = b"" if alone else self._grow(message, "\n\n")
        apart += self._all_told(message)
        self._message = None
        beside_calls = ending is None or ending.kind is ExitClass.HANDED
        phase = None if message.ours else "commentary" if beside_calls else "final_answer"
        whole = ending is None or ending.kind in (ExitClass.CLEAN, ExitClass.HANDED) or message.ours
        whole = whole or message.kind == _REFUSAL
        part, beside, sound = message.part, b"", {}
        where: dict[str, Json] = {"item_id": message.id, "output_index": message.index, "content_index": 0}
        if ended is not None and message.kind == _TEXT and not message.ours:
            part = text_part(message.text, annotations_of(ended), logprobs_in(ended))
            sound = sound_of(ended)
            beside = self._sound(sound) + self._sources(part["annotations"], where)
        item = message_item(message.id, "completed" if whole else "incomplete", phase, [part], ours=message.ours)
        if sound:
            item["audio"] = sound
        told = {name: part[name] for name in ("text", "refusal", "logprobs") if name in part}
        done = self._event(f"{message.kind}.done", **where, **told)
        done += self._event("response.content_part.done", **where, part=part)
        return (
            thought + apart + beside + done + self._done(message.index, item) + self._release() + self._thought_over()
        )

    def _last(self, ended: Ended) -> bytes:
        """The end of the last message, with what the reply has beside its words; where it has none, of one without."""
        message, opened = self._message, b""
        beside = annotations_of(ended) or logprobs_in(ended) or sound_of(ended)
        if beside and (message is None or message.ours or message.kind == _REFUSAL):
            opened = self._says(TextPiece("", key="beside"))
        return opened + self._close(ended.exit, ended)

    def _sources(self, annotations: Json, where: Mapping[str, Json]) -> bytes:
        found = annotations if isinstance(annotations, list) else []
        return b"".join(
            self._event("response.output_text.annotation.added", **where, annotation_index=index, annotation=each)
            for index, each in enumerate(found)
        )

    def _sound(self, sound: Mapping[str, Json]) -> bytes:
        if not sound:
            return b""
        told = self._event("response.audio.delta", delta=sound["data"]) + self._event("response.audio.done")
        if words := sound.get("transcript"):
            told += self._event("response.audio.transcript.delta", delta=words)
            told += self._event("response.audio.transcript.done")
        return told

    # ------------------------------------------------------------------ what is thought

    def _think(self, text: str, behind: str) -> bytes:
        thought, opened = self._thought, b""
        if thought is None or thought.key != behind:
            opened = self._close(None) if thought is not None or self._message is not None else b""
            made = f"rs_{self._mark}_{self._thoughts}"
            self._thoughts += 1
            where: dict[str, Json] = {"item_id": made, "output_index": len(self._output), "summary_index": 0}
            thought = self._thought = _Growing(behind, made, len(self._output), _THOUGHT, _head(_THOUGHT, where))
            opened += self._added(thought_item(made, "in_progress", None))
            part: dict[str, Json] = {"type": "summary_text", "text": ""}
            opened += self._event("response.reasoning_summary_part.added", **where, part=part)
            text = text.lstrip("\n")
        return opened + self._grow(thought, text) if text else opened

    def _thought_over(self) -> bytes:
        """Something else begins: the thought that was growing is whole."""
        thought, self._thought = self._thought, None
        if thought is None:
            return b""
        where: dict[str, Json] = {"item_id": thought.id, "output_index": thought.index, "summary_index": 0}
        part: dict[str, Json] = {"type": "summary_text", "text": thought.text}
        item = thought_item(thought.id, "completed", thought.text)
        return (
            self._all_told(thought)
            + self._event("response.reasoning_summary_text.done", **where, text=thought.text)
            + self._event("response.reasoning_summary_part.done", **where, part=part)
            + self._done(thought.index, item)
        )

    def _release(self, *, all_of_it: bool = False) -> bytes:
        """What was held back until the bubble was over behind which it stands."""
        if not self._held:
            return b""
        held, self._held = self._held, []
        told = b""
        for behind, text in held:
            told += self._think(text, behind) if all_of_it else self.thinks(text, behind)
        return told

    def _sealed(self, ended: Ended) -> bytes:
        """What a client brings back that keeps the conversation itself: nobody but the gateway can read it."""
        include = self._again.get("include")
        if self._job.seal is None or not isinstance(include, list) or SEALED not in include:
            return b""
        thoughts = thoughts_back(ended)
        if not thoughts:
            return b""
        sealed = self._job.seal(thoughts)
        if not sealed:
            return b""
        item = thought_item(f"rs_{self._mark}_sealed", "completed", None, sealed)
        return self._added(item) + self._done(len(self._output) - 1, item)

    # ------------------------------------------------------------------ what is made and called

    def _picture(self, item: Item) -> bytes:
        index = len(self._output)
        begun = self._added({**item, "status": "in_progress", "result": None})
        for word in ("in_progress", "generating", "completed"):
            begun += self._event(f"response.image_generation_call.{word}", item_id=item["id"], output_index=index)
        return begun + self._done(index, item)

    def _act(self, call: Bubble) -> bytes:
        """A call of the gateway's own tools has come further."""
        if self._placed and self._running not in ("", call.key):
            self._waiting[call.key] = call
            return b""
        item = own_call_item(f"mcp_{self._mark}_{call.key}", call)
        begun = b""
        if call.key not in self._calls:
            begun = self._close(None)
            self._running = call.key
            self._calls[call.key] = len(self._output)
            where: dict[str, Json] = {"item_id": item["id"], "output_index": len(self._output)}
            begun += self._added({**item, "arguments": "", "output": None, "error": None, "status": "in_progress"})
            begun += self._event("response.mcp_call.in_progress", **where)
            begun += self._event("response.mcp_call_arguments.delta", **where, delta=item["arguments"])
            begun += self._event("response.mcp_call_arguments.done", **where, arguments=item["arguments"])
        index = self._calls[call.key]
        if call.state not in OVER or call.key in self._over:
            return begun + self._release()
        self._over.add(call.key)
        self._running = ""
        kind = "response.mcp_call.completed" if item["status"] == "completed" else "response.mcp_call.failed"
        ended = self._event(kind, item_id=item["id"], output_index=index) + self._done(index, item)
        told = begun + ended
        if self._waiting:  # that one tells the others, as soon as it is over
            told += self._act(self._waiting.pop(next(iter(self._waiting))))
        # Whoever looks later may be told of a call and of what was thought behind it at once
        return told + self._release()

    def _handed(self, n: int, call: CallItem) -> bytes:
        """A call that the client has to carry out."""
        if call.name in self._custom:
            return self._custom_call(n, call)
        made, arguments = f"fc_{self._mark}_{n}", for_programs(call.arguments)
        item: Item = {
            "id": made, "type": "function_call", "call_id": call.call, "arguments": arguments, "status": "completed",
            **self._named(call.name),
        }  # fmt: skip
        where: dict[str, Json] = {"item_id": made, "output_index": len(self._output)}
        return (
            self._added({**item, "arguments": "", "status": "in_progress"})
            + self._event("response.function_call_arguments.delta", **where, delta=arguments)
            + self._event("response.function_call_arguments.done", **where, name=item["name"], arguments=arguments)
            + self._done(len(self._output) - 1, item)
        )

    def _named(self, name: str) -> dict[str, Json]:
        """What a tool is called where the client has it."""
        found = self._spaces.get(name)
        return {"name": found[1], "namespace": found[0]} if isinstance(found, list) else {"name": name}

    def _custom_call(self, n: int, call: CallItem) -> bytes:
        made, given = f"ctc_{self._mark}_{n}", input_of(call.arguments)
        item: Item = {
            "id": made, "type": "custom_tool_call", "call_id": call.call, "input": given, "status": "completed",
            **self._named(call.name),
        }  # fmt: skip
        where: dict[str, Json] = {"item_id": made, "output_index": len(self._output)}
        return (
            self._added({**item, "input": "", "status": "in_progress"})
            + self._event("response.custom_tool_call_input.delta", **where, delta=given)
            + self._event("response.custom_tool_call_input.done", **where, input=given)
            + self._done(len(self._output) - 1, item)
        )

    # ------------------------------------------------------------------ the object

    def _finished(self, ended: Ended) -> dict[str, Json]:
        texts = [said_in(item) for item in self._output if item["type"] == "message"]
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
            "completed_at": self._job.created + int(ended.summary.seconds) if status == "completed" else None,
            "outspoken": all_facts(ended, self._job.asked, self._job.ticket.session),
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
            "max_tool_calls": asked.most_tool_calls or None,
            "metadata": again.get("metadata", {}),
            "model": asked.model or "outspoken",
            "output": [*self._output],
            "previous_response_id": again.get("previous_response_id"),
            "conversation": {"id": asked.session} if asked.session else None,
            "reasoning": {"effort": None, "summary": None, **(reasoning if isinstance(reasoning, dict) else {})},
            "store": asked.kept,
            "text": {"format": {"type": "text"}, **(text if isinstance(text, dict) else {})},
            "tool_choice": again.get("tool_choice", "auto"),
            "tools": tools_told(asked.tools, self._custom, self._spaces),
            "truncation": again.get("truncation", "disabled"),
            "usage": None,
            **{name: asked.parameters.get(name, default) for name, default in _DEFAULTS.items()},
        }

    def _added(self, item: Item) -> bytes:
        self._output.append(item)
        return self._event("response.output_item.added", output_index=len(self._output) - 1, item=item)

    def _done(self, index: int, item: Item) -> bytes:
        self._output[index] = item
        return self._event("response.output_item.done", output_index=index, item=item)

    def _aside(self, **facts: Json) -> bytes:
        """This stream ends, and the response goes on. Where numbers stand for places that is none: whoever goes on behind it has missed nothing."""
        number = max(self._number - 1, self._after) if self._placed else self._number
        return _told("error", number, facts)

    def _event(self, kind: str, **facts: Json) -> bytes:
        number = self._number
        self._number = number + 1
        return b"" if number <= self._after else _told(kind, number, facts)


def _told(kind: str, number: int, facts: Mapping[str, Json]) -> bytes:
    event: dict[str, Json] = {"type": kind, "sequence_number": number, **facts}
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), on_one_line(orjson.dumps(event)))


def _head(kind: str, where: Mapping[str, Json]) -> bytes:
    """What stands before the number and the text in an event with a piece of it."""
    head = orjson.dumps({"type": f"{kind}.delta", **where}).removesuffix(b"}")
    return b'event: %b.delta\ndata: %b,"sequence_number":' % (kind.encode(), head)


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
