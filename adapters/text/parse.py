"""Markdown to a tree, of a whole text or of one that is still growing.

Theory. `markdown-it` knows CommonMark, tables and strikethrough; here its tokens become the tree of `document`. HTML is text,
bare addresses stay text. While a text grows, `growing.hold` takes away what its last line cannot say yet, and
`growing.heal` closes what the last inline text has opened.

Laws (tests hold them): no text raises; every letter of a text without markup is in the tree, every address that is defined, every
cell of a table and every number of a list; a text of which its blocks show nothing is shown as it was written; time grows with the length alone, as nesting is bounded: emphasis deeper than `DEEPEST_STYLE` has no effect, and a
text whose blocks are nested deeper than any person would (`DEEPEST_BLOCK` levels, a list counting two) is shown as it was
written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import cast

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token

from adapters.text import document as doc
from adapters.text.footnotes import defining, footnote, labels_of, raised
from adapters.text.formulas import TexFound, drawn, written
from adapters.text.growing import end_of_containers, heal, hold, multiplies
from agent_core.records import dataclass

DEEPEST_BLOCK = 40
DEEPEST_STYLE = 16
LOOK_BACK = 64
"""So many markers back a sign in a formula looks for what it may end."""

_LINE_END = re.compile(r"\r\n?")
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_FINISHED = re.compile(r"\n[ \t>]*\n?[ \t>]*\Z")
_GROWING = "growing"


def _any_link(url: str) -> bool:
    """Every address makes a link: whoever shows it judges its scheme."""
    return bool(url)


def _whole_rows(state: StateCore) -> None:
    """What a table's row has behind its last column stands in that column, with its bars: the library leaves it out."""
    lines: list[str] = []
    last: Token | None = None
    columns = 0
    for token in state.tokens:
        match token.type:
            case "tr_open":
                columns = 0
            case "inline":
                last, columns = token, columns + 1
            case "tr_close" if last is not None and last.map:
                lines = lines or state.src.split("\n")
                line = lines[last.map[0]]
                cells = escapedSplit(line[end_of_containers(line) :].strip().removeprefix("|"))
                if more := " | ".join(cell.strip() for cell in cells[columns:]).rstrip(" |"):
                    last.content = f"{last.content} | {more}"
            case _:
                pass


def _heal_last(state: StateCore) -> None:
    if not state.env.get(_GROWING):
        return
    tokens = state.tokens
    place = next((n for n in range(len(tokens) - 1, 0, -1) if _says(tokens[n])), 0)
    if not place or tokens[place].type != "inline":
        return
    one_line = tokens[place - 1].type in ("heading_open", "th_open", "td_open")
    if not (one_line and state.src.endswith("\n")):
        tokens[place].content = heal(tokens[place].content)


def _says(token: Token) -> bool:
    return token.nesting == 0 and (token.type != "inline" or bool(token.content))


def _emphasis(state: StateInline, silent: bool) -> bool:
    """The library's own rule, but for signs in formulas: they begin nothing, and end only what as many of them have begun."""
    start, marker = state.pos, state.src[state.pos]
    if silent or marker not in ("_", "*"):
        return False
    run = state.scanDelims(start, marker == "*")
    before = state.src[start - 1] if start else " "
    end = start + run.length
    may_open, may_close = run.can_open, run.can_close
    if multiplies(marker, before, state.src[end] if end < state.posMax else " "):
        lately = state.delimiters[-LOOK_BACK:]
        may_open = False
        may_close = may_close and any(
            one.open and one.marker == ord(marker) and one.length == run.length for one in lately
        )
    for _ in range(run.length):
        state.push("text", "", 0).content = marker
        if may_open or may_close:
            place = len(state.tokens) - 1
            state.delimiters.append(Delimiter(ord(marker), run.length, place, -1, may_open, may_close))
    state.pos = end
    return True


