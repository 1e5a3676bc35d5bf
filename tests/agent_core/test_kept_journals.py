"""Journals of every version that judged otherwise than the one before, as its own machine wrote them, and what it said of them: they are read so.

`kept/` holds a file for each such version, in order. The first line has its settings; each further one a journal that is not in a later file as well
(the versions that are missing there wrote nothing that a later one did not), and what the machine of then said: the exit, the conversation,
what was to be seen, tools, remedies. A version that changes what stands in a journal adds a file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from agent_core.failures.errors import UnreadableJournal
from agent_core.failures.notices import ExitClass
from agent_core.journal.export import redacted
from agent_core.journal.replay import DECIDED, replay
from agent_core.journal.rows import encode, fold, read, recorded, turn_of
from agent_core.machine.turn import Turn
from agent_core.rules.promises import ANSWERED, Ending, PromiseSign, Reading
from agent_core.store.turns.rows import JournalRow
from agent_core.tools.base import EffectClass
from agent_core.turn.effects import CallModel, RunTool
from agent_core.turn.events import Event, TakenOver, ToolStarted
from agent_core.turn.questions import CallOver
from agent_core.turn.transcript import closed_turn_messages, request_messages
from agent_core.turn.view import view
from tests.agent_core.test_folds import ROUTES, differing, rules_gone

KEPT = sorted((Path(__file__).parent / "kept").glob("*.jsonl"))
OTHERWISE = {("c0c6261", "broken-text")}
"""What is said again where a reply goes on is told by today's rule: it leaves a word that is repeated by chance."""
_NOTE = "\n\n[Note from the gateway: "


@dataclass(frozen=True, slots=True)
class Kept:
    version: str
    name: str
    rows: list[tuple[str, bytes]]
    told: dict[str, Any]

    @property
    def journal(self) -> list[JournalRow]:
        times = [json.loads(body)["at"] for _, body in self.rows]
        return [
            JournalRow(seq, kind, body, at) for seq, ((kind, body), at) in enumerate(zip(self.rows, times, strict=True))
        ]


def _kept(path: Path) -> list[Kept]:
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    head = json.loads(first)
    found: list[Kept] = []
    for line in lines:
        one = json.loads(line)
        opened = one["rows"][0][1]
        opened["settings"] = head["settings"][opened["settings"]]
        rows = [(kind, json.dumps(body).encode()) for kind, body, _ in one["rows"]]
        found.append(Kept(head["version"], one["name"], rows, one["told"]))
    return found


ALL = [one for path in KEPT for one in _kept(path)]
NEWEST = [one for one in ALL if one.version == "rules7"]
each = pytest.mark.parametrize("kept", ALL, ids=lambda one: f"{one.version}-{one.name}")


