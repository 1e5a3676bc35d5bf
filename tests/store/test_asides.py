"""A conversation that is set aside keeps its rows and loses its key; its chat goes on in a fresh one, and nobody else's is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.store.database.ownership import Serves
from agent_core.store.errors import Fenced
from agent_core.store.sessions.asides import Fresh
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import open_store
from tests.storage.harm import damage
from tests.store.support import IDS, FakeClock, message, opened, row, turn_of


async def test_the_chat_goes_on_in_a_fresh_conversation_and_the_old_one_keeps_what_it_has(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        waiting = await store.inbox.accept(message("waiting"))
        await store.sessions.change(session, epoch, SessionChange(policy='{"model":"m"}'))
        for _ in range(2):  # its answer may have been lost
            assert await store.asides.set_aside(session, "damaged", "s_fresh") == Fresh("s_fresh", "chat", 1)
        (aside,) = await store.asides.all()
        assert (aside.session, aside.key, aside.words) == (session, "chat", "damaged")
        assert await store.asides.session_of("chat") == ("s_fresh", 1)
        fresh = await store.sessions.one("s_fresh")
        assert fresh is not None
        assert fresh.policy == '{"model":"m"}', "what its chat has set still counts"
        assert await store.asides.session_of(f"chat~{session}") == (session, epoch + 1)
        with pytest.raises(Fenced):
            await store.turns.append(session, epoch, turn, [row(1)])
        assert await store.asides.open_turn(session) == (turn, 1)
        assert await store.asides.waiting(session) == [waiting.inbox_id]
        assert (await store.inbox.accept(message("new"))).session == "s_fresh"
        await store.asides.drop(waiting.inbox_id, "damaged")
        assert await store.asides.waiting(session) == []
        await store.asides.end_turn(turn, "internal_error")
        assert await store.asides.open_turn(session) is None


async def test_what_is_not_there_is_not_set_aside(where: str) -> None:
    async with opened(where) as store:
        assert await store.asides.set_aside("s_nobodys", "damaged", "s_fresh") is None
        assert await store.asides.session_of("chat") is None
        assert await store.asides.open_turn("s_nobodys") is None


async def test_an_open_turn_without_a_row_has_none(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.append(session, epoch, turn, [row(1), row(2)])
        assert await store.asides.open_turn(session) == (turn, 3)


async def test_a_conversation_of_a_node_that_lives_is_left_to_it(postgres: str) -> None:
    async with (
        open_store(postgres, clock=FakeClock(), ids=IDS, version="1", serves=Serves.SHARED) as first,
        open_store(postgres, clock=FakeClock(), ids=IDS, version="1", serves=Serves.SHARED) as second,
    ):
        accepted = await first.inbox.accept(message("m1", "chat"))
        assert await second.asides.set_aside(accepted.session, "damaged", "s_fresh") is None
        assert await second.asides.session_of("chat") == (accepted.session, 1)
        assert await first.asides.set_aside(accepted.session, "damaged", "s_fresh") is not None


async def test_what_waits_in_it_is_known_by_its_numbers_though_none_of_it_can_be_read(tmp_path: Path) -> None:
    """So each is told in its chat that it was not answered: the key of the conversation says which."""
    home = tmp_path / "s.db"
    async with opened(str(home)) as store:
        left = [await store.inbox.accept(message(f"m{number}", body=b"pears" * 100)) for number in range(30)]
    assert damage(home, "inbox")
    async with opened(str(home)) as store:
        assert await store.asides.waiting(left[0].session) == [one.inbox_id for one in left]
