"""Reads the chunks of a Chat Completions stream into events of a turn. Pure, incremental, no clock of its own.

Theory. Servers send the same things in many groupings: several calls in one delta, name and arguments and end together,
arguments before the id, indexes out of order or missing, ids repeated, tool calls and thoughts in the text in the form of any
family (`text_calls`), reasoning in one of three places. `ChunkReader` knows them all and gives one plain order of events: a call is named once, its arguments follow.
Text of one socket read comes as one event, so the cost per token stays small.

What it sees beside content is kept in attributes: the finish reason, usage, an error object, whether anything at all looked
like a chat completion.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import orjson

from agent_core.jsonvalue import Json
from agent_core.model.failures import says_no
from agent_core.model.families.grammar.values import Offered, surely_unreadable
from agent_core.model.families.pieces import (
    Piece,
    TakenBack,
    TextCall,
    TextCallBroken,
    TextCallOpened,
    Thought,
    VisibleText,
)
from agent_core.model.stream.once import SaidOnce
from agent_core.model.stream.text_calls import TextCallParser
from agent_core.model.thinking import INLINE, ThoughtKeeper
from agent_core.model.toolnames import meant
from agent_core.rules.replies import ArgumentsState, Finish, arguments_state, finish_of, telling
from agent_core.text.wellformed import Joined, count, label, storable
from agent_core.turn.events import (
    Event,
    ReasoningArrived,
    TextArrived,
    TextTakenBack,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
)

MAX_CALLS = 1_024
"""A reply that asks for more than this is cut, like one that is too long: what is kept of a stream must have an end."""
MAX_CHOICES = 16
THOUGHT_CHARS, THOUGHT_PIECES = 65_536, 4_096
"""How much of the end of a thought is kept, to look for calls in it; it is put together after so many pieces."""
TEXT_CALL_INDEX = 10_000
"""Calls in the text form are numbered from here, behind native ones."""
ID_CHARS = 128
"""A longer id of a call is not taken; the call gets one of ours."""
REASON_CHARS = 64


@dataclass(slots=True)
class _Slot:
    """A native tool call that is arriving."""

    index: int
    provider_id: str = ""
    name: str = ""
    begun: str = ""
    """A name so far that is only the beginning of one on offer: some servers send names in pieces."""
    early: list[str] = field(default_factory=list[str])
    """Arguments that came before the name."""
    written: list[str] = field(default_factory=list[str])
    """Its arguments so far."""
    after: _Slot | None = None
    """The call whose number and name it shares: it is one of its own only if it says something else (opencode #33064)."""
    held: str = ""
    """An empty object at the beginning: Anthropic's, behind which the arguments come (litellm #4537), or all there is."""
    arguments: Joined = field(default_factory=Joined)
    once: SaidOnce = field(default_factory=SaidOnce)

    def repeats(self) -> bool:
        return self.after is not None and "".join(self.written) == "".join(self.after.written)


class ChunkReader:
    """Feed the payloads of ``data:`` lines; get events. One reader a model call."""

    __slots__ = (
        "_at",
        "_beginning_unknown",
        "_by_id",
        "_by_index",
        "_inside_thought",
        "_number",
        "_offered",
        "_open_text_calls",
        "_parser",
        "_reasoning",
        "_reasoning_joined",
        "_reasoning_once",
        "_slots",
        "_taken",
        "_text",
        "_text_call_ids",
        "_text_joined",
        "_text_once",
        "_thoughts",
        "bad_chunk",
        "belied",
        "cached_tokens",
        "chars",
        "done",
        "error",
        "finish_reason",
        "full",
        "input_tokens",
        "keeper",
        "output_tokens",
        "recognised",
    )

    def __init__(
        self,
        number: int,
        taken_ids: Iterable[str],
        *,
        parse_text_calls: bool,
        offered: Collection[str] = (),
        tools: bytes = b"",
        inside_thought: bool | None = False,
    ) -> None:
        """`tools` are the schemas of what is `offered`; `inside_thought`: replies of this model begin with a thought, without its mark;
        None if nothing is known of how they begin."""
        self._number = number
        self._offered = offered
        self._taken = set(taken_ids)
        self._parser = TextCallParser(Offered(tools), calls=parse_text_calls, inside_thought=bool(inside_thought))
        self._inside_thought = bool(inside_thought)
        self._beginning_unknown = inside_thought is None
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._text_call_ids: dict[int, str] = {}
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._at = 0
        self._text_joined = Joined()
        self._text_once = SaidOnce()
        self._reasoning_joined = Joined()
        self._reasoning_once = SaidOnce()
        self._thoughts: list[str] = []
        """The end of its thoughts, as far as they come outside of the text."""
        self._open_text_calls: set[int] = set()
        self.finish_reason = ""
        self.belied = False
        """More was said behind the finish reason: this server gives one with every piece."""
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
        self.keeper = ThoughtKeeper()
        """Of its thoughts: what has to come back."""

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
            if isinstance(chunk, dict):
                self._chunk(chunk, events)
            elif not is_word(payload):
                self.bad_chunk = True
                break
        self._flush(events)
        return events

    def finish(self, at: int) -> list[Event]:
        """The stream is over, well or not: what was held back, and the calls that are known to be incomplete."""
        self._at = at
        events: list[Event] = []
        self._think(self._reasoning_once.finish(), events)
        self._think_whole(self._reasoning_joined.finish(), events)
        self._say_text(self._text_once.finish(), events)
        self._split(self._text_joined.finish(), events)
        self._pieces(self._parser.finish(well=self._ends_well), events)
        if self._ends_well and not self._slots:
            self._pieces(self._parser.called_in("".join(self._thoughts)), events)
        self._slots = [slot for slot in self._slots if not slot.repeats()]
        for slot in self._slots:
            if slot.begun and not slot.name:
                self._name(slot, "", events, more=False)
            rest = slot.held + slot.arguments.finish()
            if rest and slot.name:
                self._arguments(slot, rest, events)
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

    @property
    def _ends_well(self) -> bool:
        """The model has brought its reply to an end."""
        finish = finish_of(self.finish_reason) if self.finish_reason else Finish.STOP if self.done else Finish.BROKEN
        return finish in (Finish.STOP, Finish.TOOLS, Finish.UNKNOWN)

    @property
    def called(self) -> bool:
        """A tool call has begun, in whatever form."""
        return bool(self._slots or self._text_call_ids)

    @property
    def began_inside(self) -> bool | None:
        """Whether the text began inside a thought; None if nothing says so: the end of one that was cut may not have come yet."""
        found = self._parser.began_inside
        return found if found or self._ends_well else None

    # ------------------------------------------------------------------ one chunk

    def _chunk(self, chunk: dict[str, Json], events: list[Event]) -> None:
        error = chunk.get("error")
        if error:
            self.error = chunk if isinstance(error, str) else error
            return
        self._usage(chunk.get("usage"))
        groq = chunk.get("x_groq")
        if isinstance(groq, dict):
            self._usage(groq.get("usage"))
            self.error = groq.get("error") or None
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            if says_no(chunk):
                self.error = chunk
            return
        self.recognised = True
        before, finished = self.chars, bool(self.finish_reason)
        for number, choice in enumerate(choices[:MAX_CHOICES]):
            if not isinstance(choice, dict):
                continue
            if number == 0:
                self._choice(choice, events)
            elif isinstance(said := choice.get("delta") or choice.get("message"), dict):
                self._calls_of(said, events)  # GitHub's Copilot puts text and calls into choices of their own
        self.belied = self.belied or (finished and self.chars > before)

    def _usage(self, usage: Json) -> None:
        """What was used, wherever it stands. Some count thoughts in the total alone (xAI, Google's compatible API)."""
        if not isinstance(usage, dict):
            return
        self.input_tokens = count(usage.get("prompt_tokens"), self.input_tokens)
        self.output_tokens = count(usage.get("completion_tokens"), self.output_tokens)
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            self.cached_tokens = count(details.get("cached_tokens"), self.cached_tokens)
        said = usage.get("completion_tokens_details")
        thought = count(said.get("reasoning_tokens"), 0) if isinstance(said, dict) else 0
        beyond = count(usage.get("total_tokens"), 0) - self.input_tokens - self.output_tokens
        if beyond > 0 and (beyond == thought or not isinstance(said, dict)):
            self.output_tokens += beyond

    def _choice(self, choice: dict[str, Json], events: list[Event]) -> None:
        self._usage(choice.get("usage"))  # Moonshot
        reason = telling(*(_word(choice.get(name)) for name in ("finish_reason", "native_finish_reason")))
        reason = reason or _word(choice.get("finishReason"))
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict) and delta:
            self._delta(delta, events, last=bool(reason))
        if isinstance(message, dict) and message:
            self._message(message, events)
        if isinstance(choice.get("text"), str) and not delta and not message:
            self._say_text(self._text_once.feed(str(choice["text"])), events)
        if reason and not self._parser.over:
            self.finish_reason = label(reason, REASON_CHARS) or "?"
        if choice.get("error"):
            self.error = choice["error"]

    def _delta(self, delta: dict[str, Json], events: list[Event], *, last: bool) -> None:
        content = delta.get("content")
        if len(delta) > 1 or content is None:
            self._thoughts_of(delta, events, last=last)
        if isinstance(content, str):
            if content:
                self._say_text(self._text_once.last(content) if last else self._text_once.feed(content), events)
        elif isinstance(content, list):
            self._parts(content, events)
        if len(delta) > 1 or content is None:
            self._refusal(delta, events)
            self._calls_of(delta, events)

    def _message(self, message: dict[str, Json], events: list[Event]) -> None:
        """The whole reply at once: all there is, or what its deltas had said already."""
        begun = self._text_once.begun or self._reasoning_once.begun or bool(self._slots)
        if not begun:
            self._delta(message, events, last=True)
            return
        reasoning = _reasoning_of(message)[1]
        if reasoning:
            self._think(self._reasoning_once.message(reasoning), events)
        content = message.get("content")
        if isinstance(content, str) and content:
            self._say_text(self._text_once.message(content), events)
        if not self._slots:
            self._calls_of(message, events)

    def _thoughts_of(self, delta: dict[str, Json], events: list[Event], *, last: bool) -> None:
        name, reasoning = _reasoning_of(delta)
        if reasoning:
            self.keeper.name = self.keeper.name or name
            once = self._reasoning_once
            self._think(once.last(reasoning) if last else once.feed(reasoning), events)
        self.keeper.delta(delta)

    def _parts(self, parts: list[Json], events: list[Event]) -> None:
        """Content in parts: text, and the thoughts of models that think in parts."""
        for part in parts:
            if isinstance(part, str):
                self._say_text(part, events)
            elif isinstance(part, dict):
                thought = part.get("thinking")
                if isinstance(thought, str):
                    self._think(thought, events)
                elif isinstance(thought, list):
                    for inner in thought:
                        if isinstance(inner, dict) and isinstance(inner.get("text"), str):
                            self._think(str(inner["text"]), events)
                elif isinstance(part.get("text"), str):
                    self._say_text(str(part["text"]), events)

    def _refusal(self, delta: dict[str, Json], events: list[Event]) -> None:
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._say_text(refusal, events)

    def _calls_of(self, delta: dict[str, Json], events: list[Event]) -> None:
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for entry in calls:
                if isinstance(entry, dict):
                    self._native(entry, events)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            self._native({"index": 0, "function": legacy}, events)

    # ------------------------------------------------------------------ text and reasoning

    def _think(self, text: str, events: list[Event]) -> None:
        if text:
            self._think_whole(self._reasoning_joined.feed(text), events)

    def _think_whole(self, text: str, events: list[Event]) -> None:
        if not text:
            return
        if self._inside_thought:
            self._inside_thought = False
            self._parser.thoughts_come_elsewhere()
        if self._text:
            self._flush(events)
        self._reasoning.append(text)
        self.chars += len(text)
        self._thoughts.append(text)
        if len(self._thoughts) > THOUGHT_PIECES:
            self._thoughts = ["".join(self._thoughts)[-THOUGHT_CHARS:]]

    def _think_inline(self, text: str, events: list[Event]) -> None:
        """A thought that stood in the text."""
        self.keeper.name = self.keeper.name or INLINE
        if self._text:
            self._flush(events)
        self._reasoning.append(text)

    def _say_text(self, text: str, events: list[Event]) -> None:
        if text:
            self._split(self._text_joined.feed(text), events)

    def _split(self, text: str, events: list[Event]) -> None:
        """Text with whole characters: thoughts and calls in it are thoughts and calls."""
        if text and not self._parser.over:
            self.chars += len(text)
            self._pieces(self._parser.feed(text), events)
            if self._parser.over:
                self.finish_reason = "stop"

    def _say(self, text: str, events: list[Event]) -> None:
        if self._reasoning:
            self._flush(events)
        self._text.append(text)

    def _flush(self, events: list[Event]) -> None:
        if self._reasoning:
            events.append(ReasoningArrived(at=self._at, text="".join(self._reasoning)))
            self._reasoning.clear()
        if self._text:
            events.append(TextArrived(at=self._at, text="".join(self._text)))
            self._text.clear()

    def _pieces(self, pieces: Iterable[Piece], events: list[Event]) -> None:
        for piece in pieces:
            match piece:
                case VisibleText():
                    self._say(piece.text, events)
                case Thought():
                    self._think_inline(piece.text, events)
                case TakenBack():
                    self.keeper.name = self.keeper.name or INLINE
                    self._flush(events)
                    events.append(TextTakenBack(at=self._at, earlier=self._beginning_unknown))
                case TextCallOpened():
                    if piece.name:
                        self._open_text_call(piece.index, piece.name, events)
                case TextCall():
                    self._open_text_call(piece.index, piece.name, events)
                    if piece.index not in self._text_call_ids:
                        continue
                    index = TEXT_CALL_INDEX + piece.index
                    events.append(ToolArgumentsArrived(at=self._at, index=index, text=storable(piece.arguments)))
                    self._open_text_calls.discard(piece.index)
                case TextCallBroken():
                    self._broken(piece, events)

    def _broken(self, piece: TextCallBroken, events: list[Event]) -> None:
        """No call. One that is all there and cannot be read is answered like any call with arguments that cannot be read."""
        self._flush(events)
        opened = piece.index in self._open_text_calls
        index = TEXT_CALL_INDEX + piece.index if opened else -1
        if opened and piece.raw:
            events.append(ToolArgumentsArrived(at=self._at, index=index, text=storable(surely_unreadable(piece.raw))))
            self._open_text_calls.discard(piece.index)
            return
        events.append(ToolCallCut(at=self._at, name=self._tool(piece.name or ""), index=index))

    def _open_text_call(self, index: int, name: str, events: list[Event]) -> None:
        if index in self._text_call_ids or not self._room():
            return
        self._flush(events)
        call = self._own_id(TEXT_CALL_INDEX + index)
        self._text_call_ids[index] = call
        self._open_text_calls.add(index)
        events.append(ToolCallNamed(at=self._at, index=TEXT_CALL_INDEX + index, call=call, name=self._tool(name)))

    def _room(self) -> bool:
        """Whether one more call is taken."""
        self.full = self.full or len(self._slots) + len(self._text_call_ids) >= MAX_CALLS
        return not self.full

    # ------------------------------------------------------------------ native tool calls

    def _tool(self, name: str) -> str:
        """The tool that a name means, in characters that can be stored."""
        return meant(label(name), self._offered)

    def _native(self, entry: dict[str, Json], events: list[Event]) -> None:
        function = entry.get("function")
        function = function if isinstance(function, dict) else entry
        name = function.get("name")
        name = label(name) if isinstance(name, str) else ""
        provider_id = _known_by(_word(entry.get("id")))
        arguments = function.get("arguments")
        arguments = _spelt(arguments) if isinstance(arguments, dict | list) else _word(arguments)
        index = entry.get("index")
        number = index if isinstance(index, int) and index is not True else None
        slot = self._slot(number, provider_id, self._tool(name), arguments)
        if slot is None:
            return
        if len(entry) > 2:
            self.keeper.call(slot.index, entry)
        if provider_id and not slot.provider_id:
            slot.provider_id = provider_id
            self._by_id.setdefault(provider_id, slot)
        if not slot.name and slot.after is None and (name or (slot.begun and arguments)):
            self._name(slot, name, events, more=not arguments)
        if arguments:
            self._more_arguments(slot, arguments, events)

    def _name(self, slot: _Slot, piece: str, events: list[Event], *, more: bool) -> None:
        """A name has come, or another piece of it; `more`: there may be yet another."""
        begun = "" if piece.startswith(slot.begun) or piece in self._offered else slot.begun
        name = self._tool(begun + piece if piece else slot.begun)
        if more and any(each != name and each.startswith(name) for each in self._offered):
            slot.begun = name
            return
        slot.name = name
        self._pieces(self._parser.call_came_elsewhere(), events)
        self._flush(events)
        events.append(ToolCallNamed(at=self._at, index=slot.index, call=self._id_for(slot), name=name))
        if slot.early:
            self._arguments(slot, "".join(slot.early), events)
            slot.early.clear()

    def _more_arguments(self, slot: _Slot, arguments: str, events: list[Event]) -> None:
        arguments = slot.arguments.feed(arguments)
        if not arguments or slot.once.whole_again(arguments):
            return
        self.chars += len(arguments)
        if not slot.written and arguments.strip() == "{}":
            slot.written, slot.held = [arguments], arguments
            return
        if slot.held:
            if _begins(arguments):
                slot.written, slot.once = [], SaidOnce()
            else:
                arguments = slot.held + arguments
            slot.held = ""
        slot.written.append(arguments)
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

    def _slot(self, index: int | None, provider_id: str, name: str, arguments: str) -> _Slot | None:
        """The call that a piece belongs to, for servers that number calls, that only name ids, and that do neither.

        None if it would be one call too many.
        """
        latest = self._slots[-1] if self._slots else None
        another = False
        if index is None and provider_id:
            unnamed = latest is not None and not latest.provider_id and not (name and latest.name)
            before = self._by_id.get(provider_id) or (latest if unnamed else None)
        else:
            before = latest if index is None else self._by_index.get(index)
            another = before is not None and self._is_another(before, provider_id, name, arguments)
        if before is not None and not another:
            return before
        if not self._room():
            return None
        fits = index is not None and 0 <= index < TEXT_CALL_INDEX and index not in {slot.index for slot in self._slots}
        slot = _Slot(index if index is not None and fits else self._free_index())
        if before is not None and not name:
            slot.begun, slot.after = before.name or before.begun, before  # the same tool once more
        self._slots.append(slot)
        self._by_index[slot.index if index is None else index] = slot  # who has a number last gets what comes under it
        return slot

    def _free_index(self) -> int:
        """A place behind the others, for a call whose server numbers none, or as nobody would."""
        taken = {slot.index for slot in self._slots}
        behind = max(taken, default=-1) + 1
        return behind if behind < TEXT_CALL_INDEX else next(n for n in range(TEXT_CALL_INDEX) if n not in taken)

    @staticmethod
    def _is_another(slot: _Slot, provider_id: str, name: str, arguments: str) -> bool:
        """A server that gives every call the same number, or none: whether what comes is a new call. Others repeat the name, or make a new
        id, with every piece; so where neither tells, arguments do that begin behind whole ones."""
        if name and slot.name and name != slot.name:
            return True
        if name and provider_id and slot.provider_id and provider_id != slot.provider_id:
            return not arguments or not slot.written or _begins(arguments)
        if not slot.written or not _begins(arguments) or (slot.held and not name):
            return False
        return "".join(slot.written) != arguments and _whole(slot.written)

    def _id_for(self, slot: _Slot) -> str:
        if slot.provider_id and slot.provider_id not in self._taken and _usable(slot.provider_id):
            self._taken.add(slot.provider_id)
            return slot.provider_id
        return self._own_id(slot.index)

    def _own_id(self, index: int) -> str:
        call = f"call_{self._number}_{index}"
        while call in self._taken:
            call += "x"
        self._taken.add(call)
        return call


