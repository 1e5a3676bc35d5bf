"""What the console says of a part that waits: why, and what exactly an act would do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import assert_never

import orjson

from adapters.contract.chat import Ability, AdapterSight, Content, ContentKind
from adapters.delivery.reconcile import Hand, Part
from agent_core.explain.why import UP, unquoted
from agent_core.failures.notices import RESTORED
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.text.durations import duration

DUE_MS = 1_500
"""What has been due for so long waits for something else than its turn."""


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """What a part that waits depends on."""

    now: int
    configured: bool
    """Its account is one of this gateway's."""
    adapter: AdapterSight | None = None
    gate_ms: int = 0
    """For how long the platform wants nothing."""
    ahead: int = 0
    """Parts of the same chat that come first."""


def why_waiting(part: Part, around: WaitsFor) -> str:
    """Why a part is not as it should be, in a sentence or two. What a platform quoted is left out."""
    row = part.row
    last = unquoted(row.trouble or row.cause, show_text=False).rstrip(".")
    failed = f" {row.failures} calls for it have failed; the last: {last}." if row.failures > 1 and last else ""
    failed = f" The last call failed: {last}." if row.failures == 1 and last else failed
    if row.state is DeliveryState.FAILED and row.cause == RESTORED:
        return f"Set aside: {RESTORED}. Nothing is tried again by itself."
    if row.state is DeliveryState.FAILED:
        return f"Refused for good: {last or 'no reason is stored'}. Nothing is tried again by itself."
    if not around.configured:
        return f"Its account is not configured in this gateway, so nothing is sent.{failed}"
    if around.adapter is not None and around.adapter.state != UP:
        words = f": {around.adapter.words.rstrip('.')}." if around.adapter.words else "."
        return f"The adapter {around.adapter.name} is {around.adapter.state}{words}{failed}"
    if row.state is DeliveryState.SENDING:
        return f"It is being sent since {_seconds(around.now - (row.sending_at or row.at))}.{failed}"
    if row.retry_at is not None and row.retry_at > around.now:
        what = "It is not known whether it came through; that is settled" if _open(row) else "It is tried again"
        return f"{what} in {_seconds(row.retry_at - around.now)}.{failed}"
    if around.gate_ms > DUE_MS:
        return f"The platform asked for a pause; it goes on in {_seconds(around.gate_ms)}.{failed}"
    if around.ahead:
        what = "an earlier part" if around.ahead == 1 else f"{around.ahead} earlier parts"
        return f"It waits for {what} of the same chat.{failed}"
    return f"It is about to be sent.{failed}"


def _open(row: DeliveryRow) -> bool:
    return row.state is DeliveryState.UNKNOWN


def _at(row: DeliveryRow) -> str:
    return row.surface.rstrip("/")


def _seconds(ms: int) -> str:
    return duration(max(0, -(-ms // 1000)))


def what_is(content: Content) -> str:
    """A content by its kind and size; no word of it."""
    if content.kind is ContentKind.FILE:
        return "a file"
    chars = len(content.body.text)
    named = {
        ContentKind.TEXT: "text",
        ContentKind.STATUS: "a status",
        ContentKind.NOTICE: "a notice",
        ContentKind.APPROVAL: "a question for approval",
        ContentKind.ASIDE: "words of the gateway",
        ContentKind.TOOLS: "tool cards",
        ContentKind.FILE: "a file",
    }[content.kind]
    return f"{named}, {chars:,} characters"


def mark_of(part: Part) -> str:
    """Stands for a part as it was seen: what is done to it by hand must have been decided on this state."""
    row = part.row
    seen = (row.state.value, row.rev, row.attempt, row.retry_at, row.platform_id, row.failures, row.gone, row.plain)
    return blake2b(repr(seen).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where a redirected part would go."""

    surface: str
    messages: int
    """How many it would be there, with the one that says where it comes from."""


def will_do(part: Part, hand: Hand, ability: Ability, gate_ms: int, elsewhere: Elsewhere | None) -> tuple[str, ...]:
    """Exactly what an act to which there is no objection would do, a sentence each."""
    row = part.row
    what = f"This part ({what_is(part.content)})"
    match hand:
        case Hand.RETRY:
            return _retries(part, what, ability, gate_ms)
        case Hand.DROP:
            head = f"{what} is taken out of the outbox for good. Nobody in the chat is told."
            return (head, *_leaves(row))
        case Hand.REDIRECT:
            assert elsewhere is not None
            count = "one message" if elsewhere.messages == 1 else f"{elsewhere.messages} messages"
            dressed = " without its buttons" if part.content.buttons else ""
            return (
                f"{what} is sent to {elsewhere.surface}{dressed}, as {count}; the first says where it comes from.",
                "Whoever reads that chat can read it then.",
                f"It is taken out of the outbox for {_at(row)} in the same moment.",
                *_leaves(row),
            )
        case _:
            assert_never(hand)


def _retries(part: Part, what: str, ability: Ability, gate_ms: int) -> tuple[str, ...]:
    row = part.row
    if row.platform_id is not None:
        lines = [f"{what} is put into message {row.platform_id} at {_at(row)} as soon as that is possible."]
    else:
        lines = [f"{what} is sent to {_at(row)} as soon as that is possible."]
    if row.state is DeliveryState.FAILED:
        lines.append(
            "It had been refused; if the reason is still there, it is refused again. "
            "If other things have been shown in the chat since, it comes behind them."
        )
    if row.platform_id is None and (_open(row) or row.labelled):
        lines.append(
            "It may have come through already, and the platform cannot tell: it is sent with a word that says so."
            if ability is Ability.NONE
            else "It may have come through already: that is found out first, so it is not there twice."
        )
    if gate_ms > 0:
        lines.append(f"The pause that the platform asked for is kept: {_seconds(gate_ms)} more.")
    return tuple(lines)


def _leaves(row: DeliveryRow) -> tuple[str, ...]:
    if row.platform_id is not None:
        return (f"Message {row.platform_id} stays in {_at(row)} as it stands there now.",)
    if _open(row) or row.labelled:
        return (f"It may have come through to {_at(row)} already; then it stays there.",)
    return ()


def name_of(row: DeliveryRow) -> str:
    """A part's name, for people and for the audit."""
    return f"{row.surface}/{row.origin}/{row.bubble}/{row.part}"


def audit_words(part: Part, hand: Hand, elsewhere: str) -> str:
    """What was done, in a sentence."""
    what = f"{part.row.bubble}, part {part.row.part + 1}, of {part.row.origin} for {_at(part.row)}"
    match hand:
        case Hand.RETRY:
            return f"Tried again at once: {what}."
        case Hand.DROP:
            return f"Dropped: {what}."
        case Hand.REDIRECT:
            return f"Sent to {elsewhere} instead: {what}."
        case _:
            assert_never(hand)


def state_json(row: DeliveryRow, elsewhere: Sequence[DeliveryRow] = ()) -> str:
    """A part's state for the audit: nothing of what it says."""
    shown = ("surface", "state", "gone", "attempt", "retry_at", "platform_id", "failures")
    state: dict[str, object] = {name: getattr(row, name) for name in shown}
    if elsewhere:
        state["sent_instead"] = [name_of(one) for one in elsewhere]
    return orjson.dumps(state).decode()


def run_at(node: int | None, address: str) -> str:
    """Where to act on what another gateway runs."""
    if node is None:
        return "No gateway runs this chat just now. Look again in some seconds."
    console = f", at {address}/console" if address else ""
    return f"Gateway {node} runs this chat, and alone knows what is under way there. Act in its console{console}."
