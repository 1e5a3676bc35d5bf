"""What the end of a half-written Markdown text may show.

Theory. Markup is half-written at two places only: in the last line, which may become something else as it grows (`--` an
underline that makes a heading of the paragraph above, `| a |` the header of a table), and in the last inline text,
where something was opened and not closed yet.

* `hold` works on the source: it cuts away a last line that is nothing but markers, and lines with bars that are not a
  table yet. In code it cuts only markers that may be the end of the code.
* `heal` works on the inline text of the last block: it leaves out the markers at its very end, and closes code and
  emphasis that are open. A link that is not complete is its label; a formula that is not is held.

Law (tests hold it): for each prefix of a text that is good Markdown, what is shown is a beginning of what is shown in the
end. What is no markup in the end (`a*b` and nothing more) may be held until its line or paragraph is over: nothing is lost.
Both take linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import field

from markdown_it.token import Token

from adapters.text import formulas
from adapters.text.footnotes import OPEN_MARK
from agent_core.records import dataclass

LONGEST_LABEL = 500
"""A bracket that has been open for longer is no link."""
LONGEST_ADDRESS = 1024
"""A link whose address is longer is closed only once it is complete."""
DEEPEST_RUNS = 32
"""How many runs of emphasis may be open; earlier ones are forgotten."""

_CONTAINERS = re.compile(r"(?:[ \t]{0,64}(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])))*")
_MARKERS_ONLY = re.compile(r"[-*_+=~`#:|> \t]*|\d{1,9}[.)]?|\[[ xX]?\]?|\[[^\]\[]*\](?::[ \t]*<?\w{0,6}:?/?)?|!\[?")
_DELIMITERS = re.compile(r"[-:|> \t]*")
_FENCE_MARKERS = re.compile(r"[ \t>]*(?:`+|~+)[ \t]*")
_BAR = re.compile(r"(?<!\\)\|")
_INLINE_CODE = re.compile(r"`[^`]*`?")
_CODE = frozenset({"fence", "code_block"})
_LEAVES = _CODE | {"table_open", "inline", "hr"}


def hold(text: str, tokens: Sequence[Token]) -> str:
    """The text without what its last line cannot say yet; `tokens` are its blocks."""
    body, newline, last = text.rpartition("\n")
    number = text.count("\n")
    inside = _leaf(tokens, number)
    if inside is not None and inside.type in _CODE:
        return body + newline if _FENCE_MARKERS.fullmatch(last) else text
    if (table := _held_header(tokens, body, last, number)) is not None:
        return table
    content = last[end_of_containers(last) :].strip(" \t")
    if _MARKERS_ONLY.fullmatch(content):
        return body + newline
    if (inside is None or inside.type == "inline") and (bar := _first_bar(last)) >= 0:
        before = last[:bar]
        return body + newline + (before if before[end_of_containers(before) :].strip() else "")
    return text


def end_of_containers(line: str) -> int:
    """Where a line's text begins behind what makes it one of a quote or a list."""
    found = _CONTAINERS.match(line)
    return found.end() if found else 0


def _first_bar(line: str) -> int:
    """Where a table's cell may end; a bar within code is taken for a pipe. -1 if there is none."""
    found = _BAR.search(_INLINE_CODE.sub(lambda code: "x" * len(code.group()), line))
    return found.start() if found else -1


def _leaf(tokens: Sequence[Token], line: int) -> Token | None:
    """The block without blocks inside that a line belongs to."""
    for token in reversed(tokens):
        if token.type in _LEAVES and token.map and token.map[0] <= line < token.map[1]:
            if token.type == "inline" and (table := _table_at(tokens, line)) is not None:
                return table
            return token
    return None


def _table_at(tokens: Sequence[Token], line: int) -> Token | None:
    tables = (token for token in reversed(tokens) if token.type == "table_open" and token.map)
    return next((token for token in tables if token.map and token.map[0] <= line < token.map[1]), None)


