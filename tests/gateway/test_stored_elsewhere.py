"""A message that is stored is accepted, whatever becomes of whoever stored it: the next one runs it, or nobody if it is gone by then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.contract.base import FromApi, SessionKey
from agent_core.store.inbox.rows import InboxState
from agent_core.store.store import StorageUnavailable
from gateway.delivery.owners import Owner
from gateway.queues.inbox import COMMAND_LANE
from gateway.sessions.accepting import Accepting
from gateway.sessions.atonce import AtOnce
from tests.gateway.rig import chunk, gateway
from tests.gateway.test_lease_doors import Lease
from tests.serving import served


async def says_done(_: list[dict[str, Any]], response: web.StreamResponse, __: web.Request) -> None:
    await response.write(chunk({"content": "Done."}, "stop"))


async def test_what_is_stored_behind_the_lease_is_accepted_and_run_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = Lease(monkeypatch)
    async with gateway(tmp_path, says_done) as rig:
        lease.held = False
        ticket = await rig.hub.accept(rig.inbound("go", key="K1"))
        row = await rig.store.inbox.one(ticket.inbox_id)
        assert row is not None
        assert row.state is InboxState.NEW
        assert rig.model.requests == []
    lease.held = True
    async with gateway(tmp_path, says_done) as rig:
        assert (await rig.say("go", key="K1")).view.text == "Done."
        assert len(rig.model.requests) == 1


async def test_a_command_whose_words_are_forgotten_while_it_waits_is_not_begun(tmp_path: Path) -> None:
    """Its conversation was deleted: its row is dropped, and keeps no more than its key."""
    async with served(tmp_path) as serving:
        accepting = serving.hub.accepting
        blank = FromApi(
            account="web",
            platform_key="c1",
            session=SessionKey("web", "page", "gone"),
            input=(),
            surface="",
            memory_scope="",
        )
        accepted = await accepting.put(accepting.new_message(blank, COMMAND_LANE, 1, None))
        await accepting.store.inbox.drop(accepted.inbox_id, "its person is forgotten")
        row = await accepting.store.inbox.one(accepted.inbox_id)
        commands = serving.keeper.commands
        assert row is not None
        assert commands is not None
        assert await commands.carry_out(row.id, Owner(row.session, accepted.epoch))
        assert not commands.carries_out(row.id)


async def test_what_is_stored_just_before_the_storage_is_away_is_accepted_and_run_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, says_done) as rig:
        kept = Accepting.owned

        async def away(*_: object) -> None:
            monkeypatch.setattr(Accepting, "owned", kept)
            raise StorageUnavailable("it is away")

        monkeypatch.setattr(Accepting, "owned", away)
        monkeypatch.setattr(AtOnce, "beginning", nothing_begins)
        ticket = await rig.hub.accept(rig.inbound("go", key="K1"))
        assert (await rig.end(ticket)).view.text == "Done."


async def nothing_begins(*_: object) -> None:
    """Its turn does not begin in the commit of its message."""
