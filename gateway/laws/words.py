"""What the auditor has found, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.jsonvalue import Json
from agent_core.text.durations import at_time
from gateway.laws.auditor import Audited
from gateway.laws.law import Breach

SHOWN = 50
"""So many breaches are printed; --json has them all."""


def lines(found: Audited) -> list[str]:
    """A paragraph for each breach, and at the end what was looked at."""
    told = [line for one in found.breaches[:SHOWN] for line in _paragraph(one)]
    if len(found.breaches) > SHOWN:
        told.append(f"… and {len(found.breaches) - SHOWN} more: --json has them all.")
    looked = f"{found.turns} turns, {found.messages} messages and {found.parts} parts of answers were looked at"
    if not found.breaches:
        return [f"No law is broken: {looked}."]
    count = "1 law is broken" if len(found.breaches) == 1 else f"Laws are broken at {len(found.breaches)} places"
    return [*told, f"{count}: {looked}."]


def _paragraph(one: Breach) -> list[str]:
    at = f", since {_time(one.since)}" if one.since else ""
    where = f" in {one.chat}" if one.chat else ""
    return [f"{one.law.value}: {one.what}", f"  {one.where}{where}{at}", f"  {one.law.advice}"]


def _time(at: int) -> str:
    return at_time(at).strftime("%Y-%m-%d %H:%M:%S UTC")


def as_json(breaches: Sequence[Breach]) -> list[Json]:
    """Each breach as an object."""
    return [
        {
            "law": one.law.value, "what": one.what, "where": one.where, "chat": one.chat, "since": one.since,
            "advice": one.law.advice,
        }
        for one in breaches
    ]  # fmt: skip


def report(found: Audited) -> dict[str, Json]:
    """The whole look as one object."""
    looked: dict[str, Json] = {"turns": found.turns, "messages": found.messages, "parts": found.parts}
    return {"sound": not found.breaches, "looked_at": looked, "breaches": as_json(found.breaches)}
