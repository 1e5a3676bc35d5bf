"""Which piece of the model's text is the answer. Pure functions over a turn's timeline, used by `turn` alone."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.settings import TurnSettings
from agent_core.tools.base import ToolStatus
from agent_core.turnstate import Activity, Segment, SegmentKind, TimelineEntry


def adopt_answer(timeline: Sequence[TimelineEntry], segment: Segment) -> None:
    """`segment` is the finished answer. If it only says again what is on screen already, that is the answer."""
    if not segment.visible:
        text = segment.text.strip()
        for entry in reversed(timeline):
            if isinstance(entry, Segment) and entry is not segment and entry.visible.strip().startswith(text):
                entry.kind, entry.final = SegmentKind.ANSWER, True
                return
        segment.repeats = ""
    segment.kind, segment.final = SegmentKind.ANSWER, True


def answered_after_all(timeline: Sequence[TimelineEntry]) -> None:
    """The journal says that the turn was answered: if no text has been taken for the answer, the last one is it. Only an older
    version's judgement of an ending can differ from ours; what people saw as the answer stays the answer."""
    texts = [entry for entry in timeline if isinstance(entry, Segment) and entry.visible]
    if texts and all(entry.kind is not SegmentKind.ANSWER for entry in texts):
        texts[-1].kind, texts[-1].final = SegmentKind.ANSWER, True


def housekeeping_answer(timeline: Sequence[TimelineEntry], settings: TurnSettings) -> Segment | None:
    """The interim text that turns out to be the answer, because nothing followed it: said beside the latest calls, which
    only kept house (memory, to-do list). Beside any other call, text is progress and never the answer by default."""
    kept_house = False
    for entry in reversed(timeline):
        if isinstance(entry, Activity):
            tool = settings.tool(entry.name)
            if tool is None or not tool.housekeeping or entry.status is not ToolStatus.OK:
                return None
            kept_house = True
        elif entry.kind is SegmentKind.INTERIM and entry.visible:
            return entry if kept_house else None
    return None


def left_open(text: str) -> str:
    """The last line of a text that announces what comes next by its colon; else an empty text. Where nothing came, that is a promise."""
    last = text.rstrip().rpartition("\n")[2].strip()
    return last if last.endswith((":", "：")) else ""
