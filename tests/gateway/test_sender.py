"""What a chat is sent: a surface with its real ledger and gates before a platform that does as it is told."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import (
    Ability,
    CallFailed,
    Cause,
    ChatAddress,
    ChatKind,
    ChatOrigin,
    ChatPerson,
    ChatPort,
    Content,
    ContentKind,
    Fate,
    Flow,
    Piece,
    Traits,
)
from adapters.contract.pacing import Rate, Urgency
from adapters.delivery import aftermath
from adapters.delivery.parts import DraftPart, Picture, WantedPart
from adapters.delivery.reconcile import Part, new_part
from adapters.text.styled import Styled
from agent_core.ports import SystemClock, steady_ms
from agent_core.retry import Retry
from agent_core.signals import PartSent
from agent_core.store.deliveries.rows import Delivery, DeliveryRow, DeliveryState
from agent_core.store.store import Fenced, StorageUnavailable, Store
from agent_core.text.tongue import speak, speaking
from agent_core.turn.view import Bubble, BubbleKind, View
from gateway.delivery import sender
from gateway.delivery import surface as surfaces
from gateway.delivery.accounts import Accounts, Gates, PlatformAccount
from gateway.delivery.calls import ASTRAY, LABEL, as_sent, called
from gateway.delivery.cosmetics import Cosmetics
from gateway.delivery.forming import Forming
from gateway.delivery.ledger import Ledger, Records
from gateway.delivery.outbox import Outbox, Restorer
from gateway.delivery.owners import Owner
from gateway.delivery.sender import Shared
from gateway.delivery.surface import Surface
from gateway.delivery.troubles import SurfaceTroubles
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.storage.damage import DamageMet
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

CHAT = ChatAddress("telegram", "1", "2")
ME = Owner("s", 7)
ANY = Rate(1_000, 1.0)


async def _nothing(*_: object) -> None:
    """Nobody hears of it."""


def _gives(what: object) -> Callable[..., Awaitable[Any]]:
    async def given(*_: object) -> Any:
        return what

    return given


class Paper(Records):
    """A store of rows that is ours as long as it is told so."""

    def __init__(self, log: list[str]) -> None:
        self.coming: set[str] = set()
        super().__init__(cast("Any", None), DamageMet(SystemClock()), comes_first=self.coming.__contains__)
        self.rows: dict[str, DeliveryRow] = {}
        self.ours, self.fenced, self._log = True, False, log
        self.away, self.tried = False, 0
        self.meanwhile: Callable[[DeliveryRow], None] = lambda _: None
        """Happens while a row is stored."""

    def may_send(self) -> bool:
        return self.ours

    async def put(self, owner: Owner, rows: Sequence[DeliveryRow]) -> None:
        self.tried += 1
        if self.fenced:
            raise Fenced("somebody else's")
        if self.away:
            raise StorageUnavailable("It is away.")
        for row in rows:
            await asyncio.sleep(0)
            self.meanwhile(row)
            self.rows[row.origin] = row
            self._log.append(f"stored {row.state.value}")


class Port(ChatPort):
    """Each call does what is next of `does`, then answers."""

    def __init__(self, ability: Ability) -> None:
        self._ability = ability
        self.does: list[Callable[[], Awaitable[None]]] = []
        self.calls: list[tuple[str, str, float]] = []
        self.there: str | None = None
        self.since = 0
        self.sought: list[str] = []

    @property
    def ability(self) -> Ability:
        return self._ability

    def traits(self, address: ChatAddress) -> Traits:
        return Traits(drafts=False, preview_seconds=0.05)

    async def _call(self, what: str, said: str) -> None:
        self.calls.append((what, said, time.monotonic()))
        if self.does:
            await self.does.pop(0)()

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:
        await self._call("create", content.body.text)
        return f"m{len(self.calls)}"

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        await self._call("edit", content.body.text)

    async def finish(
        self, address: ChatAddress, platform_id: str, content: Content, more: Flow | None, key: str
    ) -> str:
        await self._call("finish", platform_id)
        return platform_id

    async def delete(self, address: ChatAddress, platform_id: str) -> None:
        await self._call("delete", platform_id)

    @staticmethod
    def parts(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
        return (Styled(markdown),)

    @staticmethod
    def shorter(body: Styled, most_units: int) -> tuple[Styled, ...]:
        return (body,)

    async def private(self, person: str) -> str:
        raise NotImplementedError

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        raise NotImplementedError

    async def itself(self) -> None:
        await self._call("itself", "")

    async def find(self, address: ChatAddress, content: Content, key: str, since_ms: int) -> str | None:
        self.since = since_ms
        self.sought.append(content.body.text)
        return self.there


def fails(fate: Fate, cause: Cause = Cause.OTHER, retry_after: float = 0.0) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        raise CallFailed(fate, "it is so", cause=cause, retry_after=retry_after)

    return fail


@dataclass
class Chat:
    """A chat that is shown something."""

    surface: Surface
    port: Port
    paper: Paper
    log: list[str] = field(default_factory=list[str])
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Its task has ended."""
    troubles: SurfaceTroubles = field(default_factory=lambda: SurfaceTroubles(SystemClock(), _nothing))

    def wants(self, origin: str, *texts: str, kind: ContentKind = ContentKind.TEXT, final: bool = True) -> None:
        wanted = [WantedPart("b", n, Content(kind, Styled(one)), final=final) for n, one in enumerate(texts)]
        self.surface.ledger.propose(origin, ME, wanted)
        self.surface.ledger.release(origin)
        self.surface.bell.ring()

    def has_no_rest(self) -> None:
        """Something is being stored of another turn: what was sent is remembered."""
        self.surface.ledger.held.add("another")

    async def takes_back(self) -> None:
        """What is on its way is not wanted any more."""
        self.surface.ledger.propose("t1", ME, [])
        self.surface.ledger.release("t1")

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)

    async def shows(self, origin: str) -> DeliveryRow:
        """What is stored of it, once it was sent."""
        await self.until(lambda: origin in self.paper.rows and self.paper.rows[origin].state is DeliveryState.SENT)
        return self.paper.rows[origin]


