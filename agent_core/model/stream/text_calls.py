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

from enum import Enum, auto
from typing import assert_never

from agent_core.model.families.family import Calls, Ends, Read
from agent_core.model.families.grammar.marks import marks_of
from agent_core.model.families.grammar.steps import Grammar, NotACall, Step
from agent_core.model.families.grammar.values import Offered
from agent_core.model.families.pieces import (
    BrokenReason,
    Piece,
    TextCall,
    TextCallBroken,
    TextCallOpened,
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
    STRIPPED_MARKS,
    WRAPPERS,
    beginning,
    last,
    opened,
    stripped_call,
    wrapped,
)
from agent_core.model.stream.mentions import Mentions
from agent_core.model.stream.openthought import KEPT_ENDS, OpenThought
from agent_core.model.stream.thoughts import (
    FRAMES,
    PAIR_CLOSES,
    PAIR_ENDS,
    STRIPPED_COMMENTARY,
    STRIPPED_FINAL,
    TAG_CLOSES,
    TAG_OPENS,
)
from agent_core.model.stream.visible import Visible
from agent_core.text.patterns import late

_SEEN, _SEEN_TOKEN = 5, 3
"""How many characters of a mark somebody sees as one; how many of a special token."""
_LEAD = late(r"[<\[◁\]]")
"""With these every mark begins."""
_STRIPPED_LEAD = late(r"[<\[◁\]a-z]")
"""Where special tokens are dropped, their words are marks."""
_THOUGHT_MARKS = marks_of([*PAIR_ENDS, *PAIR_CLOSES, *FRAMES])
_TAG_MARKS = marks_of([*TAG_OPENS, *TAG_CLOSES], folded=True)
_ALL = late(f"{CALL_MARKS.pattern.pattern}|{_THOUGHT_MARKS.pattern.pattern}|(?i:{_TAG_MARKS.pattern.pattern})")
_NO_CALLS = late(f"{OTHER_MARKS.pattern.pattern}|{_THOUGHT_MARKS.pattern.pattern}|(?i:{_TAG_MARKS.pattern.pattern})")
_STRIPPED = tuple(late(f"{one.pattern}|{STRIPPED_MARKS.pattern.pattern}") for one in (_NO_CALLS, _ALL))
"""The same for replies in which such words are marks: without calls, and with them."""
_HOLD_ALL = (CALL_MARKS, _THOUGHT_MARKS, _TAG_MARKS)
_HOLD_NO_CALLS = (OTHER_MARKS, _THOUGHT_MARKS, _TAG_MARKS)
_FIRST_CHARS = late(r"[ \t\r\n]*+")


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


def _no_grammar() -> Grammar:
    yield from ()


