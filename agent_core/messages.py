"""The conversation as the model's API spells it: plain JSON messages of the Chat Completions format."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TypeAlias, overload

import orjson
from typing_extensions import override

from agent_core.jsonvalue import Json
from agent_core.records import dataclass

Message: TypeAlias = dict[str, Json]
"""One Chat Completions message (role, content, tool_calls, …)."""

GATEWAY_PREFIX = "[outspoken]"
"""How a message begins that the gateway, not the person, puts before the model."""
FILE_LINE = "📎 "
"""So begins a line that names a file, in the words of a message of the page."""

NO_LONGER_KEPT = "[no longer kept]"
"""What is read where something was that was removed, because it was old or a person wanted it."""


VOICE_STEM = "voice-message"
"""By this name of its file, before the dot, platforms know a voice message that is sent."""
THOUGHTS = "_thoughts"
"""Under which an assistant's message carries what its model thought (see `model.thinking`); no request ever has it."""
ANY_MODEL = "*"
"""Whose thoughts they are that a client hands back: nobody says, so they are taken for those of the model that is asked."""
THOUGHT_CHARS = 100_000
"""The most of a plain thought that goes back; the beginning goes first."""


@dataclass(frozen=True, slots=True)
class InputMessage:
    """One message that a turn answers: a person's words, or the result of a tool that an API client ran itself."""

    content: Json
    """Text, or a list of content parts (text, image_url, …) as the API takes them."""
    role: str = "user"
    """``user`` or ``tool``."""
    tool_call_id: str = ""
    """For a tool's result: the call that it answers."""
    name: str = ""
    foreign: str = ""
    """Whose words stand in it that are not the person's: a forwarded message, a quotation; empty: none."""
    told: tuple[str, ...] = ()
    """What its person reads of what came with it, in the gateway's words, where they are shown the turn alone: on the page."""
    brought: tuple[str, ...] = ()
    """The names of the files that came with it, for whoever is shown the turn in a conversation that was branched."""
    came: int = 0
    """Its number in the inbox, where those files are kept; 0: none came."""

    def to_message(self) -> Message:
        message: Message = {"role": self.role, "content": self.content}
        if self.tool_call_id:
            message["tool_call_id"] = self.tool_call_id
        if self.name:
            message["name"] = self.name
        return message


class ToldConversation(Sequence[Message]):
    """A conversation whose beginning is at hand as JSON, as it is sent. Only who looks into that has it read.

    In the beginning there is plain text alone: nothing beside it, and no thoughts.
    """

    def __init__(self, begun: Sequence[bytes], rest: Sequence[Message]) -> None:
        """`begun` are messages with a comma between them, without brackets, and none of it is empty."""
        self._begun = begun
        self.rest = rest
        self._sized: list[bytes] | None = None
        """Its parts, between the question how large it is and the next how it is sent."""

    @property
    def encoded(self) -> bytes:
        """All of it as a JSON array. It is not kept: a request is sent once, and its stream would hold it until the end."""
        parts, self._sized = self._sized or self._parts(), None
        return b"".join((b"[", b",".join(parts), b"]"))

    @property
    def size(self) -> int:
        """How many bytes it is as a JSON array."""
        parts = self._sized = self._parts()
        return sum(map(len, parts)) + max(len(parts), 1) + 1

    def _parts(self) -> list[bytes]:
        return [*self._begun, orjson.dumps(list(self.rest))[1:-1]] if self.rest else [*self._begun]

    @functools.cached_property
    def _all(self) -> list[Message]:
        self._sized = None  # who looks into it sends another one
        return [*orjson.loads(b"[" + b",".join(self._begun) + b"]"), *self.rest]

    @override
    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    @override
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._all[index]


def beside_words(messages: Sequence[Message]) -> Sequence[Message]:
    """Those of the messages in which there can be more than plain text."""
    return messages.rest if isinstance(messages, ToldConversation) else messages


def carried_thoughts(
    endpoint: str, model: str, text: str, kept: Mapping[str, Json], calls: Mapping[int, str]
) -> dict[str, Json]:
    """What a message of the history carries under `THOUGHTS`: `kept` as its reply brought it, and the plain `text` that was thought.
    `calls` gives the ids of its calls by the index that they had in the reply."""
    if not kept:
        return {}
    found: dict[str, Json] = {"endpoint": endpoint, "model": model, **{k: v for k, v in kept.items() if k != "calls"}}
    if text and kept.get("field"):
        found["text"] = text[:THOUGHT_CHARS]
    by_index = kept.get("calls")
    if isinstance(by_index, dict):
        ids = {str(index): call for index, call in calls.items()}
        found["calls"] = {ids[index]: fields for index, fields in by_index.items() if index in ids}
    return found


def text_of(content: Json) -> str:
    """The readable text of a message's content; other parts are named in brackets."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    pieces: list[str] = []
    for part in content:
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, dict):
            text = part.get("text")
            pieces.append(text if isinstance(text, str) else f"[{part.get('type', 'part')}]")
    return "\n".join(pieces)


def as_text(parts: list[Json]) -> Json:
    """Nothing but texts as one text: a model that takes no pictures often takes no lists either. All else as it is."""
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in parts]
    said = [text for text in texts if isinstance(text, str)]
    return "\n\n".join(text for text in said if text) if len(said) == len(parts) else parts


def is_void(message: Message) -> bool:
    """A reply that was stopped before its first word, as clients keep it: Anthropic, Bedrock, Gemini and Mistral refuse it, and all that comes after."""
    return message.get("role") == "assistant" and not message.get("tool_calls") and not tells(message.get("content"))


def tells(content: Json) -> bool:
    """Whether there is something in it beside blanks."""
    text = content if isinstance(content, str) else text_of(content)
    return bool(text) and not text.isspace()


def words_of(content: Json) -> str:
    """What a person wrote in a message, as they see it again: without what came beside it, if there are words, and without what the gateway added."""
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return said_by_the_person("\n".join(map(str, texts)) or text_of(content))


def files_of(content: Json) -> list[tuple[str, str]]:
    """The files among the parts of a message, in their order: of each its name and its data, as a ``data:`` address. Pure."""
    found: list[tuple[str, str]] = []
    for part in content if isinstance(content, list) else []:
        match part:
            case {"type": "file", "file": {"filename": str(name), "file_data": str(data)}}:
                found.append((name, data))
            case _:
                pass
    return found


def said_by_the_person(text: str) -> str:
    """A message without what the gateway added at its end for the model."""
    if text.startswith(GATEWAY_PREFIX):
        return ""
    return text.partition(f"\n\n{GATEWAY_PREFIX} ")[0]


def said_by_the_gateway(text: str) -> str:
    """What the gateway added at a message's end, or the whole of a message that is the gateway's."""
    return text if text.startswith(GATEWAY_PREFIX) else "".join(text.partition(f"\n\n{GATEWAY_PREFIX} ")[1:]).strip()


def shown_still(message: Message) -> Message:
    """The message with a word in place of each picture or file that is no longer kept: no model takes an address without anything."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts: list[Json] = [_still(part) for part in content]
    return {**message, "content": parts}


def _still(part: Json) -> Json:
    if not isinstance(part, dict):
        return part
    held = [part, *(inner for inner in part.values() if isinstance(inner, dict))]
    gone = any(inner.get(key) == NO_LONGER_KEPT for inner in held for key in ("url", "data", "file_data"))
    return {"type": "text", "text": f"[{part.get('type', 'part')}: no longer kept]"} if gone else part