@asynccontextmanager
async def chat(
    ability: Ability = Ability.LOOK_UP, port: Port | None = None, rate: Rate = ANY, address: ChatAddress = CHAT
) -> AsyncGenerator[Chat]:
    clock, port, log = SystemClock(), port or Port(ability), list[str]()
    accounts, paper = Accounts(clock), Paper(log)
    accounts.add(CHAT.platform, CHAT.account, PlatformAccount(port, ANY, lambda _: rate))

    def tell(signal: object) -> None:
        if isinstance(signal, PartSent):
            log.append("told")

    async def moved(address: ChatAddress, to: str) -> None:
        log.append(f"{address.chat} is {to}")

    store = cast("Store", SimpleNamespace(deliveries=SimpleNamespace(put_gate=_nothing)))
    troubles = SurfaceTroubles(clock, _nothing)
    shared = Shared(
        accounts, Gates(accounts, store, clock, tell), paper, troubles, Forming(), moved,
        lambda _: None, tell, clock, random.Random(1),
    )  # fmt: skip
    made = Chat(Surface(address, port, shared, lambda _: log.append("forgotten")), port, paper, log, troubles=troubles)
    task = asyncio.create_task(made.surface.run())
    task.add_done_callback(lambda _: made.over.set())
    try:
        yield made
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_pause_that_a_platform_asks_for_counts_for_all_that_goes_there() -> None:
    async with chat() as one:
        one.port.does = [fails(Fate.TOO_FAST, retry_after=0.4)]
        one.wants("t1", "hello")
        one.wants("t2", "and you")
        await one.shows("t1")
        await one.shows("t2")
        first, *others = [at for _, _, at in one.port.calls]
        assert len(others) == 2
        assert min(others) - first >= 0.399, "counted in milliseconds"


async def test_what_may_be_there_is_looked_for_since_it_was_tried_first_and_not_made_twice() -> None:
    async with chat() as one:
        began = SystemClock().now_ms()
        one.port.does, one.port.there = [fails(Fate.UNKNOWN)], "m7"
        one.wants("t1", "hello")
        assert (await one.shows("t1")).platform_id == "m7"
        assert [what for what, _, _ in one.port.calls] == ["create"]
        tried = one.port.since + 60_000  # the clock of the platform may be behind
        assert began <= tried <= SystemClock().now_ms()


async def test_what_says_the_same_and_is_another_parts_is_not_taken_for_what_may_be_there() -> None:
    """Where it is found by what it shows, the second of two equal ones would never come."""
    async with chat() as one:
        one.has_no_rest()
        one.wants("t1", "yes")
        first = (await one.shows("t1")).platform_id
        one.port.does, one.port.there = [fails(Fate.UNKNOWN)], first
        one.wants("t2", "yes")
        assert (await one.shows("t2")).platform_id != first
        assert [what for what, _, _ in one.port.calls] == ["create"] * 3


async def test_that_a_part_was_sent_is_told_when_that_is_stored() -> None:
    async with chat() as one:
        one.wants("t1", "hello")
        await one.until(lambda: "told" in one.log)
        assert one.log.index("told") > one.log.index("stored sent")


