"""What models and people are told of commands. Pure."""

from __future__ import annotations

import signal
from typing import assert_never

from agent_core.text.durations import duration
from agent_core.text.patterns import late
from agent_core.tools.sandbox.ends import CommandEnd, EndCause
from agent_core.tools.sandbox.terms import INSIDE, MIB, ShellTerms
from agent_core.tools.shell.record import CommandRecord


def programs(terms: ShellTerms) -> str:
    """Which there are."""
    return (
        f"the programs of the image {terms.image}" if terms.image else "sh, bash, python3 and what else the machine has"
    )


def described(terms: ShellTerms, wait_seconds: int) -> str:
    """The tool as the model reads of it."""
    network = (
        f"It can reach {', '.join(terms.hosts)} (through a proxy), nothing else." if terms.hosts else "No network."
    )
    return (
        f"Run a command in a sandbox: a shell script, or a program with its arguments. It starts in {INSIDE}, which is your workspace; what it writes "
        f"there stays, everything else is read-only or gone afterwards. There are {programs(terms)}. {network} What takes longer than {wait_seconds} s goes on "
        "in the background: you get its id, and where that is possible you are told here when it has ended."
    )


_MISSING = late(r"bwrap: execvp (.{1,500}): ([^:\n]{1,100})")
"""What bubblewrap says when all is made and the program is not there."""


def how_ended(end: CommandEnd, terms: ShellTerms) -> str:
    """How a command ended, as the end of a sentence that begins with what it is."""
    after = f" after {duration(round(end.seconds))}" if end.seconds >= 1 else ""
    match end.cause:
        case EndCause.EXITED:
            return f"ended with {_status(end.status)}{after}"
        case EndCause.TIME:
            return f"was ended: it may take {duration(round(terms.seconds))}, and was not done by then"
        case EndCause.MEMORY:
            return f"was ended{after}: it took more memory than the {terms.memory_bytes // MIB} MiB that it may have"
        case EndCause.PROCESSES:
            return f"was ended{after}: it began more processes than the {terms.processes} that it may have"
        case EndCause.DISK:
            return f"was ended{after}: it wrote more than it may ({max(1, terms.disk_bytes // MIB)} MiB, {terms.files:,} files); what it wrote is there"
        case EndCause.OUTPUT:
            return f"was ended{after}: it printed more than {terms.output_bytes // MIB} MiB"
        case EndCause.STOPPED:
            return f"was stopped{after}"
        case EndCause.GATEWAY:
            return f"was ended{after}, because the gateway was stopped"
        case EndCause.ORPHANED:
            return f"was ended{after}, because the gateway died and did not come back in time"
        case EndCause.GONE:
            return f"was ended{after}, because its folder was removed"
        case EndCause.SANDBOX:
            if missing := _MISSING.fullmatch(end.words):
                return f"was not run: {missing[1]} is no program that can be run in the sandbox ({missing[2]})"
            return f"was not run: the sandbox could not be made{f' ({end.words})' if end.words else ''}"
        case EndCause.UNKNOWN:
            return "is over, and nobody knows how it ended: what watched over it was killed. It may have done its work, in whole or in part"
        case _:
            assert_never(end.cause)


def _status(status: int | None) -> str:
    if status is not None and status > 128:
        try:
            return f"exit status {status} ({signal.Signals(status - 128).name})"
        except ValueError:
            pass
    return f"exit status {status}"


def ended_title(record: CommandRecord, end: CommandEnd) -> str:
    """One line for people: which command has ended, and how."""
    return f"Command {record.command} ({record.shown}) {how_ended(end, record.terms)}"


def still_running(record: CommandRecord, seconds: float, *, reaches: bool) -> str:
    """What the model is told of a command that goes on. `reaches`: its conversation can be told of the end."""
    told = (
        "When it ends you are told so in this conversation, with what it printed; nothing has to be done for that."
        if reaches
        else "Nobody can be told when it ends, because this conversation is not kept here: look with read_output."
    )
    return (
        f"It still runs after {duration(round(seconds))}, in the background, as command {record.command}. {told} read_output shows how far it is, "
        "stop_command ends it."
    )
