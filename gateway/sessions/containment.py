"""What a turn is told of words that are not its person's: where they stand at first, and what the operator says of what reaches outside. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from adapters.contract.base import FromChat, Inbound
from agent_core.jsonvalue import Json
from agent_core.messages import Message
from agent_core.records import dataclass
from agent_core.rules.taint import ATTACHED, BROUGHT, DECLARED, EARLIER
from agent_core.settings import ToolFacts
from agent_core.tools.base import ToolSpec, WhenTainted


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """What the operator says of tools: which need a person's word always, and what becomes of what reaches outside, once a turn is tainted."""

    approval: frozenset[str] = frozenset()
    tainted: WhenTainted = WhenTainted.ASK
    by_tool: Mapping[str, WhenTainted] = field(default_factory=dict[str, WhenTainted])
    approvers: tuple[str, ...] = ("asker", "admins")
    """Who may give it (see `gateway.sessions.consents`)."""

    def facts(self, spec: ToolSpec) -> ToolFacts:
        """What the turn machine is told of a tool."""
        return ToolFacts(
            spec.name,
            spec.effect,
            spec.housekeeping,
            spec.approval or spec.name in self.approval,
            spec.reach,
            links=spec.links,
            foreign=spec.foreign_words,
            tainted=self.by_tool.get(spec.name, self.tainted),
        )


def foreign_at_first(
    inbounds: Sequence[Inbound], history: Sequence[Message] | None, tools: Sequence[ToolFacts], *, earlier: bool
) -> tuple[str, ...]:
    """Where words of others stand that the model reads with its first call. Pure."""
    asked = [message for inbound in inbounds for message in inbound.input]
    attached = [one for one in inbounds if isinstance(one, FromChat) and one.chat.brings_others]
    shown = [m for m in asked if isinstance(m.content, list) and any(is_beside_text(part) for part in m.content)]
    brought = [m for m in asked if m.role == "tool"] or [m for m in history or () if m.get("role") == "tool"]
    found = {
        EARLIER: earlier and history is None,
        DECLARED: [tool for tool in tools if tool.foreign],
        BROUGHT: brought,
        ATTACHED: attached or shown,
    }
    return tuple([name for name, there in found.items() if there])


def is_beside_text(part: Json) -> bool:
    """Whether a part of a message is no text: a picture, a file, sound."""
    return isinstance(part, dict) and part.get("type") not in ("text", "input_text")