async def test_a_message_that_a_platform_does_not_take_away_is_not_recorded_as_gone() -> None:
    async with chat() as one:
        one.port.does = [one.takes_back, *[fails(Fate.REFUSED, Cause.NOT_LET_IN)] * 9]
        one.wants("t1", "hello")
        await one.until(lambda: [what for what, _, _ in one.port.calls].count("delete"))
        await one.until(lambda: one.paper.rows["t1"].state is DeliveryState.SKIPPED)
        row = one.paper.rows["t1"]
        assert (row.platform_id, row.cause) == ("m1", "it is so"), "it stands there, and why is known"


async def test_what_is_wanted_while_a_message_is_taken_away_is_shown_afterwards() -> None:
    async with chat() as one:

        async def wanted_again() -> None:
            one.wants("t1", "hello again")

        one.port.does = [one.takes_back, wanted_again]
        one.wants("t1", "hello")
        await one.until(lambda: one.port.calls and one.port.calls[-1][:2] == ("create", "hello again"))
        await one.shows("t1")


async def test_nothing_goes_out_without_a_lease_and_all_of_it_when_there_is_one_again() -> None:
    async with chat() as one:
        one.paper.ours = False
        one.wants("t1", "hello")
        await asyncio.sleep(0.2)
        assert one.port.calls == []
        one.paper.ours = True
        one.surface.bell.ring()
        await one.shows("t1")


async def test_a_lease_that_ends_while_it_is_stored_that_something_is_to_be_sent_sends_nothing() -> None:
    async with chat() as one:

        def ends(row: DeliveryRow) -> None:
            one.paper.ours = row.state is not DeliveryState.SENDING

        one.paper.meanwhile = ends
        one.wants("t1", "hello")
        await one.until(lambda: "stored sending" in one.log)
        await asyncio.sleep(0.05)
        assert one.port.calls == [], "somebody else may have it by now"
        one.paper.meanwhile, one.paper.ours = gives(None), True
        one.surface.bell.ring()
        await one.shows("t1")
        assert [what for what, _, _ in one.port.calls] == ["create"]
        assert one.port.sought == [], "it was never under way, so that nobody needs to look for it"


async def test_what_may_be_there_is_looked_for_by_what_was_sent_and_not_by_what_is_wanted_since() -> None:
    async with chat() as one:

        async def wanted_otherwise_and_lost() -> None:
            one.wants("t1", "other words")
            raise CallFailed(Fate.UNKNOWN, "no answer")

        one.port.does, one.port.there = [wanted_otherwise_and_lost], "m7"
        one.wants("t1", "hello")
        await one.shows("t1")
        assert one.port.sought == ["hello"]
        assert [call[:2] for call in one.port.calls] == [("create", "hello"), ("edit", "other words")]


async def test_nothing_new_is_shown_before_what_others_have_left_in_the_chat() -> None:
    async with chat() as one:
        one.paper.coming.add(CHAT.text())
        one.wants("t1", "hello")
        await asyncio.sleep(0.2)
        assert one.port.calls == []
        one.paper.coming.clear()
        await one.shows("t1")


async def test_who_was_overtaken_sends_nothing_of_what_it_had() -> None:
    async with chat() as one:
        one.paper.fenced = True
        one.wants("t1", "hello")
        await one.until(lambda: not one.surface.ledger.parts)
        one.paper.fenced = False
        one.surface.bell.ring()
        await asyncio.sleep(0.2)
        assert one.port.calls == []


async def test_a_file_has_longer_than_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "CALL_SECONDS", 0.05)

    async def slowly() -> None:
        await asyncio.sleep(0.3)

    async with chat(Ability.KEYED) as one:
        one.port.does = [slowly]
        one.wants("t1", "", kind=ContentKind.FILE)
        await one.shows("t1")
        assert len(one.port.calls) == 1


@pytest.mark.parametrize("replies", [True, False])
@pytest.mark.parametrize(("plain", "lost"), [(False, False), (True, False), (False, True)])
def test_where_a_reply_is_the_thread_itself_it_is_kept_without_form_and_lost_with_the_thread(
    *, plain: bool, lost: bool, replies: bool
) -> None:
    made = new_part(WantedPart("b", 0, Content(ContentKind.TEXT, Styled("x"), reply_to="7"), final=True), "s", "t1", 1)
    part = replace(made, row=replace(made.row, plain=plain, cause=Cause.NO_THREAD.value if lost else ""))
    sent = as_sent(part, CHAT, Ability.KEYED, Traits(drafts=False, replies=replies))
    assert sent.reply_to == ("" if lost or (plain and not replies) else "7")


class Seen:
    """Who looks at a turn."""

    def __init__(self) -> None:
        self.bells: list[object] = []

    def subscribe(self, bell: object) -> None:
        self.bells.append(bell)

    def unsubscribe(self, bell: object) -> None:
        self.bells.remove(bell)