def _held_header(tokens: Sequence[Token], body: str, last: str, number: int) -> str | None:
    """The text without the line before the last one, if that may be a table's header and the last one its rule."""
    before, newline, header = body.rpartition("\n")
    if not number or _first_bar(header) < 0 or not _DELIMITERS.fullmatch(last):
        return None
    inside = _leaf(tokens, number - 1)
    if inside is None or inside.type in _CODE or inside.map is None:
        return None
    if inside.type == "table_open" and inside.map[0] < number - 1:
        return None
    return before + newline


_OPEN_LINK = re.compile(r"!?\[[^\[\]\n]{0,500}(?:\](?:\([^()\n]{0,1024})?)?\Z")


def without_open_link(text: str) -> str:
    """The text without a link at its very end that is not complete: for whoever can only add to what is shown."""
    found = _OPEN_LINK.search(text, text.rfind("\n") + 1)
    return text if found is None else text[: found.start()]


# --- within the last block ---

_TAIL = re.compile(r"(?:[\s*_~`\[\]\\]|(?<![^\s*_~])!)+\Z")
_TICKS = re.compile("`+")
_OPEN_ANGLE = re.compile(r"<[^\s<>]*\Z")
_OPEN_ENTITY = re.compile(r"&#?\w{0,32}\Z")
_SPECIAL = re.compile(r"\\.|\$\$?|`+|!?\[|\]|\*+|_+|~+|<[^\s<>]*>", re.DOTALL)
_ROOM = f"{{0,{LONGEST_ADDRESS}}}"
_REST_OF_LINK = re.compile(
    rf"""\(\s{{0,9}}(?:<[^<>\n]{_ROOM}|(?:<[^<>\n]{_ROOM}>|[^\s<]\S{_ROOM})?"""
    rf"""(?:\s+(?:"[^"]{_ROOM}"?|'[^']{_ROOM}'?|\([^()]{_ROOM}\)?)?\s?)?)\Z|\[[^\[\]]{_ROOM}\Z""",
)
_ADDRESS = re.compile(
    rf"""\(\s{{0,9}}(?:<(?:[^<>\n\\]|\\.){_ROOM}>|(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.){_ROOM}\)){_ROOM})"""
    rf"""(?:\s+(?:"(?:[^"\\]|\\.){_ROOM}"|'(?:[^'\\]|\\.){_ROOM}'|\((?:[^()\\]|\\.){_ROOM}\)))?\s{{0,9}}\)""",
    re.DOTALL,
)


@dataclass(slots=True)
class _Run:
    """A run of markers that has opened something."""

    marker: str
    count: int


@dataclass(slots=True)
class _Scan:
    """What is open at the end of an inline text."""

    runs: list[_Run] = field(default_factory=list[_Run])
    brackets: list[int] = field(default_factory=list[int])
    code: str = ""
    cut: int | None = None
    """Where a link's address or a formula begins that is not complete."""


def heal(content: str) -> str:
    """Inline Markdown in which everything that was opened is closed, and no half marker stands at the end."""
    content = _without_tail(content)
    scan = _scan(content)
    if scan.cut is not None:
        content = content[: scan.cut].rstrip()
    for at in reversed(scan.brackets):
        if len(content) - at <= LONGEST_LABEL:
            content = content[:at] + content[at + (2 if content[at] == "!" else 1) :]
    return content + scan.code + "".join(run.marker * run.count for run in reversed(scan.runs))


def _without_tail(content: str) -> str:
    """Without markers, and beginnings of an address in angles, of an entity or of a footnote's mark, at the end."""
    tail = _OPEN_ANGLE.search(content) or _OPEN_ENTITY.search(content)
    content = _rstrip(content[: tail.start()] if tail else content)
    mark = OPEN_MARK.search(content)
    return _rstrip(content[: mark.start()]) if mark else content


def _rstrip(content: str) -> str:
    at = len(content.rstrip(" \t\n*_~`[]\\!"))
    found = _TAIL.search(content, at)
    return content[: found.start()] if found else content


