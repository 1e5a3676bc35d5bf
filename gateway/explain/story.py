"""``outspoken explain``: what an id stands for, what is stored about it, and its story. The words are `agent_core.explain.why`'s.

Reading only. An id is first classified by its form alone (`kinds_of`, pure), then looked up in that order; each look-up is a step
in an index, and the two that are not look at a bounded number of the latest messages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, TypeVar, cast

import orjson

from adapters.platforms import platform_of as known_platform
from agent_core.explain.missing import NothingStored, gone_lines, missing_lines
from agent_core.explain.why import (
    COMMANDS,
    HELD,
    MOST_LINES,
    REFUSED,
    Asked,
    Occasion,
    Sentence,
    StoryCase,
    StoryEnd,
    ending_of,
    fitted,
    story_of,
    told,
)
from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import decode
from agent_core.limits.retention import DAY_MS
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.deliveries.rows import behind as behind_origin
from agent_core.store.errors import Damaged
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.keeping.keeping import KEEP
from agent_core.store.reads import Reads
from agent_core.store.schedules.rows import OccurrenceOutcome, OccurrenceRow
from agent_core.store.turns.rows import JournalRow, TurnRow, TurnState
from agent_core.text.counts import counted
from agent_core.text.durations import duration
from agent_core.text.tongue import known_sentence, speak, speaking
from agent_core.turn.events import Event, ReasoningArrived, Steered, TextArrived, ToolArgumentsArrived, TurnOpened
from gateway.explain.ids import (
    OF_MESSAGES,
    Candidate,
    CannotExplain,
    IdKind,
    kinds_of,
    origins_in,
    platform_of,
    time_in,
)

if TYPE_CHECKING:
    from agent_core.store.deliveries.rows import AdapterStateRow

T = TypeVar("T")
MINUTE_MS = 60_000
NEAR_MS = 10 * MINUTE_MS
"""What somebody remembers as "five past two" was then, give or take so much."""
BESIDE = 20
"""So many numbers on each side are looked for, where an id says no time."""
OCCURRED, PROMPTED = "schedule:", "scheduled:"
"""Keys of what is stored for an occurrence: that it is due, and the prompt that is put to the model."""
REFUSED_REQUEST = "refused:"
LATEST = 50_000
"""So many of the latest messages are looked through where no index leads to an id."""
RECENT_TURNS = 8
FOLLOWED = ("retry:{}:0", "redo:{}:0", "new:{}", "queue:{}", "steer:{}", "hold:{}")
"""Under which keys words that a command or a button stands for are stored as a message of their own."""
PRESSED = ("/press", "continue:")
"""How a press begins whose words are stored under its turn: pressed twice it is one wish."""


@dataclass(frozen=True, slots=True)
class ToldStory:
    """A story that is ready to be shown."""

    kind: IdKind
    id: str
    ending: str
    head: str
    lines: Sequence[Sentence]
    turn: str = ""
    session: str = ""
    exit: str = ""
    found: bool = True
    also: Sequence[str] = field(default_factory=tuple[str, ...])
    """Other things that the id could mean, or that happened near by."""

    def text(self, zone: tzinfo) -> str:
        """For a person: at most `MOST_LINES` lines."""
        head = f"{self.head} Also: {'; '.join(self.also)}." if self.also else self.head
        return "\n".join(told(head, self.lines, zone))

    def body(self) -> dict[str, object]:
        """For a program."""
        return {
            "kind": self.kind.value,
            "id": self.id,
            "found": self.found,
            "ending": self.ending or None,
            "exit": self.exit or None,
            "turn": self.turn or None,
            "session": self.session or None,
            "about": self.head,
            "lines": [{"at": line.at, "words": line.words} for line in self.lines],
            "also": list(self.also),
        }


# ---------------------------------------------------------------------- what a row says. Pure.


def asked_of(row: InboxRow, *, show_text: bool) -> Asked:
    """A stored message as it is told. What cannot be read of it is left out."""
    body = _table(_loads(row.body))
    address = _address(body)
    said = _said(body)
    command = said.split(maxsplit=1)[0].lstrip("/") if row.lane == COMMANDS and said.strip() else ""
    if command == HELD:  # a number says when, and the rest is the person's
        said = said.partition(" ")[2].partition(" ")[2]
    where = "/".join(part for part in address if part) if address else row.account.partition("/")[0]
    request = row.account == "api"
    key = row.platform_key
    if request and row.lane == REFUSED:
        key = key.removeprefix(REFUSED_REQUEST).rpartition(":")[0]
    return Asked(
        occasion=_occasion(row, said), request=request, number=row.id, key=key, where=where, lane=row.lane, state=row.state, at=row.received_at,
        reason=row.reason or "", chars=len(said), words=said if show_text else "", command=command,
    )  # fmt: skip


def _occasion(row: InboxRow, said: str) -> Occasion | None:
    """The occurrence of a schedule that a row stands for. Its words are left out."""
    if row.platform_key.startswith(PROMPTED):
        return Occasion(kind="", schedule=row.platform_key.removeprefix(PROMPTED).rpartition(":")[0])
    if row.lane != COMMANDS or not row.platform_key.startswith(OCCURRED):
        return None
    found = _table(_loads(said.partition(" ")[2].encode()))
    count, late = found.get("count"), found.get("late_ms")
    return Occasion(
        kind=str(found.get("kind") or "reminder"),
        schedule=row.platform_key.removeprefix(OCCURRED).rpartition(":")[0],
        missed=found.get("outcome") == OccurrenceOutcome.MISSED.value,
        count=count if isinstance(count, int) else 1,
        late_ms=late if isinstance(late, int) else 0,
    )


def _followed(row: InboxRow) -> list[str]:
    """The keys under which what a command led to is stored."""
    keys = [form.format(row.platform_key) for form in FOLLOWED]
    keys.append(row.platform_key.replace(OCCURRED, PROMPTED, 1))
    command, _, pressed = _said(_table(_loads(row.body))).partition(" ")
    if (command, pressed[: len(PRESSED[1])]) == PRESSED:
        keys.append(":".join(pressed.split(":")[:2]))
    return keys


def chat_of(row: InboxRow) -> tuple[str, ...]:
    """(platform, account, chat, thread) of a message; () if it came from no chat."""
    return _address(_table(_loads(row.body)))


def _loads(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _table(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _address(body: Mapping[str, object]) -> tuple[str, ...]:
    address = _table(_table(body.get("chat")).get("address"))
    return tuple(str(address.get(name, "")) for name in ("platform", "account", "chat", "thread")) if address else ()


def _said(body: Mapping[str, object]) -> str:
    """What the person said, as text."""
    messages = body.get("input")
    texts: list[str] = []
    for one in cast("list[object]", messages) if isinstance(messages, list) else []:
        content = _table(one).get("content")
        pieces = cast("list[object]", content) if isinstance(content, list) else [{"text": content}]
        texts += [text for piece in pieces if isinstance(text := _table(piece).get("text"), str)]
    return "\n\n".join(texts)


def light(row: JournalRow) -> Event:
    """A row's event; of texts only that and when they came, which is all that is told of them. Raises `UnreadableJournal`."""
    match row.kind:
        case "TextArrived":
            return TextArrived(at=row.at, text="")
        case "ReasoningArrived":
            return ReasoningArrived(at=row.at, text="")
        case "ToolArgumentsArrived":
            return ToolArgumentsArrived(at=row.at, index=0, text="")
        case _:
            return decode(row.kind, row.body)


