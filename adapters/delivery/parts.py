"""From a turn's view to the parts that a chat should show. Pure.

Text beside tool calls, answers, notices and requests for approval are parts of their own; tools and waiting share one status
part, which exists only while the turn is open and is the last of all. Text on its way is a draft where the platform has drafts:
then only what can still change is a draft, and the parts before it are messages already. Where a platform has cards, tools that
follow each other have a part of their own, which stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from adapters.contract.chat import (
    ACTION_LABELS,
    Button,
    ButtonStyle,
    Content,
    ContentKind,
    Piece,
    Task,
    TaskState,
    Traits,
)
from adapters.text.codefile import CodeFile
from adapters.text.styled import Span, Style, Styled, in_order
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.text.ours import THEIRS, imitates
from agent_core.text.tongue import sentence, speak, speaking
from agent_core.turn.view import Bubble, BubbleKind, View, spelled_view

SHOW_TOOL_AFTER_SECONDS = 3
"""A tool that is quicker is not worth a status."""
STATUS_TOOLS = 4
"""How many tools a status names at most."""
STATUS_BUBBLE = "status"

Parts = Callable[[str, bool], tuple[Piece, ...]]
"""(Markdown, whether it still grows) to pieces of the platform's size."""


@dataclass(frozen=True, slots=True)
class WantedPart:
    """A part as a chat should show it now."""

    bubble: str
    part: int
    content: Content
    final: bool
    """Its content will not change any more."""
    fleeting: bool = False
    """It is always the last, and goes when something follows or the turn ends."""


@dataclass(frozen=True, slots=True)
class DraftPart:
    """Text on its way, for platforms that have drafts."""

    bubble: str
    number: int
    body: Styled


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that a chat should show of a turn."""

    wanted: tuple[WantedPart, ...]
    draft: DraftPart | None = None
    untouched: tuple[str, ...] = ()
    """Bubbles whose text grows and was not looked at this time: they stay as they are."""


def picture(view: View, turn: str, parts: Parts, *, traits: Traits, reply_to: str, growing: bool = True) -> Picture:
    """What a chat should show of `view`. `reply_to` is the person's message, if the first part should answer to it.

    Without `growing`, text on its way is left as it is: formatting it costs, and a chat takes a new state only so often.
    """
    wanted: list[WantedPart] = []
    untouched: list[str] = []
    draft: DraftPart | None = None
    view = spelled_view(view, traits.commands)
    for place, bubble in enumerate(view.bubbles):
        match bubble.kind:
            case BubbleKind.INTERIM | BubbleKind.PARTIAL | BubbleKind.ANSWER:
                settled = bubble.final or not view.open
                if not settled and not growing:
                    untouched.append(bubble.key)
                    continue
                texts = _texts(bubble, parts, settled=settled)
                last = texts[-1] if texts else None
                if traits.drafts and not settled and last is not None:
                    draft = DraftPart(bubble.key, draft_number(turn, bubble.key, len(texts)), last.content.body)
                    texts = texts[:-1]
                judged = traits.feedback and bubble.kind is BubbleKind.ANSWER and not view.open
                wanted += _judged(texts, turn) if judged else texts
            case BubbleKind.NOTICE | BubbleKind.NOTE:
                with speaking(view.language):
                    wanted += _notice(bubble, turn, parts)
            case BubbleKind.APPROVAL:
                with speaking(view.language):
                    wanted += _approval(bubble, turn)
            case BubbleKind.QUESTION:
                wanted.append(_question(bubble, turn))
            case BubbleKind.DECIDED:
                content = Content(ContentKind.APPROVAL, Styled(bubble.text), silent=True)
                wanted.append(WantedPart(bubble.key, 0, content, final=True))
            case BubbleKind.FILE:
                wanted.append(_file(bubble))
            case BubbleKind.ACTIVITY | BubbleKind.STATUS | BubbleKind.MENDED:
                pass
            case _:
                assert_never(bubble.kind)
        if traits.cards and (cards := cards_at(view, place)) is not None:
            wanted.append(cards)
    # By the view alone, not by what was formatted this time: otherwise it would come and go while a silence lasts.
    with speaking(view.language):
        status = status_words(view.bubbles, tools=not traits.cards) if view.open else ""
    if status:
        content = Content(ContentKind.STATUS, Styled(status, ()), silent=True)
        wanted.append(WantedPart(STATUS_BUBBLE, 0, content, final=False, fleeting=True))
    if reply_to and traits.replies:
        wanted = [replace(one, content=replace(one.content, reply_to=reply_to)) for one in wanted]
    elif reply_to and wanted and not wanted[0].fleeting and not (untouched and untouched[0] == view.bubbles[0].key):
        wanted[0] = replace(wanted[0], content=replace(wanted[0].content, reply_to=reply_to))
    if view.language:
        wanted = [replace(one, content=replace(one.content, language=view.language)) for one in wanted]
    return Picture(tuple(wanted), draft, tuple(untouched))


def cards_at(view: View, place: int) -> WantedPart | None:
    """The cards of the tools that follow each other from the bubble number `place` on; None if none begin there."""
    if view.bubbles[place].kind not in _TOOLS:
        return None
    before = next((b for b in reversed(view.bubbles[:place]) if b.kind not in _BESIDE), None)
    if before is not None and before.kind in _TOOLS:
        return None  # they are shown with those before
    rest = view.bubbles[place:]
    end = next((i for i, b in enumerate(rest) if b.kind in _WORDS), len(rest))
    tools = [b for b in rest[:end] if b.kind is BubbleKind.ACTIVITY]
    if not tools:
        return None
    tasks = tuple(Task(b.key, _short(b.text), _TASK_STATES.get(b.state, TaskState.FAILED)) for b in tools)
    lines = [f"{_MARKS.get(b.state, '⚙️')} {_short(b.text)}" for b in tools]
    over = end < len(rest) or not view.open
    content = Content(ContentKind.TOOLS, Styled("\n".join(lines)), silent=True, tasks=tasks)
    return WantedPart(f"{view.bubbles[place].key}.tools", 0, content, final=over and all(b.final for b in tools))


def _judged(texts: list[WantedPart], turn: str) -> list[WantedPart]:
    """The last piece of an answer is where people say what they think of it."""
    last = max((i for i, one in enumerate(texts) if one.content.kind is ContentKind.TEXT), default=-1)
    return [
        replace(one, content=replace(one.content, feedback=turn)) if i == last else one for i, one in enumerate(texts)
    ]


def draft_number(turn: str, bubble: str, part: int) -> int:
    """The number of a draft: never 0, the same for the same text, another for another one."""
    digest = hashlib.blake2b(f"{turn}/{bubble}/{part}".encode(), digest_size=4).digest()
    return (int.from_bytes(digest) & 0x7FFF_FFFF) or 1


def call_mark(call: str) -> str:
    """A short mark of a call's id, for a button."""
    return hashlib.blake2b(call.encode(), digest_size=6).hexdigest()


