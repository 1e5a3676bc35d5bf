"""What is fuzzed, one function each: bytes in, nothing out, and an exception if a law is broken.

The first byte says how the rest is cut into pieces, so that one input tries content and cutting. Laws of all: only the errors
that are documented, and memory that stays in proportion to the input. A hang is the runner's to notice.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from adapters.http.common import Problem
from adapters.http.openai_request import ChatRequest, parse
from agent_core.journal.rows import merged
from agent_core.model.families.pieces import Piece, TextCall, VisibleText
from agent_core.model.stream.chunks import ChunkReader
from agent_core.model.stream.sse import SseReader, SseTooLarge
from agent_core.model.stream.text_calls import TextCallParser
from agent_core.turn.events import Event, TextArrived, ToolArgumentsArrived, ToolCallNamed
from gateway.config.reading import ConfigError, load

LIMIT_BYTES = 2_000
CALL_SHOWN = re.compile(r"<tool_call>[ \t\r\n]*[{\[]")
"""A tag that opens a call. (One that nothing like a call follows is somebody writing about tags.)"""
QUOTES = re.compile(r"[`~>\"'“„‘‚«‹「『（]")
"""What is quoted is an example."""


class LawBroken(AssertionError):
    """The program did what it never may, with words that say what."""


def pieces(data: bytes) -> Iterator[bytes]:
    """The rest of `data`, cut as its first byte says."""
    if not data:
        return
    size, rest = data[0] % 16, data[1:]
    if size == 0:
        yield rest
        return
    for at in range(0, len(rest), size):
        yield rest[at : at + size]


def server_sent_events(data: bytes) -> None:
    """Every cutting gives the same events, and nothing longer than the limit is held."""
    whole = _events([data[1:]])
    cut = _events(list(pieces(data)))
    if whole != cut:
        raise LawBroken(f"cut otherwise, {data!r} gives {cut} and not {whole}")


def _events(parts: Sequence[bytes]) -> tuple[list[tuple[bytes, str]], bool]:
    reader = SseReader(LIMIT_BYTES)
    found: list[tuple[bytes, str]] = []
    try:
        for part in parts:
            found += [(event.data, event.event) for event in reader.feed(part)]
        found += [(event.data, event.event) for event in reader.finish()]
    except SseTooLarge:
        return [], True
    if len(reader.stray) > 4_096:
        raise LawBroken(f"{len(reader.stray)} bytes of stray lines are held")
    return found, False


def chunks(data: bytes) -> None:
    """The same for what the payloads mean; a call is named before its arguments come."""
    whole, cut = _meaning([data[1:]]), _meaning(list(pieces(data)))
    if whole != cut:
        raise LawBroken(f"cut otherwise, {data!r} means {cut} and not {whole}")
    named: set[int] = set()
    for event in whole:
        if isinstance(event, ToolCallNamed):
            named.add(event.index)
        elif isinstance(event, ToolArgumentsArrived) and event.index not in named:
            raise LawBroken(f"arguments for a call that has no name: {event}")


def _meaning(parts: Sequence[bytes]) -> list[Event]:
    sse, reader = SseReader(), ChunkReader(1, (), parse_text_calls=True)
    found: list[Event] = []
    for part in parts:
        found += reader.feed([event.data for event in sse.feed(part)], 0)
    found += reader.feed([event.data for event in sse.finish()], 0)
    found += reader.finish(0)
    for event in found:
        if isinstance(event, TextArrived):
            event.text.encode()  # half a surrogate pair could not be stored or shown
    return merged(found)


def text_calls(data: bytes) -> None:
    """Every cutting gives the same text and the same calls, no call is ever shown, and nothing is invented."""
    text = data[1:].decode("utf-8", "replace")
    whole, cut = _read([text]), _read([part.decode("utf-8", "replace") for part in _by_character(data)])
    if whole != cut:
        raise LawBroken(f"cut otherwise, {text!r} gives {cut} and not {whole}")
    shown, calls = whole
    if CALL_SHOWN.search(shown) and not QUOTES.search(text.replace("<tool_call>", "").replace("</tool_call>", "")):
        raise LawBroken(f"a call is shown as text: {shown!r}")
    if len(shown) + sum(len(arguments) for _, arguments in calls) > 8 * len(text) + 16:
        raise LawBroken(f"more came out than went in: {shown!r} {calls}")


def _by_character(data: bytes) -> Iterator[bytes]:
    """Cut between characters: what a decoder would hand on."""
    size = data[0] % 16 if data else 0
    text = data[1:].decode("utf-8", "replace")
    step = size or len(text) or 1
    for at in range(0, len(text), step):
        yield text[at : at + step].encode()


def _read(parts: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    parser = TextCallParser()
    found: list[Piece] = []
    for part in parts:
        found += parser.feed(part)
    found += parser.finish()
    shown = "".join(piece.text for piece in found if isinstance(piece, VisibleText))
    return shown, [(piece.name, piece.arguments) for piece in found if isinstance(piece, TextCall)]


def request_body(data: bytes) -> None:
    """Any body is a request or a problem in words that is the client's; a request can be taken apart and stored."""
    parsed = parse(data)
    if isinstance(parsed, Problem):
        if not 400 <= parsed.status < 500 or not parsed.message.strip():
            raise LawBroken(f"{data!r} is refused with {parsed}")
        return
    assert isinstance(parsed, ChatRequest)
    _, latest = parsed.split()
    if not latest:
        raise LawBroken(f"{data!r} was taken, and nobody says anything in it")


def configuration(data: bytes) -> None:
    """Any file is a configuration, or problems in words that hold no secret."""
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        file.write(data)
        file.flush()
        try:
            load(Path(file.name), {"OUTSPOKEN_HOME": "/nowhere", "OPENAI_API_KEY": "sk-fuzz-secret"}, required=True)
        except ConfigError as error:
            if not error.problems or not str(error).strip():
                raise LawBroken(f"{data!r} is refused without a word") from error
            if "sk-fuzz-secret" in str(error):
                raise LawBroken("a secret is in the words of an error") from error


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (server_sent_events, chunks, text_calls, request_body, configuration)
}
