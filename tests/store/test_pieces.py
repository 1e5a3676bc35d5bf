"""What is large is stored once, and counted: whoever comes or goes, nothing that is needed is missing, and nothing else is there."""

from __future__ import annotations

import base64
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import orjson
import pytest
from sqlalchemy import Connection, select

from agent_core.store import tables as t
from agent_core.store.keeping import forgetting, pieces
from agent_core.store.keeping.packing import MARK, needed, piece_of
from agent_core.store.sessions.copies import SessionCopy
from agent_core.store.sessions.rows import BranchChange, OwnersChange, SessionChange
from agent_core.store.store import Fenced, Store
from agent_core.store.turns.rows import JournalRow
from tests.store.support import IDS, FakeClock, message, opened, row, session_of, started

DICE = random.Random(3)
PICTURE = "data:image/png;base64," + base64.b64encode(DICE.randbytes(40_000)).decode()


def said(number: int, seed: int = 1) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    return [{"role": "user", "content": f"{n} {dice.randbytes(400).hex()}"} for n in range(number)]


def body(history: list[dict[str, Any]], *, picture: bool = False) -> bytes:
    content: Any = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
    return orjson.dumps({"own_history": history, "input": [{"content": content if picture else "go on"}]})


def counted(conn: Connection) -> tuple[Counter[bytes], dict[bytes, int]]:
    """How many gaps each piece fills, found by reading everything, and what is stored about it."""
    stored = {
        bytes(r[0]): (piece_of(bytes(r[0]), r[1], bytes(r[2]), compressed=r[3] == "zlib"), int(r[4]))
        for r in conn.execute(
            select(t.pieces.c.digest, t.pieces.c.form, t.pieces.c.stored, t.pieces.c.how, t.pieces.c.refs)
        )
    }
    bodies = [
        bytes(one) for column in (t.inbox.c.body, t.journal.c.body) for one in conn.execute(select(column)).scalars()
    ]
    gaps = Counter(digest for one in bodies for digest in needed(one))
    for piece, _ in stored.values():
        gaps.update(piece.below)
    return gaps, {digest: refs for digest, (_, refs) in stored.items()}


async def assert_counted(store: Store) -> int:
    gaps, refs = await store.writer.alone(counted)
    assert dict(gaps) == refs
    return len(refs)


async def test_a_message_and_its_turn_share_what_is_large(where: str) -> None:
    async with opened(where) as store:
        _, epoch = await session_of(store)
        big = body(said(30), picture=True)
        accepted = await store.inbox.accept(message("m", body=big))
        again = await store.inbox.accept(message("m", body=big))
        assert again.duplicate
        one = await assert_counted(store)
        turn = IDS.new("t")
        await store.turns.start(accepted.session, epoch, turn, [accepted.inbox_id], row(0, big), 100, 200)
        await store.turns.start(accepted.session, epoch, turn, [accepted.inbox_id], row(0, big), 100, 200)
        assert await assert_counted(store) == one
        assert (await store.turns.journal(turn))[0].body == big
        assert (await store.turns.journals([turn]))[turn][0][1] == big
        found = await store.inbox.by_key("bot", "m")
        assert found is not None
        assert found.body == big
        with pytest.raises(Fenced):
            await store.turns.start(
                accepted.session, epoch, turn, [accepted.inbox_id], row(0, body(said(31))), 100, 200
            )
        await assert_counted(store)


async def test_a_message_that_is_worded_anew_gives_up_what_it_needed(where: str) -> None:
    async with opened(where) as store:
        await store.inbox.accept(message("m", body=body(said(30), picture=True)))
        await store.inbox.accept(message("other", body=body(said(20))))
        assert await store.inbox.reword("bot", "m", body(said(9, seed=2)))
        assert await assert_counted(store) < 60
        assert await store.inbox.reword("bot", "m", b'"small"')
        await assert_counted(store)
        found = await store.inbox.by_key("bot", "other")
        assert found is not None
        assert found.body == body(said(20))


