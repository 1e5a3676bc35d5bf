"""What of a reply a person sees, as it is told apart from calls and thoughts: its white space, and where it stands. Pure.

White space at the end waits for what follows it: text, or a call or thought, around which there is one gap. The blank behind the last word
is shown without waiting if nothing follows for a while.
"""

from __future__ import annotations

from agent_core.model.families.pieces import Piece, TakenBack, VisibleText
from agent_core.model.stream.markdown import Quoting
from agent_core.text.shown import seam

_WHITE = " \t\r\n"


def _gap(before: str, after: str) -> str:
    """What stands between two visible texts for the white space on both sides of what stood between them."""
    breaks = min(2, max(before.count("\n"), after.count("\n")))
    if breaks:
        return "\n" * breaks + (after.rpartition("\n")[2] if "\n" in after else "")
    return " " if before or after else ""


class Visible:
    """The text of one reply, shown piece by piece into `out`."""

    # fmt: off
    __slots__ = ("_before", "_framed", "_space", "_told", "after", "began_inside", "lone", "out", "quoting", "shown")
    # fmt: on

    def __init__(self) -> None:
        self.out: list[Piece] = []
        """All pieces that are found now; thoughts and calls are put there, too."""
        self.quoting = Quoting()
        self.shown = False
        """Something was shown."""
        self.after = False
        """Only white space came since the last call or thought."""
        self.began_inside: bool | None = None
        """Whether the reply began inside a thought; None if nothing says so."""
        self._space: list[str] = []
        """White space at the end of the text so far: shown with the text after it, or part of a gap."""
        self._told = ""
        """What of that was shown already, because nothing followed for a while."""
        self._before = ""
        self._framed: str | None = ""
        """The tag that ends the reply, if one began it; None if one may come: a thought has just ended."""
        self.lone = False
        """A thought ended that had not begun; nothing has followed yet."""

    def show(self, text: str) -> None:
        """Text comes."""
        if self.lone and text.rstrip(_WHITE):
            self.something_follows()
        if shown := self.seen_of(text):
            self.out.append(VisibleText(shown))

    def seen_of(self, text: str) -> str:
        """Text comes, and nothing is `lone`, or it is white: what is seen of it now."""
        self.quoting.note(text)
        core = text.rstrip(_WHITE)
        if not core:
            if text:
                self._space.append(text)
            return ""
        if self.after:
            rest = core.lstrip(_WHITE)
            after = "".join(self._space) + core[: len(core) - len(rest)]
            gap = _gap(self._before, after) if self.shown else ""
            shown = (gap[len(self._told) :] if gap.startswith(self._told) else gap.lstrip(" ")) + rest
            self.after = False
        else:
            shown = "".join(self._space) + core if self._space else core
        if self._space or len(core) < len(text):
            self._space = [text[len(core) :]]
        self.shown, self._told = True, ""
        self._framed = self._framed or ""
        return shown

    def leave_gap(self) -> None:
        """Something that is no text stands here: the white space before it is no longer simply text."""
        if not self.after:
            self._before, self.after = self._told + "".join(self._space), True
        self._space = []

    def thought_ended(self) -> None:
        """A thought that had begun has ended: a frame around the reply may come."""
        self._framed = None

    def ended_alone(self) -> None:
        """A thought ends that had not begun."""
        self.leave_gap()
        self.lone = self.shown

    def something_follows(self) -> None:
        """Text or a call comes: if a thought ended before that had not begun, all text so far was that thought."""
        if self.lone:
            self.lone, self.shown, self.began_inside = False, False, True
            self.out.append(TakenBack())

    def frame(self, mark: str) -> None:
        """A tag around the reply itself, which only means something right behind a thought."""
        if self._framed is None and not mark.startswith("</"):
            self._framed = f"</{mark[1:]}"
            self.leave_gap()
        elif mark == self._framed:
            self._framed = ""
            self.leave_gap()
        else:
            self.show(mark)

    @property
    def holds_blank(self) -> bool:
        """White space behind visible text waits for what follows it."""
        return bool(self._space) and self.shown and not self._told and not self.after

    def let_go(self) -> None:
        """Show the blank that waits, as far as it would be shown anyway."""
        blank = "".join(self._space)
        self._told = seam(blank)
        self._space = [blank[len(self._told) :]] if len(blank) > len(self._told) else []
        self.out.append(VisibleText(self._told))

    def end(self) -> None:
        """Nothing follows."""
        space = "".join(self._space)
        if space and not self.after:
            self.shown, self._told = True, ""
            self.out.append(VisibleText(space))
        if self.began_inside is None and self.shown:
            self.began_inside = False
