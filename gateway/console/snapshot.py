"""What the console shows, from rows and sights to JSON. Pure.

Laws (tests/gateway/test_console.py): no word of a person or a model is in it; the same rows give the same bytes; every list is
bounded, and what is left out is counted. Times are milliseconds, and ages are the page's to reckon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import orjson

from adapters.contract.chat import AdapterSight
from adapters.delivery.reconcile import Hand, Part, objection
from agent_core.explain.why import asker_words
from agent_core.failures.exits import EXITS, ExitCode
from agent_core.jsonvalue import Json
from agent_core.learning.incidents import exit_title, incident_words
from agent_core.limits.budgets import Amount, BudgetRules, Level, Pot
from agent_core.limits.spend import Budget, Measure, amount_words
from agent_core.machine.turn import Turn
from agent_core.records import dataclass
from agent_core.store.audit import AuditRow
from agent_core.store.overview import LONG_MS, ExitCount, PotLevel, SpentBy, TurnSummary, WaitingMessages
from agent_core.store.troubles.rows import IncidentRow
from agent_core.turn.view import BubbleKind, View
from gateway.console.naming import place_name
from gateway.console.words import WaitsFor, name_of, what_is, why_waiting

LEFT_OUT = "more"
RUNNING_CLASS = "running"
_TEXTS = (BubbleKind.INTERIM, BubbleKind.PARTIAL, BubbleKind.ANSWER)


Called = Callable[[str, str], str]
"""How a conversation is called, by its id and its key."""


def place_name_of(session: str, key: str) -> str:
    """By its place alone."""
    del session
    return place_name(key)


def place_of(key: str) -> str:
    """A session's key, as far as it names a place."""
    return key.rstrip("/")


def class_of(exit_: str) -> str:
    """The class of an exit, for its colour; an exit of another version has none."""
    try:
        return EXITS[ExitCode(exit_)].kind.value
    except ValueError:
        return "" if exit_ else RUNNING_CLASS


# ---------------------------------------------------------------------- turns


def doing_words(view: View, offered: frozenset[str]) -> str:
    """What an open turn does at this moment. A tool that was never offered has no name: the model made it up."""
    chars = sum(len(bubble.text) for bubble in view.bubbles if bubble.kind in _TEXTS)
    tools = [b for b in view.bubbles if b.kind is BubbleKind.ACTIVITY and b.state == "running"]
    asks = [b for b in view.bubbles if b.kind is BubbleKind.APPROVAL]
    status = next((b.text for b in view.bubbles if b.kind is BubbleKind.STATUS), "")
    if any(b.kind is BubbleKind.QUESTION and not b.final for b in view.bubbles):
        return "waits for a person to answer a tool's question"
    if asks:
        return "waits for a person to approve a tool"
    if tools:
        names = ", ".join(dict.fromkeys(b.tool if b.tool in offered else "an unknown tool" for b in tools))
        return f"runs {names}"
    if status:
        return status
    return f"writes; {chars:,} characters so far" if chars else "asks the model"


def doing_of(turn: Turn, shown: View) -> str:
    """What a turn does that looks like this."""
    if turn.opened is None:
        return "begins"
    settings = turn.settings
    offered = frozenset((*(tool.name for tool in settings.tools), *settings.client_tools))
    asker = asker_words(turn.opened.key, turn.opened.agent)
    words = doing_words(shown, offered)
    return f"{words} ({asker})" if asker else words


def elsewhere_words(words: str, node: int) -> str:
    """The same of a turn that another gateway runs; without words, nothing more is known."""
    where = f"at gateway {node}" if node else "at another gateway"
    return f"{words}, {where}" if words else f"runs {where}"


def turns_json(
    opened: Sequence[TurnSummary],
    latest: Sequence[TurnSummary],
    doing: Mapping[str, str],
    limit: int,
    called: Called = place_name_of,
) -> dict[str, Json]:
    """Turns that run, and the latest that have ended."""
    known = {turn.turn for turn in opened}
    ended = [turn for turn in latest if turn.turn not in known and turn.exit]
    return {
        "running": [
            turn_json(turn, called, doing.get(turn.turn) or elsewhere_words("", turn.node)) for turn in opened[:limit]
        ],
        "ended": [turn_json(turn, called) for turn in ended[:limit]],
        "more_running": max(0, len(opened) - limit),
    }


