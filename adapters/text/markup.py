"""Styled text as the markup that a platform reads: Discord's Markdown, Slack's mrkdwn. Pure.

What people or the model wrote is escaped, so that it is shown as it is; only spans make markup. Parts are cut on styled text and
rendered one by one, so no fence or emphasis is ever left open.

Laws (tests/adapters/text/test_markup.py): every part is within the limit; what is shown, read without its marks, is the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from adapters.text.split import split
from adapters.text.styled import Span, Style, Styled, units
from agent_core.records import dataclass
from agent_core.text.patterns import late
from agent_core.text.shown import middle

FENCE = "```"


@dataclass(frozen=True, slots=True)
class StyleMarks:
    """How a platform writes styles."""

    bold: str
    italic: str
    strike: str
    escape: Callable[[str], str]
    code: Callable[[str], str]
    fence: Callable[[str, str], str]
    """(text, language)"""
    link: Callable[[str, str], str]
    """(label as markup, address)"""
    whole: Callable[[str], str] = str
    """What is done to a text in the end."""
    fits_fence: Callable[[str], bool] = lambda code: FENCE not in code
    """Whether lines of code can be shown as they are. Others are text like any other, or a file: whoever copies code must get just that."""


def render(styled: Styled, marks: StyleMarks, *, open_end: bool = False) -> str:
    """The whole text as markup. With an `open_end`, what is styled at its end is not closed, because it may go on."""
    end = len(styled.text)
    return marks.whole(_render(styled.text, 0, end, styled.spans, marks, end if open_end else -1))


def _render(text: str, start: int, end: int, spans: Sequence[Span], marks: StyleMarks, open_at: int = -1) -> str:
    out: list[str] = []
    at, index = start, 0
    while index < len(spans):
        outer = spans[index]
        inner_end = index + 1
        while inner_end < len(spans) and spans[inner_end].start < outer.end:
            inner_end += 1
        out.append(_escaped(text, at, outer.start, marks))
        out.append(_span(text, outer, spans[index + 1 : inner_end], marks, open_at))
        at, index = outer.end, inner_end
    out.append(_escaped(text, at, end, marks))
    return "".join(out)


def escaped_within(text: str, marks: StyleMarks, limit: int) -> str:
    """A text without markup, escaped; if that is longer than `limit`, its middle is left out, and that is said."""
    keep = len(text)
    while len(found := marks.escape(middle(text, keep))) > limit:
        keep = keep * 3 // 4
    return found


def _escaped(text: str, start: int, end: int, marks: StyleMarks) -> str:
    """What is markup at a line's beginning only is none behind a span."""
    if start and text[start - 1] != "\n":
        return marks.escape("," + text[start:end])[1:]
    return marks.escape(text[start:end])


def _span(text: str, span: Span, inner: Sequence[Span], marks: StyleMarks, open_at: int) -> str:
    plain = text[span.start : span.end]
    is_open = span.end == open_at
    if span.style is Style.CODE:
        code = marks.code(plain)
        return code.rstrip("` ") if is_open else code
    if span.style is Style.PRE:
        if not marks.fits_fence(plain):
            return marks.escape(plain)
        before = "" if span.start == 0 or text[span.start - 1] == "\n" else "\n"
        fenced = before + marks.fence(plain, span.value)
        return fenced.removesuffix("\n```") if is_open else fenced
    inside = -1 if span.style is Style.LINK else open_at  # a link is shown as one only once it is whole
    within = _render(text, span.start, span.end, [s for s in inner if s.end <= span.end], marks, inside)
    match span.style:
        case Style.BOLD:
            return _wrapped(within, marks.bold, is_open=is_open)
        case Style.ITALIC:
            return _wrapped(within, marks.italic, is_open=is_open)
        case Style.STRIKE:
            return _wrapped(within, marks.strike, is_open=is_open)
        case Style.LINK:
            return marks.link(within, span.value)
        case Style.QUOTE:
            return "\n".join(f"> {line}" for line in within.split("\n"))


def _wrapped(within: str, mark: str, *, is_open: bool) -> str:
    """Each line on its own: neither platform carries emphasis over a line's end in every place."""
    wrapped = "\n".join(f"{mark}{line}{mark}" if line.strip() else line for line in within.split("\n"))
    return wrapped.removesuffix(mark) if is_open else wrapped


_DISCORD = late(r"https?://[^\s<]+|([\\*_~`|\[\]<>#])|^([^\S\n]*)([-+])(?=\s)|^([^\S\n]*\d+)([.)])(?=\s)", re.MULTILINE)


