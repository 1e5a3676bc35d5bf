"""A tool's work in a worker process, and what the model is told if it comes to no good end there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from agent_core.jsonvalue import Json
from agent_core.tools.base import ToolOutcome, ToolStatus
from agent_core.workers.pool import Job, Workers, WorkerTrouble, WorkFailed


async def outside(
    workers: Workers, job: Job, request: Mapping[str, Json], blob: bytes = b"", *, owner: object, less: str
) -> ToolOutcome:
    """What the job says, as an outcome. `less`: how to ask for less, said where the job was too much."""
    try:
        found = await workers.run(job, request, blob, owner=owner)
    except WorkFailed as error:
        status = ToolStatus.TIMED_OUT if error.trouble is WorkerTrouble.SLOW else ToolStatus.FAILED
        return ToolOutcome(status, words_for(error.trouble, job, less))
    assert isinstance(found, dict)
    facts = found["facts"]
    assert isinstance(facts, dict)
    return ToolOutcome(ToolStatus(str(found["status"])), str(found["text"]), facts=facts)


def words_for(trouble: WorkerTrouble, job: Job, less: str) -> str:
    """What happened and what to do, for the model."""
    match trouble:
        case WorkerTrouble.SLOW:
            return f"This took longer than {job.seconds:g} s, so it was stopped. {less}"
        case WorkerTrouble.MEMORY:
            return f"This needed more memory than there is for it, so it was stopped. {less}"
        case WorkerTrouble.DEPTH:
            return f"This is nested too deeply to be read. {less}"
        case WorkerTrouble.SIZE:
            return f"The result was too large, so it was thrown away. {less}"
        case WorkerTrouble.DIED:
            return f"The process that did this ended in the middle of it. It only reads, so you may try again. {less}"
        case WorkerTrouble.UNSENDABLE:
            return "The arguments hold half a character, or a number that is too large. Correct them."
        case WorkerTrouble.BUSY:
            return "Too many calls wait already, so nothing was done. Try again in a moment."
        case WorkerTrouble.CLOSED:
            return "The gateway is stopping, so nothing was done."
        case WorkerTrouble.NO_PROCESS:
            return (
                "The machine let no process begin that could do this. An operator has to look; do without it for now."
            )
        case WorkerTrouble.BUG:
            return "This failed because of an internal error in the tool."
        case _:
            assert_never(trouble)
