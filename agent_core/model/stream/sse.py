"""Server-sent events of a model stream, read from bytes as they arrive. No I/O.

The rules are those of the event-stream format in the HTML standard (section 9.2.6), with five decisions for model servers:

- Some servers put one JSON object on each ``data:`` line and only one line end between them. A line that begins with ``{``
  (or is ``[DONE]``) after data that ends with ``}`` begins a new event: inside one JSON text a ``}`` is never followed by
  a ``{``. All other ``data:`` lines of one event are joined with a line feed, as the standard says.
- ``[DONE]`` is an event at its line end already: a server that keeps the connection open may send nothing after it.
- An event without its blank line at the end of the stream is given by `finish`, where the standard drops it. Only a JSON
  object that stops in the middle of a line is dropped: that is a stream that broke, not one that says something wrong.
- A line ``error: {…}`` (llama.cpp's server) is an event that holds that error.
- Lines that are no event stream (a page of HTML, a plain JSON error in a 200 answer) are kept in `stray`, for diagnosis.

Laws (tests hold them): every way of cutting the bytes gives the same events, the same stray lines and the same counts;
memory is bounded by `limit_bytes`; time is linear.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import orjson

from agent_core.jsonvalue import Json

DONE = b"[DONE]"
LIMIT_BYTES = 16 * 1024 * 1024
STRAY_BYTES = 4096
"""How much of what is no event stream is kept."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WHOLE = (b"data: {", b"data: [DONE]")
_ENDS = (b"}\n\n", b"data: [DONE]\n\n")
_IGNORED_FIELDS = frozenset({b"id", b"retry"})


class SseTooLarge(Exception):
    """One event, or one line, is longer than the reader may hold."""

    def __init__(self, limit_bytes: int, *, data: bool = True) -> None:
        super().__init__(
            f"the model's stream sent one event of more than {limit_bytes} bytes; the call must be given up"
        )
        self.limit_bytes = limit_bytes
        self.data = data
        """What is too long is data of an event; else it is a line of whatever else this address serves."""


class SseEvent(NamedTuple):
    """One event. A tuple, because one is made for each token."""

    data: bytes
    """The ``data:`` lines, joined with a line feed."""
    event: str = ""
    """What the ``event:`` line said; empty if there was none."""


def _may_be_whole(data: bytes) -> bool:
    """False for the beginning of a JSON object."""
    if not data.lstrip().startswith(b"{"):
        return True
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


class SseReader:
    """Turns the bytes of one response into events. Feed it bytes cut anywhere, then `finish`.

    Raises `SseTooLarge` once a line, or the data of one event, is longer than `limit_bytes`; events that were complete
    before that are given first. After that, and after `finish`, the reader is of no further use.
    """

    __slots__ = (
        "_data",
        "_data_bytes",
        "_event",
        "_first_line",
        "_limit_bytes",
        "_line",
        "_line_bytes",
        "_skip_line_feed",
        "_stray",
        "_too_large",
        "comments",
        "ended_inside_line",
    )

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.comments = 0
        """How many comment lines came. They are no sign of life."""
        self.ended_inside_line = False
        """Set by `finish`: the last line had no line end, so the response was probably cut off."""
        self._limit_bytes = limit_bytes
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event = ""
        self._stray = bytearray()
        self._first_line = True
        self._skip_line_feed = False
        self._too_large = False

    @property
    def stray(self) -> bytes:
        """The first 4096 bytes of the lines that belong to no event stream, each with a line feed between them."""
        return bytes(self._stray)

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data`, the next bytes of the response, completes."""
        self._check()
        if data.startswith(b"data: {") and data.endswith(_ENDS) and self.between_events and self._plain(data):
            return self._whole_events(data)
        if self._skip_line_feed and data:
            self._skip_line_feed = False
            data = data.removeprefix(b"\n")
        if b"\n" not in data and b"\r" not in data:
            self._keep(data)
            if self._too_large:
                raise SseTooLarge(self._limit_bytes, data=b"".join(self._line[:5]).startswith(b"data:"))
            return []
        if self._line:
            data = b"".join((*self._line, data))
            self._line, self._line_bytes = [], 0
        lines = data.splitlines()  # on bytes: LF, CR and CRLF, nothing else
        rest = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        self._skip_line_feed = data.endswith(b"\r")
        events: list[SseEvent] = []
        for line in lines:
            self._read_line(line, events)
            if self._too_large:
                break
        else:
            self._keep(rest)
        if self._too_large and not events:
            raise SseTooLarge(self._limit_bytes)
        return events

    @property
    def between_events(self) -> bool:
        """No line and no event is open."""
        return not (self._line or self._data or self._event or self._skip_line_feed)

    def _plain(self, data: bytes) -> bool:
        """`data` has nothing in it that only the long way knows."""
        return b"\r" not in data and len(data) <= self._limit_bytes

    def _whole_events(self, data: bytes) -> list[SseEvent]:
        """The short way for most reads: nothing but whole events of one line each, perhaps with the mark of the end; else the long way."""
        events: list[SseEvent] = []
        for event in data[:-2].split(b"\n\n"):
            if not event.startswith(_WHOLE) or b"\n" in event:
                break
            events.append(SseEvent(event[6:]))
        else:
            self._first_line = False
            return events
        lines: list[SseEvent] = []
        for line in data.splitlines():
            self._read_line(line, lines)
        return lines

    def finish(self) -> list[SseEvent]:
        """The response is over: gives the event that was still open, if there is one."""
        self._check()
        events: list[SseEvent] = []
        if self._line:
            self.ended_inside_line = True
            line, self._line, self._line_bytes = b"".join(self._line), [], 0
            self._read_line(line, events)
            if self._data and not _may_be_whole(b"\n".join(self._data)):
                self._data, self._data_bytes = [], 0
        self._dispatch(events)
        if self._too_large and not events:
            raise SseTooLarge(self._limit_bytes)
        return events

    def _check(self) -> None:
        if self._too_large:
            raise SseTooLarge(self._limit_bytes)

    def _keep(self, part: bytes) -> None:
        """Hold the beginning of a line whose end has not come."""
        if part:
            self._line.append(part)
            self._line_bytes += len(part)
            self._too_large = self._line_bytes > self._limit_bytes

    def _read_line(self, line: bytes, events: list[SseEvent]) -> None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            self._dispatch(events)
            return
        if len(line) > self._limit_bytes:
            self._too_large = True
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._read_data(value.removeprefix(b" "), events)
        elif name == b"event":
            self._event = value.removeprefix(b" ").decode("utf-8", "replace")
        elif name == b"error" and value.lstrip().startswith(b"{"):
            self._dispatch(events)
            events.append(SseEvent(b'{"error":' + value + b"}", "error"))
        elif not name:
            self.comments += 1
        elif name not in _IGNORED_FIELDS:
            self._read_stray(line)

    def _read_data(self, value: bytes, events: list[SseEvent]) -> None:
        done = value.strip() == DONE
        if self._data and self._data[-1].rstrip().endswith(b"}") and (done or value.lstrip().startswith(b"{")):
            event = self._event
            self._dispatch(events)
            self._event = event  # a server that sends no blank lines names its events once, if at all
        self._data.append(value)
        self._data_bytes += len(value) + 1
        if self._data_bytes > self._limit_bytes + 1:
            self._too_large = True
            self._data = []
        elif done and len(self._data) == 1:
            self._dispatch(events)

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            if data.strip():  # an event without data is none: proxies send them to keep a connection open
                events.append(SseEvent(data, self._event))
            self._data, self._data_bytes = [], 0
        self._event = ""

    def _read_stray(self, line: bytes) -> None:
        room = STRAY_BYTES - len(self._stray)
        if room > 0:
            self._stray += (b"\n" + line if self._stray else line)[:room]


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
