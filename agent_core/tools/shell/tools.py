"""The three tools: run a command, look what it printed, end it.

A command is *keyed*: its folder is named after the call, and what is in it says whether it was begun, so a call that is carried out again after a crash
finds its command, and begins no second one.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import BLOCK, QuotaKind, blocks
from agent_core.text.shown import plain, shortened
from agent_core.tools.base import (
    DoubtCause,
    EffectClass,
    NoRoom,
    NotPossible,
    Reach,
    Tool,
    ToolContext,
    ToolOutcome,
    ToolSpec,
    ToolStatus,
)
from agent_core.tools.files.workspace import PathRefused, folder
from agent_core.tools.sandbox.ends import CommandEnd, EndCause
from agent_core.tools.sandbox.terms import ShellTerms
from agent_core.tools.shell.commands import LiveCommand, ShellCommands, command_id, shown_output
from agent_core.tools.shell.output import last_line
from agent_core.tools.shell.record import OUTPUT, end_of, record_of
from agent_core.tools.shell.words import described, how_ended, still_running

RUN_COMMAND, READ_OUTPUT, STOP_COMMAND = "run_command", "read_output", "stop_command"
MOST_WAIT_SECONDS = 300
SHOWN_CHARS = 12_000
ARGUMENT_CHARS = 100_000
BEAT_SECONDS = 1.0
LATE_SECONDS = 30.0
SPILLED = "commands"
"""The folder of the workspace in which outputs lie that were too long to be shown."""
_SHOWN = 80
_COMMAND: Json = {"type": "string", "description": "The id that run_command gave", "minLength": 1, "maxLength": 40}


def shell_tools(commands: ShellCommands, wait_seconds: int) -> list[Tool]:
    """All three. `wait_seconds`: so long a call waits for its command where the model says nothing else."""
    return [RunCommand(commands, wait_seconds), ReadOutput(commands), StopCommand(commands)]


def _waits(seconds: int) -> Json:
    words = f"So many seconds to wait for its end at most; {seconds} if left out"
    return {"type": "integer", "minimum": 0, "maximum": MOST_WAIT_SECONDS, "description": words}


class RunCommand:
    """Runs a command, and waits a while for its end."""

    def __init__(self, commands: ShellCommands, wait_seconds: int) -> None:
        self._commands = commands
        self._wait_seconds = wait_seconds
        hosts = commands.terms.hosts
        self.spec = ToolSpec(
            RUN_COMMAND,
            described(commands.terms, wait_seconds),
            {
                "type": "object",
                "properties": {
                    "script": {"type": "string", "minLength": 1, "maxLength": ARGUMENT_CHARS, "description": "A shell script (bash)"},
                    "argv": {
                        "type": "array", "minItems": 1, "maxItems": 1000, "items": {"type": "string", "maxLength": ARGUMENT_CHARS},
                        "description": "In place of a script: a program and its arguments",
                    },
                    "wait_seconds": _waits(wait_seconds),
                },
                "additionalProperties": False,
            },
            EffectClass.KEYED,
            deadline_seconds=MOST_WAIT_SECONDS + LATE_SECONDS,
            heartbeat=True,
            reach=Reach.OUTSIDE if hosts else Reach.HERE,
            foreign=True,
        )  # fmt: skip

    async def prepare(self, arguments: Mapping[str, Json], context: ToolContext) -> Json:
        """See `PreparedTool`: which command it is, and on which machine."""
        _argv(arguments, self._commands.terms)
        return {"command": command_id(context.key), "place": self._commands.place}

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        argv = _argv(arguments, self._commands.terms)
        intended = context.intention if isinstance(context.intention, dict) else {}
        if context.again and intended.get("place") != self._commands.place:
            words = "The command was begun on another machine, or before the gateway's state was put back, and nobody here knows how it went. It may have been done: look before you repeat it."
            return ToolOutcome(ToolStatus.UNKNOWN, words, doubt=DoubtCause.RESTARTED)
        shown = shortened(plain(argv[-1] if "script" in arguments else shlex.join(argv)), _SHOWN)
        there = context.again and await self._commands.asked_for(context.key, context.workspace)
        terms = self._commands.terms if there else await _within_room(self._commands, context)
        one = await self._commands.begin(
            context.key, context.turn, context.workspace, argv, shown, terms, context.space
        )
        wait = arguments.get("wait_seconds")
        seconds = wait if isinstance(wait, int) else self._wait_seconds
        try:
            end = await _watched(self._commands, one, context, seconds)
        except asyncio.CancelledError:
            one.left_behind = True  # if its turn is over, nobody knows of it; if the process ends, the next one goes on
            raise
        if end is None:
            facts: dict[str, Json] = {"command": one.record.command, "running": True}
            output = await asyncio.to_thread(shown_output, one.folder, SHOWN_CHARS)
            words = still_running(one.record, seconds, reaches=await self._commands.reaches(context.turn))
            return ToolOutcome(ToolStatus.OK, f"{words}{_so_far(output)}", facts=facts)
        return await _outcome(self._commands, one.folder, end, context)


class ReadOutput:
    """Shows what a command printed, and how it stands."""

    def __init__(self, commands: ShellCommands) -> None:
        self._commands = commands
        self.spec = ToolSpec(
            READ_OUTPUT,
            "See what a command printed so far, and whether it still runs.",
            {
                "type": "object",
                "properties": {"command": _COMMAND, "wait_seconds": _waits(0)},
                "required": ["command"],
                "additionalProperties": False,
            },
            EffectClass.PURE,
            deadline_seconds=MOST_WAIT_SECONDS + LATE_SECONDS,
            heartbeat=True,
            foreign=True,
        )

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        place = self._commands.known(context.workspace, str(arguments["command"]))
        wait, end = arguments.get("wait_seconds"), await asyncio.to_thread(end_of, place)
        live = self._commands.live(place)
        if end is None and live is not None:
            end = await _watched(self._commands, live, context, wait if isinstance(wait, int) else 0)
        if end is not None:
            return await _outcome(self._commands, place, end, context)
        output = await asyncio.to_thread(shown_output, place, SHOWN_CHARS)
        return ToolOutcome(
            ToolStatus.OK, f"It still runs.{_so_far(output)}", facts={"command": place.name, "running": True}
        )


class StopCommand:
    """Ends a command."""

    def __init__(self, commands: ShellCommands) -> None:
        self._commands = commands
        self.spec = ToolSpec(
            STOP_COMMAND,
            "End a command that still runs.",
            {
                "type": "object",
                "properties": {"command": _COMMAND},
                "required": ["command"],
                "additionalProperties": False,
            },
            EffectClass.KEYED,
            foreign=True,
        )

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        place = self._commands.known(context.workspace, str(arguments["command"]))
        end = await asyncio.to_thread(end_of, place) or await self._commands.stop(place)
        if end is None:
            return ToolOutcome(
                ToolStatus.FAILED, "It was asked to end, and has not ended yet. Look again with read_output."
            )
        return replace(await _outcome(self._commands, place, end, context), status=ToolStatus.OK)


# --- what all of them need ---


def _argv(arguments: Mapping[str, Json], terms: ShellTerms) -> tuple[str, ...]:
    """What is run. Raises `NotPossible`."""
    script, argv = arguments.get("script"), arguments.get("argv")
    if isinstance(script, str) == isinstance(argv, list):
        raise NotPossible("Give either a script or argv. Nothing was run.")
    if isinstance(script, str):
        found = (*_interpreter(terms), script)
    else:
        found = tuple(map(str, argv)) if isinstance(argv, list) else ()
    try:
        whole = [one.encode() for one in found]
    except UnicodeEncodeError:
        raise NotPossible("It holds half a character. Nothing was run.") from None
    if any(b"\0" in one for one in whole) or sum(map(len, whole)) > ARGUMENT_CHARS:
        raise NotPossible(
            f"It holds a NUL character, or is longer than {ARGUMENT_CHARS} bytes: write it into a file first, and run that. Nothing was run."
        )
    return found


def _interpreter(terms: ShellTerms) -> tuple[str, ...]:
    """Of scripts: bash, where there is one."""
    if terms.image:
        return ("sh", "-c", 'command -v bash >/dev/null && exec bash -c "$1"; eval "$1"', "sh")
    return ("/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c")  # noqa: PTH110 - of the machine, as the sandbox has it


async def _within_room(commands: ShellCommands, context: ToolContext) -> ShellTerms:
    """The limits of a command, with no more disk than there is room for whoever it works for. Raises `NotPossible`, and `NoRoom` where there is none."""
    terms, left = commands.terms, await context.space.left()
    size = min(
        terms.disk_bytes, left.get(QuotaKind.WORKSPACE, terms.disk_bytes), left.get(QuotaKind.WHOLE, terms.disk_bytes)
    )
    files = min(terms.files, left.get(QuotaKind.FILES, terms.files))
    if size < BLOCK or files < 1:
        async with context.space.hold({QuotaKind.WORKSPACE: BLOCK, QuotaKind.FILES: 1}):
            raise NotPossible("The workspace was full a moment ago, so nothing was run. Try it again.")
    return replace(terms, disk_bytes=size, files=files)


async def _watched(
    commands: ShellCommands, one: LiveCommand, context: ToolContext, seconds: float
) -> CommandEnd | None:
    """Its end, if it comes within so many seconds; what it prints is told meanwhile."""
    until = context.clock.monotonic() + seconds
    told = ""
    while True:
        left = until - context.clock.monotonic()
        end = await commands.waited(one, min(BEAT_SECONDS, max(left, 0.001)))
        if end is not None or left <= BEAT_SECONDS:
            return end
        line = await asyncio.to_thread(_latest, one.folder)
        if line and line != told:
            told = line
            context.heartbeat(line)


def _latest(place: Path) -> str:
    with suppress(OSError), (place / OUTPUT).open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 4000))
        return last_line(file.read())
    return ""


async def _outcome(commands: ShellCommands, place: Path, end: CommandEnd, context: ToolContext) -> ToolOutcome:
    """How a command ended and what it printed, for the model, which knows it from now on."""
    record = await asyncio.to_thread(record_of, place)
    if record is None:
        raise NotPossible(f"What was known of the command {place.name} was removed meanwhile.")
    output = await asyncio.to_thread(shown_output, place, SHOWN_CHARS)
    size = await asyncio.to_thread(_size, place)
    spilled = (
        await _spilled(place, size, context) if size > len(output.encode()) + BLOCK // 4 and size > SHOWN_CHARS else ""
    )
    commands.told(place)
    good = end.cause is EndCause.EXITED and end.status == 0
    facts: dict[str, Json] = {
        "command": record.command,
        "cause": end.cause.value,
        "exit_status": end.status,
        "bytes": size,
    }
    status = ToolStatus.OK if good else ToolStatus.UNKNOWN if end.cause is EndCause.UNKNOWN else ToolStatus.FAILED
    said = f"It printed:\n{output}" if output.strip() else "It printed nothing."
    words = f"Command {record.command} {how_ended(end, record.terms)}. {spilled}{said}"
    return ToolOutcome(
        status, words, facts=facts, doubt=DoubtCause.WENT_AWAY if status is ToolStatus.UNKNOWN else DoubtCause.UNSAID
    )


def _size(place: Path) -> int:
    with suppress(OSError):
        return (place / OUTPUT).stat().st_size
    return 0


async def _spilled(place: Path, size: int, context: ToolContext) -> str:
    """Where in the workspace all of an output lies; why it does not, if there is no room for it."""
    name = f"{place.name}.txt"
    try:
        async with context.space.hold({QuotaKind.WORKSPACE: blocks(size) + BLOCK, QuotaKind.FILES: 2}):
            await asyncio.to_thread(_copy, place / OUTPUT, context.workspace, name)
    except NoRoom:
        return "Not all of it is shown, and there is no room for the rest in the workspace. "
    except (PathRefused, OSError):
        return "Not all of it is shown, and the rest could not be put into the workspace. "
    return f"All of what it printed is in {SPILLED}/{name}. "


def _copy(source: Path, workspace: Path, name: str) -> None:
    """Copy an output into the workspace; what a command put there under its name stays as it is. Raises `PathRefused`, `OSError`."""
    with folder(workspace, [SPILLED], create=True) as directory:
        try:
            target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=directory)
        except FileExistsError:
            return
        with os.fdopen(target, "wb") as to, source.open("rb") as of:
            while chunk := of.read(1 << 20):
                to.write(chunk)


def _so_far(output: str) -> str:
    return f" It printed so far:\n{output}" if output.strip() else " It has printed nothing yet."
