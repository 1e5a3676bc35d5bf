"""A message and the turn that it begins in one commit: both are stored or neither, and what the turn expects of its session must be so."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from agent_core.store.batch.facts import Facts
from agent_core.store.database.mapping import Fact
from agent_core.store.database.ownership import FileOwnership
from agent_core.store.errors import LeaseLost
from agent_core.store.inbox.ops import Accept
from agent_core.store.inbox.rows import Accepted, InboxRow, InboxState
from agent_core.store.store import Store
from agent_core.store.turns.rows import OpeningTurn, TurnState
from tests.agent_core.turns import gives
from tests.store.support import IDS, message, opened, row, session_of, taken_over


@pytest.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as made:
        yield made


def opening(session: str, epoch: int = 1) -> OpeningTurn:
    return OpeningTurn(session, epoch, IDS.new("t"), (row(0, kind="TurnOpened"),), 100, 200)


async def test_a_new_session_its_message_and_its_turn_are_one_commit(store: Store) -> None:
    new = message("m1")
    begins = opening(new.new_session_id)
    before = store.figures.batches
    accepted = await store.inbox.accept(new, begins)
    assert store.figures.batches == before + 1
    assert (accepted.started, accepted.session, accepted.turn) == (True, begins.session, begins.turn)
    found = await store.turns.one(begins.turn)
    assert found is not None
    assert (found.state, found.number, found.opened_at, found.deadline) == (TurnState.OPEN, 1, 100, 200)
    assert [one.id for one in await store.inbox.inputs(begins.turn)] == [accepted.inbox_id]
    assert await store.turns.journal(begins.turn) == list(begins.rows)
    await store.turns.close(begins.session, 1, begins.turn, [row(1)], "answered", 3)
    kept = await store.inbox.one(accepted.inbox_id)
    assert kept is not None
    assert (kept.state, kept.turn) == (InboxState.DONE, begins.turn)


async def test_the_next_turn_of_a_session_that_is_ours_is_opened_so_as_well(store: Store) -> None:
    session, epoch = await session_of(store)
    accepted = await store.inbox.accept(message("m1"), opening(session, epoch))
    assert accepted.started
    assert accepted.epoch == epoch


async def test_what_is_offered_twice_begins_one_turn(store: Store) -> None:
    new = message("m1")
    first = await store.inbox.accept(new, opening(new.new_session_id))
    other = opening(new.new_session_id)
    again = await store.inbox.accept(new, other)
    assert (again.duplicate, again.started, again.turn) == (True, False, first.turn)
    assert await store.turns.one(other.turn) is None


@pytest.mark.parametrize("wrong", ["session", "epoch", "busy"])
async def test_a_session_that_is_not_as_its_turn_expects_only_takes_the_message(store: Store, wrong: str) -> None:
    session, epoch = await session_of(store)
    begins = opening(session, epoch)
    match wrong:
        case "session":
            begins = replace(begins, session=IDS.new("s"))
        case "epoch":
            begins = replace(begins, epoch=epoch + 1)
        case _:
            assert (await store.inbox.accept(message("m0"), opening(session, epoch))).started
    accepted = await store.inbox.accept(message("m1"), begins)
    assert (accepted.started, accepted.duplicate, accepted.state) == (False, False, InboxState.NEW)
    assert await store.turns.one(begins.turn) is None
    assert [one.platform_key for one in await store.inbox.pending(session)] == ["m1"]


@pytest.mark.parametrize("known", [False, True])
async def test_who_may_count_as_dead_elsewhere_stores_a_message_and_takes_nothing(
    sqlite: str, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    async with opened(sqlite) as store:
        new = message("m1")
        session, epoch = await session_of(store) if known else (new.new_session_id, 1)
        begins = opening(session, epoch)
        monkeypatch.setattr(FileOwnership, "lease_ok", gives(what=False))
        accepted = await store.inbox.accept(new, begins)
        assert (accepted.session, accepted.started, accepted.epoch, accepted.state) == (
            session, False, 0, InboxState.NEW,
        )  # fmt: skip
        assert await store.turns.one(begins.turn) is None
        stored = await store.sessions.one(session)
        assert stored is not None
        assert (stored.owner is None) is not known, "what was made for it is everybody's"
        for claims in (
            store.sessions.claim(session),
            store.sessions.make(IDS.new("s"), "another", ""),
            store.asides.set_aside(session, "it fails", IDS.new("s")),
            store.left.take_up(taken_over, {session}, {}),
        ):
            with pytest.raises(LeaseLost):
                await claims


def test_a_commit_whose_outcome_was_lost_answers_as_it_would_have() -> None:
    new = message("m1")
    begins = opening(new.new_session_id)
    said = Accepted(7, begins.session, 7, False, InboxState.TAKEN, begins.turn, 1, started=True)
    facts = Facts(1)
    stored = InboxRow(
        7, new.account, new.platform_key, begins.session, 7, new.lane, new.body, InboxState.TAKEN, None, 10,
        turn=begins.turn,
    )  # fmt: skip
    facts.messages[new.account, new.platform_key] = Fact(stored, stored)
    assert Accept(new, opening=begins).decide(facts, said) == said
    assert facts.given == {}
