"""A turn's journal as a file that can be handed on: one JSON object a line, redacted or whole. Pure.

The first line is the head (`Head`), each further line a row of the journal. A redacted export holds no words of people, models,
tools or providers, and is still decided alike, as far as that can be had:

- Letters and digits are replaced one by one, so length, white space, punctuation and the structure of JSON stay. Which letter
  stands for which depends on the letters before it in the word and on a key that is made for this export and thrown away. So
  equal words stay equal, different ones different, and a word that begins like another still does: what overlap, repetitions and
  loops are told by. That hides what was said; it does not hide how long it was, or that two words are the same.
- Results of tools that say the same in the same order become the same; that two say the same in another order is lost.
- Names of tools, models, endpoints and keys' ids, numbers of tokens, times, causes and settings stay. What nothing is decided by is
  left out: earlier conversation, request parameters, schemas, who asked, stopped or approved.

Whether a reply *announces an action* is told by its words, which are gone; a replay of a redacted export takes it from the journal.
Where something else was decided by words, the export is decided otherwise: `redacted` decides both turns and says at which row they
part, so that nobody has to guess.

Known to be weak: lengths of words stay, so whoever has a text can find it again in an export of it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace

import orjson

from agent_core.failures.exits import Exit, Stopped
from agent_core.journal.ordinary import filled
from agent_core.journal.replay import replay
from agent_core.journal.rows import decode, encode
from agent_core.messages import InputMessage, text_of
from agent_core.records import dataclass
from agent_core.rules.masking import mask
from agent_core.store.turns.rows import JournalRow
from agent_core.turn import events as ev

FORMAT = 1


class UnreadableExport(Exception):
    """A file is no export of a journal that this program can read; says where and why."""


@dataclass(frozen=True, slots=True)
class Head:
    """What an export says of itself."""

    turn: str
    version: str
    """Of the program that wrote it."""
    exit: str = ""
    """The end as the turn's own row has it; empty while it is open."""
    redacted: bool = False
    parts_at: int = -1
    """The row at which redaction changes what is decided; -1 if nowhere."""


def dump(head: Head, rows: Sequence[JournalRow]) -> str:
    """The file's text."""
    first = {"outspoken_journal": FORMAT, **{f.name: getattr(head, f.name) for f in fields(Head)}}
    lines = [orjson.dumps(first)]
    lines += [
        orjson.dumps({"seq": row.seq, "kind": row.kind, "at": row.at, "body": orjson.Fragment(_whole(row))})
        for row in rows
    ]
    return b"\n".join([*lines, b""]).decode()


def _whole(row: JournalRow) -> bytes:
    """What a row says, with nothing left to a table of this program; one that cannot be read goes out as it is."""
    try:
        return filled(row.body) if row.kind == ev.TurnOpened.kind() else row.body
    except ValueError:
        return row.body


def load(text: str) -> tuple[Head, list[JournalRow]]:
    """Head and rows of a file's text. Raises `UnreadableExport`."""
    lines = [line for line in text.splitlines() if line.strip()]
    found: list[Mapping[str, object]] = []
    for number, line in enumerate(lines, 1):
        try:
            value: object = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise UnreadableExport(f"Line {number} is not valid JSON. A slice has one JSON object a line.") from None
        if not isinstance(value, dict):
            raise UnreadableExport(f"Line {number} is no JSON object.")
        found.append(value)  # pyright: ignore[reportUnknownArgumentType] - JSON's keys are texts
    if not found or found[0].get("outspoken_journal") != FORMAT:
        raise UnreadableExport("The first line does not say that this is a slice of a journal in a form known here.")
    return _head(found[0]), [_row(value, number) for number, value in enumerate(found[1:], 2)]


def _head(value: Mapping[str, object]) -> Head:
    turn, version, ending = (value.get(name) for name in ("turn", "version", "exit"))
    parts_at = value.get("parts_at")
    if not (
        isinstance(turn, str) and isinstance(version, str) and isinstance(ending, str) and isinstance(parts_at, int)
    ):
        raise UnreadableExport("The first line lacks turn, version, exit or parts_at.")
    return Head(turn, version, ending, value.get("redacted") is True, parts_at)