def _formula(find: Callable[[str, int, int], TexFound | None]) -> Callable[[StateInline, bool], bool]:
    """The rule of who finds formulas so."""

    def rule(state: StateInline, silent: bool) -> bool:
        if state.src[state.pos] not in "\\$" or (found := find(state.src, state.pos, state.posMax)) is None:
            return False
        if not silent:
            token = state.push("formula", "", 0)
            token.content = found.tex
            token.markup = state.src[state.pos : found.end]
            token.meta = {"display": found.display}
        state.pos = found.end
        return True

    return rule


def _reader(find: Callable[[str, int, int], TexFound | None]) -> MarkdownIt:
    options = {"html": False, "linkify": False, "maxNesting": DEEPEST_BLOCK}
    reader = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    reader.validateLink = _any_link
    reader.inline.ruler.at("emphasis", _emphasis)
    reader.inline.ruler.before("link", "footnote", footnote)
    reader.inline.ruler.before("escape", "formula", _formula(find))
    reader.block.ruler.at("reference", defining)
    reader.core.ruler.after("block", "heal", _heal_last)
    reader.core.ruler.after("block", "rows", _whole_rows)
    return reader


_READER, _MATH_READER = _reader(written), _reader(drawn)
_BLOCK_READER = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST_BLOCK}).enable("table")
_BLOCK_READER.core.ruler.disable("inline")


@dataclass(frozen=True, slots=True)
class Placed:
    """The blocks of a text, and where they stand in it."""

    blocks: tuple[doc.Block, ...]
    lines: tuple[int, ...] = ()
    """In which line each begins; none where they are not blocks that the text has."""
    defined: Mapping[str, object] = field(default_factory=dict[str, object])
    """Addresses that its links may name."""


def parse(markdown: str, *, growing: bool = False) -> tuple[doc.Block, ...]:
    """The blocks of a text; if it is `growing`, half-written markup at its end is completed or left out."""
    return _placed(_READER, markdown, growing, {}).blocks


def placed(
    markdown: str, *, growing: bool = False, deepest: int = DEEPEST_BLOCK, defined: Mapping[str, object] | None = None
) -> Placed:
    """As `parse` for who draws formulas, and wants to know where the blocks stand. `defined` is what earlier text has defined."""
    return _placed(_MATH_READER, markdown, growing, defined or {}, deepest)


def _placed(
    reader: MarkdownIt, markdown: str, growing: bool, defined: Mapping[str, object], deepest: int = DEEPEST_BLOCK
) -> Placed:
    text = clean(markdown)
    env: dict[str, object] = {"references": dict(defined)}
    if growing:
        text = hold(text, _BLOCK_READER.parse(text))
        env[_GROWING] = not _is_finished(text)
    tokens = reader.parse(text, env)
    if any(token.level >= deepest - 1 for token in tokens):
        return Placed(_as_written(text))
    builder = _Builder()
    blocks = builder.build(tokens)
    if not growing:
        blocks += _unused_definitions(tokens, env)
        if not doc.is_seen(blocks):
            return Placed(_as_written(text))
    return Placed(blocks, tuple(builder.lines), cast("Mapping[str, object]", env["references"]))


def read(markdown: str, *, growing: bool, plain: bool) -> tuple[doc.Block, ...]:
    """The blocks of a text, or, if it is to be `plain`, its paragraphs as they were written."""
    return _as_written(clean(markdown)) if plain else parse(markdown, growing=growing)


def clean(markdown: str) -> str:
    """The text with line ends of one kind, and without characters that nothing shows."""
    return _UNFIT.sub("", _SURROGATE.sub("\ufffd", _LINE_END.sub("\n", markdown)))


def _unused_definitions(tokens: Sequence[Token], env: Mapping[str, object]) -> tuple[doc.Block, ...]:
    """Addresses that are defined (`[1]: http://…`) but that no link uses, as a person would miss them: footnotes, sources."""
    defined = cast("Mapping[str, Mapping[str, object]]", env.get("references") or {})
    if not defined:
        return ()
    children = [child for token in tokens for child in token.children or ()]
    used = {child.attrs.get("href", child.attrs.get("src")) for child in children}
    lines: list[doc.Inline] = []
    labels = labels_of(env)
    for label, definition in defined.items():
        url = str(definition["href"])
        if url not in used:
            lines += [
                *([doc.LineBreak()] if lines else []),
                doc.Text(_label(labels.get(label, label))),
                doc.Link(url, (doc.Text(url),)),
            ]
    return (doc.Paragraph(tuple(lines)),) if lines else ()


