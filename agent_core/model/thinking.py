"""Thoughts that have to come back: kept as they came, and put where a provider wants them in the next request. Pure.

Models that think between calls of tools want their thoughts back with those calls; some refuse the request without them. Each shape goes back
as it came, under its own name, to the same model at the same endpoint and to nobody else: a signature means nothing to another. What an API's
client hands back with its conversation names no model: it goes to the one that is asked, and is left out as soon as that refuses it.

| shape | who | goes back | source |
|---|---|---|---|
| ``reasoning_content`` | DeepSeek, Kimi, GLM, MiMo, Qwen, vLLM | with every message of a turn that called tools, in that turn and all later ones; not of a turn without calls (R1 refused it there, DeepSeek ignores it) | api-docs.deepseek.com, guides/thinking_mode; platform.moonshot.ai, Kimi K2 thinking; docs.z.ai, thinking mode |
| ``reasoning`` | OpenRouter, Groq, Cerebras, Ollama, newer vLLM | the same | openrouter.ai/docs, reasoning tokens |
| ``reasoning_details`` | OpenRouter, MiniMax | the same, unchanged and in order; pieces of one index are one | openrouter.ai/docs, preserving reasoning blocks; minimax.io, interleaved thinking |
| ``thinking_blocks`` | LiteLLM for Anthropic and Bedrock | the same, with ``signature`` or ``data`` byte by byte | docs.litellm.ai/docs/reasoning_content |
| ``extra_content`` of a call or a message | Gemini, Vertex | with that call or message, always: Gemini 3 refuses calls without | ai.google.dev/gemini-api/docs/thought-signatures |
| ``provider_specific_fields`` of a call | LiteLLM for Gemini | the same | docs.litellm.ai/blog/gemini_3 |
| ``<think>…</think>`` in the text | MiniMax M2 | as ``<think>`` before the text, in that turn and later ones | MiniMax M2's model card |

Where calls of another model stand before a model that wants thoughts or signatures with each of them (a fallback in the middle of a turn), it
gets what its provider takes in place of them: one blank, or Google's ``skip_thought_signature_validator``.

What is opaque is never mended and never shortened: too large, or not to be stored, it is left out whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import orjson

from agent_core.jsonvalue import Json
from agent_core.messages import ANY_MODEL, THOUGHTS, Message, beside_words
from agent_core.model.manners import Manners
from agent_core.records import dataclass

KEPT_BYTES = 262_144
"""The most that is kept of a reply's opaque thoughts."""
NOTHING = " "
SKIP = "skip_thought_signature_validator"
INLINE = "<think>"
_LISTS = ("reasoning_details", "thinking_blocks")
_TEXTS = ("text", "thinking", "summary", "signature", "data")
"""What of a piece goes on in the next piece of the same index."""
_BESIDE = ("extra_content", "provider_specific_fields")


@dataclass(slots=True)
class ThoughtKeeper:
    """Collects what of one reply has to come back."""

    name: str = ""
    """The field in which plain thoughts came."""
    lists: dict[str, list[dict[str, Json]]] = field(default_factory=dict[str, list[dict[str, Json]]])
    beside: dict[str, Json] = field(default_factory=dict[str, Json])
    """Opaque fields of the message."""
    calls: dict[str, dict[str, Json]] = field(default_factory=dict[str, dict[str, Json]])
    """Opaque fields of calls, by the index under which their events come."""
    _bytes: int = 0

    def delta(self, delta: Mapping[str, Json]) -> None:
        """See what a delta (or a message) has beside text and calls."""
        for name in _LISTS:
            pieces = delta.get(name)
            if isinstance(pieces, list):
                for piece in pieces:
                    if isinstance(piece, dict) and self._room(piece):
                        self._piece(self.lists.setdefault(name, []), piece)
        found = delta.get("extra_content")
        if isinstance(found, dict) and self._room(found):
            self.beside["extra_content"] = _deeper(self.beside.get("extra_content"), found)

    def call(self, index: int, entry: Mapping[str, Json]) -> None:
        """See what a call's piece has beside name and arguments."""
        for name in _BESIDE:
            found = entry.get(name)
            if isinstance(found, dict) and found and self._room(found):
                fields = self.calls.setdefault(str(index), {})
                fields[name] = _deeper(fields.get(name), found)

    @staticmethod
    def _piece(pieces: list[dict[str, Json]], piece: dict[str, Json]) -> None:
        """A piece that goes on where the one of its index and kind stopped belongs to that."""
        last = pieces[-1] if pieces else None
        another = last is None or any(
            piece.get(key) is not None and piece[key] != last.get(key, piece[key]) for key in ("index", "type", "id")
        )
        if last is None or another:
            pieces.append(dict(piece))
            return
        if "index" not in piece and last.get("signature") and piece.get("thinking"):
            pieces.append(dict(piece))  # the block before was signed: this is the next one
            return
        for key, value in piece.items():
            before = last.get(key)
            if key in _TEXTS and isinstance(before, str) and isinstance(value, str):
                last[key] = before + value
            elif value is not None:
                last[key] = value

    def _room(self, value: Json) -> bool:
        """Whether one more piece is kept; what does not fit takes all with it, because half a thought is refused."""
        if self._bytes > KEPT_BYTES:
            return False
        try:
            self._bytes += len(orjson.dumps(value))
        except (TypeError, ValueError):
            self._bytes = KEPT_BYTES + 1
        if self._bytes > KEPT_BYTES:
            self.lists, self.beside, self.calls = {}, {}, {}
            return False
        return True

    def kept(self) -> dict[str, Json]:
        """All of it as plain JSON; empty if there is nothing."""
        found: dict[str, Json] = {}
        if self.name:
            found["field"] = self.name
        for name, pieces in self.lists.items():
            found[name] = list(pieces)
        if self.beside:
            found["beside"] = dict(self.beside)
        if self.calls:
            found["calls"] = {index: dict(fields) for index, fields in self.calls.items()}
        # As JSON has it: what is no number there comes back as nothing in any case.
        return orjson.loads(orjson.dumps(found)) if found else found