def turn_json(turn: TurnSummary, called: Called = place_name_of, doing: str = "") -> dict[str, Json]:
    return {
        "id": turn.turn,
        **_fields(turn, "session", "number", "exit", "opened_at", "closed_at", "undone"),
        "place": place_of(turn.key),
        "name": called(turn.session, turn.key),
        "class": class_of(turn.exit),
        "tokens": [turn.input_tokens, turn.output_tokens],
        "doing": doing,
    }


# ---------------------------------------------------------------------- sessions


def sessions_json(
    latest: Sequence[TurnSummary],
    opened: Sequence[TurnSummary],
    waiting: Sequence[WaitingMessages],
    limit: int,
    called: Called = place_name_of,
) -> dict[str, Json]:
    """The conversations of the latest turns and those in which something waits, what waits first, then the latest."""
    by_session: dict[str, list[TurnSummary]] = {}
    for turn in sorted((*opened, *latest), key=lambda turn: turn.turn, reverse=True):
        mine = by_session.setdefault(turn.session, [])
        if not mine or mine[-1].turn != turn.turn:
            mine.append(turn)
    waits = {one.session: one for one in waiting}
    named = list(dict.fromkeys((*waits, *by_session)))
    shown = [_session_json(one, by_session.get(one, []), waits.get(one), called) for one in named[:limit]]
    return {"list": [*shown], LEFT_OUT: max(0, len(named) - limit)}


def _session_json(
    session: str, turns: Sequence[TurnSummary], wait: WaitingMessages | None, called: Called
) -> dict[str, Json]:
    last = turns[0] if turns else None
    either = last or wait
    return {
        "id": session,
        "place": place_of(either.key) if either is not None else "",
        "name": called(session, either.key) if either is not None else "",
        "running": next((turn.turn for turn in turns if not turn.exit), ""),
        "turns": last.number if last is not None else 0,
        "exit": last.exit if last is not None else "",
        "class": class_of(last.exit) if last is not None else "",
        "last_at": (last.closed_at or last.opened_at) if last is not None else None,
        "waiting": wait.count if wait is not None else 0,
        "waiting_since": wait.since if wait is not None else None,
        "quarantined": either.quarantined if either is not None else "",
    }


# ---------------------------------------------------------------------- incidents


def incidents_json(rows: Sequence[IncidentRow]) -> list[Json]:
    """Incidents in the words that operators are told, with what to do."""
    return [
        {
            "id": row.incident,
            "state": row.state.value,
            "words": incident_words(row).partition(" ")[2],
            "what": exit_title(row.code),
            "class": class_of(row.code),
            "where": f"{row.model} at {row.endpoint}" + (f", {row.tool}" if row.tool else ""),
            **_fields(row, "conversations", "turns", "opened_at", "last_at", "closed_at"),
            "action": _action(row.code),
        }
        for row in rows
    ]


def _action(code: str) -> str:
    try:
        return EXITS[ExitCode(code)].operator
    except ValueError:
        return ""


# ---------------------------------------------------------------------- outbox


def part_json(session: str, part: Part, around: WaitsFor) -> dict[str, Json]:
    """A part that waits or was refused, why, and what can be done to it."""
    row = part.row
    return {
        "id": name_of(row),
        "name": _fields(row, "surface", "origin", "bubble", "part"),
        "session": session,
        "place": place_of(row.surface),
        "called": place_name(row.surface),
        "what": what_is(part.content),
        "state": row.state.value,
        "why": why_waiting(part, around),
        "at": row.at or None,
        "failures": row.failures,
        "can": [hand.value for hand in Hand if not objection(part, hand)],
    }


def outbox_json(waiting: Sequence[dict[str, Json]], failed: Sequence[dict[str, Json]], limit: int) -> dict[str, Json]:
    """All of them: what waits, and what was refused for good."""
    return {
        "waiting": [*waiting[:limit]],
        "failed": [*failed[:limit]],
        "more_waiting": max(0, len(waiting) - limit),
        "more_failed": max(0, len(failed) - limit),
    }


# ---------------------------------------------------------------------- servers of tools


