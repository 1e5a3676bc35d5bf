"""Which piece of the model's text is the answer, and what is remarked beside it. Pure functions over a turn's timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_core.failures.leftout import Suspect
from agent_core.jsonvalue import Json
from agent_core.settings import Route, TurnSettings
from agent_core.tools.base import ToolStatus
from agent_core.turn.events import CallBroke, RemedyJudged
from agent_core.turn.state import Activity, Draft, MadeFile, Mended, Remark, Segment, SegmentKind, TimelineEntry


def made_files(timeline: Sequence[TimelineEntry], files: Json) -> list[MadeFile]:
    """What a reply made, as it is shown."""
    before = sum(isinstance(entry, MadeFile) for entry in timeline)
    found: list[MadeFile] = []
    for entry in files if isinstance(files, list) else ():
        if isinstance(entry, dict):
            key = f"made{before + len(found)}"
            path, url = str(entry.get("file") or ""), str(entry.get("url") or "")
            found.append(MadeFile(key, str(entry.get("kind")), path, url))
    return found


def said_again(timeline: Sequence[TimelineEntry], segment: Segment) -> Segment | None:
    """The text that is on screen already and that `segment`, the finished answer, only says again, or adds nothing to; None if it says
    something new."""
    if segment.visible:
        return None
    text = "" if segment.adds_nothing else segment.text.strip()
    for entry in reversed(timeline):
        if (
            isinstance(entry, Segment)
            and entry is not segment
            and entry.visible
            and entry.visible.strip().startswith(text)
        ):
            return entry
    return None


def said_last(timeline: Sequence[TimelineEntry]) -> Segment | None:
    """The last whole piece of text on screen."""
    whole = (entry for entry in reversed(timeline) if isinstance(entry, Segment) and entry.final and entry.visible)
    return next(whole, None)


def tell_mended(
    timeline: list[TimelineEntry], draft: Draft, judged: RemedyJudged, seconds: float, tool: str, model: str
) -> None:
    """If a remedy helped, that stands before the text that came of it, or behind one that it went on from."""
    if not judged.helped:
        return
    mended = Mended(judged.failure, judged.remedy, seconds, tool, model)
    number = sum(isinstance(entry, Mended) for entry in timeline)
    here = next((at for at, entry in enumerate(timeline) if entry is draft.segment), len(timeline))
    timeline.insert(here + bool(draft.segment.visible), replace(mended, number=number))


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
        elif isinstance(entry, Segment) and entry.kind is SegmentKind.INTERIM and entry.visible:
            return entry if kept_house else None
    return None


def toolless(timeline: Sequence[TimelineEntry], route: Route) -> Sequence[Remark]:
    """Before the model's words stands that it had no tools, if that has not been said."""
    told = any(isinstance(entry, Remark) and entry.toolless for entry in timeline)
    return [] if told else [Remark("toolless", (), route.endpoint, route.model, toolless=True)]


def remark(
    timeline: Sequence[TimelineEntry],
    left_out: Sequence[Suspect],
    new: Sequence[Suspect],
    route: Route,
    broke: CallBroke | None,
) -> Sequence[Remark]:
    """The model takes what it is sent: before its words stands what of it was left out, if that has not been said."""
    told = {(one.key, one.kind) for entry in timeline if isinstance(entry, Remark) for one in entry.left_out}
    found = (*new, *(one for one in left_out if one.now))
    parts = tuple({(one.key, one.kind): one for one in found if (one.key, one.kind) not in told}.values())
    cause = broke.cause if new and broke is not None else None
    return [Remark(f"left{len(told)}", parts, route.endpoint, route.model, cause)] if parts else []