def _row(value: Mapping[str, object], number: int) -> JournalRow:
    seq, kind, at, body = (value.get(name) for name in ("seq", "kind", "at", "body"))
    if not (isinstance(seq, int) and isinstance(kind, str) and isinstance(at, int) and isinstance(body, dict)):
        raise UnreadableExport(f"Line {number} lacks seq, kind, at or body.")
    return JournalRow(seq, kind, orjson.dumps(body), at)


# ---------------------------------------------------------------------- redaction


def redacted(rows: Sequence[JournalRow], key: bytes) -> tuple[list[JournalRow], int]:
    """`rows` without anybody's words, and the row at which they are decided otherwise for it (-1: nowhere).

    `key` is 16 random bytes, used for this export only. Raises `agent_core.failures.errors.UnreadableJournal`.
    """
    events = [decode(row.kind, row.body) for row in rows]
    work = _Redacting(Letters(key))
    written = [encode(event) for event in work.all(events)]
    made = [JournalRow(row.seq, new.kind, new.body, row.at) for row, new in zip(rows, written, strict=True)]
    known = {one.seq for one in replay(rows).differences}
    return made, min((one.seq for one in replay(made, redacted=True).differences if one.seq not in known), default=-1)


_LOWER, _UPPER, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, "123456789"
_MORE_LOWER = "".join(chr(code) for code in range(0xDF, 0x100) if code != 0xF7)
_MORE_UPPER = "".join(chr(code) for code in range(0xC0, 0xDF) if code != 0xD7)
_FIRST_IDEOGRAPH, _IDEOGRAPHS = 0x4E00, 0x5000
_WIDE_FROM = 0x2E80


@dataclass(slots=True)
class Letters:
    """Replaces letters and digits one by one. Law: length stays; words that begin alike still do, and other letters of one
    alphabet stay other letters."""

    key: bytes
    _tables: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def text(self, text: str) -> str:
        """`text` with other letters and digits; 0 stays 0, so that numbers stay numbers."""
        out: list[str] = []
        word = 0
        for at, char in enumerate(text):
            if not char.isalnum():
                word = at + 1
                out.append(char)
            else:
                out.append(self._letter(text[max(word, at - 24) : at], char))
        return "".join(out)

    def _letter(self, before: str, char: str) -> str:
        if char == "0":
            return char
        for pool in (_DIGITS, _LOWER, _UPPER):
            if char in pool:
                return self._turned(pool, before, pool.index(char))
        if ord(char) >= _WIDE_FROM:
            mixed = int.from_bytes(self._digest(f"{before}\0{char}")[:4])
            return chr(_FIRST_IDEOGRAPH + mixed % _IDEOGRAPHS)
        pool = _MORE_UPPER if char.isupper() else _MORE_LOWER
        return self._turned(pool, before, ord(char))

    def _turned(self, pool: str, before: str, index: int) -> str:
        """Within its alphabet, by as much as the letters before it say: different letters stay different."""
        turn = int.from_bytes(self._digest(f"{len(pool)}\0{before}")[:4])
        return pool[(index + turn) % len(pool)]

    def _digest(self, of: str) -> bytes:
        if of not in self._tables:
            self._tables[of] = hmac.digest(self.key, of.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return self._tables[of]

    def arguments(self, text: str) -> str:
        """A tool's arguments, whole or not: what stands in JSON's texts and numbers is replaced, the structure stays."""
        out: list[str] = []
        for match in _JSON_PIECE.finditer(text):
            piece = match[0]
            if piece.startswith('"'):
                out.append(self._json_text(piece))
            elif piece.isalpha():
                out.append(piece if piece in _LITERALS else "x" * len(piece))
            else:
                out.append(self.text(piece))
        return "".join(out)

    def _json_text(self, piece: str) -> str:
        """Inside a JSON text, letters that are spelt as escapes count as letters."""
        out: list[str] = []
        plain: list[str] = []
        for match in _ESCAPE.finditer(piece):
            token = match[0]
            if len(token) == 6:  # \uXXXX
                plain.append(chr(int(token.removeprefix("\\u"), base=16)))
            else:
                plain.append(token if len(token) == 1 else " ")
            out.append(token)
        replaced = self.text("".join(plain))
        for at, token in enumerate(out):
            if len(token) == 6:
                code = ord(replaced[at])
                code = 0xDC00 if 0xDC00 <= code < 0xE000 else 0xD83D if 0xD800 <= code < 0xDC00 else code
                out[at] = f"\\u{code:04x}"
            elif len(token) == 1:
                out[at] = replaced[at]
        return "".join(out)


_JSON_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"?|[^\W\d_]+|[^"]', re.DOTALL)
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\u[0-9a-fA-F]{0,3}|\\.|\\|.", re.DOTALL)
_LITERALS = frozenset(
    {"e", "E"} | {word[:n] for word in ("true", "false", "null", "NaN", "Infinity") for n in range(1, 9)}
)


