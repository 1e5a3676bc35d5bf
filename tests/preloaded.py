"""What `tests.forked` has done before it forks: everything that a gateway imports or reads, whatever it is made to do."""

from __future__ import annotations

import gc
from importlib import import_module
from pkgutil import walk_packages

import adapters
import agent_core
import gateway
from agent_core.text.tongue import LANGUAGES, catalogue
from tests.databases import migrate_once
from tests.memory import OBJECTS_BETWEEN_COLLECTIONS

for top in (adapters, agent_core, gateway):
    for module in walk_packages(top.__path__, f"{top.__name__}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
for name in (
    "alembic.command",
    "anyio._backends._asyncio",
    "asyncpg",
    "encodings.idna",
    "httpcore",
    "httpx2",
    "jsonschema",
    "openai",
    "openai.resources.chat",
    "openai.resources.models",
    "pytest",  # each child runs the script that began the tests, which imports it
    "slack_bolt.async_app",
    "slack_sdk.web.async_client",
    "sqlalchemy.dialects.postgresql.asyncpg",
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
