"""Forgetting a person: everything that they said and that was answered to them, wherever it lies. A job that outlives the process.

It goes in steps that can each be repeated, and always begins at the first: who asked what stays written until the last one. So whatever kills
the process, the next one ends it. It takes what there was when it was begun: who writes again afterwards begins anew, and is answered.

What is kept, without a word of theirs: that there were turns, when, and what they used (budgets count on); what was done by hand; whether they
may talk. In a conversation with others, what others said and were answered stays. Backups and logs are not ours to change.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

import structlog
from sqlalchemy import ColumnElement, Connection

from adapters.contract.base import FromApi, SessionKey
from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import decode
from agent_core.limits.retention import next_size
from agent_core.messages import text_of
from agent_core.model.made import FILES
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.store.audit import AuditRow
from agent_core.store.keeping import forgetting as steps
from agent_core.store.keeping.forgetting import (
    CONVERSATION,
    CONVERSATION_KEY,
    Account,
    ForgettingJob,
    TheirSession,
)
from agent_core.store.keeping.keeping import PAUSE
from agent_core.store.keeping.retaining import Removed
from agent_core.store.sessions.rows import ONCE
from agent_core.store.store import StorageUnavailable, Store, StoreError
from agent_core.tools.files.trees import remove_tree
from agent_core.turn.events import ReplyFinished, TurnOpened
from gateway.limits.whose import author_of, folder_name
from gateway.queues import inbox
from gateway.queues.queue import SessionQueue, Waiting
from gateway.retention.underway import BeingForgotten

log = structlog.get_logger("gateway")
K = TypeVar("K")

LOOKED_AT_ONCE = 5_000
LATER_SECONDS = 600.0
"""So long after one that could not be done it is tried again."""
AGAIN_SECONDS = 2.0
"""So long after a step in which one of their turns was still open it is looked again."""
_ATTACHED, _LIES = "[The person attached ", "; it is in your workspace as "
_UNREAD, _RECORDED = ". You cannot tell what is in it: ", ". They recorded it themselves: "
DELETED = "deleted by its client"
"""Why the journal of a turn is gone that a client has deleted, as it is stored."""
GONE = "api/gone/{}//"
"""The key of a conversation that is being deleted; no message ever has it."""
QUICK_BYTES = 256 * 2**20
"""A SQLite file up to this size is written anew while the gateway runs: nobody writes meanwhile, for some seconds."""


@dataclass(frozen=True, slots=True)
class ForgettingResult:
    """What a job came to."""

    turns: int
    messages: int
    conversations: int
    shared: int
    """Conversations with others, in which what these said is kept."""
    folders: int
    rewritten: bool
    """The database's file was written anew, so that nothing is left between its rows either."""

    def lines(self, copies: Sequence[str]) -> list[str]:
        """In words."""
        lines = [
            f"Forgotten. Turns: {self.turns}, messages: {self.messages}, conversations: {self.conversations}, files and folders: {self.folders}.",
        ]
        if self.shared:
            lines.append(f"Conversations with others: {self.shared}. What those said and were answered there is kept.")
        lines.append(
            "Kept without a word of theirs: numbers of turns and budgets, what was done by hand, whether they may talk."
        )
        if not self.rewritten:
            lines.append(
                "The database's file was not written anew: it is too large for that while the gateway runs, its disk has no room for two copies of it, "
                "or it is damaged. What was removed is overwritten; to be sure that no copy is left between rows, see to that, stop the gateway and run "
                "this again."
            )
        lines.append(
            "Backups and logs that you keep elsewhere still hold what they hold."
            + (f" So do these copies beside the database: {', '.join(copies)}." if copies else "")
        )
        return lines


def unknown(who: str) -> str:
    """What is said of somebody whom nobody has heard of: a name may be written wrongly, and what is removed cannot be seen."""
    return (
        f"{who} is not among those who spoke (outspoken people list); what is kept of them is looked for all the same."
    )


def attached(words: str) -> list[str]:
    """The files of a workspace of which a message says that its person attached them, with the texts beside them. Pure."""
    found: list[str] = []
    for line in words.split("\n"):
        _, lies, told = line.partition(_ATTACHED)[2].rpartition(_LIES)
        if not lies or not told.endswith("]"):
            continue
        place, recorded, _ = told.removesuffix("]").partition(_UNREAD)[0].partition(_RECORDED)
        names = place.removesuffix(".").split(", its text as ")
        found += [*names, *([f"{names[0]}.txt"] if recorded else [])]  # what was heard in it is told as their words
    return found


async def nobody_runs(_: ForgettingJob) -> None:
    """No gateway runs, so there is nothing to stop."""


NOBODY = ForgettingJob("", (), 0, None)