def servers_json(stands: Sequence[Json]) -> list[dict[str, Json]]:
    """How servers of tools stand, from what `outspoken status` shows of them: without a word of what their tools say."""
    found: list[dict[str, Json]] = []
    for one in stands:
        if not isinstance(one, dict):
            continue
        tools, begun, lines = one.get("tools"), one.get("begun"), one.get("stderr")
        last = lines[-1] if isinstance(lines, list) and lines else ""
        found.append(
            {
                "id": f"mcp/{one.get('server')}",
                "state": one.get("state"),
                "about": one.get("about"),
                "words": one.get("words") or "",
                "last": last if one.get("words") else "",
                "calls": one.get("calls"),
                "restarts": max(0, begun - 1) if isinstance(begun, int) else 0,
                "tools": [tool.get("name") or tool.get("tool") for tool in tools if isinstance(tool, dict)]
                if isinstance(tools, list)
                else [],
            }
        )
    return found


# ---------------------------------------------------------------------- adapters


def adapters_json(
    sights: Sequence[AdapterSight], now: int, before: Mapping[str, tuple[int | None, int | None]]
) -> list[Json]:
    """How adapters are doing. `before` are the times of the last look: the same moment, measured again, is the same time."""
    found: list[Json] = []
    for sight in sights:
        told = before.get(sight.name, (None, None))
        found.append(
            {
                "id": sight.name,
                "state": sight.state,
                "words": sight.words,
                "inbound_at": _moment(sight.inbound_age_seconds, now, told[0]),
                "outbound_at": _moment(sight.outbound_age_seconds, now, told[1]),
            }
        )
    return found


def _moment(age_seconds: float | None, now: int, before: int | None) -> int | None:
    if age_seconds is None:
        return None
    at = now - round(age_seconds * 1000)
    return before if before is not None and abs(at - before) < 500 else at


# ---------------------------------------------------------------------- spend


_NAMES: Mapping[Budget, str] = {
    Budget.TURN: "One message",
    Budget.PERSON: "One person, today",
    Budget.CHAT: "One chat, today",
    Budget.KEY: "One API key, today",
    Budget.AGENT: "One agent, today",
    Budget.HOUR: "Everybody, this hour",
    Budget.DAY: "Everybody, today",
    Budget.MONTH: "Everybody, this month",
}
_ORDER = (Budget.HOUR, Budget.DAY, Budget.MONTH, Budget.AGENT, Budget.KEY, Budget.CHAT, Budget.PERSON, Budget.TURN)


def spend_json(
    rules: BudgetRules, pots: Sequence[PotLevel], today: Sequence[ExitCount], now: int, limit: int
) -> dict[str, Json]:
    """How full the budgets are whose window runs now, what is left, and what today's turns used."""
    levels = {pot.scope: pot for pot in pots}
    rows: list[tuple[int, str, Json]] = []
    for pot in _pots(rules, levels, now):
        owner = pot.scope.partition(":")[2]
        known = levels.get(pot.scope)
        row = _pot_json(pot, known.level if known is not None else Level(), rules, owner)
        rows.append((_ORDER.index(pot.budget), owner, row))
    in_order = [row for _, _, row in sorted(rows, key=lambda one: one[:2])]
    return {
        "active": rules.active,
        "zone": rules.zone_name,
        "list": in_order[:limit],
        LEFT_OUT: max(0, len(in_order) - limit),
        "turns": sum(one.count for one in today),
        "tokens": [sum(one.input_tokens for one in today), sum(one.output_tokens for one in today)],
        "prices": bool(rules.prices),
    }


def _pots(rules: BudgetRules, levels: Mapping[str, PotLevel], now: int) -> list[Pot]:
    """The budgets of everybody with a limit, and those of persons and chats that something was put into."""
    from agent_core.limits.budgets import Payer

    found = [
        pot
        for pot in rules.pots(Payer("", ""), "", now)
        if pot.budget is not Budget.DAY or pot.limit != Amount() or levels
    ]
    for scope in levels:
        kind, _, owner = scope.partition(":")
        payer = {
            Budget.PERSON.value: Payer(owner, ""),
            Budget.CHAT.value: Payer("", owner),
            Budget.KEY.value: Payer("", "", key=owner),
            Budget.AGENT.value: Payer("", "", agent=owner),
        }.get(kind)
        if payer is not None:
            found += [pot for pot in rules.pots(payer, "", now) if pot.scope == scope]
    return found


