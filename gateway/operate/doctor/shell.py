"""Whether commands of the agent can be locked up on this machine: what `doctor` says of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from adapters.checks.findings import Check, Finding, Seen, note, ok, problem
from gateway.config.sections import Config
from gateway.config.tools.shell import ShellSandbox
from gateway.shell.shell import ShellTools, shell_tools_of

SHELL_SECONDS = 30.0
ENGINE_SECONDS = 240.0
"""Engines that were not used for long have to wake up, one after the other."""


def checks(config: Config, state: Path) -> Sequence[Check]:
    """A trial in the real sandbox, where the operator wants commands."""
    if not config.shell.on:
        return []
    seconds = SHELL_SECONDS if config.shell.sandbox is ShellSandbox.BUBBLEWRAP else ENGINE_SECONDS
    return [Check("shell", seconds, lambda: _tried(config, state))]


async def _tried(config: Config, state: Path) -> Seen:
    made = await shell_tools_of(config.shell, state)
    return Seen(tuple(judged(made, root=os.geteuid() == 0)))


def judged(made: ShellTools, *, root: bool) -> list[Finding]:
    """What the trial says."""
    if made.why_not:
        what, _, fix = made.why_not.partition(". ")
        return [problem("shell", f"{what}. {fix}", "Mend that, or take sandbox out of [shell].")]
    hosts = ", ".join(made.section.hosts)
    network = f"They can call {hosts}." if hosts else "They have no network."
    image = made.section.image
    seen = "nothing of this machine but its programs" if not image else f"nothing but the image {image}"
    found = [ok("shell", f"A command ran in a sandbox by {made.sandbox or 'bubblewrap'}, and saw {seen}. {network}")]
    if made.passed_over:
        found.append(
            note(
                "shell",
                f"It is {made.sandbox} because what comes first does not work here. {made.passed_over}",
                "Mend that if you want it.",
            )
        )
    if root:
        what = "The gateway runs as root; each conversation's commands run as a user who is nobody else, who owns the conversation's folder."
        found.append(note("shell", what, "Better: run the gateway as a user of its own."))
    return found
