"""Implements `adapters.contract.sessions.SessionAccess`: what programs do with stored conversations, by the operations that commands in chats use.

Beginning anew is what ``/new`` does; deleting is forgetting, of one conversation; approvals go the way of buttons.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

from adapters.contract.base import TEMPORARY, Ended, SessionKey, Showing
from adapters.contract.sessions import (
    ARCHIVED,
    CHAINED,
    NAMED,
    PAGES,
    SUGGESTED,
    TITLE,
    BusyElsewhere,
    Decision,
    OpenApproval,
    SessionFile,
    SessionSight,
    SessionTurn,
    StillRunning,
)
from adapters.delivery.parts import call_mark
from agent_core.jsonvalue import Json
from agent_core.ports import Ids
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.sessions.copies import SessionCopy
from agent_core.store.sessions.rows import SessionChange, SessionRow
from agent_core.store.store import Fenced, LeaseLost, OwnedElsewhere, Store
from agent_core.store.turns.rows import TAKEN_BACK
from agent_core.tools.files.trees import below
from agent_core.turn.events import Verdict
from agent_core.turn.view import BubbleKind
from gateway.conversations.deciding import Deciding
from gateway.conversations.sights import SessionSights
from gateway.limits.whose import folder_name
from gateway.queues.branches import branches_of, line, to_show
from gateway.queues.inbox import UnreadableMessage
from gateway.queues.prefs import Prefs, goes_by, noted
from gateway.queues.queue import SessionQueue, files_brought, files_named, waiting_of
from gateway.retention.forgetting import GONE, Forgetting
from gateway.sessions.accepting import Accepting
from gateway.sessions.recall import closed_turn
from gateway.sessions.stopping import TurnStopping
from gateway.sharing.portion import Changed, FarChange


@dataclass(frozen=True, slots=True)
class Shelf:
    """Which conversations are looked after: those of these accounts of a platform. The first account's have names."""

    platform: str
    accounts: tuple[str, ...]

    def named(self, realm: str, name: str) -> SessionKey:
        """The key of the realm's conversation of this name."""
        return SessionKey(self.platform, self.accounts[0], name, person=realm)

    def ends(self, realm: str) -> tuple[list[str], str]:
        """How the keys of a realm's begin and end."""
        ending = SessionKey("", "", "", person=realm).text()[len("//") :]
        return [f"{self.platform}/{account}/" for account in self.accounts], ending


OF_API, OF_PAGE = Shelf("api", (NAMED, CHAINED)), Shelf("web", (PAGES,))
MOST_FILES = 10_000
MOST_BRANCHED = 200
"""So many turns a branch takes along."""
LATEST = 3
"""Among so many of the latest turns is one that is over, if there is any."""
OVER_LOOKS, OVER_SECONDS = 100, 0.1
"""How often it is looked whether a turn that was stopped is over, and how long apart."""


