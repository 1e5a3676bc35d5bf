"""A database whose server dies, and its standby that goes on: the gateways that share it go with it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.several.support import Talks, cluster
from tests.storage.test_postgres_ways import server
from tests.storage.test_stumbles import standby_of

PEOPLE = 8


async def test_gateways_go_on_at_the_standby_with_all_that_they_have_taken(tmp_path: Path) -> None:
    with server() as one, standby_of(one) as two:
        servers = f"postgresql://postgres@/postgres?host=127.0.0.1:{two.port}&host=127.0.0.1:{one.port}"
        async with cluster(tmp_path, "telegram", servers) as all_:
            await all_.begin("first")
            await all_.begin("second")
            await all_.even(2)
            await all_.harness.ready()
            talks = Talks(all_.harness, PEOPLE)
            talks.say_everywhere()
            await talks.all_answered()
            for which in range(PEOPLE):
                talks.say(which, "slow one two three four five six seven answer")
            await asyncio.sleep(0.5)
            await asyncio.to_thread(one.stop, "immediate")
            talks.say_everywhere()
            await asyncio.sleep(1)
            await asyncio.to_thread(two.control, "promote")
            promoted = time.monotonic()
            await talks.all_answered()
            print(f"all answered {time.monotonic() - promoted:.1f} s after the other server took over")
            talks.judge()
            asked = await all_.ask("SELECT count(*) FROM turns WHERE state = 'closed'")
            assert asked == [(3 * PEOPLE,)], "each message has one turn, which is over"
            all_.sound()
        one.start()  # for its fixture, which stops it
