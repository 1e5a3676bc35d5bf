"""Tools in Python as the gateway has them: each call is a job of a worker process, which may fail without the gateway.

Laws (tests/agent_core/tools/test_python_tools.py): nothing of a tool is imported here; a file that hangs, dies or raises takes no other tool with it; a call
whose process is gone is never passed off as not begun.

Known to be weak: a worker is no sandbox. It has the rights of the gateway's user, as whoever writes the files has; what it is spared is the
gateway's memory, its secrets in the environment, and its loop. What it writes into a workspace counts for quotas when it is counted next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

import structlog

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.tools.base import DoubtCause, EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.offer import Unusable
from agent_core.tools.python.described import LINE_SECONDS, Described, described, without_doubles
from agent_core.tools.python.sources import ToolSource, sources
from agent_core.tools.registry import DOUBT
from agent_core.workers.confines import MIB, SURROUNDINGS, Confines
from agent_core.workers.pool import Job, Workers, WorkerTrouble, WorkFailed

log = structlog.get_logger("tool")

DESCRIBE = Job("agent_core.tools.python.child:describe", 20.0)
NOT_BEGUN = frozenset({
    WorkerTrouble.BUSY, WorkerTrouble.NO_PROCESS, WorkerTrouble.UNSENDABLE,
})  # fmt: skip


def confines(environment: Sequence[str]) -> Confines:
    """Of the workers that run them: they may write, call others and begin processes; `environment` names what else they are given of ours."""
    return Confines(4096 * MIB, 1024 * MIB, 1024, processes=True, environment=(*SURROUNDINGS, "HOME", *environment))


@dataclass(frozen=True, slots=True)
class BroughtTools:
    """What there is of them."""

    tools: Sequence[PythonTool]
    unusable: Sequence[Unusable]


async def python_tools(folder: Path | None, workers: Workers, taken: Iterable[str]) -> BroughtTools:
    """All tools in Python. Never raises for what is in them."""
    try:
        there = await asyncio.to_thread(sources, folder)
    except OSError as error:
        why = f"the folder cannot be read: {(error.strerror or type(error).__name__).lower()}"
        return BroughtTools((), (Unusable(str(folder), why),))
    answers = await asyncio.gather(*(_described(one, workers) for one in there))
    found = [each for tools, _ in answers for each in tools]
    kept, doubles = without_doubles(found, taken)
    wrong = [each for _, unusable in answers for each in unusable]
    return BroughtTools([PythonTool(one, workers) for one in kept], (*wrong, *doubles))


async def _described(source: ToolSource, workers: Workers) -> tuple[Sequence[Described], Sequence[Unusable]]:
    try:
        return described(source, await workers.run(DESCRIBE, source.asked()))
    except WorkFailed as error:
        why = (
            f"it was not imported within {DESCRIBE.seconds:g} s"
            if error.trouble is WorkerTrouble.SLOW
            else f"the process that imports it came to no good end ({error.trouble.value})"
        )
        return (), (Unusable(source.name, why),)


@dataclass(frozen=True, slots=True)
class PythonTool:
    """One of them."""

    described: Described
    workers: Workers

    @property
    def spec(self) -> ToolSpec:
        return self.described.spec

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        """Carry the call out in a worker; its text is what the function gave."""
        outcome, _ = await self.tried(arguments, context)
        return outcome

    async def tried(self, arguments: Mapping[str, Json], context: ToolContext) -> tuple[ToolOutcome, str]:
        """The outcome, and what the function printed."""
        request: dict[str, Json] = {
            **self.described.source.asked(),
            "tool": self.spec.name,
            "digest": self.described.digest,
            "arguments": dict(arguments),
            "workspace": str(context.workspace.absolute()),
            "key": context.key,
            "again": context.again,
        }
        job = Job("agent_core.tools.python.child:call", self.described.seconds)
        line = LINE_SECONDS / 2  # the rest is for the beginning of a process
        try:
            answer = await self.workers.run(
                job, request, owner=context.workspace, heard=context.heartbeat, line_seconds=line
            )
        except WorkFailed as error:
            return failed(self.spec, error.trouble, self.described.seconds), ""
        assert isinstance(answer, dict)
        status, where = str(answer.get("status")), str(answer.get("where") or "")
        if status == "raised":
            log.warning("tool.raised", tool=self.spec.name, turn=context.turn, call=context.call, source=where.strip())
        return outcome_of(self.spec, status, str(answer.get("text")), where), str(answer.get("printed") or "")


def outcome_of(spec: ToolSpec, status: str, text: str, where: str) -> ToolOutcome:
    """What the worker said of a call, for the model."""
    match status:
        case "ok":
            return ToolOutcome(ToolStatus.OK, text)
        case "not_done":
            return ToolOutcome(ToolStatus.FAILED, f"Nothing was done: {text}" if text else "Nothing was done.")
        case "arguments":
            return ToolOutcome(ToolStatus.REFUSED, f"The arguments do not fit, so nothing was done. {text}")
        case "changed":
            words = (
                "was changed since the gateway began, so nothing was done. An operator has to start the gateway again."
            )
            return ToolOutcome(ToolStatus.REFUSED, f"The file of {spec.name} {words}")
        case _:
            return ToolOutcome(ToolStatus.FAILED, f"{spec.name} failed: {text}{where}.{_doubt(spec)}")


def failed(spec: ToolSpec, trouble: WorkerTrouble, seconds: float) -> ToolOutcome:
    """A call without an answer, for the model; it had so many `seconds`."""
    if trouble is WorkerTrouble.SLOW:
        words = f"{spec.name} did not finish within {seconds:g} s and was stopped.{_doubt(spec)}"
        return ToolOutcome(ToolStatus.TIMED_OUT, words, doubt=DoubtCause.SLOW)
    if trouble in NOT_BEGUN:
        return ToolOutcome(ToolStatus.FAILED, f"{spec.name} was not begun: {_why(trouble)}.")
    if trouble is WorkerTrouble.SIZE:
        return ToolOutcome(ToolStatus.FAILED, f"{spec.name} ran to its end; {_why(trouble)}.")
    status = ToolStatus.FAILED if spec.effect is EffectClass.PURE else ToolStatus.UNKNOWN
    words = f"{spec.name} did not come to its end: {_why(trouble)}.{_doubt(spec)}"
    return ToolOutcome(status, words, doubt=_cause(trouble))


def _cause(trouble: WorkerTrouble) -> DoubtCause:
    match trouble:
        case WorkerTrouble.CLOSED:
            return DoubtCause.RESTARTED
        case WorkerTrouble.BUG | WorkerTrouble.SIZE:
            return DoubtCause.NO_RESULT
        case _:
            return DoubtCause.WENT_AWAY


def _doubt(spec: ToolSpec) -> str:
    return "" if spec.effect is EffectClass.PURE else DOUBT


def _why(trouble: WorkerTrouble) -> str:
    match trouble:
        case WorkerTrouble.SLOW:
            return "it took too long and was stopped"
        case WorkerTrouble.MEMORY:
            return "it needed more memory than it may have"
        case WorkerTrouble.DEPTH:
            return "it called itself too deeply"
        case WorkerTrouble.SIZE:
            return "its result was too large and is lost: ask for less"
        case WorkerTrouble.DIED:
            return "its process died"
        case WorkerTrouble.UNSENDABLE:
            return "the arguments hold half a character, or a number that is too large"
        case WorkerTrouble.BUSY:
            return "too many calls wait already; try again in a moment"
        case WorkerTrouble.CLOSED:
            return "the gateway is stopping"
        case WorkerTrouble.NO_PROCESS:
            return "the machine let no process begin, and an operator has to look"
        case WorkerTrouble.BUG:
            return "its result could not be read"
        case _:
            assert_never(trouble)
