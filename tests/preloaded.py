"""What `tests.forked` has done before it forks: everything that a gateway imports or reads, whatever it is made to do."""

from __future__ import annotations

import gc
from importlib import import_module

from tests.databases import migrate_once

for name in (
    "adapters.discord.adapter",
    "adapters.discord.client",
    "adapters.slack.adapter",
    "adapters.slack.door",
    "adapters.telegram.adapter",
    "adapters.telegram.port",
    "agent_core.model.listing",
    "agent_core.tools.builtin.writers",
    "alembic.command",
    "anyio._backends._asyncio",
    "gateway.cli.command",
    "gateway.daemon",
    "gateway.operate.doctor.looks",
    "httpcore",
    "httpx2",
    "jsonschema",
    "openai",
    "openai.resources.chat",
    "openai.resources.models",
    "pytest",  # each child runs the script that began the tests, which imports it
    "slack_bolt.async_app",
    "slack_sdk.web.async_client",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "telegram.ext",
):
    import_module(name)

for name, reads in (("adapters.telegram.adapter", "_tls"), ("agent_core.model.transport", "trusted")):
    getattr(import_module(name), reads)()

migrate_once()

gc.collect()
gc.freeze()  # else the first collection in each child copies all of this
