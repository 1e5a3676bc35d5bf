"""A thought of the model that is open, in its text: how it ends, and what in it only mentions an end. Pure."""

from __future__ import annotations

from agent_core.model.families.family import Ends
from agent_core.model.families.grammar.marks import Marks, marks_of
from agent_core.model.families.pieces import Thought
from agent_core.model.stream.thoughts import TAG_CLOSES, TAG_ENDS
from agent_core.model.stream.visible import Visible

_QUOTES = "`\"'"
KEPT_ENDS = Ends(
    TAG_CLOSES, tuple(f"<{name}>" for name in ("think", "thinking", "mm:think")), folded=True, must_end=True
)
"""Of a thought that is only known to begin the replies of a model."""


class OpenThought:
    """A thought that is open."""

    __slots__ = (
        "_begun",
        "_depth",
        "_held",
        "_last",
        "_marks",
        "_visible",
        "ends",
        "holding",
        "over",
        "raw",
        "said",
        "text",
    )

    def __init__(self, visible: Visible, ends: Ends, said: str = "") -> None:
        self._visible = visible
        self.ends = ends
        self.said = said
        """The words that began it, if it may be text after all."""
        self._marks = _marks_of_ends(ends)
        self._depth = 1
        self._begun = False
        """Something was thought since the last beginning."""
        self.holding = False
        """An inner thought has ended; what follows is thought as well, or it is the reply."""
        self._held: list[str] = []
        self.text: list[str] = []
        self.raw: list[str] = []
        """All that was read, with its marks, of a beginning that is only kept back."""
        self._last = ""
        self.over = False

    @property
    def kept(self) -> bool:
        """Nothing in the text says that it is a thought: the model is known to begin so."""
        return self.ends is KEPT_ENDS

    @property
    def held(self) -> str:
        """What followed the end of an inner thought."""
        return "".join(self._held)

    def read(self, text: str, at: int) -> tuple[int, str, bool]:
        """Read on: how far, the mark that ended that or nothing, and whether the rest must wait for more."""
        found = self._marks.pattern.search(text, at)
        if found is None:
            held = self._marks.held_from(text, at)
            self.ponder(text[at:held])
            return held, "", True
        start, end = found.span()
        before = text[start - 1] if start > at else self._last
        if before in _QUOTES and before:
            if end == len(text):
                self.ponder(text[at:start])
                return start, "", True
            if text[end] == before:  # quoted: it thinks about the mark
                self.ponder(text[at:end])
                return end, "", False
        self.ponder(text[at:start])
        self._mark(found.group())
        return end, found.group(), False

    def ponder(self, text: str) -> None:
        """The model thinks this."""
        if not text:
            return
        self._last = text[-1]
        if self.holding:
            self._held.append(text)
            return
        self._begun = self._begun or not text.isspace()
        self.text.append(text)
        self._visible.out.append(Thought(text))

    def _mark(self, mark: str) -> None:
        ends = (mark.lower() if self.ends.folded else mark) in self.ends.closes
        if not ends and not self._begun:
            if self.kept and self._depth == 1:
                self.ends = TAG_ENDS  # the model says itself that it thinks: nothing has to be guessed
            return  # written twice, once by the template and once by the model
        held = self.held
        self._held.clear()
        self.holding = False
        self.ponder(held)
        self._depth += -1 if ends else 1
        if not ends:
            self._begun = False
        elif self._depth:
            self.holding = True
        else:
            self.over = True


_ENDS: dict[Ends, Marks] = {}


def _marks_of_ends(ends: Ends) -> Marks:
    if ends not in _ENDS:
        _ENDS[ends] = marks_of([*ends.closes, *ends.opens], folded=ends.folded)
    return _ENDS[ends]
