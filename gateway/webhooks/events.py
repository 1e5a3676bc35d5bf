"""What is told outside, to whom, and in which words. Pure.

Theory. What happened is a `HookFact`: facts and ids, and apart from them what people and the model said. Each receiver has a rule
that says what it is told of, and whether it is told the words. What comes of both is a row of the outbox, which is stored in the commit
of what it tells.

Laws (tests/webhooks/test_rules.py). Telling the same again gives the same ids, to each receiver its own. Without `words` nothing of what was
said is in a body. A body is never larger than `MOST_BODY_BYTES`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

import orjson

from adapters.contract.base import SessionKey
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.store.webhooks.rows import HookRow
from agent_core.text.durations import at_time

MOST_WORDS = 16_000
"""Characters of one thing that was said."""
MOST_FACT = 500
"""Characters of any other text."""
MOST_BODY_BYTES = 128 * 1024
FAILED = "failed"
"""In place of an exit: every one that is not clean."""


class HookEvent(StrEnum):
    """What is told."""

    TURN_ENDED = "turn.ended"
    """A turn is over, however it ended."""
    APPROVAL_ASKED = "approval.asked"
    """A tool waits for a person's agreement."""
    APPROVAL_ANSWERED = "approval.answered"
    """Somebody agreed or refused, or nobody did in time."""
    DELIVERY_FAILED = "delivery.failed"
    """A part of a chat was refused for good."""
    INCIDENT_OPENED = "incident.opened"
    """Several people have met the same failure."""
    INCIDENT_CLOSED = "incident.closed"
    """It did not come up for long."""
    ALERT = "alert"
    """Something is wrong, still is, or is over, as the operators are told."""
    TEST = "test"
    """Somebody tries whether it works; sent only when asked for."""


@dataclass(frozen=True, slots=True)
class HookRule:
    """What a receiver is told. Empty: whatever there is."""

    receiver: str
    events: frozenset[HookEvent] = frozenset()
    exits: frozenset[str] = frozenset()
    surfaces: frozenset[str] = frozenset()
    """Such as ``telegram`` or ``api``."""
    chats: frozenset[str] = frozenset()
    """``PLATFORM/CHAT``, or with ``/THREAD``."""
    sessions: frozenset[str] = frozenset()
    """Their ids, or their keys."""
    words: bool = False


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where messages go, as it is configured."""

    rule: HookRule
    url: str
    keys: tuple[bytes, ...] = field(repr=False)
    seconds: float = 15.0
    at_once: int = 4
    private: bool = False

    @property
    def name(self) -> str:
        return self.rule.receiver


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFact:
    """Something that happened."""

    event: HookEvent
    subject: str
    """Tells it from everything else of its kind."""
    at: int
    facts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    """What somebody said."""
    session: str = ""
    key: str = ""
    """The session's."""
    turn: str = ""
    exit: str = ""
    clean: bool = True

    @property
    def of_a_conversation(self) -> bool:
        """It concerns one conversation, not the gateway."""
        return bool(self.session or self.key)


def wants(rule: HookRule, what: HookFact) -> bool:
    """Whether a receiver is told of it. What concerns the gateway is in no chat: there only the kind counts."""
    if what.event is HookEvent.TEST:
        return True
    if rule.events and what.event not in rule.events:
        return False
    if what.event is HookEvent.TURN_ENDED and rule.exits:
        named = what.exit in rule.exits or (FAILED in rule.exits and not what.clean)
        if not named:
            return False
    return not what.of_a_conversation or _is_there(rule, what)


def _is_there(rule: HookRule, what: HookFact) -> bool:
    if not (rule.surfaces or rule.chats or rule.sessions):
        return True
    key = SessionKey.of(what.key) if what.key.count("/") >= 2 else SessionKey("", "", "")
    if rule.surfaces and key.platform not in rule.surfaces:
        return False
    chat = f"{key.platform}/{key.chat}"
    if rule.chats and not {chat, f"{chat}/{key.thread}"} & rule.chats:
        return False
    return not rule.sessions or bool({what.session, what.key} & rule.sessions)


def messages(rules: Sequence[HookRule], what: HookFact) -> tuple[HookRow, ...]:
    """What is to be sent of it, to whom."""
    return tuple(message(rule, what) for rule in rules if wants(rule, what))


def message(rule: HookRule, what: HookFact) -> HookRow:
    """What one receiver is sent of it."""
    return HookRow(
        message=message_id(rule.receiver, what.event, what.subject),
        receiver=rule.receiver,
        event=what.event.value,
        session=what.session,
        turn=what.turn,
        body=body(what, words=rule.words),
        at=what.at,
    )


def message_id(receiver: str, event: HookEvent, subject: str) -> str:
    """The id of what a receiver is told of a subject. The specification wants no full stop in it."""
    named = f"{receiver}\0{event.value}\0{subject}".encode("utf-8", "surrogatepass")
    return f"msg_{base64.b32encode(hashlib.blake2b(named, digest_size=20).digest()).decode().lower()}"


def body(what: HookFact, *, words: bool) -> bytes:
    """As it is sent: ``type``, ``timestamp`` and ``data``, as the specification proposes."""
    data: dict[str, Json] = {}
    if what.session:
        data["session"] = what.session
    if what.key:
        data["session_key"] = what.key[:MOST_FACT]
        data["surface"] = what.key.partition("/")[0]
    if what.turn:
        data["turn"] = what.turn
    data |= {name: _bounded(value) for name, value in what.facts.items()}
    if words:
        said: dict[str, Json] = {name: text[:MOST_WORDS] for name, text in what.words.items()}
        cut: list[Json] = [name for name, text in what.words.items() if len(text) > MOST_WORDS]
        data["words"] = said
        if cut:
            data["cut"] = cut
    made: dict[str, Json] = {"type": what.event.value, "timestamp": moment(what.at), "data": data}
    found = _dumped(made)
    if len(found) > MOST_BODY_BYTES:
        data.pop("words", None)
        data["cut"] = [*what.words]
        found = _dumped(made)
    return found


def _dumped(made: dict[str, Json]) -> bytes:
    try:
        return orjson.dumps(made)
    except TypeError:  # half of a surrogate pair, which no UTF-8 can hold
        return orjson.dumps(_sound(made))


def _sound(value: Json) -> Json:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {str(_sound(name)): _sound(one) for name, one in value.items()}
        case list():
            return [_sound(one) for one in value]
        case _:
            return value


def _bounded(value: Json) -> Json:
    return value[:MOST_FACT] if isinstance(value, str) else value


def moment(at: int) -> str:
    """A time as it is told: ISO 8601, in UTC."""
    return at_time(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