# ---------------------------------------------------------------------- looking up


class Explainer:
    """Answers from what is stored."""

    def __init__(
        self, reads: Reads, now: Callable[[], int], *, show_text: bool = False, kept_days: int = KEEP.bodies_days
    ) -> None:
        """`kept_days`: for how many days messages are kept, 0 for ever."""
        self._reads = reads
        self._kept_days = kept_days
        self._now = now
        self._show_text = show_text
        self._damaged: dict[str, None] = {}
        """What of the story made no sense when it was read."""

    async def of(self, text: str) -> ToldStory:
        """The story of an id. Raises `CannotExplain` if it is none of ours and says nothing of itself."""
        for candidate in kinds_of(text):
            found = await self._one(candidate)
            if found is not None:
                return self._with_damage(found)
        return self._with_damage(await self._unknown(text.strip()))

    async def _sense(self, what: str, reading: Awaitable[T], otherwise: T) -> T:
        """What is read. Of what makes no sense that is told, and the rest is shown."""
        try:
            return await reading
        except Damaged:
            self._damaged[what] = None
            return otherwise

    def _with_damage(self, told: ToldStory) -> ToldStory:
        words = [f"{what} cannot be read, as the database is damaged there" for what in self._damaged]
        return replace(told, also=[*told.also, *words]) if words else told

    async def _one(self, candidate: Candidate) -> ToldStory | None:
        match candidate.kind:
            case IdKind.TURN:
                return await self.turn(candidate.id)
            case IdKind.SESSION:
                return await self._session(candidate.id)
            case IdKind.REFERENCE:
                return await self._reference(candidate.id)
            case IdKind.INCIDENT:
                return await self._incident(candidate.id)
            case IdKind.MESSAGE:
                row = await self._sense(f"message {candidate.id}", self._reads.inbox.one(int(candidate.id)), None)
                if row is None and self._damaged:
                    return ToldStory(candidate.kind, candidate.id, "", f"Message {candidate.id}.", ())
                return await self.message(row) if row is not None else None
            case IdKind.ANSWER:
                session, _, number = candidate.id.partition(":")
                row = await self._reads.inbox.one(int(number))
                return await self.message(row) if row is not None and row.session == session else None
            case IdKind.DELIVERY:
                return await self._delivery(
                    [d.row for d in await self._reads.deliveries.by(number=int(candidate.id))], candidate
                )
            case IdKind.DELIVERY_KEY:
                rows = [d.row for origin in origins_in(candidate.id) for d in await self._reads.deliveries.of(origin)]
                key = candidate.id.rstrip("'")
                return await self._delivery([row for row in rows if row.key.rstrip("'") == key], candidate)
            case IdKind.PLATFORM_MESSAGE:
                return await self._platform_message(candidate)
            case IdKind.REQUEST:
                return await self._request(candidate.id)
            case IdKind.SCHEDULE:
                return await self._schedule(candidate.id)

    async def _request(self, request: str) -> ToldStory | None:
        """A request of the API; one that was refused is told if none with the same id was taken."""
        keys = (request, f"key:{request}")
        taken = await self._reads.inbox.by_keys("api", keys, prefix=f"rid:{request}:")
        refused = await self._reads.inbox.by_keys("api", (), prefix=f"{REFUSED_REQUEST}{request}:")
        taken = taken or await self._reads.inbox.by_keys("api", (), prefix=f"keyed:{request}:")
        if not taken and request.startswith("req_"):  # of a client that counts its retries: its own id stands last
            taken = [row for row in await self._ending_so(request) if row.account == "api"]
        rows = taken or refused[-1:]
        if not rows:
            return None
        made = await self.message(rows[0])
        others = [row for row in refused if row.id != rows[0].id]
        return replace(made, also=[*made.also, *(f"message {row.id} with this id was refused" for row in others[-3:])])

    # ------------------------------------------------------------------ turns and messages

    async def turn(self, turn: str) -> ToldStory | None:
        """The story of a turn; None if there is no such turn."""
        row = await self._sense(f"the row of turn {turn}", self._reads.turns.one(turn), None)
        if row is None and not self._damaged:
            return None
        inputs = await self._sense(f"what turn {turn} was asked", self._reads.inbox.inputs(turn), [])
        case = await self._case(row, inputs, 0, turn)
        return _turn_told(case) if row is not None else _told(Candidate(IdKind.TURN, turn), case, f"Turn {turn}.")

    async def case(self, turn: str) -> StoryCase | None:
        """All that is stored of a turn; None if there is no such turn. `turn_words` tells it."""
        row = await self._reads.turns.one(turn)
        return await self._case(row, await self._reads.inbox.inputs(turn), 0) if row is not None else None

    async def message(self, row: InboxRow) -> ToldStory:
        turn = await self._sense(f"the turn of message {row.id}", self._turn_of(row), None)
        inputs: Sequence[InboxRow] = ()
        if turn is not None:
            inputs = await self._sense(f"what turn {turn.turn} was asked", self._reads.inbox.inputs(turn.turn), [])
        if row.id not in {one.id for one in inputs}:
            inputs = [row]
        case = await self._case(turn, inputs, row.id)
        named = f", turn {turn.turn}" if turn is not None else ""
        made = _told(Candidate(IdKind.MESSAGE, str(row.id)), case, f"Message {row.id}{named}, session {row.session}.")
        if row.platform_key.startswith(PROMPTED):
            occurred = await self._reads.inbox.by_keys(row.account, [row.platform_key.replace(PROMPTED, OCCURRED, 1)])
            return replace(made, also=[f"it came of message {one.id}" for one in occurred])
        if row.lane != COMMANDS:
            return made
        later = [one for one in await self._reads.inbox.by_keys(row.account, _followed(row)) if one.id != row.id]
        return replace(made, also=[f"it led to message {one.id}" for one in later])

    async def _turn_of(self, row: InboxRow) -> TurnRow | None:
        """The turn that a message is part of, or went into while it ran."""
        if row.turn is not None:
            return await self._reads.turns.one(row.turn)
        if row.lane == COMMANDS or row.state is InboxState.DROPPED:
            return None
        for turn in await self._reads.turns.between(row.session, row.received_at, row.received_at + NEAR_MS):
            rows = await self._reads.turns.journal(turn.turn)
            if any(
                isinstance(e, Steered) and e.inbox == row.id for e in _events([r for r in rows if r.kind == "Steered"])
            ):
                return turn
        return None

    async def _case(self, turn: TurnRow | None, inputs: Sequence[InboxRow], about: int, name: str = "") -> StoryCase:
        """`name`: the turn's, if its row cannot be read."""
        reads, now, name = self._reads, self._now(), turn.turn if turn is not None else name
        journal: Sequence[JournalRow] = ()
        if turn is not None:
            journal = await self._sense(f"the journal of turn {name}", reads.turns.journal(name), [])
        first = next((row for row in inputs if row.id == about), None) or next(iter(inputs), None)
        before: list[TurnRow] = []
        ahead = 0
        deliveries: list[DeliveryRow] = []
        if name:
            shown = await self._sense(f"what was shown of turn {name}", reads.deliveries.of(name), [])
            deliveries = [one.row for one in shown]
        if first is not None:
            until = (
                turn.opened_at if turn is not None else (now if first.state is InboxState.NEW else first.received_at)
            )
            between = reads.turns.between(first.session, first.received_at, until)
            before = await self._sense(f"a turn before message {first.id}", between, [])
            if first.state is InboxState.NEW:
                waiting = await self._sense("what else waits", reads.inbox.pending(first.session), [])
                ahead = sum(row.id != first.id and row.arrival < first.arrival for row in waiting)
            if about:
                said = reads.deliveries.of(f"inbox:{first.id}")
                shown = await self._sense(f"what was shown of message {first.id}", said, [])
                deliveries = [*deliveries, *(one.row for one in shown)]
        return StoryCase(
            now=now,
            messages=tuple(asked_of(row, show_text=self._show_text) for row in inputs),
            about=about,
            turn=turn,
            events=_events(journal),
            before=tuple(one for one in before if turn is None or one.number < turn.number),
            ahead=ahead,
            deliveries=tuple(deliveries),
            adapters=await self._adapters(deliveries, now),
            show_text=self._show_text,
        )

    async def _adapters(self, deliveries: Sequence[DeliveryRow], now: int) -> Sequence[AdapterStateRow]:
        """How the adapter is doing that has something to deliver."""
        waiting = next((row for row in deliveries if row.state.value in ("wanted", "sending", "unknown")), None)
        if waiting is None:
            return ()
        return await self._reads.deliveries.adapter_states(now, now, "/".join(waiting.surface.split("/")[:2]))

    # ------------------------------------------------------------------ what a platform knows

    async def _delivery(self, rows: Sequence[DeliveryRow], candidate: Candidate) -> ToldStory | None:
        """The story behind a part that was shown: of its turn, or of the message that it answers."""
        if not rows:
            return None
        row = rows[0]
        origin = behind_origin(row.origin)
        kind, _, number = origin.partition(":")
        behind = None
        if kind in OF_MESSAGES and number.isdigit():
            asked = await self._reads.inbox.one(int(number))
            behind = await self.message(asked) if asked is not None else None
        else:
            behind = await self.turn(origin)
        if behind is None:
            case = StoryCase(now=self._now(), deliveries=[row], show_text=self._show_text)
            about = "A warning that a budget was nearly used up" if kind == "budget" else f"Part {row.key}"
            return ToldStory(candidate.kind, candidate.id, "", f"{about}.", story_of(case))
        head = f"Part {row.part + 1} of {row.bubble} ({row.state.value}) of: {behind.head}"
        others = [
            f"{one.surface} has a message {one.platform_id} as well" for one in rows[1:4] if one.origin != row.origin
        ]
        return replace(behind, kind=candidate.kind, id=candidate.id, head=head, also=[*behind.also, *others])

    async def _platform_message(self, candidate: Candidate) -> ToldStory | None:
        accounts = await self._reads.inbox.accounts()
        rows = [row for account in accounts for row in await self._reads.inbox.by_keys(account, (candidate.id,))]
        if not rows:
            shown = await self._delivery(
                [d.row for d in await self._reads.deliveries.by(receipt=candidate.id)], candidate
            )
            if shown is not None:
                return shown
            rows = [row for row in await self._ending_so(candidate.id) if row.account != "api"]
        if not rows:
            return None
        made = await self.message(rows[-1])
        return replace(made, also=[*made.also, *(f"message {row.id} has this id as well" for row in rows[:-1][-3:])])

    async def _ending_so(self, text: str) -> list[InboxRow]:
        """Messages whose own id is this one without its chat: near the time that the id tells, else among the latest."""
        at = time_in(text)
        near = self._reads.inbox.near
        if at is not None:
            first, last = await near(at - NEAR_MS), await near(at + DAY_MS)
        else:
            last = await near(self._now() + MINUTE_MS)
            first = last
        return await self._reads.inbox.between(
            max(1, last - LATEST, first if at is not None else 0), last, ends=f":{text}"
        )

    # ------------------------------------------------------------------ sessions, errors, incidents

    async def _session(self, session: str) -> ToldStory | None:
        row = await self._reads.sessions.one(session)
        if row is None:
            return None
        turns = await self._reads.turns.latest(session, RECENT_TURNS)
        pending = await self._reads.inbox.pending(session)
        lines = [_turn_line(turn, self._now()) for turn in turns]
        if pending:
            words = f"{counted(len(pending), 'message')} waiting; the first, number {pending[0].id}, since {duration((self._now() - pending[0].received_at) // 1000)}."
            lines.append(Sentence(self._now(), words, frame=True))
        if row.quarantined:
            lines.append(
                Sentence(
                    self._now(), "Nothing of it is run for now: it is set aside after repeated failures.", frame=True
                )
            )
        if not lines:
            lines = [Sentence(row.created_at, "It was made; no turn of it is stored.")]
        head = f"Session {session}, {row.key.rstrip('/')}. Its latest turns; explain one of them to see more."
        last = turns[-1] if turns else None
        ending = (
            StoryEnd.WAITING
            if pending
            else StoryEnd.RUNNING
            if last and last.state is TurnState.OPEN
            else StoryEnd.ENDED
        )
        exit_ = (last.exit or "") if last is not None else ""
        return ToldStory(
            IdKind.SESSION,
            session,
            ending.value,
            head,
            fitted(lines, MOST_LINES - 1),
            last.turn if last else "",
            session,
            exit_,
        )

    async def _reference(self, reference: str) -> ToldStory | None:
        """The turn that a mistake of ours ended: it was closed soon after the reference was made."""
        at = time_in(reference) or self._now()
        for turn in await self._reads.turns.bugs(at - NEAR_MS, at + DAY_MS):
            rows = (await self._reads.turns.journal(turn.turn))[-12:]
            if any(reference.encode() in row.body for row in rows):
                found = await self.turn(turn.turn)
                return replace(found, kind=IdKind.REFERENCE, id=reference) if found is not None else None
        return None

    async def _incident(self, incident: str) -> ToldStory | None:
        row = await self._reads.troubles.incident(incident)
        if row is None:
            return None
        about = f"{row.code.replace('_', ' ')} of {row.model or 'any model'} at {row.endpoint or 'any endpoint'}"
        about += f", tool {row.tool}" if row.tool else ""
        helped = f"What helped most: {row.remedy.replace('_', ' ')}." if row.remedy else "No remedy has helped."
        count = f"{counted(row.turns, 'turn')} of {counted(row.conversations, 'conversation')}"
        lines = [
            Sentence(row.opened_at, f"The incident was opened: {about}.", frame=True),
            Sentence(row.last_at, f"It was last met then; {count} so far. {helped}", frame=True),
        ]
        if row.closed_at is not None:
            lines.append(Sentence(row.closed_at, "It was closed: it had not come up for long enough.", frame=True))
        seen: dict[str, Sentence] = {}
        for turn, trouble in await self._reads.troubles.by(fingerprint=row.fingerprint, limit=20):
            how = (
                "it ended the turn"
                if trouble.ended
                else f"{trouble.rung.replace('_', ' ') or 'nothing'} {trouble.outcome.replace('_', ' ')}"
            )
            seen.setdefault(turn, Sentence(trouble.at, f"For example turn {turn}: {how}."))
        lines += list(seen.values())[:5]
        return ToldStory(
            IdKind.INCIDENT,
            incident,
            row.state.value,
            f"Incident {incident}, {row.state.value}.",
            sorted(lines, key=lambda one: one.at),
        )

    async def _schedule(self, schedule: str) -> ToldStory | None:
        """What came of a schedule lately, and when it is due next."""
        row = await self._reads.schedules.one(schedule)
        if row is None:
            return None
        lines = [_occurrence_line(one) for one in (await self._reads.schedules.occurrences(schedule))[-RECENT_TURNS:]]
        if row.next_at is not None:
            lines.append(Sentence(row.next_at, "It is due next.", frame=True))
        else:
            lines.append(Sentence(row.at, f"It was {row.state.value} then, and is not due any more.", frame=True))
        head = f"The {row.kind} {schedule} for {row.surface.rstrip('/')}, {row.state.value}. Its latest occurrences."
        return ToldStory(
            IdKind.SCHEDULE, schedule, row.state.value, head, sorted(lines, key=lambda one: one.at)[-(MOST_LINES - 1) :]
        )  # fmt: skip

    # ------------------------------------------------------------------ what is not there

    async def chat_at(self, place: str, at: int) -> ToldStory:
        """Why there was no answer in a chat at a time. Raises `CannotExplain`.

        A chat is ``PLATFORM/CHAT``, or as stories and logs name it: with the account before, and the thread behind.
        """
        platform, slash, chat = place.partition("/")
        if not slash or not chat:
            raise CannotExplain("Name the chat as PLATFORM/CHAT, such as telegram/4711 or discord/1234567890.")
        sessions = await self._sessions_in(platform, chat)
        if not sessions and "/" in chat:
            chat = chat.split("/")[1]
            sessions = await self._sessions_in(platform, chat)
        near = await self._rows_of(sessions, chat, at - NEAR_MS, at + NEAR_MS)
        if not near:
            earlier = await self._rows_of(sessions, chat, at - DAY_MS, at)
            later = await self._rows_of(sessions, chat, at, at + DAY_MS)
            return await self._missing(platform, place, at, earlier[-1:], later[:1])
        nearest = min(near, key=lambda row: abs(row.received_at - at))
        made = await self.message(nearest)
        others = [
            f"message {row.id} came {_apart(row.received_at - nearest.received_at)}"
            for row in near
            if row is not nearest
        ]
        return replace(made, also=[*made.also, *others[:4]])

    async def _sessions_in(self, platform: str, chat: str) -> list[str]:
        """The conversations that were held in a chat."""
        accounts = {a for a in await self._reads.inbox.accounts() if a.partition("/")[0] == platform}
        escaped = chat.replace("%", "%25").replace("/", "%2F")
        prefixes = {f"{account}/{escaped}/" for account in accounts if "/" in account}
        prefixes |= {f"{platform}/{middle}/{escaped}/" for middle in ("key", "page") if platform in accounts}
        found = [s.session for prefix in sorted(prefixes) for s in await self._reads.sessions.of_place(prefix)]
        return list(dict.fromkeys(found))

    async def _rows_of(self, sessions: Sequence[str], chat: str, since: int, until: int) -> list[InboxRow]:
        """A chat's messages between two times, both included."""
        if not sessions:
            return []
        first, last = await self._reads.inbox.near(since), await self._reads.inbox.near(until)
        rows = await self._reads.inbox.between(first, last, sessions)
        return [
            row for row in rows if since <= row.received_at <= until and (not (of := chat_of(row)) or of[2] == chat)
        ]

    async def _missing(
        self, platform: str, place: str, at: int, earlier: Sequence[InboxRow] = (), later: Sequence[InboxRow] = ()
    ) -> ToldStory:
        since, until = at - NEAR_MS, min(self._now(), at + NEAR_MS)
        states = [
            s
            for s in await self._reads.deliveries.adapter_states(since, until)
            if s.account.partition("/")[0] == platform
        ]
        missing = NothingStored(
            at=at, since=since, until=until, where=place, adapters=states, starts=await self._reads.sessions.starts(since, until),
            kept_days=self._kept_days,
            forgotten=bool(self._kept_days) and at < self._now() - self._kept_days * DAY_MS,
            before=(earlier[0].id, earlier[0].received_at) if earlier else None,
            after=(later[0].id, later[0].received_at) if later else None,
        )  # fmt: skip
        head = f"No message of {place} is stored for this time."
        return ToldStory(
            IdKind.PLATFORM_MESSAGE,
            place,
            "never arrived",
            head,
            missing_lines(missing, show_text=self._show_text),
            found=False,
        )

    async def _unknown(self, text: str) -> ToldStory:
        platform, at = platform_of(text), time_in(text)
        if platform and at is not None and at <= self._now():
            made = await self._missing(platform, platform, at)
            return replace(
                made,
                id=text,
                head=f"The message {text} of {platform} is not stored; it was written at the last line's time.",
            )
        found = await self._gone(text) or await self._beside(text)
        if found is not None:
            return found
        raise CannotExplain(
            f"Nothing is stored under {text!r}. An id of a turn, session, message, delivery, request, error or incident can be explained; "
            f"they stand in notices, in the logs and in what the platforms show. {self._kept()} For a "
            'message that got no answer: outspoken explain --chat PLATFORM/CHAT --at "14:05".'
        )

    def _kept(self) -> str:
        return f"Messages and deliveries are kept {f'for {self._kept_days} days' if self._kept_days else 'for ever'} ([retention] bodies_days)."

    async def _gone(self, text: str) -> ToldStory | None:
        """A number of ours that was given to a message which is not stored any more."""
        number = text.rpartition(":")[2]
        if kinds_of(text)[0].kind is not IdKind.MESSAGE or len(number) > 15:
            return None
        before, after = await self._reads.inbox.beside(int(number))
        if after is None:
            return None
        head = f"Message {number} is not stored any more. {self._kept()}"
        return ToldStory(IdKind.MESSAGE, number, StoryEnd.FORGOTTEN.value, head, gone_lines(before, after), found=False)

    async def _beside(self, text: str) -> ToldStory | None:
        """An id of a platform that counts a chat's messages: it was written between those that are stored with numbers near by."""
        chat, _, last = text.rpartition(":")
        if not chat or not last.isdecimal() or len(last) > 15:
            return None
        for account in await self._reads.inbox.accounts():
            platform = known_platform(account.partition("/")[0])
            if platform is None or not platform.counts_messages:
                continue
            number = int(last)
            below, above = ([f"{chat}:{number + side * n}" for n in range(1, BESIDE + 1)] for side in (-1, 1))
            earlier = await self._reads.inbox.by_keys(account, below)
            later = await self._reads.inbox.by_keys(account, above)
            before = max(earlier, key=lambda row: row.id, default=None)
            after = min(later, key=lambda row: row.id, default=None)
            nearest = after or before
            if nearest is not None:
                sides = ([before] if before is not None else [], [after] if after is not None else [])
                place = f"{platform.name}/{chat}"
                made = await self._missing(platform.name, place, nearest.received_at, *sides)
                head = f"The message {text} of {platform.name} is not stored; it was written near the messages of {place} that are told."
                return replace(made, id=text, head=head)
        return None


