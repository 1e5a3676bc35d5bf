"""When do two results of a tool say the same? Pure; for comparing, never for showing.

Theory. A model that goes round in a loop seldom gets the same bytes twice: there is a clock in the answer, an id of the request, the path of
a temporary file, a duration, or the rows come in another order. `UndisguisedResult` takes these disguises off. What is left is compared
in two ways, and either is enough: in the order in which it was told, with white space folded, and without an order.

Without an order means: JSON as a set of members and items; other text as a set of lines, where a line that stands further in stays with the one
above it, and what commas part in a line as a set, too. Words in a sentence keep their order.

Kept, because progress shows in them: counts, percentages, sizes, versions, positions (`main.c:10:12`), short numbers of any kind.

`MASKS` is the data: a row for each kind of volatile part, applied in this order. Time is linear in the text (tests/agent_core/test_masking.py).
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TypeAlias

from agent_core.records import dataclass
from agent_core.text.patterns import late

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"


@dataclass(frozen=True, slots=True)
class Mask:
    """One kind of volatile part: where it is found, and the word that takes its place."""

    name: str
    pattern: str
    word: str


_TIME = r"\d{1,2}[:_]\d{2}(?:[:_]\d{2}(?:[.,_]\d{1,9})?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)[a-z]{0,6}\.?"
_DAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?"
_NAMED = r"request|req|trace|span|correlation|transaction|session|activity|operation|invocation|connection"
_PREFIXES = r"req|run|msg|call|chatcmpl|toolu|sess|job|evt|trace|span|txn|file|batch|resp|thread|gen|cmpl|tx|op"
_LONG_UNITS = (  # need no end: languages put endings on them
    "second|minute|hour|msec|millisecond|day|sekund|minut|stunde|godzin|heure|segundo|hora|giorn|seconden|uur|saniye|dakika|saat|"
    "секунд|минут|час|миллисек|хвилин|годин|ثاني|ثوان|دقيق|دقائق|ساع|सेकंड|मिनट|घंट|秒|分钟|分鐘|分|小时|小時|時間|毫秒|ミリ秒|초|분|시간"
)
_SHORT_UNITS = "ns|µs|μs|us|ms|s|secs?|min|m[io]n|mins?|h|hrs?|ore|сек|мин|ч|с|хв|год|sn|dk"

MASKS: tuple[Mask, ...] = (
    Mask("colour", r"\x1b(?:\[[0-9;?]{0,30}[ -/]{0,3}[@-~]?)?", ""),  # also one that is cut: what follows it must not complete it
    Mask("uuid", r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "<id>"),
    Mask("date", rf"\b\d{{4}}([-/.])\d{{2}}\1\d{{2}}(?:[T _]{_TIME}{_ZONE})?", "<time>"),
    Mask("compact date", r"\b20\d{6}[T_-]?\d{4,6}Z?\b", "<time>"),
    Mask("log date", r"\b\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2}(?: [+-]\d{4})?", "<time>"),
    Mask("day first", rf"\b\d{{1,2}}([./])\d{{1,2}}\1\d{{4}}(?:,? {_TIME})?\b", "<time>"),
    Mask("day and month", rf"\b{_DAY}\d{{1,2}} {_MONTH} \d{{4}}(?:,? {_TIME}{_ZONE})?", "<time>"),
    Mask("month and day", rf"\b{_DAY}{_MONTH} {{1,2}}\d{{1,2}}\b(?:,? \d{{4}}\b)?(?:,? {_TIME}{_ZONE}(?: \d{{4}})?)?", "<time>"),
    Mask("clock", rf"(?<![\w:.]){_TIME}(?!:)(?: ?[AaPp]\.?[Mm]\b)?", "<time>"),
    Mask("epoch", r"\b1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d{1,9})?\b", "<time>"),
    Mask("address", r"\b0x[0-9a-fA-F]{4,}\b|(?<=\w)@[0-9a-f]{5,16}\b", "<address>"),
    Mask("temporary file", r"(?:/private)?(?:(?:/var)?/tmp|/dev/shm|/run/user/\d+)/(?:pytest-of-[\w.-]+/pytest-\d+|[\w.+-]+)", "<tmp>"),
    Mask("temporary file (macOS)", r"(?:/private)?/var/folders/\w+/\w+/\w(?:/[\w.+-]+)?", "<tmp>"),
    Mask("temporary file (Windows)", r"\b[A-Za-z]:\\(?:[^\\\s:]{1,80}\\){0,8}(?:Temp|TEMP|temp|Tmp|TMP|tmp)\\[^\\\s:\"'()]+", "<tmp>"),
    Mask("temporary name", r"\btmp[._-]?(?=[A-Za-z]*[\d_])\w{4,}", "<tmp>"),
    Mask("named id", rf"(?i:\b((?:{_NAMED})[ _-]?id[\"']?\s?[:=]?\s?[\"']?)[\w.-]+)", r"\1<id>"),
    Mask("process", r"(?i:\b([pt]?pid|tid)([\"']?\s?[:=#]?\s?)\d+)", r"\1\2<id>"),
    Mask("process in words", r"(?i:\b(process|prozess|proceso|processo|processus|процесс))( )\d{3,}\b", r"\1\2<id>"),
    Mask("process in a log", r"(?<=\w)\[\d{2,7}\]:", "[<id>]:"),
    Mask("thread", r"\b([Tt]hread)[- #]\d+", r"\1 <id>"),
    Mask("long number as id", r"(?i:(?<![A-Za-z])(id[\"']?\s?[:=]\s?[\"']?)\d{5,}\b)", r"\1<id>"),
    Mask("pod", r"-(?=[0-9a-f]*\d)[0-9a-f]{8,10}-[a-z0-9]{5}\b", "-<id>"),
    Mask("id with its kind", rf"\b({_PREFIXES})[_-](?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{{6,}}", r"\1-<id>"),
    Mask("hexadecimal id", r"\b(?:g(?=[0-9a-f]{7,}\b))?(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,}\b", "<id>"),
    Mask("hexadecimal id, upper case", r"\b(?=[0-9]*[A-F])(?=[A-F]*[0-9])[0-9A-F]{12,}\b", "<id>"),
    Mask("ULID", r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b", "<id>"),
    Mask("token", r"\b(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])(?=[A-Za-z]*\d+[A-Za-z]+\d)[A-Za-z0-9]{16,}\b=*", "<id>"),
    Mask("snowflake", r"\b\d{16,}\b", "<id>"),
    Mask("long duration", r"\b(?:\d{1,6}(?:\.\d{1,9})?(?:d|h|m|min|ms|s) ?){2,5}(?![\w<])", "<duration> "),
    Mask("duration", rf"(?<![\w.,])\d{{1,12}}(?:[.,]\d{{1,9}})?[ -]?(?:(?:{_SHORT_UNITS})(?!\w)|(?i:{_LONG_UNITS})\w{{0,9}})", "<duration>"),
)  # fmt: skip
MAYBE = late(r"[\d\x1b@]|(?i:tmp|temp|shm|folders|id)", re.ASCII)
"""No mask finds anything in a text in which this finds nothing. JSON has many such."""
COMPILED = tuple((late(mask.pattern, re.ASCII), mask.word) for mask in MASKS)


def mask(text: str) -> str:
    """`text` without its volatile parts and with white space folded."""
    return " ".join(_masked(text).split())


def _masked(text: str) -> str:
    if MAYBE.search(text) is None:
        return text
    for pattern, word in COMPILED:
        text = pattern.sub(word, text)
    return text


class UndisguisedResult:
    """What a call's result says when disguises are off. Worked out when it is first compared: most results never are."""

    __slots__ = ("_digests", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._digests: tuple[str, str] | None = None

    def same(self, other: UndisguisedResult) -> bool:
        """True if two results differ in nothing but disguises."""
        return any(mine == its for mine, its in zip(self.digests, other.digests, strict=True))

    @property
    def digests(self) -> tuple[str, str]:
        """What is told in its order, and what is found in it without one."""
        if self._digests is None:
            text, self._text = self._text, ""  # a long text need not be kept
            value = _read(text)
            found = _without_order(text) if value is None else _members(value)
            self._digests = digest(mask(text)), digest(found)
        return self._digests

    def __repr__(self) -> str:
        return repr(self.digests)


_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def canonical_arguments(arguments: str) -> str:
    """Arguments in one spelling: keys sorted, white space gone. Unreadable ones stay as they are."""
    try:
        return _SORTED.encode(json.loads(arguments or "{}"))
    except (ValueError, RecursionError):
        return " ".join(arguments.split())


def _read(text: str) -> dict[str, Json] | list[Json] | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value: dict[str, Json] | list[Json] = json.loads(text)
        _ = _depth(value)
    except (ValueError, RecursionError):
        return None
    return value


def _depth(value: Json) -> int:
    """How deep it is nested. Raises `RecursionError` if that is too deep to be walked through."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


def _members(value: Json, label: str = "") -> str:
    """JSON as text that does not depend on the order of members and items."""
    if isinstance(value, dict):
        return f"{label}{{{','.join(sorted(_members(inner, f'{key}: ') for key, inner in value.items()))}}}"
    if isinstance(value, list):
        return f"{label}[{','.join(sorted(map(_members, value)))}]"
    if isinstance(value, str) and "\n" in value:
        return label + _without_order(value)
    return _without_order(f"{label}{value}")


_INDENT = late(r"[ \t]*")
_LABEL = late(r"[^\W\d][\w ]{0,40}: ")
_BRACKETS = " \t[](){},;"


def _without_order(text: str) -> str:
    """Text as a set of lines, each with those that stand further in below it."""
    lines = [line for line in _masked(text).splitlines() if line.strip()]
    margin = min((_indent(line) for line in lines), default=0)
    blocks: list[list[str]] = []
    for line in lines:
        if blocks and _indent(line) > margin:
            blocks[-1].append(_line(line))
        else:
            blocks.append([_line(line)])
    return "\n".join(sorted("\n".join(block) for block in blocks))


def _indent(line: str) -> int:
    found = _INDENT.match(line)
    return found.end() if found else 0


def _line(line: str) -> str:
    """A line with white space folded, and what commas part in it in one order."""
    text = " ".join(line.split())
    if "," not in text:
        return text.strip(_BRACKETS)
    label = _LABEL.match(text)
    head, rest = (label[0], text[label.end() :]) if label else ("", text)
    return head + ",".join(sorted(part.strip(_BRACKETS) for part in re.split(r"[,;] ?", rest)))
