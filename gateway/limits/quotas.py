"""Quotas in the gateway: who a holder is, what is really there, and room held for whatever is written.

Theory. `agent_core.limits.quotas.QuotaLedger` decides; this counts. Nobody is refused on figures that may be old: before a refusal, what its holder has
is counted anew. Whose figures may be wrong (a write was cancelled in its middle) is counted before anything else is held for them.
Everything is counted at the start, in the background, and now and then after that, so what others do on the disk is seen.

What a day's count is about (what comes in, conversations of the API) is decided in the database, in the commit that stores the message,
so it holds for all nodes and across restarts.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

import orjson
import structlog

from adapters.contract.base import FromApi, FromChat, Inbound
from adapters.contract.chat import Attachment, AttachmentKind
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.pacing import worth_saying
from agent_core.beside import beside
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import (
    ON_DISK,
    Amounts,
    Full,
    QuotaKind,
    QuotaLedger,
    QuotaLimits,
    amount_words,
    for_person,
    size_words,
)
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.budgets.rows import DAILY, FILE_SCOPE, BroughtFile, Charge
from agent_core.store.errors import NoRoomToday, StorageUnavailable
from agent_core.tools.base import NoRoom
from agent_core.tools.builtin.notes import ENTRY_BYTES, LISTS
from gateway.limits.diskuse import CountStopped, Owners, Stop, count_all, count_folder
from gateway.limits.whose import ROOMS, UNNAMED, memory_of, shown, workspace_of

log = structlog.get_logger("quota")

COUNT_SECONDS = 600.0
"""Between two counts of everything."""
REST = 50
"""And so many times as long as a count takes: it never keeps the disk busy."""
ANEW = 20
"""A holder who is refused again and again is not counted for more than one part in so many of the time."""
TRIES = 3
QUIET_SECONDS = 1.0
"""So long a count waits for a moment in which nothing is being written for its holder."""
SHOWN = 10
NEARLY = 0.9
"""From this share of the whole on the operators are told."""
OPERATORS = "operators"
"""Whose files are those that operators send."""
OF_FOLDERS = {QuotaKind.WORKSPACE, QuotaKind.FILES, QuotaKind.SPOOL}
"""What lies in folders that are somebody's."""
DAY_MS = 24 * 3600 * 1000
KNOWN_FILES = 256
"""So many files of one message, the largest, are known when they are brought again; the others count each time."""
IN_THREAD_BYTES = 64 * 1024
"""What is larger is decoded beside the loop."""
BEGUN = 50_000
"""So many conversations are known to have begun, without asking."""
UNKNOWN_BYTES = 1024 * 1024
"""What an attachment counts for whose size its platform does not tell."""

Memories = Callable[[Collection[str]], Awaitable[list[tuple[str, str, int, int]]]]
"""(scope, kind, bytes, entries), as the store knows them; of everybody, or of these scopes and what is below them."""


def holder_of(scope: str) -> str:
    """Whose share something counts in, told from a memory scope. Pure.

    A chat's topics and threads are one holder's, and in a group where each has a conversation of their own, each is one. Everywhere
    else it is the scope: a user of the API, a browser. Conversations of nobody are counted together, by the door that they came in.
    """
    parts = scope.split("/")
    if parts[0] == "session" and len(parts) > PARTS:
        return parts[1]
    if len(parts) != PARTS or parts[0] in UNNAMED:
        return scope
    platform, account, chat, _, person = parts
    return "/".join([platform, account, chat, *([person] if person else [])])


PARTS = 5
"""Of a conversation's key."""


def scopes_of(holder: str) -> tuple[str, ...]:
    """Under which scopes what counts in a holder's share stands; a slash at the end: below that. Others' may stand there, too. Pure."""
    chat = "/".join(holder.split("/")[:3])
    return holder, f"{holder}/", f"{chat}/", f"session/{holder}/"


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


@dataclass(frozen=True, slots=True)
class ScopedSpace:
    """Implements `agent_core.tools.base.Space` for one conversation."""

    quotas: Quotas
    holder: str
    workspace: Path

    @asynccontextmanager
    async def hold(self, adding: Amounts, place: Path | None = None) -> AsyncGenerator[None]:
        """See `Space`."""
        async with self.quotas.hold(self.holder, adding, place or self.workspace):
            yield


