"""What the gateway itself refuses, met by programs of others in every way in which a person calls them: each is an error, at once, and no model is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.clients.matrix import BEGUN_EACH_TIME, WAYS, Case, outcomes, rig
from tests.sampled import chosen

AT_ONCE_SECONDS = 30


@dataclass(frozen=True)
class Refused:
    status: int
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str = "served"
    used_up: bool = False


REFUSED = {
    "a wrong key": Refused(401, {"OUTSPOKEN_SERVER__API_KEY": "another"}),
    "a model that there is not": Refused(404, model="nobody"),
    "a budget that is used up": Refused(429, {"OUTSPOKEN_BUDGETS__DAY_TOKENS": "1"}, used_up=True),
}
FALLBACK = "from the second"


ALL = [(why, program) for why in REFUSED for program in WAYS]
EACH_TIME = list(zip(REFUSED, chosen("refused", sorted(WAYS.keys() - {BEGUN_EACH_TIME}), len(REFUSED)), strict=False))
"""Each program is a process that imports much, so each of them is met by one (in `make soak` all by all: ``TESTS_ALL_CLIENTS=1``)."""


@pytest.mark.parametrize(("why", "program"), ALL if "TESTS_ALL_CLIENTS" in os.environ else EACH_TIME)
async def test_what_the_gateway_refuses_is_an_error_in_every_program(why: str, program: str, tmp_path: Path) -> None:
    refused = REFUSED[why]
    async with rig(tmp_path, **refused.env) as up:
        if refused.used_up:
            await _use(up.url)
        before = len(up.provider.requests)
        asked = [Case(program, way, "refused", program[:4]) for way in WAYS[program]]
        found = await outcomes(program, up.url, faults=asked, model=refused.model)
        untrue = {
            str(case): line
            for case in asked
            if not _told(line := found[f"{case.way}|{case.words}"], case, refused.status)
        }
        assert not untrue
        assert len(up.provider.requests) == before, "no model is asked"


def _told(line: Mapping[str, Any], case: Case, status: int) -> bool:
    outcome = line["outcome"]
    if "fallback" in case.way:
        return outcome.get("text") == FALLBACK
    return bool(outcome.get("error")) and outcome.get("status") in (None, status) and line["seconds"] < AT_ONCE_SECONDS


async def _use(url: str) -> None:
    """A first request uses up what there is."""
    body = {"model": "served", "messages": [{"role": "user", "content": "say hello"}]}
    async with aiohttp.ClientSession() as session, session.post(f"{url}/chat/completions", json=body) as answer:
        assert answer.status == 200
        await answer.read()