def _texts(bubble: Bubble, parts: Parts, *, settled: bool) -> list[WantedPart]:
    found = [_theirs(content_of(piece)) for piece in parts(bubble.text, not settled)]
    last = len(found) - 1
    return [WantedPart(bubble.key, i, content, final=settled or i < last) for i, content in enumerate(found)]


def _theirs(content: Content) -> Content:
    """A message of the model's does not begin as one of ours. It does not become longer either: the emoji's selector or a blank makes room."""
    body = content.body
    if content.kind is not ContentKind.TEXT or not imitates(body.text):
        return content
    rest = 2 if body.text[1:2] in ("\ufe0f", " ") else 1
    return replace(content, body=Styled(THEIRS) + body.slice(0, 1) + body.slice(rest, len(body.text)))


def content_of(piece: Piece) -> Content:
    """A formatted piece of text as a part."""
    match piece:
        case Styled():
            return Content(ContentKind.TEXT, piece)
        case CodeFile():
            return Content(ContentKind.FILE, Styled("", ()), file_text=piece.text, file_name=piece.name)


def _notice(bubble: Bubble, turn: str, parts: Parts) -> list[WantedPart]:
    buttons = tuple(Button(speak(ACTION_LABELS[action]), f"{action.value}:{turn}") for action in bubble.actions)
    pieces = [content_of(piece) for piece in parts(f"⚠️ {bubble.text}", False)]
    last = len(pieces) - 1
    return [
        WantedPart(bubble.key, i, Content(ContentKind.NOTICE, piece.body, buttons if i == last else ()), final=True)
        for i, piece in enumerate(pieces)
    ]


APPROVE = {
    Lasting.ONCE: ("approve", "✅", sentence("Approve")),
    Lasting.CONVERSATION: ("approve_here", "✅", sentence("For this conversation")),
    Lasting.ALWAYS: ("approve_always", "✅", sentence("Always for such calls")),
}
"""What is pressed to agree, and the words on it."""
DENY = ("deny", "🚫", sentence("Deny"))


