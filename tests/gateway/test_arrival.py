"""What becomes of a chat's message on its way to a table: what is confirmed when, who may, and what a chat is told of an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import (
    Attachment,
    AttachmentKind,
    ChatAddress,
    ChatKind,
    ChatMessage,
    ChatOrigin,
    ChatPerson,
    Raw,
)
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.messages import InputMessage
from agent_core.store.store import StorageUnavailable
from gateway.chats.arrival import AGAIN_SECONDS, EDITED_MS, MARK, Arrivals, move_chat, storable
from gateway.people.access import PersonStanding
from gateway.people.routing import GroupRules
from gateway.queues import inbox
from gateway.queues.queue import Running
from gateway.queues.queues import Queues
from tests.store.support import FakeClock

CHAT = ChatAddress("telegram", "1", "2")
CURSOR = ("updates", "7")


def gives(value: object) -> Callable[..., object]:
    """Whatever it is asked."""

    def give(*_: object, **__: object) -> object:
        return value

    return give


def _own(own: object, *_: object) -> object:
    return own


class World:
    """All that an arrival asks, as it is told; and what was done, in its order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.said: list[str] = []
        self.free: list[bool] = []
        self.said_at: list[int] = []
        self.told: list[bool] = []
        self.looks: list[str] = []
        """What the database was asked beside what it stores."""
        self.counted: list[str] = []
        self.away = self.duplicate = False
        self.known: Any = None
        self.standing = PersonStanding.ALLOWED
        self.clock = FakeClock()
        directory = SimpleNamespace(settle=self._quiet, meet=self._quiet, session_of=_own, allowed=True)
        members = SimpleNamespace(
            directory=directory, rules_of=gives(GroupRules()), refusal=self._refusal,
            standing_of=self._standing, standing=self._standing, has_counted=self._has_counted,
            not_counted=lambda _, key: self.counted.remove(key),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        )  # fmt: skip
        messages = SimpleNamespace(
            take=self._take,
            edit=self._takes("edit"),
            held_command=gives(None),
            refuse=self._takes("refuse"),
        )
        commands = SimpleNamespace(take=self._commanded)
        unread = SimpleNamespace(keep=self._keep)
        outbox = SimpleNamespace(unstored=SimpleNamespace(say=self._say))
        store = SimpleNamespace(
            inbox=SimpleNamespace(by_key=self._by_key, move_cursor=self._takes("confirmed")),
            sessions=SimpleNamespace(by_key=self._no_session),
        )
        languages = SimpleNamespace(at_once=gives(""), in_chat=gives(""), of=self._no_language)
        self.queues = Queues()
        parts = (members, messages, commands, unread, self.queues, outbox, store, self.clock)
        self.arrivals = Arrivals(*cast("Any", parts), languages=cast("Any", languages))

    def _standing(self, *_: object) -> PersonStanding:
        return self.standing

    async def _quiet(self, *_: object) -> None:
        """Nothing is there."""

    async def _no_language(self, *_: object) -> str:
        return ""

    async def _by_key(self, *_: object) -> Any:
        self.looks.append("message")
        return self.known

    async def _no_session(self, *_: object) -> None:
        self.looks.append("session")

    async def _take(self, *_: object, only_new: bool = False) -> bool:
        new = await self._takes("take")()
        if only_new and self.known is not None:
            self.done.pop()
            return False
        return new

    def _has_counted(self, _: object, key: str) -> bool:
        return key in self.counted

    def _takes(self, what: str) -> Any:
        async def take(*_: object) -> bool:
            if self.away:
                raise StorageUnavailable("away")
            self.done.append(what)
            return True

        return take

    async def _commanded(self, *_: object, **__: object) -> tuple[Any, Any]:
        await self._takes("command")()
        return SimpleNamespace(duplicate=self.duplicate), None

    async def _keep(self, *_: object, tell: bool) -> None:
        self.told.append(tell)

    def _refusal(self, inbound: Any, *, free: bool, said_at: int) -> None:
        self.free.append(free)
        self.said_at.append(said_at)
        if not free and inbound.platform_key not in self.counted:
            self.counted.append(inbound.platform_key)

    def _say(self, *given: Any) -> bool:
        self.said.append(given[1].body.text)
        return True


def message(text: str = "hello", kind: ChatKind = ChatKind.PRIVATE, **more: Any) -> ChatMessage:
    return ChatMessage(origin=ChatOrigin(CHAT, kind, ChatPerson("7", "Ada"), message="1"), key="1", text=text, **more)


async def test_a_chat_is_told_once_of_an_outage_and_of_the_next_one_when_that_has_passed() -> None:
    world = World()
    for later, told in ((0.0, 1), (AGAIN_SECONDS + 1, 1)):
        world.away = True
        world.clock.now += round(later * 1000)
        for _ in range(3):
            with pytest.raises(NotAccepted):
                await world.arrivals.receive(message(), CURSOR)
            world.clock.now += round(AGAIN_SECONDS * 1000)
        assert len(world.said) == told, "it goes on"
        world.away = False
        await world.arrivals.receive(message(), CURSOR)
        world.said.clear()


