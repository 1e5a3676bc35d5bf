"""A year of a busy workspace: how large it is, how quickly a gateway starts on it, what a turn takes, and how a person is forgotten.

    python -m tests.bench.year --turns 1000000 --folder /some/folder

Rows are made by the real encoders (events, messages, pieces) and put in by bulk. Of the turns that retention has passed long ago, only what it
leaves is made: their numbers. The last ninety days and the ten before them are whole; those ten are removed by the real upkeep, which is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from adapters.contract.base import FromApi, FromChat, Inbound, SessionKey, once
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.failures import exits
from agent_core.journal.rows import encode
from agent_core.limits.budgets import BudgetRules, Payer
from agent_core.limits.retention import DAY_MS, Keep
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock, SystemIds
from agent_core.settings import RULES, Route, ToolFacts, TurnSettings
from agent_core.store.keeping.packing import Piece, needed, pack, squeezed
from agent_core.store.store import open_store
from agent_core.store.tables import row_id
from agent_core.store.turns.rows import untimed
from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.turn.events import (
    Event,
    ReplyFinished,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnEnded,
    TurnOpened,
)
from gateway.daemon import Serving
from gateway.queues.inbox import encode as message_body
from gateway.retention.forgetting import Forgetting
from gateway.retention.upkeep import FilePlaces, Upkeep
from tests.bench.words import text
from tests.gateway.rig import Rig, chunk, gateway
from tests.serving import served

YEAR_DAYS, WHOLE_DAYS, LATE_DAYS = 365, 100, 10
PEOPLE, GROUPS = 300, 40
CANARY = "xq-canary-of-one-person-7731"
TOOLS = ("read_file", "write_file", "edit_file", "list_files", "search_files", "fetch", "remember", "recall", "todo")
RULES_OF_BUDGETS = BudgetRules()
SETTINGS = TurnSettings(
    routes=(Route("some-model", "api.example.com", "c1"),),
    tools=tuple(ToolFacts(name, EffectClass.PURE) for name in TOOLS),
    rules=RULES,
)


@dataclass
class Made:
    """What is put into the file, table by table."""

    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict[str, list[tuple[Any, ...]]])
    pieces: dict[bytes, list[Any]] = field(default_factory=dict[bytes, list[Any]])
    """(piece, how many gaps it fills, when)"""

    def put(self, table: str, *values: Any) -> None:
        self.rows.setdefault(table, []).append(values)

    def packed(self, body: bytes, at: int) -> bytes:
        made = pack(body)
        offered = {piece.digest: piece for piece in made.pieces}
        pending = list(needed(made.body))
        while pending:
            digest = pending.pop()
            known = self.pieces.get(digest)
            if known is None:
                piece = offered[digest]
                self.pieces[digest] = [piece, 1, at]
                pending += piece.below
            else:
                known[1], known[2] = known[1] + 1, max(known[2], at)
        return made.body


class Year:
    """Makes turns in the order of time."""

    def __init__(self, turns: int, now: int) -> None:
        self.dice = random.Random(11)
        self.turns = turns
        self.now = now
        self.made = Made()
        self.numbers: dict[str, int] = {}
        self.pictures: list[str] = []
        self.talks: dict[int, list[Any]] = {}
        self.levels: dict[tuple[str, int], list[int]] = {}
        """Of each budget: until when, tokens, calls, when last."""
        self.inbox = 0

    def text(self, low: int, high: int) -> str:
        return text(self.dice, low, high)

    def picture(self) -> str:
        if self.pictures and self.dice.random() < 0.25:
            return self.dice.choice(self.pictures)
        data = self.dice.randbytes(self.dice.randint(50_000, 350_000))
        self.pictures = [*self.pictures[-50:], "data:image/jpeg;base64," + base64.b64encode(data).decode()]
        return self.pictures[-1]

    def one(self, number: int) -> None:
        """One turn."""
        dice, made = self.dice, self.made
        at = self.now - round((self.turns - number) / self.turns * YEAR_DAYS * DAY_MS) - 60_000
        age = (self.now - at) / DAY_MS
        person = dice.randrange(PEOPLE)
        kind = dice.random()
        account, who = ("api", f"user{person}") if kind < 0.1 else ("telegram/99", str(10_000 + person))
        chat = str(-dice.randrange(GROUPS) - 1) if kind < 0.4 else who
        key = once(f"once-{number}") if account == "api" else SessionKey("telegram", "99", chat)
        text, turn = key.text(), f"t_{number:012d}"
        session = f"s_{text}"
        if text not in self.numbers:
            made.put("sessions", session, text, None, 1, None, None, None, at, self.now if account != "api" else at, 0)
        self.numbers[text] = seq = self.numbers.get(text, 0) + 1
        whole, fresh = age <= WHOLE_DAYS, age <= 8
        people = orjson.dumps([[account, who]]).decode()
        removed = "" if whole else Keep().words("journals_days")
        place = self.inbox + 1 if fresh else number - self.turns
        made.put(
            "turns",
            turn,
            session,
            seq,
            "closed",
            "answered",
            at,
            at + 9000,
            at + 10**6,
            0,
            4200,
            300,
            0,
            people,
            removed,
            place,
            place if fresh else 0,
        )
        where = f"{account}/{who}" if account != "api" else f"api/{who}"
        self.pay(Payer(where, f"{account}/{chat}" if account != "api" else ""), turn, session, at, spare=fresh)
        if not whole:
            return
        inbound = self.inbound(account, who, chat, key, number)
        for row, event in enumerate(self.events(inbound, at)):
            written = encode(event)
            stored = untimed(made.packed(written.body, at), at)
            made.put("journal", row_id(place, row), row, 1, written.kind, stored, at)
            if isinstance(event, ToolStarted):
                made.put("tool_calls", turn, event.call, "read_file", "pure", "done", f"{turn}:{event.call}", None)
        if age <= 31 and dice.random() < 0.05:
            self.trouble(turn, session, text, at)
        if fresh:
            self.inbox += 1
            body = made.packed(message_body(inbound), at)
            made.put(
                "inbox",
                self.inbox,
                account,
                inbound.platform_key,
                session,
                self.inbox,
                "normal",
                body,
                "done",
                None,
                at,
                0,
                who,
                turn,
            )
            if account != "api":
                want = orjson.dumps({"kind": "text", "body": {"text": self.text(60, 200)}, "entities": []})
                made.put("deliveries", self.inbox, session, turn, text, "answer", 0, number, 1, "h" * 32, want, 1, 0, "sent", f"k{number}",
                         str(number), 1, at, None, 1, 0, 0, "", at, 0, "", 0)  # fmt: skip

    def pay(self, payer: Payer, turn: str, session: str, at: int, *, spare: bool) -> None:
        """What the call used, in each budget; the call itself only if it is not old."""
        pots = RULES_OF_BUDGETS.pots(payer, turn, at)
        for pot in pots:
            level = self.levels.setdefault(pot.key, [pot.until, 0, 0, at])
            level[1:] = [level[1] + 4500, level[2] + 1, at]
        if spare:
            keys = orjson.dumps([pot.key for pot in pots]).decode()
            self.made.put("reservations", f"{turn}:1:0", session, 1, "settled", keys, 8000, 0, 4500, 0, 0, at)

    def trouble(self, turn: str, session: str, key: str, at: int) -> None:
        """A call that failed and was tried again."""
        print_of = f"stalled|api.example.com|some-model-{self.dice.randrange(20)}|-|small"
        self.made.put("troubles", turn, 0, session, key, print_of, "stalled", "No content for 30 s.", "api.example.com", "some-model",
                      "", "small", 0, "again", "helped", 0, at)  # fmt: skip

    def the_rest(self) -> None:
        """What belongs to nobody's turn: budgets, people, what is remembered, earlier starts."""
        made, now = self.made, self.now
        for (scope, window), (until, tokens, calls, at) in self.levels.items():
            made.put("budgets", scope, window, until, tokens, 0, 0, 0, 0, 0, calls, 0, at)
        for day in range(30):
            made.put("nodes", day + 2, f"bench{day}", now - (30 - day) * DAY_MS, "bench", "", None)
        for person in range(PEOPLE):
            who = str(10_000 + person)
            made.put("people", "telegram/99", who, "approved", f"Person {who}", "", 0, now, "bench")
            made.put("places", SessionKey("telegram", "99", who).text(), "telegram/99", who, None, now)
            words = f" {CANARY}" if who == "10007" else ""
            for scope in (SessionKey("telegram", "99", who).text(), f"api/user{person}"):
                for number in range(60):
                    made.put("memory", scope, "memory", f"n{number}", (self.text(10, 40) + words).encode(), now)

    def inbound(self, account: str, who: str, chat: str, key: SessionKey, number: int) -> Inbound:
        dice = self.dice
        words: Any = self.text(5, 60) + (f" {CANARY}" if who in ("10007", "user7") else "")
        if dice.random() < 0.01:
            words = words + "\n" + self.text(800, 3000)  # somebody pastes a file
        if dice.random() < 0.05:
            words = [{"type": "text", "text": words}, {"type": "image_url", "image_url": {"url": self.picture()}}]
        if account == "api":
            person = int(who[4:])
            talk = self.talks.setdefault(person, [])
            history: Any = tuple(talk)
            talk += [{"role": "user", "content": words}, {"role": "assistant", "content": self.text(60, 200)}]
            self.talks[person] = [] if len(talk) > 40 else talk
            return FromApi(
                account=account, platform_key=f"m{number}", session=key, input=(InputMessage(words),), surface="api",
                memory_scope=f"api/{who}", own_history=history,
            )  # fmt: skip
        kind = ChatKind.GROUP if chat.startswith("-") else ChatKind.PRIVATE
        origin = ChatOrigin(
            ChatAddress("telegram", "99", chat), kind, ChatPerson(who, name=f"Person {who}"), message=str(number)
        )
        return FromChat(
            account=account, platform_key=f"m{number}", session=key, input=(InputMessage(words),), surface="telegram",
            memory_scope=key.text(), chat=origin,
        )  # fmt: skip

    def events(self, inbound: Inbound, at: int) -> Iterator[Event]:
        dice = self.dice
        yield TurnOpened(
            at=at, input=inbound.input, settings=SETTINGS, seed=dice.getrandbits(62), own_history=inbound.own_history if isinstance(inbound, FromApi) else None,
            surface=inbound.surface,
        )  # fmt: skip
        if dice.random() < 0.3:
            yield ToolCallNamed(at=at, index=0, call="call_1", name="read_file")
            yield ToolArgumentsArrived(at=at, index=0, text='{"path":"notes/today.md"}')
            yield ReplyFinished(at=at, reason="tool_calls", input_tokens=3000, output_tokens=30)
            yield ToolStarted(at=at, call="call_1")
            size = (2000, 5000) if dice.random() < 0.05 else (20, 400)
            yield ToolReturned(at=at, call="call_1", status=ToolStatus.OK, text=self.text(*size), seconds=0.01)
        yield TextArrived(at=at, text=self.text(40, 250))
        yield ReplyFinished(at=at, reason="stop", input_tokens=4200, output_tokens=300)
        yield TurnEnded(at=at, exit=exits.Answered())