def _scan(content: str) -> _Scan:
    scan = _Scan()
    at = 0
    while (found := _SPECIAL.search(content, at)) is not None:
        mark, at = found.group(), found.end()
        match mark[0]:
            case "`":
                at = _after_code(content, mark, at)
                if not at:
                    scan.code = mark
                    return scan
            case "!" | "[":
                scan.brackets.append(found.start())
            case "]":
                if scan.brackets:
                    scan.brackets, at = _after_label(content, scan, at)
                if scan.cut is not None:
                    return scan
            case "*" | "_" | "~":
                _follow_run(content, scan, mark, found.start())
            case "\\" | "$":
                at, scan.cut = _after_formula(content, found.start(), at)
                if scan.cut is not None:
                    return scan
            case _:
                pass
    return scan


def _after_code(content: str, ticks: str, at: int) -> int:
    """Where the code ends that `ticks` have opened; 0 if it does not."""
    for found in _TICKS.finditer(content, at):
        if len(found.group()) == len(ticks):
            return found.end()
    return 0


def _after_formula(content: str, start: int, at: int) -> tuple[int, int | None]:
    """Where to go on behind a mark that may open a formula, and where one begins that has not come to its end."""
    if (found := formulas.written(content, start, len(content))) is not None:
        return found.end, None
    return at, formulas.open_at(content, start)


def _after_label(content: str, scan: _Scan, at: int) -> tuple[list[int], int]:
    """What is open, and where to go on, behind a bracket that closes a label; sets `cut` if its address is open."""
    rest = content[at : at + 1]
    if rest not in ("(", "["):
        return scan.brackets[:-1], at
    end = _after_address(content, at) if rest == "(" else content.find("]", at) + 1
    if end:
        return scan.brackets[:-1], end
    if _REST_OF_LINK.match(content, at):
        scan.cut = at - 1
        return scan.brackets, len(content)
    return scan.brackets[:-1], at


def _after_address(content: str, at: int) -> int:
    """Where a link's address and title end, with the bracket behind them; 0 if they do not."""
    found = _ADDRESS.match(content, at)
    return found.end() if found else 0


def multiplies(marker: str, before: str, after: str) -> bool:
    """Whether a run of `marker` between these characters is a sign within a word or a formula (`2*3*4`), which begins no emphasis.

    CommonMark would; people and models who mean emphasis put a space before it. Scripts that write no spaces keep theirs.
    """
    return marker == "*" and before.isascii() and (before.isalnum() or before in ")]") and not after.isspace()


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def _follow_run(content: str, scan: _Scan, run: str, at: int) -> None:
    """Let a run of emphasis markers close what is open, and open what is left of it."""
    before = content[at - 1] if at else " "
    after = content[at + len(run)] if at + len(run) < len(content) else " "
    left = not after.isspace() and (not _is_punctuation(after) or before.isspace() or _is_punctuation(before))
    right = not before.isspace() and (not _is_punctuation(before) or after.isspace() or _is_punctuation(after))
    if run[0] == "_":
        left, right = (
            left and (not right or _is_punctuation(before)),
            right and (not left or _is_punctuation(after)),
        )
    count = len(run) if run[0] != "~" else len(run) // 2 * 2
    sign = multiplies(run[0], before, after)
    if right and (not sign or any((one.marker, one.count) == (run[0], count) for one in scan.runs)):
        count = _close_runs(scan, run[0], count)
    if left and count and not sign:
        scan.runs.append(_Run(run[0], count))
        del scan.runs[:-DEEPEST_RUNS]


def _close_runs(scan: _Scan, marker: str, count: int) -> int:
    """Take markers off the runs that are open, the last one first; what is left of `count`."""
    while count:
        place = next((i for i in range(len(scan.runs) - 1, -1, -1) if scan.runs[i].marker == marker), None)
        if place is None:
            return count
        del scan.runs[place + 1 :]
        used = min(count, scan.runs[place].count)
        scan.runs[place].count -= used
        count -= used
        if not scan.runs[place].count:
            scan.runs.pop()
    return count