async def test_a_chat_is_not_told_of_each_outage_where_one_follows_the_other() -> None:
    world = World()
    for seconds, told in ((0.0, 1), (1.0, 1), (AGAIN_SECONDS - 2.0, 1), (1.5, 2)):
        world.clock.now += round(seconds * 1000)
        world.away = True
        with pytest.raises(NotAccepted):
            await world.arrivals.receive(message(), CURSOR)
        world.away = False
        await world.arrivals.receive(message(), CURSOR)
        assert len(world.said) == told


def test_whatever_of_a_message_others_have_written_can_be_stored() -> None:
    odd = "a\ud800\x00b"
    person = ChatPerson(odd, odd, odd)
    files = (Attachment(AttachmentKind.FILE, odd, odd, odd),)
    origin = ChatOrigin(ChatAddress("slack", "1", odd, odd), ChatKind.GROUP, person, odd, files, odd, root=odd)
    made = storable(ChatMessage(origin=origin, key=odd, text=odd, command=odd, typed=odd))
    said = repr(made)
    assert ("\\ud800" in said, "\\x00" in said) == (False, False)
    assert said.count(f"a{MARK}{MARK}b") == repr(
        ChatMessage(origin=origin, key=odd, text=odd, command=odd, typed=odd)
    ).count("a\\ud800\\x00b")


async def test_nothing_is_confirmed_that_could_not_be_stored() -> None:
    world = World()
    world.away = True
    for one in (message(), message(edited=True), message(command="usage")):
        with pytest.raises(NotAccepted):
            await world.arrivals.receive(one, CURSOR)
    assert world.done == []
    world.away = False
    await world.arrivals.receive(message(edited=True), CURSOR)
    assert world.done == ["edit", "confirmed"]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("age_ms", "fresh"), [(0, True), (EDITED_MS - 1, True), (EDITED_MS, False), (None, False)])
async def test_an_edit_is_a_message_only_if_nothing_is_known_of_it_and_it_is_of_a_day(
    age_ms: int | None, *, fresh: bool, known: bool
) -> None:
    """An older one may have been answered and forgotten."""
    world = World()
    world.known = object() if known else None
    said_at = 0 if age_ms is None else world.clock.now - age_ms
    await world.arrivals.receive(message(kind=ChatKind.GROUP, for_us=True, edited=True, said_at=said_at), CURSOR)
    assert world.done == (["take"] if fresh and not known else ["edit", "confirmed"])


async def test_a_command_that_was_stored_before_is_confirmed() -> None:
    world = World()
    for duplicate in (False, True):
        world.duplicate = duplicate
        await world.arrivals.receive(message("", command="usage"), CURSOR)
    assert world.done == ["command", "command", "confirmed"], "the first one's mark is stored with it"


async def test_nobody_is_too_fast_to_stop_what_runs() -> None:
    world = World()
    for one in (message(), message("", command="usage"), message("", command="stop")):
        await world.arrivals.receive(one, CURSOR)
    assert world.free == [False, False, True]


async def test_how_fast_somebody_writes_is_counted_by_when_they_said_it() -> None:
    world = World()
    await world.arrivals.receive(message(said_at=5_000), CURSOR)
    assert world.said_at
    assert set(world.said_at) == {5_000}


async def test_a_new_message_is_not_looked_up_also_in_a_thread_of_ours() -> None:
    """Each look is a way to the database and back before it is stored."""
    world, thread = World(), replace(CHAT, thread="9")
    world.queues.own(world.queues.at(SessionKey("telegram", "1", "2", "9").text()), "s", 1)
    in_thread = ChatOrigin(thread, ChatKind.GROUP, ChatPerson("7", "Ada"), message="2")
    for one in (message(), message(command="usage"), ChatMessage(origin=in_thread, key="2", text="and?")):
        world.counted.clear()
        await world.arrivals.receive(one, CURSOR)
    assert (world.done, world.looks) == (["take", "command", "take"], [])
    elsewhere = replace(in_thread, address=replace(thread, thread="10"))
    await world.arrivals.receive(ChatMessage(origin=elsewhere, key="3", text="not for the bot"), CURSOR)
    assert (world.done[3:], world.looks) == (["confirmed"], ["session"])


async def test_what_is_stored_already_is_looked_up_then_and_takes_nothing_of_its_persons_rate() -> None:
    world = World()
    world.known = SimpleNamespace(body=b"{}")
    await world.arrivals.receive(message(), CURSOR)
    assert (world.done, world.looks, world.counted, world.free) == (["take"], ["message"], [], [False, True])
    world.counted.append("1")  # it came here a moment ago
    await world.arrivals.receive(message(), CURSOR)
    assert (world.looks, world.counted, world.free[2:]) == (["message"] * 2, ["1"], [True])


