"""Runs looks side by side: each with a limit of its own, and none that fails hides another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from statistics import median

from adapters.checks.findings import Check, Finding, Level, Seen, ok, problem, worst

SKEW_SECONDS = 30.0
"""A clock that is off by more is worth a word: Slack's signatures are good for five minutes, certificates have their times."""
STATUS: Mapping[Level, int] = {
    Level.OK: 0,
    Level.NOTE: 0,
    Level.WARNING: 0,
    Level.PROBLEM: 1,
    Level.CONFIGURATION: 78,
}
"""The exit status for the gravest finding."""


async def examine(checks: Sequence[Check]) -> list[Finding]:
    """All findings in the order of the checks, and what they together say of this machine's clock."""
    seen = await asyncio.gather(*(_looked(one) for one in checks))
    skews = {
        check.clock: one.skew_seconds
        for check, one in zip(checks, seen, strict=True)
        if check.clock and one.skew_seconds is not None
    }
    return [*(finding for one in seen for finding in one.findings), *judged_clock(skews)]


async def _looked(check: Check) -> Seen:
    try:
        async with asyncio.timeout(check.limit_seconds):
            return await check.look()
    except TimeoutError:
        what = f"This check did not end within {check.limit_seconds:.0f} s."
        return Seen((problem(check.name, what, "Try again; if it stays, look at the network and at the disk."),))
    except Exception as error:  # noqa: BLE001 - a mistake in one check must not hide what the others found
        what = f"This check failed by a mistake of its own ({type(error).__name__})."
        return Seen((problem(check.name, what, "Please report it, with the output of outspoken --version."),))


def judged_clock(skews: Mapping[str, float]) -> list[Finding]:
    """What the others' clocks (seconds ahead of this machine's) say of ours. Nothing if nobody told the time."""
    if not skews:
        return []
    off = median(skews.values())
    who = ", ".join(skews)
    if abs(off) <= SKEW_SECONDS:
        odd = [name for name, skew in skews.items() if abs(skew) > SKEW_SECONDS]
        if odd:
            return [_off("clock", skews[odd[0]], odd[0])]
        return [ok("clock", f"The clock agrees with {who}.")]
    return [_off("clock", off, who)]


def _off(check: str, seconds: float, who: str) -> Finding:
    size = abs(seconds)
    words = f"{size / 3600:.1f} h" if size >= 5400 else f"{size / 60:.0f} min" if size >= 90 else f"{size:.0f} s"
    way = "behind" if seconds > 0 else "ahead"
    return problem(
        check,
        f"This machine's clock is {words} {way} (compared with {who}).",
        "Let it be set by the network: timedatectl set-ntp true (or start chrony or ntpd); in a container or a virtual machine, set the "
        "host's clock.",
    )


def exit_status(findings: Sequence[Finding]) -> int:
    """0 all is well, 1 a problem, 78 the configuration has to be changed."""
    return STATUS[worst(findings)]
