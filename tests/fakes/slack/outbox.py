"""What the app is to be told: kept until it is acknowledged, told again by Slack's rule, and disordered on request. No I/O.

Slack waits three seconds for an acknowledgement. An event that got none is told three times more: at once, after a minute, and after
five (https://docs.slack.dev/apis/events-api/#retries). A press or a command is told once: the person sees that it failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import uuid4

from tests.fakes.common import JsonObject
from tests.fakes.slack.shapes import as_text, dig

ACK_SECONDS = 3.0
RETRIES_SECONDS = (0.0, 60.0, 300.0)
"""How long after a failed attempt the next one comes."""


class Kind(StrEnum):
    """The `type` of an envelope."""

    EVENTS = "events_api"
    INTERACTIVE = "interactive"
    COMMANDS = "slash_commands"


class Reason(StrEnum):
    """Why something is told again: `retry_reason`, or `x-slack-retry-reason`."""

    TIMEOUT = "timeout"
    HTTP_TIMEOUT = "http_timeout"
    HTTP_ERROR = "http_error"
    CONNECTION_FAILED = "connection_failed"


@dataclass(slots=True)
class Attempt:
    """One time that the app was told."""

    envelope_id: str
    """A new one each time; the event's own id stays the same."""
    number: int
    """0 for the first; the `retry_attempt`."""
    reason: str
    at: float
    """Monotonic seconds."""
    via: int | None
    """The number of the socket; None: by HTTP, or nowhere."""
    status: int | None = None
    """The HTTP status of the answer."""
    acked_at: float | None = None
    """Monotonic seconds of the acknowledgement, also of one that came too late."""


@dataclass(slots=True, eq=False)
class Envelope:
    """Something that the app is told, with everything that came of it."""

    kind: Kind
    name: str
    """The type of the event or of the interaction, or the command."""
    payload: JsonObject
    at: float
    """Monotonic seconds at which it happened."""
    due: float | None
    """Monotonic seconds of the next attempt; None: none is planned."""
    deadline: float | None = None
    """Until when the acknowledgement of the attempt under way counts."""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    next_reason: str = ""
    acked: bool = False
    answer: JsonObject | None = None
    """What came with the acknowledgement."""
    lost: bool = False
    """Nobody acknowledged it, and it will not be told again."""
    answered: Callable[[JsonObject | None], None] | None = None
    """What an acknowledgement does on Slack."""

    @property
    def event_id(self) -> str:
        """The id of an event; empty for anything else."""
        return as_text(self.payload.get("event_id"))

    @property
    def ack_seconds(self) -> float | None:
        """From being told (for the last time) to the acknowledgement."""
        last = self.attempts[-1] if self.attempts else None
        return last.acked_at - last.at if last and last.acked_at is not None else None

    @property
    def settled(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.acked or self.lost

    def __repr__(self) -> str:
        state = "acked" if self.acked else "lost" if self.lost else "open"
        return f"<{self.kind.value} {self.name} {state} after {len(self.attempts)}: {dig(self.payload, 'event', 'text')!r}>"


class Outbox:
    """All envelopes in the order in which they are told."""

    def __init__(self, ack_seconds: float, retries_seconds: Sequence[float]) -> None:
        self.ack_seconds = ack_seconds
        self.retries_seconds = tuple(retries_seconds)
        self.all: list[Envelope] = []
        """Every envelope that was ever made, held ones too."""
        self.strange_acks: list[str] = []
        """Acknowledgements of envelopes that were never sent."""
        self._open: list[Envelope] = []
        self._sent: dict[str, tuple[Envelope, Attempt]] = {}
        """By the id of the attempt's envelope."""
        self._held: list[Envelope] | None = None

    @property
    def open(self) -> Sequence[Envelope]:
        """What is neither acknowledged nor lost."""
        self._open = [envelope for envelope in self._open if not envelope.settled]
        return self._open

    def put(
        self,
        kind: Kind,
        name: str,
        payload: JsonObject,
        now: float,
        answered: Callable[[JsonObject | None], None] | None = None,
    ) -> Envelope:
        """Something has happened that the app is to know."""
        envelope = Envelope(kind, name, payload, now, due=now, answered=answered)
        self.all.append(envelope)
        (self._open if self._held is None else self._held).append(envelope)
        return envelope

    # --- telling ---

    def due(self, now: float) -> list[Envelope]:
        """What is to be told now, in order."""
        return [envelope for envelope in self.open if envelope.due is not None and envelope.due <= now]

    def next_change(self) -> float | None:
        """The monotonic second at which something happens by itself: an attempt, or the end of a wait."""
        times = [time for envelope in self.open for time in (envelope.due, envelope.deadline) if time is not None]
        return min(times, default=None)

    def attempt(self, envelope: Envelope, now: float, via: int | None) -> Attempt:
        """The app is told."""
        made = Attempt(str(uuid4()), len(envelope.attempts), envelope.next_reason, now, via)
        envelope.attempts.append(made)
        self._sent[made.envelope_id] = (envelope, made)
        envelope.due, envelope.deadline = None, now + self.ack_seconds
        return made

    def failed(self, envelope: Envelope, now: float, reason: Reason, *, again: bool = True) -> None:
        """The attempt under way came to nothing; `again=False` if the app wants no other."""
        envelope.deadline = None
        done = len(envelope.attempts)
        if envelope.kind is not Kind.EVENTS or done > len(self.retries_seconds) or not again:
            envelope.lost = True
            return
        envelope.due = now + self.retries_seconds[done - 1]
        envelope.next_reason = reason.value

    def expire(self, now: float) -> bool:
        """End the waits that have been too long; whether there were any."""
        late = [one for one in self.open if one.deadline is not None and one.deadline <= now]
        for envelope in late:
            self.failed(envelope, now, Reason.TIMEOUT)
        return bool(late)

    def acknowledge(self, envelope_id: str, now: float, answer: JsonObject | None) -> Envelope | None:
        """The app has it. None if that came too late, came twice, or names nothing that was sent."""
        if envelope_id not in self._sent:
            self.strange_acks.append(envelope_id)
            return None
        envelope, attempt = self._sent[envelope_id]
        in_time = attempt.acked_at is None and now - attempt.at <= self.ack_seconds and not envelope.lost
        attempt.acked_at = now if attempt.acked_at is None else attempt.acked_at
        if not in_time or envelope.acked:
            return None
        envelope.acked, envelope.due, envelope.deadline, envelope.answer = True, None, None, answer
        if envelope.answered is not None:
            envelope.answered(answer)
        return envelope

    # --- disorder ---

    def hold(self) -> None:
        """Keep what happens from now on back until `release`."""
        assert self._held is None, "events are held already"
        self._held = []

    @property
    def held(self) -> int:
        """How many envelopes are held."""
        return len(self._held or [])

    def release(self, order: Sequence[int] | None, now: float) -> list[Envelope]:
        """Tell what was held, in an order given by positions (0 happened first; None: as it happened)."""
        held, self._held = self._held or [], None
        places = range(len(held)) if order is None else order
        assert sorted(places) == list(range(len(held))), f"{len(held)} events are held, not {order}"
        new = [held[place] for place in places]
        for envelope in new:
            envelope.due = now
        self._open.extend(new)
        return new

    def again(self, envelopes: Iterable[Envelope], now: float, reason: Reason) -> None:
        """Tell these once more although they were acknowledged, or lost."""
        for envelope in envelopes:
            envelope.acked = envelope.lost = False
            envelope.due, envelope.next_reason = now, reason.value
            if not any(one is envelope for one in self._open):
                self._open.append(envelope)
