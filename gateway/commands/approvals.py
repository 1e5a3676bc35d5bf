"""``/approvals``: what people here have approved for longer than once, and how they take it back."""

from __future__ import annotations

from agent_core.failures.notices import say
from agent_core.judging.compaction import SessionMemory
from agent_core.text.tongue import sentence, speak
from gateway.commands.carrying import CommandReply, Request
from gateway.sessions.consents import ConsentBook, StandingConsent
from gateway.sessions.recall import PastRecall

NOTHING = sentence(
    "Nothing is approved here for longer than once: each time I need your approval, I ask. The buttons beneath the question say how long it lasts."
)
HOW = sentence("{/approvals revoke NUMBER} takes one back, {/approvals revoke all} takes back all of them.")
MOST = 30


class ApprovalCommands:
    """Its handler."""

    def __init__(self, consents: ConsentBook, recall: PastRecall) -> None:
        self._consents = consents
        self._recall = recall

    async def approvals(self, request: Request) -> CommandReply:
        past = await self._recall.memory(request.owner.session) if request.owner.session else SessionMemory()
        found = await self._consents.standing(request.inbound, past)
        verb, _, which = request.words.strip().lower().partition(" ")
        match verb:
            case "" | "list":
                return CommandReply(listed_words(found))
            case "revoke":
                return await self._revoke(request, found, which.strip())
            case _:
                return CommandReply(say(speak("{/approvals} shows what stands."), HOW))

    async def _revoke(self, request: Request, found: list[StandingConsent], which: str) -> CommandReply:
        number = int(which) if which.isascii() and which.isdecimal() and len(which) < 4 else 0
        gone = found if which == "all" else found[number - 1 : number] if number else []
        if not gone:
            return CommandReply(listed_words(found) if not found else say(speak("Say which one."), listed_words(found)))
        for one in gone:
            await self._consents.end(request.inbound, one)
        lines = [speak("Taken back: {what}", what=one.words()) for one in gone[:MOST]]
        return CommandReply(
            "\n".join((*lines, speak("From the next answer on I ask again; {/stop} ends one that runs.")))
        )


def listed_words(found: list[StandingConsent]) -> str:
    """What stands, for people. Pure."""
    if not found:
        return speak(NOTHING)
    lines = [f"{number}. {one.words()}" for number, one in enumerate(found[:MOST], 1)]
    more = [speak("… and {count} more", count=len(found) - MOST)] if len(found) > MOST else []
    return "\n".join((*lines, *more, speak(HOW)))
