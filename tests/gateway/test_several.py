"""What of several gateways needs no database: what they refuse, and that what one has is done as long as it has it."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.terminal.operator import status_lines
from agent_core.jsonvalue import Json
from agent_core.model.reach import ALONE
from agent_core.store.errors import StorageUnavailable
from agent_core.store.slices.rows import (
    HOUSE,
    TENURE,
    Division,
    NodeSight,
    PeerNode,
    Tenure,
    account_slices,
    chat_slices,
    slice_of,
)
from gateway.config.misfits import misfits
from gateway.config.sections import Config
from gateway.several.alike import sums
from gateway.several.dividing import Dividing
from gateway.several.telling import reached_at
from gateway.sharing.nodes import nodes_json, nodes_known
from gateway.sharing.portion import AccountConnections, Portion, SomeKept
from tests.store.support import FakeClock


@pytest.mark.parametrize(
    ("storage", "words"),
    [({}, "a SQLite file has one gateway"), ({"url": "sqlite:////tmp/x.db"}, "a SQLite file has one gateway")],
)
def test_what_several_cannot_do_is_refused_in_words(storage: dict[str, object], words: str) -> None:
    config = Config.model_validate({"storage": {**storage, "several": True}})
    assert words in " ".join(one.what for one in misfits(config, lambda _: True))
    assert not [one for one in misfits(Config(), lambda _: True) if one.key == "several"]


async def test_places_are_counted_on_before_a_chat_is_ours() -> None:
    portion, found = Portion(whole=False), list[frozenset[str]]()

    async def division() -> Division:
        others = dict.fromkeys((*chat_slices(), HOUSE), 8)
        return Division((), {**others, "chats/01": 7}, dict.fromkeys(others, 1))

    async def coming() -> None:
        found.append(portion.held)

    store = cast("Any", SimpleNamespace(node=7, slices=SimpleNamespace(division=division)))
    dividing = Dividing(portion, store, "", (), dict, lambda _: (), coming, lambda: None, lambda _: None, lambda: None)
    for _ in range(2):
        await dividing._look()
    assert (found, portion.held) == ([frozenset()], {"chats/01"})


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


async def test_positions_are_written_under_what_is_had() -> None:
    portion = Portion(whole=False)
    one, two = account_slices("slack/1", 2)
    connections, seen = AccountConnections(portion, (one, two), ALONE), dict[str, Tenure]()

    async def work(name: str) -> None:
        seen[name] = TENURE.get() or Tenure({})
        if name == "all":
            await asyncio.gather(*(connections.while_had(n, partial(work, str(n))) for n in (0, 1)))
        await asyncio.Event().wait()

    task = asyncio.create_task(portion.while_had((one, two), partial(work, "all")))
    portion.change({two}, {two: 4})
    await asyncio.sleep(0.01)
    assert connections.handed(1)
    assert not connections.handed(1), "it is said once"
    assert {name: found.held for name, found in seen.items()} == {"all": (f"{two}@4",), "1": (f"{two}@4",)}
    whole, second = seen["all"], seen["1"]
    portion.change({one, two}, {one: 7, two: 4}, found={one})
    await asyncio.sleep(0.01)
    assert not connections.handed(0), "nobody has handed it to us"
    assert seen["all"] is whole, "it goes on"
    assert set(whole.held) == {f"{one}@7", f"{two}@4"}
    portion.change({one}, {one: 7})
    await portion.quiet({two})
    assert second.held == (), "whoever is late writes nothing any more"
    assert whole.held == (f"{one}@7",)
    portion.change({one, two}, {one: 7, two: 6})
    await asyncio.sleep(0.01)
    assert seen["1"].held == (f"{two}@6",)
    portion.change(())
    await portion.quiet({one, two})
    assert [found.held for found in seen.values()] == [(), (), ()]
    assert task in asyncio.all_tasks()
    task.cancel()
    await asyncio.wait({task})


async def test_alone_everything_is_ours_and_one_of_several_has_its_slices() -> None:
    alone, one = Portion(), Portion(whole=False)
    assert alone.mine("telegram/1/2//")
    assert alone.has(HOUSE)
    assert not one.mine("telegram/1/2//")
    assert one.mine("api/once/x//"), "whoever takes a single request runs it"
    one.change({slice_of("telegram/1/2//")})
    assert one.mine("telegram/1/2//")
    assert one.mine("telegram/1/2/7/8")
    one.platforms = frozenset({"telegram"})
    assert not one.mine("telegram/1/2//"), "it has no such account, whoever may have it"
    assert one.mine("api/once/x//")
    one.serves = frozenset({"telegram/1"})
    assert one.mine("telegram/1/2//")
    assert alone.slices is None
    assert set(one.slices or ()) <= set(chat_slices())


def test_all_gateways_are_shown_with_what_they_tell_and_no_command() -> None:
    told = '{"address": "http://b:1", "ready": false, "problems": ["no disk"], "secret": 1, "adapters": [{"name": "t/1", "state": "up"}]}'
    nodes = [
        NodeSight(1, "http://a:1", "1.0", 1_000),
        NodeSight(2, "http://0.0.0.0:1", "1.1", 2_000, told, 3.14, 7),
        NodeSight(3, "", "1.0", 3_000),
        NodeSight(4, "", "1.0", 4_000, "{}"),
        NodeSight(5, "", "1.0", 5_000, '{"ready": true}'),
        NodeSight(6, "http://c:1", "1.0", 6_000, "what a later version tells"),
    ]
    owners = {
        "chats/00": 1,
        "chats/01": 2,
        HOUSE: 2,
        "account/t/1": 2,
        "account/t/1#1": 2,
        "account/s/1": 1,
        "account/s/1#2": 2,
    }
    found = nodes_json(nodes, {**owners, "chats/02": None}, 2, 10_000)
    shown = [cast("dict[str, Any]", one) for one in found]
    assert [one["node"] for one in shown] == [1, 2, 5, 6], "3 and 4 are commands, which serve nobody"
    second = shown[1]
    assert (second["here"], second["address"], second["chats"], second["has"]) == (
        True,
        "http://b:1",
        1,
        ["account/s/1#2", "account/t/1", "account/t/1#1", HOUSE],
    )
    assert (second["running_turns"], second["silent_seconds"], second["uptime_seconds"]) == (7, 3.1, 8)
    assert "secret" not in second
    assert shown[2]["leaves"]
    line = status_lines({"nodes": found})
    (words,) = [one for one in line if one.startswith("Gateway 2")]
    for part in (
        "http://b:1 (1.1, up for 8 s, this one)",
        "1/64 of the chats, s/1 connection 2, t/1 connections 0 1 (up), the house",
        "running turns: 7",
        "not ready: no disk",
        "silent for 3 s",
    ):
        assert part in words, (part, words)


def test_what_gateways_had_when_the_storage_was_there_is_said_to_be_of_then() -> None:
    portion = Portion(whole=False)
    portion.peers, portion.owners = (PeerNode(1, "http://a:1", "1.0", 1_000),), {"chats/00": 1, HOUSE: 1}
    (line,) = [one for one in status_lines({"nodes": nodes_known(portion, 1, 10_000)}) if one.startswith("Gateway 1")]
    assert line.endswith("1/64 of the chats, the house (when it was last known)")


def test_who_gets_nothing_from_the_model_is_named_where_another_one_does() -> None:
    """A provider that is away is nobody's network, and says so in each gateway's line alone."""

    def told(*answers: bool | None) -> str:
        nodes: list[Json] = [
            {"node": number, "chats": 1, "model_answers": one} for number, one in enumerate(answers, 1)
        ]
        return "\n".join(status_lines({"nodes": nodes}))

    away = "the model does not answer there"
    assert [told(*some).count(away) for some in ((True, None), (False, False, None), (True, False))] == [0, 2, 1]
    what = "Gateway 2 got nothing from the model in its last turns, while others did (1, 3)."
    assert what in told(True, False, True, None)
    assert "last turns" not in told(False, False, None) + told(True, None, True)


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("http://0.0.0.0:8787", "http://pod-1:8787"),
        ("http://[::]:8787", "http://pod-1:8787"),
        ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),
        ("http://10.0.0.1:80", "http://10.0.0.1:80"),
    ],
)
def test_what_listens_everywhere_is_named_by_its_machine(url: str, where: str) -> None:
    assert reached_at(url, "pod-1") == where


async def test_what_is_had_anew_is_begun_anew_also_where_nobody_else_had_it_meanwhile() -> None:
    portion, done = Portion(whole=False), list[int]()

    async def work() -> None:
        done.append(portion.epochs[HOUSE])
        await asyncio.Event().wait()

    portion.change({HOUSE}, {HOUSE: 1})
    task = asyncio.create_task(portion.while_had(HOUSE, work))
    await asyncio.sleep(0.01)
    portion.change({HOUSE}, {HOUSE: 1})
    await asyncio.sleep(0.01)
    portion.change({HOUSE}, {HOUSE: 2})
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task})
    assert done == [1, 2]


async def test_who_is_cancelled_twice_still_waits_for_the_end_of_what_it_does() -> None:
    portion, may_end, ended = Portion(whole=False), asyncio.Event(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            ended.append("ended")

    portion.change({HOUSE}, {HOUSE: 1})
    task = asyncio.create_task(portion.while_had(HOUSE, work))
    for _ in range(2):
        await asyncio.sleep(0.01)
        task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    may_end.set()
    await asyncio.wait({task}, timeout=5)
    assert (ended, task.cancelled()) == (["ended"], True)


def test_gateways_are_alike_whatever_their_secrets_and_folders_are_and_unlike_by_any_other_setting(
    tmp_path: Path,
) -> None:
    def told(**more: object) -> dict[str, str]:
        sections: dict[str, object] = {"model": {"name": "m", "api_key": "one", "fallbacks": []}, **more}
        return sums(Config.model_validate(sections))

    same = told()
    assert told(model={"name": "m", "api_key": "another", "fallbacks": []}) == same
    assert told(server={"public_url": "https://a.example"}) == same
    hook = {"name": "builds", "prompt": "Say it.", "session": "builds", "secrets": ["whsec_" + "A" * 43 + "="]}
    here, there = ({"entries": [hook | {"secret_files": [f"{place}/hook.secret"]}]} for place in "ab")
    assert told(hooks=here) == told(hooks=there) != same
    other = told(model={"name": "n", "api_key": "one", "fallbacks": []})
    assert {section for section in same if other[section] != same[section]} == {"model"}
    without = told(model={"name": "m", "fallbacks": []})
    assert {section for section in same if without[section] != same[section]} == {"model"}, "whether there is one"
    for place in ("a.key", "b.key"):
        file: dict[str, object] = {"name": "m", "fallbacks": [], "system_prompt_file": str(tmp_path / place)}
        assert told(model={**file, "api_key": "one"}) == same, "where a file lies"


async def test_whether_anybody_has_something_kept_is_looked_for_once_a_minute_after_a_word_and_after_a_failure() -> (
    None
):
    looked: list[bool | Exception] = []
    stored: list[bool | Exception] = [StorageUnavailable("away"), False, True]

    async def of_kind(*_: object) -> list[str]:
        looked.append(now := stored[0])
        if isinstance(now, Exception):
            raise now
        return ["one"] if now else []

    portion = Portion(whole=False)
    clock = FakeClock()
    some = SomeKept(cast("Any", SimpleNamespace(of_kind=of_kind)), "consent", clock, portion)
    with pytest.raises(StorageUnavailable):
        await some.any()
    stored.pop(0)
    assert [await some.any() for _ in range(3)] == [False] * 3
    assert len(looked) == 2, "it failed, and then there was none"
    stored.pop(0)
    assert not await some.any(), "nobody has said that there is one"
    portion.words["kept:consent"]()
    assert [await some.any() for _ in range(3)] == [True] * 3
    assert len(looked) == 3


def test_a_chat_of_a_bot_that_is_not_ours_is_not_answered_here_and_any_other_conversation_is() -> None:
    portion = Portion(whole=False)
    portion.held = frozenset(chat_slices())
    portion.serves, portion.platforms = frozenset({"telegram/1"}), frozenset({"telegram", "discord"})
    found = {
        key: portion.mine(key)
        for key in ("telegram/1/5//", "telegram/2/5//", "discord/1/5//", "api/key/one//ada", "task//t~1//")
    }
    assert [key for key, mine in found.items() if mine] == ["telegram/1/5//", "api/key/one//ada", "task//t~1//"]


async def test_that_somebody_has_kept_the_first_is_told_the_others_once() -> None:
    async def none(*_: object) -> list[str]:
        return []

    portion, told = Portion(whole=False), list[str]()
    portion.tell = cast("Any", told.append)
    some = SomeKept(cast("Any", SimpleNamespace(of_kind=none)), "consent", FakeClock(), portion)
    assert not await some.any()
    some.added()
    some.added()
    assert await some.any()
    assert told == ["kept:consent"]


@pytest.mark.parametrize("ours", [True, False])
def test_that_there_is_more_to_do_reaches_the_gateway_that_does_it(ours: bool) -> None:
    portion, told, rung = Portion(whole=False), list[str](), list[str]()
    portion.tell = cast("Any", told.append)
    portion.change([HOUSE] if ours else [], {HOUSE: 1})
    ring = portion.at_house("due", lambda: rung.append("rung"))
    ring()
    assert (rung, told) == (["rung"], [] if ours else ["due"])
    portion.words["due"]()
    assert rung == ["rung", "rung"], "another one says so"


@pytest.mark.parametrize(
    ("leases", "others", "doubted"),
    [
        ([False, True, False, True], True, False),
        ([False, False], True, True),
        ([True, False, False], True, True),
        ([False] * 4, False, False),
    ],
)
async def test_a_lease_is_doubted_when_it_is_over_twice_in_a_row_and_others_are_there(
    leases: list[bool], others: bool, doubted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, over = iter(leases), list[str]()

    class Lives:
        def lease_ok(self) -> bool:
            if (said := next(looks, None)) is None:
                over.append("all looks")
                raise LookupError
            return said

    monkeypatch.setattr("gateway.sharing.portion.DOUBT_SECONDS", 0.0)
    portion = Portion(whole=False)
    portion.peers = cast("Any", (1, 2) if others else (1,))
    connections = AccountConnections(portion, (), cast("Any", Lives()))
    try:
        await connections.doubted()
    except LookupError:
        assert over
    assert bool(over) is not doubted
