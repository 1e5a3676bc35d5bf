"""A chat service in virtual time: its chats, what people do there, and all that can go wrong with a call. It outlives every gateway."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from adapters.contract.chat import Ability, CallFailed, Cause, Content, Fate

BOT = "bot"
AGAIN_LABEL = "you may see this twice"
KINDS = ("not sent", "lost before", "lost after", "lost after", "too fast", "hangs", "form", "out")
HANG_SECONDS = 12.0
"""So long a port waits for an answer that never comes."""


@dataclass
class Shown:
    """A message of the bot's, as its chat has it."""

    id: str
    key: str
    content: Content
    at: float
    turn: str = ""
    edits: int = 0
    deleted: bool = False

    @property
    def text(self) -> str:
        return self.content.body.text


@dataclass(frozen=True)
class Event:
    """Something that a person did, as the service tells it."""

    number: int
    chat: str
    private: bool
    person: str
    message: str
    text: str = ""
    command: str = ""
    mentions: bool = False
    pressed: str = ""
    """The data of a button."""


@dataclass
class Chat:
    id: str
    private: bool
    shown: dict[str, Shown] = field(default_factory=dict[str, Shown])
    closed: bool = False
    """The person has blocked the bot."""


@dataclass
class Faults:
    """How the service behaves, drawn once a scenario."""

    share: float
    """Of calls that go wrong."""
    repeats: float
    """Of events that come once more."""
    cuts: float
    """Of looks for events that find no connection."""


