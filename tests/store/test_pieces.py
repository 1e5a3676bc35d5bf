"""What is large is stored once, and counted: whoever comes or goes, nothing that is needed is missing, and nothing else is there."""

from __future__ import annotations

import base64
import random
from collections import Counter
from typing import Any

import orjson
import pytest
from sqlalchemy import Connection, select

from agent_core.store import tables as t
from agent_core.store.keeping import pieces
from agent_core.store.keeping.packing import MARK, needed, piece_of
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