def _deeper(before: Json, value: dict[str, Json]) -> Json:
    return {**before, **value} if isinstance(before, dict) else value


def with_thoughts(messages: Sequence[Message], endpoint: str, model: str, manners: Manners) -> Sequence[Message]:
    """The messages as this model at this endpoint gets them: with its own thoughts, nobody else's, and never with `THOUGHTS`."""
    wants = manners.wants_thoughts or manners.wants_signatures
    if not wants and not [message for message in beside_words(messages) if THOUGHTS in message]:
        return messages
    called = _in_turns_with_calls(messages)
    out: list[Message] = []
    for message, in_turn_with_calls in zip(messages, called, strict=True):
        if message.get("role") != "assistant":
            out.append(message)
            continue
        thoughts = message.get(THOUGHTS)
        bare = {key: value for key, value in message.items() if key != THOUGHTS}
        whose = (thoughts.get("endpoint"), thoughts.get("model")) if isinstance(thoughts, dict) else None
        own = whose in ((endpoint, model), (ANY_MODEL, ANY_MODEL))
        if isinstance(thoughts, dict) and own and not manners.thoughts_refused and not manners.forget_thoughts:
            bare = _given_back(bare, thoughts, in_turn_with_calls=in_turn_with_calls)
        out.append(_filled(bare, manners, in_turn_with_calls=in_turn_with_calls) if wants else bare)
    return out


def _in_turns_with_calls(messages: Sequence[Message]) -> list[bool]:
    """For each message: whether a tool was called between the person's words before it and those after it."""
    out: list[bool] = []
    begin = 0
    for end in range(len(messages) + 1):
        if end == len(messages) or messages[end].get("role") == "user":
            called = any(message.get("tool_calls") for message in messages[begin:end])
            out += [called] * (end - begin)
            begin = end
    return out


def _given_back(message: Message, thoughts: Mapping[str, Json], *, in_turn_with_calls: bool) -> Message:
    found: Message = dict(message)
    if in_turn_with_calls:
        name, text = thoughts.get("field"), thoughts.get("text")
        if name == INLINE and isinstance(text, str):
            content = message.get("content")
            found["content"] = f"<think>{text}</think>\n\n{content if isinstance(content, str) else ''}"
        elif isinstance(name, str) and name and isinstance(text, str) and not thoughts.get("reasoning_details"):
            found[name] = text
        for listed in _LISTS:
            if thoughts.get(listed):
                found[listed] = thoughts[listed]
    beside = thoughts.get("beside")
    if isinstance(beside, dict):
        found.update(beside)
    calls, by_call = message.get("tool_calls"), thoughts.get("calls")
    if isinstance(calls, list) and isinstance(by_call, dict):
        found["tool_calls"] = [_signed(call, by_call) for call in calls]
    return found


def _signed(call: Json, by_call: Mapping[str, Json]) -> Json:
    fields = by_call.get(str(call.get("id"))) if isinstance(call, dict) else None
    return {**call, **fields} if isinstance(call, dict) and isinstance(fields, dict) else call


def _filled(message: Message, manners: Manners, *, in_turn_with_calls: bool) -> Message:
    """What stands for thoughts that this model never had."""
    found: Message = dict(message)
    if manners.wants_thoughts and in_turn_with_calls and not found.get("reasoning_content"):
        found["reasoning_content"] = NOTHING
    calls = found.get("tool_calls")
    if manners.wants_signatures and isinstance(calls, list) and calls:
        first = calls[0]  # of calls side by side only the first one is signed
        if isinstance(first, dict) and not _has_signature(first):
            found["tool_calls"] = [{**first, "extra_content": {"google": {"thought_signature": SKIP}}}, *calls[1:]]
    return found


def _has_signature(call: Mapping[str, Json]) -> bool:
    return any(call.get(name) for name in _BESIDE)
