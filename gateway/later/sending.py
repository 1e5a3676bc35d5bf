"""``send_message``: the model writes into another chat, one of those that the operator allows.

The message goes the way of ``outspoken send``: stored first, under the call's key, so that a call that is begun again sends no second; and what the
model is told is what the outbox knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from adapters.contract.chat import CallFailed
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.store import OwnedElsewhere, StorageUnavailable
from agent_core.tools.base import (
    DoubtCause,
    EffectClass,
    NotPossible,
    Reach,
    ToolContext,
    ToolOutcome,
    ToolSpec,
    ToolStatus,
)
from gateway.delivery.outcome import state_of
from gateway.later.parts import Later
from gateway.schedule.toolspecs import SEND_MESSAGE

WAIT_SECONDS = 20.0
"""So long a call waits for the platform's word."""
MOST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Writes into a chat that is allowed."""

    later: Later
    chats: Mapping[str, str]
    """PLATFORM/CHAT, by the names that the model knows."""

    @property
    def spec(self) -> ToolSpec:
        names: list[Json] = [*self.chats]
        return ToolSpec(
            SEND_MESSAGE,
            "Write a message into another chat. It says whether it was delivered: tell the person just that.",
            {
                "type": "object",
                "properties": {
                    "to": {"type": "string", "enum": names},
                    "text": {"type": "string", "minLength": 1, "maxLength": MOST_TEXT, "description": "Markdown"},
                },
                "required": ["to", "text"],
                "additionalProperties": False,
            },
            EffectClass.KEYED,
            deadline_seconds=WAIT_SECONDS + 40,
            reach=Reach.OUTSIDE,
        )

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        name, text = str(arguments["to"]), str(arguments["text"])
        parts = self.later.parts
        if not text.strip():
            raise NotPossible("There is nothing in it. Nothing was sent.")
        try:
            address = await parts.find(name)
        except LookupError as error:
            raise NotPossible(
                f"{error} Nothing was sent; whoever runs the gateway has to correct [send] allow."
            ) from None
        except CallFailed as error:
            raise NotPossible(f"The platform does not give that chat: {error.words}. Nothing was sent.") from None
        try:
            number = await parts.post(address, f"sent:{context.key}", text)
        except (StorageUnavailable, OwnedElsewhere):
            words = f"The message to {name} could not be stored for certain, so it may or may not go out. Do not send it again without asking."
            return ToolOutcome(ToolStatus.FAILED, words)
        return await self._told(number, name)

    async def _told(self, number: int, name: str) -> ToolOutcome:
        """What the outbox knows of it, once that is settled or the time is over."""
        loop, outbox = asyncio.get_running_loop(), self.later.parts.outbox
        until = loop.time() + WAIT_SECONDS
        while True:
            rows = await self.later.store.deliveries.of(f"inbox:{number}")
            state, cause = state_of(rows)
            left = until - loop.time()
            if state in ("sent", "failed") or left <= 0:
                unknown = any(one.row.state is DeliveryState.UNKNOWN for one in rows)
                return delivered(state, cause, name, unknown=unknown)
            await outbox.records.change(min(1.0, left))


def delivered(state: str, cause: str, name: str, *, unknown: bool) -> ToolOutcome:
    """What the model is told. Pure."""
    why = f" ({cause})" if cause else ""
    if state == "sent":
        return ToolOutcome(ToolStatus.OK, f"Sent: the platform has taken the message to {name}.")
    if state == "failed":
        return ToolOutcome(
            ToolStatus.FAILED,
            f"Not delivered: the platform refused the message to {name}{why}, and it is not tried again.",
        )
    if unknown:
        words = f"Nobody knows whether the message to {name} came through{why}: the platform's answer was lost. Do not send it again without asking."
        return ToolOutcome(ToolStatus.UNKNOWN, words, doubt=DoubtCause.WENT_AWAY)
    words = f"The message to {name} is stored and goes out as soon as the platform takes it{why}; so far it has not. Do not send it again."
    return ToolOutcome(ToolStatus.OK, words)
