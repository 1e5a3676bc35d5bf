"""What a command says and changes is stored in one, told to whoever has to know, and done once, whatever happens to the storage meanwhile."""

from __future__ import annotations

import asyncio
import gc
from asyncio import sleep as others_turn
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.store.sessions.rows import PlaceChange, SessionChange
from agent_core.store.store import Conflict, StorageUnavailable
from gateway.commands import carrying
from gateway.commands.carrying import ANEW, MOST_PIECES, PIECE_UNITS, ChatCommands, CommandReply, Request
from gateway.commands.registry import BY_NAME
from gateway.delivery.owners import Owner
from tests.store.support import FakeClock

KEY = SessionKey("telegram", "1", "2")
HERE, THERE = ChatAddress("telegram", "1", "2"), ChatAddress("discord", "1", "9")
SAID = FromChat(
    account="telegram/1", platform_key="m1", session=KEY, input=(), surface="telegram", memory_scope="",
    chat=ChatOrigin(HERE, ChatKind.PRIVATE, ChatPerson("2", "Ann"), "m1"),
)  # fmt: skip
SCHEDULE: Any = SimpleNamespace(schedule="remind:1")


class Kept:
    """The store, the outbox and all who are told, as far as a command touches them; `troubles` come before anything is stored."""

    def __init__(self, reply: CommandReply | Exception, *troubles: Exception) -> None:
        self.reply, self.troubles = reply, [*troubles]
        self.clock = FakeClock()
        self.stored: list[SessionChange] = []
        self.told: list[object] = []
        self.said: list[tuple[ChatAddress, str]] = []
        self.released: list[tuple[ChatAddress, bool]] = []
        self.asked = 0
        none: Any = None
        store = SimpleNamespace(sessions=self)
        self.commands = ChatCommands(
            self.handlers, cast("Any", store), cast("Any", SimpleNamespace(words=self)), self.clock, self.told.append,
            lambda: self.told.append("scheduled"), self.told.append, none, cast("Any", SimpleNamespace(of=self.language)),
        )  # fmt: skip

    async def language(self, *_: object) -> str:
        return ""

    async def handlers(self) -> Any:
        async def handler(_: Request) -> CommandReply:
            self.asked += 1
            if isinstance(self.reply, Exception):
                raise self.reply
            return self.reply

        return dict.fromkeys(BY_NAME, handler)

    async def respond(self, _s: str, _e: int, _id: int, change: SessionChange, _rows: object, _made: object) -> None:
        if self.troubles:
            raise self.troubles.pop(0)
        self.stored.append(change)

    def propose(self, address: ChatAddress, _owner: object, _origin: str, contents: Any) -> list[Any]:
        self.said += [(address, one.body.text) for one in contents]
        return []

    def release(self, address: ChatAddress, _origin: str, *, stored: bool) -> None:
        self.released.append((address, stored))

    async def carry_out(self, name: str = "new", *, admin: bool = False) -> None:
        request = Request(BY_NAME[name], "", SAID, 7, Owner("s1", 1), admin, own=KEY)
        async with self.commands:
            task = self.commands.begin(request)
            assert [*self.commands.in_hand] == [KEY.text()]
            await asyncio.wait({task})
        assert not len(self.commands.in_hand)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def passes(_: float) -> None: ...

    monkeypatch.setattr(carrying.asyncio, "sleep", passes)


@pytest.mark.parametrize(
    ("change", "schedules", "told"),
    [
        (SessionChange(), (), []),
        (SessionChange(policy="{}"), (), []),
        (SessionChange(forget=True), (), [KEY.text()]),
        (SessionChange(undo="t_1"), (), [KEY.text()]),
        (SessionChange(place=PlaceChange("a", "b")), (), [PlaceChange("a", "b")]),
        (SessionChange(), (SCHEDULE,), ["scheduled"]),
    ],
)
async def test_whoever_has_to_know_of_a_change_is_told_when_it_is_stored(
    change: SessionChange, schedules: tuple[Any, ...], told: list[object]
) -> None:
    kept = Kept(CommandReply("Done.", change, elsewhere=((THERE, "It was done."),), schedules=schedules))
    await kept.carry_out()
    assert (kept.stored, kept.told) == ([change], told)
    assert kept.said == [(HERE, "Done."), (THERE, "It was done.")]
    assert kept.released == [(HERE, True), (THERE, True)]


@pytest.mark.parametrize(("schedules", "asked"), [((), 1), ((SCHEDULE,), 2)])
async def test_what_another_has_done_is_done_and_what_changed_meanwhile_is_looked_at_anew(
    schedules: tuple[Any, ...], asked: int
) -> None:
    kept = Kept(CommandReply("Done.", schedules=schedules), Conflict("changed"))
    await kept.carry_out("remind")
    assert (kept.asked, len(kept.stored)) == (asked, asked - 1)
    assert kept.released[0] == (HERE, False), "what was not stored is not said"


