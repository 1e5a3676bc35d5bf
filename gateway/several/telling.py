"""What one of several gateways tells the others of itself: stored when it is another than before, and at most every few seconds.

It is what nobody else can know, for whoever asks another one how all are doing. That it lives is its pulse's to say.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import orjson
import structlog

from agent_core.beside import beside
from agent_core.jsonvalue import Json
from agent_core.store.store import LeaseLost, StorageUnavailable, Store
from gateway.chats.platforms import Platforms
from gateway.config.sections import Config
from gateway.observe.health import Health
from gateway.sessions.hub import Hub
from gateway.several.alike import sums
from gateway.storage.workfolder import number_of

log = structlog.get_logger("gateway")

TELL_SECONDS = 5.0
PROBLEMS = 5
"""As many are told."""


def told_of(url: str, hub: Hub, chats: Platforms, health: Health, same: Mapping[str, Json]) -> dict[str, Json]:
    """As `gateway.sharing.nodes.TOLD`. `same`: what stays the same while we serve."""
    found, portion = health.verdict(), hub.portion
    return {
        "address": reached_at(url, platform.node()),
        "machine": platform.node(),
        "ready": found.ready,
        "problems": [*found.not_ready[:PROBLEMS]],
        "waiting_messages": hub.slots.messages,
        "model_answers": health.model_answers,
        "adapters": [
            {"name": one.adapter.name, "state": one.sight().state}
            for one in chats.supervisors
            if portion.has_any(one.slices)
        ],
        "serves": [*sorted(portion.serves)],
        **same,
    }


def reached_at(url: str, machine: str) -> str:
    """Where others reach what listens here: everywhere is nowhere in particular. Pure."""
    return url.replace("//0.0.0.0:", f"//{machine}:").replace("//[::]:", f"//{machine}:")


@asynccontextmanager
async def telling(
    url: str, config: Config, store: Store, hub: Hub, chats: Platforms, health: Health
) -> AsyncGenerator[None]:
    """It tells the others for the block."""

    async def tell() -> None:
        last, directory = b"", await asyncio.to_thread(number_of, hub.workspaces)
        same: dict[str, Json] = {"directory": directory, "settings": {**sums(config)}}
        while True:
            words = orjson.dumps(told_of(url, hub, chats, health, same))
            if words != last:
                try:
                    await store.slices.tell(words.decode())
                    last = words
                except (StorageUnavailable, LeaseLost) as error:
                    log.warning("slices.not_told", error=str(error))
            await asyncio.sleep(TELL_SECONDS)

    async with beside(tell, "telling"):
        yield
