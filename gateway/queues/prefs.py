"""What a conversation has set for itself, as it is stored with the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

import orjson

from agent_core.records import dataclass
from agent_core.store.store import Store
from agent_core.text.tongue import language_of
from gateway.config.types import SessionPolicy


@dataclass(frozen=True, slots=True)
class Prefs:
    """Empty fields leave the choice to the configuration."""

    model: str = ""
    policy: SessionPolicy | None = None
    agent: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """What its client has attached to it."""
    language: str = ""
    """In which its person wants to be spoken to."""

    def encode(self) -> str:
        """The stored form."""
        values = {"model": self.model, "policy": self.policy.value if self.policy else "", "agent": self.agent}
        values = {**values, "metadata": dict(self.metadata), "language": self.language}
        return orjson.dumps({name: value for name, value in values.items() if value}).decode()

    @staticmethod
    def decode(stored: str | None) -> Prefs:
        """From the stored form; what cannot be read counts as not set."""
        try:
            values: object = orjson.loads(stored or "{}")
        except orjson.JSONDecodeError:
            return Prefs()
        if not isinstance(values, dict):
            return Prefs()
        model, policy = str(values.get("model", "")), str(values.get("policy", ""))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        agent = str(values.get("agent", ""))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        policy = SessionPolicy(policy) if policy in set(SessionPolicy) else None
        language = language_of(str(values.get("language", "")))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return Prefs(model, policy, agent, _texts(values.get("metadata")), language)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {name: text for name, text in value.items() if isinstance(name, str) and isinstance(text, str)}  # pyright: ignore[reportUnknownVariableType]


class HasPrefs(Protocol):
    """A queue, as far as its prefs go."""

    session: str
    prefs: Prefs
    prefs_loaded: bool


async def prefs_of(store: Store, queue: HasPrefs) -> Prefs:
    """What the conversation has set for itself."""
    if not queue.prefs_loaded and queue.session:
        found = await store.sessions.one(queue.session)
        queue.prefs = Prefs.decode(found.policy if found is not None else None)
        queue.prefs_loaded = True
    return queue.prefs


def noted(name: str) -> str:
    """What stands in the stored form of settings in whose metadata something has this name, and in no other. Pure."""
    return f'"{name}":'
