"""Whether commands of the agent can be locked up on this machine: what `doctor` says of it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from adapters.checks.findings import Check, Finding, Seen, note, ok, problem
from gateway.config.sections import Config
from gateway.shell.shell import ShellTools, shell_tools_of

SHELL_SECONDS = 30.0


def checks(config: Config) -> Sequence[Check]:
    """A trial in the real sandbox, where the operator wants commands."""
    return [Check("shell", SHELL_SECONDS, lambda: _tried(config))] if config.shell.on else []


async def _tried(config: Config) -> Seen:
    made = await shell_tools_of(config.shell)
    return Seen(tuple(judged(made, root=os.geteuid() == 0)))


def judged(made: ShellTools, *, root: bool) -> list[Finding]:
    """What the trial says."""
    if made.why_not:
        what, _, fix = made.why_not.partition(". ")
        return [problem("shell", f"{what}. {fix}", "Mend that, or take sandbox out of [shell].")]
    hosts = ", ".join(made.section.hosts)
    network = f"They can call {hosts}." if hosts else "They have no network."
    found = [ok("shell", f"A command ran in the sandbox, and saw nothing of this machine but its programs. {network}")]
    if root:
        what = "The gateway runs as root; each conversation's commands run as a user who is nobody else, who owns the conversation's folder."
        found.append(note("shell", what, "Better: run the gateway as a user of its own."))
    return found
