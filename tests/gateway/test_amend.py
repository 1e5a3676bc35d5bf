"""A part that is changed by hand is changed as it is, and not as it was when somebody looked for it: else it would be sent once more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import web

from adapters.contract.chat import Ability, Content, ContentKind
from adapters.delivery.reconcile import Part
from adapters.text.styled import Styled
from agent_core.ports import SystemClock
from agent_core.store.deliveries.rows import DeliveryState
from gateway.delivery.accounts import PlatformAccount
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner
from tests.gateway.rig import chunk, gateway
from tests.gateway.test_sender import ANY, CHAT, Port

ORIGIN = "inbox:1"


async def _answers(_: list[dict[str, Any]], response: web.StreamResponse, __: web.Request) -> None:
    await response.write(chunk({"content": "hello"}, "stop"))


async def test_what_was_sent_since_it_was_looked_for_is_not_sent_again(tmp_path: Path) -> None:
    async with gateway(tmp_path, _answers) as rig:
        await rig.say("hello")
        session = (await rig.store.overview.turns(1))[0].session
        owner, port, told = Owner(session, await rig.store.sessions.claim(session)), Port(Ability.NONE), asyncio.Event()

        async def slow() -> None:
            await told.wait()

        port.does.append(slow)
        async with Outbox(rig.store, SystemClock(), 1) as outbox, asyncio.timeout(20):
            outbox.open_account("telegram", "1", PlatformAccount(port, ANY, lambda _: ANY))
            await outbox.words.say(CHAT, owner, ORIGIN, Content(ContentKind.ASIDE, Styled("Once.")))
            while not port.calls:
                await asyncio.sleep(0.01)
            (found,) = await rig.store.deliveries.of(ORIGIN)
            assert found.row.state is DeliveryState.SENDING
            told.set()
            surface = outbox.surfaces.at(CHAT)
            while surface.ledger.parts:  # it is at rest, and knows nothing of it any more
                await asyncio.sleep(0.01)
            seen: list[DeliveryState] = []

            async def change(part: Part) -> Part:
                seen.append(part.row.state)
                return part

            await outbox.amend(found, owner, change)
            assert seen == [DeliveryState.SENT]
            await asyncio.sleep(0.2)
            assert [said for _, said, _ in port.calls] == ["Once."]
