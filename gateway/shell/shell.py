"""The tools that run commands: offered only where the operator wants them and the sandbox was found to work; else it is said why not."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.jsonvalue import Json
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.store import Store
from agent_core.tools.base import Tool
from agent_core.tools.followup import NOBODY_FOLLOWS, FollowUps
from agent_core.tools.offer import Unusable
from gateway.config.tools.shell import COMMANDS, Shell

if TYPE_CHECKING:
    from agent_core.tools.shell.commands import ShellCommands

SOURCE = "[shell]"


@dataclass(frozen=True, slots=True)
class ShellTools:
    """What there is of them."""

    section: Shell
    tools: tuple[Tool, ...] = ()
    why_not: str = ""
    passed_over: str = ""
    """Why a sandbox is not used that is wanted more than the one that is."""
    commands: ShellCommands | None = None

    @property
    def unusable(self) -> tuple[Unusable, ...]:
        """Why there are none although they are wanted."""
        return (Unusable(SOURCE, self.why_not.removesuffix(".")),) if self.why_not else ()

    def running(self) -> AbstractAsyncContextManager[None]:
        """For the block, commands that there are are followed; at its end they are ended."""
        return self.commands.running() if self.commands is not None else nullcontext()

    def status(self) -> Json:
        """For ``outspoken status``."""
        if self.why_not:
            return {"state": "unusable", "sandbox": "", "words": self.why_not, "running": 0}
        running = self.commands.count if self.commands is not None else 0
        return {
            "state": "ready" if self.section.on else "off",
            "sandbox": self.sandbox,
            "words": self.passed_over,
            "running": running,
        }

    @property
    def sandbox(self) -> str:
        """What commands are locked up with; empty if there are none."""
        return self.commands.terms.kind.value if self.commands is not None else ""


async def shell_tools_of(section: Shell, state: Path | None = None) -> ShellTools:
    """The tools to be looked at, and whether they could be used; none of them can be run. `state`: the gateway's directory, if it is known."""
    if not section.on:
        return ShellTools(section)
    from agent_core.ports import SystemClock

    near = state / COMMANDS if state is not None and os.access(state / COMMANDS, os.W_OK) else None
    return await _made(section, Path(), near, None, SystemClock(), NOBODY_FOLLOWS)


async def shell_tools_here(
    section: Shell, state: Path, store: Store, clock: Clock, follow_ups: FollowUps
) -> ShellTools:
    """The tools of a gateway. Nothing is loaded where nobody wants them."""
    if not section.on:
        return ShellTools(section)
    folder = state / COMMANDS
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return await _made(section, folder, folder, store, clock, follow_ups)


async def _made(
    section: Shell, folder: Path, near: Path | None, store: Store | None, clock: Clock, follow_ups: FollowUps
) -> ShellTools:
    from agent_core.tools.shell.commands import ShellCommands
    from agent_core.tools.shell.tools import shell_tools
    from agent_core.tools.shell.trial import first_that_works

    tried = await first_that_works(section.terms(), section.kinds(), near)
    if tried.kind is None:
        return ShellTools(section, why_not=f"The agent can run no commands. {tried.words}")
    terms = replace(section.terms(), kind=tried.kind)

    async def is_open(turn: str) -> bool:
        row = await store.turns.one(turn) if store is not None else None
        return row is not None and row.closed_at is None

    commands = ShellCommands(folder, terms, clock, follow_ups, is_open, section.at_once)
    return ShellTools(
        section, tuple(shell_tools(commands, section.wait_seconds)), passed_over=tried.words, commands=commands
    )