def _discord_escape(text: str) -> str:
    """In a bare address nothing is markup for Discord, and a backslash would be a part of it."""

    def escaped(found: re.Match[str]) -> str:
        if found[1]:
            return "\\" + found[1]
        if found[0].startswith("http"):
            return found[0]
        return f"{found[2]}\\{found[3]}" if found[3] else f"{found[4]}\\{found[5]}"

    return _DISCORD.sub(escaped, text)


def _ticked(text: str) -> str:
    """Code on one line, in more ticks than it holds itself."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * (longest + 1 if longest else 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{room}{text}{room}{ticks}"


def _fenced(text: str, language: str) -> str:
    return f"{FENCE}{language}\n{text}\n{FENCE}"


DISCORD = StyleMarks(
    bold="**",
    italic="*",
    strike="~~",
    escape=_discord_escape,
    code=_ticked,
    fence=_fenced,
    # An address does not stand in for another
    link=lambda label, url: label if label == url else f"[{label}](<{url}>)",
)


def _slack_escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


SLACK = StyleMarks(
    bold="*",
    italic="_",
    strike="~",
    escape=_slack_escape,
    code=lambda text: "`" + _slack_escape(text).replace("`", "ˋ") + "`",
    fence=lambda text, _: _fenced(_slack_escape(text), ""),
    link=lambda label, url: "<" + _slack_escape(url).replace("|", "%7C") + f"|{label}>",
)


# --- Slack's Markdown (https://docs.slack.dev/reference/block-kit/blocks/markdown-block) ---

_MENTION = late(r"<(?=!(?:channel|here|everyone|subteam|date)\b|@[A-Z0-9]|#[A-Z0-9])")
_MARKDOWN = late(
    r"""(?P<url>https?://[^\s<>()\[\]*`|\\]+)|(?P<sign>[\\`*~\[\]|]|(?<![^\W_])_)|(?P<entity>[&<>])"""
    r"""|^(?:(?P<indent>[ \t]+)|(?P<first>[-+=\#])|(?P<number>\d{1,9})(?P<dot>[.)]))""",
    re.MULTILINE,
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_BLOCK_OR_BREAK = late(r"^```[^`\n]*\n(?:.*?\n```$|.*\Z)|(?<!\n)\n(?!\n)", re.MULTILINE | re.DOTALL)


def _markdown_escape(text: str) -> str:
    """Shown as it is, whatever follows: what is written once does not change when the text grows."""

    def escaped(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "url":
                return found[0]
            case "entity":
                return _ENTITIES[found[0]]
            case "indent":
                return "\u00a0" * len(found[0])
            case "dot":
                return f"{found['number']}\\{found['dot']}"
            case _:
                return "\\" + found[0]

    return _MARKDOWN.sub(escaped, text)


def _markdown_code(code: str) -> str:
    """Code within a line. In code nothing can be escaped, so that what would mention somebody is text."""
    return _markdown_escape(code) if _MENTION.search(code) else _ticked(code)


def _fits_markdown_fence(code: str) -> bool:
    return FENCE not in code and not _MENTION.search(code)


def _hard_breaks(markdown: str) -> str:
    """A line's end is meant everywhere; in code it is one anyhow."""
    return _BLOCK_OR_BREAK.sub(lambda found: "  \n" if found[0] == "\n" else found[0], markdown)


def _address(url: str) -> str:
    for char in " ()<>\\":
        url = url.replace(char, f"%{ord(char):02X}")
    return url


SLACK_MARKDOWN = StyleMarks(
    bold="**",
    italic="*",
    strike="~~",
    escape=_markdown_escape,
    code=_markdown_code,
    fence=_fenced,
    link=lambda label, url: f"[{label}]({_address(url)})",
    whole=_hard_breaks,
    fits_fence=_fits_markdown_fence,
)


def styled_parts(styled: Styled, limit: int, *marks: StyleMarks) -> tuple[Styled, ...]:
    """The text as parts, each at most `limit` UTF-16 units in each of these markups."""
    parts: list[Styled] = []
    room = limit - max(16, limit // 12)
    for piece in split(styled, room, units):
        parts += _fitted(piece, limit, room, marks)
    return tuple(parts)


def rendered_parts(styled: Styled, limit: int, marks: StyleMarks) -> tuple[str, ...]:
    """The text as parts of markup, each at most `limit` UTF-16 units."""
    return tuple(render(part, marks) for part in styled_parts(styled, limit, marks))


def _fitted(piece: Styled, limit: int, room: int, marks: Sequence[StyleMarks]) -> list[Styled]:
    """A piece whose markup has become too long is cut smaller."""
    if room <= 8 or all(units(render(piece, one)) <= limit for one in marks):
        return [piece]
    smaller = room // 2
    return [one for part in split(piece, smaller, units) for one in _fitted(part, limit, smaller, marks)]
