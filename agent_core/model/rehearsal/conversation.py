"""What the rehearsal model reads out of a request. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from agent_core.jsonvalue import Json
from agent_core.messages import FILE_LINE, GATEWAY_PREFIX, said_by_the_gateway, said_by_the_person, text_of
from agent_core.records import dataclass

ATTACHED = "[The person attached"
"""How the gateway says that a file came."""


@dataclass(frozen=True, slots=True)
class RehearsalRequest:
    """A request, as far as a script needs it."""

    words: str
    """The person's latest words."""
    results: tuple[str, ...]
    """Results of the tools that ran since then, in order."""
    said: str
    """Text of the unfinished reply that the model is to go on from."""
    advice: str
    """The gateway's latest advice of this turn, lower case; empty if there is none."""
    tools: frozenset[str]
    attempt: int
    """Counts the requests with the same conversation, from 1."""
    asked: int
    """Counts the requests for the same words of the person, from 1."""
    attached: str = ""
    """What the gateway said of the latest files that came with a message of the person's."""
    schemas: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What each tool takes."""
    choice: Json = None
    """``tool_choice``, as it came."""
    form: Json = None
    """``response_format``, as it came."""


def read(
    messages: Sequence[Json], tools: Json, attempt: int, asked: int, *, choice: Json = None, form: Json = None
) -> RehearsalRequest:
    """The conversation in a request's messages."""
    plain = [message for message in messages if isinstance(message, dict)]
    last = max((i for i, message in enumerate(plain) if _is_person(message)), default=-1)
    words = said_by_the_person(text_of(plain[last].get("content"))) if last >= 0 else ""
    since = plain[last + 1 :]
    advice = [
        said_by_the_gateway(text_of(m.get("content"))) for m in plain[max(last, 0) :] if m.get("role") != "assistant"
    ]
    said = ""
    if len(since) > 1 and since[-1].get("role") == "user" and since[-2].get("role") == "assistant":
        said = text_of(since[-2].get("content")) if not since[-2].get("tool_calls") else ""
    return RehearsalRequest(
        words=_without_files(words),
        results=tuple(said_by_the_person(text_of(m.get("content"))) for m in since if m.get("role") == "tool"),
        said=said,
        advice=" ".join(advice).lower(),
        attached=next((said for said in map(_attached, reversed(plain)) if said), ""),
        tools=frozenset(_schemas(tools)),
        attempt=attempt,
        asked=asked,
        schemas=_schemas(tools),
        choice=choice,
        form=form,
    )


def _without_files(words: str) -> str:
    """What the person wrote: on the page the names of the files that came along stand below it. These alone, if there is nothing else."""
    written = "\n".join(line for line in words.splitlines() if not line.startswith(FILE_LINE))
    return written.strip() or words.strip()


def _attached(message: Mapping[str, Json]) -> str:
    said = said_by_the_gateway(text_of(message.get("content"))) if message.get("role") == "user" else ""
    return said.removeprefix(GATEWAY_PREFIX).strip() if ATTACHED in said else ""


def key_of(messages: Sequence[Json]) -> str:
    """What identifies the person's latest words: everything up to and including them."""
    plain = [message for message in messages if isinstance(message, dict)]
    last = max((i for i, message in enumerate(plain) if _is_person(message)), default=-1)
    words = said_by_the_person(text_of(plain[last].get("content"))) if last >= 0 else ""
    return repr((plain[: max(last, 0)], words))


def _is_person(message: Mapping[str, Json]) -> bool:
    return message.get("role") == "user" and bool(said_by_the_person(text_of(message.get("content"))))


def _schemas(tools: Json) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for tool in tools if isinstance(tools, list) else []:
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(function, dict) and isinstance(name, str):
            found[name] = function.get("parameters")
    return found
