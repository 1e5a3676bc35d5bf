"""Whether gateways have one directory for files; and what is said where they have not, and one goes on with a turn of another.

A directory is known by a number that lies in it. Each gateway tells the others the number of its own, so that of one that is gone it is known as well.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import orjson
import structlog

from adapters.contract.base import FromChat, Inbound
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.store.sessions.takeups import LeftTurn
from agent_core.store.store import StorageUnavailable, Store
from agent_core.text.tongue import speak
from agent_core.tools.files.workspace import ELSEWHERE, put_new
from gateway.chats.commandintake import CommandIntake
from gateway.limits.whose import workspace_of
from gateway.queues import inbox

log = structlog.get_logger("gateway")


def told_number(words: str) -> str:
    """The number of its directory, in what a gateway has told; empty if it said nothing. Pure."""
    try:
        read: Json = orjson.loads(words or b"{}")
    except orjson.JSONDecodeError:
        return ""
    return str(cast("Mapping[str, Json]", read).get("directory") or "") if isinstance(read, dict) else ""


def share_spool(own: Path, shared: Path) -> None:
    """Make the place where all look for files on their way, for us alone to read, and put there what an earlier version kept in a place of our own."""
    try:
        shared.mkdir(parents=True, exist_ok=True, mode=0o700)
        for one in own.iterdir() if own.is_dir() else ():
            if not (shared / one.name).exists():
                shutil.move(one, shared / one.name)
    except OSError as error:
        log.warning("slices.directory_not_known", folder=str(shared), error=str(error))


@dataclass(frozen=True, slots=True)
class FilesElsewhere:
    """Says of turns that are taken over from a gateway with another directory that their files are not here."""

    root: Path
    number: str
    store: Store
    commands: CommandIntake

    async def say(self, lefts: Sequence[LeftTurn]) -> None:
        """Before they go on."""
        owners = {one.owner for one in lefts if one.owner is not None} - {self.store.node}
        if not owners or not self.number:
            return
        told = await self.store.slices.told(owners)
        away = {node for node, words in told.items() if told_number(words) not in ("", self.number)}
        for one in lefts:
            if one.owner in away:
                try:
                    await self._say(one, one.owner or 0)
                except StorageUnavailable:
                    raise
                except Exception:  # the turn is worth more than these words
                    log.exception("slices.directory_not_said", turn=one.turn)

    async def _say(self, left: LeftTurn, node: int) -> None:
        rows = await self.store.inbox.inputs(left.turn)
        asked = [inbox.decode(row.body) for row in rows]
        if not asked:
            return
        log.warning("slices.files_elsewhere", turn=left.turn, node=node)
        await asyncio.to_thread(_note, workspace_of(asked[0], self.root), node)
        await self._tell(left.turn, asked)

    async def _tell(self, turn: str, asked: Sequence[Inbound]) -> None:
        """The person, if their turn has files, or may have made some."""
        first = asked[0]
        if not isinstance(first, FromChat):
            return
        brought = any(isinstance(one, FromChat) and one.chat.attachments for one in asked)
        if brought or await self.store.turns.calls(turn):
            words = speak("I go on with this on another machine, and files that I had there are not here.")
            await self.commands.post(first.chat.address, f"elsewhere:{turn}", words)


def _note(workspace: Path, node: int) -> None:
    workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
    words = (
        f"Until now this conversation was run by gateway {node}, which keeps files in a directory of its own ([tools] workspace).\n"
        "What was written or attached there is not here. What is written here from now on is.\n"
    )
    (workspace / ELSEWHERE).unlink(missing_ok=True)
    put_new(workspace / ELSEWHERE, words.encode())