COLUMNS = {
    "sessions": "session, key, owner, epoch, policy, runnable_at, quarantined, created_at, last_at, since",
    "turns": "turn, session, number, state, exit, opened_at, closed_at, deadline, undone, input_tokens, output_tokens, suspicion, people, removed, first_message, last_message",
    "journal": "id, seq, epoch, kind, body, at",
    "inbox": "id, account, platform_key, session, arrival, lane, body, state, reason, received_at, suspicion, person, turn",
    "tool_calls": "turn, call, tool, effect, state, key, result_ref",
    "troubles": "turn, number, session, conversation, fingerprint, code, cause, endpoint, model, tool, size, chars, rung, outcome, ended, at",
    "reservations": "call, session, node, state, pots, held_tokens, held_nanos, used_tokens, used_nanos, estimated, at",
    "budgets": "scope, window, until, spent_tokens, spent_nanos, held_tokens, held_nanos, estimated_tokens, estimated_nanos, calls, warned, at",
    "nodes": "node, name, started_at, version, boot_id, ended_at",
    "people": "account, person, state, name, code, code_until, at, by",
    "places": "place, account, person, continues, at",
    "memory": "scope, kind, name, value, at",
    "deliveries": "id, session, origin, surface, bubble, part, place, rev, want_hash, want, final, gone, state, key, platform_id, attempt, "
    "sending_at, retry_at, epoch, labelled, plain, cause, at, failures, trouble, suspicion",
}


