"""The words that the store and its callers share: what is handed in and what is read back, frozen and typed.

The store knows no event types: a journal row is a number, a kind, UTF-8 JSON as bytes, and a time in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class InboxState(StrEnum):
    """What has become of an accepted message."""

    NEW = "new"
    """Accepted, not yet part of a turn."""
    TAKEN = "taken"
    """Part of an open turn."""
    DONE = "done"
    """Its turn is closed."""
    DROPPED = "dropped"
    """Will never be part of a turn; `reason` says why."""


class TurnState(StrEnum):
    """Open until its exit is stored."""

    OPEN = "open"
    CLOSED = "closed"


class CallState(StrEnum):
    """How far a tool call got."""

    INTENDED = "intended"
    """It may run from here on, and may have run."""
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Started, and nobody knows how it ended."""


class DeliveryState(StrEnum):
    """How far a part got on its surface."""

    WANTED = "wanted"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    """The call was made and its outcome is not known: reconcile first."""
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One event of a turn, as it is stored."""

    seq: int
    """Position in the turn's journal, from 0, without holes."""
    kind: str
    body: bytes
    """UTF-8 JSON. NUL and anything else survives: the store does not look inside."""
    at: int
    """Milliseconds since the Unix epoch."""


class ScheduleState(StrEnum):
    """Whether a schedule still has occurrences."""

    ACTIVE = "active"
    DONE = "done"
    """Its last occurrence was claimed."""
    CANCELLED = "cancelled"


class OccurrenceOutcome(StrEnum):
    """What was decided of an occurrence when it was claimed."""

    RUN = "run"
    MISSED = "missed"
    """It will never run, and that is told."""


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """Something that is to happen in a chat at certain times."""

    schedule: str
    kind: str
    session_key: str
    surface: str
    """The chat's address, as text."""
    number: int
    """By which people name it within its session; 0 if they do not."""
    rule: str
    """When it happens, as the gateway encodes it."""
    body: bytes
    """What happens, as the gateway encodes it."""
    next_at: int | None
    """The first occurrence that was not claimed yet, ms; None if there is none."""
    done_to: int = 0
    """The last occurrence that was claimed, ms: none up to it is ever claimed again."""
    state: ScheduleState = ScheduleState.ACTIVE
    rev: int = 1
    """Counts the changes: who changes it names the state that they saw."""
    at: int = 0
    """Of the last change, ms."""


@dataclass(frozen=True, slots=True)
class OccurrenceRow:
    """One occurrence that was claimed; or several in a row that were missed together."""

    schedule: str
    due_at: int
    last_at: int
    """The last of them; `due_at` if it is one."""
    count: int
    outcome: OccurrenceOutcome
    at: int
    """When it was claimed, ms."""
    inbox: int = 0
    """The message that came of it; set by the store."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """An occurrence is claimed: the schedule as it is then, and what is noted of the occurrence."""

    schedule: ScheduleRow
    occurrence: OccurrenceRow


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message as `accept` takes it."""

    account: str
    platform_key: str
    """The platform's own id of the message: with `account`, what makes a redelivery a no-op."""
    session_key: str
    lane: str
    body: bytes
    received_at: int
    cursor: tuple[str, str] | None
    """(channel, last seen): stored in the same commit, so that a cursor never runs ahead of its messages."""
    new_session_id: str
    """The id that the session gets if its key is new."""
    refused: str = ""
    """Why it will never be run; it is recorded all the same."""
    claim: Claimed | None = None
    """The occurrence that it stands for, claimed in the same commit."""
    person: str = ""
    """Who wrote it, within the account; empty if nobody can say."""
    charges: tuple[Charge, ...] = ()
    """What it counts for by the day, counted in the same commit; where there is no room for it, it is not stored."""


DAILY = "daily:"
"""How the scope of a `Charge` begins: it is no budget of model calls."""
FILE_SCOPE = f"{DAILY}file:"
"""How that of a `BroughtFile` begins; its digest and whose it is follow."""


@dataclass(frozen=True, slots=True)
class BroughtFile:
    """A file that comes with a message. It counts when it is new, and not when it is brought again."""

    scope: str
    """Which file, and whose: the same for equal ones of one person."""
    size: int

    @property
    def key(self) -> tuple[str, int]:
        return (self.scope, 0)