async def test_who_has_no_standing_is_told_nothing_of_what_could_not_be_read_or_stored() -> None:
    world = World()
    raw = Raw(key="1", body=b"{}", address=CHAT, person="7", for_us=True)
    await world.arrivals.keep("telegram/1", raw, "it is odd", CURSOR)
    world.standing, world.away = PersonStanding.STRANGER, True
    await world.arrivals.keep("telegram/1", raw, "it is odd", CURSOR)
    assert world.told == [True, False]
    with pytest.raises(NotAccepted):
        await world.arrivals.receive(message(), CURSOR)
    assert world.said == []


async def test_who_is_not_meant_is_not_told_of_an_outage() -> None:
    world, refused = World(), NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)
    world.arrivals.waits(message(kind=ChatKind.GROUP), refused)
    assert world.said == []
    world.arrivals.waits(message(kind=ChatKind.GROUP, for_us=True), refused)
    assert len(world.said) == 1


async def test_the_pictures_of_an_album_are_for_us_with_the_one_that_says_so_and_those_of_others_are_not() -> None:
    world = World()

    def picture(person: str, *, for_us: bool = False) -> ChatMessage:
        origin = ChatOrigin(CHAT, ChatKind.GROUP, ChatPerson(person, "Ada"), message="1", group="album")
        return ChatMessage(origin=origin, key=person, text="", for_us=for_us)

    await world.arrivals.receive(picture("7", for_us=True), CURSOR)
    await world.arrivals.receive(picture("7"), CURSOR)
    assert world.done == ["take", "take"]
    await world.arrivals.receive(picture("8"), CURSOR)
    assert world.done == ["take", "take", "confirmed"]


async def test_a_chat_with_another_id_has_it_in_the_store_in_memory_and_where_it_is_shown() -> None:
    moved: list[tuple[str, ...]] = []

    async def stored(*what: str) -> list[str]:
        moved.append(("stored", *what))
        return ["telegram/1/-9//", "telegram/1/-9/3/"]

    def files(*what: str) -> None:
        moved.append(("files", *what))

    queues = Queues()
    mine, other = queues.at("telegram/1/5//"), queues.at("telegram/1/6//")
    queues.own(mine, "s1", 1)
    queues.own(other, "s2", 1)
    store: Any = SimpleNamespace(sessions=SimpleNamespace(move_chat=stored))
    outbox: Any = SimpleNamespace(surfaces=SimpleNamespace(move=lambda *what: moved.append(("shown", *what))))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    over = asyncio.get_running_loop().create_future()
    mine.running = Running(cast("Any", None), (), over=over)
    await move_chat(store, queues, outbox, files, ChatAddress("telegram", "1", "5"), "-9")
    assert moved == [
        ("stored", "telegram/1/", "5", "-9"),
        ("shown", "telegram", "1", "5", "-9"),
        ("stored", "telegram/1/", "5", "-9"),
        ("files", "telegram/1/5/3/", "telegram/1/-9/3/"),
    ], "what is stored under the old id meanwhile moves as well"
    over.set_result(None)
    await asyncio.sleep(0)
    assert moved[4:] == [("files", "telegram/1/5//", "telegram/1/-9//")], "tools of a running turn are at work there"
    assert (mine.key, other.key) == ("telegram/1/-9//", "telegram/1/6//")
    assert queues.known("telegram/1/-9//") is mine


@pytest.mark.parametrize("kind", ChatKind)
@pytest.mark.parametrize("stored", ["nothing", "readable", "unreadable"])
def test_what_comes_again_stays_in_the_conversation_in_which_it_was_when_it_came_first(
    kind: ChatKind, stored: str
) -> None:
    """In a private chat another one may go on there by now."""
    origin, own = message(kind=kind).origin, SessionKey("telegram", "1", "2")
    then = SessionKey("telegram", "1", "2", "", "earlier")
    said = FromChat(
        account="telegram/1", platform_key="1", session=then, input=(InputMessage("hello"),), surface="telegram", memory_scope="",
        chat=origin,
    )  # fmt: skip
    row: Any = (
        None if stored == "nothing" else SimpleNamespace(body=inbox.encode(said) if stored == "readable" else b"{")
    )
    there = World().arrivals._session(own, origin, row)
    assert there == (then if stored == "readable" and kind is ChatKind.PRIVATE else own)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (message("Hello."), "Hello."),
        (message("in 5 minutes tea", command="remind"), "/remind in 5 minutes tea"),
        (message("", command="stop"), "/stop"),
        (message("all", command="stop", typed="!stop all"), "!stop all"),
    ],
)
async def test_what_waits_says_all_that_its_person_wrote_there_last_also_where_that_looks_like_a_command(
    edit: ChatMessage, words: str
) -> None:
    """It was taken as words, and a command that stands in an edit is not carried out."""
    world, reworded = World(), list[Any]()

    async def taken(inbound: FromChat, stored: object) -> None:
        assert stored is world.known
        reworded.append(inbound.input[0].content)

    world.known = SimpleNamespace(body=b"")
    cast("Any", world.arrivals)._messages.edit = taken
    await world.arrivals.receive(replace(edit, edited=True), CURSOR)
    assert (reworded, world.done) == ([words], ["confirmed"])
