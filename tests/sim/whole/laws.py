"""What must hold when everything has come to rest: from what the service shows, and what is stored. Each broken law is a sentence."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise

from adapters.contract.chat import Ability, ContentKind
from agent_core.machine.turn import Turn
from agent_core.turn.view import BubbleKind, view
from tests.sim.bodies import whole
from tests.sim.laws import FORBIDDEN, of_a_turn
from tests.sim.whole.platform import BOT_ACCOUNT, NAME, pieces
from tests.sim.whole.scenario import Result
from tests.sim.whole.service import AGAIN_LABEL, Service, Shown

ACCOUNT = f"{NAME}/{BOT_ACCOUNT}"
EXPECTED = frozenset({"tool.crashed"})
"""What the simulated tools do on purpose."""
UNSTORABLE = "outage/"
"""In the keys of what is said while nothing can be stored."""
PASSING = (ContentKind.STATUS, ContentKind.ASIDE)
"""What is not said again if its outcome is not known."""
CALLS_A_MESSAGE = 120
"""Far more than an honest gateway makes in such trouble: more are a loop that nobody notices."""


@dataclass(frozen=True)
class Row:
    """A part, as it is stored."""

    chat: str
    origin: str
    bubble: str
    part: int
    text: str
    kind: str
    key: str
    state: str
    final: bool
    gone: bool
    id: str | None
    labelled: bool
    cause: str

    @property
    def name(self) -> str:
        return f"{self.origin}/{self.bubble}/{self.part}"


def broken(result: Result) -> list[str]:
    """The laws that `result` breaks, in words."""
    with closing(sqlite3.connect(f"file:{result.path}?mode=ro", uri=True)) as database:
        turns: dict[str, Turn] = {}
        found = list(_of_the_whole(result))
        for (turn,) in database.execute("SELECT turn FROM turns").fetchall():
            found += of_a_turn(database, turn, turns, result)
        rows = _rows(database)
        aside = _set_aside(rows, result)
        found += _of_what_was_heard(database, result.service)
        found += _of_what_is_recorded([row for row in rows if row.name not in aside], result.service)
        found += _of_what_is_shown(rows, result.service, {row.key for row in rows if row.name in aside})
        cut = {row.origin for row in rows if row.name in aside}
        found += _of_turns(database, {name: turn for name, turn in turns.items() if name not in cut}, rows)
        if not any(event["event"] == "keeper.suspect" for event in result.logged):
            # What may have ended the process waits until the rest is done, and then comes alone.
            found += _of_the_order(database, rows)
    return found


def _set_aside(rows: list[Row], result: Result) -> set[str]:
    """Parts that the keeper took up alone again and again, and whose process was killed each time just then: that cannot be told from what kills it. They
    are not tried any more, and their chats are told so."""
    told = {row.origin for row in rows if row.state == "sent" and not row.gone}
    named = {
        event["name"].removeprefix("delivery ")
        for event in result.logged
        if event["event"] == "keeper.set_aside" and event["kind"] == "delivery"
    }
    return {row.name for row in rows if row.name in named and f"{row.origin}!failed.{row.bubble}.{row.part}" in told}


def _of_the_whole(result: Result) -> Iterator[str]:
    yield from result.violations
    yield from (f"a tool with effects was run twice: {repeated}" for repeated in result.runs.twice())
    yield from (f"said twice without a word about it: {one}" for one in result.service.unmarked)
    for event in result.logged:
        mistake = event["event"] in FORBIDDEN or ("exception" in event and event["event"] not in EXPECTED)
        if mistake and not result.plan.storage:
            yield f"logged {event['event']}: {event}"
    calls, events = result.service.calls.total(), len(result.service.events)
    if calls > CALLS_A_MESSAGE * (events + 1):
        yield f"{calls} calls for {events} events"


def _rows(database: sqlite3.Connection) -> list[Row]:
    asked = database.execute(
        "SELECT surface, origin, bubble, part, want, key, state, final, gone, platform_id, labelled, cause"
        " FROM deliveries ORDER BY place, part"
    )
    found: list[Row] = []
    for surface, origin, bubble, part, want, key, state, final, gone, there, labelled, cause in asked.fetchall():
        content = json.loads(whole(database, want))
        text = content["body"].get("text", "")
        chat = surface.split("/")[2]
        found.append(
            Row(chat, origin, bubble, part, text, content["kind"], key, state, bool(final), bool(gone), there, bool(labelled), cause)
        )  # fmt: skip
    return found


def _of_what_was_heard(database: sqlite3.Connection, service: Service) -> Iterator[str]:
    """What was confirmed to the service is stored, once, and nothing of it waits."""
    stored: dict[str, list[str]] = defaultdict(list)
    for key, state in database.execute("SELECT platform_key, state FROM inbox WHERE account = ?", (ACCOUNT,)):
        stored[key].append(state)
    for event in service.events:
        states = stored.pop(f"{event.chat}:{event.message}", [])
        if not states and not event.pressed.startswith("why:"):  # which asks for a story, and begins nothing
            yield f"event {event.number} ({event.text or event.command or event.pressed!r}) was confirmed and is not stored"
        if len(states) > 1:
            yield f"event {event.number} is stored {len(states)} times"
        if "new" in states:
            yield f"event {event.number} still waits"
    (wrong,) = database.execute(
        "SELECT count(*) FROM inbox WHERE state = 'dropped' AND coalesce(reason, '') = ''"
    ).fetchone()
    if wrong:
        yield f"{wrong} messages were dropped without a reason"


def _of_what_is_recorded(rows: list[Row], service: Service) -> Iterator[str]:
    """A part that is recorded as shown is there, as it was wanted; one that is gone is not."""
    for row in rows:
        name = row.name
        shown = service.chat(row.chat).shown.get(row.id or "")
        match row.state:
            case "sent" if row.gone:
                if shown is not None and not shown.deleted:
                    yield f"{name} is recorded as taken away, and stands there: {shown.text[:80]!r}"
            case "sent":
                if shown is None or shown.deleted:
                    yield f"{name} is recorded as shown, and is not there"
                elif not shown.text.endswith(row.text):
                    yield f"{name} shows {shown.text[:80]!r}, and {row.text[:80]!r} is recorded"
                elif not row.final:
                    yield f"{name} is shown as if it went on"
            case "skipped":
                if shown is not None and not shown.deleted:
                    yield f"{name} was given up, and stands there: {shown.text[:80]!r}"
            case "failed":
                yield f"{name} was never shown: {row.cause}"
            case _:
                yield f"{name} is still {row.state}"


def _of_what_is_shown(rows: list[Row], service: Service, aside: set[str]) -> Iterator[str]:
    """Every message that stands in a chat is recorded, unless its outcome could not be known and it was said again with a word, or its part was set
    `aside` (their keys) before that was known."""
    ids = {(row.chat, row.id) for row in rows}
    labelled, keys = {row.key for row in rows if row.labelled}, {row.key for row in rows}
    for chat in service.chats.values():
        for shown in chat.shown.values():
            if shown.deleted or shown.key in aside:
                continue
            if service.ability is Ability.NONE and shown.content.kind in PASSING and (chat.id, shown.id) not in ids:
                continue  # nobody can find what was sent and whose answer was lost
            if shown.content.kind is ContentKind.STATUS:
                yield f"{shown.id} in {chat.id} still says {shown.text[:80]!r}"
            lost = service.ability is Ability.NONE and (shown.key in labelled or _said_again(shown, service, chat.id))
            superseded = service.ability is Ability.NONE and any(key.startswith(f"{shown.key}'") for key in keys)
            if (chat.id, shown.id) not in ids and not lost and not superseded and UNSTORABLE not in shown.key:
                yield f"{shown.id} in {chat.id} is no part of anything: {shown.text[:80]!r}"


def _said_again(shown: Shown, service: Service, chat: str) -> bool:
    others = service.chat(chat).shown.values()
    return any(other.key == shown.key and other is not shown and AGAIN_LABEL in other.text for other in others)


def _of_turns(database: sqlite3.Connection, turns: dict[str, Turn], rows: list[Row]) -> Iterator[str]:
    """Every turn's answer, or the notice that ends it, stands in its chat, whole."""
    shown: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.state == "sent" and not row.gone:
            shown[row.origin, row.bubble].append(row)
    undone = {turn for (turn,) in database.execute("SELECT turn FROM turns WHERE undone != 0 OR removed != ''")}
    for name, turn in turns.items():
        if name in undone:
            continue
        ending = [
            one for one in view(turn, turn.phase_since).bubbles if one.kind in (BubbleKind.ANSWER, BubbleKind.NOTICE)
        ]
        for bubble in ending:
            parts = shown.get((name, bubble.key), [])
            wanted = "".join(piece.text for piece in pieces(bubble.text, growing=False) if hasattr(piece, "text"))
            there = "".join(row.text for row in parts)
            if not parts and wanted:
                yield f"the {bubble.kind.value} of turn {name} is nowhere to be seen: {bubble.text[:80]!r}"
            elif bubble.kind is BubbleKind.ANSWER and "".join(wanted.split()) not in "".join(there.split()):
                yield f"the answer of turn {name} is not whole: {there[:120]!r} instead of {wanted[:120]!r}"
        if not any((name, bubble.key) in shown for bubble in ending):
            yield f"turn {name} ended with {turn.exit.code if turn.exit else None} and nothing of its end is to be seen"


def _of_the_order(database: sqlite3.Connection, rows: list[Row]) -> Iterator[str]:
    """What ends a turn stands behind what ended the one before it in the same conversation."""
    ends: dict[str, int] = {}
    for row in rows:
        if row.state == "sent" and not row.gone and row.id and row.kind in ("text", "notice"):
            ends[row.origin] = max(ends.get(row.origin, 0), int(row.id[1:]))
    asked = database.execute("SELECT session, turn FROM turns WHERE undone = 0 ORDER BY session, number").fetchall()
    known = [(session, turn, ends[turn]) for session, turn in asked if turn in ends]
    for (one, before, first), (other, after, second) in pairwise(known):
        if one == other and second < first:
            yield f"what ended turn {after} stands before what ended turn {before}"
