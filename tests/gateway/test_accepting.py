"""How messages are taken in: what becomes of those that are offered twice, cannot be stored, come too many, or are another gateway's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import Attachment, AttachmentKind, ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.store.inbox.access import Inbox
from agent_core.store.inbox.rows import Accepted, InboxState
from agent_core.store.sessions.rows import OwnersChange, SessionChange
from agent_core.store.store import StorageUnavailable
from agent_core.turn.events import Steered
from gateway.config.types import SessionPolicy
from gateway.limits.admission import Bounds
from gateway.queues import slots
from gateway.queues.queue import SessionQueue
from gateway.sessions.accepting import Accepting
from gateway.sharing.portion import Portion
from tests.agent_core.turns import gives
from tests.gateway.rig import Rig, chunk, gateway
from tests.gateway.test_runner import World, running
from tests.gateway.test_slots import message

FEW = Bounds(open=2, opening=2, share=2, crowd=2, waiting=3)
Messages = list[dict[str, Any]]


class Model:
    """Answers what it was asked, once it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()
        self.asked: list[str] = []

    async def __call__(self, messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        self.asked.append(" ".join(str(one["content"]) for one in messages[1:] if one["role"] == "user"))
        await response.write(chunk({"content": "well"}))
        await self.may.wait()
        await response.write(chunk({}, "stop"))


async def quiet(rig: Rig) -> None:
    async with asyncio.timeout(20):
        while list(rig.hub.queues):
            await asyncio.sleep(0.005)


async def test_whatever_becomes_of_messages_nothing_of_them_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a place at the door, nor one among those who run, nor a queue: there is room for few, and more than these come."""
    accept, away = Inbox.accept, [False]

    async def accepted(inbox: Inbox, *args: Any, **more: Any) -> Accepted:
        if away[0]:
            raise StorageUnavailable("It is away.")
        return await accept(inbox, *args, **more)

    monkeypatch.setattr(Inbox, "accept", accepted)
    monkeypatch.setattr(slots, "RECOUNT_SECONDS", 0.0)
    async with gateway(tmp_path, Model(), bounds=FEW) as rig:
        for number in range(4):
            await rig.say("hello", key=f"K{number}", session=f"s{number}", digest="a")
            again = await rig.hub.accept(rig.inbound("hello", key=f"K{number}", session=f"s{number}", digest="a"))
            assert again.duplicate
            with pytest.raises(NotAccepted):
                await rig.hub.accept(rig.inbound("other", key=f"K{number}", session=f"s{number}", digest="b"))
            away[0] = True
            for inbound in (
                rig.inbound("away", session=f"s{number}"),
                rig.inbound("away", session=f"s{number}", own_history=()),
            ):
                with pytest.raises(NotAccepted):
                    await rig.hub.accept(inbound)
            away[0] = False
        await quiet(rig)
        assert (rig.hub.slots.open, rig.hub.slots.in_line, rig.hub.slots.messages) == (0, 0, 0)


async def test_who_leaves_while_a_message_is_stored_is_answered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept, storing, may = Inbox.accept, asyncio.Event(), asyncio.Event()

    async def accepted(inbox: Inbox, *args: Any, **more: Any) -> Accepted:
        storing.set()
        await may.wait()
        return await accept(inbox, *args, **more)

    monkeypatch.setattr(Inbox, "accept", accepted)
    model = Model()
    async with gateway(tmp_path, model) as rig:
        coming = asyncio.create_task(rig.hub.accept(rig.inbound("hello")))
        await storing.wait()
        coming.cancel()
        await asyncio.wait({coming})
        may.set()
        await rig.say("after it")
    assert model.asked[0] == "hello"
    assert len(model.asked) == 2


async def test_a_steer_waits_behind_what_waits_and_what_was_taken_before_is_never_one_too_many(tmp_path: Path) -> None:
    model = Model()
    async with gateway(tmp_path, model, queue_limit=2) as rig:
        model.may.clear()
        first = await rig.hub.accept(rig.inbound("0"))
        await rig.until_text(first, "well")
        tickets = [await rig.hub.accept(rig.inbound("1", key="K1"))]
        tickets.append(await rig.hub.accepting.accept(rig.inbound("2"), busy=SessionPolicy.STEER))
        with pytest.raises(NotAccepted):
            await rig.hub.accept(rig.inbound("3"))
        again = await rig.hub.accept(rig.inbound("1", key="K1"))
        assert (again.duplicate, again.inbox_id) == (True, tickets[0].inbox_id)
        model.may.set()
        for ticket in (first, *tickets):
            await rig.end(ticket)
    assert [words.split()[-1] for words in model.asked] == ["0", "1", "2"]


async def test_what_changes_with_a_message_counts_for_its_turn(tmp_path: Path) -> None:
    model = Model()
    async with gateway(tmp_path, model) as rig:
        said = await rig.say("forget this")
        session = (await rig.hub.accept(rig.inbound("forget this", key="K"))).session
        await quiet(rig)

        async def undone() -> OwnersChange:
            epoch = await rig.store.sessions.claim(session)
            return OwnersChange(session, epoch, SessionChange(undo=said.turn))

        await rig.end(await rig.hub.accepting.accept(rig.inbound("anew"), changing=undone))
    assert model.asked[-1] == "forget this anew", "the other one of that name stays"


def in_chat(chat: str, number: int) -> FromChat:
    origin = ChatOrigin(
        ChatAddress("telegram", "1", chat), ChatKind.PRIVATE, ChatPerson("7", "Ada"), message=str(number)
    )
    return FromChat(
        account="telegram/1", platform_key=f"{chat}:{number}", session=SessionKey("telegram", "1", "a"),
        input=(InputMessage(f"m{number}"),), surface="telegram", memory_scope="telegram/1", chat=origin,
    )  # fmt: skip


async def test_a_steer_of_another_chat_of_the_conversation_is_a_turn_of_its_own(tmp_path: Path) -> None:
    """What is said in one chat is answered there."""
    model = Model()
    async with gateway(tmp_path, model) as rig:
        model.may.clear()
        tickets = [await rig.hub.accept(in_chat("a", 0))]
        await rig.until_text(tickets[0], "well")
        for chat, number in (("b", 1), ("a", 2)):
            tickets.append(await rig.hub.accepting.accept(in_chat(chat, number), busy=SessionPolicy.STEER))
        queue = rig.hub.queues.of(tickets[0].session)
        assert queue is not None
        assert [one.inbox_id for one in queue.waiting] == [one.inbox_id for one in tickets[1:]]
        assert queue.steers == []
        model.may.set()
        for ticket in tickets:
            await rig.end(ticket)


# ---------------------------------------------------------------------- of several gateways


class Rows:
    """What is stored of messages."""

    def __init__(self, state: InboxState = InboxState.NEW, after: int = 0) -> None:
        self.state, self.after = state, after

    async def one(self, number: int) -> Any:
        return SimpleNamespace(id=number, state=self.state, session="a", arrival=number, received_at=0)

    async def accept(self, message: Any, opening: object, *, claims: bool) -> Accepted:
        del opening
        number = int(message.platform_key.removeprefix("k"))
        return Accepted(number, "a", number, False, self.state, None, int(claims), after=self.after)


def taking(world: World, rows: Rows, portion: Portion) -> Accepting:
    async def claim(session: str) -> int:
        del session
        return 1

    async def nothing_left(session: str, before: int) -> bool:
        del session, before
        return False

    async def beginning(*_: object) -> None: ...

    def nothing(*_: object) -> None: ...

    none = cast("Any", None)
    store: Any = SimpleNamespace(inbox=rows, sessions=SimpleNamespace(claim=claim))
    left: Any = SimpleNamespace(find=nothing_left, still_holds=nothing_left, holds=nothing)
    aside: Any = SimpleNamespace(check=lambda: None)
    ids: Any = SimpleNamespace(new=str)
    return Accepting(
        store, world.queues, world.runner, cast("Any", SimpleNamespace(beginning=beginning)), none, left, aside, None, None,
        none, 9, SessionPolicy.QUEUE, none, SystemClock(), ids, lambda _: None, none, portion,
    )  # fmt: skip


def shared(*, mine: bool) -> Portion:
    portion = Portion(whole=False)
    portion.mine = lambda _: mine  # type: ignore[method-assign]
    portion.said = []  # type: ignore[attr-defined]
    portion.tell = lambda word, *, soon=True: portion.said.append((word, soon))  # type: ignore[attr-defined, misc]
    return portion


@pytest.mark.parametrize("state", [InboxState.NEW, InboxState.DROPPED])
async def test_a_message_of_another_gateways_conversation_is_stored_and_that_one_told(state: InboxState) -> None:
    async with running() as world:
        portion = shared(mine=False)
        accepting = taking(world, Rows(state), portion)
        inbound = message("a").inbound
        await accepting._take_in(inbound, accepting.new_message(inbound, "normal", 0, None), None, None)
        assert len(portion.said) == (state is InboxState.NEW)  # type: ignore[attr-defined]
        assert world.ran == []
        assert list(world.queues) == []


async def test_a_message_behind_one_that_another_gateway_has_stored_is_collected_with_that_one() -> None:
    async with running(holds=True) as world:
        portion = shared(mine=True)
        key = message("a").inbound.session.text()
        accepting, queue = taking(world, Rows(after=1), portion), world.queue(key)
        queue.prefs_loaded = True
        world.runner.add(queue, message("a", 9))
        await world.until(lambda: queue.running)

        async def comes(number: int) -> None:
            inbound = message("a", number).inbound
            await accepting._take_in(inbound, accepting.new_message(inbound, "normal", 0, None), None, None)

        await comes(2)
        assert queue.waiting == []
        assert await portion.stored.wait(0.0)
        row: Any = SimpleNamespace(id=1, session="a", arrival=1, received_at=0)
        assert await accepting.collect(row, message("a").inbound, key, lambda: False)
        await comes(2)
        assert [one.inbox_id for one in queue.waiting] == [1, 2]
        assert not await portion.stored.wait(0.0), "the one before it is known here by now"
        portion.stored.close()


@pytest.mark.parametrize("what", ["it waits", "it was collected", "it is done", "it is the keeper's"])
async def test_what_another_gateway_has_stored_is_queued_once_and_only_as_long_as_it_waits(what: str) -> None:
    async with running(holds=True) as world:
        accepting = taking(world, Rows(InboxState.DONE if what == "it is done" else InboxState.NEW), Portion())
        row: Any = SimpleNamespace(id=5, session="a", arrival=5, received_at=0)
        queue = world.queue("a", blocked=what == "it is the keeper's")
        queue.prefs_loaded = True
        if what == "it was collected":
            assert await accepting.collect(row, message("a", 5).inbound, "a", lambda: False)
        assert await accepting.collect(row, message("a", 5).inbound, "a", lambda: False) == (what == "it waits")
        await asyncio.sleep(0.01)
        assert world.ran == ([[5]] if what in ("it waits", "it was collected") else [])
        queue.blocked = False


@pytest.mark.parametrize("blocked", [True, False])
async def test_a_queue_that_waits_for_what_was_left_waits_for_it_also_when_it_comes_to_be_ours(
    *, blocked: bool
) -> None:
    async with running() as world:
        accepting, queue = taking(world, Rows(), Portion()), world.queues.at("a")
        queue.blocked = blocked
        assert await accepting.owned("a", "s", 0) is queue
        assert (queue.epoch, queue.blocked) == (1, blocked)
        queue.blocked = False


@pytest.mark.parametrize("state", [InboxState.NEW, InboxState.DROPPED])
async def test_a_repeated_message_is_the_keepers_or_was_set_aside_or_is_run(state: InboxState) -> None:
    async with running() as world:
        accepting, queue = taking(world, Rows(state), Portion()), SessionQueue("a")
        assert await accepting._taken_care_of(queue, 1) == (state is InboxState.DROPPED)
        queue.blocked = True
        assert await accepting._taken_care_of(queue, 1)


async def test_a_steer_is_told_the_running_turn() -> None:
    async with running(holds=True) as world:
        accepting = taking(world, Rows(), Portion())
        queue = world.queue("a")
        accepting._put(queue, message("a", 1), SessionPolicy.STEER)
        await world.until(lambda: queue.running)
        said = message("a", 2)
        said.inbound = in_chat("a", 2)
        accepting._put(queue, said, SessionPolicy.STEER)
        assert world.drivers[0].told == [Steered(at=2, input=InputMessage("m2"), inbox=2)]
        assert [one.inbox_id for one in queue.steers] == [2]


PICTURE: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


@pytest.mark.parametrize(
    ("attached", "content", "waits"),
    [
        ((Attachment(AttachmentKind.VOICE, "f1", "voice.ogg"),), "", True),
        ((Attachment(AttachmentKind.OTHER, "f1", "a.pdf"),), "see this", True),
        (None, [{"type": "text", "text": "see this"}, PICTURE], True),
        (None, [{"type": "text", "text": "and in red"}], False),
        (None, "and in red", False),
    ],
)
async def test_what_is_attached_is_read_at_the_beginning_of_a_turn_and_not_lost_in_one_that_runs(
    attached: tuple[Attachment, ...] | None, content: Json, waits: bool
) -> None:
    async with running(holds=True) as world:
        accepting, queue = taking(world, Rows(), Portion()), world.queue("a")
        accepting._put(queue, message("a", 1), SessionPolicy.STEER)
        await world.until(lambda: queue.running)
        said = message("a", 2)
        if attached is None:
            said.inbound = replace(said.inbound, input=(InputMessage(content),))
        else:
            origin = replace(in_chat("a", 2).chat, attachments=attached)
            said.inbound = replace(in_chat("a", 2), input=(InputMessage(content),), chat=origin)
        accepting._put(queue, said, SessionPolicy.STEER)
        assert bool(world.drivers[0].told) is not waits
        assert [one.inbox_id for one in (queue.waiting if waits else queue.steers)] == [2]


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("early", [0, 3_500])
async def test_whoever_asks_too_often_is_told_when_to_ask_again_and_has_the_answer_to_what_was_taken(
    *, early: int, taken: bool
) -> None:
    async def by_key(*_: object) -> object:
        return object() if taken else None

    accepting: Any = SimpleNamespace(
        doors=SimpleNamespace(early=gives(early)), clock=SystemClock(),
        store=SimpleNamespace(inbox=SimpleNamespace(by_key=by_key)),
    )  # fmt: skip
    checked = vars(Accepting)["_check_rate"](accepting, message("a", 1).inbound)
    if not early or taken:
        await checked
        return
    with pytest.raises(NotAccepted, match="Ask again in 4 s"):
        await checked
