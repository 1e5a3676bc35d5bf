"""Gateways of one database that were not set up alike: what one of them cannot answer the others do, and whoever looks is told."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from adapters.terminal.operator import status_lines
from gateway.operate.doctor.looks import judged_status
from tests.databases import new_database
from tests.several.support import PATIENT_SECONDS, Talks, cluster
from tests.several.test_doors import told_by


async def test_who_has_no_token_of_a_platform_runs_none_of_its_chats(postgres_server: str, tmp_path: Path) -> None:
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:
        without = await all_.begin("without", TELEGRAM_BOT_TOKEN="", OUTSPOKEN_MODEL__TEMPERATURE="0.5")
        first = await all_.begin("first")
        talks = Talks(all_.harness, 12)
        talks.say_everywhere()
        await talks.all_answered()
        owners = await all_.ask("SELECT DISTINCT owner FROM slices")
        assert owners == [(2,)], "chats, house and connection are whose that can answer"
        account = f"telegram/{all_.harness.env()['TELEGRAM_BOT_TOKEN'].partition(':')[0]}"
        lines = status_lines(await told_by(without))
        assert any(f"Gateway 1 does not serve {account}" in line for line in lines), lines
        (other,) = [line for line in lines if "other settings" in line]
        assert other.startswith("Gateway 2 has other settings than this one in [model], [telegram]:")
        warned = [one.what for one in judged_status(await told_by(without)) if one.check == "gateway.several"]
        assert len(warned) == 2

        first.signal(signal.SIGKILL)
        async with asyncio.timeout(PATIENT_SECONDS):
            while (await all_.ask("SELECT DISTINCT owner FROM slices WHERE slice LIKE 'chats/%'")) != [(1,)]:
                await asyncio.sleep(0.1)
        await all_.begin("third")
        talks.say_everywhere()
        await talks.all_answered()
        talks.judge()
        assert (await all_.ask("SELECT count(*) FROM turns WHERE state = 'open'")) == [(0,)]
        all_.sound()
