"""The laws of what goes out to webhooks, and of how far platforms count as read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapters.platforms import platform_of
from agent_core.store.evidence import HookEvidence
from agent_core.store.inbox.rows import CursorRow
from agent_core.store.webhooks.rows import HookState
from gateway.laws.law import AHEAD_MS, Breach, Law, Viewpoint
from gateway.webhooks.deciding import LONGEST_PAUSE_MS


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


def of_cursors(cursors: Sequence[CursorRow], moment: Viewpoint) -> Iterator[Breach]:
    """Nothing was read that is not said yet."""
    known = moment.ahead - AHEAD_MS
    for one in cursors:
        platform = platform_of(one.account.partition("/")[0])
        at = platform.written_at(one.last_seen) if platform is not None else None
        if at is not None and at - known > AHEAD_MS:
            words = f"{one.account} counts as read in {one.channel} up to a time that comes in {(at - known) // 86_400_000} days."
            yield Breach(Law.AHEAD, words, f"{one.account} {one.channel}", "", 0)
