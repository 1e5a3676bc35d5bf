"""A failing scenario made small: what can be left out of its plan is, as long as a law is still broken; the rest is told in ten lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.sim.whole.scenario import Plan, Result
from tests.sim.whole.service import Faults

STORY_LINES = 10
TRIES = 300

Broken = Callable[[Plan], list[str]]


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less in them, those that leave out most first."""
    for name in ("said", "kills", "storage"):
        items = getattr(plan, name)
        size = len(items)
        while size:
            for begin in range(0, len(items), size):
                yield replace(plan, **{name: items[:begin] + items[begin + size :]})
            size //= 2
    faults = plan.faults
    for calm in (Faults(0.0, faults.repeats, faults.cuts), replace(faults, repeats=0.0), replace(faults, cuts=0.0)):
        if calm != faults:
            yield replace(plan, faults=calm)
    if plan.trouble:
        yield replace(plan, trouble=0.0)


def shrunk(plan: Plan, broken: Broken, tries: int = TRIES) -> Plan:
    """The smallest plan that was found within so many tries and still breaks a law of the same kind."""
    kind = _kind(broken(plan))
    while tries > 0:
        for less in smaller(plan):
            tries -= 1
            if less.said and kind & _kind(broken(less)):
                plan = less
                break
            if tries <= 0:
                return plan
        else:
            return plan
    return plan


def _kind(found: list[str]) -> set[str]:
    """What sort of law is broken: its sentence without names, numbers and quotations."""
    return {" ".join(word for word in one.split("'")[0].split() if word.isalpha()) for one in found}


def story(result: Result, found: list[str]) -> list[str]:
    """What happened, and which law that breaks, in so many lines."""
    last = [f"BROKEN: {one}" for one in found[:2]]
    told = [f"{at:7.2f} s  {words}" for at, words in result.story]
    room = STORY_LINES - len(last)
    if len(told) > room:
        told = [*told[: room - 4], f"         … {len(told) - room + 1} more …", *told[-3:]]
    return [*told, *last]
