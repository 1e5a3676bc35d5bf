"""Marks that may be what they are, or words of a sentence about such marks. Pure.

The end of the model's turn, and the tags of thoughts: what stands around them tells.
"""

from __future__ import annotations

from agent_core.model.families.family import Calls
from agent_core.model.families.grammar.marks import marks_of
from agent_core.model.families.grammar.steps import Grammar, NotACall, ahead, until
from agent_core.model.stream.thoughts import ATTRIBUTES, TAG_CLOSES, TAG_ENDS, close_is_word, may_mention, only_joins
from agent_core.model.stream.visible import Visible
from agent_core.text.patterns import late

_MENTION_CHARS = 300
"""How far behind a tag in a sentence its end is looked for."""
_END_OF_MENTION = late(f"\n|(?i:{marks_of(TAG_CLOSES).pattern.pattern})")
_MENTIONED_BEHIND = " \t([{'\"“‘«„,/=|:：（「『《，、"
_MENTIONED_BEFORE = " \t)]},.;:'\"”’»/=|）」』》。，、；：！？"
"""Characters that stand around a mark which a sentence is about."""


class Mentions:
    """The grammars of such marks in one reply."""

    __slots__ = ("_opened", "_visible")

    def __init__(self, visible: Visible) -> None:
        self._visible = visible
        self._opened = 0
        """Opening tags that were only mentioned, and whose end may be mentioned as well."""

    def turn_ended(self, calls: Calls, _mark: str) -> Grammar:
        """The end of the model's turn; or a word of a sentence about such marks."""
        behind = "" if self._visible.after else self._visible.quoting.last[-1:]
        before = yield from ahead(1)
        inside = behind.isalnum() and before.isalnum()  # a script without blanks
        mentioned = inside or (behind and behind in _MENTIONED_BEHIND) or (before and before in _MENTIONED_BEFORE)
        calls.ends_reply = not mentioned

    def tag_opened(self, calls: Calls, _mark: str) -> Grammar:
        """The tag of a thought, whose beginning was read; or a word of a sentence about such tags."""
        following = yield from ahead(1)
        if following and following not in " \t\r\n>/":
            raise NotACall
        inside, end = yield from until(">", "<", "\n\n")
        if (end != ">" and end) or not ATTRIBUTES.fullmatch(inside):
            raise NotACall
        if inside.endswith("/"):
            return
        if end and not self._visible.quoting.line_begins:
            following = yield from ahead(1)
            if may_mention(self._visible.quoting.last, following):
                sentence = yield from ahead(_MENTION_CHARS, _END_OF_MENTION)
                found = _END_OF_MENTION.search(sentence)
                if found is None or found.group() == "\n" or only_joins(sentence[: found.start()]):
                    self._opened += 1
                    raise NotACall
        calls.thinks = TAG_ENDS

    def tag_closed(self, _calls: Calls, _mark: str) -> Grammar:
        """The end of a thought that had not begun; or a word of a sentence."""
        following = yield from ahead(2)
        if self._opened:
            self._opened -= 1
            raise NotACall
        if close_is_word(self._visible.quoting.last, following):
            raise NotACall
        self._visible.ended_alone()
