"""What comes in, counted by the day: the files that messages bring, and the conversations that the API begins.

Nothing is decided here: what a message counts for is handed to the store, which decides it in the commit that stores the message.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson

from adapters.contract.base import FromApi, FromChat, Inbound
from adapters.contract.chat import Attachment, AttachmentKind
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.limits.quotas import Full, QuotaKind, QuotaLedger, QuotaLimits, for_person
from agent_core.records import dataclass
from agent_core.store.budgets.rows import DAILY, FILE_SCOPE, BroughtFile, Charge
from agent_core.store.errors import NoRoomToday
from agent_core.store.memory.rows import AGENT_MARK
from gateway.limits.whose import UNNAMED, memory_of

DAY_MS = 24 * 3600 * 1000
KNOWN_FILES = 256
"""So many files of one message, the largest, are known when they are brought again; the others count each time."""
IN_THREAD_BYTES = 64 * 1024
"""What is larger is decoded beside the loop."""
BEGUN = 50_000
"""So many conversations are known to have begun, without asking."""
UNKNOWN_BYTES = 1024 * 1024
"""What an attachment counts for whose size its platform does not tell."""


def holder_of(scope: str) -> str:
    """Whose share something counts in, told from a memory scope. Pure.

    A chat's topics and threads are one holder's, and in a group where each has a conversation of their own, each is one. Everywhere
    else it is the scope: a user of the API, a browser. Conversations of nobody are counted together, by the door that they came in.
    """
    scope = scope.partition(AGENT_MARK)[0]
    parts = scope.split("/")
    if parts[0] == "session" and len(parts) > PARTS:
        return parts[1]
    if len(parts) != PARTS or parts[0] in UNNAMED:
        return scope
    platform, account, chat, _, person = parts
    return "/".join([platform, account, chat, *([person] if person else [])])


PARTS = 5
"""Of a conversation's key."""


def whose_share(inbound: Inbound) -> str:
    """In whose share a message and what comes of it count. Pure."""
    return holder_of(memory_of(inbound))


@dataclass(frozen=True, slots=True)
class Carried:
    """A file or picture that comes with a message."""

    name: str
    """The same for equal ones."""
    size: int


def carried_files(inbound: Inbound) -> tuple[Carried, ...]:
    """What comes with a message beside plain text, each once, the largest first. Pure.

    Over the API it is known by its bytes. What is still with a platform is known by its place in its message: so a message that comes
    again, edited or not, brings nothing new but what was added.
    """
    found = _attached(inbound) if isinstance(inbound, FromChat) else [_decoded(text) for text in encoded_files(inbound)]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (-one.size, one.name)))


def carried_bytes(inbound: Inbound) -> int:
    """How much that is. Pure."""
    return sum(one.size for one in carried_files(inbound))


def _attached(inbound: FromChat) -> list[Carried]:
    found, seen = list[Carried](), Counter[tuple[str, int]]()
    for one in inbound.chat.attachments:
        if one.kind is not AttachmentKind.OTHER and not one.refused:
            seen[one.name, one.size] += 1  # two may look alike
            place = [inbound.account, inbound.platform_key, one.name, one.size, seen[one.name, one.size]]
            found.append(Carried(hashlib.sha256(orjson.dumps(place)).hexdigest(), one.size or UNKNOWN_BYTES))
    return found


def encoded_files(inbound: FromApi) -> list[str]:
    """The files and pictures in a request, as they stand there. Pure."""
    contents = [message.content for message in inbound.input]
    contents += [message.get("content") for message in inbound.own_history or ()]
    found: list[str] = []
    for part in (part for content in contents if isinstance(content, list) for part in content):
        match part:
            case {"type": "image_url", "image_url": {"url": str(url)}} if url.startswith("data:"):
                found.append(url)
            case {"type": "input_audio", "input_audio": {"data": str(data)}} | {
                "type": "file",
                "file": {"file_data": str(data)},
            }:
                found.append(data)
            case _:
                pass
    return found


def _decoded(text: str) -> Carried:
    """A file by the bytes that it has; one that is no clean base64 by its text."""
    head, comma, data = text.partition(",")
    encoded = data if comma and head.startswith("data:") and head.endswith(";base64") else text
    try:
        there = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        there = text.encode("utf-8", "replace")
    return Carried(hashlib.sha256(there).hexdigest(), len(there))