def _clean(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A conversation without the gateway's own words, which every version says in its way."""
    found: list[dict[str, Any]] = []
    for message in messages:
        text = message.get("content")
        if isinstance(text, str):
            text = text.partition(_NOTE)[0].partition("[Notice from the gateway")[0]
            text = "[advice]" if message["role"] == "user" and text.startswith("[outspoken]") else text
            text = "Not run" if message["role"] == "tool" and text.startswith("Not run") else text
            text = "" if text == "(no output)" else text
            if message["role"] == "tool" and text.startswith(("No result", "It was not carried out")):
                continue  # said as the turn ended, or only when the model was asked again
        found.append({key: value for key, value in {**message, "content": text or None}.items() if value is not None})
    return found


def what_is_told(turn: Turn) -> dict[str, Any]:
    probe = CallModel(number=1, route=ROUTES[0], offer_tools=True)
    messages = closed_turn_messages(turn) if turn.exit is not None else request_messages("", [], turn, probe)
    said_since = ("status", "notice", "approval", "decided")  # in today's words
    shown = [b for b in view(turn, turn.phase_since).bubbles if b.kind.value not in said_since]
    return {
        "exit": turn.exit.code.value if turn.exit is not None else "",
        "messages": _clean(messages),
        "bubbles": [[bubble.kind.value, bubble.text, bubble.final] for bubble in shown],
        "tools_run": list(turn.round.tools_run),
        "rungs": [[failure.value, remedy.value] for failure, remedy in turn.remedies],
        "route": turn.route_index,
        "steps": turn.steps_done,
    }


@each
def test_a_journal_of_any_version_is_read_as_that_version_judged(kept: Kept):
    if (kept.version, kept.name) in OTHERWISE:
        return
    with rules_gone():
        turn = fold(kept.rows)
    if any(isinstance(question, CallOver) for question in turn.questions):
        assert turn.exit is None  # nothing followed that would tell what was judged last: today's rules will say it
        return
    bubbles = [bubble for bubble in kept.told["bubbles"] if bubble[0] != "approval"]
    assert what_is_told(turn) == {**kept.told, "messages": _clean(kept.told["messages"]), "bubbles": bubbles}


@each
def test_a_notice_names_the_tools_that_ran(kept: Kept):
    turn = fold(kept.rows)
    notice = turn.exit.notice() if turn.exit is not None else None
    if notice is None or turn.exit is None or turn.exit.kind is ExitClass.CLEAN:
        return
    for name in {*turn.exit.tools_done, *turn.exit.tools_unsure}:
        assert name in notice.text


@each
def test_an_open_turn_of_any_version_goes_on_and_does_nothing_twice(kept: Kept):
    events = read(kept.rows)
    turn = turn_of(events)
    if turn.exit is not None:
        return
    begun = {event.call for event in events if isinstance(event, ToolStarted)}
    facts = {tool.name for tool in turn.settings.tools if tool.effect is EffectClass.EFFECT}
    at = events[-1].at + 1_000
    taken: Event = TakenOver(at=at, epoch=9)
    effects = turn.feed(taken)
    again = [
        effect for effect in effects if isinstance(effect, RunTool) and effect.call in begun and effect.name in facts
    ]
    assert not again or not turn.settings.goes_on
    assert not turn.questions
    rows = [(row.kind, row.body) for row in map(encode, recorded(taken, effects))]
    if turn.exit is None:
        with rules_gone():
            folded = fold([*kept.rows, *rows])
            while folded.questions:  # of an older journal the last silence is left to whoever goes on
                folded.silence()
            assert differing(turn, folded).keys() <= {"view"}  # what is to run is running here


@pytest.mark.parametrize("kind", [kind.kind() for kind in DECIDED])
def test_a_judgement_that_is_lost_is_noticed(kind: str):
    held = [kept for kept in NEWEST if any(one == kind for one, _ in kept.rows)]
    found = 0
    for kept in held:
        try:
            turn = fold([row for row in kept.rows if row[0] != kind])
        except UnreadableJournal:
            found += 1
            continue
        found += bool(differing(turn, fold(kept.rows)))
    assert found == len(held) > 0


def _says(value: object) -> mock.Mock:
    return mock.Mock(return_value=value)


def _as_it_is(text: str) -> str:
    return text


MUTANTS: dict[str, tuple[str, object]] = {
    "no promise is found": ("agent_core.judging.judge.read_ending", _says(ANSWERED)),
    "every text is a promise": (
        "agent_core.judging.judge.read_ending",
        _says(Ending(Reading.PROMISE, PromiseSign.ACT, "x")),
    ),
    "no loop is found": ("agent_core.rules.loops.Loops.observe", _says(None)),
    "no remedy is left": ("agent_core.judging.judge.next_remedy", _says(None)),
    "nothing is prevented": ("agent_core.judging.judge.prevention", _says(mock.Mock(route=0, advice=(), withheld=()))),
    "nothing was said again": (
        "agent_core.judging.judge.OverlapRemover",
        _says(mock.Mock(feed=_as_it_is, finish=_says(""))),
    ),
    "interim text is never the answer": ("agent_core.judging.judge.housekeeping_answer", _says(None)),
    "nobody has to see all of it": ("agent_core.judging.judge.unasked", _says("")),
    "no credential is set aside": ("agent_core.judging.judge.SET_ASIDE_SECONDS", dict[str, float]()),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_is_dropped_changes_no_fold_and_is_found_by_replay(mutant: str):
    before = [replay(kept.journal).differences for kept in NEWEST]
    where, instead = MUTANTS[mutant]
    with mock.patch(where, instead):
        assert [what_is_told(fold(kept.rows)) for kept in NEWEST[::5]] == [
            {**kept.told, "messages": _clean(kept.told["messages"])} for kept in NEWEST[::5]
        ]
        after = [replay(kept.journal).differences for kept in NEWEST]
    assert after != before


@pytest.mark.parametrize("kept", [one for one in ALL if one.version == "rules10"], ids=lambda one: one.name)
def test_a_journal_without_anybodys_words_is_decided_alike(kept: Kept) -> None:
    made, parts_at = redacted(kept.journal, b"k" * 16)
    assert parts_at == -1
    assert replay(made, redacted=True).differences == replay(kept.journal).differences
