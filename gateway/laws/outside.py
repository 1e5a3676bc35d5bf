"""The laws of what goes out to webhooks, of how far platforms count as read, and of how long they want to be left alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson

from adapters.platforms import platform_of
from agent_core.store.deliveries.rows import GateRow
from agent_core.store.evidence import ENDED, HookEvidence
from agent_core.store.inbox.rows import CursorRow
from agent_core.store.turns.rows import TurnRow, TurnState
from agent_core.store.webhooks.rows import HookRow, HookState
from gateway.laws.law import AHEAD_MS, KEPT_MS, Breach, Law, Viewpoint
from gateway.webhooks.deciding import LONGEST_PAUSE_MS
from gateway.webhooks.events import HookEvent, message_id
from gateway.webhooks.events import moment as told_moment

LONGEST_GATE_MS = 7 * 24 * 3_600_000
"""Longer than any platform wants to be left alone."""


def of_hooks(seen: HookEvidence, moment: Viewpoint) -> Iterator[Breach]:
    """Of each receiver that is on, the first message that is due is tried soon; what is over was tried, or says why it was not."""
    receivers = {one.receiver: one for one in seen.receivers}
    for row in seen.first_due:
        known = receivers.get(row.receiver)
        if known is not None and known.off:
            continue
        due = max(row.at, row.retry_at, known.not_before if known is not None else 0)
        if moment.now - max(due, moment.up_since) > moment.late:
            words = f"Message {row.message} to webhook {row.receiver} is due since {(moment.now - due) // 60_000} min, and is not tried.{moment.idle}"
            yield Breach(Law.UNDELIVERED, words, row.message, row.session, due)
    for row in seen.to_come:
        words = f"Message {row.message} to webhook {row.receiver} waits for a time that is still to come."
        yield Breach(Law.UNDELIVERED, words, row.message, row.session, 0)
    for one in seen.receivers:
        if not one.off and one.not_before > moment.ahead + LONGEST_PAUSE_MS:
            words = f"Nothing is sent to webhook {one.receiver} before a time that is still to come."
            yield Breach(Law.UNDELIVERED, words, one.receiver, "", one.at)
    for receiver, turn in seen.twice:
        words = f"Webhook {receiver} was told of the end of turn {turn} under two ids."
        yield Breach(Law.TWICE, words, turn)
    for row in seen.unfounded:
        if row.state is HookState.SENT:
            words = f"Message {row.message} to webhook {row.receiver} is recorded as sent, and was never tried."
            yield Breach(Law.NO_RECEIPT, words, row.message, row.session, row.at)
        else:
            words = f"Message {row.message} to webhook {row.receiver} was given up, and nobody wrote down why."
            yield Breach(Law.GIVEN_UP, words, row.message, row.session, row.at)


def of_told(hooks: Sequence[HookRow], turns: Mapping[str, TurnRow], moment: Viewpoint) -> Iterator[Breach]:
    """What is told outside of a turn is what is stored of it: of its end how, when, and in which conversation."""
    for row in hooks:
        turn, told = turns.get(row.turn), f"Message {row.message} to webhook {row.receiver}"
        if row.turn and turn is None and moment.now - row.at <= KEPT_MS:
            yield Breach(Law.LOST, f"{told} tells of turn {row.turn}, which is not there.", row.message, "", row.at)
        if turn is None or row.event != ENDED:
            continue
        if turn.state is TurnState.OPEN:
            words = f"{told} tells of the end of turn {turn.turn}, which is open."
            yield Breach(Law.UNENDED, words, turn.turn, "", row.at)
        elif row.message != message_id(row.receiver, HookEvent.TURN_ENDED, turn.turn) or not _says(row, turn):
            words = f"{told} tells something else than turn {turn.turn} does."
            yield Breach(Law.OTHER_WORDS, words, row.message, "", row.at)
        elif row.at != turn.closed_at and turn.model and row.at >= moment.ours_since:
            words = f"{told} says that turn {turn.turn} ended at another time than it says itself."
            yield Breach(Law.MISPLACED, words, turn.turn, "", row.at)


def _says(row: HookRow, turn: TurnRow) -> bool:
    """Its body tells of this turn's end."""
    try:
        told = orjson.loads(row.body)
        data = told["data"]
        said = (told["type"], told["timestamp"], data["turn"], data["session"], row.session, data["exit"])
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return False
    return said == (row.event, told_moment(row.at), turn.turn, turn.session, turn.session, turn.exit)


def of_gates(gates: Sequence[GateRow], moment: Viewpoint) -> Iterator[Breach]:
    """A platform wants to be left alone for a while, and not for weeks."""
    for one in gates:
        if one.not_before > moment.ahead + LONGEST_GATE_MS:
            where = f"{one.account} {one.bucket}".strip()
            words = f"Nothing is sent to {where} before a time that is still to come."
            yield Breach(Law.UNDELIVERED, words, where, "", one.at)


def of_cursors(cursors: Sequence[CursorRow], moment: Viewpoint) -> Iterator[Breach]:
    """Nothing was read that is not said yet."""
    known = moment.ahead - AHEAD_MS
    for one in cursors:
        platform = platform_of(one.account.partition("/")[0])
        at = platform.written_at(one.last_seen) if platform is not None else None
        if at is not None and at - known > AHEAD_MS:
            words = f"{one.account} counts as read in {one.channel} up to a time that comes in {(at - known) // 86_400_000} days."
            yield Breach(Law.AHEAD, words, f"{one.account} {one.channel}", "", 0)
