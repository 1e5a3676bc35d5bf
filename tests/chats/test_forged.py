"""Presses of a modified client: a button may name any turn, and counts only for one that is shown where it was pressed."""

from __future__ import annotations

import asyncio

import aiohttp

from adapters.delivery.parts import call_mark
from agent_core.turn.state import ActivityState
from gateway.daemon import Serving
from tests.chats.harness import Harness, answer, quiet, running, texts

ASKS = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}
FOREIGN = "This button belongs to another chat, or to something that is not kept any more. It does nothing here."
BROWSER = {"X-Outspoken-Browser": "browser-number-one"}


async def waiting(up: Serving) -> tuple[str, str]:
    """The turn that waits for an approval, and the mark of its call."""
    async with asyncio.timeout(20):
        while True:
            for running in up.hub.queues.running():
                for one in running.driver.turn.round.activities:
                    if one.state is ActivityState.APPROVAL:
                        return running.driver.identity.turn, call_mark(one.call)
            await asyncio.sleep(0.05)


async def test_what_a_group_waits_for_is_not_decided_nor_told_elsewhere(platform: Harness) -> None:
    ada, eve = platform.person("Ada"), platform.person("Eve")
    group, alone = platform.group(ada), platform.private(eve)
    async with running(platform, **ASKS) as up:
        platform.say(alone, eve, "hello")
        mine = await answer(platform, alone, "hello")
        platform.say(group, ada, "write a.txt: x", mention=True)
        await answer(platform, group, "May I write")
        await _nothing_comes_of(platform, up, alone, eve, mine.id)


async def test_what_the_page_waits_for_is_not_decided_nor_told_in_a_chat(platform: Harness) -> None:
    eve = platform.person("Eve")
    alone = platform.private(eve)
    async with running(platform, **ASKS) as up, aiohttp.ClientSession(up.url, headers=BROWSER) as page:
        platform.say(alone, eve, "hello")
        mine = await answer(platform, alone, "hello")
        said = {"id": "message-one", "text": "write a.txt: x"}
        async with page.post("/api/sessions/c-conversation/messages", json=said) as response:
            assert response.status == 202
        await _nothing_comes_of(platform, up, alone, eve, mine.id)


async def _nothing_comes_of(platform: Harness, up: Serving, place: object, person: object, message: str) -> None:
    turn, mark = await waiting(up)
    forged = [f"approve:{turn}:{mark}", f"always:{turn}:{mark}", f"deny:{turn}:{mark}", f"answer:{turn}:{mark}0"]
    forged += [f"why:{turn}", f"feedback:{turn}:good", f"retry:{turn}", f"continue:{turn}"]
    for count, data in enumerate(forged, 1):
        platform.forge(place, person, message, data)
        await platform.until(lambda count=count: _foreign(platform, place) == count)
    await quiet(platform, place)
    assert not any("Turn t" in text or "write_file" in text for text in texts(platform, place))
    assert not list(platform.folder.rglob("a.txt"))
    assert await waiting(up) == (turn, mark)


def _foreign(platform: Harness, place: object) -> int:
    return sum(FOREIGN in text for text in texts(platform, place))