def _begins(arguments: str) -> bool:
    """Whether a piece of arguments may be the first one."""
    return arguments.lstrip().startswith("{")


def _whole(pieces: list[str]) -> bool:
    """Whether arguments have come to their end."""
    return pieces[-1].rstrip().endswith("}") and arguments_state("".join(pieces)) is ArgumentsState.COMPLETE


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _reasoning_of(delta: dict[str, Json]) -> tuple[str, str]:
    """The field that holds a thought, and the thought. Where it comes in details alone there is no such field."""
    for name in ("reasoning_content", "reasoning", "reasoning_text"):
        found = delta.get(name)
        if isinstance(found, str) and found:
            return name, found
    details = delta.get("reasoning_details")
    pieces = [piece for piece in details if isinstance(piece, dict)] if isinstance(details, list) else []
    return "", "".join(_word(piece.get("text")) or _word(piece.get("summary")) for piece in pieces)


def is_word(payload: bytes) -> bool:
    """No JSON and no piece of any: something like ``ping`` or ``keep-alive``, which says nothing of the reply."""
    return not payload.lstrip().startswith((b"{", b"[", b'"'))


def _spelt(arguments: Json) -> str:
    """Arguments that came as an object, as text. What is nested deeper than anybody reads is no object any more."""
    try:
        return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):
        return "{"


def _known_by(provider_id: str) -> str:
    """What a call is known by while its pieces come; one of any length takes little room."""
    return (
        provider_id
        if len(provider_id) <= ID_CHARS
        else hashlib.sha256(provider_id.encode("utf-8", "replace")).hexdigest() * 3
    )


def _usable(provider_id: str) -> bool:
    """Whether an id can be stored and sent back as it is."""
    return len(provider_id) <= ID_CHARS and provider_id.isascii() and provider_id.isprintable()


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