def _label(label: str) -> str:
    shown = raised(label)
    return f"[{label}]: " if shown == label else f"{shown} "


def _is_finished(text: str) -> bool:
    """Whether a blank line says that the last paragraph is over."""
    found = _FINISHED.search(text)
    return found is not None and found.group().count("\n") > 1


def _as_written(text: str) -> tuple[doc.Block, ...]:
    pieces = re.split(r"\n[ \t]*\n", text)
    return tuple(doc.Paragraph(_lines(piece.strip())) for piece in pieces if piece.strip())


def _lines(text: str) -> tuple[doc.Inline, ...]:
    found: list[doc.Inline] = []
    for line in text.split("\n"):
        found += [doc.SoftBreak(), doc.Text(line)] if found else [doc.Text(line)]
    return tuple(found)


@dataclass(slots=True)
class _OpenBlock:
    """A block that is open: its token, and what has been found in it."""

    token: Token
    blocks: list[doc.Block] = field(default_factory=list[doc.Block])
    inlines: doc.Cell = ()
    items: list[doc.Item] = field(default_factory=list[doc.Item])
    cells: list[doc.Cell] = field(default_factory=list[doc.Cell])
    aligns: list[doc.Align] = field(default_factory=list[doc.Align])
    rows: list[tuple[doc.Cell, ...]] = field(default_factory=list[tuple[doc.Cell, ...]])
    written: str = ""
    """The number of the item before, as it was written."""
    loose: bool = False


class _Builder:
    """Tokens to blocks, without recursion: a stack of open blocks."""

    __slots__ = ("_stack", "lines")

    def __init__(self) -> None:
        self._stack = [_OpenBlock(Token("root", "", 0))]
        self.lines: list[int] = []
        """In which line each outermost block begins."""

    def build(self, tokens: Sequence[Token]) -> tuple[doc.Block, ...]:
        for token in tokens:
            if token.nesting > 0:
                self._stack.append(_OpenBlock(token))
            elif token.nesting < 0:
                done = self._stack.pop()
                self._begun(done.token)
                self._close(done)
            else:
                self._begun(token)
                self._leaf(token)
        return tuple(self._stack[0].blocks)

    def _begun(self, token: Token) -> None:
        if len(self._stack) == 1:
            self.lines.append(token.map[0] if token.map else 0)

    def _leaf(self, token: Token) -> None:
        top = self._stack[-1]
        match token.type:
            case "inline":
                top.inlines = inlines(token.children or [])
            case "fence":
                words = token.info.split()
                top.blocks.append(doc.CodeBlock(words[0] if words else "", token.content.rstrip("\n")))
            case "code_block":
                top.blocks.append(doc.CodeBlock("", token.content.rstrip("\n")))
            case "hr":
                top.blocks.append(doc.Rule())
            case kind:
                raise AssertionError(kind)

    def _close(self, done: _OpenBlock) -> None:
        top = self._stack[-1]
        match done.token.type:
            case "paragraph_open":
                top.loose = top.loose or not done.token.hidden
                top.blocks.append(doc.Paragraph(done.inlines))
            case "heading_open":
                top.blocks.append(doc.Heading(int(done.token.tag[1:]), done.inlines))
            case "blockquote_open":
                top.blocks.append(doc.Quote(tuple(done.blocks)))
            case "list_item_open":
                top.loose = top.loose or done.loose
                written, before = done.token.info, top.written
                follows = not before or written == before or int(written) == int(before) + 1
                top.items.append(replace(_item(done.blocks), number=None if follows else int(written)))
                top.written = written
            case "bullet_list_open":
                top.blocks.append(doc.BulletList(tuple(done.items), not done.loose))
            case "ordered_list_open":
                start = int(cast("int", done.token.attrs.get("start", 1)))
                top.blocks.append(doc.OrderedList(start, tuple(done.items), not done.loose))
            case "table_open":
                top.blocks.append(_table(done))
            case _:
                _close_in_table(top, done)