async def test_what_changes_each_time_is_given_up() -> None:
    kept = Kept(CommandReply("Done.", schedules=(SCHEDULE,)), *[Conflict("changed")] * 9)
    await kept.carry_out("remind")
    assert (kept.asked, kept.stored) == (ANEW, [])


@pytest.mark.parametrize(("seconds", "stored"), [(30, 1), (90, 0)])
async def test_while_the_storage_is_away_a_command_waits_for_a_while(
    monkeypatch: pytest.MonkeyPatch, seconds: int, stored: int
) -> None:
    kept = Kept(CommandReply("Done."), *[StorageUnavailable("away")] * seconds)

    async def passes(pause: float) -> None:
        kept.clock.now += round(pause * 1000)

    monkeypatch.setattr(carrying.asyncio, "sleep", passes)
    await kept.carry_out()
    assert (len(kept.stored), kept.released, kept.asked) == (stored, [(HERE, bool(stored))], 1)


@pytest.mark.parametrize("admin", [True, False])
async def test_only_admins_have_admins_commands(*, admin: bool) -> None:
    kept = Kept(CommandReply("There."))
    await kept.carry_out("access", admin=admin)
    assert kept.said == [(HERE, "There." if admin else "Only admins may do that.")]


@pytest.mark.parametrize(
    ("error", "words"),
    [(NotAccepted("It is full.", NotAcceptedCode.QUEUE_FULL), "It is full."), (KeyError("x"), "{/new} failed")],
)
async def test_what_fails_is_said(error: Exception, words: str) -> None:
    kept = Kept(error)
    await kept.carry_out()
    assert kept.said[0][1].startswith(words)
    assert len(kept.stored) == 1, "and its message is done"


@pytest.mark.parametrize("name", ["stop", "new", "status", "hold", "happen", "post"])
async def test_what_a_person_wants_is_done_when_what_an_earlier_process_left_there_is_taken_up(name: str) -> None:
    """What the gateway gives itself waits for nothing: some of it is of what was left."""
    kept, waited = Kept(CommandReply("")), list[tuple[str, int]]()

    async def taken_up(key: str) -> None:
        waited.append((key, kept.asked))

    kept.commands._taken_up = taken_up
    await kept.carry_out(name)
    assert waited == ([] if BY_NAME[name].own else [(KEY.text(), 0)])
    assert kept.asked == 1


async def test_of_one_conversation_one_command_changes_something_at_a_time_and_what_only_tells_does_not_wait() -> None:
    kept, going, order = Kept(CommandReply("")), asyncio.Event(), list[str]()

    async def handlers() -> Any:
        async def slow(_: Request) -> CommandReply:
            order.append("begins")
            await going.wait()
            order.append("ends")
            return CommandReply("")

        async def tells(_: Request) -> CommandReply:
            order.append("told")
            going.set()
            return CommandReply("")

        return {"new": slow, "undo": slow, "status": tells}

    kept.commands._handlers = handlers
    async with kept.commands:
        tasks = {
            kept.commands.begin(Request(BY_NAME[name], "", SAID, number, Owner("s1", 1), admin=False, own=KEY))
            for number, name in enumerate(("new", "undo", "status"))
        }
        await asyncio.wait(tasks)
    assert order == ["begins", "told", "ends", "begins", "ends"]


@pytest.mark.parametrize("fails", [False, True])
async def test_whoever_changes_a_conversation_does_it_alone_whenever_the_next_ones_come(*, fails: bool) -> None:
    alone = Kept(CommandReply("")).commands.alone
    inside, most, over, done = 0, 0, asyncio.Event(), 0

    async def changes(key: str = "telegram/1/2//") -> None:
        nonlocal inside, most, done
        try:
            async with alone(key):
                inside += 1
                most = max(most, inside)
                await others_turn(0)
                await over.wait()
                over.clear()
                inside -= 1
                if fails:
                    raise Conflict("it was changed meanwhile")
        except Conflict:
            pass
        done += 1

    async with asyncio.timeout(2), asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(changes())
        await others_turn(0)
        over.set()
        while not done:
            await others_turn(0)
        group.create_task(changes())  # the second one has it now, and has just been let in
        for _ in range(5):
            await others_turn(0)
        assert inside == 1
        while done < 3:
            over.set()
            await others_turn(0)
    assert most == 1
    commands: Any = alone.__self__
    gc.collect()
    assert not len(commands._turns), "nothing is kept of who came once"


async def test_what_is_too_long_for_one_message_comes_in_several_and_what_is_cut_says_so() -> None:
    lines = [f"{number}. something that is remembered here" for number in range(300)]
    kept = Kept(CommandReply("\n".join(lines)))
    await kept.carry_out()
    assert all(len(words) <= PIECE_UNITS for _, words in kept.said)
    assert "\n".join(words for _, words in kept.said).split("\n") == lines, "nothing is left out"
    kept = Kept(CommandReply("\n".join(lines * 10)))
    await kept.carry_out()
    assert len(kept.said) == MOST_PIECES
    assert "characters are left out here" in kept.said[-1][1]
