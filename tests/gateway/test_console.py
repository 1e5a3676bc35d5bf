"""The operators' console: who may, what is shown, what is never shown, and what is done by hand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, SessionKey
from adapters.contract.callers import ANYBODY
from adapters.contract.chat import Ability, AdapterSight, Button, ChatAddress, Content, ContentKind
from adapters.contract.pacing import Urgency
from adapters.delivery.reconcile import Hand, LookLater, Part, by_hand, next_step, objection, want_hash
from adapters.delivery.substitutes import for_other_chat
from adapters.discord.port import pieces as discord_pieces
from adapters.slack.port import pieces as slack_pieces
from adapters.telegram.port import pieces as telegram_pieces
from adapters.terminal.ask import whoever_is_here
from adapters.text.styled import Styled
from agent_core.explain.why import MOST_LINES
from agent_core.failures.exits import ExitCode
from agent_core.limits.budgets import Amount, BudgetRules, Level
from agent_core.limits.spend import Budget
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.overview import LONG_MS, ExitCount, PotLevel, TurnSummary, WaitingMessages
from agent_core.turn.view import Bubble, BubbleKind, View
from gateway.console import snapshot
from gateway.console.access import Access
from gateway.console.looking import PARTS, Board
from gateway.console.naming import conversation_name, place_name
from gateway.console.snapshot import within
from gateway.console.words import Elsewhere, WaitsFor, mark_of, why_waiting, will_do
from gateway.daemon import Serving
from gateway.retention.forgetting import GONE
from tests.chats.harness import answer, running, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.serving import served

KEY = "sesame-sesame"
SECRET = "private#word"
NOW = 1_800_000_000_000


# ---------------------------------------------------------------------- who may


def asked(remote: str, host: str, **headers: str) -> web.Request:
    names = {"Host": host} | {name.replace("_", "-"): value for name, value in headers.items()}
    return make_mocked_request("GET", "/console/api/live", headers=names).clone(remote=remote)


@pytest.mark.parametrize(
    ("remote", "host", "headers", "key", "proxy", "status"),
    [
        ("127.0.0.1", "127.0.0.1:8787", {}, KEY, False, 401),  # so does a plain proxy on this machine look
        ("127.0.0.1", "127.0.0.1:8787", {}, None, False, 0),
        ("::1", "[::1]:8787", {}, KEY, False, 401),
        ("::1", "[::1]:8787", {}, None, False, 0),
        ("::ffff:127.0.0.1", "localhost:8787", {}, None, False, 0),
        ("127.0.0.1", "localhost", {}, None, False, 0),
        ("127.0.0.1", "evil.example", {}, None, False, 403),  # a name that was made to point here
        ("127.0.0.1", "evil.example", {}, KEY, False, 401),
        ("127.0.0.1", "127.0.0.1:8787", {"Origin": "http://evil.example"}, KEY, False, 403),
        ("127.0.0.1", "127.0.0.1:8787", {"Origin": "null"}, KEY, False, 403),
        ("127.0.0.1", "127.0.0.1:8787", {"Origin": "http://127.0.0.1:8787"}, None, False, 0),
        ("127.0.0.1", "127.0.0.1:8787", {"Sec_Fetch_Site": "cross-site"}, KEY, False, 403),
        ("127.0.0.1", "127.0.0.1:8787", {"Sec_Fetch_Site": "same-origin"}, None, False, 0),
        ("127.0.0.1", "127.0.0.1:8787", {"X_Forwarded_For": "203.0.113.9"}, KEY, False, 401),
        ("127.0.0.1", "127.0.0.1:8787", {"X_Forwarded_For": "203.0.113.9"}, None, False, 403),
        ("127.0.0.1", "127.0.0.1:8787", {}, KEY, True, 401),
        ("127.0.0.1", "127.0.0.1:8787", {}, None, True, 403),
        ("127.0.0.1", "chat.example.org", {"Authorization": f"Bearer {KEY}"}, KEY, True, 0),
        ("203.0.113.9", "127.0.0.1:8787", {}, KEY, False, 401),
        ("203.0.113.9", "gateway.example", {"Authorization": "Bearer wrong"}, KEY, False, 401),
        ("203.0.113.9", "gateway.example", {"Authorization": f"Bearer {KEY}"}, KEY, False, 0),
        ("203.0.113.9", "gateway.example", {}, None, False, 403),
    ],
)
def test_without_a_key_only_this_machine_comes_in_and_with_one_nobody_without_it(
    remote: str, host: str, headers: dict[str, str], key: str | None, proxy: bool, status: int
):
    problem = Access(key, behind_proxy=proxy).refusal(asked(remote, host, **headers))
    assert (problem.status if problem is not None else 0) == status


def test_the_audit_says_how_somebody_came_in():
    assert Access(None, behind_proxy=False).who(asked("127.0.0.1", "localhost")) == "on this machine"
    access = Access(KEY, behind_proxy=False)
    assert access.who(asked("127.0.0.1", "localhost")) == "with the key, from 127.0.0.1"
    assert access.who(asked("203.0.113.9", "gateway.example")) == "with the key, from 203.0.113.9"


# ---------------------------------------------------------------------- pure: parts by hand


def content(text: str = "hello", kind: ContentKind = ContentKind.TEXT, **more: Any) -> Content:
    return Content(kind, Styled(text), **more)


def part(state: DeliveryState = DeliveryState.WANTED, **more: Any) -> Part:
    shown = more.pop("content", content())
    base = DeliveryRow("telegram/1/7/", "t_1", "text-1", 0, 1, b"", want_hash(b""), "key", state=state, at=NOW - 5000)
    return Part(replace(base, **more), shown)


parts = st.builds(
    part,
    state=st.sampled_from(DeliveryState),
    final=st.booleans(),
    gone=st.booleans(),
    platform_id=st.sampled_from([None, "55"]),
    attempt=st.integers(0, 9),
    retry_at=st.one_of(st.none(), st.integers(NOW - 9000, NOW + 9_000_000)),
    labelled=st.booleans(),
    failures=st.integers(0, 3),
    trouble=st.sampled_from(["", f"the server said “{SECRET}”"]),
    cause=st.sampled_from(["", "no connection"]),
    content=st.builds(content, st.just(SECRET), st.sampled_from(ContentKind)),
)
FREE = dict.fromkeys(Urgency, 0)


@given(parts, st.sampled_from(Hand), st.sampled_from(Ability))
def test_what_may_be_done_has_an_end(one: Part, hand: Hand, ability: Ability):
    """What is tried again is due at once; what is dropped or sent elsewhere is never sent, not even after a restart."""
    if objection(one, hand):
        return
    made = by_hand(one, hand, NOW, "telegram/1/8")
    assert made.content == one.content
    assert made.row.platform_id == one.row.platform_id
    if hand is Hand.RETRY:
        assert made.open
        assert not isinstance(next_step([made], ability, FREE, NOW), LookLater)
    else:
        assert not made.open
        assert next_step([made], ability, FREE, NOW) == LookLater(None)
        assert made.row.gone is (one.row.platform_id is None)
        assert made.row.cause.startswith("by hand: ")


@given(parts, st.sampled_from(Hand))
@example(part(DeliveryState.SENDING, final=True), Hand.DROP)
def test_what_is_settled_or_on_its_way_is_left_alone(one: Part, hand: Hand):
    settled = one.row.state in (DeliveryState.SENT, DeliveryState.SKIPPED, DeliveryState.SENDING)
    if settled or not one.row.final:
        assert objection(one, hand)


@given(parts, st.booleans(), st.integers(0, 60_000), st.integers(0, 3), st.sampled_from(["up", "down"]))
def test_why_it_waits_is_told_without_a_word_of_anybody(one: Part, there: bool, gate: int, ahead: int, state: str):
    sight = AdapterSight("telegram/1", state, "it is down" if state == "down" else "")
    around = WaitsFor(NOW, there, sight, gate, ahead)
    words = why_waiting(one, around)
    assert words.endswith(".")
    assert SECRET not in words
    told = snapshot.part_json("s_1", one, around)
    assert SECRET not in orjson.dumps(told).decode()
    assert told["at"] == one.row.at


async def test_that_more_wait_than_are_listed_is_told() -> None:
    async def open_parts(limit: int) -> list[object]:
        return [part()] * min(limit, PARTS + 5)

    async def read(_: str, rows: Awaitable[list[object]]) -> list[object]:
        return await rows

    deliveries = SimpleNamespace(open=open_parts, failed=open_parts)
    board: Any = SimpleNamespace(
        sources=SimpleNamespace(store=SimpleNamespace(deliveries=deliveries)), _read=read, _rows=SimpleNamespace()
    )
    await Board._ask_parts(board)
    told = snapshot.outbox_json([{} for _ in board._rows.parts], [{} for _ in board._rows.failed], PARTS)
    assert (told["more_waiting"], told["more_failed"]) == (1, 1)


@given(parts, st.sampled_from(Hand), st.sampled_from(Ability), st.integers(0, 9000))
def test_a_preview_names_what_stays_where_it_is(one: Part, hand: Hand, ability: Ability, gate: int):
    lines = will_do(one, hand, ability, gate, Elsewhere("telegram/1/8", 2))
    assert all(SECRET not in line for line in lines)
    if hand is not Hand.RETRY and one.row.platform_id is not None:
        assert any("Message 55 stays" in line for line in lines)
    if one.row.platform_id is None and one.row.state is DeliveryState.UNKNOWN:
        assert any("may have come through" in line for line in lines)


@given(parts, parts)
def test_the_mark_tells_states_apart(one: Part, other: Part):
    seen = ("state", "rev", "attempt", "retry_at", "platform_id", "failures", "gone", "plain")
    same = all(getattr(one.row, name) == getattr(other.row, name) for name in seen)
    assert (mark_of(one) == mark_of(other)) is same


@pytest.mark.parametrize("platform", ["telegram", "discord", "slack"])
@given(text=st.text(st.sampled_from("ab *_`~[]()<>#-1.\n"), min_size=1, max_size=300))
def test_words_that_go_elsewhere_are_the_same_words(platform: str, text: str):
    pieces: dict[str, Callable[..., Any]] = {
        "telegram": telegram_pieces,
        "discord": discord_pieces,
        "slack": slack_pieces,
    }
    here, there = ChatAddress("telegram", "1", "7"), ChatAddress(platform, "2", "8")
    aside = content(text, ContentKind.ASIDE, buttons=(Button("Why?", "why:t"),), reply_to="4")
    head, *rest = for_other_chat(aside, here, there, lambda words: pieces[platform](words, growing=False))
    assert "telegram/1/7" in head.body.text
    assert all(not one.buttons and not one.reply_to for one in rest)
    if platform == "telegram":
        assert [one.body.text for one in rest] == [text]
    else:
        letters = "".join(one.body.text for one in rest)
        assert [c for c in letters if c in "ab"] == [c for c in text if c in "ab"]


# ---------------------------------------------------------------------- pure: the snapshot


def summary(number: int, exit_: str = "answered", session: str = "s_1") -> TurnSummary:
    return TurnSummary(
        f"t_{number:03}", session, "telegram/1/7/", number, exit_, NOW, NOW + 9 if exit_ else None, False, 3, 4, ""
    )


@given(st.lists(st.sampled_from(["", *ExitCode, "of another version"]), max_size=30), st.integers(1, 10))
def test_lists_are_bounded_and_what_is_left_out_is_counted(exits: list[str], limit: int):
    turns = [summary(number, exit_) for number, exit_ in enumerate(exits)]
    opened = [turn for turn in turns if not turn.exit]
    made: Any = snapshot.turns_json(opened, turns, {}, limit)
    assert len(made["running"]) == min(limit, len(opened))
    assert made["more_running"] == max(0, len(opened) - limit)
    assert len(made["ended"]) <= limit
    assert {one["id"] for one in made["running"]}.isdisjoint(one["id"] for one in made["ended"])
    again = snapshot.turns_json(opened, turns, {}, limit)
    assert orjson.dumps(made) == orjson.dumps(again)


def test_a_session_that_waits_comes_first_and_is_listed_once():
    waiting = [WaitingMessages("s_2", "telegram/1/8/", 2, NOW, "broken")]
    made: Any = snapshot.sessions_json([summary(2), summary(1)], [summary(3, "")], waiting, 10)
    assert [(one["id"], one["waiting"], one["turns"], one["running"], one["quarantined"]) for one in made["list"]] == [
        ("s_2", 2, 0, "", "broken"),
        ("s_1", 0, 3, "t_003", ""),
    ]


def test_a_turn_does_what_is_to_be_seen_without_its_words():
    def view(*bubbles: Bubble) -> View:
        return View(bubbles, open=True)

    text = Bubble("text-1", BubbleKind.PARTIAL, SECRET, final=False)
    tool = Bubble("a-1", BubbleKind.ACTIVITY, f"fetch {SECRET}", final=False, tool="fetch", state="running")
    asks = Bubble("q-1", BubbleKind.APPROVAL, SECRET, final=False)
    offered = frozenset({"fetch"})
    assert snapshot.doing_words(view(), offered) == "asks the model"
    assert snapshot.doing_words(view(text), offered) == f"writes; {len(SECRET)} characters so far"
    assert snapshot.doing_words(view(text, tool), offered) == "runs fetch"
    assert snapshot.doing_words(view(text, tool), frozenset()) == "runs an unknown tool"
    assert snapshot.doing_words(view(text, asks), offered) == "waits for a person to approve a tool"


def test_spend_says_what_is_left_of_each_budget():
    rules = BudgetRules(limits={Budget.DAY: Amount(1000), Budget.PERSON: Amount(100)})
    level = Level(spent=Amount(60), held=Amount(10), estimated=Amount(5), calls=2)
    pots = [PotLevel("person:telegram/1/7", NOW + 1, level), PotLevel("day:all", NOW + 1, level)]
    made: Any = snapshot.spend_json(rules, pots, [ExitCount("answered", 3, 40, 20)], NOW, 10)
    assert [(one["name"], one["owner"], one["measures"][0]["left"]) for one in made["list"]] == [
        ("Everybody, today", "", "930 tokens"),
        ("One person, today", "telegram/1/7", "30 tokens"),
    ]
    assert made["list"][1]["measures"][0]["share"] == 0.7
    assert (made["turns"], made["tokens"]) == (3, [40, 20])
    nothing: Any = snapshot.spend_json(BudgetRules(), [], [], NOW, 10)
    assert (nothing["active"], nothing["list"]) == (False, [])


@given(st.lists(st.dictionaries(st.sampled_from([*ExitCode]), st.integers(1, 50)), min_size=1, max_size=14))
def test_exits_by_day_add_up(days: list[dict[ExitCode, int]]):
    rows = [snapshot.Day(str(n), [ExitCount(c.value, k, 1, 1) for c, k in day.items()]) for n, day in enumerate(days)]
    made: Any = snapshot.exits_json(rows, "UTC")
    assert sum(one["count"] for one in made["exits"]) == sum(sum(day.values()) for day in days)
    assert [one["count"] for one in made["exits"]] == sorted((one["count"] for one in made["exits"]), reverse=True)
    assert all(one["class"] for one in made["exits"])


def test_an_age_that_is_measured_again_is_the_same_moment():
    def moment(age: float, now: int, before: tuple[int | None, int | None]) -> int:
        sight = AdapterSight("telegram/1", "up", "", age, None)
        made: Any = snapshot.adapters_json([sight], now, {"telegram/1": before})
        assert made[0]["outbound_at"] is None
        return made[0]["inbound_at"]

    first = moment(3.0, NOW, (None, None))
    assert first == NOW - 3000
    assert moment(4.1, NOW + 1000, (first, None)) == first
    assert moment(0.1, NOW + 1000, (first, None)) == NOW + 900


# ---------------------------------------------------------------------- over HTTP


@asynccontextmanager
async def calling(up: Serving, **headers: str) -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(up.url, headers=headers, timeout=aiohttp.ClientTimeout(20)) as http:
        yield http


async def events(response: aiohttp.ClientResponse) -> AsyncGenerator[tuple[str, Any]]:
    name = ""
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, orjson.loads(line[6:])


async def until(http: aiohttp.ClientSession, path: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """What a stream shows, put together, as soon as it is like this."""
    seen: dict[str, Any] = {}
    async with asyncio.timeout(60), http.get(path) as response:
        assert response.status == 200, await response.text()
        async for _, data in events(response):
            seen |= data
            if holds(seen):
                return seen
    raise AssertionError("the stream ended")


async def test_the_page_is_served_without_a_key_and_holds_nothing(tmp_path: Path):
    async with served(tmp_path) as up, calling(up) as http:
        for path, kind in (
            ("/console", "text/html"), ("/console/", "text/html"), ("/console/static/console.js", "text/javascript"),
            ("/console/static/chart.js", "text/javascript"), ("/console/static/console.css", "text/css"),
        ):  # fmt: skip
            async with http.get(path) as response:
                assert response.status == 200
                assert response.content_type == kind
                policy = response.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                text = await response.text()
                assert "https://" not in text
                assert "innerHTML" not in text
        assert (await http.get("/console/static/..%2Fserver.py")).status == 404


async def test_a_key_is_wanted_in_the_header_and_nowhere_else(tmp_path: Path):
    env = {"OUTSPOKEN_SERVER__OPERATOR_KEY": KEY, "OUTSPOKEN_SERVER__PUBLIC_URL": "https://chat.example.org"}
    async with served(tmp_path, env) as up:
        async with calling(up) as http:
            for path in (
                "/console/api/live",
                f"/console/api/live?key={KEY}",
                "/console/api/turns/t_1/live",
                "/console/api/explain/x",
            ):
                assert (await http.get(path)).status == 401
            for path in ("preview", "text", "act"):
                assert (await http.post(f"/console/api/outbox/{path}", json={})).status == 401
        async with calling(up, Authorization=f"Bearer {KEY}") as http:
            seen = await until(http, "/console/api/live", lambda s: "turns" in s)
            assert seen["turns"] == {"running": [], "ended": [], "more_running": 0}


async def test_forms_of_other_pages_can_do_nothing(tmp_path: Path):
    async with served(tmp_path) as up, calling(up) as http:
        path = "/console/api/outbox/act"
        assert (await http.post(path, data="{}", headers={"Content-Type": "text/plain"})).status == 415
        assert (await http.post(path, json={}, headers={"Origin": "http://evil.example"})).status == 403
        wrong: tuple[tuple[Any, str], ...] = (
            ([], "object"), ({}, "name must say"), ({"name": {"part": "x"}}, "part must be a number"),
            ({"name": {"part": 0, "surface": 1}}, "surface must be text"), ({"name": {"part": 0}, "act": "burn"}, "one of: retry"),
        )  # fmt: skip
        for body, words in wrong:
            response = await http.post(path, json=body)
            assert response.status == 400
            assert words in await response.text()
        gone = await http.post(
            path, json={"name": {"part": 0, "surface": "telegram/1/7/", "origin": "t", "bubble": "b"}, "act": "drop"}
        )
        assert gone.status == 404


async def test_a_turn_is_told_as_why_tells_it_while_it_runs_and_after(tmp_path: Path):
    async with served(tmp_path) as up, calling(up) as http:
        key = SessionKey("web", "page", "console-test")
        body = {"id": "message-0001", "text": f"write notes.txt: {SECRET}"}
        await http.post(f"/api/sessions/{key.chat}/messages", json=body)
        seen = await until(
            http, "/console/api/live", lambda s: bool(s["turns"]["ended"]) and bool(s["sessions"]["list"])
        )
        (turn,) = seen["turns"]["ended"]
        assert (turn["exit"], turn["class"], turn["place"]) == ("answered", "clean", "web/page/console-test")
        assert [one["id"] for one in seen["sessions"]["list"]] == [turn["session"]]
        shown = await until(http, f"/console/api/turns/{turn['id']}/live", lambda s: s["exit"] == "answered")
        assert tuple(shown["story"]) == await up.hub.why(turn["id"], ANYBODY, "")
        assert any("runs write_file" in one for line in shown["timeline"] for one in line["decisions"])
        for id_, words in ((turn["id"], "The turn was answered."), (turn["session"], "answered after")):
            told = await (await http.get(f"/console/api/explain/{id_}")).json()
            assert any(words in line for line in told["lines"])
            assert len(told["lines"]) <= MOST_LINES
        assert SECRET not in str(seen) + str(shown)
        assert (await http.get("/console/api/turns/t_nothing/live")).status == 404
        assert (await http.get("/console/api/explain/t_nothing")).status == 404


async def test_streams_are_bounded_and_free_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway.console.server.MOST_WATCHERS", 2)
    async with served(tmp_path) as up, calling(up) as http:
        open_ones = [await http.get("/console/api/live") for _ in range(2)]
        refused = await http.get("/console/api/live")
        assert refused.status == 503
        assert "2 consoles are open" in await refused.text()
        open_ones[0].close()
        async with asyncio.timeout(60):
            while (again := await http.get("/console/api/live")).status == 503:
                await asyncio.sleep(0.05)
        again.close()
        open_ones[1].close()


# ---------------------------------------------------------------------- by hand


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


async def refused_part(telegram: TelegramHarness, http: aiohttp.ClientSession) -> tuple[Any, dict[str, Any]]:
    """A group in which the bot may not write, and the part that was refused there."""
    ada = telegram.person("Ada")
    private, group = telegram.private(ada), telegram.group(ada)
    telegram.say(private, ada, "say good morning")
    await answer(telegram, private, "good morning")
    telegram.silence(group)
    telegram.say(group, ada, f"say **{SECRET}** it is", mention=True)
    seen = await until(http, "/console/api/live", lambda s: bool(s["outbox"]["failed"]))
    (found,) = seen["outbox"]["failed"]
    assert found["can"] == ["retry", "drop", "redirect"]
    assert "Refused for good: Not enough rights" in found["why"]
    assert SECRET not in str(seen)
    return group, found


async def act(
    http: aiohttp.ClientSession, found: dict[str, Any], what: str, to: str = ""
) -> tuple[list[str], int, dict[str, Any]]:
    body = {"name": found["name"], "act": what, "to": to}
    seen = await (await http.post("/console/api/outbox/preview", json=body)).json()
    done = await http.post("/console/api/outbox/act", json={**body, "mark": seen["mark"]})
    return seen["lines"], done.status, await done.json()


async def test_a_refused_part_is_tried_again_when_the_bot_may_write(telegram: TelegramHarness):
    async with running(telegram) as up, calling(up) as http:
        group, found = await refused_part(telegram, http)
        group.chat.bot_may_write = True
        lines, status, done = await act(http, found, "retry")
        assert "It had been refused; if the reason is still there" in " ".join(lines)
        assert (status, done["words"].startswith("Tried again at once")) == (200, True)
        shown = await answer(telegram, group, SECRET)
        assert shown.bold == (SECRET,)
        seen = await until(http, "/console/api/live", lambda s: not s["outbox"]["failed"] and bool(s["audit"]))
        (entry,) = seen["audit"]
        assert (entry["who"], entry["act"], entry["object"]) == ("on this machine", "retry", found["id"])
        assert orjson.loads(entry["before"])["state"] == "failed"
        assert orjson.loads(entry["after"])["state"] == "wanted"
        assert SECRET not in str(seen)


async def test_a_refused_part_goes_elsewhere_once_and_the_turn_says_so(telegram: TelegramHarness):
    async with running(telegram) as up, calling(up) as http:
        _, found = await refused_part(telegram, http)
        bea = telegram.person("Bea")
        private = telegram.private(bea)
        telegram.say(private, bea, "say hi")
        await answer(telegram, private, "hi")
        nowhere = await http.post(
            "/console/api/outbox/preview", json={"name": found["name"], "act": "redirect", "to": "discord/1"}
        )
        assert nowhere.status == 404
        assert "There is no platform 'discord' here" in await nowhere.text()
        lines, status, _ = await act(http, found, "redirect", f"telegram/{bea.id}")
        assert any(f"is sent to telegram/{telegram.fake.bot.id}/{bea.id}" in line for line in lines)
        assert status == 200
        moved = await answer(telegram, private, SECRET)
        assert moved.bold == (SECRET,)
        assert any("This was meant for telegram/" in text for text in texts(telegram, private))
        _, again, _ = await _again(http, found)
        assert again == 409
        told = await (await http.get(f"/console/api/explain/{found['name']['origin']}")).json()
        assert any(
            "by hand (text0, part 1), after 1 failed call" in line and "instead" in line for line in told["lines"]
        )
        assert sum(SECRET in text for text in texts(telegram, private)) == 1


async def _again(http: aiohttp.ClientSession, found: dict[str, Any]) -> tuple[Any, int, Any]:
    response = await http.post("/console/api/outbox/preview", json={"name": found["name"], "act": "drop"})
    return None, response.status, await response.json()


async def test_what_is_dropped_is_never_sent_and_what_changed_meanwhile_is_left_alone(telegram: TelegramHarness):
    gus = telegram.person("Gus")
    chat = telegram.private(gus)
    async with running(telegram) as up, calling(up) as http:
        telegram.fail_sends(*["503"] * 4)
        telegram.say(chat, gus, f"say {SECRET}")
        seen = await until(
            http, "/console/api/live", lambda s: any("drop" in one["can"] for one in s["outbox"]["waiting"])
        )
        found = next(one for one in seen["outbox"]["waiting"] if "drop" in one["can"])
        assert "call" in found["why"]
        told = "being sent"
        async with asyncio.timeout(60):
            while "being sent" in told:  # then nobody may touch it, whatever the mark is
                stale = {"name": found["name"], "act": "drop", "mark": "0000"}
                async with http.post("/console/api/outbox/act", json=stale) as response:
                    assert response.status == 409
                    told = await response.text()
        assert "nothing was done" in told
        async with asyncio.timeout(60):
            while (await act(http, found, "drop"))[1] != 200:  # it is just being sent, or was tried once more meanwhile
                await asyncio.sleep(0.1)
        seen = await until(http, "/console/api/live", lambda s: not s["outbox"]["waiting"] and bool(s["audit"]))
        assert [one["act"] for one in seen["audit"]] == ["drop"]
    async with running(telegram) as up, calling(up) as http:
        telegram.say(chat, gus, "say next")
        await answer(telegram, chat, "next", 30)
        assert all(SECRET not in text for text in texts(telegram, chat))


async def test_that_a_text_was_looked_at_is_noted(telegram: TelegramHarness):
    async with running(telegram) as up, calling(up) as http:
        _, found = await refused_part(telegram, http)
        told = await (await http.post("/console/api/outbox/text", json={"name": found["name"]})).json()
        assert SECRET in told["text"]
        seen = await until(http, "/console/api/live", lambda s: bool(s["audit"]))
        assert seen["audit"][0]["act"] == "show text"
        assert SECRET not in str(seen)


async def test_words_are_shown_to_who_asks_and_that_is_noted(telegram: TelegramHarness):
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram) as up, calling(up) as http:
        telegram.say(chat, ada, f"say {SECRET}")
        await answer(telegram, chat, SECRET)
        seen = await until(http, "/console/api/live", lambda s: any(one["exit"] for one in s["turns"]["ended"]))
        [turn], [session] = seen["turns"]["ended"], seen["sessions"]["list"]
        assert turn["name"] == session["name"] == "Ada, Telegram"
        assert SECRET not in str(seen)
        title = await (await http.post("/console/api/title", json={"session": session["id"]})).json()
        assert SECRET in title["text"]
        found = await (await http.post("/console/api/search", json={"text": SECRET.upper()})).json()
        assert [(one["id"], SECRET in one["text"]) for one in found["found"]] == [(turn["id"], True)]
        assert found["whole"]
        nothing = await (await http.post("/console/api/search", json={"text": "never said"})).json()
        assert nothing["found"] == []
        assert (await http.post("/console/api/search", json={"text": " "})).status == 400
        seen = await until(http, "/console/api/live", lambda s: len(s["audit"]) == 3)
        assert [one["act"] for one in seen["audit"]] == ["search", "search", "show title"]
        spent = seen["trends"]["spent"]
        assert [one["turns"] for kind in ("person", "model", "key") for one in spent[kind]] == [1, 1, 1]
        assert spent["model"][0]["name"] == "m1"


@given(st.lists(st.integers(0, 50), min_size=len(LONG_MS) + 1, max_size=len(LONG_MS) + 1))
def test_more_of_the_turns_take_longer(took: list[int]):
    half, most = within(took, 0.5), within(took, 0.95)
    assert (half is None) == (most is None) == (not sum(took))
    if half is not None and most is not None:
        assert 0 <= half <= most <= LONG_MS[-1] / 1000


def test_a_conversation_is_called_by_who_talks_in_it_and_where():
    assert place_name("telegram/bot/4711//") == "Telegram 4711"
    assert place_name("slack/T1/C1/17.5/") == "Slack C1, thread 17.5"
    assert place_name("api/once/x_1//") == "API"
    assert place_name(GONE.format("s_1")) == "Deleted conversation"
    assert place_name("of another version") == "of another version"
    page = FromApi(
        account="web", platform_key="k", session=SessionKey("web", "page", "c-1", person="browser:3f2a91c0d4"), input=(), surface="web",
        memory_scope="web",
    )  # fmt: skip
    assert conversation_name("", page) == "Web page, browser 3f2a91"
    typed = replace(
        page, surface="api", memory_scope=f"api/{whoever_is_here()}", session=SessionKey("api", "key", "shopping")
    )
    assert re.fullmatch("Terminal [0-9a-f]{6}", conversation_name("", typed))
    assert re.fullmatch("Terminal [0-9a-f]{6}", conversation_name("", replace(typed, key="ada")))
    assert conversation_name("", replace(page, key="ada")) == "Web page, key ada"
    assert conversation_name("", replace(page, session=SessionKey("web", "page", "shared"))) == "Web page"


async def test_without_its_account_a_part_can_be_dropped_and_not_retried(telegram: TelegramHarness):
    async with running(telegram) as up, calling(up) as http:
        _, found = await refused_part(telegram, http)
    async with served(telegram.folder) as up, calling(up) as http:
        seen = await until(http, "/console/api/live", lambda s: bool(s["outbox"]["failed"]))
        assert seen["adapters"] == []
        response = await http.post("/console/api/outbox/preview", json={"name": found["name"], "act": "retry"})
        assert response.status == 409
        assert "No account telegram/" in await response.text()
        assert (await act(http, found, "drop"))[1] == 200
        await until(http, "/console/api/live", lambda s: not s["outbox"]["failed"])


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5))
def test_of_what_waits_and_of_what_was_refused_so_many_are_shown_and_the_others_counted(
    waiting: int, refused: int, limit: int
):
    told: Any = snapshot.outbox_json([{"n": n} for n in range(waiting)], [{"f": n} for n in range(refused)], limit)
    for shown, more, there, name in (
        ("waiting", "more_waiting", waiting, "n"),
        ("failed", "more_failed", refused, "f"),
    ):
        assert len(told[shown]) + told[more] == there
        assert told[shown] == [{name: n} for n in range(min(there, limit))]
