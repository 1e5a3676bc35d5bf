"""Incidents of chat platforms and of people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agent_core.retry import Retry
from tests.chats.harness import answer
from tests.fakes.discord import PRIVILEGED, Intent
from tests.fakes.telegram import conflict, flood, refusal
from tests.incidents.rig import PATIENCE, Operator, discord, gateway_of, slack, telegram, until_told


@asynccontextmanager
async def revoked_token(folder: Path) -> AsyncGenerator[Operator]:
    """Somebody has revoked the bot's token while it ran."""
    async with telegram(folder) as scene:
        await scene.traffic()
        scene.chat.fake.chaos(1, (1.0, refusal(401, "Unauthorized")))
        await until_told(scene.up.url, lambda told: "needs a person" in told)
        yield scene.operator


@asynccontextmanager
async def deaf_socket(folder: Path) -> AsyncGenerator[Operator]:
    """Discord's connection stays open, and nothing comes through it any more."""
    async with discord(folder) as chat, AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # the same watch, with shorter times
            patch.setattr("adapters.discord.adapter.DEAF_SECONDS", 3.0)
            patch.setattr("adapters.discord.adapter.PROBE_SECONDS", 0.5)
            patch.setattr("gateway.chats.supervisor.LOOK_SECONDS", 0.2)
            # Else it is made anew before somebody has looked
            patch.setattr("gateway.chats.supervisor.ADAPTER", Retry(600.0))
            up, operator = await stack.enter_async_context(gateway_of(chat))
            await chat.ready()
            ada = chat.person("Ada")
            place = chat.private(ada)
            chat.say(place, ada, "say hello")
            await answer(chat, place, "hello", PATIENCE)
            chat.deafen()
            await until_told(up.url, lambda told: "no sign of life" in told)
            yield operator


@asynccontextmanager
async def platform_limit(folder: Path) -> AsyncGenerator[Operator]:
    """Telegram asks for a pause of minutes."""
    async with telegram(folder) as scene:
        await scene.traffic()
        ada = scene.chat.person("Ada")
        place = scene.chat.private(ada)
        scene.chat.fake.script("sendMessage", flood(240))
        scene.say(place, ada, "say hello")
        await scene.chat.until(lambda: any(call.status == 429 for call in scene.chat.fake.log), PATIENCE)
        await asyncio.sleep(0.5)
        yield scene.operator


@asynccontextmanager
async def lost_delivery(folder: Path) -> AsyncGenerator[Operator]:
    """Telegram took the answer, and what it said of that was lost on the way."""
    async with telegram(folder) as scene:
        await scene.traffic()
        ada = scene.chat.person("Ada")
        place = scene.chat.private(ada)
        scene.chat.fail_sends("lost")
        scene.say(place, ada, "say just once")
        await scene.noticed(place, "you may see this twice")
        await asyncio.sleep(0.5)
        yield scene.operator


@asynccontextmanager
async def blocked_chat(folder: Path) -> AsyncGenerator[Operator]:
    """Somebody asks, and blocks the bot before the answer."""
    async with telegram(folder) as scene:
        await scene.traffic()
        ada = scene.chat.person("Ada")
        place = scene.chat.private(ada)
        scene.say(place, ada, "hold on")
        await asyncio.wait_for(scene.model.holding.wait(), PATIENCE)
        scene.chat.block(place)
        scene.model.release()
        await until_told(scene.up.url, lambda told: "'blocked'" in told)
        yield scene.operator


@asynccontextmanager
async def two_pollers(folder: Path) -> AsyncGenerator[Operator]:
    """Another program polls with the same token."""
    async with telegram(folder) as scene:
        await scene.traffic()
        scene.chat.fake.chaos(1, (1.0, conflict()), method="getUpdates")
        await until_told(scene.up.url, lambda told: "(409)" in told)
        yield scene.operator


@asynccontextmanager
async def missing_intent(folder: Path) -> AsyncGenerator[Operator]:
    """Discord withholds the words of messages: the switch in its portal is off."""
    async with discord(folder, PRIVILEGED & ~Intent.CONTENT) as chat, gateway_of(chat) as (up, operator):
        await until_told(up.url, lambda told: "needs a person" in told)
        yield operator


@asynccontextmanager
async def missing_scope(folder: Path) -> AsyncGenerator[Operator]:
    """The Slack app was installed without a right that it needs."""
    async with slack(folder) as chat:
        chat.fake.withdraw("chat:write")
        async with gateway_of(chat) as (_, operator):
            yield operator


@asynccontextmanager
async def denied(folder: Path) -> AsyncGenerator[Operator]:
    """The person says no to a tool."""
    async with telegram(folder, OUTSPOKEN_TOOLS__APPROVAL="write_file") as scene:
        await scene.traffic()
        ada = scene.chat.person("Ada")
        place = scene.chat.private(ada)
        scene.say(place, ada, "write secret.txt: x")
        await answer(scene.chat, place, "May I write", PATIENCE)
        asked = next(one for one in scene.chat.seen(place) if any("Deny" in button for button in one.buttons))
        scene.chat.press(place, ada, asked.id, next(button for button in asked.buttons if "Deny" in button))
        await scene.chat.until(lambda: any("May" not in o.text for o in scene.chat.seen(place) if o.mine), PATIENCE)
        await asyncio.sleep(0.5)
        yield scene.operator


@asynccontextmanager
async def unanswered(folder: Path) -> AsyncGenerator[Operator]:
    """Nobody answers whether a tool may run. (The shortest wait is ten seconds.)"""
    approval = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file", "OUTSPOKEN_TOOLS__APPROVAL_SECONDS": "10"}
    async with telegram(folder, **approval) as scene:
        await scene.traffic()
        ada = scene.chat.person("Ada")
        place = scene.chat.private(ada)
        scene.say(place, ada, "write secret.txt: x")
        await scene.noticed(place)
        yield scene.operator


@asynccontextmanager
async def full_queue(folder: Path) -> AsyncGenerator[Operator]:
    """Somebody writes more than can be answered in time."""
    patience = {"OUTSPOKEN_MODEL__STALL_SECONDS": "60", "OUTSPOKEN_SESSION__QUEUE_LIMIT": "2"}
    async with telegram(folder, **patience) as scene:
        await scene.traffic()
        ada = scene.chat.person("Ada")
        place = scene.chat.private(ada)
        scene.say(place, ada, "hold on")
        await asyncio.wait_for(scene.model.holding.wait(), PATIENCE)
        for number in range(8):  # two wait, five more are kept
            scene.say(place, ada, f"say number {number}")
            await asyncio.sleep(0.8)  # what comes at once is one message in pieces
        await asyncio.sleep(0.5)
        yield scene.operator
        scene.model.release()


STAGES = {
    "A revoked bot token": revoked_token,
    "A deaf connection": deaf_socket,
    "The platform's rate limit": platform_limit,
    "A lost delivery": lost_delivery,
    "A chat that blocked the bot": blocked_chat,
    "Two programs with one token": two_pollers,
    "A missing intent": missing_intent,
    "A missing scope": missing_scope,
    "A denied approval": denied,
    "An approval that expired": unanswered,
    "A full queue": full_queue,
}
