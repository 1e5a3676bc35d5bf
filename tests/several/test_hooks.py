"""Other programs are told by whichever of several gateways has the house, whoever ran the turn and whoever is asked about it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from tests.databases import new_database
from tests.several.support import OPERATOR, PATIENT_SECONDS, Node, cluster
from tests.several.test_doors import asked, named
from tests.webhooks.receiver import receiving, status
from tests.webhooks.test_gateway import configured


async def operate(node: Node, **body: str) -> Any:
    """Ask about receivers, or have something done with one."""
    headers, method = {"Authorization": f"Bearer {OPERATOR}"}, "POST" if body else "GET"
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, f"{node.url}/api/webhooks", json=body or None, headers=headers) as response,
    ):
        assert response.status == 200, await response.text()
        return await response.json()


async def until_off(node: Node, *, off: bool) -> None:
    async with asyncio.timeout(PATIENT_SECONDS):
        while bool((await operate(node))["webhooks"][0]["off"]) is not off:
            await asyncio.sleep(0.1)


async def test_each_end_is_told_once_whoever_ran_it_and_a_receiver_is_switched_on_anywhere(
    postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    async with receiving() as told, cluster(tmp_path, "telegram", database) as all_:
        env = configured(told.url, events=["turn.ended"])
        first, second = await all_.begin("first", **env), await all_.begin("second", **env)
        await all_.even(2)
        names = [name for owner in (1, 2) for name in await named(all_, owner, 3)]
        for number, name in enumerate(names):
            await asked((first, second)[number % 2], name, f"say answer #{number}")
        await told.until(len(names))

        told.usual = status(410)  # it wants nothing more
        await asked(second, names[0], "say answer #410")
        await until_off(first, off=True)
        await until_off(second, off=True)
        told.usual = status(200)
        assert (await operate(second, receiver="deploy", verb="on"))["changed"] is True
        await until_off(first, off=False)
        await asked(second, names[0], "say answer #200")
        await told.until(len(names) + 2)

        once = [one.id for one in told.came]
        assert len(once) == len(set(once)) == len(names) + 2

        first.inner.kill()  # it had the house; its last calls may come again, since nobody knows whether they were taken
        await asked(second, names[-1], "say answer #after")
        async with asyncio.timeout(PATIENT_SECONDS):
            while len({one.id for one in told.came}) < len(names) + 3:
                await asyncio.sleep(0.05)
        assert len({one.id for one in told.came}) == len(names) + 3
        all_.sound()
