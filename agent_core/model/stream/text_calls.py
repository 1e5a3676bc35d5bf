"""Divides the text of a reply into what a person may see, what the model thinks, and the tools that it calls, as it arrives.

Servers without a parser for a model pass its calls and thoughts on as ordinary text, in the model's own marks. A family's grammar
is a file in `families`; the marks of thoughts are in `thoughts`; this file finds the marks. Decisions:

- What is quoted is an example and stays text, word for word: in a code block, in a code span, in a quotation (``>``), behind an
  opening quotation mark. A mark counts only if what its grammar wants next comes next; else it is prose that mentions it.
- Calls as JSON or Python alone, without any mark, count only if they are the whole reply and name tools that are on offer.
- What began like a call and cannot be read is a broken call. A text that ends inside of one holds a call only if nothing but marks
  is missing. Half a mark at the end is never shown if it is long enough to be seen as one.
- A thought begins at its mark, anywhere, and ends at its last one. Marks inside of one nest; what follows the inner end is held back
  until it is known whether another end comes (a thought) or not (the reply: the opening mark was written twice).
  A thought that never ends is one to the end of the text; calls at its very end are calls.
- An end without a beginning says that all before it was a thought, if something follows it: `TakenBack`. Whoever knows that the
  replies of a model begin so (`inside_thought`) has the beginning kept back instead; it is text if no end comes.
- The end of the model's turn is the end of the reply: what a server lets it say behind that, in the person's name perhaps, is nobody's word.
  In a sentence that has room around it, it is only mentioned.
- White space around calls and thoughts becomes one gap, with as many line breaks as the larger side had, at most two; at the edges
  of the visible text it is dropped.

Laws (tests hold them): the pieces, merged, are the same for every way of cutting the text; text without marks is shown verbatim;
nothing that may yet become a mark is shown; time is linear in the text, however it is cut.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import assert_never

from agent_core.model.families.family import Calls, Ends, Read
from agent_core.model.families.grammar.marks import Marks, marks_of
from agent_core.model.families.grammar.steps import Grammar, NotACall, Step, ahead, until
from agent_core.model.families.grammar.values import Offered
from agent_core.model.families.pieces import (
    BrokenReason,
    Piece,
    TakenBack,
    TextCall,
    TextCallBroken,
    TextCallOpened,
    Thought,
    VisibleText,
    merged,
)
from agent_core.model.families.registry import (
    CALL_BEGINNINGS,
    CALL_MARKS,
    CLOSERS,
    FINAL,
    LAST,
    NOISE,
    OPENERS,
    OTHER_MARKS,
    START_CHARS,
    WRAPPERS,
    beginning,
    last,
    opened,
    stripped_call,
    wrapped,
)
from agent_core.model.stream.markdown import Quoting
from agent_core.model.stream.thoughts import (
    ATTRIBUTES,
    FRAMES,
    PAIR_CLOSES,
    PAIR_ENDS,
    STRIPPED_COMMENTARY,
    TAG_CLOSES,
    TAG_ENDS,
    TAG_OPENS,
    close_is_word,
    may_mention,
    only_joins,
)
from agent_core.text.shown import seam

_WHITE = " \t\r\n"
_SEEN, _SEEN_TOKEN = 5, 3
"""How many characters of a mark somebody sees as one; how many of a special token."""
_MENTION_CHARS = 300
"""How far behind a tag in a sentence its end is looked for."""
_LEAD = re.compile(r"[<\[◁\]]")
"""With these every mark begins."""
_THOUGHT_MARKS = marks_of([*PAIR_ENDS, *PAIR_CLOSES, *FRAMES])
_TAG_MARKS = marks_of([*TAG_OPENS, *TAG_CLOSES], folded=True)
_ALL = re.compile(f"{CALL_MARKS.pattern.pattern}|{_THOUGHT_MARKS.pattern.pattern}|(?i:{_TAG_MARKS.pattern.pattern})")
_NO_CALLS = re.compile(
    f"{OTHER_MARKS.pattern.pattern}|{_THOUGHT_MARKS.pattern.pattern}|(?i:{_TAG_MARKS.pattern.pattern})"
)
_HOLD_ALL = (CALL_MARKS, _THOUGHT_MARKS, _TAG_MARKS)
_HOLD_NO_CALLS = (OTHER_MARKS, _THOUGHT_MARKS, _TAG_MARKS)
_FIRST_CHARS = re.compile(r"[ \t\r\n]*+")
_END_OF_MENTION = re.compile(f"\n|(?i:{marks_of(TAG_CLOSES).pattern.pattern})")
_QUOTES = "`\"'"
_MENTIONED_BEHIND = " \t([{'\"“‘«„,/=|:：（「『《，、"
_MENTIONED_BEFORE = " \t)]},.;:'\"”’»/=|）」』》。，、；：！？"
"""Characters that stand around a mark which a sentence is about."""
_KEPT_ENDS = Ends(
    TAG_CLOSES, tuple(f"<{name}>" for name in ("think", "thinking", "mm:think")), folded=True, must_end=True
)


class _Mode(Enum):
    START = auto()
    """Nothing but white space came."""
    TEXT = auto()
    READING = auto()
    """A grammar reads what a mark began."""
    THOUGHT = auto()
    OVER = auto()
    """The model's turn has ended: what still comes is not read."""
    FINISHED = auto()