@dataclass(frozen=True, slots=True)
class GatewaySessions:
    """Every method raises `StorageUnavailable`."""

    store: Store
    accepting: Accepting
    stopping: TurnStopping
    forgetting: Forgetting
    sights: SessionSights
    deciding: Deciding
    ids: Ids
    workspaces: Path
    shelf: Shelf = OF_API

    # ------------------------------------------------------------------ looking

    async def page(
        self, realm: str, after: SessionSight | None, limit: int, *, newest_first: bool
    ) -> list[SessionSight]:
        behind = (after.created_at, after.session) if after is not None else None
        prefixes, ending = self.shelf.ends(realm)
        rows = await self.store.sessions.named(prefixes, ending, limit, behind, newest_first=newest_first)
        return await self.sights.of(rows)

    async def latest(self, realm: str, limit: int, *, aside: bool) -> list[SessionSight]:
        prefixes, ending = self.shelf.ends(realm)
        rows = await self.store.sessions.latest(
            prefixes, ending, limit, f"{prefixes[0]}{TEMPORARY}", noted(ARCHIVED), marked=aside
        )
        return await self.sights.of(rows)

    async def find(self, realm: str, name: str) -> SessionSight | None:
        row = await self._row(realm, name)
        return (await self.sights.of([row]))[0] if row is not None else None

    async def _row(self, realm: str, name: str) -> SessionRow | None:
        row = await self.store.sessions.by_key(self.shelf.named(realm, name).text())
        if row is not None or not name.startswith("s_"):
            return row
        row = await self.store.sessions.one(name)
        if row is None or row.key.count("/") != 4:
            return None
        key = SessionKey.of(row.key)
        theirs = key.platform == self.shelf.platform and key.account in self.shelf.accounts and key.person == realm
        return row if theirs else None

    async def turns(self, sight: SessionSight, number: int, limit: int, *, newest_first: bool) -> list[SessionTurn]:
        return await self.sights.turns(sight.session, number, limit, newest_first=newest_first)

    async def remembered(self, sight: SessionSight) -> Mapping[str, Json]:
        found: dict[str, list[Json]] = {}
        for row in await self.store.memory.of_session(sight.key.text()):
            entry: Json = {"name": row.name, "value": row.text, "at": row.at // 1000}
            found.setdefault(row.kind, []).append(entry)
        return {kind: list(entries) for kind, entries in found.items()}

    async def files(self, sight: SessionSight) -> list[SessionFile]:
        return await asyncio.to_thread(_files_in, self.workspaces / folder_name(sight.key.text()))

    async def sent(self, sight: SessionSight, turn: str, mark: str) -> Path | None:
        spool, row = self.forgetting.spool, await self.store.turns.one(turn)
        if spool is None or row is None or row.session != sight.session or row.removed:
            return None
        found = await self.sights.turns(row.session, row.number - 1, 1, newest_first=False)
        seen = found[0].seen if found and found[0].turn == turn else None
        bubbles = seen.view.bubbles if isinstance(seen, Ended | Showing) else ()
        path = next((b.path for b in bubbles if b.kind is BubbleKind.FILE and call_mark(b.key) == mark), "")
        return spool / Path(path).parent.name / Path(path).name if path else None

    async def brought(self, sight: SessionSight, message: str, number: int) -> tuple[str, bytes] | None:
        if not message.isprintable():
            return None
        row = await self.store.inbox.by_key(sight.key.platform, message)
        if row is None:
            return await self._brought_before(sight, message, number)
        return await asyncio.to_thread(_file_in, row, number) if row.session == sight.session else None

    async def _brought_before(self, sight: SessionSight, turn: str, number: int) -> tuple[str, bytes] | None:
        """The same of a turn that was branched: the file is where it was brought, in a conversation of the same person."""
        row = await self.store.turns.one(turn)
        if row is None or row.session != sight.session or row.removed:
            return None
        found = closed_turn(turn, [(one.kind, one.body) for one in await self.store.turns.journal(turn)])
        named = files_named(found) if found is not None else []
        message = await self.store.inbox.one(named[number][0]) if number < len(named) else None
        home = await self.store.sessions.one(message.session) if message is not None else None
        if message is None or home is None or not _same_person(SessionKey.of(home.key), sight.key):
            return None
        return await asyncio.to_thread(_file_in, message, named[number][1])

    # ------------------------------------------------------------------ changing

    async def make(self, realm: str, metadata: Mapping[str, str]) -> SessionSight:
        name = self.ids.new("conv")
        policy = Prefs(metadata=metadata).encode() if metadata else ""
        await self.store.sessions.make(self.ids.new("s"), self.shelf.named(realm, name).text(), policy)
        found = await self.find(realm, name)
        assert found is not None
        return found

    async def describe(self, sight: SessionSight, metadata: Mapping[str, str]) -> SessionSight:
        if await self._there(sight, FarChange.DESCRIBE, {**metadata}, {**sight.metadata}) is not None:
            return replace(sight, metadata=metadata)
        async with self._owned(sight.key.text(), sight.session) as queue:
            row = await self.store.sessions.one(sight.session)
            before = Prefs.decode(row.policy if row is not None else None)
            metadata = attached(before.metadata, sight.metadata, metadata)
            await self._set(queue, before, replace(before, metadata=metadata))
        return replace(sight, metadata=metadata)

    async def suggest(self, row: SessionRow, title: str) -> None:
        """A title for one that nobody has named meanwhile."""
        async with self._owned(row.key, row.session) as queue:
            now = await self.store.sessions.one(row.session)
            prefs = Prefs.decode(now.policy if now is not None else None)
            if now is None or TITLE in prefs.metadata:
                return
            await self._set(queue, prefs, replace(prefs, metadata={**prefs.metadata, SUGGESTED: title}))

    async def _set(self, queue: SessionQueue, before: Prefs, after: Prefs) -> None:
        """A command may set something else in this moment."""
        await self.store.sessions.change(queue.session, queue.epoch, SessionChange(policy=after.since(before)))
        goes_by(queue, before, after)

    async def reset(self, sight: SessionSight) -> SessionSight:
        key = sight.key
        if await self._there(sight, FarChange.RESET) is None:
            await self.stopping.stop(key)
            async with self._owned(sight.key.text(), sight.session) as queue:
                await self.store.sessions.change(sight.session, queue.epoch, SessionChange(forget=True))
                self.stopping.queues.forget_memory(key.text())
        row = await self.store.sessions.one(sight.session)
        return (await self.sights.of([row]))[0] if row is not None else sight

    async def show(self, sight: SessionSight, turn: str) -> bool:
        if (shown := await self._there(sight, FarChange.SHOW, turn)) is not None:
            return shown
        async with self._owned(sight.key.text(), sight.session) as queue:
            if not queue.quiet:
                raise StillRunning
            places = await self.store.turns.places(sight.session)
            if not any(one.turn == turn and not one.removed for one in places):
                return False
            if (branch := to_show(places, turn)) is not None:
                await self.store.sessions.change(sight.session, queue.epoch, SessionChange(branch=branch))
                self.stopping.queues.forget_memory(queue.key)
                self.stopping.queues.rebranch(queue.key)
        return True

    async def branch(self, realm: str, sight: SessionSight, turn: str, name: str, title: str) -> bool:
        places = await self.store.turns.places(sight.session)
        upto = next((one for one in places if one.turn == turn and not one.removed), None)
        if upto is None:
            return False
        turns = [(one.turn, self.ids.new("t")) for one in line(places, upto.number)[-MOST_BRANCHED:]]
        row = await self.store.sessions.one(sight.session)
        prefs = replace(Prefs.decode(row.policy if row is not None else None), metadata={TITLE: title} if title else {})
        key = self.shelf.named(realm, name).text()
        await self.store.sessions.copy(SessionCopy(self.ids.new("s"), key, prefs.encode(), turns))
        return True

    async def tip(self, sight: SessionSight) -> int:
        places = await self.store.turns.places(sight.session)
        hidden = branches_of(places).hidden
        shown = [one.turn for one in places if one.turn not in hidden and not one.undone and not one.removed]
        latest = await self.store.turns.some(shown[-LATEST:])
        return max((row.number for row in latest if row.closed_at is not None), default=0)

    async def linked(self, session: str) -> SessionSight | None:
        row = await self.store.sessions.one(session)
        if row is None or row.key.count("/") != 4:
            return None
        key = SessionKey.of(row.key)
        page = key.platform == self.shelf.platform and key.account in self.shelf.accounts
        return (await self.sights.of([row]))[0] if page and not key.temporary else None

    async def line(self, sight: SessionSight, upto: int, behind: int, limit: int) -> list[SessionTurn]:
        places = line(await self.store.turns.places(sight.session), upto)
        kept = [one.turn for one in places if one.number > behind and one.undone != TAKEN_BACK and not one.removed]
        return await self.sights.these(sight.session, kept[:limit])

    async def delete(self, sight: SessionSight) -> None:
        if await self._there(sight, FarChange.DELETE) is not None:
            return
        async with self._owned(sight.key.text(), sight.session) as queue:
            for message in [*queue.waiting]:  # before the running one: the next would begin when that ends
                await self.stopping.stop_message(queue.ticket_of(message))
            await self.stopping.stop(sight.key)
            if not await self._over(queue):
                raise StillRunning
            key, gone = sight.key.text(), GONE.format(sight.session)
            job = await self.forgetting.begin_conversation(sight.session, key, gone)
            self.stopping.queues.let_go(queue)
            await self.forgetting.finish(job)

    async def _there(self, sight: SessionSight, change: FarChange, *words: Json) -> bool | None:
        """Have the gateway do it that runs the conversation, if that is another one: whether there was something to change. None: it is this
        one. Raises `BusyElsewhere` if it does not answer, `StillRunning`."""
        key, portion = sight.key.text(), self.stopping.portion
        if portion.mine(key) or portion.far is None:
            return None
        match await portion.far.change(key, sight.session, change, *words):
            case Changed.DONE:
                return True
            case Changed.NOTHING:
                return False
            case Changed.RUNNING:
                raise StillRunning
            case None:
                raise BusyElsewhere

    @asynccontextmanager
    async def _owned(self, key: str, session: str) -> AsyncGenerator[SessionQueue]:
        """The conversation's queue, which is this process's while the block runs; no message is taken in meanwhile. Raises `BusyElsewhere`."""
        queues = self.stopping.queues
        queue = queues.at(key)
        try:
            async with queue.accepting:
                yield await self.accepting.owned(key, session)
        except (OwnedElsewhere, LeaseLost, Fenced) as error:
            raise BusyElsewhere from error
        finally:
            queues.release(queue)

    async def _over(self, queue: SessionQueue) -> bool:
        """Whether nothing of it runs any more, and its end is stored."""
        for _ in range(OVER_LOOKS):
            busy = queue.running is not None or queue.task is not None or queue.waiting
            if not busy and not await self.store.left.turns(queue.session):
                return True
            await asyncio.sleep(OVER_SECONDS)
        return False

    # ------------------------------------------------------------------ approvals

    async def approvals(self, realm: str) -> list[OpenApproval]:
        return await self.deciding.open(realm)

    async def decide(
        self, realm: str, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting = Lasting.ONCE
    ) -> Decision:
        return await self.deciding.decide(realm, turn, call, verdict, by, lasts)


def attached(now: Mapping[str, str], seen: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """What is attached to a conversation when somebody wants it otherwise than they have seen it: what others have set or taken off meanwhile (a
    title, a link) is as they want it. Pure."""
    theirs = {name: value for name, value in now.items() if seen.get(name) == wanted.get(name)}
    return theirs | {name: value for name, value in wanted.items() if seen.get(name) != value}


def access_of(
    accepting: Accepting, stopping: TurnStopping, forgetting: Forgetting, shelf: Shelf = OF_API
) -> GatewaySessions:
    """What programs do with the conversations of this gateway."""
    store = forgetting.store
    sights = SessionSights(store, stopping.queues, forgetting.clock)
    deciding = Deciding(store, stopping, sights)
    return GatewaySessions(
        store, accepting, stopping, forgetting, sights, deciding, forgetting.ids, forgetting.workspaces, shelf
    )


def _same_person(one: SessionKey, other: SessionKey) -> bool:
    return (one.platform, one.account, one.person) == (other.platform, other.account, other.person)


def _file_in(row: InboxRow, number: int) -> tuple[str, bytes] | None:
    try:
        files = files_brought(waiting_of(row).inbound)
        name, data = files[number]
        return name, b64decode(data.partition(",")[2], validate=True)
    except (UnreadableMessage, IndexError, ValueError):  # forgotten meanwhile, or never there
        return None


def _files_in(root: Path) -> list[SessionFile]:
    found = (SessionFile(one.path, one.about.st_size) for one in below(root) if not one.is_folder)
    return sorted(islice(found, MOST_FILES), key=lambda one: one.path)