def _occurrence_line(row: OccurrenceRow) -> Sentence:
    named = f"(message {row.inbox})" if row.inbox else ""
    match row.outcome:
        case OccurrenceOutcome.RUN:
            return Sentence(row.at, f"It ran {named}.")
        case OccurrenceOutcome.MISSED:
            times = f"{row.count} times" if row.count > 1 else "once"
            return Sentence(row.at, f"It had been missed {times}, which was told {named}.")


async def why(reads: Reads, turn: str, now: Callable[[], int], zone: tzinfo | None = None) -> tuple[str, ...]:
    """What `/why` says of a turn, with times of `zone` (this machine's, if it is not known); empty if there is none."""
    case = await Explainer(reads, now).case(turn)
    return turn_words(case, zone) if case is not None else ()


async def why_as_then(reads: Reads, turn: str, now: Callable[[], int]) -> tuple[str, ...]:
    """The same in the language in which the turn spoke."""
    case = await Explainer(reads, now).case(turn)
    opened = next((event for event in case.events if isinstance(event, TurnOpened)), None) if case is not None else None
    with speaking(opened.language if opened is not None else ""):
        return turn_words(case) if case is not None else ()


def turn_words(case: StoryCase, zone: tzinfo | None = None) -> tuple[str, ...]:
    """The same of what was read before, as it is at the case's time. It asks nothing."""
    found = _turn_told(case)
    return told(found.head, found.lines, zone or local_zone())


