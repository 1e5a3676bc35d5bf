"""What an append-only client is told of a view: for every text how much has gone out, and what is new. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from adapters.contract.base import Queued
from agent_core.failures.notices import for_programs
from agent_core.records import NONE, dataclass
from agent_core.text.ours import GrowingText, ours
from agent_core.text.tongue import clause
from agent_core.turn.view import LEFT_WORDS, TEXTS, Bubble, BubbleKind, View, call_key

_OURS = frozenset({BubbleKind.NOTE, BubbleKind.NOTICE})
_ACTS = frozenset({BubbleKind.ACTIVITY, BubbleKind.APPROVAL})
_KINDS = {
    (apart, ours): TEXTS | (_OURS if ours else {BubbleKind.NOTICE}) | (_ACTS if apart else NONE)
    for apart in (False, True)
    for ours in (False, True)
}
"""What is said; `apart` and `ours` as of `Spoken`."""


@dataclass(slots=True)  # not frozen: one is made for every token, and that costs half as much
class TextPiece:
    """Text for an append-only client."""

    text: str
    ours: bool = False
    """The gateway says it, not the model."""
    key: str = ""
    """Of the bubble that it is part of."""
    act: Bubble | None = None
    """It is no text: a call of the gateway's tools has begun, or is over."""
    refusal: bool = False
    """The model refuses."""


def text_of(pieces: Iterable[TextPiece]) -> str:
    return "".join(piece.text for piece in pieces)


class Spoken:
    """What has been said to an append-only client, and what is new in a view.

    `data`: the client asked for data (JSON) and takes all that is said for it. Then nothing else is said: neither the gateway's words nor what the
    model says beside its tools. What does not look like data waits until it is known to be the answer. `apart`: each bubble has a place of its own,
    so that none is a paragraph behind another; calls of tools have one as well. What the gateway says on the way has none unless it is `ours`; its
    notice of an end has, as some programs look at texts alone and took a half for the whole. `refusals`: what the model refuses has a place that is for
    it; else it is text, which people read.
    """

    def __init__(self, *, data: bool = False, apart: bool = False, ours: bool = True, refusals: bool = False) -> None:
        self._data = data
        self._refusals = refusals
        self._apart = apart
        self._kinds = _KINDS[apart, ours]
        self._acts: dict[str, str] = {}
        self._said: dict[str, GrowingText] = {}
        self._told: tuple[str, ...] = ()

    def new(self, view: View) -> list[TextPiece]:
        """What of `view` has not been said, in order; bubbles are paragraphs."""
        if len(view.bubbles) == 1 and not self._data:  # a text grows: of nearly every look there is no more to say
            only = view.bubbles[0]
            if only.kind in TEXTS and (said := self._said.get(only.key)) is not None and said.begun:
                return self._grown(only, said, view)
        pieces: list[TextPiece] = []
        shown = [bubble for bubble in view.bubbles if bubble.text and bubble.kind in self._kinds]
        if self._data:
            shown = [bubble for bubble in shown if bubble.key in self._said or _is_data(bubble) or bubble.kind in _ACTS]
        latest = next((bubble for bubble in reversed(shown) if bubble.kind in TEXTS), None)
        if len(shown) > 1:  # what was begun is ended first
            shown.sort(key=lambda one: one.key not in self._said)
        for bubble in shown:
            match bubble.kind:
                case BubbleKind.INTERIM | BubbleKind.PARTIAL | BubbleKind.ANSWER:
                    if (said := self._said.get(bubble.key)) is None:
                        said = self._said[bubble.key] = GrowingText()
                    begins = not said.begun
                    text = said.new(bubble.text, final=bubble.final or not view.open or bubble is not latest)
                    if text:
                        words = self._paragraph(bubble.key, text) if begins else text
                        pieces.append(TextPiece(words, key=bubble.key, refusal=self._refusals and bubble.refusal))
                case BubbleKind.NOTICE | BubbleKind.NOTE if bubble.key not in self._told and not self._goes_on(
                    latest, view
                ):
                    words = ours(for_programs(bubble.text, view.language))
                    pieces.append(TextPiece(self._paragraph(bubble.key, words), ours=True, key=bubble.key))
                case BubbleKind.ACTIVITY | BubbleKind.APPROVAL if self._acts.get(call_key(bubble)) != bubble.state:
                    self._acts[call_key(bubble)] = bubble.state
                    # To a program it is one item from the beginning to the end
                    act = replace(bubble, key=call_key(bubble))
                    pieces.append(TextPiece("", key=act.key, act=act))
                case _:
                    pass
        return pieces

    def _grown(self, bubble: Bubble, said: GrowingText, view: View) -> list[TextPiece]:
        """The same of a view with one text alone, of which something was said."""
        text = said.new(bubble.text, final=bubble.final or not view.open)
        return [TextPiece(text, key=bubble.key, refusal=self._refusals and bubble.refusal)] if text else []

    def _goes_on(self, latest: Bubble | None, view: View) -> bool:
        """The latest text was begun and may grow: nothing is put into its middle."""
        return view.open and latest is not None and not latest.final and self._said.get(latest.key, GrowingText()).begun

    def _paragraph(self, key: str, text: str) -> str:
        before = "\n\n" if self._told and not self._apart else ""
        self._told += (key,)
        return f"{before}{text}"


def _is_data(bubble: Bubble) -> bool:
    """It is, or will most likely be, the data that was asked for."""
    match bubble.kind:
        case BubbleKind.ANSWER:
            return True
        case BubbleKind.PARTIAL:
            return bubble.final or bubble.text.lstrip()[:1] in ("{", "[")
        case _:
            return False


WAITS_FOR_APPROVAL = clause("waiting for approval of {tool}")
WAITS_FOR_ANSWER = clause("waiting for an answer to {tool}")
RUNS = clause("running {tool}, {seconds} s")
PLACE = clause("queued, place {place}")
PLACE_OF_ALL = clause("queued, place {place} of everybody who waits")


def status_comment(view: View) -> str:
    """What a comment says about a running turn: its status, else the latest tool that runs."""
    for bubble in reversed(view.bubbles):
        if bubble.kind in (BubbleKind.STATUS, BubbleKind.MENDED):
            return bubble.text
        if bubble.kind is BubbleKind.APPROVAL:
            return WAITS_FOR_APPROVAL.format(tool=bubble.tool)
        if bubble.kind is BubbleKind.QUESTION and not bubble.final:
            return WAITS_FOR_ANSWER.format(tool=bubble.tool)
        if bubble.kind is BubbleKind.ACTIVITY and bubble.state == "running":
            return RUNS.format(tool=bubble.tool, seconds=bubble.seconds)
    return ""


def queue_comment(queued: Queued) -> str:
    """What a comment says of a message that waits."""
    if queued.line:
        return PLACE_OF_ALL.format(place=queued.line)
    return PLACE.format(place=queued.position)


def left_words(*, keyed: bool) -> str:
    """What a client is told whose turn goes on in the next process."""
    again = " Ask again with the same Idempotency-Key to get all of it." if keyed else ""
    return f"({LEFT_WORDS}.{again})"
