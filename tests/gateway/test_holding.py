"""What waits for its time is not run once somebody took it out, however both fall together: they were told that it is out."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey, Ticket
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.store import Conflict
from gateway.commands import holding
from gateway.commands.carrying import Request
from gateway.commands.holding import Holding
from gateway.commands.messages import Messages
from gateway.commands.registry import BY_NAME
from gateway.delivery.owners import Owner
from gateway.queues import inbox
from gateway.queues.held import HOLD, HeldHere, HeldMessage
from gateway.queues.inbox import COMMAND_LANE, NORMAL_LANE
from tests.store.support import FakeClock

KEY = SessionKey("telegram", "1", "2")
HELD = HeldMessage.for_room("hello").command()
SAID = FromChat(
    account="telegram/1", platform_key="m1", session=KEY, input=(InputMessage(f"/{HELD.name} {HELD.words}"),), surface="telegram",
    memory_scope="", can_approve=True, chat=ChatOrigin(ChatAddress("telegram", "1", "2"), ChatKind.PRIVATE, ChatPerson("2", "Ann"), "m1"),
)  # fmt: skip
ROW = InboxRow(
    id=7, account="telegram/1", platform_key="m1", session="s1", arrival=7, lane=COMMAND_LANE, body=inbox.encode(SAID),
    state=InboxState.NEW, reason=None, received_at=1,
)  # fmt: skip


def _nobody(_: object) -> None: ...


class Chat:
    """A chat in which a message is held; it is taken out at the moment that is named."""

    def __init__(self, moment: str) -> None:
        self.moment = moment
        self.held, self.inbox = HeldHere(), self
        self.submitted: list[str] = []
        self.stopped: list[str] = []
        self.holding = Holding(cast("Any", self), cast("Any", self), SystemClock())

    def crowded(self, _: str) -> None: ...

    def reach(self, moment: str) -> None:
        if moment == self.moment:
            assert self.held.take_out(KEY.text(), room=True) == 1

    async def one(self, _: int) -> InboxRow:
        self.reach("it is read")
        return replace(ROW, state=InboxState.DROPPED) if self.submitted and self.moment == "taken back" else ROW

    async def submit(self, _inbound: object, key: str, *_: object, foreign: str) -> bool:
        del foreign
        self.submitted.append(key)
        self.reach("it is taken in")
        return True

    async def stop(self, _account: str, key: str) -> None:
        self.stopped.append(key)


@pytest.mark.parametrize("moment", ["never", "it is read", "it is taken in", "taken back"])
async def test_what_is_taken_out_does_not_run(moment: str) -> None:
    chat = Chat(moment)
    request = Request(BY_NAME[HOLD], HELD.words, SAID, ROW.id, Owner("s1", 1), admin=False, own=KEY)
    assert (await chat.holding.hold(request)).words == ""
    runs = [f"{HOLD}:m1"]
    assert chat.submitted == (runs if moment != "it is read" else [])
    assert chat.stopped == (chat.submitted if moment != "never" else [])


@pytest.mark.parametrize("put_back_ms", [0, 86_400_000])
async def test_it_waits_no_longer_than_was_meant_whatever_the_clock_does(put_back_ms: int) -> None:
    chat, came = Chat("never"), 1_800_000_000_000
    chat.holding = Holding(cast("Any", chat), cast("Any", chat), FakeClock(came - put_back_ms))
    held = HeldMessage(came + 30, "hello").command()
    said = replace(SAID, input=(InputMessage(f"/{held.name} {held.words}"),))
    request = Request(BY_NAME[HOLD], held.words, said, ROW.id, Owner("s1", 1), admin=False, own=KEY, received_at=came)
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(5):
        await chat.holding.hold(request)
    assert asyncio.get_running_loop().time() - began >= 0.025
    assert chat.submitted


@pytest.mark.parametrize("begun", [False, True])
async def test_what_is_deleted_when_it_was_taken_in_is_taken_out_of_its_queue(begun: bool) -> None:
    """It was read as waiting, and is done by now: what it stood for waits in its conversation's queue, or runs."""
    taken_in = replace(ROW, id=8, lane=NORMAL_LANE, state=InboxState.TAKEN if begun else InboxState.NEW)
    withdrawn: list[int] = []

    async def by_key(_: str, key: str) -> InboxRow:
        return ROW if key == "m1" else taken_in

    async def drop(*_: object) -> None:
        raise Conflict("Message 7 is done; only a new one can be dropped.")

    async def withdraw(ticket: Ticket) -> bool:
        withdrawn.append(ticket.inbox_id)
        return True

    store, stopping = (
        SimpleNamespace(inbox=SimpleNamespace(by_key=by_key, drop=drop)),
        SimpleNamespace(withdraw=withdraw),
    )
    accepting = SimpleNamespace(queues=None, runner=SimpleNamespace(slots=None))
    messages = Messages(*cast("list[Any]", [accepting, stopping, None, None, None, store, SystemClock(), None]))
    await messages.remove("telegram/1", "m1")
    assert withdrawn == ([] if begun else [8])