def _turn_told(case: StoryCase) -> ToldStory:
    assert case.turn is not None
    turn = case.turn.turn
    head = speak("Turn {turn} of {conversation}.", turn=turn, conversation=case.turn.session)
    return _told(Candidate(IdKind.TURN, turn), case, head)


def _told(candidate: Candidate, case: StoryCase, head: str) -> ToldStory:
    turn, lines = case.turn, story_of(case)
    if turn is not None and turn.removed:
        words = speak("What happened in it is {removed}.", removed=known_sentence(turn.removed))
        gone = Sentence(turn.closed_at or turn.opened_at, words, frame=True)
        lines = sorted((*lines, gone), key=lambda line: line.at)
    return ToldStory(
        candidate.kind, candidate.id, ending_of(case).value, head, lines,
        turn=turn.turn if turn is not None else "", session=turn.session if turn is not None else "",
        exit=(turn.exit or "") if turn is not None else "",
    )  # fmt: skip


def local_zone() -> tzinfo:
    """This machine's zone, as it is now."""
    return datetime.now().astimezone().tzinfo or UTC


def _events(rows: Sequence[JournalRow]) -> tuple[Event, ...]:
    """What can be read of a journal; the rest is passed over, so that a story does not fail by one row."""
    events: list[Event] = []
    for row in rows:
        try:
            events.append(light(row))
        except UnreadableJournal:
            continue
    return tuple(events)


def _turn_line(turn: TurnRow, now: int) -> Sentence:
    seconds = ((turn.closed_at or now) - turn.opened_at) / 1000
    how = (turn.exit or "").replace("_", " ") if turn.state is TurnState.CLOSED else "still running"
    return Sentence(
        turn.opened_at, f"Turn {turn.turn} began: {how} after {seconds:.1f} s{', taken back' if turn.undone else ''}."
    )


def _apart(ms: int) -> str:
    return f"{duration(abs(ms) // 1000)} {'later' if ms > 0 else 'earlier'}"