def _approval(bubble: Bubble, turn: str) -> list[WantedPart]:
    """The question; and where it had to be cut, all of it as a file."""
    mark = call_mark(bubble.call)
    ways = [
        (*APPROVE[lasts], ButtonStyle.AGREES if lasts is Lasting.ONCE else ButtonStyle.PLAIN) for lasts in bubble.offers
    ]
    ways.append((*DENY, ButtonStyle.REFUSES))
    buttons = tuple(
        Button(f"{mark_of} {speak(label)}", f"{name}:{turn}:{mark}", style) for name, mark_of, label, style in ways
    )
    text = f"🔐 {bubble.text}\n{bubble.limit}"  # the time that is left would go on changing
    asked = text.find("\n") + 1
    spans = _verbatim(text, asked, bubble.change) if asked else ()
    content = Content(ContentKind.APPROVAL, Styled(text, spans), buttons)
    asking = WantedPart(bubble.key, 0, content, final=True)
    if not bubble.whole:
        return [asking]
    all_of_it = Content(
        ContentKind.FILE, Styled(), silent=True, file_text=bubble.whole, file_name=f"approval-{mark}.txt"
    )  # fmt: skip
    return [replace(asking, bubble=f"{bubble.key}.all", content=all_of_it), asking]


def _verbatim(text: str, start: int, change: str) -> tuple[Span, ...]:
    """All from there on as it stands: nobody is mentioned in it, and nothing is a link. What changes is a block of its own."""
    at = text.find(f"\n{change}\n") + 1 if change else 0
    if not at:
        return (Span(start, len(text), Style.CODE),)
    end = at + len(change)
    around = ((start, at - 1), (end + 1, len(text)))
    return in_order(
        [Span(at, end, Style.PRE, "diff"), *(Span(one, other, Style.CODE) for one, other in around if one < other)]
    )


def _question(bubble: Bubble, turn: str) -> WantedPart:
    """A question of another program: its words are shown as they are, and nothing in them is a link but an address that is to be opened."""
    mark = call_mark(f"{bubble.call}/{bubble.key}")
    labels = [one if len(one) <= 40 else one[:39] + "…" for one in bubble.options]
    buttons = tuple(Button(label, f"answer:{turn}:{mark}{place}") for place, label in enumerate(labels))
    text = f"❓ {bubble.text}"
    start, end = text.find("\n") + 1, text.rfind("\n")
    spans = (Span(start, end, Style.CODE),) if start and end > start else ()
    return WantedPart(bubble.key, 0, Content(ContentKind.APPROVAL, Styled(text, spans), buttons), final=bubble.final)


def _file(bubble: Bubble) -> WantedPart:
    content = Content(ContentKind.FILE, Styled(), file=bubble.path, file_name=bubble.text)
    return WantedPart(bubble.key, 0, content, final=True)


def status_words(bubbles: Sequence[Bubble], *, tools: bool = True) -> str:
    """What an open turn is doing, once that is worth a word; without `tools` if those are shown otherwise.

    While text arrives it is seen to work; then only a silence is worth one.
    """
    lines: list[str] = []
    if any(b.kind in _TEXTS and not b.final for b in bubbles):
        return "\n".join(f"⏳ {b.text}" for b in bubbles if b.kind is BubbleKind.STATUS)
    listed = [b for b in bubbles if b.kind is BubbleKind.ACTIVITY] if tools else []
    slow = [b for b in listed if b.state == "running" and b.seconds >= SHOW_TOOL_AFTER_SECONDS]
    if slow:
        done = [b for b in listed if b.state in _MARKS][-STATUS_TOOLS:]
        lines += [f"{_MARKS[b.state]} {_short(b.text)}" for b in done]
        lasted = [(b, speak("{count} s", count=b.seconds)) for b in slow[-STATUS_TOOLS:]]
        lines += [f"⚙️ {_short(b.text)} – {seconds}" for b, seconds in lasted]
    lines += [f"✓ {b.text}" for b in bubbles if b.kind is BubbleKind.MENDED][-1:]
    lines += [f"⏳ {b.text}" for b in bubbles if b.kind is BubbleKind.STATUS]
    return "\n".join(lines)


_TEXTS = frozenset({BubbleKind.INTERIM, BubbleKind.PARTIAL, BubbleKind.ANSWER})
_TOOLS = frozenset({BubbleKind.ACTIVITY, BubbleKind.APPROVAL, BubbleKind.DECIDED, BubbleKind.QUESTION})
_BESIDE = frozenset({BubbleKind.FILE, BubbleKind.NOTE, BubbleKind.MENDED})
_WORDS = _TEXTS | {BubbleKind.NOTICE}
_TASK_STATES = {"waiting": TaskState.WAITING, "running": TaskState.RUNNING, "done": TaskState.DONE}
_MARKS = {"done": "✓", "failed": "✗", "not_run": "–", "unsure": "?"}


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"