def _gap(before: str, after: str) -> str:
    """What stands between two visible texts for the white space on both sides of what stood between them."""
    breaks = min(2, max(before.count("\n"), after.count("\n")))
    if breaks:
        return "\n" * breaks + (after.rpartition("\n")[2] if "\n" in after else "")
    return " " if before or after else ""


class _Thinking:
    """A thought that is open."""

    __slots__ = ("begun", "depth", "ends", "held", "holding", "last", "marks", "raw", "said", "text")

    def __init__(self, ends: Ends, said: str = "") -> None:
        self.ends = ends
        self.said = said
        """The words that began it, if it may be text after all."""
        self.marks = _marks_of_ends(ends)
        self.depth = 1
        self.begun = False
        """Something was thought since the last beginning."""
        self.holding = False
        """An inner thought has ended; what follows is thought as well, or it is the reply."""
        self.held: list[str] = []
        self.text: list[str] = []
        self.raw: list[str] = []
        """All that was read, with its marks, of a beginning that is only kept back."""
        self.last = ""


_ENDS: dict[Ends, Marks] = {}


def _marks_of_ends(ends: Ends) -> Marks:
    if ends not in _ENDS:
        _ENDS[ends] = marks_of([*ends.closes, *ends.opens], folded=ends.folded)
    return _ENDS[ends]


def _no_grammar() -> Grammar:
    yield from ()