@dataclass(frozen=True, slots=True)
class Charge:
    """So much more in a day's count."""

    scope: str
    """Whose count of what: different ones never have the same."""
    window: int
    """When the day began, ms."""
    until: int
    amount: int
    limit: int
    """0: no limit."""
    new_session: bool = False
    """It counts only if the message begins a conversation."""
    already: int = 0
    """What is there beside the day's count."""
    files: tuple[BroughtFile, ...] = ()
    """Those of them that are new count beside `amount`."""
    counts: bool = True
    """False: it is only compared with the limit."""

    @property
    def key(self) -> tuple[str, int]:
        return (self.scope, self.window)

    @property
    def keys(self) -> list[tuple[str, int]]:
        """Of all that has to be known to decide it."""
        return [self.key, *(file.key for file in self.files)]


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a message that was offered."""

    inbox_id: int
    session: str
    arrival: int
    """Grows from message to message of a session."""
    duplicate: bool
    """True if the same (account, platform_key) was stored before; then nothing was changed."""
    state: InboxState
    turn: str | None
    epoch: int = 0
    """Under which this node owns the session already, because it is new or was its own; 0 if it must be claimed first."""


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A stored message."""

    id: int
    account: str
    platform_key: str
    session: str
    arrival: int
    lane: str
    body: bytes
    state: InboxState
    reason: str | None
    received_at: int
    turn: str | None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A stored session."""

    session: str
    key: str
    owner: int | None
    epoch: int
    policy: str | None
    runnable_at: int | None
    quarantined: str | None
    """Why nothing of it is run for now; None if it is."""
    created_at: int
    last_at: int
    """When a turn of it last began or ended, to the minute."""
    since: int
    """Turns up to this number are not put before the model any more."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A stored turn."""

    turn: str
    session: str
    number: int
    """Counts the turns of the session, from 1."""
    state: TurnState
    exit: str | None
    opened_at: int
    closed_at: int | None
    deadline: int
    undone: bool = False
    """A person took it back: it is not put before the model any more."""
    removed: str = ""
    """Why its journal is not there any more, in words; empty if it is."""


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that `take_over` found open, and under which epoch it is now ours."""

    turn: str
    session: str
    epoch: int


@dataclass(frozen=True, slots=True)
class IntendedCall:
    """A tool call that is about to run."""

    call: str
    tool: str
    effect: str
    """`pure`, `keyed` or `effect`: how safe it is to run it again."""
    key: str


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """How a tool call came out; `state` is never `intended`."""

    call: str
    state: CallState
    result_ref: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """A stored tool call."""

    turn: str
    call: str
    tool: str
    effect: str
    state: CallState
    key: str
    result_ref: str | None


KEEP_MESSAGES_MS = 7 * 24 * 3600 * 1000
"""Platforms redeliver for days; within this time a repeated message is known again."""
BY_HAND = "by hand: "
"""The cause of a part that somebody who runs the gateway has taken out of the outbox begins with this."""
INSTEAD = "instead: "
"""The cause of a part in whose place others were sent begins with this; it goes on with how, and why."""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One visible part on its surface: as it should be, and how far that got."""

    surface: str
    origin: str
    """What it belongs to: a turn's id, or ``inbox:<number>`` for the answer to a command."""
    bubble: str
    part: int
    place: int
    """Orders the parts of a surface; grows."""
    want: bytes
    """The content, as the outbox encodes it."""
    want_hash: str
    key: str
    """The idempotency key for the platform."""
    state: DeliveryState = DeliveryState.WANTED
    rev: int = 1
    """Counts the contents that were wanted."""
    final: bool = True
    """The content will not change any more."""
    gone: bool = False
    """It should not be there (any more)."""
    platform_id: str | None = None
    attempt: int = 0
    sending_at: int | None = None
    """When the last call was begun that creates it, ms."""
    retry_at: int | None = None
    """Not before then, ms."""
    labelled: bool = False
    """It is sent with the words that it may be there twice."""
    plain: bool = False
    """The platform refused its form, so it goes without any."""
    cause: str = ""
    """Why the last call failed."""
    at: int = 0
    """Of the last change, ms."""
    failures: int = 0
    """Calls for it that failed, over its life."""
    trouble: str = ""
    """Why the latest of these failed; it stays when a later call succeeds."""

    @property
    def delivered(self) -> bool:
        """It stands there as it was wanted, and will not change any more."""
        whole = self.platform_id is not None and not self.platform_id.startswith("grows:")
        return self.state is DeliveryState.SENT and self.final and not self.gone and whole


@dataclass(frozen=True, slots=True)
class Delivery:
    """A stored part, with the session that owns it."""

    session: str
    row: DeliveryRow


