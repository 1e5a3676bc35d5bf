"""Reads the chunks of a Chat Completions stream into events of a turn. Pure, incremental, no clock of its own.

Theory. Servers send the same things in many groupings: several calls in one delta, name and arguments and end together,
arguments before the id, indexes out of order or missing, ids repeated, text tool calls in the Hermes form, reasoning in one
of three places. `ChunkReader` knows them all and gives one plain order of events: a call is named once, its arguments follow.
Text of one socket read comes as one event, so the cost per token stays small.

What it sees beside content is kept in attributes: the finish reason, usage, an error object, whether anything at all looked
like a chat completion.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from agent_core.events import Event, ReasoningArrived, TextArrived, ToolArgumentsArrived, ToolCallCut, ToolCallNamed
from agent_core.model.text_calls import Piece, TextCall, TextCallBroken, TextCallOpened, TextCallParser, VisibleText
from agent_core.model.thoughts import ThoughtSplitter
from agent_core.tools.base import Json
from agent_core.wellformed import well_formed

MAX_CALLS = 1_024
"""A reply that asks for more than this is cut, like one that is too long: what is kept of a stream must have an end."""
TEXT_CALL_INDEX = 10_000
"""Calls in the text form are numbered from here, behind native ones."""


@dataclass(slots=True)
class _Slot:
    """A native tool call that is arriving."""

    index: int
    provider_id: str = ""
    name: str = ""
    early: list[str] = field(default_factory=list[str])
    """Arguments that came before the name."""
    arguments_seen: bool = False


class ChunkReader:
    """Feed the payloads of ``data:`` lines; get events. One reader a model call."""

    __slots__ = (
        "_at",
        "_by_id",
        "_by_index",
        "_high_surrogate",
        "_number",
        "_open_text_calls",
        "_parser",
        "_reasoning",
        "_slots",
        "_taken",
        "_text",
        "_text_call_ids",
        "_thoughts",
        "bad_chunk",
        "cached_tokens",
        "chars",
        "done",
        "error",
        "finish_reason",
        "full",
        "input_tokens",
        "output_tokens",
        "recognised",
    )

    def __init__(self, number: int, taken_ids: Iterable[str], *, parse_text_calls: bool) -> None:
        self._number = number
        self._taken = set(taken_ids)
        self._parser = TextCallParser() if parse_text_calls else None
        self._thoughts = ThoughtSplitter()
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._text_call_ids: dict[int, str] = {}
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._at = 0
        self._high_surrogate = ""
        self._open_text_calls: set[int] = set()
        self.finish_reason = ""
        self.done = False
        """``[DONE]`` was seen."""
        self.input_tokens = 0
        self.output_tokens = 0
        self.cached_tokens = 0
        self.error: Json = None
        """An error object that the stream carried."""
        self.bad_chunk = False
        """A payload was no JSON object."""
        self.recognised = False
        """At least one payload was a chat completion (chunk)."""
        self.chars = 0
        self.full = False
        """It asks for more calls than are taken; those beyond were left out."""

    def feed(self, payloads: Iterable[bytes], at: int) -> list[Event]:
        """Events of some payloads that came together at `at` (ms), in order. Stops at ``[DONE]``, an error or bad JSON."""
        self._at = at
        events: list[Event] = []
        for payload in payloads:
            if self.done or self.error is not None or self.bad_chunk:
                break
            if payload.strip() == b"[DONE]":
                self.done = True
                break
            chunk = decoded(payload)
            if not isinstance(chunk, dict):
                self.bad_chunk = True
                break
            self._chunk(chunk, events)
        self._flush(events)
        return events

    def finish(self, at: int) -> list[Event]:
        """The stream is over, well or not: what was held back, and the calls that are known to be incomplete."""
        self._at = at
        events: list[Event] = []
        if self._high_surrogate:
            self._high_surrogate = ""
            self._add_text("�", events)
        reasoning, text = self._thoughts.finish()
        if reasoning:
            self._reasoning.append(reasoning)
        if text:
            self._visible(text, events)
        if self._parser is not None:
            self._pieces(self._parser.finish(), events)
        self._flush(events)
        events += [ToolCallCut(at=at, name="") for slot in self._slots if not slot.name]
        return events

    def whole(self, body: Json, at: int) -> list[Event]:
        """A plain (not streamed) chat completion, as some servers answer in spite of ``stream``."""
        self._at = at
        events: list[Event] = []
        if isinstance(body, dict):
            self._chunk(body, events)
        else:
            self.bad_chunk = True
        self._flush(events)
        self.done = True
        return events

    # ------------------------------------------------------------------ one chunk

    def _chunk(self, chunk: dict[str, Json], events: list[Event]) -> None:
        error = chunk.get("error")
        if error:
            self.error = chunk if isinstance(error, str) else error
            return
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self.input_tokens = _count(usage.get("prompt_tokens"), self.input_tokens)
            self.output_tokens = _count(usage.get("completion_tokens"), self.output_tokens)
            details = usage.get("prompt_tokens_details")
            if isinstance(details, dict):
                self.cached_tokens = _count(details.get("cached_tokens"), self.cached_tokens)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return
        self.recognised = True
        choice = choices[0] if choices else None
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta, events)
        elif isinstance(choice.get("text"), str):
            self._add_text(str(choice["text"]), events)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = well_formed(reason)
        if choice.get("error"):
            self.error = choice["error"]

    def _delta(self, delta: dict[str, Json], events: list[Event]) -> None:
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            self._add_reasoning(reasoning, events)
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                self._add_text(content, events)
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    self._add_text(str(part["text"]), events)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._add_text(refusal, events)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for entry in calls:
                if isinstance(entry, dict):
                    self._native(entry, events)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            self._native({"index": 0, "function": legacy}, events)

    # ------------------------------------------------------------------ text and reasoning

    def _add_reasoning(self, text: str, events: list[Event]) -> None:
        if self._text:
            self._flush(events)
        self._reasoning.append(text)
        self.chars += len(text)

    def _add_text(self, text: str, events: list[Event]) -> None:
        text = self._whole_characters(text)
        self.chars += len(text)
        reasoning, text = self._thoughts.feed(text)
        if reasoning:
            self._add_reasoning(reasoning, events)
        if text:
            self._visible(text, events)

    def _visible(self, text: str, events: list[Event]) -> None:
        if self._parser is None:
            self._say(text, events)
        else:
            self._pieces(self._parser.feed(text), events)

    def _say(self, text: str, events: list[Event]) -> None:
        if self._reasoning:
            self._flush(events)
        self._text.append(text)

    def _whole_characters(self, text: str) -> str:
        """`text` without lone surrogates: one that was cut between two chunks is joined, any other is replaced."""
        if self._high_surrogate:
            text, self._high_surrogate = self._high_surrogate + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._high_surrogate = text[:-1], text[-1]
        return well_formed(text)

    def _flush(self, events: list[Event]) -> None:
        if self._reasoning:
            events.append(ReasoningArrived(at=self._at, text=well_formed("".join(self._reasoning))))
            self._reasoning.clear()
        if self._text:
            events.append(TextArrived(at=self._at, text="".join(self._text)))
            self._text.clear()

    def _pieces(self, pieces: Iterable[Piece], events: list[Event]) -> None:
        for piece in pieces:
            match piece:
                case VisibleText():
                    if piece.text:
                        self._say(piece.text, events)
                case TextCallOpened():
                    if piece.name:
                        self._open_text_call(piece.index, piece.name, events)
                case TextCall():
                    self._open_text_call(piece.index, piece.name, events)
                    if piece.index not in self._text_call_ids:
                        continue
                    index = TEXT_CALL_INDEX + piece.index
                    events.append(ToolArgumentsArrived(at=self._at, index=index, text=well_formed(piece.arguments)))
                    self._open_text_calls.discard(piece.index)
                case TextCallBroken():
                    self._flush(events)
                    index = TEXT_CALL_INDEX + piece.index if piece.index in self._open_text_calls else -1
                    events.append(ToolCallCut(at=self._at, name=well_formed(piece.name or ""), index=index))

    def _open_text_call(self, index: int, name: str, events: list[Event]) -> None:
        if index in self._text_call_ids or not self._room():
            return
        self._flush(events)
        call = self._own_id(TEXT_CALL_INDEX + index)
        self._text_call_ids[index] = call
        self._open_text_calls.add(index)
        events.append(ToolCallNamed(at=self._at, index=TEXT_CALL_INDEX + index, call=call, name=well_formed(name)))

    def _room(self) -> bool:
        """Whether one more call is taken."""
        self.full = self.full or len(self._slots) + len(self._text_call_ids) >= MAX_CALLS
        return not self.full

    # ------------------------------------------------------------------ native tool calls

    def _native(self, entry: dict[str, Json], events: list[Event]) -> None:
        function = entry.get("function")
        function = function if isinstance(function, dict) else entry
        name = function.get("name")
        name = well_formed(name) if isinstance(name, str) else ""
        provider_id = entry.get("id")
        provider_id = well_formed(provider_id) if isinstance(provider_id, str) else ""
        index = entry.get("index")
        slot = self._slot(index if isinstance(index, int) else None, provider_id, name)
        if slot is None:
            return
        if provider_id and not slot.provider_id:
            slot.provider_id = provider_id
            self._by_id.setdefault(provider_id, slot)
        if name and not slot.name:
            slot.name = name
            self._flush(events)
            events.append(ToolCallNamed(at=self._at, index=slot.index, call=self._id_for(slot), name=name))
            if slot.early:
                self._arguments(slot, "".join(slot.early), events)
                slot.early.clear()
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):
            arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        if isinstance(arguments, str) and arguments:
            arguments = well_formed(arguments)
            self.chars += len(arguments)
            slot.arguments_seen = True
            if slot.name:
                self._arguments(slot, arguments, events)
            else:
                slot.early.append(arguments)

    def _arguments(self, slot: _Slot, text: str, events: list[Event]) -> None:
        last = events[-1] if events else None
        if isinstance(last, ToolArgumentsArrived) and last.index == slot.index and not self._text:
            events[-1] = ToolArgumentsArrived(at=self._at, index=slot.index, text=last.text + text)
            return
        self._flush(events)
        events.append(ToolArgumentsArrived(at=self._at, index=slot.index, text=text))

    def _slot(self, index: int | None, provider_id: str, name: str) -> _Slot | None:
        """The call that a piece belongs to, for servers that number calls, that only name ids, and that do neither.

        None if it would be one call too many.
        """
        latest = self._slots[-1] if self._slots else None
        found: _Slot | None = None
        if index is not None:
            found = self._by_index.get(index)
            if found is not None and self._is_another(found, provider_id, name):
                found, index = None, None
        elif provider_id:
            found = self._by_id.get(provider_id)
            if found is None and latest is not None and not latest.provider_id and not (name and latest.name):
                found = latest
        elif latest is not None and not (name and latest.name):
            found = latest
        if found is not None or not self._room():
            return found
        slot = _Slot(index if index is not None else max(self._by_index, default=-1) + 1)
        self._slots.append(slot)
        self._by_index[slot.index] = slot
        return slot

    @staticmethod
    def _is_another(slot: _Slot, provider_id: str, name: str) -> bool:
        """A server that always says index 0: a new id with a name, or a new name after arguments, is a new call."""
        if provider_id and slot.provider_id and provider_id != slot.provider_id:
            return bool(name)
        return bool(name and slot.name and slot.arguments_seen and (name != slot.name or not provider_id))

    def _id_for(self, slot: _Slot) -> str:
        if slot.provider_id and slot.provider_id not in self._taken and len(slot.provider_id) <= 128:
            self._taken.add(slot.provider_id)
            return slot.provider_id
        return self._own_id(slot.index)

    def _own_id(self, index: int) -> str:
        call = f"call_{self._number}_{index}"
        while call in self._taken:
            call += "x"
        self._taken.add(call)
        return call


def _count(value: Json, before: int) -> int:
    return value if isinstance(value, int) and value >= 0 else before


def decoded(payload: bytes) -> Json:
    """A payload as JSON; None if it is none. Half surrogate pairs, which orjson refuses, are let through."""
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(payload.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