class Quotas:
    """What is kept, counted, and room held for more. Use `running` for its life; `hold` works without it, too."""

    def __init__(
        self, limits: QuotaLimits, state_dir: Path, workspaces: Path, spool: Path, memories: Memories, clock: Clock
    ) -> None:
        self.limits = limits
        self.ledger = QuotaLedger(limits)
        self.refused: Counter[QuotaKind] = Counter()
        """How often there was no room."""
        self._state = state_dir
        self._workspaces = workspaces
        self._spool = spool
        self._memories = memories
        self._clock = clock
        self._owners = Owners(state_dir)
        self._loaded = False
        self._loading = asyncio.Lock()
        self._dirty: set[str] = set()
        self._not_before: dict[str, float] = {}
        """When holders who were refused are counted again at the earliest, by the monotonic clock."""
        self._one: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._said: Counter[tuple[str, QuotaKind]] = Counter()
        self._begun: dict[str, None] = {}
        """Conversations that are stored, so that their messages need not ask."""
        self.counted = False
        """Everything was counted once."""

    def space(self, inbound: Inbound, workspace: Path) -> ScopedSpace:
        """The room of whoever wrote a message."""
        return ScopedSpace(self, whose_share(inbound), workspace)

    def workspace(self, inbound: Inbound) -> Path:
        """Where the files of a message's conversation are."""
        return workspace_of(inbound, self._workspaces)

    # ------------------------------------------------------------------ holding

    @asynccontextmanager
    async def hold(self, holder: str, adding: Amounts, place: Path) -> AsyncGenerator[None]:
        """Room for what the block writes into `place`. Raises `NoRoom` before it."""
        await self._load()
        if adding.keys() & OF_FOLDERS:
            await self._own(place, holder)
        await self._count_if_unknown(holder, adding)
        held = self.ledger.hold(holder, adding)
        if isinstance(held, Full) and await self._counted_anew(holder, adding):
            held = self.ledger.hold(holder, adding)
        if isinstance(held, Full):
            self.note(holder, held)
            raise NoRoom(held)
        try:
            yield
        except BaseException:
            self.ledger.drop(held)
            self._dirty.add(holder)  # a thread may still be at it, and some of it may be there
            raise
        self.ledger.settle(held)

    def note(self, holder: str, full: Full) -> None:
        """Somebody was refused: counted, and said now and then."""
        self.refused[full.kind] += 1
        key = ("" if full.kind is QuotaKind.WHOLE else holder, full.kind)
        if len(self._said) > MOST_SAID:
            self._said.clear()
        self._said[key] += 1
        if worth_saying(self._said[key]):
            log.warning(
                "quota.reached", what=full.kind.value, holder=shown(holder), used=full.used, limit=full.limit, adding=full.adding,
                times=self._said[key],
            )  # fmt: skip

    async def _load(self) -> None:
        """Learn whose the folders are."""
        async with self._loading:
            if not self._loaded:
                await asyncio.to_thread(self._owners.load)
                self._loaded = True

    async def _own(self, place: Path, holder: str) -> None:
        if not self._owners.knows(place, holder):
            lasting = place.parent != self._workspaces / ROOMS
            if await asyncio.to_thread(self._owners.claim, place, holder, lasting=lasting):
                self._dirty.add(holder)  # what it holds already has not been counted as theirs

    # ------------------------------------------------------------------ what comes in

    async def admit(self, inbound: Inbound, now: int) -> tuple[Charge, ...]:
        """What a message counts for by the day. Whether there is room is decided where it is stored: one that is there has its answer."""
        charges = [*await self.for_files(inbound, now)]
        if inbound.surface == "api" and not inbound.stateless and inbound.session.text() not in self._begun:
            charges.append(replace(self._charge(inbound, QuotaKind.SESSIONS, 1, now), new_session=True))
        return tuple(charges)

    async def for_files(self, inbound: Inbound, now: int) -> tuple[Charge, ...]:
        """What the files of a message count for, as far as they are new: that is decided where it is stored."""
        large = isinstance(inbound, FromApi) and sum(map(len, encoded_files(inbound))) > IN_THREAD_BYTES
        carried = await asyncio.to_thread(carried_files, inbound) if large else carried_files(inbound)
        if not carried:
            return ()
        holder = whose_share(inbound)
        known = tuple(BroughtFile(f"{FILE_SCOPE}{one.name}:{holder}", one.size) for one in carried[:KNOWN_FILES])
        rest = sum(one.size for one in carried[KNOWN_FILES:])
        charge = replace(self._charge(inbound, QuotaKind.INCOMING, rest, now), files=known)
        full = self.ledger.whole_room(rest + sum(file.size for file in known))
        if full is None:
            return (charge,)
        whole = self._charge(inbound, QuotaKind.WHOLE, rest, now)
        return replace(whole, files=known, limit=full.limit, already=full.used, counts=False), charge

    def _charge(self, inbound: Inbound, kind: QuotaKind, amount: int, now: int) -> Charge:
        day = now - now % DAY_MS
        scope = f"{DAILY}{kind.value}:{whose_share(inbound)}"
        return Charge(scope, day, day + DAY_MS, amount, self.limits.each.get(kind, 0))

    def taken(self, inbound: Inbound) -> None:
        """The message is stored, so its conversation has begun."""
        self._begun[inbound.session.text()] = None
        if len(self._begun) > BEGUN:
            del self._begun[next(iter(self._begun))]

    def refusal(self, inbound: Inbound, error: NoRoomToday, now: int) -> NotAccepted:
        """What is said of a message that the day has no room for."""
        kind = QuotaKind(error.scope.removeprefix(DAILY).partition(":")[0])
        full = Full(kind, error.used, error.limit, error.adding)
        self.note(whose_share(inbound), full)
        seconds = 600 if full.kind is QuotaKind.WHOLE else (DAY_MS - now % DAY_MS) // 1000
        return NotAccepted(for_person(full), NotAcceptedCode.QUOTA, max(1, seconds))

    # ------------------------------------------------------------------ counting

    async def _count_if_unknown(self, holder: str, adding: Amounts) -> None:
        if holder not in self._dirty and self.ledger.known(holder, adding):
            return
        async with self._one.setdefault(holder, asyncio.Lock()):
            if holder in self._dirty or not self.ledger.known(holder, adding):
                await self._count(holder, adding)

    async def _counted_anew(self, holder: str, adding: Amounts) -> bool:
        """Count a holder before they are refused. False if that was done just now."""
        began = self._clock.monotonic()
        if began < self._not_before.get(holder, began):
            return False
        async with self._one.setdefault(holder, asyncio.Lock()):
            await self._count(holder, adding)
        now = self._clock.monotonic()
        if len(self._not_before) > MOST_SAID:
            self._not_before.clear()
        self._not_before[holder] = now + ANEW * (now - began)
        return True

    async def _count(self, holder: str, kinds: Iterable[QuotaKind]) -> None:
        """What a holder really has, as far as these kinds ask for it.

        It counts only if nothing was written for them meanwhile, which might have been seen or not. Else it is tried again, and left at
        last: then the figures are as they were.
        """
        for _ in range(TRIES):
            before = await self._quiet(holder)
            found = await self._found(holder, set(kinds))
            if before is not None and before == self.ledger.quiet(holder):
                self._dirty.discard(holder)
                if QuotaKind.MEMORY in set(kinds) - found.keys():
                    self._dirty.add(holder)
                self.ledger.recounted(holder, found)
                return

    async def _quiet(self, holder: str) -> int | None:
        """Wait, for a while, until nothing is being written for a holder."""
        until = self._clock.monotonic() + QUIET_SECONDS
        while (found := self.ledger.quiet(holder)) is None and self._clock.monotonic() < until:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        return found

    async def _found(self, holder: str, kinds: set[QuotaKind]) -> dict[QuotaKind, int]:
        """What a holder has. While the storage is away, what is remembered is missing."""
        found: dict[QuotaKind, int] = {}
        if kinds - {QuotaKind.MEMORY}:
            found |= await asyncio.to_thread(self._on_disk, self._owners.folders(holder))
        if QuotaKind.MEMORY in kinds:
            with suppress(StorageUnavailable):
                found[QuotaKind.MEMORY] = (await self._remembered(scopes_of(holder))).get(holder, 0)
        return found

    def _on_disk(self, folders: list[Path]) -> dict[QuotaKind, int]:
        found = {QuotaKind.WORKSPACE: 0, QuotaKind.FILES: 0, QuotaKind.SPOOL: 0}
        for folder in folders:
            use = count_folder(folder)
            if folder.parent == self._spool:
                found[QuotaKind.SPOOL] += use.size + BLOCK_OF_FOLDER
            else:
                found[QuotaKind.WORKSPACE] += use.size
                found[QuotaKind.FILES] += use.files
        return found

    async def _remembered(self, of: Collection[str] = ()) -> dict[str, int]:
        """Bytes by holder; of everybody, or of those with these scopes. Raises `StorageUnavailable`."""
        found: Counter[str] = Counter()
        for scope, kind, size, entries in await self._memories(of):
            owner = scope.rpartition("/")[0] if kind == LISTS else scope
            found[holder_of(owner)] += size + entries * ENTRY_BYTES
        return dict(found)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Everything is counted in the background, for the block."""
        stop = Stop()
        async with beside(self._run(stop), "quota"):
            try:
                yield
            finally:
                stop.stop()

    async def _run(self, stop: Stop) -> None:
        while True:
            began = self._clock.monotonic()
            try:
                await self.count_everything(stop)
            except CountStopped:
                return
            except (OSError, StorageUnavailable) as error:
                log.warning("quota.not_counted", error=str(error))
            except Exception as error:
                log.exception("quota.not_counted", error=type(error).__name__)
            await asyncio.sleep(max(COUNT_SECONDS, REST * (self._clock.monotonic() - began)))

    async def count_everything(self, stop: Stop | None = None) -> None:
        """Count what is really there, of everybody."""
        began = self._clock.monotonic()
        await self._load()
        self.ledger.begin_count()
        roots = (self._workspaces, self._workspaces / ROOMS, self._spool)
        counted = await asyncio.to_thread(count_all, self._state, roots, stop or Stop())
        await asyncio.to_thread(self._owners.tidy)
        found: dict[str, dict[QuotaKind, int]] = {}
        for folder, use in counted.folders.items():
            holder = self._owners.holder(folder)
            if holder:
                its = found.setdefault(holder, {})
                if folder.parent == self._spool:
                    its[QuotaKind.SPOOL] = its.get(QuotaKind.SPOOL, 0) + use.size + BLOCK_OF_FOLDER
                else:
                    its[QuotaKind.WORKSPACE] = its.get(QuotaKind.WORKSPACE, 0) + use.size
                    its[QuotaKind.FILES] = its.get(QuotaKind.FILES, 0) + use.files
        for holder, size in (await self._remembered()).items():
            found.setdefault(holder, {})[QuotaKind.MEMORY] = size
        self.ledger.end_count(counted.whole, found)
        self.counted = True
        log.info(
            "quota.counted", used=self.ledger.whole(), holders=len(found), seconds=round(self._clock.monotonic() - began, 2)
        )  # fmt: skip

    # ------------------------------------------------------------------ telling

    def nearly_full(self) -> bool:
        """Whether the whole is nearly used up, or is."""
        return bool(self.limits.whole) and self.ledger.whole() >= self.limits.whole * NEARLY

    def words(self) -> str:
        """That the whole is nearly used up, for operators; empty if it is not."""
        if not self.nearly_full():
            return ""
        used, limit = self.ledger.whole(), self.limits.whole
        refused = " Files, and what is to be remembered, are refused." if used >= limit else ""
        return (
            f"{size_words(used)} of {size_words(limit)} are kept in the state directory ({used * 100 // limit} %).{refused} outspoken "
            "status shows who has most; remove something, or raise [quota] whole_mib."
        )

    def status(self) -> dict[str, Json]:
        """For ``outspoken status``."""
        most = self.ledger.most(SHOWN)
        return {
            "counted": self.counted,
            "used_bytes": self.ledger.told(),
            "limit_bytes": self.limits.whole,
            "kinds": {kind.value: amount for kind, amount in self.ledger.totals().items()},
            "refused": {kind.value: self.refused[kind] for kind in QuotaKind},
            "most": [
                {"holder": shown(holder), **{kind.value: used.get(kind, 0) for kind in (*ON_DISK, QuotaKind.FILES)}}
                for holder, used in most
                if any(used.values())
            ],
        }

    async def lines(
        self, inbound: Inbound, kinds: tuple[QuotaKind, ...] = (QuotaKind.WORKSPACE, QuotaKind.FILES, QuotaKind.MEMORY)
    ) -> tuple[str, ...]:
        """How much of theirs is kept, for the person."""
        holder = whose_share(inbound)
        await self._load()
        await self._count_if_unknown(holder, dict.fromkeys(kinds, 0))
        used = self.ledger.used(holder)
        amounts = [self._of(kind, used.get(kind, 0)) for kind in kinds if kind is not QuotaKind.MEMORY]
        lines = [f"Kept for you: {', '.join(amounts)}."]
        if QuotaKind.MEMORY in kinds:
            lines.append(f"Remembered for you: {self._of(QuotaKind.MEMORY, used.get(QuotaKind.MEMORY, 0))}.")
        return tuple(lines)

    def changed(self, holder: str) -> None:
        """Somebody else has changed what a holder has: it is counted before it is asked for next."""
        self._dirty.add(holder)

    def _of(self, kind: QuotaKind, used: int) -> str:
        limit = self.limits.each.get(kind, 0)
        return f"{amount_words(kind, used)} of {amount_words(kind, limit)}" if limit else amount_words(kind, used)


MOST_SAID = 10_000
BLOCK_OF_FOLDER = 4096