class TextCallParser:
    """Divides the content of one model reply. See the module's text for the rules."""

    __slots__ = (
        "_after",
        "_before",
        "_body",
        "_calls",
        "_carried",
        "_framed",
        "_grammar",
        "_hold",
        "_index",
        "_lone",
        "_mentions",
        "_mode",
        "_offered",
        "_opener",
        "_origin",
        "_out",
        "_pattern",
        "_pending",
        "_quoting",
        "_shown",
        "_space",
        "_step",
        "_text",
        "_thinking",
        "_told",
        "began_inside",
    )

    def __init__(self, offered: Offered | None = None, *, calls: bool = True, inside_thought: bool = False) -> None:
        self._offered = offered or Offered()
        self._body = calls
        """Calls are looked for, not only thoughts."""
        self._pattern = _ALL if calls else _NO_CALLS
        self._hold = _HOLD_ALL if calls else _HOLD_NO_CALLS
        self._mode = _Mode.START
        self._text = ""
        self._pending = ""
        """The end of the text so far, if more text must decide what it is."""
        self._space: list[str] = []
        """White space at the end of the text so far: shown with the text after it, or part of a gap."""
        self._told = ""
        """What of that was shown already, because nothing followed for a while."""
        self._before = ""
        self._after = False
        """Only white space came since the last call or thought."""
        self._shown = False
        self._index = 0
        self._out: list[Piece] = []
        self._quoting = Quoting()
        self._opener = ""
        self._calls = Calls(self._offered, 0)
        self._grammar = _no_grammar()
        self._step: Step | None = None
        self._origin = 0
        """Where in the current text what the grammar reads begins, or -1: it began in an earlier one, and `_carried` has it."""
        self._carried: list[str] = []
        self._thinking = _Thinking(_KEPT_ENDS)
        self._framed: str | None = ""
        """The tag that ends the reply, if one began it; None if one may come: a thought has just ended."""
        self._mentions = 0
        """Opening tags that were only mentioned, and whose end may be mentioned as well."""
        self._lone = False
        """A thought ended that had not begun; nothing has followed yet."""
        self.began_inside: bool | None = None
        """Whether the reply began inside a thought; None if nothing says so."""
        if inside_thought:
            self._mode = _Mode.THOUGHT

    def begin_at(self, index: int) -> None:
        """The first call has this number."""
        self._index = index

    @property
    def over(self) -> bool:
        """The model's turn has ended, whatever still comes."""
        return self._mode is _Mode.OVER

    @property
    def inside_call(self) -> bool:
        """Whether a call has begun and not ended yet."""
        return self._mode is _Mode.READING and self._calls.committed

    # ------------------------------------------------------------------ from outside

    def feed(self, text: str) -> list[Piece]:
        """The pieces that `text`, the next part of the content, completes."""
        if self._mode is _Mode.TEXT and not self._pending and _LEAD.search(text) is None:
            out: list[Piece] = []
            self._out = out
            self._show(text)
            return out
        self._out = []
        self._read(text)
        return self._out if len(self._out) < 2 else merged(self._out)

    def thoughts_come_elsewhere(self) -> None:
        """The server tells the model's thoughts apart: the text does not begin with one after all."""
        if self._mode is _Mode.THOUGHT and self._thinking.ends is _KEPT_ENDS and not self._thinking.text:
            self._mode = _Mode.START

    def call_came_elsewhere(self) -> list[Piece]:
        """A call has come outside of the text, behind what has been read of it."""
        self._out = []
        self._something_follows()
        return self._out

    def called_in(self, thought: str) -> list[Piece]:
        """The calls at the very end of a thought that came outside of the text, if that is all there was: some servers' parsers leave
        them there (vllm-project/vllm#39056, sgl-project/sglang#11764)."""
        self._out = []
        if self._body and not self._shown and not self._index:
            self._calls_at_end(thought)
        return self._out

    @property
    def holds_blank(self) -> bool:
        """White space behind visible text waits for what follows it."""
        return bool(self._space) and self._shown and not self._told and not self._after and self._mode is _Mode.TEXT

    def let_go(self) -> list[Piece]:
        """Nothing has followed for a while, and perhaps nothing will: the blank that waits is shown, as far as it would be anyway."""
        if not self.holds_blank:
            return []
        blank = "".join(self._space)
        self._told = seam(blank)
        self._space = [blank[len(self._told) :]] if len(blank) > len(self._told) else []
        return [VisibleText(self._told)]

    def finish(self, *, well: bool = True) -> list[Piece]:
        """The content is over: what is still open is decided. `well`: the model ended it. A second call gives nothing."""
        self._out = []
        while self._mode is not _Mode.FINISHED:
            rest, self._pending = self._pending, ""
            match self._mode:
                case _Mode.START | _Mode.TEXT:
                    self._end_text(rest)
                    self._mode = _Mode.FINISHED
                case _Mode.READING:
                    self._end_reading(rest, well=well)
                case _Mode.THOUGHT:
                    self._end_thought(rest, well=well)
                case _Mode.OVER:
                    self._end_text("")
                    self._mode = _Mode.FINISHED
                case _:
                    assert_never(self._mode)
        return merged(self._out)

    # ------------------------------------------------------------------ the loop

    def _read(self, text: str) -> None:
        if self._pending:
            text, self._pending = self._pending + text, ""
        self._text, at = text, 0
        while at < len(self._text):
            match self._mode:
                case _Mode.START:
                    at = self._read_start(at)
                case _Mode.TEXT:
                    at = self._read_text(at)
                case _Mode.READING:
                    at = self._read_grammar(at)
                case _Mode.THOUGHT:
                    at = self._read_thought(at)
                case _Mode.OVER:
                    at = len(self._text)
                case _Mode.FINISHED:
                    raise RuntimeError("feed() after finish(): a reply has one TextCallParser")
                case _:
                    assert_never(self._mode)
        if self._mode is _Mode.READING and not self._calls.committed:
            self._carried.append(self._text[max(0, self._origin) : len(self._text) - len(self._pending)])
            self._origin = -1
        self._text = ""

    def _wait(self, at: int) -> int:
        """What comes from `at` on is decided with the next text."""
        self._pending = self._text[at:]
        return len(self._text)

    def _read_start(self, at: int) -> int:
        found = _FIRST_CHARS.match(self._text, at)
        end = found.end() if found else at
        if end > at:
            self._show(self._text[at:end])
        if end == len(self._text):
            return end
        self._mode = _Mode.TEXT
        if self._text[end] in START_CHARS:
            return self._begin("", beginning, end)
        return end

    def _read_text(self, at: int) -> int:
        text = self._text
        found = self._pattern.search(text, at)
        if found is None:
            held = min(marks.held_from(text, at) for marks in self._hold)
            self._show(text[at:held])
            return self._wait(held)
        if found.start() > at:
            self._show(text[at : found.start()])
        mark = found.group()
        if any(marks.may_grow(text, found.start()) for marks in self._hold):
            return self._wait(found.start())  # a longer one may come
        if self._quoting.quoted:
            self._show(mark)
            return found.end()
        return self._marked(mark, found.end())

    def _marked(self, mark: str, end: int) -> int:
        """A mark stands in the text, before `end`, and is no quotation."""
        if mark in FINAL and (self._shown or self._index):
            return self._begin(mark, self._turn_ended, end)
        if mark in NOISE:
            self._leave_gap()
            return end
        if mark in FRAMES:
            return self._frame(mark, end)
        if mark in LAST:
            return self._begin(mark, last, end)
        if mark in OPENERS or mark in WRAPPERS:
            return self._begin(mark, opened if mark in OPENERS else wrapped, end)
        if mark in CLOSERS:
            if not self._after:
                self._show(mark)
            return end
        if mark in PAIR_ENDS:
            self._think(PAIR_ENDS[mark])
            return end
        if mark in PAIR_CLOSES:
            self._ended_alone()
            return end
        closes = mark.startswith("</")
        return self._begin(mark, self._tag_closed if closes else self._tag_opened, end)

    def _frame(self, mark: str, end: int) -> int:
        """A tag around the reply itself, which only means something right behind a thought."""
        if self._framed is None and not mark.startswith("</"):
            self._framed = f"</{mark[1:]}"
            self._leave_gap()
        elif mark == self._framed:
            self._framed = ""
            self._leave_gap()
        else:
            self._show(mark)
        return end

    # ------------------------------------------------------------------ grammars

    def _begin(self, opener: str, read: Read, at: int) -> int:
        """What `opener`, which ends at `at`, begins is read by a grammar."""
        self._calls = Calls(self._offered, self._index)
        self._opener = opener
        self._grammar = read(self._calls, opener)
        self._step = None
        self._origin = at
        self._carried.clear()
        self._mode = _Mode.READING
        return self._read_grammar(at)

    def _read_grammar(self, at: int) -> int:
        while True:
            if self._step is None:
                try:
                    self._step = next(self._grammar)
                except StopIteration:
                    self._grammar_over()
                    return at
                except NotACall:
                    return self._roll_back()
            begun, at = at, self._step.feed(self._text, at)
            self._calls.chars += at - begun
            self._flush()
            if not self._step.done:
                return self._wait(at)
            self._step = None

    def _flush(self) -> None:
        """Hand on what the grammar has found."""
        calls = self._calls
        if calls.found:
            self._something_follows()
            self._leave_gap()
            self._out += calls.found
            calls.found.clear()

    def _grammar_over(self) -> None:
        calls = self._calls
        self._flush()
        self._index = calls.index
        self._mode = _Mode.TEXT
        if calls.thinks is not None:
            self._think(calls.thinks, calls.said)
            return
        self._leave_gap()
        if calls.ends_reply:
            self._mode = _Mode.OVER

    def _roll_back(self) -> int:
        """It is only text: the mark is shown, and what follows is read again."""
        self._mode = _Mode.TEXT
        at = self._origin
        if at < 0:
            self._text, at = "".join(self._carried) + self._text, 0
        if self._opener:
            self._show(self._opener)
        return at

    def _end_reading(self, rest: str, *, well: bool) -> None:
        """The text is over, and the grammar wants more."""
        self._calls.ends_well = well
        at = 0
        while True:
            if self._step is None:
                try:
                    self._step = next(self._grammar)
                except StopIteration:
                    self._grammar_over()
                    self._read(rest[at:])
                    return
                except NotACall:
                    break
            begun, at = at, self._step.feed(rest, at)
            if not self._step.done:
                at += self._step.end(rest[at:])
            self._calls.chars += at - begun
            self._flush()
            self._step = None
        self._mode = _Mode.TEXT
        if self._opener:
            self._show(self._opener)
        self._read("".join(self._carried) + rest)

    def _turn_ended(self, calls: Calls, _mark: str) -> Grammar:
        """The end of the model's turn; or a word of a sentence about such marks."""
        behind = "" if self._after else self._quoting.last[-1:]
        before = yield from ahead(1)
        inside = behind.isalnum() and before.isalnum()  # a script without blanks
        mentioned = inside or (behind and behind in _MENTIONED_BEHIND) or (before and before in _MENTIONED_BEFORE)
        calls.ends_reply = not mentioned

    def _tag_opened(self, calls: Calls, _mark: str) -> Grammar:
        """The tag of a thought, whose beginning was read; or a word of a sentence about such tags."""
        following = yield from ahead(1)
        if following and following not in " \t\r\n>/":
            raise NotACall
        inside, end = yield from until(">", "<", "\n\n")
        if (end != ">" and end) or not ATTRIBUTES.fullmatch(inside):
            raise NotACall
        if inside.endswith("/"):
            return
        if end and not self._quoting.line_begins:
            following = yield from ahead(1)
            if may_mention(self._quoting.last, following):
                sentence = yield from ahead(_MENTION_CHARS, _END_OF_MENTION)
                found = _END_OF_MENTION.search(sentence)
                if found is None or found.group() == "\n" or only_joins(sentence[: found.start()]):
                    self._mentions += 1
                    raise NotACall
        calls.thinks = TAG_ENDS

    def _tag_closed(self, _calls: Calls, _mark: str) -> Grammar:
        """The end of a thought that had not begun; or a word of a sentence."""
        following = yield from ahead(2)
        if self._mentions:
            self._mentions -= 1
            raise NotACall
        if close_is_word(self._quoting.last, following):
            raise NotACall
        self._ended_alone()

    # ------------------------------------------------------------------ thoughts

    def _think(self, ends: Ends, said: str = "") -> None:
        self._leave_gap()
        self._thinking = _Thinking(ends, said)
        self._mode = _Mode.THOUGHT

    def _ended_alone(self) -> None:
        self._leave_gap()
        self._lone = self._shown

    def _something_follows(self) -> None:
        """Text or a call comes: if a thought ended before that had not begun, all text so far was that thought."""
        if self._lone:
            self._lone, self._shown, self.began_inside = False, False, True
            self._out.append(TakenBack())

    def _read_thought(self, at: int) -> int:
        thinking = self._thinking
        end = self._think_on(at)
        if thinking.ends is _KEPT_ENDS:
            thinking.raw.append(self._text[at : len(self._text) - len(self._pending) if self._pending else end])
        return end

    def _think_on(self, at: int) -> int:
        text, thinking = self._text, self._thinking
        found = thinking.marks.pattern.search(text, at)
        if found is None:
            held = thinking.marks.held_from(text, at)
            self._ponder(text[at:held])
            return self._wait(held)
        start, end = found.span()
        before = text[start - 1] if start > at else thinking.last
        if before in _QUOTES and before:
            if end == len(text):
                return self._keep_for_quote(at, start)
            if text[end] == before:  # quoted: it thinks about the mark
                self._ponder(text[at:end])
                return end
        self._ponder(text[at:start])
        self._thought_mark(found.group())
        if found.group() == STRIPPED_COMMENTARY:
            return self._begin("", stripped_call, end)
        return end

    def _keep_for_quote(self, at: int, start: int) -> int:
        self._ponder(self._text[at:start])
        return self._wait(start)

    def _ponder(self, text: str) -> None:
        if not text:
            return
        thinking = self._thinking
        thinking.last = text[-1]
        if thinking.holding:
            thinking.held.append(text)
            return
        thinking.begun = thinking.begun or not text.isspace()
        thinking.text.append(text)
        self._out.append(Thought(text))

    def _thought_mark(self, mark: str) -> None:
        thinking = self._thinking
        ends = (mark.lower() if thinking.ends.folded else mark) in thinking.ends.closes
        if not ends and not thinking.begun:
            if thinking.ends is _KEPT_ENDS and thinking.depth == 1:
                thinking.ends = TAG_ENDS  # the model says itself that it thinks: nothing has to be guessed
            return  # written twice, once by the template and once by the model
        held = "".join(thinking.held)
        thinking.held.clear()
        thinking.holding = False
        self._ponder(held)
        thinking.depth += -1 if ends else 1
        if not ends:
            thinking.begun = False
        elif thinking.depth:
            thinking.holding = True
        else:
            if thinking.ends is _KEPT_ENDS:
                self.began_inside = True
            self._mode = _Mode.TEXT
            self._framed = None

    def _end_thought(self, rest: str, *, well: bool) -> None:
        """The text ends inside a thought."""
        thinking = self._thinking
        self._mode = _Mode.TEXT
        held = "".join(thinking.held) + rest
        if thinking.holding and held.strip():
            self._read(held)
        elif thinking.ends.must_end and well:
            if thinking.ends is _KEPT_ENDS:  # read as if nothing had been known
                self._mode, self.began_inside = _Mode.START, False
                self._read("".join(thinking.raw) + rest)
                return
            self._show(thinking.said)
            self._read("".join(thinking.text) + rest)
        elif self._body:
            self._ponder(rest)
            self._calls_at_end("".join(thinking.text))

    def _calls_at_end(self, thought: str) -> None:
        """Some models forget to end the thought before they call."""
        found = CALL_MARKS.pattern.search(thought)
        if found is None:
            return
        inner = TextCallParser(self._offered)
        inner.begin_at(self._index)
        pieces = inner.feed(thought[found.start() :]) + inner.finish()
        texts = [at for at, piece in enumerate(pieces) if isinstance(piece, VisibleText) and piece.text.strip()]
        calls = pieces[texts[-1] + 1 :] if texts else pieces
        if any(isinstance(piece, TextCall) for piece in calls):
            self._out += [piece for piece in calls if isinstance(piece, TextCallOpened | TextCall | TextCallBroken)]

    # ------------------------------------------------------------------ text

    def _end_text(self, rest: str) -> None:
        """The text is over, and may end with half a mark."""
        token = rest.startswith(("<|", "<｜")) and len(rest) >= _SEEN_TOKEN
        if self._quoting.quoted:
            self._show(rest)
        elif self._body and (token or len(rest) >= _SEEN) and rest in CALL_BEGINNINGS.prefixes:
            self._something_follows()
            self._leave_gap()
            self._out.append(TextCallBroken(self._index, None, 0, BrokenReason.CUT_OFF))
        elif len(rest) <= _SEEN and not token:
            self._show(rest)
        space = "".join(self._space)
        if space and not self._after:
            self._emit(space)
        if self.began_inside is None and self._shown:
            self.began_inside = False

    def _leave_gap(self) -> None:
        """Something that is no text stands here: the white space before it is no longer simply text."""
        if not self._after:
            self._before, self._after = self._told + "".join(self._space), True
        self._space = []

    def _show(self, text: str) -> None:
        self._quoting.note(text)
        core = text.rstrip(_WHITE)
        if not core:
            if text:
                self._space.append(text)
            return
        if self._lone:
            self._something_follows()
        if self._after:
            rest = core.lstrip(_WHITE)
            after = "".join(self._space) + core[: len(core) - len(rest)]
            gap = _gap(self._before, after) if self._shown else ""
            shown = (gap[len(self._told) :] if gap.startswith(self._told) else gap.lstrip(" ")) + rest
            self._after = False
        else:
            shown = "".join(self._space) + core if self._space else core
        if self._space or len(core) < len(text):
            self._space = [text[len(core) :]]
        self._emit(shown)

    def _emit(self, text: str) -> None:
        self._shown, self._told = True, ""
        self._framed = self._framed or ""
        self._out.append(VisibleText(text))
