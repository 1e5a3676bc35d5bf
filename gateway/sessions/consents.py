"""Standing consents: what people have agreed to for a conversation or for good; kept, listed and taken back. And who may decide at all.

What counts for a conversation stands in its journal, with the answer that gave it, and ends with `/new`. What counts for good is kept beside the
memory of whoever asked, so that it is forgotten with them. That something was taken back is kept in the conversation's name, with the time: what
is agreed to after it counts again. Each turn is told in its first event what covers it, so that a turn which runs keeps what it began with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

import orjson

from adapters.contract.base import FromApi, FromChat, Inbound, SessionKey
from adapters.contract.chat import ChatKind
from agent_core.judging.compaction import SessionMemory
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.remembered import MemorySource
from agent_core.rules.consents import Kind, Lasting
from agent_core.store.memory.access import StoredMemory
from agent_core.text.tongue import speak
from agent_core.turn.state import ConsentGiven
from gateway.limits.whose import asker_of, memory_of
from gateway.sharing.portion import Portion, SomeKept

CONSENT, ENDED = "consent", "consent_ended"
"""Kinds of what is kept: a consent for good; that one was taken back."""
ASKER, ADMINS, ANYONE = "asker", "admins", "anyone"
"""Who may decide, as the configuration names them; anybody else as PLATFORM/PERSON."""
NOBODY = frozenset({"schedule", "webhook", "operator", ""})
"""Who asked where no person did."""


@dataclass(frozen=True, slots=True)
class StandingConsent:
    """One that counts."""

    kind: Kind
    given: ConsentGiven

    def words(self) -> str:
        """What it covers, for people."""
        until = speak("always") if self.given.lasts is Lasting.ALWAYS else speak("for this conversation")
        if self.kind.tainted:
            return speak("{what}: {until}, also after words of others were read", what=self.kind.words(), until=until)
        return f"{self.kind.words()}: {until}"


class ConsentBook:
    """Every method raises `StorageUnavailable`."""

    def __init__(self, memory: StoredMemory, clock: Clock, portion: Portion) -> None:
        self.memory = memory
        self.clock = clock
        self._kept = SomeKept(memory, CONSENT, clock, portion)

    async def standing(self, inbound: Inbound, past: SessionMemory) -> list[StandingConsent]:
        """What covers a turn that answers this message, the oldest first."""
        if inbound.stateless:
            return []
        asker, ended = shared_asker(inbound), dict[str, int]()
        said = [StandingConsent(kind, given) for kind, given in past.consents.items()]
        if said:
            entries = await self.memory.entries(_of_session(inbound.session), ENDED)
            ended = {name: at for name, _, at in entries}
        entries = await self.memory.entries(memory_of(inbound), CONSENT) if await self._kept.any() else ()
        kept = [one for _, value, at in entries if (one := read(value, at)) is not None]
        fresh = [one for one in said if one.given.at > ended.get(name_of(one.kind), 0)]
        found = [one for one in (*fresh, *kept) if one.kind.asker in ("", asker)]
        return sorted(found, key=lambda one: one.given.at)

    async def keep(self, inbound: Inbound, kind: Kind, by: str, turn: str) -> None:
        """Somebody has agreed to such calls for good."""
        source, now = MemorySource(turn, asker_of(inbound)), self.clock.now_ms()
        await self.memory.put(memory_of(inbound), CONSENT, name_of(kind), written(kind, by), at_ms=now, source=source)
        self._kept.added()

    async def end(self, inbound: Inbound, one: StandingConsent) -> None:
        """It counts no more, from the next turn on."""
        name = name_of(one.kind)
        if one.given.lasts is Lasting.ALWAYS:
            await self.memory.delete(memory_of(inbound), CONSENT, name)
        else:
            await self.memory.put(_of_session(inbound.session), ENDED, name, "{}", at_ms=self.clock.now_ms())


def _of_session(key: SessionKey) -> str:
    return f"session/{key.text()}"


def shared_asker(inbound: Inbound) -> str:
    """Whose turn a message begins, where several people may share the conversation; empty: it is one person's."""
    task = inbound.task if isinstance(inbound, FromApi) else None
    chat = inbound.chat if isinstance(inbound, FromChat) else task.chat if task is not None else None
    return asker_of(inbound) if chat is not None and chat.kind is ChatKind.GROUP else ""


def name_of(kind: Kind) -> str:
    """By which a kind is kept."""
    said = orjson.dumps([kind.tool, kind.limits, kind.tainted, kind.asker])
    return hashlib.blake2b(said, digest_size=8).hexdigest()


def written(kind: Kind, by: str) -> str:
    """A consent for good, as it is kept."""
    return orjson.dumps({"tool": kind.tool, "limits": kind.limits, "asker": kind.asker, "by": by}).decode()


def read(value: str, at: int) -> StandingConsent | None:
    """Back from that; None if it cannot be read. It never covers what a turn wants that has read words of others."""
    try:
        said = orjson.loads(value)
        limits = tuple((str(name), str(limit)) for name, limit in said["limits"])
        kind = Kind(str(said["tool"]), limits, asker=str(said["asker"]))
        return StandingConsent(kind, ConsentGiven(Lasting.ALWAYS, str(said["by"]), at))
    except (ValueError, KeyError, TypeError):
        return None


def may_decide(
    approvers: Collection[str], askers: Collection[str], presser: Collection[str], *, private: bool, admin: bool
) -> bool:
    """Whether who has pressed may decide. `askers` are those who asked, as ACCOUNT/PERSON, without any if no person did; `presser` are all the
    names of who has pressed, as PLATFORM/PERSON and ACCOUNT/PERSON. In a `private` chat whoever writes is who asked. Pure."""
    if ANYONE in approvers or (ADMINS in approvers and admin):
        return True
    own = private or not askers or bool(set(askers) & set(presser))
    return (ASKER in approvers and own) or bool({one.lower() for one in presser} & {one.lower() for one in approvers})


def approvers_words(approvers: Sequence[str], names: Sequence[str]) -> str:
    """Who may decide, for people; `names` are those who asked."""
    asked = speak(" or ").join(names) or speak("whoever asked")
    said: Mapping[str, str] = {ASKER: asked, ADMINS: speak("an admin")}
    return speak(" or ").join(said.get(one, one) for one in approvers)


def only_words(approvers: Sequence[str], names: Sequence[str] = ()) -> str:
    """What somebody is told who may not decide."""
    return speak("Only {who} may decide that. It still waits.", who=approvers_words(approvers, names))