def _pot_json(pot: Pot, level: Level, rules: BudgetRules, owner: str) -> dict[str, Json]:
    measures: list[Json] = []
    for measure in (Measure.TOKENS, Measure.MONEY) if rules.prices else (Measure.TOKENS,):
        spent, held, limit = level.spent.of(measure), level.held.of(measure), pot.limit.of(measure)
        words = amount_words(measure, spent, rules.currency)
        measures.append(
            {
                "measure": measure.value,
                "used": words,
                "limit": amount_words(measure, limit, rules.currency) if limit else "",
                "left": amount_words(measure, max(0, limit - spent - held), rules.currency) if limit else "",
                "held": amount_words(measure, held, rules.currency) if held else "",
                "share": min(1.0, round((spent + held) / limit, 4)) if limit else None,
            }
        )
    return {
        "id": pot.scope,
        "name": _NAMES[pot.budget],
        "owner": "" if owner == "all" else owner,
        "measures": measures,
        "calls": level.calls,
        "estimated": amount_words(Measure.TOKENS, level.estimated.tokens, "") if level.estimated.tokens else "",
        "until": pot.until or None,
    }


# ---------------------------------------------------------------------- exits, audit


@dataclass(frozen=True, slots=True)
class Day:
    """How the turns of a day ended."""

    name: str
    """Such as 2026-11-21."""
    exits: Sequence[ExitCount]


def exits_json(days: Sequence[Day], zone: str) -> dict[str, Json]:
    """Exits by day, the oldest day first; the exits of all days with their classes, the most frequent first."""
    totals: dict[str, int] = {}
    for day in days:
        for one in day.exits:
            totals[one.exit] = totals.get(one.exit, 0) + one.count
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    return {
        "zone": zone,
        "days": [
            {
                "day": day.name,
                "counts": {one.exit: one.count for one in day.exits},
                "tokens": [sum(one.input_tokens for one in day.exits), sum(one.output_tokens for one in day.exits)],
            }
            for day in days
        ],
        "exits": [{"exit": name, "class": class_of(name), "count": totals[name]} for name in ordered],
    }


@dataclass(frozen=True, slots=True)
class Trend:
    """How a day went."""

    name: str
    took: Sequence[int]
    """See `agent_core.store.overview.Overview.took`."""
    broke: Mapping[str, int]
    """How often model calls failed, by cause."""


def within(took: Sequence[int], share: float) -> float | None:
    """About how many seconds this share of turns took at most, by how many took how long; None if there were none. Pure."""
    wanted, below = sum(took) * share, 0
    for place, count in enumerate(took):
        if count and below + count >= wanted:
            least = LONG_MS[place - 1] if place else 0
            most = LONG_MS[place] if place < len(LONG_MS) else LONG_MS[-1]
            return round((least + (most - least) * (wanted - below) / count) / 1000, 1)
        below += count
    return None


def askers_of(people: str) -> list[tuple[str, str]]:
    """Who asked, as it is stored with a turn: accounts and persons."""
    return [(str(one[0]), str(one[1])) for one in orjson.loads(people or "[]")]


MOST_SPENDERS = 12
"""So many are listed by name."""


def trends_json(
    days: Sequence[Trend], spent: Sequence[SpentBy], person: Callable[[tuple[str, str]], str]
) -> dict[str, Json]:
    """How long turns took and how often calls failed, by day; what was used in these days, by person, model and key."""
    by: dict[str, dict[str, list[int]]] = {"person": {}, "model": {}, "key": {}}
    for one in spent:
        people = askers_of(one.people)
        who = ", ".join(map(person, people[:3])) + (" and others" if len(people) > 3 else "")
        for kind, name in (("person", who), ("model", one.model), ("key", one.key)):
            known = by[kind].setdefault(name or "–", [0, 0])
            known[0] += one.tokens
            known[1] += one.count
    listed: dict[str, Json] = {}
    for kind, found in by.items():
        most = sorted(found.items(), key=lambda entry: (-entry[1][0], entry[0]))[:MOST_SPENDERS]
        listed[kind] = [{"name": name, "tokens": tokens, "turns": turns} for name, (tokens, turns) in most]
    return {
        "days": [
            {
                "day": one.name,
                "half": within(one.took, 0.5),
                "most": within(one.took, 0.95),
                "broke": dict(sorted(one.broke.items())),
            }
            for one in days
        ],
        "spent": listed,
    }


def audit_json(rows: Sequence[AuditRow]) -> list[Json]:
    """What was done by hand, the latest first."""
    shown = ("at", "who", "act", "object", "words", "before", "after")
    return [{"id": row.audit, **_fields(row, *shown)} for row in rows]


def _fields(row: object, *names: str) -> dict[str, Json]:
    """What is shown as it is stored."""
    return {name: getattr(row, name) for name in names}