async def test_a_chat_with_another_id_hears_of_the_turns_that_run_there() -> None:
    async with chat() as old, chat() as new:
        seen = Seen()
        seen.subscribe(old.surface.bell)
        outlet = SimpleNamespace(turn="t1", owner=ME, driver=SimpleNamespace(seen=seen), surface=old.surface, seen=True)
        old.surface._outlets.append(cast("TurnOutlet", outlet))
        old.surface.hand_over(new.surface)
        assert seen.bells == [new.surface.bell]
        assert outlet.surface is new.surface
        new.surface._outlets.clear()
        async with asyncio.timeout(20):
            await old.over.wait()  # the other shows everything from now on


@pytest.mark.parametrize(
    ("ability", "fate", "cause", "times", "said"),
    [
        (Ability.KEYED, Fate.REFUSED, Cause.OTHER, 2, "⚠️ A part of the answer could not be sent: {why}"),
        (
            Ability.KEYED, Fate.UNKNOWN, Cause.UNREADABLE, aftermath.MOST_UNREADABLE,
            "⚠️ It is not known whether a part of the answer has reached this chat: {why}",
        ),
        (Ability.NONE, Fate.UNKNOWN, Cause.OTHER, 1, LABEL),
        (Ability.KEYED, Fate.REFUSED, Cause.NO_THREAD, 1, ASTRAY),
    ],
    ids=["refused", "not known", "perhaps twice", "astray"],
)  # fmt: skip
async def test_whatever_is_said_of_a_part_is_said_in_the_language_of_its_person(
    ability: Ability, fate: Fate, cause: Cause, times: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aftermath, "DELIVERY", Retry(0.0, 0.0))
    address = replace(CHAT, thread="9")
    with speaking("de"):
        words = speak(said, why="it is so")
    assert words.partition(":")[0] not in said, "there is a translation"
    async with chat(ability, address=address) as one:
        one.port.does = [fails(fate, cause)] * times
        content = Content(ContentKind.TEXT, Styled("hallo"), language="de")
        one.surface.ledger.propose("t1", ME, [WantedPart("b", 0, content, final=True)])
        one.surface.ledger.release("t1")
        await one.until(lambda: [text for _, text, _ in one.port.calls if text.startswith(words)])


def part_in_german() -> Part:
    content = Content(ContentKind.TEXT, Styled("hallo"), language="de")
    return new_part(WantedPart("b", 0, content, final=True), CHAT.text(), "t1", 1)


class Heard:
    """What is said beside turns."""

    def __init__(self) -> None:
        self.said: list[tuple[ChatAddress, Content]] = []

    async def say(self, address: ChatAddress, owner: Owner, origin: str, content: Content) -> None:
        del owner, origin
        self.said.append((address, content))

    def is_said(self, where: ChatAddress, words: str) -> None:
        with speaking("de"):
            wanted = speak(words, why="it is so")
        assert wanted.partition(":")[0] not in words, "there is a translation"
        ((address, content),) = self.said
        assert (address, content.body.text, content.language) == (where, wanted, "de")


async def test_that_a_part_was_set_aside_is_said_in_the_language_of_its_person() -> None:
    words, clock = Heard(), SystemClock()
    shared: Any = SimpleNamespace(
        clock=clock, records=SimpleNamespace(put=_nothing), troubles=SurfaceTroubles(clock, _nothing)
    )
    restorer = Restorer(shared, cast("Any", None), cast("Any", words), cast("Any", None))
    await restorer.set_aside(Delivery("s", part_in_german().row), ME, "it is so")
    words.is_said(CHAT, "⚠️ A part of the answer could not be shown: {why}.")


@pytest.mark.parametrize("origin", ["t1", "t1!failed.b.0"])
async def test_what_cannot_be_said_in_a_group_is_told_in_private_in_the_language_of_whoever_asked(origin: str) -> None:
    words, asker = Heard(), ChatOrigin(CHAT, ChatKind.GROUP, ChatPerson("77", "Ada"), "5")
    deliveries = SimpleNamespace(of=_gives([Delivery("s", part_in_german().row)]))
    part = part_in_german()
    part = replace(part, row=replace(part.row, origin=origin))

    async def asked(turn: str) -> ChatOrigin | None:
        return asker if turn == "t1" else None

    outbox: Any = SimpleNamespace(
        _asker_of=asked, words=words, port_of=gives(SimpleNamespace(private=_gives("88"))),
        _store=SimpleNamespace(deliveries=deliveries, sessions=SimpleNamespace(claim=_gives(7))),
    )  # fmt: skip
    refused = CallFailed(Fate.REFUSED, "it is so", cause=Cause.NO_RIGHTS)
    await Outbox._tell_privately(outbox, CHAT, part, refused)
    words.is_said(
        replace(CHAT, chat="88"),
        "I could not write into the group where you asked me: {why}. Nothing more can be shown there until that is changed.",
    )


