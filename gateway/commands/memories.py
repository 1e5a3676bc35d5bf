"""``/memory``, ``/forget`` and ``/instructions``: what is remembered of a person, a group and for everybody, where it came from, and how a person removes it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from agent_core.failures.notices import say
from agent_core.limits.quotas import QuotaKind
from agent_core.remembered import ALL, MEMORY, MemoryScopes, Remembered
from agent_core.store.store import Store
from agent_core.text.durations import at_time
from agent_core.text.shown import shortened
from agent_core.text.tongue import number, sentence, speak, speak_many
from agent_core.tools.builtin.notes import STRANGE
from gateway.commands.carrying import CommandReply, Handler, Request
from gateway.commands.conversation import stored_prefs
from gateway.limits.incoming import whose_share
from gateway.limits.quotas import Quotas
from gateway.limits.standing import Standings
from gateway.limits.whose import asker_of, memories_of, memory_of
from gateway.people.instructions import MOST_CHARS, OwnInstructions, may_have

log = structlog.get_logger("quota")

SHOWN = 15
AT_ONCE = 100
OFF = ("off", "none", "reset")
HOW = sentence("{/forget NAME} removes one of these, {/forget all} removes all that is yours or this chat's.")
NOT_GONE = sentence("What was said in conversations is still in them; {/new} begins one that knows nothing of it.")


class MemoryCommands:
    """Handlers for `gateway.commands.carrying.ChatCommands`."""

    def __init__(
        self,
        store: Store,
        quotas: Quotas | None,
        standings: Standings,
        writers: frozenset[str],
        instructions: OwnInstructions,
    ) -> None:
        self._instructions = instructions
        self._store = store
        self._quotas = quotas
        self._standings = standings
        self._writers = writers

    def handlers(self) -> Mapping[str, Handler]:
        """By the command's name."""
        return {"memory": self._memory, "forget": self._forget, "instructions": self._instruct}

    async def _instruct(self, request: Request) -> CommandReply:
        if not may_have(request.inbound):
            return CommandReply(
                speak("Your instructions are your own: say them in a private chat with me, or on the web page.")
            )
        scope, said = memory_of(request.inbound), request.words.strip()
        if len(said) > MOST_CHARS:
            return CommandReply(
                say(
                    speak("The text is longer than {count} characters.", count=number(MOST_CHARS)),
                    speak("Nothing was changed."),
                )
            )
        if said:
            await self._instructions.write(scope, "", "" if said.lower() in OFF else said)
        found = await self._instructions.read(scope)
        if not found:
            return CommandReply(
                speak(
                    "There are no instructions of yours. {/instructions Be brief.} gives me some, for all your conversations."
                )
            )
        told, off = speak("I am told this in all your conversations:"), speak("{/instructions off} takes it back.")
        return CommandReply(f"{told}\n{found}\n\n{off}")

    async def _scopes(self, request: Request) -> MemoryScopes:
        prefs = await stored_prefs(self._store, request)
        standing = self._standings.of(request.inbound, prefs.agent)
        return standing.memories(memories_of(request.inbound, self._writers))

    async def _memory(self, request: Request) -> CommandReply:
        scopes, query = await self._scopes(request), request.words.strip()[:500]
        found, in_all = await self._store.memory.remembered(scopes.readable(), query)
        if not in_all:
            return CommandReply(speak("Nothing is remembered here. Ask me to remember something, and it stands here."))
        if not found:
            return CommandReply(
                speak(
                    "Nothing of the {count} things that are remembered fits. {/memory} alone shows the latest.",
                    count=in_all,
                )
            )
        reader = asker_of(request.inbound)
        lines = [entry_words(one, scopes, reader) for one in found[:SHOWN]]
        if len(found) > SHOWN:
            lines.append(speak("… and {count} more. {/memory WORDS} searches in them.", count=len(found) - SHOWN))
        room = await self._quotas.lines(request.inbound, (QuotaKind.MEMORY,)) if self._quotas is not None else ()
        return CommandReply("\n".join((*lines, speak(HOW), *room)))

    async def _forget(self, request: Request) -> CommandReply:
        name = request.words.strip()
        if not name:
            return CommandReply(say(speak("Say what: {/memory} shows what is remembered."), HOW))
        scopes = await self._scopes(request)
        mine = [scope for scope in dict.fromkeys((scopes.own, scopes.chat)) if scope]
        if name.lower() == ALL:
            gone = await self._remove_all(mine)
            words = (
                say(speak_many("{count} thing is forgotten.", "{count} things are forgotten.", gone), NOT_GONE)
                if gone
                else NOTHING
            )
        else:
            if scopes.edits:
                mine.append(scopes.everybody)
            where = await self._remove(mine, name)
            words = (
                say(
                    speak("“{name}” is forgotten{whose}.", name=shortened(name, 60), whose=_whose(where, scopes)),
                    NOT_GONE,
                )
                if where
                else await self._missing(name, scopes)
            )
        if self._quotas is not None:
            self._quotas.changed(whose_share(request.inbound))
        log.info("memory.forgotten", session=request.owner.session)
        return CommandReply(words)

    async def _remove(self, scopes: Sequence[str], name: str) -> str:
        """From which of these it is gone: the first that had it; empty: none had. A name is found as it is, or else as `/memory` shows it."""
        for scope in scopes:
            if await self._store.memory.delete(scope, MEMORY, name):
                return scope
        found, _ = await self._store.memory.remembered(scopes)
        for one in found:
            if shortened(one.name, 60) == name and await self._store.memory.delete(one.scope, MEMORY, one.name):
                return one.scope
        return ""

    async def _remove_all(self, scopes: Sequence[str]) -> int:
        """How many are gone. Begun again after a kill it counts what was left."""
        found, _ = await self._store.memory.remembered(scopes)
        gone = 0
        for first in range(0, len(found), AT_ONCE):
            some = found[first : first + AT_ONCE]
            gone += sum(await asyncio.gather(*(self._store.memory.delete(one.scope, MEMORY, one.name) for one in some)))
        return gone

    async def _missing(self, name: str, scopes: MemoryScopes) -> str:
        """What to say where nothing has this name."""
        everybodys = (
            [one[0] for one in await self._store.memory.entries(scopes.everybody, MEMORY)] if scopes.everybody else []
        )
        if name in everybodys:
            return speak(
                "“{name}” is remembered for everybody. Only people whom the operator named can remove it.",
                name=shortened(name, 60),
            )
        return speak("Nothing is remembered under “{name}”. {/memory} shows the names.", name=shortened(name, 60))


NOTHING = sentence("Nothing is remembered here.")


def entry_words(entry: Remembered, scopes: MemoryScopes, reader: str) -> str:
    """An entry as people read it: its name, its text, and where it came from."""
    source = entry.source
    marks = [at_time(entry.at).strftime("%Y-%m-%d")]
    if whose := _whose(entry.scope, scopes).strip():
        marks.append(whose)
    if source.writer and source.author != reader:
        marks.append(speak("asked by {name}", name=shortened(source.writer, 40)))
    if scopes.strange(entry, reader):
        marks.append(STRANGE if source.turn else speak("kept by an older version, which did not say by whom"))
    if source.turn:
        marks.append(speak("turn {turn}", turn=source.turn))
    return f"• {shortened(entry.name, 60)}: {shortened(entry.text, 160)} ({', '.join(marks)})"


def _whose(scope: str, scopes: MemoryScopes) -> str:
    if scope == scopes.everybody:
        return speak(" for everybody")
    return speak(" for this chat") if scope == scopes.chat else ""
