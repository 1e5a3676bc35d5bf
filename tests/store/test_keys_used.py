"""When a key was shown last: several gateways note it, each when it comes to that, and none puts it back."""

from __future__ import annotations

from itertools import permutations

import pytest

from agent_core.store.apikeys.rows import ApiKeyRow
from agent_core.store.audit import AuditRow
from tests.store.support import opened


@pytest.mark.parametrize("order", [*permutations((10, 20, 30))])
async def test_a_key_was_shown_last_at_the_latest_time_that_anybody_noted(order: tuple[int, ...], sqlite: str) -> None:
    async with opened(sqlite) as store:
        for name in ("desk", "phone"):
            row = ApiKeyRow(name, name[:2], "d", "{}", "ops", 1, 1)
            assert await store.apikeys.add(row, AuditRow(f"a_{name}", 1, "ops", "key", "", ""))
        latest = 0
        for at in order:
            latest = max(latest, at)
            await store.apikeys.used({"desk": at, "gone": at})
            assert {one.name: one.used_at for one in await store.apikeys.all()} == {"desk": latest, "phone": 0}
