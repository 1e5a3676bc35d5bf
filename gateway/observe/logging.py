"""Logs: one event a line on standard error, JSON for machines or one line of words for a terminal.

An event has a stable name ``area.what`` and facts as keys; operators and `outspoken logs` filter by them, so a name is part of
the program's interface. The log of the libraries (aiohttp, sqlalchemy, openai, …) comes in the same form, as
``library.message``, from WARNING on: their lower levels quote requests.

Laws: no secret is written (values, exception texts and names of keys go through the redactor); what people and the model say is
written only if `show_text` is on; a value cannot end its line or steer a terminal; no value can break logging; a stream that is
closed or that nobody reads any more costs its lines, never the daemon. A fact that is not there is left out.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache, partial
from pathlib import PurePath
from typing import Any, BinaryIO, Protocol, TextIO, TypeAlias, cast

import orjson
import structlog
from structlog.typing import EventDict, WrappedLogger
from typing_extensions import override

from adapters.contract.pacing import worth_saying
from agent_core.text.redaction import MASK, Redactor, is_secret_name
from gateway.config.types import LogFormat, LogLevel
from gateway.observe.logcatalogue import GENAI

TEXT_KEYS = frozenset({"text", "prompt", "content", "arguments", "result", "reply", "input"})
"""Keys under which an event carries what people or the model say."""

MAX_CHARS = 16_000
"""A longer text is cut in the middle, so that the beginning and the end of a traceback stay."""

KNOWN_AGAIN_CHARS = 64
"""A text that is not longer is looked at once while it is among the last thousand: the same come with every line."""

DEEPEST = 8
"""Levels of nesting that are written."""

Plain: TypeAlias = bool | int | float | str | list["Plain"] | dict[str, "Plain"] | None

# What a terminal could take for a command, or what turns the order of the text: DEL, C1, line separators, bidi controls.
_STEERING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_STEERING_ONLY = re.compile(f"[{_STEERING}]")
_STEERING_OR_CONTROL = re.compile(f"[\x00-\x1f{_STEERING}]")


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def escaped(text: str) -> str:
    """`text` on one line, with every character that could steer a terminal written as an escape."""
    return _STEERING_OR_CONTROL.sub(_escape, text)


def shortened(text: str) -> str:
    """`text`, or its beginning and its end if it has more than `MAX_CHARS` characters."""
    if len(text) <= MAX_CHARS:
        return text
    half = MAX_CHARS // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"


class Cleaner:
    """The processor that makes an event's values plain, short, free of secrets and harmless to show."""

    def __init__(self, redactor: Redactor, *, show_text: bool) -> None:
        self._redactor = redactor
        self._show_text = show_text
        # Names of facts are few and come again with every event; so do models, endpoints, ids.
        self._name = lru_cache(1024)(self._cleaned_name)
        self._short = lru_cache(1024)(self._cleaned)
        self._open = lru_cache(1024)(self._named_if_it_says_what_it_holds)

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        found: dict[str, object] = {}
        for key, value in event.items():
            kind = value.__class__  # most facts are of these four, and are looked at without a detour
            if value is None:
                continue  # what is not there is not written
            name = self._open(key)
            if name and kind is str:
                found[name] = self._short(value) if len(value) <= KNOWN_AGAIN_CHARS else self._cleaned(value)
            elif name and (kind is bool or kind is float or (kind is int and -(2**63) <= value < 2**63)):
                found[name] = value
            else:
                found[name or self._name(key)] = self._value(key, value, DEEPEST)
        return found

    def _named_if_it_says_what_it_holds(self, key: str) -> str:
        """The fact's name; empty if its value is not written as it is."""
        opened = not is_secret_name(key) and (self._show_text or key not in TEXT_KEYS)
        return self._name(key) if opened else ""

    def _cleaned_name(self, name: str) -> str:
        return escaped(self._text(name))

    def _text(self, text: str) -> str:
        return self._short(text) if len(text) <= KNOWN_AGAIN_CHARS else self._cleaned(text)

    def _cleaned(self, text: str) -> str:
        text = self._redactor.redact(text)
        if len(text) > MAX_CHARS:
            text = shortened(text)
        if text.isascii() and "\x7f" not in text:
            return text
        # Half of a surrogate pair cannot be written as UTF-8.
        return _STEERING_ONLY.sub(_escape, text.encode("utf-8", "backslashreplace").decode("utf-8"))

    def _value(self, key: str, value: object, deeper: int) -> Plain:
        if value is None or isinstance(value, bool):
            return value
        if is_secret_name(key):
            return MASK
        if key in TEXT_KEYS and not self._show_text:
            return _length(value)
        if type(value) is str:
            return self._text(value)
        if deeper and isinstance(value, list | tuple | set | frozenset):
            return [self._value("", item, deeper - 1) for item in list(cast("Iterable[object]", value))]
        if isinstance(value, Enum):
            return self._value(key, value.value, deeper)
        if isinstance(value, str):
            return self._text(str(value))
        if isinstance(value, float):
            return float(value)
        if isinstance(value, int):
            return int(value) if -(2**63) <= value < 2**63 else str(value)
        if isinstance(value, bytes | bytearray):
            return self._text(value.decode("utf-8", "replace"))
        if deeper and isinstance(value, Mapping):
            items = [
                (name if isinstance(name, str) else _words(name), item)
                for name, item in cast("Mapping[object, object]", value).items()
            ]
            return {self._name(name): self._value(name, item, deeper - 1) for name, item in items}
        return self._text(_words(value))


