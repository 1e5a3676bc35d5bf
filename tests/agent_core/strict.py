"""The strictest provider that there is: what each of several refuses, all in one. What they say when they refuse is named with its source."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.messages import Message, text_of

ALLOWED: dict[str, frozenset[str]] = {
    "": frozenset({"system", "user"}),
    "system": frozenset({"user"}),
    "user": frozenset({"assistant"}),
    "assistant": frozenset({"user", "tool"}),
    "tool": frozenset({"assistant", "tool"}),
}
"""What may follow what. "Conversation roles must alternate user/assistant" (Gemma's and Mistral's templates, vllm #6862);
"Unexpected role 'user' after role 'tool'" (Mistral's API, code 3230, avante.nvim #2562)."""


def objections(messages: Sequence[Message]) -> list[str]:
    """What it would refuse; empty if it takes the conversation."""
    found: list[str] = []
    before = ""
    for place, message in enumerate(messages):
        role = str(message.get("role"))
        if role not in ALLOWED[before]:
            found.append(f"message {place}: unexpected role {role!r} after {before!r}")
        if role == "tool" and not _has_calls(messages[:place]):
            found.append(f"message {place}: a result behind no call")
        if not text_of(message.get("content")).strip() and not message.get("tool_calls"):
            found.append(f"message {place}: content is not allowed to be empty")  # Anthropic, Mistral
        before = role
    if before not in ("user", "tool"):  # "Expected last role User or Tool … but got assistant" (Mistral)
        found.append(f"the last message is of role {before!r}")
    return found


def _has_calls(messages: Sequence[Message]) -> bool:
    return any(bool(m.get("tool_calls")) for m in [m for m in messages if m.get("role") != "tool"][-1:])
