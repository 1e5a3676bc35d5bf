"""A server's tool as the registry runs it: the call, again if that is safe, and its result in text and files."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import QuotaKind, blocks
from agent_core.store.errors import StorageUnavailable
from agent_core.tools.asking import MOST_SECONDS, AnswerAction, ToolAnswer, read_question
from agent_core.tools.base import EffectClass, NoRoom, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.files.workspace import PathRefused, folder
from agent_core.tools.followup import NOBODY_FOLLOWS, FollowUps
from agent_core.tools.mcp.calling import (
    CallAgain,
    CallTrouble,
    Lost,
    NotReached,
    begun_before,
    next_of,
    repeatable,
    told,
)
from agent_core.tools.mcp.listed import ServerTool, skeleton
from agent_core.tools.mcp.results import FOLDER, McpResult, ResultFile, read_result
from agent_core.tools.mcp.server import LOOK_SECONDS, McpServer
from agent_core.tools.mcp.terms import REPEAT, class_of, reach_of

BEAT_SECONDS = 0.25
"""Progress is shown this often at most, however often a server tells it."""
AWAY_SECONDS = 5.0
"""While the storage is away, it is tried this often to say that a late answer has come."""


class McpTool:
    """One tool of one server."""

    def __init__(
        self, server: McpServer, listed: ServerTool, name: str, result_chars: int, hide: Callable[[str], str],
        follow_ups: FollowUps = NOBODY_FOLLOWS, *, asks: bool
    ) -> None:  # fmt: skip
        terms = server.terms
        self._server = server
        self._tool = listed.name
        self._result_chars = result_chars
        self._hide = hide
        self._follow_ups = follow_ups
        self._safe = repeatable(terms, listed.name, class_of(terms, listed))
        attempts = REPEAT.attempts if self._safe else 1
        once = terms.start_seconds + LOOK_SECONDS + terms.limit_seconds
        self._spec = ToolSpec(
            name=name,
            description=listed.description,
            parameters=listed.parameters,
            effect=class_of(terms, listed),
            deadline_seconds=attempts * (once + REPEAT.most) + MOST_SECONDS,
            heartbeat=True,
            approval=asks,
            checked=skeleton(listed.parameters),
            reach=reach_of(terms, listed),
            foreign=not terms.trusts(listed.name),
            foreign_words=not terms.trusts(listed.name),
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        spec, attempt, beat = self._spec, 0, 0.0
        lost: Lost | None = None

        def heard(words: str) -> None:
            nonlocal beat
            now = time.monotonic()
            if now - beat >= BEAT_SECONDS:
                beat = now
                context.heartbeat(words)

        unasked: list[str] = []

        async def ask(words: str, schema: Json, address: str) -> ToolAnswer:
            """What the server asks, if it may be asked; why not, the model is told with the result."""
            question = read_question(f"{self._server.terms.name} ({self._tool})", words, schema, address)
            if isinstance(question, str):
                unasked.append(f"The server wanted to ask the person something, and was refused: {question}.")
                return ToolAnswer(AnswerAction.DECLINE)
            answer = await context.ask(question)
            if answer.why:
                unasked.append(f"The server asked the person something and got no answer: {answer.why}.")
            return answer

        async def late(raw: Mapping[str, Json]) -> None:
            await self._tell_late(raw, context)

        if context.again and not self._safe:
            return begun_before(spec.name)
        while True:
            attempt += 1
            try:
                raw = await self._server.call(
                    self._tool, arguments, heard, ask, late if spec.effect is not EffectClass.PURE else None
                )
                break
            except CallTrouble as trouble:
                lost = trouble if isinstance(trouble, Lost) else lost
                if isinstance(trouble, NotReached) and lost is not None:  # it had been sent before
                    again = Lost(f"{lost}, and {trouble}")
                    return told(again, spec.name, self._server.terms.name, spec.effect)
                if next_of(trouble, attempt, safe=self._safe) is CallAgain.TELL:
                    return told(trouble, spec.name, self._server.terms.name, spec.effect)
                await asyncio.sleep(REPEAT.seconds(attempt))
        result = read_result(raw, context.call, self._result_chars, self._hide)
        words = await _kept(result, context)
        status = ToolStatus.FAILED if result.failed else ToolStatus.OK
        facts: dict[str, Json] = {"server": self._server.terms.name, "files": len(result.files)}
        notes = "".join(f"\n[{one}]" for one in dict.fromkeys(unasked))
        return ToolOutcome(status, f"{result.text}{notes}{words}", result.left_out_chars, facts)

    async def _tell_late(self, raw: Mapping[str, Json], context: ToolContext) -> None:
        """What is known in the end of a call of which it was said that nobody knows: its conversation is told."""
        result = read_result(raw, context.call, self._result_chars, self._hide)
        words = f"{result.text}{await _kept(result, context)}"
        title = late_title(self._spec.name, failed=result.failed)
        while True:
            try:
                await self._follow_ups.begin(context.turn, f"{context.key}:late", title, words)
            except StorageUnavailable:
                await asyncio.sleep(AWAY_SECONDS)
            else:
                return


def late_title(tool: str, *, failed: bool) -> str:
    """That a call has answered after its time, in a line. Pure."""
    how = "it failed" if failed else "it was done"
    return f"{tool} has answered after all: {how}. Before, it was not known"


async def _kept(result: McpResult, context: ToolContext) -> str:
    """Put the files of a result into the workspace; what the model is told if that cannot be. The call itself is done all the same."""
    if not result.files:
        return ""
    adding = {
        QuotaKind.WORKSPACE: sum(blocks(len(one.data)) for one in result.files),
        QuotaKind.FILES: len(result.files) + 1,
    }
    try:
        async with context.space.hold(adding):
            await asyncio.to_thread(_put, result.files, context.workspace)
    except NoRoom as full:
        return f"\n[Not all files of this result are in the workspace, whatever stands above: {full}]"
    except (OSError, PathRefused):
        return "\n[Not all files of this result are in the workspace, whatever stands above: they cannot be written there.]"
    return ""


def _put(files: tuple[ResultFile, ...], workspace: Path) -> None:
    with folder(workspace, [FOLDER], create=True) as directory:
        for one in files:
            name = one.path.removeprefix(f"{FOLDER}/")
            made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600, dir_fd=directory)
            with os.fdopen(made, "wb") as file:
                file.write(one.data)
                file.flush()
                os.fsync(file.fileno())
