"""A person is forgotten: no byte of what they said or were answered is left, and what others said is as it was."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from sqlalchemy import Connection, inspect, text

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock, SystemIds
from agent_core.remembered import MemorySource
from agent_core.store.budgets.rows import FILE_SCOPE, BroughtFile, Charge
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.inbox.rows import NewMessage, UnreadRow
from agent_core.store.keeping.keeping import Keeping
from agent_core.store.people.rows import PersonRow, PersonState, PlaceRow
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import open_store
from gateway.explain.story import why
from gateway.limits.whose import folder_name
from gateway.retention.forgetting import GONE, Forgetting, copies_beside
from tests.gateway.rig import Rig, chunk, gateway
from tests.storage.harm import damage

ACCOUNT = "telegram/99"
CANARY, OTHER = "xq-canary-7731", "zv-other-5520"


async def echo(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    words = str(messages[-1]["content"])
    await response.write(chunk({"content": f"You said: {words}"}))
    await response.write(chunk({}, "stop"))


def origin(person: str, chat: str, kind: ChatKind) -> ChatOrigin:
    return ChatOrigin(ChatAddress("telegram", "99", chat), kind, ChatPerson(person, name=f"Name-{person}"), message="1")


def from_chat(rig: Rig, words: str, person: str, chat: str, kind: ChatKind = ChatKind.PRIVATE) -> Any:
    key = SessionKey("telegram", "99", chat)
    return FromChat(
        account=ACCOUNT, platform_key=rig.ids.new("k"), session=key, input=(InputMessage(words),), surface="test",
        memory_scope=key.text(), can_approve=True, chat=origin(person, chat, kind),
    )  # fmt: skip


async def said(rig: Rig, inbound: Any) -> None:
    await rig.end(await rig.hub.accept(inbound))


def found_in(folder: Path, words: str) -> list[str]:
    encoded = words.encode()
    forms = [encoded, encoded.hex().encode(), *(base64.b64encode(b" " * n + encoded)[4:-4] for n in range(3))]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if any(form in path.read_bytes() for form in forms)]


async def everything_of(rig: Rig, person: str, chat: str, word: str, folder: Path) -> None:
    """A person says and leaves something everywhere."""
    for number in range(4):
        await said(rig, from_chat(rig, f"{word} {number}", person, chat))
    await said(rig, from_chat(rig, f"{word} in the group", person, "-500", ChatKind.GROUP))
    await shown_elsewhere(rig, "telegram/99/-500//", word)
    await said(rig, from_chat(rig, f"{word} " * 3000, person, chat))
    key = SessionKey("telegram", "99", chat).text()
    session = await rig.store.sessions.by_key(key)
    assert session is not None
    await rig.store.memory.put(key, "memory", "pin", word, at_ms=1)
    source = MemorySource("t", f"{ACCOUNT}/{person}", word)
    await rig.store.memory.put("telegram/99/-500//", "memory", f"of {person}", word, at_ms=1, source=source)
    await rig.store.memory.put(f"{key}/{folder_name(key)}", "todo", "list", word, at_ms=1)
    await rig.store.sessions.change(
        session.session, session.epoch, SessionChange(policy=orjson.dumps({"x": word}).decode())
    )
    await rig.store.schedules.put(ScheduleRow(f"sch-{chat}", "reminder", key, key, 1, "once", word.encode(), 2**50))
    file = BroughtFile(f"{FILE_SCOPE}{word}:telegram/99/{chat}", 5)
    charge = Charge(f"daily:incoming:telegram/99/{chat}", 0, 2**50, 0, 0, files=(file,))
    message = NewMessage(ACCOUNT, f"file-{chat}", key, "normal", b"{}", 1, None, "", refused="no", charges=(charge,))
    await rig.store.inbox.accept(message)
    part = DeliveryRow(
        key, f"inbox:{chat}", "answer", 0, int(chat), word.encode(), "h", f"k-{chat}", DeliveryState.SENT
    )
    await rig.store.deliveries.put(session.session, session.epoch, [part])
    await rig.store.people.put(PersonRow(ACCOUNT, person, PersonState.APPROVED, name=word))
    await rig.store.people.put_place(PlaceRow(key, ACCOUNT, person))
    raw = orjson.dumps({"from": {"id": int(person)}, "text": word})
    await rig.store.unread.keep(UnreadRow(ACCOUNT, f"raw-{person}", raw, "no", "1", 1, chat, tried_at=1), None)
    workspace = folder / "workspaces" / folder_name(key)
    workspace.mkdir(parents=True)
    (workspace / "notes.txt").write_text(word)


async def shown_elsewhere(rig: Rig, key: str, word: str) -> None:
    """An operator has an answer shown in another chat; what is made of it there has a name of its own."""
    session = await rig.store.sessions.by_key(key)
    assert session is not None
    [*_, last] = await rig.store.turns.latest(session.session, 10)
    origin = f"{last.turn}!to.text0.0.1"
    part = DeliveryRow("telegram/99/77/", origin, "text0", 0, 1, word.encode(), "h", origin, DeliveryState.SENT)
    await rig.store.deliveries.put(session.session, session.epoch, [part])


async def forget(rig: Rig, person: str) -> Any:
    job = await rig.hub.forgetting.begin((ACCOUNT, person), "a test")
    async with asyncio.timeout(60):
        while rig.hub.forgetting.last is None:
            await asyncio.sleep(0.05)
    assert [one.who for one in await rig.store.forgotten.jobs() if one.forget == job.forget] == [()]
    return rig.hub.forgetting.last


async def test_no_byte_of_a_person_is_left_and_others_are_as_they_were(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        await everything_of(rig, "4711", "4711", CANARY, tmp_path)
        await everything_of(rig, "8080", "8080", OTHER, tmp_path)
        assert found_in(tmp_path, CANARY)
        mine = await rig.store.sessions.by_key("telegram/99/4711//")
        assert mine is not None
        [*_, last] = await rig.store.turns.latest(mine.session, 10)
        told = await forget(rig, "4711")
        assert found_in(tmp_path, CANARY) == []
        assert told.turns == 6
        assert (told.conversations, told.shared, told.rewritten) == (1, 1, True)
        story = "\n".join(await why(rig.store, last.turn, SystemClock().now_ms))
        assert "wanted to be forgotten" in story
        theirs = await rig.store.sessions.by_key("telegram/99/8080//")
        assert theirs is not None
        for row in await rig.store.turns.latest(theirs.session, 10):
            assert OTHER.encode() in b"".join(one.body for one in await rig.store.turns.journal(row.turn))
        assert found_in(tmp_path / "workspaces", OTHER) == ["notes.txt"]
        assert len(await rig.store.memory.entries("telegram/99/8080//", "memory")) == 1
        assert (
            len(await rig.store.memory.entries(f"telegram/99/8080///{folder_name('telegram/99/8080//')}", "todo")) == 1
        )
        group = await rig.store.sessions.by_key("telegram/99/-500//")
        assert group is not None
        left = [row for row in await rig.store.turns.latest(group.session, 10) if not row.removed]
        assert len(left) == 1
        people = {row.person: (row.state, row.name) for row in await rig.store.people.all()}
        assert people == {"4711": (PersonState.APPROVED, ""), "8080": (PersonState.APPROVED, OTHER)}
        again = await rig.hub.accept(from_chat(rig, "hello", "4711", "4711"))
        assert (await rig.end(again)).view.text == "You said: hello"
        assert CANARY not in str(rig.model.requests[-1])
    assert found_in(tmp_path, CANARY) == []


async def test_a_turn_that_runs_is_stopped_and_forgotten_too(tmp_path: Path) -> None:
    async def slow(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        await response.write(chunk({"content": f"{CANARY} begins"}))
        await asyncio.sleep(30)

    async with gateway(tmp_path, slow) as rig:
        ticket = await rig.hub.accept(from_chat(rig, CANARY, "4711", "4711"))
        await rig.hub.accept(from_chat(rig, f"{CANARY} waits", "4711", "4711"))
        await rig.until_text(ticket, "begins")
        told = await forget(rig, "4711")
        assert told.turns == 1
        assert found_in(tmp_path, CANARY) == []


async def test_who_writes_again_at_once_is_answered_and_that_is_kept(tmp_path: Path) -> None:
    async def slow_first(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        if CANARY in str(messages[-1]["content"]):
            await response.write(chunk({"content": f"{CANARY} begins"}))
            await asyncio.sleep(30)
        await echo(messages, response, request)

    async with gateway(tmp_path, slow_first) as rig:
        ticket = await rig.hub.accept(from_chat(rig, CANARY, "4711", "4711"))
        await rig.hub.accept(from_chat(rig, f"{CANARY} waits", "4711", "4711"))
        await rig.until_text(ticket, "begins")
        await rig.hub.forgetting.begin((ACCOUNT, "4711"), "a test")
        await asyncio.sleep(0.005)  # it is later by the clock
        again = await rig.hub.accept(from_chat(rig, "new words", "4711", "4711"))
        assert (await rig.end(again)).view.text == "You said: new words"
        async with asyncio.timeout(60):
            while rig.hub.forgetting.last is None:
                await asyncio.sleep(0.05)
        assert rig.hub.forgetting.last.turns == 1
        mine = await rig.store.sessions.by_key("telegram/99/4711//")
        assert mine is not None
        kept = [row for row in await rig.store.turns.latest(mine.session, 10) if not row.removed]
        assert ["new words" in str((await rig.store.turns.journal(row.turn))[0].body) for row in kept] == [True]
        assert found_in(tmp_path, CANARY) == []


async def test_who_writes_while_they_are_forgotten_is_told_nothing_of_what_they_said_before(tmp_path: Path) -> None:
    told: list[str] = []

    async def listens(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        told.append(str(messages))
        await echo(messages, response, request)

    async with gateway(tmp_path, listens) as rig:
        for number in range(3):
            await said(rig, from_chat(rig, f"{CANARY} {number}", "4711", "4711"))
        await said(rig, from_chat(rig, OTHER, "8080", "8080"))
        told.clear()
        await rig.hub.forgetting.begin((ACCOUNT, "4711"), "a test")
        await asyncio.sleep(0.002)  # it is later by the clock
        tickets = [await rig.hub.accept(from_chat(rig, "new words", one, one)) for one in ("4711", "8080")]
        for ticket in tickets:
            await rig.end(ticket)
        mine = [one for one in told if OTHER not in one]
        assert mine
        assert not [one for one in told if CANARY in one]
        assert [OTHER in one for one in told].count(True) == 1, "others are answered as ever"


async def test_whoever_comes_after_a_kill_ends_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        await everything_of(rig, "4711", "4711", CANARY, tmp_path)

        class Killed(Exception):
            pass

        for at in range(1, 30):
            steps = 0
            remove = Keeping.remove

            async def counted(self: Keeping, body: Any, at: int = at, remove: Any = remove) -> Any:
                nonlocal steps
                steps += 1
                if steps > at:
                    raise Killed
                return await remove(self, body)

            made = Forgetting(rig.store, SystemClock(), SystemIds(SystemClock()), tmp_path / "workspaces", None, None)
            if at == 1:
                await made.begin((ACCOUNT, "4711"), "a test")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Keeping, "remove", counted)
                try:
                    for one in await rig.store.forgotten.jobs():
                        if one.done_at is None:
                            await made.finish(one)
                except Killed:
                    continue
            break
        assert all(one.done_at for one in await rig.store.forgotten.jobs())
    assert found_in(tmp_path, CANARY) == []


async def test_one_of_whom_something_cannot_be_read_keeps_nobody_else_from_being_forgotten(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        for person, word in (("4711", CANARY), ("8080", OTHER)):
            for number in range(5):  # enough for pages of their own
                await said(rig, from_chat(rig, f"{word} {number}", person, person))
    assert damage(tmp_path / "db", "journal", f"{CANARY} 2")
    clock = SystemClock()
    async with open_store(tmp_path / "db", clock=clock, ids=SystemIds(clock), version="test") as store:
        made = Forgetting(store, clock, SystemIds(clock), tmp_path / "workspaces", None, None)
        begun = [await made.begin((ACCOUNT, person), "a test") for person in ("4711", "8080")]
        await made.finish_all()
        done = {one.forget: one.done_at is not None for one in await store.forgotten.jobs()}
        assert [done[one.forget] for one in begun] == [False, True]


async def test_a_deletion_that_is_ended_by_the_next_process_leaves_what_has_the_name_by_then(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        end = await rig.say("hello", session="notes")
        row = await rig.store.turns.one(end.turn)
        assert row is not None
        found = await rig.store.sessions.one(row.session)
        assert found is not None
        await rig.hub.forgetting.begin_conversation(row.session, found.key, GONE.format(row.session))
        rig.hub.queues.forget_memory(found.key)
        folder = tmp_path / "workspaces" / folder_name(found.key)
        folder.mkdir(parents=True)
        await rig.store.sessions.make(rig.ids.new("s"), found.key, "")
        await rig.store.memory.put(found.key, "memory", "pin", OTHER, at_ms=1)
        clock = SystemClock()
        made = Forgetting(rig.store, clock, rig.ids, tmp_path / "workspaces", None, None)
        await made.finish_all()
        assert [one.done_at is not None for one in await rig.store.forgotten.jobs()] == [True]
        assert folder.is_dir()
        assert await rig.store.memory.entries(found.key, "memory")


async def test_copies_from_before_upgrades_are_named(tmp_path: Path) -> None:
    (tmp_path / "db.before-upgrade-from-0012").write_text("x")
    assert copies_beside(tmp_path / "db") == ["db.before-upgrade-from-0012"]


def _all_rows(conn: Connection) -> dict[str, str]:
    """Everything in every table, as text; bytes as they are."""
    found: dict[str, str] = {}
    for name in inspect(conn).get_table_names():
        rows = conn.execute(text(f"SELECT x::text, encode(convert_to(x::text, 'UTF8'), 'escape') FROM {name} x")).all()
        found[name] = "\n".join(str(row[0]) for row in rows)
        columns = [c["name"] for c in inspect(conn).get_columns(name) if str(c["type"]) == "BYTEA"]
        for column in columns:
            bodies = conn.execute(text(f"SELECT encode({column}, 'escape') FROM {name}")).scalars()
            found[name] += "\n".join(str(one) for one in bodies)
    return found


async def test_no_table_of_postgresql_holds_a_word_of_them(postgres: str, tmp_path: Path) -> None:
    from tests.store.support import IDS, FakeClock, message, row

    clock = FakeClock()
    async with open_store(postgres, clock=clock, ids=IDS, version="test") as store:
        for person, word in (("4711", CANARY), ("8080", OTHER)):
            key = SessionKey("telegram", "99", person).text()
            for number in range(3):
                body = orjson.dumps({"input": word * (1 if number else 2000)})
                new = replace(message(f"{person}-{number}", key, body=body), account=ACCOUNT, person=person)
                accepted = await store.inbox.accept(new)
                epoch = accepted.epoch or await store.sessions.claim(accepted.session)
                turn = IDS.new("t")
                await store.turns.start(accepted.session, epoch, turn, [accepted.inbox_id], row(0, body), 1, 2)
                await store.turns.close(accepted.session, epoch, turn, [row(1, body)], "answered", 3)
            await store.memory.put(key, "memory", "pin", word, at_ms=1)
        made = Forgetting(store, clock, IDS, tmp_path, None, None)
        await made.finish(await made.begin((ACCOUNT, "4711"), "a test"))
        rows = await store.keeping.remove(_all_rows)
        assert [name for name, told in rows.items() if CANARY in told] == []
        assert {name for name, told in rows.items() if OTHER in told} >= {"inbox", "journal", "memory"}


async def test_what_is_deleted_while_it_is_read_what_is_to_be_forgotten_is_not_deleted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is free, and what has it by then is another conversation, whose folder would go."""
    async with gateway(tmp_path, echo) as rig:
        end = await rig.say("hello", session="notes")
        row = await rig.store.turns.one(end.turn)
        assert row is not None
        found = await rig.store.sessions.one(row.session)
        assert found is not None
        forgetting, forgotten = rig.hub.forgetting, rig.store.forgotten
        job = await forgetting.begin_conversation(row.session, found.key, "api/gone/1//")
        finished, jobs = list[str](), forgotten.jobs
        finish = Forgetting._finish_conversation

        async def counted(one: Forgetting, job: Any, *whose: str) -> Any:
            finished.append(job.forget)
            return await finish(one, job, *whose)

        async def read() -> Any:
            there = await jobs()
            if not finished:
                await forgetting.finish(job)  # by whoever has begun it
            return there

        monkeypatch.setattr(Forgetting, "_finish_conversation", counted)
        monkeypatch.setattr(forgotten, "jobs", read)
        await forgetting.finish_all()
        assert finished == [job.forget]
