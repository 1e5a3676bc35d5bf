"""What is known of a conversation belongs to it alone: a name that several have means nobody, a consent covers what it was given for, and what is gone leaves nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import CallFailed, ChatAddress, ChatKind, ChatOrigin, ChatPerson, Fate
from agent_core.messages import InputMessage
from agent_core.rules.consents import Kind
from agent_core.store.inbox.rows import InboxState
from agent_core.store.people.rows import PersonRow, PersonState
from agent_core.store.store import Conflict, Damaged
from agent_core.store.turns.rows import TurnState
from gateway.chats.where import NoSuchChat, Where
from gateway.config.types import SessionPolicy
from gateway.queues.held import HeldHere, HeldMessage
from gateway.queues.prefs import Prefs
from gateway.queues.queue import Waiting
from gateway.queues.queues import Queues
from gateway.queues.slots import person_of
from gateway.sessions.consents import name_of
from gateway.sessions.recents import FarMessage
from gateway.sessions.stopping import TurnStopping
from gateway.setaside.setaside import PutAside
from tests.agent_core.turns import gives

KEY = SessionKey("telegram", "1", "2")


def said(person: str = "7", text: str = "hello", **more: Any) -> FromChat:
    origin = ChatOrigin(ChatAddress("telegram", "1", "2"), ChatKind.PRIVATE, ChatPerson(person, "Ada"), message="1")
    return FromChat(
        account="telegram/1", platform_key="k", session=KEY, input=(InputMessage(text),), surface="telegram",
        memory_scope="s", chat=origin, **more,
    )  # fmt: skip


def answers(what: object) -> Any:
    async def answered(*_: object, **__: object) -> Any:
        if isinstance(what, Exception):
            raise what
        return what

    return answered


# ---------------------------------------------------------------------- who is meant


def person(number: str, name: str, account: str = "telegram/1") -> PersonRow:
    return PersonRow(account, number, PersonState.APPROVED, name)


PEOPLE = [person("1", "Ada"), person("2", "ada"), person("3", "Bob"), person("4", "3"), person("5", "Cleo", "slack/T")]


@pytest.mark.parametrize(
    ("words", "found"),
    [("Bob", "3"), ("@bob", "3"), ("3", "3"), ("1", "1"), ("Cleo", ""), ("nobody", ""), ("@U77", "U77"), ("@dora", "")],
)
def test_an_operators_words_mean_whom_they_name(words: str, found: str) -> None:
    where = Where(cast("Any", SimpleNamespace(people=gives(PEOPLE))), cast("Any", None), {})
    assert where._person("telegram/1", words) == found


@pytest.mark.parametrize(
    "error", [ValueError("ada99"), KeyError("channel"), CallFailed(Fate.REFUSED, "no such person")]
)
async def test_whatever_a_platform_makes_of_a_name_the_chat_with_them_is_there_or_is_not(error: Exception) -> None:
    """Who asks for a chat that is configured asks for others, too: they are held up by whatever is raised else."""

    async def private(_: str) -> str:
        raise error

    members = SimpleNamespace(people=gives(PEOPLE), accounts=("telegram/1",))
    outbox = SimpleNamespace(port_of=gives(SimpleNamespace(private=private)))
    with pytest.raises(CallFailed):
        await Where(cast("Any", members), cast("Any", outbox), {}).find("telegram/@ada99")


def test_a_name_that_several_have_means_nobody() -> None:
    where = Where(cast("Any", SimpleNamespace(people=gives(PEOPLE))), cast("Any", None), {})
    with pytest.raises(NoSuchChat, match="1, 2"):
        where._person("telegram/1", "Ada")


KINDS = st.builds(
    Kind, st.sampled_from(["a", "b"]), st.sampled_from([(), (("path", "x"),), (("path", "y"),)]), st.booleans(), st.sampled_from(["", "me"])
)  # fmt: skip


@given(KINDS, KINDS)
def test_two_consents_have_one_name_only_if_they_cover_the_same(one: Kind, other: Kind) -> None:
    assert (name_of(one) == name_of(other)) is (one == other)


def test_whose_share_a_message_counts_in_is_said_by_the_platform_or_the_door() -> None:
    assert person_of(said("7")) == "telegram/1/7" != person_of(said("8"))


# ---------------------------------------------------------------------- what is held


@given(st.integers(0, 10**13), st.text(max_size=20))
def test_what_is_held_is_read_as_it_was_stored(due: int, text: str) -> None:
    held = HeldMessage(due, text)
    command = held.command()
    read = HeldMessage.of(said(text=f"/{command.name} {command.words}"))
    assert read == held
    assert held.policy is (None if due else SessionPolicy.QUEUE), "what waited for room leaves alone what runs"


@pytest.mark.parametrize("room", [True, False])
def test_a_stop_takes_out_what_waits_for_its_time_and_all_of_it_takes_out_what_waits_for_room(*, room: bool) -> None:
    here = HeldHere()
    with (
        here.holding("a", 1) as one,
        here.holding("a", 2) as two,
        here.holding("b", 3) as other,
        here.lining_up("a", 2),
    ):
        assert here.take_out("a", room=room) == 1 + room
        assert (one.is_set(), two.is_set(), other.is_set()) == (True, room, False)
        assert here.take_out("a", room=room) == 0, "once"
        assert (here.next("a", 1), here.next("a", 2), here.next("a", 3)) == (True, True, False)
    assert here.lined_up("a") == 0


# ---------------------------------------------------------------------- what is gone


def test_of_a_conversation_that_is_gone_nothing_is_known() -> None:
    queues = Queues()
    queue = queues.at(KEY.text())
    queues.own(queue, "s1", 3)
    queue.prefs, queue.prefs_loaded, queue.memory_loaded = Prefs(model="m"), True, True
    queue.recent = cast("Any", ["a turn"])
    queue.waiting = [Waiting(1, 1, said(), 0)]
    queues.let_go(queue)
    assert (queue.session, queue.epoch, queue.waiting, queue.recent) == ("", 0, [], [])
    assert (queue.prefs, queue.prefs_loaded, queue.memory_loaded) == (Prefs(), False, False)
    assert queues.of("s1") is None


@pytest.mark.parametrize("dropped", [True, False])
async def test_a_stop_of_what_waits_says_whether_its_turn_had_begun(*, dropped: bool) -> None:
    told: list[int] = []
    message = Waiting(5, 5, said(), 0)
    queue = SimpleNamespace(running=None, key=KEY.text())
    runner = SimpleNamespace(take_out=gives(message))
    inbox = SimpleNamespace(drop=answers(None if dropped else Conflict("its turn has begun")))
    stopping = TurnStopping(
        cast("Any", SimpleNamespace(inbox=inbox)), cast("Any", SimpleNamespace(of=gives(queue), known=gives(None))), cast("Any", runner),
        cast("Any", SimpleNamespace(begun=lambda _, number: told.append(number))), *cast("Any", (None, None, None)),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    )  # fmt: skip
    outcome = await stopping.stop_message(cast("Any", SimpleNamespace(session="s", inbox_id=5)))
    assert outcome.stopped
    assert ("taken out of the queue" in outcome.words) is dropped
    assert told == [5], "nothing says any more that it waits"


@pytest.mark.parametrize("damaged", [True, False])
async def test_each_message_of_a_conversation_that_cannot_be_read_is_told_that_it_was_not_answered(
    *, damaged: bool
) -> None:
    told: list[tuple[object, int]] = []

    async def tell_anew(inbound: object, number: int, *_: object) -> None:
        told.append((inbound, number))
        raise Damaged("the new one cannot be written either")

    held = [Waiting(number, number, said(str(number)), 0) for number in (1, 2, 3)]
    queue = SimpleNamespace(waiting=held[:2], steers=held[2:])
    asides = SimpleNamespace(waiting=answers(Damaged("x") if damaged else [1, 2, 3, 4]), drop=answers(Damaged("x")))
    store = SimpleNamespace(asides=asides, inbox=SimpleNamespace(one=answers(None)))
    aside = PutAside(
        cast("Any", SimpleNamespace(of=gives(queue))), cast("Any", SimpleNamespace(tell_anew=tell_anew)),
        *cast("Any", (None, None, None, store, None, None)),
    )  # fmt: skip
    assert await aside._drop_waiting("s", cast("Any", None)) == len(told)
    assert [number for _, number in told] == ([1, 2, 3] if damaged else [1, 2, 3, 4])
    assert [one for one, _ in told[:3]] == [one.inbound for one in held]


@pytest.mark.parametrize("busy", [True, False])
@pytest.mark.parametrize("before", [0, 2])
async def test_of_what_waits_elsewhere_it_is_told_how_many_come_first(before: int, *, busy: bool) -> None:
    lane, number = "normal", 9
    pending = [SimpleNamespace(id=n, lane=lane) for n in (*range(before), number, 20)]
    pending.insert(0, SimpleNamespace(id=100, lane="command"))
    latest = [SimpleNamespace(state=TurnState.OPEN if busy else TurnState.CLOSED)]
    store = SimpleNamespace(
        inbox=SimpleNamespace(pending=answers(pending)), turns=SimpleNamespace(latest=answers(latest))
    )
    row: Any = SimpleNamespace(id=number, session="s", state=InboxState.NEW)
    found = await FarMessage(cast("Any", store), number, cast("Any", None))._queued(row)
    assert (found.position if found is not None else 0) == (before + 1 if before or busy else 0)
