"""The tool that sends a file to the person. It only hands the file over; that it arrives is the outbox's work.

The file is copied when the tool runs, so that what is sent is what was meant, whatever happens to the workspace later. The copy has a
place of its own for each key, and is there as a whole or not at all: a call that is begun again finds it and says the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import BLOCK, QuotaKind, blocks
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.files.whole import write_whole
from agent_core.tools.files.workspace import PathRefused, folder, open_file, split_file
from agent_core.tools.offer import Offer

SEND_FILE = "send_file"
MOST_BYTES = 50 * 1024 * 1024


class SendFile:
    """Puts a file of the workspace into the outbox."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=SEND_FILE,
            description="Send a file of your workspace to the person, as an attachment. Say beside the call what it is.",
            parameters={
                "type": "object",
                "properties": {"path": {"type": "string", "description": "The file, relative to the workspace."}},
                "required": ["path"],
                "additionalProperties": False,
            },
            effect=EffectClass.KEYED,
        )

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        path = str(arguments["path"])
        try:
            sent, size = await self._kept(path, context)
        except PathRefused as refused:
            return ToolOutcome(ToolStatus.FAILED, str(refused))
        text = f"{path} ({size} bytes) is on its way to the person. If it cannot be delivered, they are told so."
        return ToolOutcome(ToolStatus.OK, text, facts={"path": path, "bytes": size, "sent_file": str(sent)})

    async def _kept(self, path: str, context: ToolContext) -> tuple[Path, int]:
        """Where the copy is, and its size. Raises `NotPossible`."""
        _, name = split_file(path)
        place = self._spool / hashlib.blake2b(context.key.encode(), digest_size=12).hexdigest()
        target = place / name
        if context.again and target.is_file():
            return target, target.stat().st_size
        data = await asyncio.to_thread(_read, path, context.workspace)
        async with context.space.hold({QuotaKind.SPOOL: blocks(len(data)) + BLOCK}, place):
            await asyncio.to_thread(write_whole, target, data)
        return target, len(data)


def _read(path: str, workspace: Path) -> bytes:
    """What is to be sent. Raises `PathRefused`."""
    folders, name = split_file(path)
    with folder(workspace, folders) as directory, os.fdopen(open_file(directory, name, path), "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise PathRefused(f"{path} is larger than 50 MB, the most that can be sent.")
    if not data:
        raise PathRefused(f"{path} is empty; an empty file cannot be sent.")
    return data


OFFER = Offer(3, lambda parts: (SendFile(parts.spool),))
