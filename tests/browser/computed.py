"""What a page's own thread computes, whatever else the machine does meanwhile: by Chromium's trace, in which each task has its processor time."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from playwright.async_api import Browser, Page

CATEGORIES = ["toplevel", "blink.user_timing"]
TASK = "ThreadControllerImpl::RunTask"


@dataclass
class Computed:
    """Filled when the trace is over."""

    longest: float = 0
    """Milliseconds of processor time of the longest task: for so long the page showed and heard nothing."""
    between: dict[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of all tasks from one mark (`performance.mark`) to the next, by the first one's name."""


def _read(trace: bytes) -> Computed:
    events: list[dict[str, Any]] = json.loads(trace)["traceEvents"]
    marks = [event for event in events if event.get("cat") == "blink.user_timing"]
    assert marks, "the page has set no mark, so nobody knows which thread is its own"
    ours = marks[-1]["pid"], marks[-1]["tid"]
    tasks = [
        (event["ts"], event.get("tdur", 0) / 1_000)  # one of a microsecond has none
        for event in events
        if event["name"] == TASK and event.get("ph") == "X" and (event["pid"], event["tid"]) == ours
    ]
    made = Computed(max(took for _, took in tasks))
    inner = sorted((event["ts"], event["name"]) for event in marks if (event["pid"], event["tid"]) == ours)
    for (begins, name), (ends, _) in pairwise(inner):
        made.between[name] = sum(took for at, took in tasks if begins <= at < ends)
    return made


@asynccontextmanager
async def computed(browser: Browser, page: Page) -> AsyncGenerator[Computed]:
    """What the page computes inside the block. One trace can run at a time; the page has to set a mark in it."""
    found = Computed()
    await browser.start_tracing(page=page, categories=CATEGORIES)
    try:
        yield found
    finally:
        trace = await browser.stop_tracing()
    read = _read(trace)
    found.longest, found.between = read.longest, read.between