class Service:
    """`says` and `presses` are what people do; the rest is what the bot's adapter calls."""

    def __init__(self, ability: Ability, faults: Faults, met: Counter[str]) -> None:
        self.ability = ability
        self._faults = faults
        self._met = met
        self.chats: dict[str, Chat] = {}
        self.events: list[Event] = []
        self.confirmed: set[int] = set()
        self.created: Counter[tuple[str, str]] = Counter()
        """(chat, key): how often a message was made of it."""
        self.unmarked: list[str] = []
        """Keys of messages that came once more without a word about it."""
        self.calls: Counter[str] = Counter()
        self._keys: dict[tuple[str, str], str] = {}
        self._numbers = 0
        self._new = asyncio.Event()
        self.under_way = 0
        """Calls that have not come back."""
        self.trouble_until = 0.0
        """From then on nothing goes wrong any more, so that everything comes to rest."""
        self.sees: Callable[[str, Shown], None] = lambda chat, shown: None
        """People look at what was shown or changed."""

    def begin(self, sees: Callable[[str, Shown], None]) -> None:
        """Another gateway connects: what waited in the loop of the last one waits no more."""
        self._new, self.sees, self.under_way = asyncio.Event(), sees, 0

    def _goes_wrong(self, draw: random.Random, share: float) -> bool:
        return draw.random() < share and asyncio.get_running_loop().time() < self.trouble_until

    # ------------------------------------------------------------------ people

    def chat(self, name: str) -> Chat:
        return self.chats.setdefault(name, Chat(name, private=name.startswith("p")))

    def says(self, chat: str, person: str, text: str, *, command: str = "", pressed: str = "") -> Event:
        """A person writes, gives a command, or presses a button."""
        place = self.chat(chat)
        number = self._number()
        said = Event(
            number,
            chat,
            place.private,
            person,
            f"m{number}",
            text,
            command,
            mentions=not place.private,
            pressed=pressed,
        )
        self.events.append(said)
        self._new.set()
        return said

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # ------------------------------------------------------------------ events

    async def waiting(self, draw: random.Random) -> Event:
        """The next event that was not confirmed; now and then one that was, once more, or a later one of another chat first."""
        while True:
            if self._goes_wrong(draw, self._faults.cuts):
                self._met["connection cut"] += 1
                raise ConnectionResetError("cut")
            if self.confirmed and self._goes_wrong(draw, self._faults.repeats):
                self._met["event told twice"] += 1
                again = draw.choice(sorted(self.confirmed)[-5:])
                return next(event for event in self.events if event.number == again)
            if first := self._first_of_chats():
                one = draw.choice(first[:3])
                self._met["event told out of order"] += one is not first[0]
                return one
            self._new.clear()
            await self._new.wait()

    def _first_of_chats(self) -> list[Event]:
        """Of each chat, what is to be told next."""
        first: dict[str, Event] = {}
        for event in self.events:
            if event.number not in self.confirmed:
                first.setdefault(event.chat, event)
        return list(first.values())

    def confirm(self, event: Event) -> None:
        self.confirmed.add(event.number)

    # ------------------------------------------------------------------ calls

    async def call(
        self, name: str, chat: str, draw: random.Random, effect: Callable[[], str], *, formed: bool = False
    ) -> str:
        """One call, with what can go wrong before and after it; of one that brings a form, also that. Raises `CallFailed`."""
        self.calls[name] += 1
        self.under_way += 1
        try:
            return await self._called(name, chat, draw, effect, formed=formed)
        finally:
            self.under_way -= 1

    async def _called(
        self, name: str, chat: str, draw: random.Random, effect: Callable[[], str], *, formed: bool
    ) -> str:
        await asyncio.sleep(draw.choice((0.0, 0.02, 0.1, 0.4)))
        wrong = self._goes_wrong(draw, self._faults.share)
        kind = draw.choice(KINDS) if wrong else ""
        if kind:
            self._met[f"call: {kind}"] += 1
        match kind:
            case "not sent":
                raise CallFailed(Fate.NOT_SENT, "the service cannot be reached")
            case "lost before":
                raise CallFailed(Fate.UNKNOWN, "the connection was lost")
            case "too fast":
                raise CallFailed(Fate.TOO_FAST, "too fast", retry_after=draw.choice((0.5, 3.0, 20.0)))
            case "form" if formed:
                raise CallFailed(Fate.REFUSED, "the form is odd", cause=Cause.FORM)
            case "out":
                raise CallFailed(Fate.NOT_SENT, "the service is out of order")
            case _:
                pass
        if self.chat(chat).closed:
            raise CallFailed(Fate.REFUSED, "the person has blocked the bot", cause=Cause.BLOCKED)
        done = effect()
        if kind == "hangs":
            await asyncio.sleep(HANG_SECONDS)
        if kind in ("lost after", "hangs"):
            raise CallFailed(Fate.UNKNOWN, "the answer was lost")
        await asyncio.sleep(draw.choice((0.0, 0.0, 0.05)))
        return done

    def create(self, chat: str, content: Content, key: str, now: float) -> str:
        """Show a message; where calls have keys, the same one shows it once."""
        if self.ability is Ability.KEYED and (known := self._keys.get((chat, key))):
            self._met["same key, nothing done"] += 1
            return known
        self.created[chat, key] += 1
        if self.created[chat, key] > 1 and AGAIN_LABEL not in content.body.text:
            self.unmarked.append(f"{key} in {chat}: {content.body.text[:80]!r}")
        made = Shown(f"b{self._number()}", key, content, now)
        self.chat(chat).shown[made.id] = made
        self._keys[chat, key] = made.id
        self.sees(chat, made)
        return made.id

    def edit(self, chat: str, message: str, content: Content) -> str:
        shown = self.chat(chat).shown.get(message)
        if shown is None or shown.deleted:
            raise CallFailed(Fate.REFUSED, "no such message", cause=Cause.NO_MESSAGE)
        shown.content = content
        shown.edits += 1
        self.sees(chat, shown)
        return message

    def delete(self, chat: str, message: str) -> str:
        shown = self.chat(chat).shown.get(message)
        if shown is None or shown.deleted:
            raise CallFailed(Fate.REFUSED, "no such message", cause=Cause.NO_MESSAGE)
        shown.deleted = True
        return message

    def find(self, chat: str, key: str) -> str:
        self._met["looked up"] += 1
        found = self._keys.get((chat, key), "")
        return found if found and not self.chat(chat).shown[found].deleted else ""
