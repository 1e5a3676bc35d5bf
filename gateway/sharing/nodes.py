"""All gateways of a database, as any of them shows them: what is stored of each, and what it has told of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import orjson

from agent_core.jsonvalue import Json
from agent_core.store.slices.rows import NodeSight
from agent_core.store.store import Store
from gateway.sharing.portion import Portion
from gateway.sharing.shares import CHATS

TOLD = (
    "address", "machine", "ready", "problems", "waiting_messages", "model_answers", "adapters", "directory", "serves", "settings",
)  # fmt: skip
"""What a gateway tells of itself."""


async def nodes_seen(store: Store, portion: Portion, now: int) -> list[Json]:
    """None where one serves alone. Raises `StorageUnavailable`."""
    if portion.whole:
        return []
    return nodes_json(await store.slices.nodes(), portion.owners, store.node, now)


async def address_of(store: Store, node: int) -> str:
    """Where a gateway is reached; empty if it has not told. Raises `StorageUnavailable`."""
    told = await store.slices.told([node])
    return str(_told(told.get(node, "")).get("address") or "")


def nodes_known(portion: Portion, here: int, now: int) -> list[Json]:
    """Who had what at the last look, while the storage is away: meanwhile others may have it, and what runs there nobody can say."""
    found = [NodeSight(one.node, one.address, one.version, one.started_at, running=None) for one in portion.peers]
    return nodes_json(found, portion.owners, here, now)


def nodes_json(nodes: Sequence[NodeSight], owners: Mapping[str, int | None], here: int, now: int) -> list[Json]:
    """In the order in which they came. Pure. A node that takes no part and has told nothing is a command's."""
    found: list[Json] = []
    for one in nodes:
        told = _told(one.told)
        if not one.address and not told:
            continue
        has = sorted(name for name, owner in owners.items() if owner == one.node)
        others: list[Json] = [name for name in has if not name.startswith(CHATS)]
        found.append({
            "node": one.node, "here": one.node == here, "address": one.address, "version": one.version,
            "started_at": one.started_at, "uptime_seconds": max(0, now - one.started_at) // 1000,
            "leaves": not one.address, "chats": len(has) - len(others), "has": others,
            "running_turns": one.running, "last_known": one.running is None, "silent_seconds": round(one.silent_seconds, 1), **told,
        })  # fmt: skip
    return found


def _told(words: str) -> dict[str, Json]:
    """What it has told, as far as we know what that is: it may be of another version."""
    try:
        read: Json = orjson.loads(words or b"{}")
    except orjson.JSONDecodeError:
        return {}
    table = cast("dict[str, Json]", read) if isinstance(read, dict) else {}
    return {name: table[name] for name in TOLD if name in table}
