"""``/files``: what is kept in a conversation's workspace, and how a person removes some of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import structlog

from agent_core.failures.notices import say
from agent_core.limits.quotas import QuotaKind, size_words
from agent_core.text.tongue import sentence, speak
from agent_core.tools.files.trees import below, empty_tree
from agent_core.tools.files.workspace import (
    FileMissing,
    FolderNotEmpty,
    PathRefused,
    folder,
    remove,
    remove_empty,
    split_file,
)
from gateway.commands.carrying import CommandReply, Handler, Request
from gateway.limits.diskuse import count_folder
from gateway.limits.incoming import whose_share
from gateway.limits.quotas import Quotas

log = structlog.get_logger("quota")

SHOWN = 30
MOST_LOOKED_AT = 20_000
"""Files that are looked at for one answer."""
HOW = sentence("{/files delete NAME} removes one, {/files delete all} removes all of them.")
NOTHING = sentence("No files are kept here.")
ELSEWHERE = sentence("Files of your other conversations count as well; {/files} there shows and deletes them.")
ALL = "all"


def files_command(quotas: Quotas | None) -> Handler:

    async def files(request: Request) -> CommandReply:
        assert quotas is not None, "chats are served by a gateway that counts"
        workspace = quotas.workspace(request.inbound)
        verb, _, name = request.words.strip().partition(" ")
        name = name.strip()
        if not verb or verb.lower() == "list":
            words = await asyncio.to_thread(_listed, workspace)
            here = (await asyncio.to_thread(count_folder, workspace)).files
            quotas.changed(whose_share(request.inbound))
            room = await _room(quotas, request)
            more = [speak(ELSEWHERE)] if quotas.files_of(request.inbound) > here else []
            return CommandReply("\n".join((words, *room, *more)))
        if verb.lower() != "delete" or not name:
            return CommandReply(say(speak("{/files} shows what is kept here."), HOW))
        words = await asyncio.to_thread(_removed, workspace, name)
        quotas.changed(whose_share(request.inbound))
        log.info("quota.removed", session=request.owner.session)
        return CommandReply("\n".join((words, *await _room(quotas, request))))

    return files


async def _room(quotas: Quotas, request: Request) -> tuple[str, ...]:
    return await quotas.lines(request.inbound, (QuotaKind.WORKSPACE, QuotaKind.FILES))


def _listed(workspace: Path) -> str:
    found: list[tuple[int, str]] = []
    empty: dict[str, None] = {}
    """Folders in which nothing was seen: each comes before what is in it."""
    for one in below(workspace):
        empty.pop(one.above, None)
        if one.is_folder:
            empty[f"{one.path}/"] = None
        else:
            found.append((one.about.st_size, one.path))
        if len(found) + len(empty) > MOST_LOOKED_AT:
            break
    found += [(0, name) for name in empty]
    if not found:
        return speak(NOTHING)
    found.sort(key=lambda one: (-one[0], one[1]))
    lines = [f"{_shown(name)} – {size_words(size)}" for size, name in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(speak("… and {count} smaller ones.", count=len(found) - SHOWN))
    return "\n".join((*lines, speak(HOW)))


def _shown(name: str) -> str:
    """One line, whatever the name holds."""
    plain = "".join(mark if mark.isprintable() else "�" for mark in name)
    return plain if len(plain) <= 120 else f"{plain[:119]}…"


def _removed(workspace: Path, name: str) -> str:
    if name.lower() == ALL:
        if not workspace.is_dir():
            return speak(NOTHING)
        with suppress(OSError):
            empty_tree(workspace)
        left = count_folder(workspace).files
        return (
            speak("All files here are deleted.")
            if not left
            else speak("{count} files could not be deleted.", count=left)
        )
    try:
        folders, last = split_file(name, folders=True)
        with folder(workspace, folders) as directory:
            remove(directory, last, _shown(name))
        remove_empty(workspace, folders)
    except (FileMissing, FileNotFoundError):
        return speak("There is no file {name} here.", name=_shown(name))
    except FolderNotEmpty:
        return speak("{name} is a folder that is not empty.", name=_shown(name))
    except PathRefused:  # its words are the model's, in English
        return speak("{name} is nothing that can be deleted here; {/files} shows what there is.", name=_shown(name))
    except OSError as error:
        return speak(
            "{name} could not be deleted: {why}.",
            name=_shown(name),
            why=(error.strerror or type(error).__name__).lower(),
        )
    return speak("{name} is deleted.", name=_shown(name))