async def test_pruned_messages_take_what_only_they_needed_with_them(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        _, epoch = await session_of(store)
        for number in range(4):
            accepted = await store.inbox.accept(
                message(f"m{number}", body=body(said(10 + number), picture=True), at=clock.now)
            )
            session, epoch, turn = await started(store, accepted, epoch)
            await store.turns.close(session, epoch, turn, [row(1)], "answered", clock.now)
        await assert_counted(store)
        await store.inbox.accept(message("last", at=clock.now))
        clock.now += 8 * 24 * 3600 * 1000
        await store.keeping.prune(clock.now)
        assert await store.inbox.by_key("bot", "m0") is None
        assert await assert_counted(store) == 0


def blanked(account: str, key: str, session: str) -> bytes:
    del account, key, session
    return b'"nothing"'


async def test_forgotten_messages_take_what_only_they_needed_with_them(where: str) -> None:
    async with opened(where) as store:
        kept = await store.inbox.accept(message("kept", body=body(said(12), picture=True)))
        before = await assert_counted(store)
        gone = [await store.inbox.accept(message(f"m{n}", body=body(said(12 + n), picture=True))) for n in range(3)]
        assert await assert_counted(store) > before
        numbers = [one.inbox_id for one in gone]
        await store.keeping.remove(forgetting.blank_messages(numbers, blanked))
        await assert_counted(store)
        found = await store.inbox.one(kept.inbox_id)
        assert found is not None
        assert found.body == body(said(12), picture=True)
        await store.keeping.remove(forgetting.blank_messages([kept.inbox_id], blanked))
        assert await assert_counted(store) == 0


async def test_rows_of_a_journal_share_pieces_with_others(where: str) -> None:
    async with opened(where) as store:
        _, epoch = await session_of(store)
        long = orjson.dumps({"text": "word " * 4000, "at": 1})
        accepted = await store.inbox.accept(message("m"))
        session, epoch, turn = await started(store, accepted, epoch)
        for seq in (1, 2):
            await store.turns.append(session, epoch, turn, [JournalRow(seq, "TextArrived", long, 5)])
        await store.turns.append(session, epoch, turn, [JournalRow(2, "TextArrived", long, 5)])
        await store.turns.close(session, epoch, turn, [JournalRow(3, "TurnEnded", long, 5)], "answered", 9)
        assert [one.body for one in await store.turns.journal(turn)][1:] == [long] * 3
        assert await assert_counted(store) == 1


async def test_a_piece_whose_content_was_removed_says_so_and_comes_back_when_it_is_sent_again(where: str) -> None:
    async with opened(where) as store:
        big = body(said(2), picture=True)
        await store.inbox.accept(message("m", body=big))

        def drop(conn: Connection) -> None:
            conn.execute(t.pieces.update().where(t.pieces.c.form == "bytes").values(stored=b"", how=pieces.GONE))

        await store.writer.alone(drop)
        found = await store.inbox.by_key("bot", "m")
        assert found is not None
        assert found.body == big.replace(PICTURE.encode(), b"[no longer kept]")
        await store.inbox.accept(message("again", body=big))
        found = await store.inbox.by_key("bot", "m")
        assert found is not None
        assert found.body == big
        await assert_counted(store)


async def test_a_small_body_is_stored_as_it_is(where: str) -> None:
    async with opened(where) as store:
        await store.inbox.accept(message("m", body=b'"hello"'))
        stored = await store.writer.alone(
            lambda conn: [bytes(b) for b in conn.execute(select(t.inbox.c.body)).scalars()]
        )
        assert stored == [b'"hello"']
        assert not any(one.startswith(MARK) for one in stored)


async def test_a_branch_shares_what_is_large_and_outlives_what_it_came_from(where: str) -> None:
    async with opened(where) as store:
        session, epoch = await session_of(store)
        big = body(said(30), picture=True)
        turns: list[tuple[str, str]] = []
        for number in range(3):
            accepted = await store.inbox.accept(message(f"m{number}", body=big))
            turns.append((IDS.new("t"), IDS.new("t")))
            await store.turns.start(accepted.session, epoch, turns[-1][0], [accepted.inbox_id], row(0, big), 100, 200)
            if number < 2:
                await store.turns.close(session, epoch, turns[-1][0], [row(1)], "answered", 300, used=(5, 5))
        before = await assert_counted(store)
        copies = [SessionCopy(IDS.new("s"), f"branch{n}", "", [(a, f"{b}{n}") for a, b in turns]) for n in range(2)]
        for wanted in (*copies, copies[0]):
            assert await store.sessions.copy(wanted)
            assert await assert_counted(store) == before, "nothing that is large is stored twice"
        assert not await store.sessions.copy(SessionCopy(IDS.new("s"), "branch0", "", [])), "there is one"
        for number, wanted in enumerate(copies):
            made = await store.turns.latest(wanted.session, 9)
            assert [(one.turn, one.number, one.input_tokens) for one in made] == [
                (f"{copied}{number}", place, 0) for place, (_, copied) in enumerate(turns[:2], 1)
            ], "the open one is left out"
            assert len({one.first_message for one in made}) == 2
            assert await store.turns.told(wanted.session, 9) == [one.turn for one in made]
        for copied in (f"{turns[0][1]}0", f"{turns[1][1]}1"):
            assert await store.turns.journal(copied) == await store.turns.journal(turns[copied == f"{turns[1][1]}1"][0])
            assert (await store.turns.journal(copied))[0].body == big


async def test_what_comes_after_a_turn_that_was_taken_back_follows_the_one_before_it(where: str) -> None:
    async with opened(where) as store:
        session, epoch = await session_of(store)
        turns: list[str] = []

        async def say() -> None:
            accepted = await store.inbox.accept(message(IDS.new("m")))
            turns.append((await started(store, accepted, epoch))[2])
            await store.turns.close(session, epoch, turns[-1], [row(1)], "answered", 300)

        for _ in range(3):
            await say()
        again = replace(message("again"), change=OwnersChange(session, epoch, SessionChange(undo=turns[2])))
        with pytest.raises(Fenced):  # who does not own it any more stores neither
            await store.inbox.accept(
                replace(again, change=OwnersChange(session, epoch + 1, SessionChange(undo=turns[2])))
            )
        assert await store.inbox.by_key(again.account, again.platform_key) is None
        assert (await store.turns.places(session))[-1].undone == 0
        accepted = await store.inbox.accept(again)
        assert (await store.turns.places(session))[-1].undone == 1
        await store.inbox.drop(accepted.inbox_id, "tried")
        assert (
            await store.inbox.accept(replace(again, change=OwnersChange(session, epoch, SessionChange(undo=turns[1]))))
        ).duplicate
        await store.sessions.change(session, epoch, SessionChange(undo=turns[2]))
        await store.sessions.change(session, epoch, SessionChange(undo=turns[1]))
        await say()
        await say()
        branch = BranchChange(0, (), (turns[0], turns[3], turns[4]))
        await store.sessions.change(session, epoch, SessionChange(branch=branch))
        await say()
        assert [(one.parent, one.undone) for one in await store.turns.places(session)] == [
            (0, 2), (1, 1), (2, 1), (1, 2), (4, 2), (0, 0),
        ]  # fmt: skip
        assert await store.turns.told(session, 9) == turns[5:]


async def test_a_piece_that_fills_several_gaps_of_one_body_is_there_until_the_last_is_gone(where: str) -> None:
    def shows(times: int) -> bytes:
        return orjson.dumps({"own_history": said(9) + said(9), **{f"picture{n}": PICTURE for n in range(times)}})

    async with opened(where) as store:
        for key, times in (("m1", 1), ("m3", 3)):
            await store.inbox.accept(message(key, body=shows(times)))
            await assert_counted(store)
        assert await store.inbox.reword("bot", "m3", shows(2))
        await assert_counted(store)
        assert await store.inbox.reword("bot", "m3", b'"small"')
        assert await assert_counted(store) > 0
        found = await store.inbox.by_key("bot", "m1")
        assert found is not None
        assert found.body == shows(1)
        assert await store.inbox.reword("bot", "m1", b'"small"')
        assert await assert_counted(store) == 0
