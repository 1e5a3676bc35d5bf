"""Fingerprints: the signature under which a failure is counted, without a word of a person's text. Pure."""

from __future__ import annotations

from agent_core.exits import ExitClass, ExitCode, exit_class
from agent_core.turn import Turn

_BUCKETS = ((1_000, "S"), (8_000, "M"), (40_000, "L"))


def size_bucket(chars: int) -> str:
    """Arguments or text of so many characters: S under 1,000, M under 8,000, L under 40,000, else XL; ``-`` for none."""
    if chars <= 0:
        return "-"
    return next((name for limit, name in _BUCKETS if chars < limit), "XL")


def fingerprint(turn: Turn) -> str:
    """The fingerprint of how a turn ended: exit, provider, model, tool and size; empty for clean exits."""
    if turn.exit is None or exit_class(turn.exit.code) in (ExitClass.CLEAN, ExitClass.HANDED, ExitClass.STOPPED):
        return ""
    facts = turn.exit.facts
    tool = facts.tool or (facts.tools_dropped[0] if facts.tools_dropped else "-")
    cause = facts.cause.value if facts.cause is not None and turn.exit.code is not ExitCode.STEP_LIMIT else "-"
    size = size_bucket(turn.arriving_chars)
    return "|".join((turn.exit.code.value, cause, turn.route.endpoint, turn.route.model, tool or "-", size))