async def test_that_one_part_was_not_taken_is_told_in_private_in_the_words_that_the_group_did_not_take() -> None:
    words, asker = Heard(), ChatOrigin(CHAT, ChatKind.GROUP, ChatPerson("77", "Ada"), "5")
    outbox: Any = SimpleNamespace(
        _asker_of=_gives(asker), words=words, port_of=gives(SimpleNamespace(private=_gives("88"))),
        _store=SimpleNamespace(
            deliveries=SimpleNamespace(of=_gives([Delivery("s", part_in_german().row)])),
            sessions=SimpleNamespace(claim=_gives(7)),
        ),
    )  # fmt: skip
    await Outbox._tell_privately(outbox, CHAT, part_in_german(), CallFailed(Fate.REFUSED, "no", cause=Cause.OTHER))
    assert [content.body.text for _, content in words.said] == ["hallo"]


async def test_a_chat_that_is_another_by_now_is_told_of() -> None:
    async with chat() as one:

        async def moved() -> None:
            raise CallFailed(Fate.REFUSED, "it is another", cause=Cause.MOVED, moved_to="9")

        one.port.does = [moved]
        one.wants("t1", "hello")
        await one.until(lambda: "2 is 9" in one.log)


async def test_what_stood_behind_a_lost_message_is_sent_once_more_behind_what_takes_its_place() -> None:
    async with chat() as one:
        one.has_no_rest()
        one.wants("t1", "one", "two")
        await one.until(lambda: len(one.port.calls) == 2)
        await one.shows("t1")
        one.port.does = [fails(Fate.REFUSED, Cause.NO_MESSAGE)]
        one.wants("t1", "one, in other words", "two")
        await one.until(
            lambda: [s for w, s, _ in one.port.calls if w == "create"][2:] == ["one, in other words", "two"]
        )


async def test_what_may_have_been_sent_and_is_not_wanted_any_more_is_only_looked_for() -> None:
    async with chat() as one:

        async def lost() -> None:
            await one.takes_back()
            raise CallFailed(Fate.UNKNOWN, "it was cut")

        one.port.does = [lost]
        one.wants("t1", "hello")
        await one.until(lambda: one.port.since and not one.surface.ledger.waiting)
        assert [what for what, _, _ in one.port.calls] == ["create"]
        assert one.paper.rows["t1"].state is DeliveryState.SKIPPED


async def test_of_what_was_changed_to_its_last_words_there_is_a_receipt() -> None:
    async with chat() as one:
        one.has_no_rest()
        one.wants("t1", "hel", final=False)
        await one.until(lambda: one.port.calls)
        assert "told" not in one.log
        one.wants("t1", "hello")
        await one.until(lambda: "told" in one.log)
        assert [what for what, _, _ in one.port.calls] == ["create", "edit"]


async def test_a_surface_lives_while_a_word_stands_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surfaces, "LINGER_SECONDS", 0.05)
    async with chat() as one:
        one.wants("queue:5", "It waits.")
        await one.shows("queue:5")
        await asyncio.sleep(0.3)
        assert not one.over.is_set()
        one.surface.ledger.take_back("queue:5")
        async with asyncio.timeout(20):
            await one.over.wait()
        assert one.log[-1] == "forgotten"


async def test_without_storage_a_surface_waits() -> None:
    async with chat() as one:
        one.paper.away = True
        one.wants("t1", "hello")
        await one.until(lambda: one.paper.tried)
        await asyncio.sleep(0.2)
        assert one.paper.tried < 4
        assert one.port.calls == []


class Picky(Port):
    """It takes no message that says this."""

    async def _call(self, what: str, said: str) -> None:
        await super()._call(what, said)
        if said == "first":
            raise CallFailed(Fate.NOT_SENT, "no connection")


async def test_what_fails_for_long_keeps_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    # Less than its first pause, and more than a busy machine takes to look again
    monkeypatch.setattr(aftermath, "BLOCKS_MS", 200)
    async with chat(port=Picky(Ability.LOOK_UP)) as one:
        one.wants("t1", "first", "second")
        await one.until(lambda: "second" in [said for _, said, _ in one.port.calls])
        assert 1 < [said for _, said, _ in one.port.calls].count("first") < 9, "with pauses"


async def test_no_more_is_sent_at_once_than_a_chat_takes() -> None:
    async with chat(rate=Rate(1, 300.0)) as one:
        one.wants("t1", "one", "two", "three")
        await one.until(lambda: len(one.port.calls) == 3)
        first, _, last = [at for _, _, at in one.port.calls]
        assert last - first >= 0.6 - 0.05