def write(database: sqlite3.Connection, made: Made, new: set[bytes]) -> None:
    """What was made since the last time goes into the file."""
    for table, rows in made.rows.items():
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT INTO {table} ({COLUMNS[table]}) VALUES ({marks})", rows)
    made.rows = {}
    fresh: list[tuple[Any, ...]] = []
    for digest in [one for one in made.pieces if one not in new]:
        piece, _, at = made.pieces[digest]
        stored, compressed = squeezed(piece)
        fresh.append((digest, piece.form.value, stored, "zlib" if compressed else "plain", len(piece.content), 0, at))
        made.pieces[digest][0] = Piece(digest, piece.form, b"")
        new.add(digest)
    database.executemany(
        "INSERT INTO pieces (digest, form, stored, how, size, refs, at) VALUES (?, ?, ?, ?, ?, ?, ?)", fresh
    )
    database.commit()


async def make(folder: Path, turns: int) -> float:
    """The year's database; how many seconds it took."""
    clock = SystemClock()
    async with open_store(folder / "outspoken.db", clock=clock, ids=SystemIds(clock), version="bench"):
        pass
    began = time.monotonic()
    year = Year(turns, clock.now_ms())
    database = sqlite3.connect(folder / "outspoken.db")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA cache_size = -200000")
    new: set[bytes] = set()
    for number in range(turns):
        year.one(number)
        if number % 5000 == 4999 or number == turns - 1:
            write(database, year.made, new)
    year.the_rest()
    write(database, year.made, new)
    refs = [(count, at, digest) for digest, (_, count, at) in year.made.pieces.items()]
    database.executemany("UPDATE pieces SET refs = ?, at = ? WHERE digest = ?", refs)
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return time.monotonic() - began


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def rank(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1000


async def turns_take(folder: Path, name: str, count: int) -> None:
    """Start a gateway, as the daemon does, ask what operators ask, and let a quick model answer people who have a past here."""
    began = time.monotonic()
    async with served(folder) as up:
        print(f"{name}: port open after {time.monotonic() - began:.2f} s", flush=True)
        await looks(up, name)
    (folder / "outspoken.db").rename(folder / "db")
    chats = [SessionKey("telegram", "99", str(10_000 + number)) for number in range(20)]
    async with gateway(folder, echo, history_turns=200) as rig:
        await took(rig, f"{name}: first turn of a conversation, its past is read", chats)
        await took(rig, f"{name}: a turn of one that is known", chats * (count // 20))
        fresh = [SessionKey("telegram", "98", str(number)) for number in range(count)]
        await took(rig, f"{name}: a turn of a new conversation", fresh)
        alone = [once(f"again-{number}") for number in range(count)]
        await took(
            rig,
            f"{name}: a turn over the API that brings its history",
            alone,
            own_history=(),
            account="api",
            surface="api",
        )
    (folder / "db").rename(folder / "outspoken.db")


async def looks(up: Serving, name: str) -> None:
    """What operators and their programs ask."""
    store = up.hub.forgetting.store
    day = SystemClock().now_ms() - DAY_MS
    turns = [one.turn for one in await store.overview.turns(50)]

    async def triage() -> None:
        await store.troubles.failures(day, ["answered"])
        await store.deliveries.failed_parts(day)
        await store.inbox.dropped(day)
        await store.turns.count_closed(day)

    async with aiohttp.ClientSession(up.url) as http:

        async def live() -> None:
            async with http.get("/console/api/live") as response:
                await response.content.readuntil(b"sessions")

        async def got(path: str) -> None:
            async with http.get(path) as response:
                assert response.status == 200, await response.text()
                await response.read()

        asked: dict[str, Callable[[], Awaitable[object]]] = {
            "status": lambda: got("/status"),
            "metrics": lambda: got("/metrics"),
            "console": live,
            "triage of a day": triage,
        }
        if turns:
            asked["explain a turn"] = lambda: got(f"/console/api/explain/{random.choice(turns)}")
        for what, ask in asked.items():
            values: list[float] = []
            for _ in range(10):
                began = time.monotonic()
                await ask()
                values.append(time.monotonic() - began)
            print(
                f"{name}: {what} p50 {statistics.median(values) * 1000:.1f} ms, at most {max(values) * 1000:.1f} ms",
                flush=True,
            )


async def took(rig: Rig, words: str, keys: Sequence[SessionKey], **more: Any) -> None:
    """How long turns of these conversations take, and how much of the processor."""
    values: list[float] = []
    used = time.process_time()
    for key in keys:
        began = time.monotonic()
        await said(rig, key, **more)
        values.append(time.monotonic() - began)
    cpu = (time.process_time() - used) / len(keys) * 1000
    print(
        f"{words}: p50 {statistics.median(values) * 1000:.1f} ms, p99 {rank(values, 0.99):.1f} ms, CPU (with the model's) {cpu:.1f} ms",
        flush=True,
    )


async def said(rig: Rig, key: SessionKey, **more: Any) -> None:
    message = replace(rig.inbound("hello there"), session=key, memory_scope=key.text(), **more)
    await rig.end(await rig.hub.accept(message))


async def echo(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    await response.write(chunk({"content": f"There are {len(messages)} messages."}))
    await response.write(chunk({}, "stop"))


async def keep_up(folder: Path) -> None:
    """What the real upkeep does about the ten days that are too old."""
    clock = SystemClock()
    async with open_store(folder / "outspoken.db", clock=clock, ids=SystemIds(clock), version="bench") as store:
        began = time.monotonic()
        tally = await Upkeep(store, clock, Keep(), FilePlaces(folder / "workspaces"), 200).look()
        print(f"upkeep: {time.monotonic() - began:.1f} s, {tally}", flush=True)


def holding(folder: Path, words: bytes) -> int:
    """How often words stand in the bytes of any file."""
    count = 0
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                tail = b""
                while block := file.read(1 << 24):
                    count += (tail + block).count(words)
                    tail = block[-len(words) + 1 :]
    return count


async def forget(folder: Path) -> None:
    """One of the people, with all accounts, while no gateway runs."""
    clock = SystemClock()
    print(
        f"the person's words stand {holding(folder, CANARY.encode())} times in the files (and in compressed pieces)",
        flush=True,
    )
    async with open_store(folder / "outspoken.db", clock=clock, ids=SystemIds(clock), version="bench") as store:
        for who in (("telegram/99", "10007"), ("api", "user7")):
            began = time.monotonic()
            beside = Forgetting(store, clock, SystemIds(clock), folder / "workspaces", None, None)
            told = await beside.finish(await beside.begin(who, "bench"))
            print(f"forgotten {who}: {time.monotonic() - began:.1f} s, {told}", flush=True)
    print(f"left after the rows went: {holding(folder, CANARY.encode())}", flush=True)
    async with open_store(folder / "outspoken.db", clock=clock, ids=SystemIds(clock), version="bench") as store:
        began = time.monotonic()
        await store.keeping.scrub(None)
        print(f"the file written anew: {time.monotonic() - began:.1f} s", flush=True)
    print(f"left after that: {holding(folder, CANARY.encode())}; size {size(folder) / 2**30:.2f} GiB", flush=True)


async def main() -> None:
    """All of it, in a folder of its own; or only the making, or only the measures of what was made before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument(
        "--only", choices=("make", "upkeep", "turns", "forget"), action="append", help="all, if not said"
    )
    wanted = parser.parse_args()
    parts: list[str] = wanted.only or ["make", "upkeep", "turns", "forget"]
    full, empty = wanted.folder / "full", wanted.folder / "empty"
    for folder in (full, empty):
        folder.mkdir(parents=True, exist_ok=True)
    if "make" in parts:
        seconds = await make(full, wanted.turns)
        print(f"{wanted.turns} turns made in {seconds:.0f} s; size {size(full) / 2**30:.2f} GiB", flush=True)
    if "upkeep" in parts:
        await keep_up(full)
        print(f"size after the upkeep {size(full) / 2**30:.2f} GiB", flush=True)
    if "turns" in parts:
        await turns_take(empty, "empty database", 300)
        await turns_take(full, "year's database", 300)
    if "forget" in parts:
        await forget(full)


if __name__ == "__main__":
    asyncio.run(main())