@dataclass(frozen=True, slots=True)
class AdapterStateRow:
    """How an adapter was doing from a time on."""

    account: str
    """As in an inbox row, such as ``telegram/123``."""
    at: int
    """ms."""
    state: str
    words: str = ""
    """Why, for a person; empty if all is well."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """A platform said that nothing may be sent before a time."""

    account: str
    bucket: str
    """A surface, or empty for the whole account."""
    not_before: int
    reason: str
    at: int = 0
    """When it said so, so that the pause is known whatever the clock says later; 0 if that was not stored. All in ms."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """What somebody who runs the gateway did by hand."""

    audit: str
    """Its id: the same is noted once."""
    at: int
    """ms."""
    who: str
    """How they came in: on this machine, or with the key."""
    act: str
    object: str
    """What it was done to."""
    words: str
    """What was done, in a sentence."""
    before: str = ""
    after: str = ""
    """JSON; no word of a person is in it."""


class PersonState(StrEnum):
    """What a person may do."""

    PENDING = "pending"
    """Has been shown a pairing code."""
    REFUSED = "refused"
    """Has been told that this is not open to all."""
    APPROVED = "approved"
    ADMIN = "admin"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class PersonRow:
    """Somebody who has talked to an account."""

    account: str
    person: str
    state: PersonState
    name: str = ""
    code: str = ""
    """Of the pairing code; empty if there is none."""
    code_until: int = 0
    at: int = 0
    by: str = ""
    """Who decided it."""


FORESEEN = "foreseen"
"""What stands in the place of a row's cause if nothing failed: a remedy was tried beforehand, and this is what became of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleRow:
    """A failure of a closed turn with the remedy that was chosen for it; or, with code ``answered``, that one is over."""

    number: int
    """Its place in the turn, from 0."""
    at: int
    conversation: str
    """Under which name it is remembered; empty: the turn's session."""
    fingerprint: str
    code: str
    cause: str
    endpoint: str
    model: str
    tool: str
    size: str
    chars: int
    rung: str
    """The remedy, under the name that its column has had from the first."""
    outcome: str
    ended: bool


class IncidentState(StrEnum):
    """Whether a failure still comes up."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRow:
    """One fingerprint that several conversations have met."""

    incident: str
    fingerprint: str
    state: IncidentState
    code: str
    endpoint: str
    model: str
    tool: str
    opened_at: int
    last_at: int
    closed_at: int | None = None
    conversations: int = 0
    turns: int = 0
    remedy: str = ""
    """The remedy that has helped most; empty if none has."""


@dataclass(frozen=True, slots=True)
class RemedyCount:
    """What became of a remedy against one fingerprint."""

    remedy: str
    outcome: str
    count: int


@dataclass(frozen=True, slots=True)
class TroubleCount:
    """How often a fingerprint came up since a time."""

    fingerprint: str
    conversations: int
    turns: int
    ended: int
    first_at: int
    last_at: int
    remedies: tuple[RemedyCount, ...] = ()
    people: int = 0
    """How many different askers its turns had; those of whom nobody knows who they are count as one."""


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A private chat of a person (or a thread of one)."""

    place: str
    """The key of the session that is its own."""
    account: str
    person: str
    continues: str | None = None
    """The place whose session goes on here instead; None: its own does."""
    at: int = 0


@dataclass(frozen=True, slots=True)
class LinkRow:
    """An account that is joined with others."""

    account: str
    person: str
    who: str
    """The same for all accounts of one person."""
    name: str = ""
    username: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class LinkCode:
    """A code that was shown in one account, to be typed in another."""

    code: str
    account: str
    person: str
    name: str
    username: str
    chat: str
    """The surface where it was asked for."""
    until: int
    """Not valid from then on, ms."""


class LinkOutcome(StrEnum):
    """What became of a code that was typed."""

    JOINED = "joined"
    UNKNOWN = "unknown"
    """There is no such code, or it was used, or its time is over."""
    OWN = "own"
    """It was asked for in the same account."""
    SAME = "same"
    """The two accounts are joined already."""
    ELSEWHERE = "elsewhere"
    """Each of the two is joined with others."""
    FULL = "full"
    """The person has as many accounts as can be joined."""


@dataclass(frozen=True, slots=True)
class Redeemed:
    """What became of a code, and which one it was; None if it is unknown."""

    outcome: LinkOutcome
    code: LinkCode | None = None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A session that holds something which a model would be shown."""

    key: str
    session: str
    at: int
    """When its last turn began or ended, ms."""
    kind: str
    body: bytes
    """Kind and body of the event that opened its first turn."""


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """What goes on in a place from now on."""

    place: str
    continues: str | None


@dataclass(frozen=True, slots=True)
class SessionChange:
    """What a command changes in a session; None leaves a thing as it is."""

    forget: bool = False
    """The conversation begins anew: earlier turns are not put before the model any more."""
    undo: str | None = None
    """This turn is not put before the model any more."""
    policy: str | None = None
    """The session's settings, as the gateway encodes them."""
    place: PlaceChange | None = None
    """What goes on in the chat where the command was given."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What turns used."""

    turns: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much `prune` removed."""

    messages: int
    nodes: int
    parts: int = 0
    failures: int = 0
    seconds: float = 0
    """Of the longest transaction."""


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A failure in a closed turn; or, without a fingerprint, a turn that ended badly and left no failure that ended it."""

    at: int
    turn: str
    session: str
    key: str
    """The session's key."""
    exit: str
    """Of the turn."""
    fingerprint: str = ""
    remedy: str = ""
    outcome: str = ""
    ended: bool = False
    cause: str = ""


@dataclass(frozen=True, slots=True)
class FailedPart:
    """A part that was refused for good."""

    at: int
    session: str
    surface: str
    origin: str
    cause: str


@dataclass(frozen=True, slots=True)
class DroppedMessage:
    """An accepted message that was not run."""

    at: int
    session: str
    account: str
    inbox: int
    reason: str