@dataclass(frozen=True, slots=True)
class Quiet:
    """Stops what runs and waits for people, and lets go of what is remembered of conversations."""

    queues: Iterable[SessionQueue]
    stop: Callable[[SessionQueue, Waiting], Awaitable[None]]
    forget: Callable[[], None]

    async def __call__(self, job: ForgettingJob) -> None:
        mine = set(job.who)
        for queue in self.queues:
            running = queue.running.messages if queue.running is not None else ()
            for message in [*queue.waiting, *running]:
                theirs = (message.inbound.account, author_of(message.inbound)) in mine
                if theirs and message.received_at <= job.at:
                    await self.stop(queue, message)
            queue.memory_loaded = queue.recent_loaded = queue.prefs_loaded = False
            queue.recent = []
        self.forget()


@dataclass(slots=True)
class Forgetting:
    """Begins such jobs, and ends those that earlier processes left."""

    store: Store
    clock: Clock
    ids: Ids
    workspaces: Path
    spool: Path | None
    printed: Path | None
    """Where what commands printed lies, a folder for each conversation."""
    quiet: Callable[[ForgettingJob], Awaitable[None]] = nobody_runs
    """Stops what runs here for them, and lets go of what is remembered of conversations."""
    elsewhere: Callable[[], None] = lambda: None
    """Has the other gateways hear that there is a job: one of them does it, and each stops what it runs for them."""
    alone: bool = False
    """No gateway runs: the file may be written anew however long that takes."""
    underway: BeingForgotten = field(default_factory=BeingForgotten)
    """Whoever of them writes again is answered when what they said before is gone."""
    last: ForgettingResult | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _in_hand: set[str] = field(default_factory=set[str])
    _gone: set[str] = field(default_factory=set[str])
    """Those in hand of which nothing is left that a turn could be told."""

    async def run(self) -> None:
        """End what earlier processes left, and what is begun."""
        while True:
            self._asked.clear()
            await self.finish_all()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), LATER_SECONDS)

    def wake(self) -> None:
        """There is a job."""
        self._asked.set()
        self._heard.set()

    async def keep_quiet(self) -> None:
        """Stop what runs here for all who are being forgotten, at each word of it: whoever does the job has only its own turns in hand, and does one job
        after the other. What is remembered here of conversations is let go of as often, since it may be gone from the database by now."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            try:
                jobs = [
                    job for job in await self.store.forgotten.jobs() if job.done_at is None and job.conversation is None
                ]
                self.underway.are({job.forget: job.who for job in jobs if job.forget not in self._gone})
                for job in jobs:
                    await self.quiet(job)
                await self.quiet(NOBODY)
            except StorageUnavailable as error:
                log.warning("forget.not_done", error=str(error))
                await asyncio.sleep(AGAIN_SECONDS)
                self._heard.set()

    async def _quiet(self, job: ForgettingJob) -> None:
        """Here, and at all others."""
        self.elsewhere()
        await self.quiet(job)

    async def begin(self, who: Account, by: str) -> ForgettingJob:
        """It will be done, whatever happens from now on."""
        joined = await self.store.forgotten.joined(who)
        # Who uses the API with a key of their own is the same person on the page.
        page = {("web", person) for account, person in joined if account == "api"}
        accounts = tuple(sorted({*joined, *page}))
        job = ForgettingJob(self.ids.new("f"), accounts, self.clock.now_ms(), None)
        self.underway.begins(job.forget, job.who)  # in the moment up to which it goes
        try:
            await self.store.keeping.remove(steps.begin(job))
        except BaseException:
            self.underway.ends(job.forget)
            raise
        self.underway.stored(job.forget)
        self.wake()
        self.elsewhere()
        words = f"Forgets {', '.join('/'.join(one) for one in accounts)}."
        await self.store.deliveries.act(AuditRow(self.ids.new("a"), job.at, by, "forget", "/".join(who), words))
        return job

    async def begin_conversation(self, session: str, key: str, gone: str) -> ForgettingJob:
        """The same of a conversation in which nothing runs or waits; its name is free when this returns. Whoever begins it ends it (`finish`)."""
        who = ((CONVERSATION, session), (CONVERSATION_KEY, key))
        job = ForgettingJob(self.ids.new("f"), who, self.clock.now_ms(), None)
        await self.store.keeping.remove(steps.begin_conversation(job, gone))
        return job

    async def finish_all(self) -> None:
        """Do what is not done yet. What cannot be done just now keeps no other."""
        try:
            for job in await self._left():
                # Else it was ended while that was read, and what has its name by now is another one's.
                if job in await self._left():
                    await self._tried(job)
        except StorageUnavailable as error:
            log.warning("forget.not_done", error=str(error))

    async def _tried(self, job: ForgettingJob) -> None:
        try:
            await self.finish(job)
        except (StoreError, OSError) as error:
            log.warning("forget.not_done", forget=job.forget, error=str(error))
        except Exception:
            log.exception("forget.failed", forget=job.forget)

    async def _left(self) -> list[ForgettingJob]:
        """What is not done, and nobody here does."""
        jobs = await self.store.forgotten.jobs()
        return [job for job in jobs if job.done_at is None and job.forget not in self._in_hand]

    async def finish(self, job: ForgettingJob) -> ForgettingResult:
        """Do it, from the beginning."""
        self._in_hand.add(job.forget)
        try:
            if job.conversation is not None:
                done = await self._finish_conversation(job, *job.conversation)
            else:
                async with self._lock:
                    self.underway.begins(job.forget, job.who)
                    done = self.last = await self._finish(job)
        finally:
            self._in_hand.discard(job.forget)
            if job.conversation is None:
                self.underway.ends(job.forget)
                self._heard.set()
                self.elsewhere()
        self._gone.discard(job.forget)
        log.info("forget.done", forget=job.forget, turns=done.turns, messages=done.messages)
        return done

    async def _finish_conversation(self, job: ForgettingJob, session: str, key: str) -> ForgettingResult:
        turns, folders, number = 0, 0, 0
        while rows := await self.store.turns.behind(session, number, LOOKED_AT_ONCE // 10):
            number = rows[-1].number
            for row in rows:
                folders += await self._files_of(row.turn, session)
            names = [row.turn for row in rows]
            turns += await self._in_batches(names, lambda some: steps.remove_turns(some, DELETED))
        one = TheirSession(session, key, alone=True)
        if not key.startswith(ONCE) and await self.store.sessions.by_key(key) is not None:
            one = replace(one, key=GONE.format(session))  # after a restart: what has its name now is another one
        messages, left = await self._remove_own(one, job.at)
        folders += await self._folder(folder_name(one.key))
        await self.store.keeping.remove(steps.end(job, self.clock.now_ms()))
        return ForgettingResult(turns + left, messages, 1, 0, folders, rewritten=True)

    async def _remove_own(self, one: TheirSession, at: int) -> tuple[int, int]:
        """What is left of a conversation of theirs alone: how many messages, how many turns."""
        messages, turns = await self._blank(steps.of_session(one.session, at)), 0
        while left := (await self._pausing(steps.remove_session(one, at))).count:
            turns += left
        return messages, turns

    async def _finish(self, job: ForgettingJob) -> ForgettingResult:
        await self._name_writers()
        await self._remove_planned(job, await self._theirs(job))
        await self._quiet(job)
        turns, folders = 0, 0
        while True:
            gone, files, busy = await self._turns(job)
            turns, folders = turns + gone, folders + files
            if not busy:
                break
            await asyncio.sleep(AGAIN_SECONDS)
            await self._quiet(job)
        messages = await self._blank(steps.written_by(job))
        sessions = await self._theirs(job)
        await self._remove_planned(job, sessions)  # what was under way has set more, or is refused from now on
        own = [one for one in sessions if one.alone]
        for one in own:
            blanked, left = await self._remove_own(one, job.at)
            messages, turns = messages + blanked, turns + left
            folders += await self._folder(folder_name(one.key))
        for one in sessions:
            if not one.alone:
                await self._in_batches(await self.store.forgotten.summaries(one.session), steps.blank_summaries)
        for account, person in job.who:
            if account in ("api", "web"):
                folders += await self._folder(folder_name(f"{account}/{person}"))
        await self.store.keeping.remove(steps.remove_the_rest(job.who))
        await self._quiet(job)
        self._gone.add(job.forget)
        self.underway.ends(job.forget)
        rewritten = await self.store.keeping.scrub(QUICK_BYTES if not self.alone else None)
        await self._blank_names(job)
        await self.store.keeping.remove(steps.end(job, self.clock.now_ms()))
        await self.store.keeping.scrub(0)
        return ForgettingResult(turns, messages, len(own), len(sessions) - len(own), folders, rewritten)

    async def _theirs(self, job: ForgettingJob) -> list[TheirSession]:
        return await self.store.forgotten.sessions(job.who, await self.store.forgotten.keys_of(job.who))

    async def _remove_planned(self, job: ForgettingJob, sessions: Sequence[TheirSession]) -> None:
        own = [one.key for one in sessions if one.alone]
        await self.store.keeping.remove(steps.remove_planned(job.who, own, job.at, _blank))

    async def _name_writers(self) -> None:
        """Messages that an older version stored do not say by whom they are, but in their bodies."""
        after = 0
        while rows := await self.store.forgotten.unnamed_messages(LOOKED_AT_ONCE // 10, after):
            after = rows[-1][0]
            found: list[tuple[int, str, str, str]] = []
            for number, account, turn, body in rows:
                with suppress(inbox.UnreadableMessage):
                    person = author_of(inbox.decode(body))
                    found += [(number, account, turn, person)] if person else []
                await asyncio.sleep(0)
            if found:
                await self.store.keeping.remove(steps.name_writers(found))

    async def _turns(self, job: ForgettingJob) -> tuple[int, int, bool]:
        """How many were removed, how many files with them, and whether one is open still."""
        count, folders, busy, after = 0, 0, False, ""
        while True:
            found, after_now = await self.store.forgotten.turns(job, LOOKED_AT_ONCE, after)
            if not after_now:
                return count, folders, busy
            after = after_now
            busy |= any(one.open for one in found)
            closed = [one for one in found if not one.open]
            for one in closed:
                folders += await self._files_of(one.turn, one.session)
            count += await self._in_batches([one.turn for one in closed], steps.remove_turns)

    async def _files_of(self, turn: str, session: str) -> int:
        """Remove what they attached, from the conversation's folder, and what was on its way to them."""
        gone = 0
        for key in await self.store.forgotten.tool_keys([turn]):
            name = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
            if self.spool is not None and (self.spool / name).is_dir():
                await asyncio.to_thread(shutil.rmtree, self.spool / name, True)
                gone += 1
        rows = await self.store.turns.journal(turn)
        found = await self.store.sessions.one(session) if rows else None
        if found is None:
            return gone
        try:
            opened = decode(rows[0].kind, rows[0].body)
            replies = [decode(row.kind, row.body) for row in rows if row.kind == ReplyFinished.kind()]
        except UnreadableJournal:
            return gone
        for place in {place for event in replies if isinstance(event, ReplyFinished) for place in _made(event)}:
            if self.spool is not None:
                await asyncio.to_thread(shutil.rmtree, self.spool / place, True)
                gone += 1
        words = [text_of(one.content) for one in opened.input] if isinstance(opened, TurnOpened) else []
        root = self.workspaces / folder_name(found.key)
        for name in attached("\n".join(words)):
            path = root / Path(name).name
            if path.is_file():
                path.unlink(missing_ok=True)
                gone += 1
        return gone

    async def _folder(self, name: str) -> int:
        path = self.workspaces / name
        if self.printed is not None:
            await asyncio.to_thread(shutil.rmtree, self.printed / name, True)
        if not path.is_dir():
            return 0
        with suppress(OSError):
            await asyncio.to_thread(remove_tree, path)
            return 1
        return 0

    async def _blank(self, which: ColumnElement[bool]) -> int:
        messages = await self.store.forgotten.messages(which)
        return await self._in_batches(messages, lambda some: steps.blank_messages(some, _blank))

    async def _blank_names(self, job: ForgettingJob) -> None:
        """Last of all: by these names it is found what is to be done, if it has to be begun again."""
        after = ""
        while True:
            found, after_now = await self.store.forgotten.turns(job, LOOKED_AT_ONCE, after)
            await self._in_batches([one.turn for one in found], steps.blank_askers)
            if not after_now:
                break
            after = after_now
        await self._in_batches(await self.store.forgotten.messages(steps.written_by(job)), steps.blank_writers)

    async def _in_batches(self, things: Sequence[K], body: Callable[[Sequence[K]], Callable[[Connection], int]]) -> int:
        """Do something to all of these, so many at once as take some milliseconds."""
        count, first, size = 0, 0, 8
        while first < len(things):
            done = await self._pausing(body(things[first : first + size]))
            first, count = first + size, count + done.count
            size = next_size(size, done.seconds, 500)
        return count

    async def _pausing(self, body: Callable[[Connection], int]) -> Removed:
        """One transaction; then the writer is the others' for longer."""
        done = await self.store.keeping.remove_some(body)
        await asyncio.sleep(done.seconds * PAUSE)
        return done


def copies_beside(database: Path) -> list[str]:
    """Copies of the database that were made before upgrades: they hold what was in it then."""
    return sorted(one.name for one in database.parent.glob(f"{database.name}.before-*"))


def _blank(account: str, key: str, session: str) -> bytes:
    """What is left of a message: by which it is known again."""
    named = SessionKey.of(session)
    return inbox.encode(
        FromApi(account=account, platform_key=key, session=named, input=(), surface="", memory_scope="")
    )


def _made(reply: ReplyFinished) -> list[str]:
    """Which folders hold the pictures and sounds of a reply."""
    files = reply.made.get(FILES)
    paths = [one.get("file") for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    places = [Path(path).parent.name for path in paths if isinstance(path, str)]
    return [place for place in places if re.fullmatch("[0-9a-f]{24}", place)]
