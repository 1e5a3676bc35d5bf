"""What is removed and what stays: whom a job of forgetting stops and waits for, and which folders an upkeep leaves alone."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, SessionKey
from adapters.contract.chat import Attachment, AttachmentKind
from agent_core.documents.kinds import FileKind
from agent_core.journal.rows import encode
from agent_core.limits.reckoning import Reckoning
from agent_core.limits.retention import DAY_MS, Keep
from agent_core.messages import GATEWAY_PREFIX, InputMessage
from agent_core.ports import SystemIds
from agent_core.store.keeping.forgetting import ForgettingJob
from agent_core.store.store import StorageUnavailable
from agent_core.store.turns.rows import JournalRow
from agent_core.tools.base import UNLIMITED
from gateway.chats.attachments import _taken, notes_of, put
from gateway.chats.enclosed import Enclosed, _kept
from gateway.chats.readout import Readout
from gateway.queues.queue import Waiting
from gateway.retention import forgetting
from gateway.retention.forgetting import Forgetting, ForgettingResult, Quiet
from gateway.retention.upkeep import GOING, FilePlaces, Upkeep
from tests.agent_core.turns import opened as turn_opened
from tests.store.support import FakeClock

JOB = ForgettingJob("f_1", (("api", "ada"), ("web", "ada")), 1_000, None)


def said(person: str, number: int, received_at: int = 900) -> Waiting:
    inbound = FromApi(
        account="api", platform_key=f"k{number}", session=SessionKey("api", "x", "s"), input=(), surface="api", memory_scope=f"api/{person}"
    )  # fmt: skip
    return Waiting(number, number, inbound, received_at)


async def test_what_they_said_before_is_stopped_and_nothing_of_others_or_of_later() -> None:
    queue: Any = SimpleNamespace(
        waiting=[said("ada", 1), said("ben", 2), said("ada", 3, received_at=1_001)], running=SimpleNamespace(messages=(said("ada", 4),)),
        memory_loaded=True, recent_loaded=True, prefs_loaded=True, recent=[1],
    )  # fmt: skip
    stopped: list[int] = []
    forgot: list[int] = []

    async def stop(_: object, message: Waiting) -> None:
        stopped.append(message.inbox_id)

    await Quiet([queue], stop, lambda: forgot.append(len(stopped)))(JOB)
    assert (stopped, forgot) == ([1, 4], [2])
    still = (queue.memory_loaded, queue.recent_loaded, queue.prefs_loaded, queue.recent)
    assert still == (False, False, False, []), "it is read anew"


READ = [
    Readout(FileKind.PDF, "", about="2 pages", text="What is in it"),
    Readout(FileKind.TEXT, "", text="plain words", plain=True),
    Readout(FileKind.PICTURE, "image/png", native=True),
    Readout(FileKind.PACKED, "", why="it is locked with a password"),
]


@pytest.mark.parametrize(
    "name", ["cat.png", "report v1. final, its text as x.pdf", "; it is in your workspace as dog.png.].png", "ü"]
)
@pytest.mark.parametrize("kind", [AttachmentKind.FILE, AttachmentKind.VOICE])
@pytest.mark.parametrize("found", READ)
async def test_files_that_they_brought_into_a_folder_with_others_go_whatever_is_told_of_them(
    tmp_path: Path, found: Readout, kind: AttachmentKind, name: str
) -> None:
    """Of a chat as of a page: what was read, heard or could not be read, and the text that was put beside it."""
    kept, key = Kept(), "telegram/1/-5//"
    root = tmp_path / "work" / forgetting.folder_name(key)
    root.mkdir(parents=True)
    (root / "dog.png").write_bytes(b"of somebody else")
    text = found.text.encode() if found.text and not found.plain else b""
    path, beside = await put(root, UNLIMITED, name, b"of a chat", text)
    of_chat = _taken(Attachment(kind, "ref", name), found, b"of a chat", path, beside)
    found = replace(found, text=found.text and f"{found.text} as well")
    of_page = await _kept(Enclosed(name, "", b"of a page"), found, root, UNLIMITED)
    assert len([*root.iterdir()]) == (5 if text else 3)
    words = f"look\n\n{GATEWAY_PREFIX} {notes_of([of_chat, of_page])}"
    event = encode(replace(turn_opened(), input=(InputMessage(words),)))
    kept.store.turns.journal = gives_later([JournalRow(0, event.kind, event.body, 5)])
    kept.store.sessions = SimpleNamespace(one=gives_later(SimpleNamespace(key=key)))
    await of(kept, tmp_path).finish(JOB)
    assert [one.name for one in root.iterdir()] == ["dog.png"]


def gives_later(what: Any) -> Callable[..., Awaitable[Any]]:
    async def given(*_: object) -> Any:
        return what

    return given


class Kept:
    """A store of which a job is to be forgotten; one of its turns is open for so many looks."""

    def __init__(self, open_for: int = 0) -> None:
        self.open_for = open_for
        self.did: list[str] = []
        self.acts: list[Any] = []
        keeping = SimpleNamespace(remove=self.remove, remove_some=self.remove_some, scrub=self.scrub)
        forgotten = SimpleNamespace(
            turns=self.turns, unnamed_messages=self.nothing, messages=self.nothing, sessions=self.nothing, keys_of=self.nothing,
            tool_keys=self.nothing, joined=self.joined,
        )  # fmt: skip
        deliveries = SimpleNamespace(act=self.act)
        self.store: Any = SimpleNamespace(
            keeping=keeping, forgotten=forgotten, deliveries=deliveries, turns=SimpleNamespace(journal=self.nothing)
        )

    async def nothing(self, *_: object) -> list[Any]:
        return []

    async def joined(self, who: tuple[str, str]) -> list[tuple[str, str]]:
        return [who, ("telegram/1", "5")]

    async def turns(self, _job: object, _count: int, after: str) -> tuple[list[Any], str]:
        if after:
            return [], ""
        self.did.append("looks at turns")
        self.open_for -= 1
        return [SimpleNamespace(turn="t_1", session="s1", open=self.open_for >= 0)], "t_1"

    async def remove(self, body: Any) -> None:
        self.did.append(body.__qualname__.partition(".")[0])

    async def remove_some(self, body: Any) -> Any:
        self.did.append(body.__qualname__.partition(".")[0])
        return SimpleNamespace(count=1, seconds=0.0)

    async def scrub(self, most: int | None) -> bool:
        self.did.append(f"scrub {most}")
        return True

    async def act(self, row: Any) -> None:
        self.acts.append(row)


def of(kept: Kept, folder: Path) -> Forgetting:
    clock = FakeClock()

    async def quiet(_: object) -> None:
        kept.did.append("quiet")

    return Forgetting(kept.store, clock, SystemIds(clock), folder / "work", folder / "spool", folder / "printed", quiet)


async def test_a_turn_that_is_open_is_waited_for_and_who_they_are_is_forgotten_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(open_for=2)

    async def passes(seconds: float) -> None:
        if seconds:
            kept.did.append("waits")

    monkeypatch.setattr(forgetting.asyncio, "sleep", passes)
    for place in ("work", "printed"):
        for name in ("api/ada", "web/ada", "api/ben"):
            (tmp_path / place / forgetting.folder_name(name)).mkdir(parents=True)
    found = await of(kept, tmp_path).finish(JOB)
    looks = ["looks at turns", "waits", "quiet"] * 2
    assert kept.did[: len(looks) + 3] == ["remove_planned", "quiet", *looks, "looks at turns"]
    ends = ("remove_planned", "remove_turns", "remove_the_rest", "end")
    assert [one for one in kept.did if one in ends] == [
        "remove_planned",
        "remove_turns",
        "remove_planned",  # their last turn may have planned more
        "remove_the_rest",
        "end",
    ]
    assert kept.did[-2:] == ["end", "scrub 0"], "what was written last is overwritten, too"
    assert (found.turns, found.folders) == (1, 2)
    for place in ("work", "printed"):
        assert [one.name for one in (tmp_path / place).iterdir()] == [forgetting.folder_name("api/ben")]


async def test_whom_a_job_forgets_is_joined_on_the_page_and_noted_as_done_by_hand(tmp_path: Path) -> None:
    kept = Kept()
    told: list[str] = []
    one = of(kept, tmp_path)
    one.elsewhere = lambda: told.append("told")
    job = await one.begin(("api", "ada"), "operator")
    assert job.who == (("api", "ada"), ("telegram/1", "5"), ("web", "ada"))
    assert (kept.did, told) == (["begin"], ["told"])
    (act,) = kept.acts
    assert (act.who, act.act, act.at) == ("operator", "forget", job.at)


# ---------------------------------------------------------------------- upkeep


def aged(path: Path, days: float, now: int, size: int = 10) -> None:
    path.mkdir(parents=True)
    (path / "file").write_bytes(b"x" * size)
    at = now / 1000 - days * 86_400
    for one in (path / "file", path):
        os.utime(one, (at, at))


class Store:
    """As much of it as an upkeep asks, with nothing in it that is old."""

    def __init__(self, *, fails: bool = False) -> None:
        self.forgot = 0
        self.wants = b""
        retaining = SimpleNamespace(
            known_until=self.no, old_turns=self.no, old_files=self.no, old_sessions=self.no, database_bytes=self.no
        )
        nothing = SimpleNamespace(messages=0, parts=0, failures=0, nodes=0, seconds=0.0, damaged="")

        async def prune(*_: object) -> Any:
            if fails:
                raise StorageUnavailable("away")
            return nothing

        async def give_back(_: object) -> Any:
            return SimpleNamespace(count=0, seconds=0.0)

        self.store: Any = SimpleNamespace(
            retaining=retaining, node=1, memory=SimpleNamespace(put=self.no, entries=self.no),
            keeping=SimpleNamespace(prune=prune, remove_some=give_back), deliveries=SimpleNamespace(open=self.open),
        )  # fmt: skip

    async def no(self, *_: object, **__: object) -> Any:
        return []

    async def open(self) -> list[Any]:
        return [SimpleNamespace(row=SimpleNamespace(want=self.wants))]


def upkeep(store: Store, folder: Path, clock: FakeClock) -> Upkeep:
    keep = Keep(workspaces_days=10, attachments_days=5)
    made = Upkeep(store.store, clock, keep, FilePlaces(folder / "work", folder / "spool"), 50)
    made.forget = lambda: setattr(store, "forgot", store.forgot + 1)
    made._reckoning = Reckoning(clock.now_ms())
    return made


async def test_folders_go_by_their_age_but_for_those_in_use_and_what_is_left_is_counted(tmp_path: Path) -> None:
    clock, store = FakeClock(), Store()
    now, work, spool = clock.now, tmp_path / "work", tmp_path / "spool"
    aged(work / "old", 11, now)
    aged(work / "busy", 11, now, 100)
    aged(work / "young", 9, now, 1_000)
    aged(work / ".nameless", 11, now, 0)
    aged(work / f"{GOING}half", 1, now)
    aged(spool / "aa", 6, now)
    aged(spool / "bb", 6, now, 100)
    aged(spool / "cc", 4, now, 1_000)
    store.wants = b'{"file":"/x/spool/bb/picture.png"}'
    one = upkeep(store, tmp_path, clock)
    one.busy = lambda: [work / "busy"]
    found = await one.look()
    assert {path.name for path in work.iterdir()} == {"busy", "young", ".nameless"}
    assert {path.name for path in spool.iterdir()} == {"bb", "cc"}, "what is on its way is kept"
    assert (found.workspaces, found.spooled, found.workspaces_bytes, found.spool_bytes) == (1, 1, 1_100, 1_100)
    assert store.forgot == 1
    await one.look()
    assert store.forgot == 1, "nothing was removed"


async def test_what_is_known_of_conversations_is_let_go_of_also_where_an_upkeep_failed(tmp_path: Path) -> None:
    store = Store(fails=True)
    before = upkeep(store, tmp_path, FakeClock())
    await before.look()
    assert store.forgot == 1, "some of it may be gone"


@pytest.mark.parametrize("days", [0, 10])
async def test_what_is_kept_for_ever_stays(tmp_path: Path, days: int) -> None:
    clock, store = FakeClock(), Store()
    aged(tmp_path / "work" / "old", 4_000, clock.now)
    one = upkeep(store, tmp_path, clock)
    one.keep = Keep(workspaces_days=days)
    await one.look()
    assert (tmp_path / "work" / "old").exists() is (days == 0)


async def test_what_a_killed_process_left_in_a_folder_goes_and_is_no_use_of_it(tmp_path: Path) -> None:
    """Else a folder in which something was left would be kept for so long again."""
    clock, store = FakeClock(), Store()
    aged(tmp_path / "work" / "used", 9, clock.now)
    left = tmp_path / "work" / "used" / f".{'0' * 16}.part"
    left.write_bytes(b"half")
    nine_days_ago = clock.now / 1000 - 9 * 86_400
    for one in (left, left.parent):
        os.utime(one, (nine_days_ago, nine_days_ago))
    one = upkeep(store, tmp_path, clock)
    assert (await one.look()).workspaces_bytes == 10
    assert not left.exists()
    assert left.parent.stat().st_mtime == nine_days_ago


@pytest.mark.parametrize("rewritten", [True, False])
@pytest.mark.parametrize("shared", [0, 2])
@pytest.mark.parametrize("copies", [(), ("old.db", "older.db")])
def test_whoever_has_somebody_forgotten_is_told_what_is_left_of_them_and_where(
    rewritten: bool, shared: int, copies: tuple[str, ...]
) -> None:
    words = " ".join(ForgettingResult(1, 2, 3, shared, 4, rewritten).lines(copies))
    assert "Turns: 1, messages: 2, conversations: 3, files and folders: 4." in words
    assert ("was not written anew" in words) is not rewritten
    assert ("Conversations with others: 2." in words) is bool(shared)
    assert [one in words for one in ("old.db", "older.db")] == [bool(copies)] * 2
    assert "Backups and logs that you keep elsewhere still hold" in words


async def test_that_a_clock_has_leapt_is_stored_at_once_and_that_time_passes_now_and_then(tmp_path: Path) -> None:
    stored = list[int]()

    async def put(*_: object, at_ms: int) -> None:
        stored.append(at_ms)

    class Running(FakeClock):
        leapt = 0

        def now_ms(self) -> int:
            return self.now + self.leapt

    clock = Running()
    made = Upkeep(
        cast("Any", SimpleNamespace(memory=SimpleNamespace(put=put))), clock, Keep(), FilePlaces(tmp_path), 50
    )
    made._reckoning = Reckoning(clock.now_ms())
    made._began = made._seen = made._stored = clock.monotonic()
    for leap in (0, 0, 4_000 * DAY_MS, 0):
        clock.now, clock.leapt = clock.now + 60_000, clock.leapt + leap
        await made._reckoned()
    assert stored == [FakeClock().now + 180_000 + 4_000 * DAY_MS]
