"""Styled text as the markup that a platform reads: Discord's Markdown, Slack's mrkdwn. Pure.

What people or the model wrote is escaped, so that it is shown as it is; only spans make markup. Parts are cut on styled text and
rendered one by one, so no fence or emphasis is ever left open.

Laws (tests/adapters/text/test_markup.py): every part is within the limit; what is shown, read without its marks, is the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.text.split import split
from adapters.text.styled import Span, Style, Styled, units


@dataclass(frozen=True, slots=True)
class Marks:
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


def render(styled: Styled, marks: Marks) -> str:
    """The whole text as markup."""
    return _render(styled.text, 0, len(styled.text), styled.spans, marks)


def _render(text: str, start: int, end: int, spans: Sequence[Span], marks: Marks) -> str:
    out: list[str] = []
    at, index = start, 0
    while index < len(spans):
        outer = spans[index]
        inner_end = index + 1
        while inner_end < len(spans) and spans[inner_end].start < outer.end:
            inner_end += 1
        out.append(marks.escape(text[at : outer.start]))
        out.append(_span(text, outer, spans[index + 1 : inner_end], marks))
        at, index = outer.end, inner_end
    out.append(marks.escape(text[at:end]))
    return "".join(out)


def _span(text: str, span: Span, inner: Sequence[Span], marks: Marks) -> str:
    plain = text[span.start : span.end]
    if span.style is Style.CODE:
        return marks.code(plain)
    if span.style is Style.PRE:
        before = "" if span.start == 0 or text[span.start - 1] == "\n" else "\n"
        return before + marks.fence(plain, span.value)
    within = _render(text, span.start, span.end, [s for s in inner if s.end <= span.end], marks)
    match span.style:
        case Style.BOLD:
            return _wrapped(within, marks.bold)
        case Style.ITALIC:
            return _wrapped(within, marks.italic)
        case Style.STRIKE:
            return _wrapped(within, marks.strike)
        case Style.LINK:
            return marks.link(within, span.value)
        case Style.QUOTE:
            return "\n".join(f"> {line}" for line in within.split("\n"))


def _wrapped(within: str, mark: str) -> str:
    """Each line on its own: neither platform carries emphasis over a line's end in every place."""
    return "\n".join(f"{mark}{line}{mark}" if line.strip() else line for line in within.split("\n"))


_DISCORD = re.compile(r"([\\*_~`|\[\]<>#])|^(\s*)([-+])(?=\s)|^(\s*\d+)([.)])(?=\s)", re.MULTILINE)


def _discord_escape(text: str) -> str:
    def escaped(found: re.Match[str]) -> str:
        if found[1]:
            return "\\" + found[1]
        return f"{found[2]}\\{found[3]}" if found[3] else f"{found[4]}\\{found[5]}"

    return _DISCORD.sub(escaped, text)


def _ticked(text: str) -> str:
    """Code on one line, in more ticks than it holds itself."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * (longest + 1 if longest else 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{room}{text}{room}{ticks}"


def _without_fence(text: str) -> str:
    return text.replace("```", "`\u200b`\u200b`")


def _fenced(text: str, language: str) -> str:
    # A fence in the code would end the block: a sign of no width between its ticks keeps it whole.
    return f"```{language}\n{_without_fence(text)}\n```"


DISCORD = Marks(
    bold="**",
    italic="*",
    strike="~~",
    escape=_discord_escape,
    code=_ticked,
    fence=_fenced,
    link=lambda label, url: f"[{label}](<{url}>)",
)


def _slack_escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


SLACK = Marks(
    bold="*",
    italic="_",
    strike="~",
    escape=_slack_escape,
    code=lambda text: "`" + _slack_escape(text).replace("`", "ˋ") + "`",
    fence=lambda text, _: f"```\n{_slack_escape(_without_fence(text))}\n```",
    link=lambda label, url: "<" + _slack_escape(url).replace("|", "%7C") + f"|{label}>",
)


def rendered_parts(styled: Styled, limit: int, marks: Marks) -> tuple[str, ...]:
    """The text as parts of markup, each at most `limit` UTF-16 units."""
    parts: list[str] = []
    room = limit - max(16, limit // 12)
    for piece in split(styled, room, units):
        parts += _fitted(piece, limit, room, marks)
    return tuple(parts)


def _fitted(piece: Styled, limit: int, room: int, marks: Marks) -> list[str]:
    """A piece whose markup has become too long is cut smaller."""
    markup = render(piece, marks)
    if units(markup) <= limit or room <= 8:
        return [markup]
    smaller = room // 2
    return [one for part in split(piece, smaller, units) for one in _fitted(part, limit, smaller, marks)]