async def test_what_is_being_stored_is_changed_by_hand_only_then() -> None:
    async with chat() as one:
        one.has_no_rest()
        one.wants("t1", "hello")
        await one.shows("t1")
        (name,) = one.surface.ledger.parts
        one.surface.ledger.held.add("t1")

        async def change(part: Part) -> Part:
            assert "t1" not in one.surface.ledger.held
            return part

        asked = asyncio.create_task(one.surface.amendments.ask(name, _nothing, change))
        await asyncio.sleep(0.1)
        assert not asked.done()
        one.surface.ledger.release("t1")
        assert (await asked).name == name


async def test_whatever_a_port_raises_it_may_have_been_done_and_what_takes_too_long_as_well() -> None:
    async def odd() -> str:
        raise ZeroDivisionError

    async def slow() -> str:
        await asyncio.sleep(60)
        return ""

    for call, seconds in ((odd, 9.0), (slow, 0.01)):
        with pytest.raises(CallFailed) as failed:
            await called(call(), "Somewhere", seconds)
        assert failed.value.fate is Fate.UNKNOWN


async def test_a_message_that_grew_and_of_which_nobody_knows_what_stands_there_is_finished_and_then_edited() -> None:
    async with chat() as one:
        row = part_row("hello", platform_id="grows:m9")
        one.surface.ledger.restore([Delivery("s", row)], ME)
        await one.until(lambda: len(one.port.calls) == 2)
        await one.shows("t1")
        assert [what for what, _, _ in one.port.calls] == ["finish", "edit"]


@pytest.mark.parametrize("cause", [Cause.NO_MESSAGE, Cause.UNEDITABLE])
async def test_a_message_that_is_not_there_or_can_be_taken_away_by_nobody_is_done_with(cause: Cause) -> None:
    async with chat() as one:
        one.port.does = [one.takes_back, *[fails(Fate.REFUSED, cause)] * 9]
        one.wants("t1", "hello")
        await one.until(lambda: "t1" in one.paper.rows and one.paper.rows["t1"].state is DeliveryState.SKIPPED)
        row = one.paper.rows["t1"]
        assert (row.platform_id, row.cause) == (None, "")


def part_row(text: str, **more: Any) -> DeliveryRow:
    """A part that an earlier process has left."""
    content = Content(ContentKind.TEXT, Styled(text))
    made = new_part(WantedPart("b", 0, content, final=True), CHAT.text(), "t1", 1)
    return replace(made.row, **more)


async def test_a_turn_that_shows_itself_here_is_awaited_no_more() -> None:
    async with chat() as one:
        one.surface.ledger.restore([Delivery("s", part_row("hello", final=False))], ME, going_on={"t1"})
        assert one.surface.ledger.awaited == {"t1"}
        outlet = TurnOutlet(lambda: one.surface, "t1", ME, "", "7")
        one.surface.add(outlet)
        assert one.surface.ledger.awaited == set()


async def test_an_end_that_is_stored_is_shown_whoever_comes_with_another_one() -> None:
    """A watchdog that takes a slow end for none puts last words together while the driver stores the turn's own."""
    answer = Bubble("text0", BubbleKind.ANSWER, "hello", final=True)
    async with chat() as one:
        outlet = TurnOutlet(lambda: one.surface, "t1", ME, "", "7")
        one.surface.add(outlet)
        assert [row.origin for row in outlet.closing(View((answer,), open=False))] == ["t1"]
        outlet.closed()
        notice = Bubble("notice", BubbleKind.NOTICE, "it failed", final=True)
        assert not outlet.closing(View((answer, notice), open=False))
        await one.shows("t1")
        assert [said for _, said, _ in one.port.calls] == ["hello"]


async def test_a_chat_that_takes_something_again_is_not_in_trouble_any_more() -> None:
    async with chat(Ability.KEYED) as one:
        one.port.does = [fails(Fate.REFUSED, Cause.BLOCKED)]
        one.wants("t1", "hello")
        await one.until(lambda: one.troubles.known)
        one.wants("t2", "and now?")
        await one.shows("t2")
        assert not one.troubles.known


class Growing(Port):
    """Messages grow there, if it takes the first."""

    def traits(self, address: ChatAddress) -> Traits:
        return Traits(drafts=False, preview_seconds=0.01, streams=True)

    def flow(self, content: Content, *, final: bool) -> Flow:
        return Flow(content.body.text)

    async def start(self, address: ChatAddress, content: Content, first: Flow, person: str) -> str:
        await self._call("start", first.text)
        return "grows:m1"


async def test_where_no_message_may_grow_that_is_tried_once_and_then_all_goes_as_elsewhere() -> None:
    async with chat(Ability.KEYED, port=Growing(Ability.KEYED)) as one:
        one.port.does = [fails(Fate.REFUSED)]
        for number, origin in enumerate(("t1", "t2")):
            one.wants(origin, "hello", final=False)
            await one.until(lambda calls=number + 2: len(one.port.calls) >= calls)
        assert [what for what, _, _ in one.port.calls] == ["start", "create", "create"]


