"""Staged troubles: their causes are found by the same commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.incidents.test_incidents import STAGES
from tests.incidents.test_incidents import test_its_cause_is_found as found_by_its_commands
from tests.postgres import WHOLE

SOME = ("A chat that blocked the bot", "A lost delivery", "A denied approval")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", [name for name in STAGES if WHOLE or name in SOME])
async def test_its_cause_is_found(name: str, tmp_path: Path) -> None:
    await found_by_its_commands(name, tmp_path)
