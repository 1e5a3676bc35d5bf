"""What of several gateways needs no database: what they refuse, and that what one has is done as long as it has it."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.store.slices.rows import HOUSE, chat_slices, slice_of
from gateway.config.misfits import misfits
from gateway.config.sections import Config
from gateway.sharing.portion import Portion


@pytest.mark.parametrize(
    ("storage", "words"),
    [({}, "a SQLite file has one gateway"), ({"url": "sqlite:////tmp/x.db"}, "a SQLite file has one gateway")],
)
def test_what_several_cannot_do_is_refused_in_words(storage: dict[str, object], words: str) -> None:
    config = Config.model_validate({"storage": {**storage, "several": True}})
    assert words in " ".join(one.what for one in misfits(config, lambda _: True))
    assert not [one for one in misfits(Config(), lambda _: True) if one.key == "several"]


async def test_what_is_had_is_done_as_long_as_it_is_had() -> None:
    portion, done = Portion(whole=False), list[str]()

    async def work() -> None:
        done.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            done.append("ended")

    async def beside() -> None:
        done.append("beside")

    task = asyncio.create_task(portion.while_had(HOUSE, work, beside))
    await asyncio.sleep(0.01)
    portion.change({HOUSE})
    await asyncio.sleep(0.01)
    assert done == ["beside", "begun"]
    portion.change({"chats/01"})
    await portion.quiet({HOUSE})
    assert done[2] == "ended", "whoever waits for quiet knows that it is over"
    await asyncio.sleep(0.01)
    portion.change({HOUSE, "chats/01"})
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task})
    assert done == ["beside", "begun", "ended", "beside", "begun", "ended"]


async def test_alone_everything_is_ours_and_one_of_several_has_its_slices() -> None:
    alone, one = Portion(), Portion(whole=False)
    assert alone.mine("telegram/1/2//")
    assert alone.has(HOUSE)
    assert not one.mine("telegram/1/2//")
    assert one.mine("api/once/x//"), "whoever takes a single request runs it"
    one.change({slice_of("telegram/1/2//")})
    assert one.mine("telegram/1/2//")
    assert one.mine("telegram/1/2/7/8")
    assert alone.slices is None
    assert set(one.slices or ()) <= set(chat_slices())