async def test_a_message_grows_by_what_is_new_whatever_stands_there_by_then() -> None:
    class Stream(Growing):
        async def append(self, address: ChatAddress, platform_id: str, more: Flow) -> None:
            await self._call("append", more.text)

    async with chat(Ability.KEYED, port=Stream(Ability.KEYED)) as one:
        one.has_no_rest()
        for number, text in enumerate(("a", "a b", "a b c", "a b c d")):
            one.wants("t1", text, final=False)
            await one.until(lambda calls=number + 1: len(one.port.calls) >= calls)
        assert [said for _, said, _ in one.port.calls] == ["a", " b", " c", " d"]


@pytest.mark.parametrize("is_open", [True, False])
async def test_how_a_turn_ends_is_shown_when_that_is_stored_and_what_it_does_before_at_once(is_open: bool) -> None:
    """Between its end and the storing of that the surface may look: what it then shows would stand there if nothing could be stored."""
    async with chat() as one:
        looks: list[object] = []

        def current_view() -> View:
            looks.append(one)
            return View((), open=is_open)

        async def shown(_: object) -> Picture:
            return Picture((WantedPart("b", 0, Content(ContentKind.TEXT, Styled("hello")), final=True),))

        driver = SimpleNamespace(seen=SimpleNamespace(current_view=current_view), opened_at=0)
        outlet = SimpleNamespace(
            turn="t1", owner=ME, driver=driver, texts=SimpleNamespace(shown=shown), seen=False, task=(1, "a task"), person=""
        )  # fmt: skip
        one.surface.add(cast("TurnOutlet", outlet))
        if is_open:
            await one.shows("t1")
        else:
            await one.until(lambda: len(looks) > 2)
            assert one.surface.ledger.parts == {}
            one.wants("t1", "hello")
            await one.shows("t1")
        one.surface.drop(cast("TurnOutlet", outlet))


@pytest.mark.parametrize("task", [None, (1, "a task")])
async def test_text_on_its_way_is_a_draft_where_the_chats_own_turn_says_it_and_no_task(
    task: tuple[int, str] | None,
) -> None:
    drafts, looks = list[str](), list[bool]()

    class WithDrafts(Port):
        async def draft(self, address: ChatAddress, number: int, body: Styled) -> None:
            drafts.append(body.text)

    async def shown(picture: Callable[[Any], Picture]) -> Picture:
        return picture(None)

    def picture(_view: View, _parts: Any, *, growing: bool) -> Picture:
        looks.append(growing)
        return Picture((), DraftPart("b", 1, Styled("so far" if growing else "not put into form")))

    seen = SimpleNamespace(current_view=gives(View((), open=True)))
    outlet = SimpleNamespace(
        turn="t1", owner=ME, driver=SimpleNamespace(seen=seen, opened_at=0), texts=SimpleNamespace(shown=shown), seen=False,
        task=task, person="", reply_to="", picture=picture,
    )  # fmt: skip
    async with chat(port=WithDrafts(Ability.NONE)) as one:
        one.surface.add(cast("TurnOutlet", outlet))
        if task is None:
            await one.until(lambda: drafts)
        await one.until(lambda: looks.count(True) > 2)
        one.surface.drop(cast("TurnOutlet", outlet))
    assert {*drafts} == ({"so far"} if task is None else set())


@pytest.mark.parametrize("left", [False, True])
async def test_text_on_its_way_of_a_turn_that_goes_on_elsewhere_is_a_message_and_no_draft_that_fades(
    left: bool,
) -> None:
    port = Port(Ability.NONE)
    calls = SimpleNamespace(traits=Traits(drafts=True), port=port)
    surface = SimpleNamespace(calls=calls)
    outlet = TurnOutlet(lambda: cast("Any", surface), "t1", ME, "")
    outlet.driver = cast("Any", SimpleNamespace(turn=SimpleNamespace(left=left)))
    view = View((Bubble("text0", BubbleKind.ANSWER, "so far", final=False),), open=True)
    shown = outlet.picture(view, lambda text, _: (Styled(text),))
    assert [one.content.body.text for one in shown.wanted if not one.fleeting] == (["so far"] if left else [])
    assert (shown.draft is None) is left


