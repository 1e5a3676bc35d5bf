"""Whoever knows only docs/incidents.md finds the cause of each staged trouble, with at most three commands."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.incidents import stages_chat, stages_home, stages_model
from tests.incidents.page import MOST_COMMANDS, incidents
from tests.incidents.rig import PATIENCE

STAGES = {**stages_model.STAGES, **stages_chat.STAGES, **stages_home.STAGES}


def test_the_page_and_the_stages_are_the_same() -> None:
    found = incidents()
    assert sorted(found) == sorted(STAGES)
    for one in found.values():
        assert 1 <= len(one.commands) <= MOST_COMMANDS, one
        assert one.phrases, one


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Slack's library leaves connections
@pytest.mark.parametrize("name", STAGES)
async def test_its_cause_is_found(name: str, tmp_path: Path) -> None:
    incident = incidents()[name]
    async with STAGES[name](tmp_path) as operator:
        deadline = time.monotonic() + PATIENCE
        while True:  # what is tried again and again is told in turn as being tried and as having failed
            said = {command: await operator.run(command) for command in incident.commands}
            missing = [one for one in incident.phrases if not any(one in words for words in said.values())]
            if not missing or time.monotonic() > deadline:
                break
    assert not missing, f"{name}: {missing} is not in\n" + "\n".join(f"$ {c}\n{w}" for c, w in said.items())
