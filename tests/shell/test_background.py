"""Commands that go on in the background, as people see them: those of their own conversation. Without a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from gateway.limits.whose import workspace_of
from gateway.shell.background import BackgroundCommands
from tests.gateway.test_limits_rules import CHAT


async def test_commands_that_go_on_are_shown_to_their_own_conversation_and_ended_by_it_alone(tmp_path: Path) -> None:
    seen: list[Path] = []

    def live_of(workspace: Path) -> list[Any]:
        seen.append(workspace)
        return []

    async def end_all(workspace: Path) -> tuple[Sequence[str], Sequence[str]]:
        seen.append(workspace)
        return ["c1"], ["c2"]

    shell: Any = SimpleNamespace(commands=SimpleNamespace(live_of=live_of, end_all=end_all))
    background = BackgroundCommands(shell, tmp_path)
    assert background.going_on(CHAT) == ""
    words = await background.end(CHAT)
    assert seen == [workspace_of(CHAT, tmp_path)] * 2
    assert "1 command was ended: c1." in words
    assert "not over yet: c2" in words
    assert await BackgroundCommands(cast("Any", SimpleNamespace(commands=None)), tmp_path).end(CHAT) == ""