def _close_in_table(top: _OpenBlock, done: _OpenBlock) -> None:
    match done.token.type:
        case "th_open" | "td_open":
            top.cells.append(done.inlines)
            style = str(done.token.attrs.get("style", ""))
            top.aligns.append(doc.Align(style.removeprefix("text-align:")))
        case "tr_open":
            top.rows.append(tuple(done.cells))
            top.aligns = done.aligns
        case "thead_open":
            top.cells = list(done.rows[0])
            top.aligns = done.aligns
        case "tbody_open":
            top.rows = done.rows
        case kind:
            raise AssertionError(kind)


def _table(done: _OpenBlock) -> doc.Table:
    columns = len(done.cells)
    rows = tuple(row[:columns] + ((),) * (columns - len(row)) for row in done.rows)
    return doc.Table(tuple(done.cells), tuple(done.aligns[:columns]), rows)


def _item(blocks: Sequence[doc.Block]) -> doc.Item:
    """An item; one whose first text begins with a box is a task."""
    match blocks:
        case [doc.Paragraph((doc.Text(text), *more)), *others] if found := _TASK.match(text + ("…" if more else "")):
            rest = text[found.end() :]
            inside: tuple[doc.Inline, ...] = ((doc.Text(rest),) if rest else ()) + tuple(more)
            return doc.Item((doc.Paragraph(inside), *others), found.group(1) != " ")
        case _:
            return doc.Item(tuple(blocks))


def inlines(tokens: Sequence[Token]) -> tuple[doc.Inline, ...]:
    """The inlines of an inline token's children."""
    stack: list[tuple[Token | None, list[doc.Inline]]] = [(None, [])]
    for token in tokens:
        if token.nesting > 0:
            stack.append((token, []))
        elif token.nesting < 0:
            opener, children = stack.pop()
            assert opener is not None
            too_deep = len(stack) > DEEPEST_STYLE
            _add(stack[-1][1], *(children if too_deep else [_styled(opener, tuple(children))]))
        else:
            _add(stack[-1][1], _single(token))
    return tuple(stack[0][1])


def _add(target: list[doc.Inline], *new: doc.Inline) -> None:
    """Append, joining neighbouring texts and leaving out empty ones."""
    for inline in new:
        if isinstance(inline, doc.Text):
            if not inline.text:
                continue
            last = target[-1] if target else None
            if isinstance(last, doc.Text):
                target[-1] = doc.Text(last.text + inline.text)
                continue
        target.append(inline)


def _styled(opener: Token, children: tuple[doc.Inline, ...]) -> doc.Inline:
    match opener.type:
        case "strong_open":
            return doc.Bold(children)
        case "em_open":
            return doc.Italic(children)
        case "s_open":
            return doc.Strike(children)
        case "link_open":
            return doc.Link(str(opener.attrs.get("href", "")), _raised(children))
        case kind:
            raise AssertionError(kind)


def _raised(children: tuple[doc.Inline, ...]) -> tuple[doc.Inline, ...]:
    match children:
        case (doc.Text(text),):
            return (doc.Text(raised(text)),)
        case _:
            return children


def _single(token: Token) -> doc.Inline:
    match token.type:
        case "code_inline":
            return doc.Code(token.content)
        case "hardbreak":
            return doc.LineBreak()
        case "softbreak":
            return doc.SoftBreak()
        case "formula":
            return doc.Formula(token.content, token.markup, display=bool(token.meta["display"]))
        case "image":
            return doc.Image(str(token.attrs.get("src", "")), doc.inline_text(inlines(token.children or [])))
        case _:
            return doc.Text(token.content)