def without_files(inbound: FromChat, words: str, but: Sequence[Attachment] = ()) -> FromChat:
    """A message whose files are not taken, for the reason that `words` say; `but` are, which it had before. Pure."""
    taken = Counter((one.name, one.size) for one in but if one.kind is not AttachmentKind.OTHER and not one.refused)
    kept = list[Attachment]()
    for one in inbound.chat.attachments:
        look = (one.name, one.size)
        taken[look] -= one.kind is not AttachmentKind.OTHER
        kept.append(one if one.kind is AttachmentKind.OTHER or taken[look] >= 0 else replace(one, refused=words))
    return replace(inbound, chat=replace(inbound.chat, attachments=tuple(kept)))


class Incoming:
    """What messages count for, and what is said of those for which the day has no room."""

    def __init__(self, limits: QuotaLimits, ledger: QuotaLedger, refused: Callable[[str, Full], None]) -> None:
        """`refused` is told who was refused, and what."""
        self._limits = limits
        self._ledger = ledger
        self._refused = refused
        self._begun: dict[str, None] = {}
        """Conversations that are stored, so that their messages need not ask."""
        self._latest = ("", "")
        """The message that was refused last (account, key): one that is offered once more at once, to be told in its person's language, is one refusal."""

    async def admit(self, inbound: Inbound, now: int) -> tuple[Charge, ...]:
        """What a message counts for by the day. Whether there is room is decided where it is stored: one that is there has its answer."""
        charges = [*await self.for_files(inbound, now)]
        if inbound.surface == "api" and not inbound.stateless and inbound.session.text() not in self._begun:
            charges.append(replace(self._charge(inbound, QuotaKind.SESSIONS, 1, now), new_session=True))
        return tuple(charges)

    async def for_files(self, inbound: Inbound, now: int) -> tuple[Charge, ...]:
        """What the files of a message count for, as far as they are new: that is decided where it is stored."""
        encoded = encoded_files(inbound) if isinstance(inbound, FromApi) else ()
        if not encoded and isinstance(inbound, FromApi):
            return ()
        large = sum(map(len, encoded)) > IN_THREAD_BYTES
        carried = await asyncio.to_thread(carried_files, inbound) if large else carried_files(inbound)
        if not carried:
            return ()
        holder = whose_share(inbound)
        known = tuple(BroughtFile(f"{FILE_SCOPE}{one.name}:{holder}", one.size) for one in carried[:KNOWN_FILES])
        rest = sum(one.size for one in carried[KNOWN_FILES:])
        charge = replace(self._charge(inbound, QuotaKind.INCOMING, rest, now), files=known)
        full = self._ledger.whole_room(rest + sum(file.size for file in known))
        if full is None:
            return (charge,)
        whole = self._charge(inbound, QuotaKind.WHOLE, rest, now)
        return replace(whole, files=known, limit=full.limit, already=full.used, counts=False), charge

    def _charge(self, inbound: Inbound, kind: QuotaKind, amount: int, now: int) -> Charge:
        day = now - now % DAY_MS
        scope = f"{DAILY}{kind.value}:{whose_share(inbound)}"
        return Charge(scope, day, day + DAY_MS, amount, self._limits.each.get(kind, 0))

    def taken(self, inbound: Inbound) -> None:
        """The message is stored, so its conversation has begun."""
        self._begun[inbound.session.text()] = None
        if len(self._begun) > BEGUN:
            del self._begun[next(iter(self._begun))]

    def refusal(self, inbound: Inbound, error: NoRoomToday, now: int) -> NotAccepted:
        """What is said of a message that the day has no room for."""
        kind = QuotaKind(error.scope.removeprefix(DAILY).partition(":")[0])
        full = Full(kind, error.used, error.limit, error.adding)
        message = (inbound.account, inbound.platform_key)
        if message != self._latest:
            self._refused(whose_share(inbound), full)
        self._latest = message
        seconds = 600 if full.kind is QuotaKind.WHOLE else (DAY_MS - now % DAY_MS) // 1000
        return NotAccepted(for_person(full), NotAcceptedCode.QUOTA, max(1, seconds))
