"""What is done straight in the database while no gateway runs, on a real store."""

from __future__ import annotations

from pathlib import Path

from agent_core.ports import SystemClock, SystemIds
from gateway.config.paths import find_paths
from gateway.config.reading import load
from gateway.operate.offline import forget, keys_of
from gateway.retention.forgetting import Forgetting
from tests.store.support import opened


async def test_who_is_to_be_forgotten_is_and_so_is_whom_a_gateway_had_not_come_to(tmp_path: Path) -> None:
    env = {"OUTSPOKEN_HOME": str(tmp_path)}
    config, paths, clock = load(None, env).config, find_paths(env), SystemClock()
    paths.database.parent.mkdir(parents=True, exist_ok=True)
    async with opened(str(paths.database)) as store:
        left = Forgetting(store, clock, SystemIds(clock), tmp_path / "w", None, None)
        await left.begin(("telegram/1", "8"), "operator")
    told = await forget(config, paths, "telegram/1", "7")
    assert told[0].startswith("telegram/1/7 is not among those who spoke"), "the name may be written wrongly"
    assert told[1].startswith("Forgotten.")
    async with opened(str(paths.database)) as store:
        jobs = await store.forgotten.jobs()
        assert [job.done_at is not None for job in jobs] == [True, True]


async def test_a_key_that_is_rotated_without_a_gateway_is_good_for_as_long_as_was_asked_for(tmp_path: Path) -> None:
    env = {"OUTSPOKEN_HOME": str(tmp_path)}
    config, paths = load(None, env).config, find_paths(env)
    await keys_of(config, paths, "add", "laptop", {})
    before = SystemClock().now_ms()
    (kept,), key = await keys_of(config, paths, "rotate", "laptop", {"keep_seconds": 3_600})
    until = kept["before_until"]
    assert isinstance(until, int)
    assert key
    assert before + 3_600_000 <= until <= SystemClock().now_ms() + 3_600_000
    (ended,), _ = await keys_of(config, paths, "rotate", "laptop", {})
    now = ended["before_until"]
    assert now is None or (isinstance(now, int) and now <= SystemClock().now_ms())