async def test_what_is_edited_when_it_was_taken_in_is_answered_in_its_new_words() -> None:
    taken_in, reworded = replace(ROW, id=8, lane=NORMAL_LANE), dict[str, str]()

    async def by_key(_: str, key: str) -> InboxRow:
        return ROW if key == "m1" else taken_in

    async def reword(_: str, key: str, body: bytes, *_more: object) -> bool:
        reworded[key] = str(inbox.decode(body).input[0].content)
        return key != "m1"  # which is done by now

    store = SimpleNamespace(inbox=SimpleNamespace(by_key=by_key, reword=reword))
    queues, portion = SimpleNamespace(known=_nobody), SimpleNamespace(far=None)
    accepting = SimpleNamespace(queues=queues, runner=SimpleNamespace(slots=None), portion=portion)
    messages = Messages(*cast("list[Any]", [accepting, None, None, None, None, store, SystemClock(), None]))
    await messages.edit(replace(SAID, input=(InputMessage("other words"),)), ROW)
    assert reworded == {"m1": f"/{HOLD} 0 other words", f"{HOLD}:m1": "other words"}


class Room(Chat):
    """A chat in which messages are held until there is room; each is refused as `refusals` say before it is taken in."""

    def __init__(self, *refusals: NotAccepted, state: InboxState = InboxState.NEW) -> None:
        super().__init__("never")
        self.refusals, self.state = [*refusals], state
        self.full = 0
        """It is full for so many looks."""
        self.foreign: list[str] = []

    def crowded(self, _: str) -> NotAccepted | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.full -= 1
        return NotAccepted("full", NotAcceptedCode.QUEUE_FULL) if self.full >= 0 else None

    async def one(self, number: int) -> InboxRow:  # pyright: ignore[reportIncompatibleMethodOverride]
        return replace(ROW, id=number, state=self.state)

    async def submit(self, _inbound: object, key: str, *_: object, foreign: str) -> bool:
        if self.refusals:
            raise self.refusals.pop(0)
        self.foreign.append(foreign)
        self.submitted.append(key)
        return True

    async def hold(self, number: int = ROW.id, said: FromChat = SAID) -> str:
        request = Request(BY_NAME[HOLD], HELD.words, said, number, Owner("s1", 1), admin=False, own=KEY)
        return (await self.holding.hold(request)).words


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "ROOM_SECONDS", 0.0)
    monkeypatch.setattr(holding, "AWAY_SECONDS", 0.0)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("codes", "words", "runs"),
    [
        ((), "", 1),
        ((NotAcceptedCode.QUEUE_FULL, NotAcceptedCode.GATEWAY_FULL), "", 1),
        ((NotAcceptedCode.STORAGE_AWAY, NotAcceptedCode.QUEUE_FULL), "", 1),
        ((NotAcceptedCode.QUEUE_FULL, NotAcceptedCode.QUOTA), "no", 0),
    ],
)
async def test_what_finds_no_room_waits_for_it_and_what_is_refused_for_good_is_told(
    codes: tuple[NotAcceptedCode, ...], words: str, runs: int
) -> None:
    chat = Room(*(NotAccepted("no", code) for code in codes))
    assert (await chat.hold(), len(chat.submitted)) == (words, runs)


async def test_what_was_deleted_while_it_was_held_does_not_run() -> None:
    for state in InboxState:
        chat = Room(state=state)
        await chat.hold()
        assert len(chat.submitted) == (state is InboxState.NEW)


@pytest.mark.usefixtures("quick")
async def test_what_waits_for_room_runs_in_the_order_in_which_it_came() -> None:
    chat = Room()
    chat.full = 6
    second = replace(SAID, platform_key="m2")
    await asyncio.gather(chat.hold(), chat.hold(8, second))
    assert len(chat.submitted) == 2
    alone = Room()
    with alone.held.holding(KEY.text(), 5), alone.held.lining_up(KEY.text(), 5):
        waits = asyncio.create_task(alone.hold(9))
        for _ in range(50):
            await asyncio.sleep(0)
        assert alone.submitted == [], "there is room, and somebody is before it"
    await waits
    assert len(alone.submitted) == 1


async def test_whose_words_are_held_is_known_when_they_run() -> None:
    chat = Room()
    forwarded = replace(SAID, chat=replace(SAID.chat, foreign="forwarded"))
    stored = replace(ROW, body=inbox.encode(forwarded))

    async def one(_: int) -> InboxRow:
        return stored

    chat.one = one  # pyright: ignore[reportAttributeAccessIssue]
    await chat.hold(said=forwarded)
    assert chat.foreign == ["forwarded"]
