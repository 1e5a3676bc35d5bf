"""Commands through the front door of a whole gateway: told in the conversation when they end, and not offered where no sandbox works."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.contract.base import Ended, FromApi, SessionKey, Ticket
from agent_core.messages import InputMessage
from gateway.config.tools.shell import SHELL_TOOLS, Shell, ShellSandbox
from gateway.daemon import Serving
from gateway.operate.doctor.shell import judged
from gateway.shell.shell import shell_tools_of
from tests.serving import served
from tests.shell.sandboxes import needs_sandbox

ON = {"OUTSPOKEN_SHELL__SANDBOX": "bubblewrap", "OUTSPOKEN_SHELL__WAIT_SECONDS": "1"}


async def asked(up: Serving, key: str, words: str) -> tuple[Ticket, str]:
    """A message of a conversation, and its answer."""
    said = FromApi(
        account="web", platform_key=key, session=SessionKey("web", "page", "s"), input=(InputMessage(words),), surface="web",
        memory_scope="web", digest=key,
    )  # fmt: skip
    ticket = await up.hub.accept(said)
    return ticket, await ended(up, ticket)


async def ended(up: Serving, ticket: Ticket) -> str:
    async with up.hub.follow(ticket) as follower:
        while not isinstance(sight := await follower.next(30), Ended):
            pass
    return "\n".join(bubble.text for bubble in sight.view.bubbles)


async def told(up: Serving, words: str) -> str:
    """What the conversation is told that has these words."""
    async with asyncio.timeout(20), up.hub.follow_session(SessionKey("web", "page", "s")) as follower:
        while True:
            for one in await follower.next(10) or ():
                for bubble in one.view.bubbles:
                    if words in bubble.text and not one.view.open:
                        return bubble.text


@pytest.fixture
def _sandbox() -> None:
    needs_sandbox()


@pytest.mark.usefixtures("_sandbox")
async def test_a_command_that_outlives_its_turn_is_told_in_a_turn_of_its_own(tmp_path: Path) -> None:
    async with served(tmp_path, ON) as up:
        _, first = await asked(up, "1", "run: echo begun; sleep 2; echo all is done")
        assert "still runs" in first
        assert "you are told so" in first
        answer = await told(up, "ended with exit status 0")
        assert "(echo begun; sleep 2; echo all is done) ended with exit status 0" in answer
        assert "all is done\n```" in answer
        assert (await asked(up, "2", "run: echo quick"))[1].count("quick")
    async with served(tmp_path, ON) as up:
        assert "quick" in (await asked(up, "2", "run: echo quick"))[1]


async def test_without_a_sandbox_that_works_there_are_no_commands_and_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    made = await shell_tools_of(Shell(sandbox=ShellSandbox.BUBBLEWRAP))
    assert made.tools == ()
    assert "can run no commands" in made.why_not
    assert judged(made, root=False)[0].fix
    async with served(tmp_path / "home", {**ON, "OUTSPOKEN_TOOLS__APPROVAL": "run_command"}) as up:
        assert not {*SHELL_TOOLS} & {*up.hub.nameable().tools}
        assert "not offered here" in (await asked(up, "1", "run: echo out"))[1]


async def test_nobody_has_commands_who_did_not_ask_for_them(tmp_path: Path) -> None:
    async with served(tmp_path) as up:
        assert not {*SHELL_TOOLS} & {*up.hub.nameable().tools}
    assert not (tmp_path / "commands").exists()
