"""Commands about what is a person's own: what is remembered, files, accounts, approvals, reminders. What they ask and change is noted, below the chat."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.limits.quotas import QuotaKind
from agent_core.messages import InputMessage
from agent_core.remembered import Remembered
from agent_core.store.people.rows import LinkCode, LinkOutcome, LinkRow, Redeemed
from agent_core.store.schedules.rows import OccurrenceOutcome, ScheduleRow, ScheduleState
from agent_core.store.sessions.rows import PlaceChange, SessionChange
from gateway.commands import timed
from gateway.commands.approvals import ApprovalCommands
from gateway.commands.carrying import Request
from gateway.commands.files import files_command
from gateway.commands.memories import MemoryCommands
from gateway.commands.people import PeopleCommands
from gateway.commands.posts import Post, encode_post
from gateway.commands.registry import BY_NAME
from gateway.commands.timed import TimedCommands
from gateway.config.types import SessionPolicy
from gateway.delivery.owners import Owner
from gateway.limits.standing import Standings
from gateway.people.instructions import MOST_CHARS
from gateway.schedule import schedules, times
from gateway.schedule.schedules import Happening, Plan, ScheduleKind
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

KEY = SessionKey("telegram", "1", "2")
HERE = ChatAddress("telegram", "1", "2")
NONE: Any = None
HOUR = 3_600_000


def wrote(name: str = "", *, kind: ChatKind = ChatKind.PRIVATE, session: SessionKey = KEY) -> FromChat:
    return FromChat(
        account="telegram/1", platform_key="m1", session=session, input=(InputMessage(f"/{name}"),), surface="telegram",
        memory_scope="telegram/1/2//", chat=ChatOrigin(HERE, kind, ChatPerson("2", "Ann"), "m1"),
    )  # fmt: skip


def request(
    name: str, words: str = "", *, inbound: FromChat | None = None, received_at: int = 0, own: SessionKey = KEY
) -> Request:
    return Request(
        BY_NAME[name], words, inbound or wrote(name), 7, Owner("s1", 3), admin=False, own=own, received_at=received_at
    )  # fmt: skip


# ---------------------------------------------------------------------- what is remembered


class Memory:
    """What is remembered, by scope and name; and whose room is to be counted anew."""

    def __init__(self, *kept: tuple[str, str]) -> None:
        self.kept = {(scope, name): f"{name} of {scope}" for scope, name in kept}
        self.counted: list[str] = []
        self.said: list[str] = []

    async def remembered(self, scopes: Sequence[str], _query: str = "") -> tuple[list[Remembered], int]:
        found = [Remembered(scope, name, text, 0) for (scope, name), text in self.kept.items() if scope in scopes]
        return found, len(found)

    async def entries(self, scope: str, _kind: str) -> list[tuple[str, str, int]]:
        return [(name, text, 0) for (one, name), text in self.kept.items() if one == scope]

    async def delete(self, scope: str, _kind: str, name: str) -> bool:
        return self.kept.pop((scope, name), None) is not None

    async def one(self, _: str) -> Any:
        return SimpleNamespace(policy=None)

    async def lines(self, *_: object) -> tuple[str, ...]:
        return ()

    async def write(self, _scope: str, _browser: str, text: str) -> None:
        self.said.append(text)

    async def read(self, _scope: str) -> str:
        return self.said[-1] if self.said else ""

    async def do(self, name: str, words: str, *writers: str, inbound: FromChat | None = None) -> str:
        store: Any = SimpleNamespace(memory=self, sessions=self)
        quotas: Any = SimpleNamespace(changed=self.counted.append, lines=self.lines)
        commands = MemoryCommands(store, quotas, Standings(), frozenset(writers), cast("Any", self))
        return (await commands.handlers()[name](request(name, words, inbound=inbound))).words


OWN, ALL_OF_US = "telegram/1/2//", "everybody"


@pytest.mark.parametrize("writers", [("telegram/1/2",), ("telegram/1/8",), ()])
async def test_what_is_for_everybody_is_removed_by_those_alone_who_may_write_it(writers: tuple[str, ...]) -> None:
    from agent_core.remembered import EVERYBODY

    may = "telegram/1/2" in writers
    memory = Memory((OWN, "a"), (EVERYBODY, "b"), (EVERYBODY, "a"))
    await memory.do("forget", "a", *writers)
    assert [*memory.kept] == [(EVERYBODY, "b"), (EVERYBODY, "a")], "one's own first"
    words = await memory.do("forget", "b", *writers)
    assert ((EVERYBODY, "b") not in memory.kept) is may
    assert ("for everybody" in words) is bool(writers)
    await memory.do("forget", "all", *writers)
    assert (EVERYBODY, "a") in memory.kept, "all is what is one's own"
    assert memory.counted == ["telegram/1/2"] * 3, "the room is theirs again"


async def test_all_of_one_s_own_is_forgotten_and_nothing_of_others() -> None:
    memory = Memory(*[(OWN, f"n{number}") for number in range(230)], ("telegram/1/8//", "n1"))
    assert "230 things" in await memory.do("forget", "ALL")
    assert [*memory.kept] == [("telegram/1/8//", "n1")]


@pytest.mark.parametrize(
    ("words", "said"),
    [("Be brief.", ["Be brief."]), ("OFF", [""]), ("none", [""]), ("", []), ("x" * (MOST_CHARS + 1), [])],
)
async def test_instructions_are_said_shown_and_taken_back(words: str, said: list[str]) -> None:
    memory = Memory()
    told = await memory.do("instructions", words)
    assert memory.said == said
    assert ("I am told this" in told) is (said == ["Be brief."])
    assert (await memory.do("instructions", words, inbound=wrote(kind=ChatKind.GROUP))).startswith(
        "Your instructions are"
    )
    assert memory.said == said


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("", {"a.txt", "b.txt"}),
        ("delete a.txt", {"b.txt"}),
        ("delete all", set[str]()),
        ("delete c", {"a.txt", "b.txt"}),
    ],
)
async def test_files_are_shown_and_deleted_and_their_room_is_counted_anew(
    tmp_path: Path, words: str, left: set[str]
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("x")
    counted: list[str] = []

    async def lines(_: object, kinds: tuple[QuotaKind, ...]) -> tuple[str, ...]:
        assert QuotaKind.MEMORY not in kinds
        return (f"counted {len(counted)} times",)

    quotas: Any = SimpleNamespace(workspace=gives(tmp_path), changed=counted.append, files_of=gives(2), lines=lines)
    told = (await files_command(quotas)(request("files", words))).words
    assert {one.name for one in tmp_path.iterdir()} == left
    assert told.endswith("counted 1 times"), "before it is said how much there is"


async def test_a_folder_goes_with_the_last_file_in_it(tmp_path: Path) -> None:
    """It counts, and is of no use to anybody."""
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    for name in ("deep/a.txt", "deep/deeper/b.txt"):
        (tmp_path / name).write_text("x")

    async def lines(*_: object) -> tuple[str, ...]:
        return ()

    quotas: Any = SimpleNamespace(workspace=gives(tmp_path), changed=gives(None), files_of=gives(0), lines=lines)
    for name, left in (("deep/deeper/b.txt", ["deep", "deep/a.txt"]), ("deep/a.txt", [])):
        await files_command(quotas)(request("files", f"delete {name}"))
        assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")) == left


async def test_what_could_not_be_deleted_is_not_said_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("x")
    monkeypatch.setattr("gateway.commands.files.empty_tree", gives(None))

    async def lines(*_: object) -> tuple[str, ...]:
        return ()

    quotas: Any = SimpleNamespace(workspace=gives(tmp_path), changed=gives(None), files_of=gives(0), lines=lines)
    assert (await files_command(quotas)(request("files", "delete all"))).words == "1 files could not be deleted."


# ---------------------------------------------------------------------- approvals


@pytest.mark.parametrize(
    ("words", "ended"),
    [("revoke 1", [0]), ("revoke 2", [1]), ("revoke all", [0, 1, 2]), ("revoke 4", []), ("revoke 0", []), ("", [])],
)
async def test_the_approval_that_is_named_is_taken_back(words: str, ended: list[int]) -> None:
    standing = [SimpleNamespace(words=gives(f"call {number}")) for number in range(3)]
    gone: list[int] = []

    async def found(*_: object) -> list[Any]:
        return standing

    async def end(_inbound: object, one: Any) -> None:
        gone.append(standing.index(one))

    async def memory(_: object) -> None: ...

    commands = ApprovalCommands(
        cast("Any", SimpleNamespace(standing=found, end=end)), cast("Any", SimpleNamespace(memory=memory))
    )
    told = (await commands.approvals(request("approvals", words))).words
    assert gone == ended
    assert [f"Taken back: call {number}" in told for number in range(3)] == [number in ended for number in range(3)]


# ---------------------------------------------------------------------- accounts

ME, OTHER = LinkRow("telegram/1", "2", "h", "Ann", ""), LinkRow("discord/1", "9", "h", "ann_d", "")


class People:
    """Accounts that are joined, and what is done about them."""

    def __init__(
        self, outcome: LinkOutcome = LinkOutcome.JOINED, wait: int = 0, running: FromChat | None = None
    ) -> None:
        self.did: list[object] = []
        self.known: set[str] = set()
        self.stored: set[str] = set()

        def same_chat(inbound: FromChat) -> bool:
            return running is not None and running.chat.address == inbound.chat.address

        def known(key: str) -> object:
            return queue if key in self.known else None

        def forgets(key: str) -> None:
            self.did.append(("forgets", key))

        turn = SimpleNamespace(same_chat=same_chat) if running is not None else None
        queue = SimpleNamespace(running=turn, epoch=5, waiting=())
        queues = SimpleNamespace(
            known=known, forget_memory=forgets, release=gives(None)
        )  # fmt: skip
        code = LinkCode("ABCDE", "discord/1", "9", "ann_d", "", "discord/1/9/", 0)

        async def redeem(words: str, *_: object) -> Redeemed:
            self.did.append(("redeem", words))
            return Redeemed(outcome, code if outcome is LinkOutcome.JOINED else None)

        async def unlink(*who: str) -> list[Any]:
            self.did.append(("unlink", *who))
            return [SimpleNamespace(continues="x", place="y")]

        async def owned(*_: object) -> Any:
            return queue

        directory = SimpleNamespace(
            allowed=True, owns=gives(True), joined=gives((OTHER, ME)), wait_ms=gives(wait), redeem=redeem, unlink=unlink,
            pointed=self.did.append,
        )  # fmt: skip
        stopping = SimpleNamespace(queues=queues, stop=self.stop)
        messages = SimpleNamespace(submit_or_hold=self.submit)
        store = SimpleNamespace(
            sessions=SimpleNamespace(change=self.change, by_key=self.by_key),
            inbox=SimpleNamespace(by_key=self.taken),
        )
        self.commands = PeopleCommands(
            cast("Any", SimpleNamespace(directory=directory)), cast("Any", SimpleNamespace(queues=queues, owned=owned)),
            cast("Any", stopping), cast("Any", messages), NONE, cast("Any", store), FakeClock(),
        )  # fmt: skip

    async def taken(self, _account: str, key: str) -> object:
        return key if key in self.stored else None

    async def stop(self, key: SessionKey) -> None:
        self.did.append(("stop", key.text()))

    async def submit(self, inbound: FromChat, key: str, words: str, _: object) -> bool:
        self.did.append(("submit", inbound.session.text(), inbound.memory_scope, key, words))
        return True

    async def change(self, session: str, epoch: int, change: SessionChange) -> None:
        self.did.append((session, epoch, change))

    async def by_key(self, key: str) -> Any:
        return SimpleNamespace(key=key, session="s_own")

    def cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def cut_off(_stopping: object, _outbox: object, places: Sequence[object]) -> None:
            self.did.append(("cut", len(places)))

        monkeypatch.setattr("gateway.commands.people.cut_off", cut_off)


@pytest.mark.parametrize("outcome", LinkOutcome)
async def test_whoever_asked_for_a_code_is_told_there_that_it_was_used(outcome: LinkOutcome) -> None:
    people = People(outcome)
    reply = await people.commands.handlers()["link"](request("link", "abc-de"))
    assert people.did == [("redeem", "abc-de")]
    there = [address.text() for address, _ in reply.elsewhere]
    assert there == (["discord/1/9/"] if outcome is LinkOutcome.JOINED else [])


async def test_who_was_wrong_too_often_tries_no_code() -> None:
    people = People(wait=61_000)
    reply = await people.commands.handlers()["link"](request("link", "abc-de"))
    assert (people.did, reply.words) == ([], "Too many wrong codes. Try again in 2 minutes.")


@pytest.mark.parametrize(
    ("words", "out"),
    [("", ("telegram/1", "2")), ("1", ("discord/1", "9")), ("2.", ("telegram/1", "2")), ("3", None), ("0", None)],
)
async def test_the_account_that_is_named_is_taken_out_and_cut_off(
    monkeypatch: pytest.MonkeyPatch, words: str, out: tuple[str, str] | None
) -> None:
    people = People()
    people.cut(monkeypatch)
    await people.commands.handlers()["unlink"](request("unlink", words))
    assert people.did == ([("unlink", *out), ("cut", 1)] if out else [])


@pytest.mark.parametrize("there", [HERE, ChatAddress("discord", "1", "9"), None])
@pytest.mark.parametrize("words", ["", "hello"])
async def test_a_chat_goes_back_to_its_own_conversation_which_begins_anew_and_the_other_stays(
    words: str, there: ChatAddress | None
) -> None:
    visited, own = SessionKey("discord", "1", "9"), KEY
    running = replace(wrote(), chat=replace(wrote().chat, address=there)) if there else None
    people = People(running=running)
    people.known.add(visited.text())
    inbound = wrote("new", session=visited)
    await people.commands.leave(request("new", words, inbound=inbound, own=own))
    change = PlaceChange(own.text(), None)
    assert people.did[:2] == [("s1", 3, SessionChange(place=change)), change]
    stopped = [("stop", visited.text())] if there == HERE else []
    anew: list[object] = [("stop", own.text()), ("s_own", 5, SessionChange(forget=True)), ("forgets", own.text())]
    asked = [("submit", own.text(), own.text(), "new:m1", "hello")] if words else []
    assert people.did[2:] == stopped + anew + asked


async def test_going_back_with_words_that_a_death_left_stored_does_not_stop_their_answer() -> None:
    people = People()
    people.stored.add("new:m1")
    await people.commands.leave(request("new", "hello", inbound=wrote("new"), own=KEY))
    own = PlaceChange(KEY.text(), None)
    submitted = ("submit", KEY.text(), KEY.text(), "new:m1", "hello")
    assert people.did == [("s1", 3, SessionChange(place=own)), own, submitted]


# ---------------------------------------------------------------------- reminders, and what is due


class Timed:
    """What is set in a conversation, and the message that a prompt becomes."""

    def __init__(self, *rows: ScheduleRow, waiting: Sequence[str] = (), refusals: Sequence[NotAccepted] = ()) -> None:
        self.clock, self.rows, self.refusals = FakeClock(), [*rows], [*refusals]
        self.submitted: list[tuple[Any, ...]] = []
        self.proposed: list[str] = []
        self.done: set[str] = set()
        queue = SimpleNamespace(waiting=[SimpleNamespace(inbound=SimpleNamespace(platform_key=key)) for key in waiting])
        store = SimpleNamespace(
            schedules=SimpleNamespace(of=self.of), memory=SimpleNamespace(entries=self.entries), inbox=SimpleNamespace(by_key=self.by_key),
            left_out=gives(False),
        )  # fmt: skip
        words = SimpleNamespace(propose=self.propose)
        forming = SimpleNamespace(final=self.final)
        outbox = SimpleNamespace(words=words, port_of=gives(SimpleNamespace(parts=None)), forming=forming)
        self.commands = TimedCommands(
            cast("Any", SimpleNamespace(known=gives(queue))), cast("Any", store), cast("Any", outbox),
            cast("Any", SimpleNamespace(submit=self.submit)), self.clock, "UTC", most=3,
        )  # fmt: skip

    async def of(self, _key: str, *kinds: str) -> list[ScheduleRow]:
        return [row for row in self.rows if row.kind in kinds]

    async def entries(self, *_: object) -> list[Any]:
        return []

    async def by_key(self, _: str, key: str) -> object:
        return key if key in self.done else None

    def propose(self, _a: object, _o: object, origin: str, _c: object) -> list[Any]:
        self.proposed.append(origin)
        return []

    async def final(self, _parts: object, text: str) -> Sequence[Any]:
        return ()

    async def submit(self, _inbound: object, key: str, words: str, policy: object, *, foreign: str) -> bool:
        if self.refusals:
            raise self.refusals.pop(0)
        self.submitted.append((key, words, policy, foreign))
        return True

    async def do(self, name: str, words: str, received_at: int = 0) -> Any:
        return await self.commands.handlers()[name](request(name, words, received_at=received_at or self.clock.now))


def plan(words: str = "tea", **more: Any) -> Plan:
    return Plan(words, wrote().chat, "UTC", **more)


def set_row(number: int, kind: str = "reminder") -> ScheduleRow:
    return ScheduleRow(
        schedule=f"remind:{number}", kind=kind, session_key=KEY.text(), surface=HERE.text(), number=number,
        rule=times.encode(times.Once(FakeClock().now + HOUR)), body=schedules.encode(plan()), next_at=FakeClock().now + HOUR, at=0,
    )  # fmt: skip


def happening(**more: Any) -> Happening:
    now = FakeClock().now
    given: dict[str, Any] = {
        "kind": ScheduleKind.PROMPT, "schedule": "remind:4", "outcome": OccurrenceOutcome.RUN, "due": now, "last": now, "count": 1,
        "late_ms": 0, "plan": plan(),
    }  # fmt: skip
    return Happening(**{**given, **more})


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter(range(20))

    async def passes(_: float) -> None:
        assert next(left, None) is not None, "it is tried for ever"

    monkeypatch.setattr(timed.asyncio, "sleep", passes)


@pytest.mark.parametrize("late", [0, 1_000_000])
async def test_a_reminder_counts_from_when_it_was_asked_for_however_late_its_command_is(late: int) -> None:
    one = Timed()
    asked = one.clock.now
    one.clock.now += late
    (row,) = (await one.do("remind", "in 20 minutes tea", asked)).schedules
    assert (row.next_at, row.number, row.schedule) == (asked + 1_200_000, 1, "remind:7")
    (row,) = (await one.do("remind", "every 15 minutes tea", asked)).schedules
    assert row.next_at == asked + 900_000


@pytest.mark.parametrize(
    ("words", "gone"), [("cancel 2", [2]), ("cancel all", [1, 2]), ("cancel 3", []), ("cancel 9", [])]
)
async def test_a_person_takes_back_reminders_of_theirs_and_no_task_and_nothing_that_is_configured(
    words: str, gone: list[int]
) -> None:
    one = Timed(set_row(1), set_row(2), set_row(3, "task"), set_row(0, "prompt"))
    changed = (await one.do("remind", words)).schedules
    assert [row.number for row in changed] == gone
    assert {row.state for row in changed} <= {ScheduleState.CANCELLED}


async def test_numbers_go_on_and_there_is_a_most_in_which_tasks_do_not_count() -> None:
    one = Timed(set_row(1), set_row(7, "task"), set_row(2))
    (row,) = (await one.do("remind", "in 20 minutes tea")).schedules
    assert row.number == 8
    one.rows.append(row)
    reply = await one.do("remind", "in 20 minutes tea")
    assert reply.schedules == ()
    assert reply.words.startswith("There are 3 reminders here already, and no more are possible.")


@pytest.mark.parametrize("tainted", [True, False])
async def test_a_prompt_that_is_due_waits_its_turn_once_and_is_nobodys_words(*, tainted: bool) -> None:
    from agent_core.rules.taint import PLANTED

    away = NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)
    one = Timed(refusals=[away, away])
    due = happening(plan=plan(tainted=tainted))
    reply = await one.do("happen", schedules.encode_happening(due))
    key = f"scheduled:remind:4:{due.due}"
    assert one.submitted == [(key, schedules.prompt_words(due), SessionPolicy.QUEUE, PLANTED if tainted else "")]
    assert one.proposed == ["inbox:7"], "its place is before the answer's"
    assert [one.body.text for one in reply.contents] == ["⏰ Scheduled: tea"]


@pytest.mark.parametrize(
    ("waiting", "done", "runs"),
    [
        ("scheduled:remind:4:1", False, False),
        ("scheduled:remind:4:1", True, True),
        ("scheduled:remind:44:1", False, True),
        ("m2", False, True),
    ],
)
async def test_a_prompt_is_missed_while_the_one_before_it_still_waits(waiting: str, *, done: bool, runs: bool) -> None:
    one, due = Timed(waiting=[waiting]), happening()
    if done:
        one.done.add(f"scheduled:remind:4:{due.due}")
    reply = await one.do("happen", schedules.encode_happening(due))
    assert (len(one.submitted) == 1, "still waits for its turn" in reply.words) == (runs, not runs)


@pytest.mark.parametrize("kind", ScheduleKind)
async def test_what_is_missed_is_said_and_not_done(kind: ScheduleKind) -> None:
    one = Timed()
    missed = happening(kind=kind, outcome=OccurrenceOutcome.MISSED)
    reply = await one.do("happen", schedules.encode_happening(missed))
    assert (one.submitted, reply.words) == ([], schedules.missed_words(missed))


async def test_a_prompt_that_is_refused_for_good_is_missed() -> None:
    one = Timed(refusals=[NotAccepted("Your budget is used up.", NotAcceptedCode.QUOTA)])
    reply = await one.do("happen", schedules.encode_happening(happening()))
    assert "(Your budget is used up.)" in reply.words


async def test_what_whoever_runs_the_gateway_says_comes_with_its_files() -> None:
    reply = await Timed().do("post", encode_post(Post("", ((Path("/spool/a"), "a.txt"), (Path("/spool/b"), "b.txt")))))
    assert [(one.file, one.file_name) for one in reply.contents] == [("/spool/a", "a.txt"), ("/spool/b", "b.txt")]


async def test_what_is_said_on_a_page_is_said_in_the_words_that_it_came_in() -> None:
    page = FromApi(
        account="web", platform_key="k", session=SessionKey("web", "page", "s"), input=(), surface="web", memory_scope="web"
    )  # fmt: skip
    asked: Any = SimpleNamespace(inbound=page, words=encode_post(Post("It has *ended*.")))
    reply = await Timed().commands.handlers()["post"](asked)
    assert (reply.words, reply.contents) == ("It has *ended*.", ())


def test_handlers_are_named_as_the_commands() -> None:
    named: Mapping[str, Awaitable[Any]] = cast("Any", Timed().commands.handlers())
    assert {*named} <= {*BY_NAME}
