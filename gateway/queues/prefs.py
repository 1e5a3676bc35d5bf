"""What a conversation has set for itself, as it is stored with the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

import orjson

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.store.sessions.rows import settings_with
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
        return self.since(Prefs())

    def since(self, before: Prefs) -> str:
        """What is set otherwise than it was, as `SessionChange` stores it."""
        was = before._table()
        return orjson.dumps({name: value for name, value in self._table().items() if value != was[name]}).decode()

    def _table(self) -> dict[str, Json]:
        return {
            "model": self.model, "policy": self.policy.value if self.policy else "", "agent": self.agent,
            "metadata": dict(self.metadata), "language": self.language,
        }  # fmt: skip

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


def goes_by(queue: HasPrefs, before: Prefs, after: Prefs) -> None:
    """The conversation goes by what is set otherwise than before, and by what others have set meanwhile."""
    now = queue.prefs if queue.prefs_loaded else before
    queue.prefs, queue.prefs_loaded = Prefs.decode(settings_with(now.encode(), after.since(before))), True


def noted(name: str) -> str:
    """What stands in the stored form of settings in whose metadata something has this name, and in no other. Pure."""
    return f'"{name}":'
