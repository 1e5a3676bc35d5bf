"""Whoever chose one of the ten languages reads no English sentence of ours, whatever they type, press or attach: on each platform, by the real gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from gateway.commands.registry import COMMANDS
from tests.catalogues import OTHERS
from tests.chats.conftest import EVERYWHERE, REAL
from tests.chats.harness import Harness, answers, running
from tests.english import english_in

ODD: tuple[tuple[str, str], ...] = (
    ("new", ""), ("stop", ""), ("stop", "all"), ("stop", "everything"), ("retry", ""), ("undo", ""), ("status", ""), ("why", ""), ("why", "t_1"),
    ("model", ""), ("model", "m1"), ("model", "none-such"), ("model", "reset"), ("agent", ""), ("agent", "x"),
    ("queue", ""), ("queue", "always"), ("queue", "say queued"), ("steer", ""), ("steer", "always"), ("steer", "say steered"), ("answer", ""), ("answer", "5"),
    ("remind", ""), ("remind", "in 20 minutes tea"), ("remind", "at 9 tea"), ("remind", "yesterday tea"), ("remind", "in 1 year tea"), ("remind", "in 20 years tea"),
    ("remind", "every weekday 9:00 stand-up"), ("remind", "cron 99 * * * * x"), ("remind", "every 3 seconds x"), ("remind", "in 5 minutes"), ("remind", "cancel 9"),
    ("remind", "cancel 1"), ("remind", "cancel all"), ("remind", "pause 1"), ("remind", "2026-02-30 10:00 x"),
    ("timezone", ""), ("timezone", "Europe/Berlin"), ("timezone", "CEST"), ("timezone", "Berln"), ("timezone", "reset"),
    ("resume", ""), ("resume", "7"), ("resume", "x"), ("link", ""), ("link", "ABCD-EFGH"), ("unlink", ""), ("unlink", "x"),
    ("usage", ""), ("usage", "x"), ("files", ""), ("files", "delete none.txt"), ("files", "delete all"), ("files", "x"), ("memory", ""), ("memory", "x"),
    ("forget", ""), ("forget", "x"), ("forget", "all"), ("approvals", ""), ("approvals", "x"), ("approvals", "revoke 3"), ("instructions", ""), ("instructions", "off"),
    ("redo", ""), ("redo", "x"), ("tasks", ""), ("tasks", "3"), ("help", ""), ("help", "remind"), ("access", "list"), ("access", "approve x"),
    ("start", ""), ("language", ""), ("language", "tlh"),
)  # fmt: skip
"""What is typed: every command, alone, as it is meant, and as it is not. What is answered is put into words above the platforms: each is typed on one of
them, in one language; on all of them by `make soak`."""
THEIRS = ("m1", "say queued", "say steered", "stand-up", "Europe/Berlin")


async def talk(platform: Harness, place: Any, person: Any, name: str, words: str) -> None:
    before = len(answers(platform, place))
    platform.command(place, person, name, words)
    await platform.until(lambda: len(answers(platform, place)) > before, 20)


async def in_language(
    platform: Harness, person: Any, tag: str, typed: Sequence[tuple[str, str]]
) -> dict[str, list[str]]:
    """What is English of what a person of this language reads, by what they did."""
    place, found = platform.private(person), dict[str, list[str]]()
    await talk(platform, place, person, "language", tag)
    for name, words in typed:
        known = {one.id for one in answers(platform, place)}
        await talk(platform, place, person, name, words)
        for one in answers(platform, place):
            said = "\n".join((one.text, *one.buttons))
            if one.id not in known and (english := english_in(said, *THEIRS, *([words] if words else []))):
                found[f"{tag} /{name} {words}"] = [*english[:4], said]
    return found


def test_every_command_is_typed() -> None:
    assert {one.name for one in COMMANDS if not one.own} - {name for name, _ in ODD} == {"press"}


async def test_no_command_is_answered_in_english(platform: Harness) -> None:
    typed = ODD if EVERYWHERE else ODD[REAL.index(platform.name) :: len(REAL)]
    people = [platform.person(f"P{tag}") for tag in OTHERS]
    async with running(platform):
        parts = [
            in_language(platform, one, tag, typed[n :: len(OTHERS)])
            for n, (tag, one) in enumerate(zip(OTHERS, people, strict=True))
        ]
        found = await asyncio.gather(*parts)
    assert [one for one in found if one] == []