def _length(value: object) -> str:
    if isinstance(value, str | bytes):
        return f"({len(value)} {'characters' if isinstance(value, str) else 'bytes'})"
    return "(not shown)"


def _words(value: object) -> str:
    """An object in words. Foreign code runs here, and may do anything; an event is written all the same."""
    try:
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}"
        return str(value) if isinstance(value, PurePath) else repr(value)
    except Exception:  # noqa: BLE001 - a broken repr of somebody else's must not break what was to be told
        return f"<{type(value).__name__} that cannot be shown>"


_now = partial(datetime.now, UTC)
_stack = structlog.processors.StackInfoRenderer()


def _trouble(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """What is said of an exception becomes plain text, without local variables: those hold keys. Hardly any line has one."""
    if "exc_info" in event or "stack_info" in event:
        return structlog.processors.format_exc_info(logger, method, _stack(logger, method, event))
    return event


POOL = "sqlalchemy.pool"
"""What it cannot close or clean is a connection that is gone, for which nobody here has to look through the library: whoever used it says more."""


def _foreign(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A library's record under our own name; its words become a fact."""
    record = cast("logging.LogRecord", event["_record"])
    event["message"] = event.pop("event")
    event["event"] = "library.message"
    event["logger"] = record.name
    if record.name.startswith(POOL) and record.exc_info is not None:
        del event["exc_info"]
        event.update(level="warning", error=_words(record.exc_info[1]))
    return event


def as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> bytes:
    """The event as one line of JSON, with OpenTelemetry's names for generative AI besides ours."""
    named = GENAI.get(str(event.get("event")))
    if named is not None:
        event.update({theirs: event[ours] for ours, theirs in named.items() if event.get(ours) is not None})
    return orjson.dumps(event)


class Pretty:
    """The event as one line for people; a traceback follows, indented, so that none of its lines can pass for an event."""

    def __init__(self, *, colors: bool) -> None:
        self._renderer = structlog.dev.ConsoleRenderer(
            colors=colors, exception_formatter=structlog.dev.plain_traceback, sort_keys=False, pad_event_to=24
        )

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> bytes:
        facts = {key: _one_line(value) for key, value in cast("dict[str, Plain]", event).items()}
        for key in ("exception", "stack"):
            if isinstance(event.get(key), str):
                lines = str(event[key]).split("\n")
                facts[key] = "\n".join(f"    {escaped(line)}" for line in lines)
        return self._renderer(logger, method, facts).encode("utf-8", "backslashreplace")


def _one_line(value: Plain) -> Plain:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return [_one_line(item) for item in value]
    return {escaped(key): _one_line(item) for key, item in value.items()} if isinstance(value, dict) else value


class Sink:
    """Where the lines go. A line that cannot be written is dropped and counted."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._buffer: BinaryIO | None = getattr(stream, "buffer", None)
        self._lock = threading.Lock()
        self.lost = 0
        """Lines that could not be written."""

    def write(self, line: bytes) -> None:
        """Write one line, whole. Never raises for what happened to the stream."""
        with self._lock:
            try:
                self._put(line + b"\n")
            except (OSError, ValueError, AttributeError):  # no reader, disk full; closed; standard error taken away
                self.lost += 1

    def _put(self, line: bytes) -> None:
        if self._buffer is not None:
            self._buffer.write(line)
            self._buffer.flush()
        elif self._stream is not None:
            self._stream.write(line.decode("utf-8", "backslashreplace"))
            self._stream.flush()
        else:
            self.lost += 1


class _Lines:
    """What structlog calls with a finished line."""

    def __init__(self, sink: Sink) -> None:
        self.msg = self.debug = self.info = self.warning = self.warn = sink.write
        self.error = self.critical = self.fatal = self.exception = self.log = sink.write


def _straight(self: Any, method: str, event: str, /, **facts: Any) -> None:
    """How an event goes through the processors: as structlog's own, for a logger to which nothing is bound, as none of ours has anything."""
    facts["event"] = event
    told: Any = facts
    try:
        for process in self._processors:
            told = process(self._logger, method, told)
    except structlog.DropEvent:
        return
    self._logger.msg(told)


AGAIN_AND_AGAIN = frozenset(
    {
        "storage.unavailable",
        "storage.calls_lost",
        "slices.not_collected",
        "slices.not_looked",
        "slices.not_told",
        "slices.people_not_read",
    }
)
AND_SO_ON = (".storage_unavailable", ".not_stored")
"""How the names of others end. All these are said by whoever needs the storage, at each try."""
IS_BACK = frozenset({"storage.works_again", "storage.pulse_back", "storage.taken_for_dead"})
OVER_SECONDS = 60.0
"""When nobody has met it for so long, it is over without a word."""


class Outages:
    """While the storage is away, everybody who needs it tries again and again, and says so. An operator reads of each of them once, then how often it
    was in all, whenever that has doubled, and at the end how often it was."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._said: set[str] = set()
        self._times = 0
        self._last = 0.0

    def worth_a_line(self, method: str, event: EventDict) -> bool:
        """Whether a line of this is written; it has the count then."""
        if method != "warning":
            return True
        name = event["event"]
        if name in IS_BACK:
            if self._times:
                event["times"] = self._times
            self._said, self._times = set(), 0
            return True
        if name not in AGAIN_AND_AGAIN and not name.endswith(AND_SO_ON):
            return True
        now = self._now()
        if now - self._last > OVER_SECONDS:
            self._said, self._times = set(), 0
        self._last, new = now, name not in self._said
        self._times += 1
        self._said.add(name)
        if self._times > 1:
            event["times"] = self._times
        return new or worth_saying(self._times)


class Renderer(Protocol):
    """Makes a line of an event."""

    def __call__(self, logger: WrappedLogger, method: str, event: MutableMapping[str, object], /) -> bytes: ...


_LEVEL_OF = {"warn": "warning", "exception": "error"}


class LineMaker:
    """The processor that makes an event a line: time, level and name in front, its facts behind, each clean. One, and no chain of them: a turn has
    three lines, and what a line takes is mostly what stands around it."""

    def __init__(self, clean: Cleaner, render: Renderer, now: Callable[[], datetime]) -> None:
        self._clean = clean
        self._render = render
        self._now = now
        self._outages = Outages()

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> bytes:
        if not self._outages.worth_a_line(method, event):
            raise structlog.DropEvent
        if "exc_info" in event or "stack_info" in event:
            event = _trouble(logger, method, event)
        moment = f"{self._now().isoformat(timespec='milliseconds')[:-6]}Z"  # ISO 8601, UTC
        told = {"level": "", "event": "", **event}
        told["level"] = _LEVEL_OF.get(method, method)
        return self._render(logger, method, {"timestamp": moment, **self._clean(logger, method, told)})


class LibraryHandler(logging.Handler):
    """Takes the records of the libraries."""

    def __init__(self, sink: Sink, line: LineMaker) -> None:
        super().__init__()
        self._sink = sink
        self._line = line

        def as_text(logger: WrappedLogger, method: str, event: EventDict) -> str:
            return line(logger, str(event.get("level", method)), event).decode("utf-8")

        self.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[structlog.stdlib.add_log_level, _foreign],
                processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, as_text],
            )
        )

    @override
    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record).encode("utf-8", "backslashreplace")
        except Exception:  # noqa: BLE001 - a record whose arguments do not fit its text is the library's bug, not our end
            line = self._unreadable(record)
        self._sink.write(line)

    def _unreadable(self, record: logging.LogRecord) -> bytes:
        words = _words(cast("object", record.msg))
        return self._line(None, "warning", {"event": "library.unreadable", "logger": record.name, "message": words})


_LEVELS: Mapping[LogLevel, int] = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}


def configure(
    level: LogLevel,
    format: LogFormat,  # noqa: A002 - the configuration's own word
    redactor: Redactor,
    stream: TextIO | None = None,
    *,
    show_text: bool = False,
    now: Callable[[], datetime] = _now,
) -> Sink:
    """Set up logging for the process, also that of the libraries. Calling it again replaces what was set up.

    `stream` is standard error if None. Returns the sink, whose ``lost`` counts lines that could not be written.
    """
    stream = stream if stream is not None else sys.stderr
    terminal = _is_terminal(stream)
    pretty = format is LogFormat.PRETTY or (format is LogFormat.AUTO and terminal)
    render: Renderer = Pretty(colors=terminal and not os.environ.get("NO_COLOR")) if pretty else as_json
    sink = Sink(stream)
    line, lines = LineMaker(Cleaner(redactor, show_text=show_text), render, now), _Lines(sink)
    filtering = structlog.make_filtering_bound_logger(_LEVELS[level])
    structlog.configure(
        processors=[line],
        wrapper_class=type("Straight", (filtering,), {"_proxy_to_logger": _straight}),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LibraryHandler)]:
        root.removeHandler(handler)
    root.addHandler(LibraryHandler(sink, line))
    root.setLevel(max(logging.WARNING, _LEVELS[level]))
    logging.captureWarnings(True)
    return sink


@contextmanager
def silence() -> Generator[None]:
    """No log meanwhile, for a command whose findings are its page: what a look meets is told there, in words."""
    before, disabled = structlog.get_config(), logging.root.manager.disable
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(disabled)
        structlog.configure(**before)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):
        return False
