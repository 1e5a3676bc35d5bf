"""Reads the chunks of a Chat Completions stream into events of a turn. Pure, incremental, no clock of its own.

Theory. Servers send the same things in many groupings: several calls in one delta, name and arguments and end together,
arguments before the id, indexes out of order or missing, ids repeated, tool calls and thoughts in the text in the form of any
family, reasoning in one of three places. `ChunkReader` knows where things stand in a chunk; what they amount to is read by
`ContentReader` (text and thoughts) and `NativeCalls`, and comes out of `Arriving` in one plain order: a call is named once, its
arguments follow. Text of one socket read comes as one event, so the cost per token stays small.

What it sees beside content is kept in attributes: the finish reason, usage, an error object, whether anything at all looked
like a chat completion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agent_core.jsonvalue import Json
from agent_core.model.failures import says_no
from agent_core.model.made import MadeKeeper
from agent_core.model.stream.arriving import Arriving, CallNames
from agent_core.model.stream.content import ContentReader
from agent_core.model.stream.nativecalls import NativeCalls, word
from agent_core.model.stream.once import SaidOnce
from agent_core.model.stream.sse import decoded
from agent_core.model.thinking import ThoughtKeeper
from agent_core.rules.replies import Finish, finish_of, telling
from agent_core.text.wellformed import count, label
from agent_core.turn.events import Event, RefusalBegan

MAX_CHOICES = 16
NO_CHOICE = -1
REASON_CHARS = 64
_SAYS_NOTHING = frozenset({"id", "object", "created", "model", "choices", "usage", "x_groq"})
"""What an object may hold without choices and still be a chunk."""


class ChunkReader:
    """Feed the payloads of ``data:`` lines; get events. One reader a model call."""

    # fmt: off
    __slots__ = (
        "_caller", "_calls", "_choice_read", "_content", "_names", "_out", "_refused", "_text_once", "_thought_once",
        "bad_chunk", "belied", "cached_tokens", "done", "error", "finish_reason", "foreign", "input_tokens", "keeper", "made",
        "output_tokens",
        "reasoning_tokens", "recognised",
    )
    # fmt: on

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
        self._choice_read, self._caller = 0, NO_CHOICE
        """Which choice is being read, and whose calls are taken."""
        self._out = Arriving()
        self._names = CallNames(number, taken_ids, offered)
        self.keeper = ThoughtKeeper()
        """Of its thoughts: what has to come back."""
        self.made = MadeKeeper()
        """What it made beside text."""
        self._content = ContentReader(
            self._out,
            self._names,
            self.keeper,
            tools=tools,
            parse_calls=parse_text_calls,
            inside_thought=inside_thought,
        )
        self._calls: NativeCalls | None = None
        """Those outside of its text; most replies have none."""
        self._text_once = SaidOnce()
        self._thought_once = SaidOnce()
        self._refused = False
        self.finish_reason = ""
        self.belied = False
        """More was said behind the finish reason: this server gives one with every piece."""
        self.done = False
        """``[DONE]`` was seen."""
        self.input_tokens = 0
        self.output_tokens = 0
        self.cached_tokens = 0
        self.reasoning_tokens = 0
        self.error: Json = None
        """An error object that the stream carried."""
        self.bad_chunk = False
        """A payload was no JSON object."""
        self.recognised = False
        """At least one payload was a chat completion (chunk)."""
        self.foreign = False
        """At least one payload was an object of another kind: of another API, most likely."""

    def feed(self, payloads: Iterable[bytes], at: int) -> list[Event]:
        """Events of some payloads that came together at `at` (ms), in order. Stops at ``[DONE]``, an error or bad JSON."""
        self._out.at = at
        for payload in payloads:
            if self.done or self.error is not None or self.bad_chunk:
                break
            if payload[:1] != b"{" and payload.strip() == b"[DONE]":
                self.done = True
                break
            chunk = decoded(payload)
            if isinstance(chunk, dict):
                self._chunk(chunk)
            elif not is_word(payload):
                self.bad_chunk = True
                break
        return self._out.take()

    @property
    def room(self) -> int:
        """So many characters have been said: a text that is shorter says none of them again. 0 if each chunk has to be looked at."""
        over = self.done or self.error is not None or self.bad_chunk or self.finish_reason
        return 0 if over else self._text_once.room

    def feed_text(self, text: str, pieces: int, at: int) -> list[Event]:
        """As `feed`, for chunks that hold nothing but this text, in so many pieces of which each has `room`."""
        self._text_once.pieces(text, pieces)
        self._out.at = at
        self._content.say(text)
        if self._content.over:
            self.finish_reason = "stop"
        return self._out.take()

    @property
    def holds_blank(self) -> bool:
        """White space behind the text waits for what follows it."""
        return self._content.holds_blank

    def let_go(self, at: int) -> list[Event]:
        """Nothing has followed for a while: the blank behind the text."""
        self._out.at = at
        self._content.let_go()
        return self._out.take()

    def finish(self, at: int) -> list[Event]:
        """The stream is over, well or not: what was held back, and the calls that are known to be incomplete."""
        self._out.at = at
        self._content.think(self._thought_once.finish())
        self._content.end_thoughts()
        self._content.say(self._text_once.finish())
        if self._ends_well and not self.called and not self._text_once.begun:
            self._content.say(self.made.words)
        self._content.end_text()
        if self._content.over:
            self.finish_reason = "stop"
        self._content.finish(well=self._ends_well, called=self._called)
        if self._calls is not None:
            self._calls.finish()
        return self._out.take()

    def whole(self, body: Json, at: int) -> list[Event]:
        """A plain (not streamed) chat completion, as some servers answer in spite of ``stream``."""
        self._out.at = at
        if isinstance(body, dict):
            self._chunk(body)
        else:
            self.bad_chunk = True
        self.done = True
        return self._out.take()

    @property
    def _ends_well(self) -> bool:
        """The model has brought its reply to an end."""
        finish = finish_of(self.finish_reason) if self.finish_reason else Finish.STOP if self.done else Finish.BROKEN
        return finish in (Finish.STOP, Finish.TOOLS, Finish.UNKNOWN)

    @property
    def called(self) -> bool:
        """A tool call has begun, in whatever form."""
        return self._called or self._content.called

    @property
    def called_whole(self) -> bool:
        """Calls have come outside of the text, and nothing of them is missing."""
        return self._calls is not None and self._calls.called and self._calls.whole and not self._content.called

    @property
    def _called(self) -> bool:
        """One has begun outside of the text."""
        return self._calls is not None and self._calls.called

    @property
    def chars(self) -> int:
        """How much has come of text, thoughts and calls."""
        return self._out.chars

    @property
    def full(self) -> bool:
        """It asks for more calls than are taken; those beyond were left out."""
        return self._names.full

    @property
    def began_inside(self) -> bool | None:
        """Whether the text began inside a thought; None if nothing says so: the end of one that was cut may not have come yet."""
        found = self._content.began_inside
        return found if found or self._ends_well else None

    # ------------------------------------------------------------------ one chunk

    def _chunk(self, chunk: dict[str, Json]) -> None:
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
            self.foreign = self.foreign or not (chunk.keys() <= _SAYS_NOTHING or chunk.get("type") == "ping")
            return
        self.recognised = True
        before, finished = self._out.chars, bool(self.finish_reason)
        for number, choice in enumerate(choices[:MAX_CHOICES]):
            if not isinstance(choice, dict):
                continue
            self._choice_read = count(choice.get("index"), number)
            if number == 0:
                self._choice(choice)
            elif isinstance(said := choice.get("delta") or choice.get("message"), dict):
                self._calls_of(said)  # GitHub's Copilot puts text and calls into choices of their own
        self.belied = self.belied or (finished and self._out.chars > before)

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
        self.reasoning_tokens = thought or self.reasoning_tokens
        beyond = count(usage.get("total_tokens"), 0) - self.input_tokens - self.output_tokens
        if beyond > 0 and (beyond == thought or not isinstance(said, dict)):
            self.output_tokens += beyond

    def _choice(self, choice: dict[str, Json]) -> None:
        self._usage(choice.get("usage"))  # Moonshot
        reason = telling(word(choice.get("finish_reason")), word(choice.get("native_finish_reason")))
        reason = reason or word(choice.get("finishReason"))
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict) and delta:
            self._delta(delta, last=bool(reason))
        if choice.get("logprobs"):
            self.made.logprobs(choice["logprobs"])
        if isinstance(message, dict) and message:
            self._message(message)
        if isinstance(choice.get("text"), str) and not delta and not message:
            self._content.say(self._text_once.feed(str(choice["text"])))
        if self._content.over:
            self.finish_reason = "stop"
        elif reason:
            self.finish_reason = label(reason, REASON_CHARS) or "?"
        if choice.get("error"):
            self.error = choice["error"]

    def _delta(self, delta: dict[str, Json], *, last: bool) -> None:
        content = delta.get("content")
        if len(delta) > 1 or content is None:
            self._thoughts_of(delta, last=last)
        if isinstance(content, str):
            if content:
                self._content.say(self._text_once.last(content) if last else self._text_once.feed(content))
        elif isinstance(content, list):
            self._parts(content)
        if len(delta) > 1 or content is None:
            if spoken := self.made.delta(delta):
                self._content.say(self._text_once.feed(spoken))
            self._refusal(delta.get("refusal"))
            self._calls_of(delta)

    def _message(self, message: dict[str, Json]) -> None:
        """The whole reply at once: all there is, or what its deltas had said already."""
        begun = self._text_once.begun or self._thought_once.begun or self._called
        if not begun:
            self._delta(message, last=True)
            return
        reasoning = _reasoning_of(message)[1]
        if reasoning:
            self._content.think(self._thought_once.message(reasoning))
        content = message.get("content")
        if isinstance(content, str) and content:
            self._content.say(self._text_once.message(content))
        if not self._called:
            self._calls_of(message)

    def _thoughts_of(self, delta: dict[str, Json], *, last: bool) -> None:
        name, reasoning = _reasoning_of(delta)
        if reasoning:
            self.keeper.name = self.keeper.name or name
            once = self._thought_once
            self._content.think(once.last(reasoning) if last else once.feed(reasoning))
        self.keeper.delta(delta)

    def _parts(self, parts: list[Json]) -> None:
        """Content in parts: text, and the thoughts of models that think in parts."""
        for part in parts:
            if isinstance(part, str):
                self._content.say(part)
            elif isinstance(part, dict):
                thought = part.get("thinking")
                if isinstance(thought, str):
                    self._content.think(thought)
                elif isinstance(thought, list):
                    for inner in thought:
                        if isinstance(inner, dict) and isinstance(inner.get("text"), str):
                            self._content.think(str(inner["text"]))
                elif isinstance(part.get("text"), str):
                    self._content.say(str(part["text"]))
                elif part.get("type") == "image_url":
                    self.made.part(part)

    def _refusal(self, words: Json) -> None:
        if not isinstance(words, str) or not words:
            return
        if not self._refused:
            self._refused = True
            self._out.add(RefusalBegan(at=self._out.at))
        self._content.say(words)

    def _calls_of(self, delta: dict[str, Json]) -> None:
        calls, legacy = delta.get("tool_calls"), delta.get("function_call")
        if self._caller not in (NO_CHOICE, self._choice_read):
            return  # another reply to the same question, which nobody asked for: what both want would be done twice
        if calls or legacy:
            self._caller = self._choice_read
        if isinstance(calls, list):
            for entry in calls:
                if isinstance(entry, dict):
                    self._call(entry)
        if isinstance(legacy, dict):
            self._call({"index": 0, "function": legacy})

    def _call(self, entry: dict[str, Json]) -> None:
        if self._calls is None:
            self._calls = NativeCalls(self._out, self._names, self.keeper, self._content)
        self._calls.piece(entry)


def _reasoning_of(delta: dict[str, Json]) -> tuple[str, str]:
    """The field that holds a thought, and the thought. Where it comes in details alone there is no such field."""
    for name in ("reasoning_content", "reasoning", "reasoning_text"):
        found = delta.get(name)
        if isinstance(found, str) and found:
            return name, found
    details = delta.get("reasoning_details")
    pieces = [piece for piece in details if isinstance(piece, dict)] if isinstance(details, list) else []
    return "", "".join(word(piece.get("text")) or word(piece.get("summary")) for piece in pieces)


def is_word(payload: bytes) -> bool:
    """No JSON and no piece of any: something like ``ping`` or ``keep-alive``, which says nothing of the reply."""
    return not payload.lstrip().startswith((b"{", b"[", b'"'))
