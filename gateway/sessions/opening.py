"""From an accepted message to the turn's first event. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from adapters.contract.base import Inbound
from agent_core import storedjson
from agent_core.driver.modelcalls import client_tools
from agent_core.judging.leftout import LeftOut, looked_at
from agent_core.learning.incidents import IncidentRules
from agent_core.learning.known import Known
from agent_core.limits.retention import Keep
from agent_core.messages import Message
from agent_core.turn.events import TurnOpened
from agent_core.turn.settings import Route, TurnSettings
from gateway.config.types import SessionPolicy
from gateway.limits.admission import Bounds
from gateway.sessions.whose import nameless, withheld_from


@dataclass(frozen=True, slots=True)
class HubSettings:
    """What the gateway's configuration says about turns and sessions."""

    turn: TurnSettings
    """The template of each turn's settings; its routes and client tools are replaced."""
    system_prompt: str
    connect_seconds: float
    queue_limit: int
    """How many messages may wait in one session."""
    policy: SessionPolicy
    """What a message does that comes while a turn of its session is running."""
    workspaces: Path
    history_turns: int
    """How many closed turns of a session are put before the model at most."""
    rehearsal: bool
    version: str
    watch_look_seconds: float = 5.0
    """How often it is looked whether drivers do something."""
    watch_grace_seconds: float = 20.0
    """So long a driver may be overdue: timers and a busy loop are not exact."""
    bounds: Bounds = field(default_factory=Bounds)
    """How many turns may be open, and how many messages wait."""
    incidents: IncidentRules = field(default_factory=IncidentRules)
    keep: Keep = field(default_factory=Keep)
    """How long what is kept."""
    spool: Path | None = None
    """Copies of files on their way to chats."""


def opened_event(
    inbounds: Sequence[Inbound],
    settings: HubSettings,
    routes: tuple[Route, ...],
    known: Known,
    *,
    at: int,
    seed: int,
    left_out: Sequence[LeftOut] = (),
) -> TurnOpened:
    """The first event of the turn that answers `inbounds` (one, or several that were merged)."""
    first = inbounds[0]
    offered = client_tools(first.client_tools) if first.client_tools else None
    withheld = withheld_from(first)
    turn = replace(
        settings.turn,
        routes=routes,
        tools=() if offered else tuple(t for t in settings.turn.tools if t.name not in withheld),
        client_tools=offered.names if offered else (),
        can_approve=first.can_approve,
        client_output_limit=first.client_output_limit,
    )
    asked = tuple(message for inbound in inbounds for message in inbound.input)
    said = [message.to_message() for message in asked]
    return TurnOpened(
        at=at,
        input=asked,
        settings=turn,
        seed=seed,
        own_history=first.own_history,
        request=first.request,
        client_tools=first.client_tools,
        surface=first.surface,
        known=known,
        left_out=looked_at(left_out, said),
    )


def brought(inbounds: Sequence[Inbound]) -> list[Message]:
    """The conversation that a client brings along, with what it says now."""
    said = [message.to_message() for inbound in inbounds for message in inbound.input]
    return [*(inbounds[0].own_history or ()), *said]


def conversation_of(inbound: Inbound) -> str:
    """Under which name failures of a message's conversation are remembered; empty: its session's.

    A stateless client brings the whole conversation each time, under no name; who asks and what it begins with tell it again. Of those who are
    nobody many begin alike, and nobody shares with nobody.
    """
    if inbound.own_history is None or nameless(inbound):
        return ""
    said = [m.get("content") for m in inbound.own_history if m.get("role") == "user"]
    said += [message.content for message in inbound.input if message.role == "user"]
    first = hashlib.blake2b(storedjson.dumps(said[:1]), digest_size=12).hexdigest()
    return f"{inbound.memory_scope}#{first}"


def system_prompt_of(settings: HubSettings, date: str) -> str:
    """The system prompt of a turn that begins on `date` (ISO)."""
    return f"{settings.system_prompt}\n\nToday is {date} (UTC)." if settings.system_prompt else ""
