"""How a message is doing as a whole, from its parts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.store.deliveries.rows import Delivery, DeliveryState


def state_of(parts: Sequence[Delivery]) -> tuple[str, str]:
    """(how a message is doing as a whole, why the last call failed): accepted, pending, sent or failed."""
    states = {one.row.state for one in parts}
    cause = next((one.row.cause for one in parts if one.row.cause), "")
    if not parts:
        return "accepted", ""
    if DeliveryState.FAILED in states:
        return "failed", next(one.row.cause for one in parts if one.row.state is DeliveryState.FAILED)
    if states <= {DeliveryState.SENT, DeliveryState.SKIPPED}:
        return "sent", ""
    return "pending", cause