class TextCallParser:
    """Divides the content of one model reply. See the module's text for the rules."""

    # fmt: off
    __slots__ = (
        "_body", "_calls", "_carried", "_grammar", "_hold", "_index", "_lead", "_mentions", "_mode", "_offered", "_opener", "_origin",
        "_pattern", "_pending", "_step", "_text", "_thinking", "_visible",
    )
    # fmt: on

    def __init__(
        self, offered: Offered | None = None, *, calls: bool = True, inside_thought: bool = False, first: int = 0
    ) -> None:
        """`first` is the number of the first call."""
        self._offered = offered or Offered()
        self._body = calls
        """Calls are looked for, not only thoughts."""
        self._pattern = _ALL if calls else _NO_CALLS
        self._hold = _HOLD_ALL if calls else _HOLD_NO_CALLS
        self._lead = _LEAD
        self._mode = _Mode.THOUGHT if inside_thought else _Mode.START
        self._text = ""
        self._pending = ""
        """The end of the text so far, if more text must decide what it is."""
        self._index = first
        self._visible = Visible()
        self._mentions = Mentions(self._visible)
        self._opener = ""
        self._calls = Calls(self._offered, first)
        self._grammar = _no_grammar()
        self._step: Step | None = None
        self._origin = 0
        """Where in the current text what the grammar reads begins, or -1: it began in an earlier one, and `_carried` has it."""
        self._carried: list[str] = []
        self._thinking = OpenThought(self._visible, KEPT_ENDS) if inside_thought else None

    @property
    def began_inside(self) -> bool | None:
        """Whether the reply began inside a thought; None if nothing says so."""
        return self._visible.began_inside

    @property
    def over(self) -> bool:
        """The model's turn has ended, whatever still comes."""
        return self._mode is _Mode.OVER

    # ------------------------------------------------------------------ from outside

    def feed(self, text: str) -> list[Piece]:
        """The pieces that `text`, the next part of the content, completes."""
        if (shown := self.text_alone(text)) is not None:
            return [VisibleText(shown)] if shown else []
        self._visible.out = []
        self._read(text)
        return self._visible.out if len(self._visible.out) < 2 else merged(self._visible.out)

    def text_alone(self, text: str) -> str | None:
        """What is seen of `text`, the next part of the content, if nothing else can come of it; None if `feed` has to read it."""
        visible = self._visible
        if self._mode is not _Mode.TEXT or self._pending or visible.lone or self._lead.search(text) is not None:
            return None
        return visible.seen_of(text)

    def thoughts_come_elsewhere(self) -> None:
        """The server tells the model's thoughts apart: the text does not begin with one after all."""
        thinking = self._thinking
        if self._mode is _Mode.THOUGHT and thinking is not None and thinking.kept and not thinking.text:
            self._mode = _Mode.START

    def call_came_elsewhere(self) -> list[Piece]:
        """A call has come outside of the text, behind what has been read of it."""
        self._visible.out = []
        self._visible.something_follows()
        return self._visible.out

    def called_in(self, thought: str) -> list[Piece]:
        """The calls at the very end of a thought that came outside of the text, if that is all there was: some servers' parsers leave
        them there (vllm-project/vllm#39056, sgl-project/sglang#11764)."""
        self._visible.out = []
        if self._body and not self._visible.shown and not self._index:
            self._visible.out += _calls_at_end(self._offered, self._index, thought)
        return self._visible.out

    @property
    def holds_blank(self) -> bool:
        """White space behind visible text waits for what follows it."""
        return self._mode is _Mode.TEXT and self._visible.holds_blank

    def let_go(self) -> list[Piece]:
        """Nothing has followed for a while, and perhaps nothing will: the blank that waits is shown, as far as it would be anyway."""
        if not self.holds_blank:
            return []
        self._visible.out = []
        self._visible.let_go()
        return self._visible.out

    def finish(self, *, well: bool = True) -> list[Piece]:
        """The content is over: what is still open is decided. `well`: the model ended it. A second call gives nothing."""
        self._visible.out = []
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
        return merged(self._visible.out)

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
            self._visible.show(self._text[at:end])
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
            self._visible.show(text[at:held])
            return self._wait(held)
        if found.start() > at:
            self._visible.show(text[at : found.start()])
        mark = found.group()
        if any(marks.may_grow(text, found.start()) for marks in self._hold):
            return self._wait(found.start())  # a longer one may come
        if self._visible.quoting.quoted:
            self._visible.show(mark)
            return found.end()
        return self._marked(mark, found.end())

    def _marked(self, mark: str, end: int) -> int:
        """A mark stands in the text, before `end`, and is no quotation."""
        if mark in FINAL and (self._visible.shown or self._index):
            return self._begin(mark, self._mentions.turn_ended, end)
        if mark in NOISE or mark == STRIPPED_FINAL:
            self._visible.leave_gap()
            return end
        if mark == STRIPPED_COMMENTARY:
            self._visible.leave_gap()
            return self._begin("", stripped_call, end)
        if mark in FRAMES:
            self._visible.frame(mark)
            return end
        if mark in LAST:
            return self._begin(mark, last, end)
        if mark in OPENERS or mark in WRAPPERS:
            return self._begin(mark, opened if mark in OPENERS else wrapped, end)
        if mark in CLOSERS:
            if not self._visible.after:
                self._visible.show(mark)
            return end
        if mark in PAIR_ENDS:
            self._think(PAIR_ENDS[mark])
            return end
        if mark in PAIR_CLOSES:
            self._visible.ended_alone()
            return end
        closes = mark.startswith("</")
        return self._begin(mark, self._mentions.tag_closed if closes else self._mentions.tag_opened, end)

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
            self._visible.something_follows()
            self._visible.leave_gap()
            self._visible.out += calls.found
            calls.found.clear()

    def _grammar_over(self) -> None:
        calls = self._calls
        self._flush()
        self._index = calls.index
        self._mode = _Mode.TEXT
        if calls.thinks is not None:
            self._think(calls.thinks, calls.said)
            return
        self._visible.leave_gap()
        if calls.ends_reply:
            self._mode = _Mode.OVER

    def _roll_back(self) -> int:
        """It is only text: the mark is shown, and what follows is read again."""
        self._mode = _Mode.TEXT
        at = self._origin
        if at < 0:
            self._text, at = "".join(self._carried) + self._text, 0
        if self._opener:
            self._visible.show(self._opener)
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
            self._visible.show(self._opener)
        self._read("".join(self._carried) + rest)

    # ------------------------------------------------------------------ thoughts

    def _think(self, ends: Ends, said: str = "") -> None:
        self._visible.leave_gap()
        self._thinking = OpenThought(self._visible, ends, said)
        self._mode = _Mode.THOUGHT

    def _read_thought(self, at: int) -> int:
        thinking, text = self._thinking, self._text
        assert thinking is not None
        end, mark, waits = thinking.read(text, at)
        if thinking.kept:
            thinking.raw.append(text[at:end])
        if waits:
            return self._wait(end)
        if thinking.over:
            if thinking.kept:
                self._visible.began_inside = True
            self._mode = _Mode.TEXT
            self._visible.thought_ended()
        if mark == STRIPPED_COMMENTARY:
            self._pattern, self._lead = _STRIPPED[self._body], _STRIPPED_LEAD
            self._hold = (*self._hold, STRIPPED_MARKS)
            return self._begin("", stripped_call, end)
        return end

    def _end_thought(self, rest: str, *, well: bool) -> None:
        """The text ends inside a thought."""
        thinking = self._thinking
        assert thinking is not None
        self._mode = _Mode.TEXT
        held = thinking.held + rest
        if thinking.holding and held.strip():
            self._read(held)
        elif thinking.ends.must_end and well:
            if thinking.kept:  # read as if nothing had been known
                self._mode, self._visible.began_inside = _Mode.START, False
                self._read("".join(thinking.raw) + rest)
                return
            self._visible.show(thinking.said)
            self._read("".join(thinking.text) + rest)
        elif self._body:
            thinking.ponder(rest)
            self._visible.out += _calls_at_end(self._offered, self._index, "".join(thinking.text))

    # ------------------------------------------------------------------ text

    def _end_text(self, rest: str) -> None:
        """The text is over, and may end with half a mark."""
        token = rest.startswith(("<|", "<｜")) and len(rest) >= _SEEN_TOKEN
        if self._visible.quoting.quoted:
            self._visible.show(rest)
        elif self._body and (token or len(rest) >= _SEEN) and rest in CALL_BEGINNINGS.prefixes:
            self._visible.something_follows()
            self._visible.leave_gap()
            self._visible.out.append(TextCallBroken(self._index, None, 0, BrokenReason.CUT_OFF))
        elif len(rest) <= _SEEN and not token:
            self._visible.show(rest)
        self._visible.end()


def _calls_at_end(offered: Offered, first: int, thought: str) -> list[Piece]:
    """Some models forget to end the thought before they call."""
    found = CALL_MARKS.pattern.search(thought)
    if found is None:
        return []
    inner = TextCallParser(offered, first=first)
    pieces = inner.feed(thought[found.start() :]) + inner.finish()
    texts = [at for at, piece in enumerate(pieces) if isinstance(piece, VisibleText) and piece.text.strip()]
    calls = pieces[texts[-1] + 1 :] if texts else pieces
    if not any(isinstance(piece, TextCall) for piece in calls):
        return []
    return [piece for piece in calls if isinstance(piece, TextCallOpened | TextCall | TextCallBroken)]
