"""What `tests.forked` has done before it forks: everything that a gateway imports or reads, whatever it is made to do."""

from __future__ import annotations

import gc
from importlib import import_module

from agent_core.text.tongue import LANGUAGES, catalogue
from tests.databases import migrate_once
from tests.memory import OBJECTS_BETWEEN_COLLECTIONS

for name in (
    "adapters.discord.adapter",
    "adapters.discord.client",
    "adapters.discord.platform",
    "adapters.slack.adapter",
    "adapters.slack.door",
    "adapters.slack.platform",
    "adapters.telegram.adapter",
    "adapters.telegram.platform",
    "adapters.telegram.port",
    "agent_core.model.listing",
    "agent_core.tools.builtin.fetch",
    "agent_core.tools.builtin.readers",
    "agent_core.tools.builtin.writers",
    "agent_core.tools.python.sources",
    "agent_core.tools.web.pages",
    "alembic.command",
    "anyio._backends._asyncio",
    "encodings.idna",
    "gateway.chats.handlers",
    "gateway.cli.command",
    "gateway.daemon",
    "gateway.observe.logging",
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
    "uvloop",
):
    import_module(name)

for name, makes in (
    ("adapters.telegram.wire", "trusted"),
    ("agent_core.model.client", "_load"),
    ("agent_core.model.transport", "trusted"),
    ("gateway.warming", "make_records"),
):
    getattr(import_module(name), makes)()
for language in LANGUAGES:
    catalogue(language)

migrate_once()

gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
gc.collect()
gc.freeze()  # else the first collection in each child copies all of this