@pytest.mark.parametrize("cause", [Cause.BLOCKED, Cause.NO_RIGHTS, Cause.NO_THREAD])
async def test_what_a_chat_did_not_take_is_missed_there_once_and_by_the_first_of_it(cause: Cause) -> None:
    clock, told = SystemClock(), list[Part]()

    async def privately(_address: ChatAddress, part: Part, _error: CallFailed) -> None:
        told.append(part)

    troubles = SurfaceTroubles(clock, privately)
    rows: list[DeliveryRow] = []

    async def put(_: Owner, stored: Sequence[DeliveryRow]) -> None:
        rows.extend(stored)

    ledger = Ledger(
        CHAT.text(), cast("Any", SimpleNamespace(put=put, next_place=1, placed=gives(None))), clock, lambda: None
    )
    for origin, kind in (("t0", ContentKind.STATUS), ("t1", ContentKind.TEXT), ("t2", ContentKind.TEXT)):
        ledger.owners[origin] = ME
        part = new_part(
            WantedPart("b", 0, Content(kind, Styled("x"), file_name="f"), final=True), CHAT.text(), origin, 1
        )
        await troubles.given_up(CHAT, ledger, part, CallFailed(Fate.REFUSED, "it is so", cause=cause))
    assert rows == [], "nothing can be said there"
    assert told[0].row.origin == "t0"
    for _ in range(2):
        await troubles.back(ledger, ME)
    assert [row.origin for row in rows] == ["t1!failed.b.0"]


async def test_what_may_be_there_and_cannot_be_looked_up_is_sent_once_more_when_the_platform_itself_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy's page with a success, three times in a row: the message was given up at the second one."""
    monkeypatch.setattr(aftermath, "DELIVERY", Retry(0.01))
    page = fails(Fate.UNKNOWN, Cause.SHIELDED)
    async with chat(Ability.NONE) as one:
        one.port.does = [page, page, page]
        one.wants("t1", "hello")
        row = await one.shows("t1")
        assert [what for what, _, _ in one.port.calls] == ["create", "itself", "itself", "itself", "create"]
        assert row.labelled, "it may be there twice, and says so"


async def test_what_a_proxy_answers_each_time_is_made_twice_at_most_where_nobody_can_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aftermath, "DELIVERY", Retry(0.01))
    page = fails(Fate.UNKNOWN, Cause.SHIELDED)
    async with chat(Ability.NONE) as one:
        one.port.does = [page, cast("Any", _nothing), page]
        one.wants("t1", "hello")
        await one.until(lambda: "t1" in one.paper.rows and one.paper.rows["t1"].state is DeliveryState.FAILED)
        assert [what for what, _, _ in one.port.calls][:3] == ["create", "itself", "create"]
        await asyncio.sleep(0.1)
        assert len([said for _, said, _ in one.port.calls if "hello" in said]) == 2


@pytest.mark.parametrize("state", DeliveryState)
def test_a_part_is_unsettled_as_long_as_something_of_it_is_to_be_done_and_is_as_its_chat_knows_it(
    state: DeliveryState,
) -> None:
    stored = new_part(WantedPart("b", 0, Content(ContentKind.TEXT, Styled("x")), final=True), CHAT.text(), "t1", 1)
    known = replace(stored, row=replace(stored.row, state=state))
    surfaces: Any = SimpleNamespace(known=gives(SimpleNamespace(ledger=SimpleNamespace(parts={known.name: known}))))
    none = cast("Any", None)
    restorer = Restorer(none, surfaces, none, none)
    assert restorer.unsettled(known.row.surface, known.name) is known.open
    assert not restorer.unsettled(known.row.surface, ("t1", "b", 1))
    outbox: Any = SimpleNamespace(surfaces=surfaces)
    assert Outbox.part_of(outbox, Delivery("s", stored.row)) is known
    surfaces.known = gives(None)
    assert not restorer.unsettled(known.row.surface, known.name)
    assert Outbox.part_of(outbox, Delivery("s", stored.row)).row == stored.row


async def test_a_draft_is_one_call_and_waits_for_those_of_more_weight() -> None:
    clock, said = FakeClock(), list[str]()
    refused = [CallFailed(Fate.REFUSED, "no"), None]

    async def attempt(what: str) -> CallFailed | None:
        said.append(what)
        return refused.pop()

    calls: Any = SimpleNamespace(
        traits=Traits(drafts=True, preview_seconds=1.0, typing_seconds=4.0), attempt=attempt, address=CHAT,
        port=SimpleNamespace(draft=gives("draft"), typing=gives("typing")),
    )  # fmt: skip
    cosmetics = Cosmetics(calls, cast("Any", SimpleNamespace(shown=gives(None))), clock)
    free = dict.fromkeys(Urgency, 0)
    assert cosmetics.preview_due(steady_ms(clock), free)
    assert not cosmetics.preview_due(steady_ms(clock), {**free, Urgency.COSMETIC: 1})
    for words in ("Hello", "Hello you"):
        clock.now += 60_000
        cosmetics.draft = DraftPart("b", 1, Styled(words))
        assert await cosmetics.show(steady_ms(clock), (), typing=True)
    assert said == ["draft", "draft"], "and no second call in the place of one"
    assert not calls.traits.drafts
