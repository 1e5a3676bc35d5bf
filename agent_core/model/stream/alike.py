"""Chunks that differ in nothing but a piece of text, read together: one step for all that came from the socket. Pure.

Theory. Nearly all chunks of a reply are the same bytes but for the text in them. Once one was read the long way and says nothing but
text, what stands before and behind that text is known, and a read that consists of such chunks alone is a list of texts. Anything else
(another field, an end, a call, a line that is cut in an unusual place) goes the long way, and may teach what is alike from there on.

Laws (tests/agent_core/model/test_alike.py): whatever a server sends, and wherever it is cut, the events say the same as on the long way;
memory is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from agent_core.jsonvalue import Json
from agent_core.model.stream.chunks import ChunkReader
from agent_core.model.stream.sse import SseReader
from agent_core.turn.events import Event

TRIES = 8
"""So often is it looked what is alike before that has saved anything: servers that write a time or a filling into each chunk have nothing alike."""
REST_BYTES = 65_536
"""The longest beginning of a chunk that waits here for its end; a longer one waits on the long way, which knows how long it may be."""
_BEHIND_CHOICE = ("finish_reason", "native_finish_reason", "finishReason", "message", "error", "usage", "text")
_BESIDE_CHOICES = ("error", "usage", "x_groq")


class Alike:
    """What stands before and behind the text of one stream's chunks."""

    __slots__ = ("_before", "_behind", "_joint", "_tries")

    def __init__(self) -> None:
        self._before = self._behind = self._joint = b""
        self._tries = TRIES

    def read(self, data: bytes, room: int) -> tuple[str, int, bytes] | None:
        """The text of chunks that are alike, of how many, and the beginning of the next one; None if there is anything else in `data`, or if any
        of their texts is not shorter than `room`."""
        before, behind = self._before, self._behind
        if not before or not data.startswith(before):
            return None
        end = data.rfind(behind)
        rest = data[end + len(behind) :]
        if end < len(before) or len(rest) > REST_BYTES or b"\n" in rest:
            return None
        body = data[len(before) : end]
        found = self._strung(body, room) or _strings(body, self._joint[1:-1], room)
        if found is None:
            return None
        self._tries = TRIES
        return *found, rest

    def _strung(self, body: bytes, room: int) -> tuple[str, int] | None:
        """The text of strings that hold nothing but characters as they are, read as one: what stands between two of them is left out. None if that
        cannot be told."""
        if b"\\" in body or b'""' in body:
            return None
        string = body.replace(self._joint, b"")
        if len(string) > room or string.count(b'"') != 2 or not (string.startswith(b'"') and string.endswith(b'"')):
            return None
        try:
            text: Json = orjson.loads(string)
        except orjson.JSONDecodeError:
            return None
        assert isinstance(text, str)
        return text, 1 + (len(body) - len(string)) // len(self._joint)

    def learn(self, payload: bytes) -> None:
        """This chunk was read the long way: what it has beside its text may be what the next ones have."""
        if not self._tries or payload[:1] != b"{":  # what marks the end is no chunk
            return
        self._tries -= 1
        try:
            text = only_text(orjson.loads(payload))
        except orjson.JSONDecodeError:
            return
        written = orjson.dumps(text)
        before, found, behind = payload.partition(written)
        if text and found and written not in behind and b"\n" not in payload:
            self._before, self._behind = b"data: " + before, behind + b"\n\n"
            self._joint = b'"' + self._behind + self._before + b'"'


def _strings(body: bytes, between: bytes, room: int) -> tuple[str, int] | None:
    """The strings that stand in `body` with `between` between them, as one, and how many; None if anything else does, or one that is not shorter
    than `room`. A line feed cannot stand in a string, and each place holds one value at least, so as many values as places are one in each."""
    try:
        found: Json = orjson.loads(b"[" + body.replace(between, b",\n") + b"]")
    except orjson.JSONDecodeError:
        return None
    assert isinstance(found, list)
    texts = [text for text in found if isinstance(text, str) and text]
    if len(texts) != len(found) or len(texts) != body.count(between) + 1 or max(map(len, texts)) >= room:
        return None
    return "".join(texts), len(texts)


def _parted(data: bytes) -> tuple[bytes, bytes]:
    """What is whole, and a line at the end that has only begun: it may be the beginning of a chunk that is like the others."""
    end = data.rfind(b"\n\n") + 2
    rest = data[end:]
    waits = end > 1 and len(rest) <= REST_BYTES and b"\n" not in rest and b"\r" not in rest
    return (data[:end], rest) if waits else (data, b"")


def only_text(chunk: Json) -> str:
    """The text of a chunk that says nothing else; empty if it says anything else."""
    if not isinstance(chunk, dict) or any(chunk.get(name) for name in _BESIDE_CHOICES):
        return ""
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    if not isinstance(choice, dict) or any(choice.get(name) for name in _BEHIND_CHOICE):
        return ""
    delta = choice.get("delta")
    if not isinstance(delta, dict) or any(delta[name] is not None for name in delta if name not in ("content", "role")):
        return ""
    text = delta.get("content")
    return text if isinstance(text, str) else ""


class BodyReader:
    """The body of one answer: bytes to events, by the short way where it leads to the same."""

    __slots__ = ("_alike", "_chunks", "_rest", "_sse")

    def __init__(self, chunks: ChunkReader) -> None:
        self._chunks = chunks
        self._sse = SseReader()
        self._alike = Alike()
        self._rest = b""
        """The beginning of a chunk that may be like the others."""

    @property
    def stray(self) -> bytes:
        """What belongs to no event stream."""
        return self._sse.stray

    def feed(self, data: bytes, at: int) -> list[Event]:
        """What the next bytes say, which came at `at` (ms). Raises `SseTooLarge`."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        room = self._chunks.room
        if room and (found := self._alike.read(data, room)) is not None and self._sse.between_events:
            text, pieces, self._rest = found
            return self._chunks.feed_text(text, pieces, at)
        whole, self._rest = _parted(data)
        payloads = [event.data for event in self._sse.feed(whole)]
        if not payloads:
            return []
        events = self._chunks.feed(payloads, at)
        self._alike.learn(payloads[-1])
        return events

    def finish(self, at: int) -> list[Event]:
        """The body is over: what was still open."""
        rest, self._rest = self._rest, b""
        open_events: Sequence[bytes] = [event.data for event in self._sse.feed(rest)] if rest else []
        payloads = [*open_events, *(event.data for event in self._sse.finish())]
        return self._chunks.feed(payloads, at) if payloads else []
