"""By whose clocks times are meant: what was set here last, else what the platform says, else the gateway's; of each only what can be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.contract.chat import ChatPerson
from gateway.later.zones import SETTING, TIMEZONE, zone_for
from gateway.limits.whose import memory_of
from tests.gateway.test_standing import of_a_chat
from tests.store.support import opened

HERE, THEIRS, OURS = "Asia/Tokyo", "Europe/Paris", "UTC"


@pytest.mark.parametrize(
    ("set_here", "platform", "zone"),
    [
        ((HERE,), THEIRS, HERE),
        (("Europe/Rome", HERE), THEIRS, HERE),
        (("nowhere",), THEIRS, THEIRS),
        (("nowhere",), "nowhere", OURS),
        ((), THEIRS, THEIRS),
        ((), "nowhere", OURS),
        ((), "", OURS),
        ((HERE,), "", HERE),
    ],
)
async def test_the_nearest_word_for_a_zone_that_can_be_read_counts(
    sqlite: str, set_here: tuple[str, ...], platform: str, zone: str
) -> None:
    inbound = of_a_chat()
    inbound = replace(inbound, chat=replace(inbound.chat, person=ChatPerson("p", "P", zone=platform)))
    async with opened(sqlite) as store:
        for at, (name, value) in enumerate([*((TIMEZONE, one) for one in set_here), ("another", "Asia/Seoul")]):
            await store.memory.put(memory_of(inbound), SETTING, name, value, at_ms=at)
        await store.memory.put("another/scope", SETTING, TIMEZONE, "Asia/Seoul", at_ms=9)
        said = await zone_for(store, inbound, OURS)
    assert (said.zone, said.sure) == (zone, zone != OURS)
