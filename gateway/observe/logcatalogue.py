"""What is said of each log event: when it is written, what to do about it, and what its fields mean. Pure.

Why: a log line is an interface: people filter by names and fields, and `outspoken triage` groups by them. A call in the source declares
the event, with its level and its fields; the words stand once, in `logevents.toml` (those of a platform's adapter in its folder).
``docs/logs.md`` is printed from both (`tests.printed.logs`), and a test finds a call without words and words without a call.
The words are read when somebody asks for them: a gateway that runs needs none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

from adapters.contract.logevents import BUG, DISK, LATER, LogEvent
from adapters.contract.platforms import Platform
from adapters.platforms import platforms
from agent_core.records import dataclass

GENAI: Mapping[str, Mapping[str, str]] = {
    "turn.ended": {
        "session": "gen_ai.conversation.id",
        "endpoint": "gen_ai.provider.name",
        "model": "gen_ai.request.model",
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
    },
    "tool.returned": {"tool": "gen_ai.tool.name", "call": "gen_ai.tool.call.id"},
}
"""By event and field: the name of the same fact in OpenTelemetry's conventions for generative AI, written besides ours in JSON: once a turn."""


@dataclass(frozen=True, slots=True)
class OurWords:
    """What `logevents.toml` says."""

    fields: Mapping[str, str]
    """What each field means, in every event that has it."""
    events: tuple[LogEvent, ...]


@cache
def our_words() -> OurWords:
    """The words of the gateway's own lines."""
    data = tomllib.loads(Path(__file__).with_name("logevents.toml").read_text("utf-8"))
    shared = {"bug": BUG, "disk": DISK, "later": LATER, **cast("dict[str, str]", data["actions"])}
    events = cast("dict[str, dict[str, str]]", data["events"])
    return OurWords(
        cast("dict[str, str]", data["fields"]),
        tuple(
            LogEvent(
                name,
                said["when"],
                shared[said["shared"]] if "shared" in said else said.get("action", ""),
                said.get("by", ""),
            )
            for name, said in events.items()
        ),
    )


def catalogue() -> tuple[LogEvent, ...]:
    """Every kind of line: the gateway's, and those of each platform that there is."""
    return (*our_words().events, *(event for one in platforms() for event in one.events))


def event_of(name: str) -> LogEvent | None:
    """What is known of a kind of line."""
    return _by_name(platforms()).get(name)


@lru_cache(1)
def _by_name(of: tuple[Platform, ...]) -> Mapping[str, LogEvent]:
    del of  # what `catalogue` follows from
    return {event.name: event for event in catalogue()}
