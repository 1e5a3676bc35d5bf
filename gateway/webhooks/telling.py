"""What happens in the gateway, put into rows of the outbox for those who store it. It stores nothing itself.

Law: whoever stores something that a receiver wants to hear of asks here first, and stores both in one commit. Where no receiver is configured
nothing is made, and nothing is asked.

Known to be weak: what the operators are told (`alert`) is stored nowhere else, so it has a commit of its own; and a turn that is ended by
`outspoken db` while the gateway stands is told to nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatAddress
from agent_core.bell import Bell
from agent_core.driver.closing import Closing, TurnIdentity
from agent_core.jsonvalue import Json
from agent_core.machine.turn import Turn
from agent_core.ports import Clock
from agent_core.signals import Committed, Signal
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.troubles.rows import IncidentRow, IncidentState
from agent_core.store.webhooks.rows import HookRow
from agent_core.turn.events import ApprovalAnswered, ApprovalAsked, Event
from agent_core.turn.state import Activity
from gateway.limits.alerts import Message
from gateway.webhooks.events import HookEvent, HookFact, HookRule, messages, moment

KeyOf = Callable[[str], Awaitable[str]]
"""The key of the session with this id; empty if it cannot be told."""


class HookTelling:
    """Makes rows. Implements `agent_core.driver.closing.Herald`."""

    def __init__(self, rules: Sequence[HookRule], key_of: KeyOf, clock: Clock, bell: Bell) -> None:
        """The bell rings when something that was made here may be stored."""
        self._rules = tuple(rules)
        self._key_of = key_of
        self._clock = clock
        self._expected = 0
        self.bell = bell
        self.off: set[str] = set()
        """Receivers that nothing is told."""

    def on(self, signal: Signal) -> None:
        """Something was stored: perhaps what was made here."""
        if self._expected and isinstance(signal, Committed) and signal.stored:
            self._expected -= 1
            self.bell.ring()

    def _rows(self, what: HookFact) -> tuple[HookRow, ...]:
        rows = messages([rule for rule in self._rules if rule.receiver not in self.off], what)
        if rows:  # the commit that is under way may not have them, the next one has
            self._expected = 2
        return rows

    def wanted(self, event: HookEvent) -> bool:
        """Whether any receiver may want to hear of it."""
        return any(not rule.events or event in rule.events for rule in self._rules)

    # ------------------------------------------------------------------ turns

    async def ended(self, end: Closing) -> Sequence[HookRow]:
        """See `agent_core.driver.closing.Herald`."""
        if not self.wanted(HookEvent.TURN_ENDED):
            return ()
        whose = end.whose
        return self._rows(ending(end, whose.key or await self._key_of(whose.session)))

    def noted(self, whose: TurnIdentity, turn: Turn, events: Sequence[Event]) -> Sequence[HookRow]:
        """See `agent_core.driver.closing.Herald`."""
        if not self._rules:
            return ()
        found: list[HookRow] = []
        for event in events:
            if isinstance(event, ApprovalAsked | ApprovalAnswered):
                found += self._rows(approval(whose, turn, event))
        return found

    # ------------------------------------------------------------------ the rest

    def incident(self, row: IncidentRow) -> Sequence[HookRow]:
        """See `agent_core.driver.closing.Herald`."""
        over = row.state is IncidentState.CLOSED
        facts: dict[str, Json] = {
            "incident": row.incident, "fingerprint": row.fingerprint, "exit": row.code, "endpoint": row.endpoint,
            "model": row.model, "tool": row.tool, "opened_at": moment(row.opened_at), "last_at": moment(row.last_at),
            "conversations": row.conversations, "turns": row.turns, "remedy": row.remedy or None,
        }  # fmt: skip
        event = HookEvent.INCIDENT_CLOSED if over else HookEvent.INCIDENT_OPENED
        at = (row.closed_at or row.last_at) if over else row.opened_at
        return self._rows(HookFact(event=event, subject=row.incident, at=at, facts=facts))

    def parts(self, session: str, rows: Sequence[DeliveryRow]) -> Sequence[HookRow]:
        """Parts of a conversation are stored like this: those that failed for good are told."""
        if not self._rules:
            return ()
        # What was only on its way is tried once more as it is at the end.
        failed = [row for row in rows if row.state is DeliveryState.FAILED and row.final]
        return [one for row in failed for one in self._rows(_undelivered(session, row))]

    def alerts(self, said: Message) -> Sequence[HookRow]:
        """What the operators are told at once."""
        found: list[HookRow] = []
        for line in said.lines:
            facts: dict[str, Json] = {"alert": line.key, "over": line.closes, "text": line.words}
            now = self._clock.now_ms()
            found += self._rows(HookFact(event=HookEvent.ALERT, subject=line.id, at=now, facts=facts))
        return found


def ending(end: Closing, key: str) -> HookFact:
    """A turn's end. Pure."""
    signal = end.signal
    facts: dict[str, Json] = {
        "exit": signal.exit,
        "clean": signal.clean,
        "began_at": moment(signal.began_at),
        "ended_at": moment(signal.ended_at),
    }
    if end.turn is not None:
        facts |= {"endpoint": signal.endpoint, "model": signal.model, "steps": signal.steps}
        if signal.input_tokens or signal.output_tokens:
            facts["usage"] = {"input_tokens": signal.input_tokens, "output_tokens": signal.output_tokens}
    return HookFact(
        event=HookEvent.TURN_ENDED, subject=signal.turn, at=end.at, facts=facts, words=_said(end),
        session=signal.session, key=key, turn=signal.turn, exit=signal.exit, clean=signal.clean,
    )  # fmt: skip


def _said(end: Closing) -> dict[str, str]:
    opened = end.turn.opened if end.turn is not None else None
    asked = [one.content for one in opened.input if isinstance(one.content, str)] if opened is not None else []
    return {"asked": "\n\n".join(asked), "answer": end.shown.text}


def approval(whose: TurnIdentity, turn: Turn, event: ApprovalAsked | ApprovalAnswered) -> HookFact:
    """A person is asked, or has answered. Pure."""
    call = next((one for one in turn.timeline if isinstance(one, Activity) and one.call == event.call), None)
    facts: dict[str, Json] = {"call": event.call, "tool": call.name if call is not None else ""}
    match event:
        case ApprovalAsked():
            kind, facts["seconds"] = HookEvent.APPROVAL_ASKED, event.seconds
        case ApprovalAnswered():
            kind, facts["verdict"], facts["by"] = HookEvent.APPROVAL_ANSWERED, event.verdict.value, event.by
    words = {"arguments": call.arguments} if call is not None else {}
    return HookFact(
        event=kind, subject=f"{whose.turn}:{event.call}:{event.at}", at=event.at, facts=facts, words=words,
        session=whose.session, key=whose.key, turn=whose.turn,
    )  # fmt: skip


def _undelivered(session: str, row: DeliveryRow) -> HookFact:
    address = ChatAddress.of(row.surface)
    key = SessionKey(address.platform, address.account, address.chat, address.thread).text()
    facts: dict[str, Json] = {"chat": row.surface, "part": row.key, "cause": row.cause}
    turn = row.origin if row.origin.startswith("t_") else ""
    return HookFact(
        event=HookEvent.DELIVERY_FAILED, subject=f"{row.key}:{row.at}", at=row.at, facts=facts, session=session,
        key=key, turn=turn,
    )  # fmt: skip