@dataclass(slots=True)
class _Redacting:
    """The state of one redaction."""

    letters: Letters
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Of tools that the turn did not offer: a model can put anything there."""
    known: dict[str, str] = field(default_factory=dict[str, str])
    """Whole texts that come again in the end's facts."""
    results: dict[str, str] = field(default_factory=dict[str, str])
    """By what the guardrails compare."""
    offered: frozenset[str] = frozenset()

    def all(self, events: Sequence[ev.Event]) -> list[ev.Event]:
        pieces = self._streams(events)
        return [self._one(event, pieces.get(at)) for at, event in enumerate(events)]

    def _streams(self, events: Sequence[ev.Event]) -> dict[int, str]:
        """The new text of each piece: a stream is joined, replaced and cut again, so that the cuts do not matter."""
        streams: dict[tuple[int, str], list[tuple[int, str]]] = {}
        call = 0
        for at, event in enumerate(events):
            match event:
                case ev.TextArrived(text=text):
                    streams.setdefault((call, "text"), []).append((at, text))
                case ev.ReasoningArrived(text=text):
                    streams.setdefault((call, "thoughts"), []).append((at, text))
                case ev.TextTakenBack():
                    streams[call, f"thoughts before {at}"] = streams.pop((call, "text"), [])
                case ev.ToolArgumentsArrived(index=index, text=text):
                    streams.setdefault((call, f"arguments {index}"), []).append((at, text))
                case ev.ReplyFinished() | ev.CallBroke() | ev.TakenOver():
                    call += 1
                case _:
                    pass
        new: dict[int, str] = {}
        for (_, what), pieces in streams.items():
            whole = "".join(text for _, text in pieces)
            made = self.letters.arguments(whole) if what.startswith("arguments") else self.letters.text(whole)
            start = 0
            for at, text in pieces:
                new[at] = made[start : start + len(text)]
                start += len(text)
        return new

    def _text(self, text: str) -> str:
        made = self.letters.text(text)
        self.known.setdefault(text, made)
        return made

    def _name(self, name: str) -> str:
        if not name or name in self.offered:
            return name
        return self.names.setdefault(name, self.letters.text(name))

    def _one(self, event: ev.Event, piece: str | None) -> ev.Event:
        match event:
            case ev.TurnOpened():
                return self._opened(event)
            case ev.TextArrived() | ev.ReasoningArrived() | ev.ToolArgumentsArrived():
                return replace(event, text=piece if piece is not None else "")
            case ev.ToolCallNamed() | ev.ToolCallCut():
                return replace(event, name=self._name(event.name))
            case ev.CallBroke():
                return replace(event, detail=self._text(event.detail))
            case ev.ReplyFinished(reason=reason):
                self.known[reason[:40]] = reason[:40]  # the provider's finish reason: it is what is decided by
                return replace(event, thoughts={}, made={}, unsent=())
            case ev.ToolReturned():
                text = self.results.setdefault(mask(event.text), self.letters.text(event.text))
                sent = event.facts.get("sent_file")
                facts = {"sent_file": self.letters.text(sent)} if isinstance(sent, str) else {}
                return replace(event, text=text, facts=facts)
            case ev.Steered():
                return replace(event, input=self._input(event.input))
            case ev.ChangeShown(change=change):
                return replace(event, change=replace(change, diff=self.letters.text(change.diff)))
            case ev.ApprovalAnswered() | ev.StopRequested():
                return replace(event, by="")
            case ev.Compacted():
                return replace(event, summary=self.letters.text(event.summary))
            case ev.DoneSaid():
                return replace(event, said=self.letters.text(event.said))
            case ev.ToolStarted():
                return replace(event, intention=None)
            case ev.TakenOver():
                return replace(event, node="")
            case _:
                return self._judged(event)

    def _judged(self, event: ev.Event) -> ev.Event:
        """What was judged quotes what was said before."""
        match event:
            case ev.OverlapFound():
                return replace(event, text=self.letters.text(event.text))
            case ev.ReplyJudged():
                return replace(event, promised=self._again(event.promised))
            case ev.FailureJudged():
                return replace(event, detail=self._again(event.detail))
            case ev.RemedyChosen() if event.remedy.recipe.names_tool:
                return replace(event, detail=self._name(event.detail))
            case ev.RemedyChosen():
                return replace(event, detail=self._again(event.detail))
            case ev.LoopFound():
                return replace(event, tool=self._tools(event.tool), words=self._named(event.words))
            case ev.CallSettled():
                return replace(event, words=self._named(event.words))
            case ev.SummaryAsked(exit=ending) | ev.TurnEnded(exit=ending):
                return replace(event, exit=self._exit(ending))
            case _:
                return event

    def _opened(self, event: ev.TurnOpened) -> ev.TurnOpened:
        self.offered = frozenset((*(tool.name for tool in event.settings.tools), *event.settings.client_tools))
        return replace(
            event,
            input=tuple(self._input(message) for message in event.input),
            own_history=() if event.own_history is not None else None,
            request={},
            client_tools=(),
            consents=(),
            asker="",
            known=replace(event.known, conversation=""),
            surface=re.split(r"[:/]", event.surface)[0],
        )

    def _input(self, message: InputMessage) -> InputMessage:
        return InputMessage(self.letters.text(text_of(message.content)), role=message.role, foreign=message.foreign)

    def _exit(self, ending: Exit) -> Exit:
        own_words = isinstance(ending, Stopped)  # what the turn was at, with names in it
        words: dict[str, Callable[[str], str]] = {
            "announced": self._again,
            "detail": self._named if own_words else self._again,
            "pattern": self._named,
        }
        facts = ending.facts()
        return replace(
            ending,
            tool=self._tools(ending.tool),
            tools_done=tuple(map(self._name, ending.tools_done)),
            tools_dropped=tuple(map(self._name, ending.tools_dropped)),
            tools_unsure=tuple(map(self._name, ending.tools_unsure)),
            **{name: change(facts[name]) for name, change in words.items() if name in facts},
        )

    def _again(self, value: str) -> str:
        """A text that should have stood in an earlier event, and looks as it does there."""
        return self.known[value] if value in self.known else self.letters.text(value)

    def _tools(self, value: str) -> str:
        """A tool's name, or those of a round of calls, as the rule for circles joins them."""
        return self.names[value] if value in self.names else ", ".join(map(self._name, value.split(", ")))

    def _named(self, value: str) -> str:
        """The gateway's own words, with other names in them; each once, so that one that looks like another's new name stays apart."""
        longest = sorted((name for name in self.names if name), key=len, reverse=True)
        if not longest:
            return value
        found = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)")
        return found.sub(lambda match: self.names[match[0]], value)
