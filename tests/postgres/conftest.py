"""A database on the server for each test, and the auditor at its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from agent_core.store.database import ownership
from tests import elsewhere
from tests.chats.conftest import platform
from tests.databases import TEMPLATE, for_a_test
from tests.laws.look import breaches

__all__ = ["platform"]

LEASE_SECONDS = 30.0
"""Long enough for a busy machine; who is killed loses the database with its connection, whatever this is."""


@pytest.fixture(autouse=True)
async def _on_a_server(postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[None]:
    monkeypatch.setattr(ownership, "LEASE_SECONDS", LEASE_SECONDS)
    async with for_a_test(postgres_server, TEMPLATE) as url:
        elsewhere.use(url)
        try:
            yield
        finally:
            elsewhere.use("")
        assert await breaches(url) == []
