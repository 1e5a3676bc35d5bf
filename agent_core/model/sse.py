"""Reads server-sent events of a model stream from bytes. Pure, incremental, bounded.

Follows the event stream format of the HTML standard (lines end with LF, CRLF or CR; a blank line ends an event; lines that
begin with a colon are comments), with two concessions to model servers: a ``data:`` line that is a whole JSON object or
``[DONE]`` is an event at once, blank line or not; and lines that are no event stream at all (an HTML page, a bare JSON error) are
kept, up to 4 KiB, for whoever has to say what went wrong.

Law (tests/agent_core/model/test_sse.py): every way of cutting the same bytes gives the same events.
"""

from __future__ import annotations

from dataclasses import dataclass

STRAY_LIMIT_BYTES = 4096


class SseTooLarge(Exception):
    """A single event is larger than the limit."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event."""

    data: bytes
    event: str = ""


class SseReader:
    """Feed bytes as they come; get events."""

    def __init__(self, limit_bytes: int = 16 * 1024 * 1024) -> None:
        self._limit = limit_bytes
        self._tail: list[bytes] = []
        self._tail_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event = ""
        self._begun = False
        self.stray = b""
        """The beginning of what came and is no event stream."""
        self.comments = 0

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that are complete now. Raises `SseTooLarge`."""
        if b"\n" not in data and b"\r" not in data:
            self._keep(data)
            return []
        if self._tail:
            data = b"".join((*self._tail, data))
            self._tail.clear()
            self._tail_bytes = 0
        held = b""
        if data.endswith(b"\r"):  # a line feed may follow in the next piece
            data, held = data[:-1], b"\r"
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        if rest or held:
            self._keep(rest + held)
        return self._lines(lines)

    def finish(self) -> list[SseEvent]:
        """The stream is over: an event that no blank line ended."""
        rest = b"".join(self._tail).rstrip(b"\r")
        self._tail.clear()
        self._tail_bytes = 0
        events = self._lines([rest]) if rest else []
        self._dispatch(events)
        return events

    def _keep(self, data: bytes) -> None:
        self._tail.append(data)
        self._tail_bytes += len(data)
        if self._tail_bytes > self._limit:
            raise SseTooLarge(f"an event of more than {self._limit} bytes")

    def _lines(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        for raw in lines:
            line = raw
            if not self._begun:
                self._begun = True
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line:
                self._dispatch(events)
            elif line.startswith(b"data:"):
                self._data_line(line[6:] if line[5:6] == b" " else line[5:], events)
            elif line.startswith(b":"):
                self.comments += 1
            elif line.startswith(b"event:"):
                self._event = line[6:].strip().decode("utf-8", "replace")
            elif not line.startswith((b"id:", b"retry:")) and line not in (b"data", b"event", b"id", b"retry"):
                self._stray(line)
        return events

    def _data_line(self, data: bytes, events: list[SseEvent]) -> None:
        starts_anew = data.startswith((b"{", b"[DONE]"))
        if starts_anew and self._data:
            self._dispatch(events)
        self._data.append(data)
        self._data_bytes += len(data)
        if self._data_bytes > self._limit:
            raise SseTooLarge(f"an event of more than {self._limit} bytes")
        if starts_anew and data.rstrip().endswith((b"}", b"[DONE]")):
            self._dispatch(events)

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            events.append(SseEvent(b"\n".join(self._data), self._event))
            self._data.clear()
            self._data_bytes = 0
        self._event = ""

    def _stray(self, line: bytes) -> None:
        if len(self.stray) < STRAY_LIMIT_BYTES:
            self.stray = (self.stray + line + b"\n")[:STRAY_LIMIT_BYTES]
