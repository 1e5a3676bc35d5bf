"""Text and thoughts of a reply: what a person may see, what the model thinks, and the calls that stand in either. Pure.

They come whole or in pieces, in fields of their own or in one another; `text_calls` divides what stands in the text.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_core.model.families.grammar.values import Offered, surely_unreadable
from agent_core.model.families.pieces import (
    Piece,
    TakenBack,
    TextCall,
    TextCallBroken,
    TextCallOpened,
    Thought,
    VisibleText,
)
from agent_core.model.stream.arriving import TEXT_CALL_INDEX, Arriving, CallNames
from agent_core.model.stream.text_calls import TextCallParser
from agent_core.model.thinking import INLINE, ThoughtKeeper
from agent_core.records import NONE
from agent_core.text.wellformed import Joined, storable
from agent_core.turn.events import TextTakenBack, ToolArgumentsArrived, ToolCallCut, ToolCallNamed

THOUGHT_CHARS, THOUGHT_PIECES = 65_536, 4_096
"""How much of the end of a thought is kept, to look for calls in it; it is put together after so many pieces."""


class ContentReader:
    """Reads the text and the thoughts of one reply."""

    # fmt: off
    __slots__ = (
        "_beginning_unknown", "_called", "_inside_thought", "_keeper", "_names", "_open", "_out", "_parser", "_text",
        "_thoughts", "_thoughts_joined", "over",
    )
    # fmt: on

    def __init__(
        self,
        out: Arriving,
        names: CallNames,
        keeper: ThoughtKeeper,
        *,
        tools: bytes,
        parse_calls: bool,
        inside_thought: bool | None,
    ) -> None:
        """See `ChunkReader` for `tools` and `inside_thought`."""
        self._out = out
        self._names = names
        self._keeper = keeper
        self._parser = TextCallParser(Offered(tools), calls=parse_calls, inside_thought=bool(inside_thought))
        self._inside_thought = bool(inside_thought)
        self._beginning_unknown = inside_thought is None
        self.over = False
        """The model's turn has ended in the text, whatever still comes."""
        self._text = Joined()
        self._thoughts_joined = Joined()
        self._thoughts: list[str] = []
        """The end of its thoughts, as far as they come outside of the text."""
        self._called: frozenset[int] = NONE
        self._open: frozenset[int] = NONE
        """Of the calls in the text, those that were named and have no arguments yet."""

    @property
    def called(self) -> bool:
        """A call has begun in the text."""
        return bool(self._called)

    @property
    def began_inside(self) -> bool | None:
        """Whether the text began inside a thought, as far as is known."""
        return self._parser.began_inside

    def say(self, text: str) -> None:
        """More text."""
        if text:
            self._divide(self._text.feed(text))

    def think(self, text: str) -> None:
        """More thoughts, which came outside of the text."""
        if text:
            self._ponder(self._thoughts_joined.feed(text))

    def end_thoughts(self) -> None:
        """No more thoughts come."""
        self._ponder(self._thoughts_joined.finish())

    def end_text(self) -> None:
        """No more text comes."""
        self._divide(self._text.finish())

    def finish(self, *, well: bool, called: bool) -> None:
        """The reply is over; `well`: the model ended it; `called`: it has calls outside of the text."""
        self._pieces(self._parser.finish(well=well))
        if well and not called:
            self._pieces(self._parser.called_in("".join(self._thoughts)))

    @property
    def holds_blank(self) -> bool:
        """White space behind the text waits for what follows it."""
        return self._parser.holds_blank

    def let_go(self) -> None:
        """Nothing has followed for a while: the blank behind the text is text."""
        self._pieces(self._parser.let_go())

    def call_came_elsewhere(self) -> None:
        """A call has come outside of the text."""
        self._pieces(self._parser.call_came_elsewhere())

    def _ponder(self, text: str) -> None:
        if not text:
            return
        if self._inside_thought:
            self._inside_thought = False
            self._parser.thoughts_come_elsewhere()
        self._out.think(text)
        self._out.chars += len(text)
        self._thoughts.append(text)
        if len(self._thoughts) > THOUGHT_PIECES:
            self._thoughts = ["".join(self._thoughts)[-THOUGHT_CHARS:]]

    def _divide(self, text: str) -> None:
        """Text with whole characters: thoughts and calls in it are thoughts and calls."""
        if text and not self.over:
            self._out.chars += len(text)
            shown = self._parser.text_alone(text)
            if shown is None:
                self._pieces(self._parser.feed(text))
                self.over = self._parser.over
            elif shown:
                self._out.say(shown)

    def _pieces(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            match piece:
                case VisibleText():
                    self._out.say(piece.text)
                case Thought():
                    self._keeper.name = self._keeper.name or INLINE
                    self._out.think(piece.text)
                case TakenBack():
                    self._keeper.name = self._keeper.name or INLINE
                    self._out.add(TextTakenBack(at=self._out.at, earlier=self._beginning_unknown))
                case TextCallOpened():
                    if piece.name:
                        self._opened(piece.index, piece.name)
                case TextCall():
                    self._opened(piece.index, piece.name)
                    if piece.index in self._called:
                        self._arguments(piece.index, piece.arguments)
                case TextCallBroken():
                    self._broken(piece)

    def _opened(self, index: int, name: str) -> None:
        if index in self._called or not self._names.one_more():
            return
        self._called |= {index}
        self._open |= {index}
        number = TEXT_CALL_INDEX + index
        call, name = self._names.call_id(number), self._names.tool(name)
        self._out.add(ToolCallNamed(at=self._out.at, index=number, call=call, name=name))

    def _arguments(self, index: int, text: str) -> None:
        self._out.add(ToolArgumentsArrived(at=self._out.at, index=TEXT_CALL_INDEX + index, text=storable(text)))
        self._open -= {index}

    def _broken(self, piece: TextCallBroken) -> None:
        """No call. One that is all there and cannot be read is answered like any call with arguments that cannot be read."""
        opened = piece.index in self._open
        if opened and piece.raw:
            self._arguments(piece.index, surely_unreadable(piece.raw))
            return
        index = TEXT_CALL_INDEX + piece.index if opened else -1
        self._out.add(ToolCallCut(at=self._out.at, name=self._names.tool(piece.name or ""), index=index))
