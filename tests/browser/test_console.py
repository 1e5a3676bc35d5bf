"""The operators' console in a real Chromium, beside a gateway with traffic: live, by keyboard, in every view."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Request, Route, expect

from agent_core.ports import SystemClock, SystemIds
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.reading import open_reads
from agent_core.store.store import open_store
from gateway.daemon import Serving
from gateway.explain.story import why
from tests.browser.test_conversations import SEEN
from tests.browser.test_for_everybody import found_by_axe
from tests.browser.test_for_everybody import tools as tools
from tests.browser.test_page import SHOTS, say
from tests.browser.test_page import pytestmark as of_browsers
from tests.chats.harness import Process, answer, process, texts
from tests.chats.telegram_harness import TelegramHarness, Where, telegram_harness
from tests.fakes.telegram import User
from tests.ports import free_port
from tests.store.support import FakeClock, row

pytestmark = [
    *of_browsers,
    pytest.mark.asyncio(loop_scope="package"),
]

DAY_MS = 86_400_000
DESKTOP, PHONE = (1280, 800), (390, 844)
SETTINGS = {
    "OUTSPOKEN_MODEL__STALL_SECONDS": "300",
    "OUTSPOKEN_BUDGETS__DAY_TOKENS": "200000",
    "OUTSPOKEN_BUDGETS__PERSON_TOKENS": "30000",
    "OUTSPOKEN_BUDGETS__MONTH_TOKENS": "2000000",
}
SECRET = "the-secret-word"
"""In what people say; it may never be seen in the console."""


@dataclass
class Scene:
    """A gateway with traffic, and who makes it."""

    harness: TelegramHarness
    up: Process
    port: int
    people: dict[str, tuple[User, Where]] = field(default_factory=dict[str, tuple[User, Where]])

    def person(self, name: str) -> User:
        if name not in self.people:
            made = self.harness.person(name)
            self.people[name] = made, self.harness.private(made)
        return self.people[name][0]

    def chat(self, name: str) -> Where:
        return self.person(name) and self.people[name][1]

    def say(self, name: str, words: str) -> None:
        self.harness.say(self.chat(name), self.person(name), words)

    async def retried(self) -> None:
        """Whoever runs the gateway has looked at the refused part, and tried it again in vain."""
        surface, origin, bubble, part = self.ask(
            "SELECT surface, origin, bubble, part FROM deliveries WHERE state = 'failed'"
        )[0]
        body = {"name": {"surface": surface, "origin": origin, "bubble": bubble, "part": part}, "act": "retry"}
        async with aiohttp.ClientSession(f"{self.up.url}/console/api/outbox/") as http:
            await http.post("text", json=body)
            seen = await (await http.post("preview", json=body)).json()
            done = await http.post("act", json={**body, "mark": seen["mark"]})
            assert done.status == 200, await done.text()
        await self.until("state = 'failed' AND failures = 2")

    async def until(self, which: str) -> None:
        """Until there is such a part."""
        await self.harness.until(lambda: self.ask(f"SELECT count(*) FROM deliveries WHERE {which}")[0][0] > 0, 30)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """By plain SQL, beside the gateway."""
        with closing(sqlite3.connect(f"file:{self.harness.folder / 'outspoken.db'}?mode=ro", uri=True)) as conn:
            return conn.execute(query).fetchall()


async def history(database: Path) -> None:
    """Turns of the last days, as the store itself would have kept them."""
    clock = FakeClock(int(time.time() * 1000) - 14 * DAY_MS)
    chance = random.Random(7)
    exits = ["answered"] * 14 + [
        "stopped",
        "stopped",
        "provider_down",
        "broken_in_tool_call",
        "step_limit",
        "empty_reply",
    ]
    async with open_store(database, clock=clock, ids=SystemIds(clock), version="test") as store:
        epochs: dict[str, int] = {}
        for day in range(13):
            for _ in range(chance.randint(1, 6)):
                clock.now += 60_000
                ids = SystemIds(clock)
                who = f"telegram/7000000001/{chance.randint(40, 44)}/"
                key = ids.new("k")
                made = await store.inbox.accept(
                    NewMessage("telegram/7000000001", key, who, "normal", b"{}", clock.now, None, ids.new("s"))
                )
                if made.session not in epochs:
                    epochs[made.session] = await store.sessions.claim(made.session)
                epoch, turn = epochs[made.session], ids.new("t")
                opened = row(0, at=clock.now)
                await store.turns.start(made.session, epoch, turn, [made.inbox_id], opened, clock.now, clock.now + 1)
                closed = clock.now + chance.randint(1, 40) * 1000
                await store.turns.close(
                    made.session, epoch, turn, [row(1)], chance.choice(exits), closed, used=(900, 150), by=("m1", "")
                )
            clock.now += DAY_MS - clock.now % DAY_MS if day else DAY_MS


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Scene]:
    folder = tmp_path_factory.mktemp("console")
    await history(folder / "outspoken.db")
    port = free_port()
    async with (
        telegram_harness(folder) as harness,
        process(harness, **SETTINGS, OUTSPOKEN_SERVER__PORT=str(port)) as up,
    ):
        made = Scene(harness, up, port)
        group = harness.group(made.person("Ada"), made.person("Bea"))
        made.say("Ada", f"say hello {SECRET}")
        made.say("Bea", "say good morning")
        made.say("Ben", f"write notes.txt: buy {SECRET}")
        for name in ("Cleo", "Dan", "Eve"):
            made.say(name, "empty")
        await answer(harness, made.chat("Ada"), "hello")
        for name in ("Cleo", "Dan", "Eve"):
            await answer(harness, made.chat(name), "⚠️", 30)
        harness.silence(group)
        harness.say(group, made.person("Bea"), f"say to the group {SECRET}", mention=True)
        await answer(harness, made.chat("Bea"), "could not write into the group", 30)
        harness.flood(900)
        made.say("Gus", f"say later {SECRET}")
        await made.until("state = 'wanted' AND final")
        made.say("Hal", f"hold thinking {SECRET}")
        await asyncio.wait_for(harness.model.holding.wait(), 60)
        await made.retried()
        yield made
        harness.model.release()


async def opened(
    browser: Browser, scene: Scene, view: str = "turns", *, size: tuple[int, int] = DESKTOP, dark: bool = False
) -> Page:
    """The console, with every error of its script and everything from elsewhere taken as a failure."""
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        locale="en-GB",
        timezone_id="UTC",
    )
    page = await context.new_page()
    wrong: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith(scene.up.url):
            wrong.append(request.url)

    page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    page.on("request", asked)
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    await page.goto(f"{scene.up.url}/console#{view}")
    await expect(page.locator("#link")).to_have_text("live")
    assert wrong == []
    return page


async def shot(page: Page, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=f"{SHOTS}/console-{name}.png", scale="css")


def selected(page: Page) -> str:
    return "li[role=option][aria-selected=true]"


async def test_every_view_on_a_desktop_and_a_phone_in_the_light_and_in_the_dark(
    browser: Browser, scene: Scene, tools: Path
):
    for size, kind in ((DESKTOP, "desktop"), (PHONE, "phone")):
        for dark in (False, True):
            page = await opened(browser, scene, size=size, dark=dark)
            for view, words in (
                ("turns", ", Telegram"), ("sessions", "waiting"), ("incidents", "the model answers with nothing"), ("outbox", "Refused for good"),
                ("adapters", "last in: "), ("spend", "Everybody, today"), ("exits", "By person"), ("audit", "Tried again"),
            ):  # fmt: skip
                await page.evaluate(f"location.hash = {view!r}")
                await expect(page.locator("nav [aria-current]")).to_contain_text(view.capitalize())
                if words and view != "sessions":
                    await expect(page.locator("#view")).to_contain_text(words)
                assert SECRET not in await page.locator("body").inner_text()
                wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, f"{view} is wider than {kind}"
                assert await found_by_axe(page, tools) == [], view
                await shot(page, f"{view}-{kind}-{'dark' if dark else 'light'}")
            await one_turn(page, scene)
            assert await found_by_axe(page, tools) == [], f"a turn that is open on a {kind}"
            await shot(page, f"turn-{kind}-{'dark' if dark else 'light'}")
            await page.keyboard.press("Escape")
            await page.evaluate("location.hash = 'outbox'")
            await page.locator("li[role=option]", has_text="Refused").first.click()
            await page.click("#do-retry")
            await expect(page.locator("#actlines li").first).to_contain_text("is sent to telegram/")
            await shot(page, f"preview-{kind}-{'dark' if dark else 'light'}")
            await page.context.close()


async def one_turn(page: Page, scene: Scene) -> None:
    """Open the turn with the tool, and see that its story is the one that `/why` tells."""
    await page.evaluate("location.hash = 'turns'")
    await expect(page.locator("#filter")).to_be_visible()
    turn = scene.ask("SELECT turn FROM tool_calls LIMIT 1")[0][0]
    await page.evaluate(f"location.hash = 'turns/turn/{turn}'")
    await expect(page.locator("#timeline li").last).to_contain_text("answered")
    await expect(page.locator("#timeline .then").first).to_be_visible()
    async with open_reads(scene.harness.folder / "outspoken.db") as reads:
        told = await why(reads, turn, SystemClock().now_ms)
    assert await page.locator(".story li").all_inner_texts() == list(told)
    assert SECRET not in await page.locator("#detail").inner_text()


WATCH = """() => { window.seen = {}; const look = () => { for (const li of document.querySelectorAll('li[role=option]')) {
  const as = li.querySelector('.chip') ? 'ended' : 'running'; const key = li.dataset.id + ' ' + as; window.seen[key] ??= Date.now(); } };
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, attributes: true}); look(); }"""


async def test_what_happens_is_seen_as_it_happens(browser: Browser, scene: Scene, figure: Callable[[str], None]):
    page = await opened(browser, scene)
    await page.evaluate(WATCH)
    before = set(await page.evaluate("Object.keys(window.seen)"))
    late: list[int] = []
    for number in range(5):
        scene.say(f"Live{number}", "slow one two three four five six seven eight nine ten")
    await expect(page.locator("li .sub", has_text="characters so far").first).to_be_visible()
    for _ in range(600):
        seen: dict[str, int] = await page.evaluate("window.seen")
        ended = [name for name in seen.keys() - before if name.endswith(" ended")]
        if len(ended) >= 5:
            break
        await asyncio.sleep(0.1)
    else:
        pytest.fail("the ends of five turns were not seen")
    times = {turn: (begun, ended) for turn, begun, ended in scene.ask("SELECT turn, opened_at, closed_at FROM turns")}
    for name in seen.keys() - before:
        turn, _, how = name.partition(" ")
        late.append(seen[name] - times[turn][how == "ended"])
    assert len(late) >= 10
    figure(
        f"console: a turn's beginning or end is on the screen after {sorted(late)[len(late) // 2]} ms (median of "
        f"{len(late)}, at most {max(late)} ms) from its commit's time; wanted: 1 000 ms"
    )
    await page.context.close()


async def test_a_turn_grows_while_it_is_looked_at(browser: Browser, scene: Scene):
    page = await opened(browser, scene)
    running = page.locator("li[role=option]:has(.dot.k-running)")
    await running.first.click()
    await expect(page.locator(".now")).to_contain_text("Now: ")
    await expect(page.locator("#timeline li").first).to_contain_text("the turn began")
    await page.keyboard.press("Escape")
    scene.say("Ivy", "slow a b c d e f g h i j k l m n o p q r s t")
    await expect(running).to_have_count(2)
    await running.first.click()
    lines = page.locator("#timeline li")
    await expect(page.locator("#detail .chip")).to_have_text("running")
    first = await lines.count()
    await expect(page.locator("#detail .chip")).to_have_text("answered")
    assert await lines.count() > first
    await expect(page.locator(".story")).to_contain_text("Delivered to telegram/")
    await page.context.close()


async def test_everything_is_reached_by_keys(browser: Browser, scene: Scene):
    page = await opened(browser, scene)
    for key, name in zip(
        "12345678", ("Turns", "Sessions", "Incidents", "Outbox", "Adapters", "Spend", "Exits", "Audit"), strict=True
    ):
        await page.keyboard.press(key)
        await expect(page.locator("h1")).to_have_text(name)
    await page.keyboard.press("g")
    await page.keyboard.press("t")
    await expect(page.locator("h1")).to_have_text("Turns")
    first = await page.locator(selected(page)).get_attribute("data-id")
    await page.keyboard.press("j")
    second = await page.locator(selected(page)).get_attribute("data-id")
    assert first != second
    assert await page.locator("#list").get_attribute("aria-activedescendant") == f"row-{second}"
    await page.keyboard.press("Enter")
    await expect(page.locator("#detail")).to_contain_text(str(second))
    assert await page.evaluate("document.activeElement.id") == "detail"
    await page.keyboard.press("Escape")
    await expect(page.locator("#detail")).to_be_hidden()
    assert await page.evaluate("document.activeElement.id") == "list"
    await page.keyboard.press("k")
    assert await page.locator(selected(page)).get_attribute("data-id") == first
    await page.keyboard.press("/")
    await page.keyboard.type("empty reply")
    await expect(page.locator("li[role=option]", has_not_text="empty reply")).to_have_count(0)
    assert await page.locator("li[role=option]").count() >= 3
    await page.keyboard.press("Escape")
    await expect(page.locator("#filter")).to_have_value("")
    await page.keyboard.press("?")
    await expect(page.locator("#helpdialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#helpdialog")).to_be_hidden()
    await page.keyboard.press("3")
    await page.keyboard.press("Enter")
    await expect(page.locator("#detail .story")).to_contain_text("The incident was opened")
    await page.context.close()


async def test_parts_are_sent_elsewhere_and_dropped_with_a_preview_and_an_entry(browser: Browser, scene: Scene):
    harness, ada = scene.harness, scene.chat("Ada")
    page = await opened(browser, scene, "outbox")
    refused = page.locator("li[role=option]", has_text="Refused for good")
    waits = page.locator("li[role=option]", has_text="asked for a pause")
    await expect(refused).to_have_count(1)
    await refused.click()
    await page.keyboard.press("m")
    await page.fill("#actto", f"telegram/{ada.chat.id}")
    await page.keyboard.press("Enter")
    await expect(page.locator("#actlines")).to_contain_text(f"is sent to telegram/{harness.fake.bot.id}/{ada.chat.id}")
    assert SECRET not in await page.locator("body").inner_text()
    await page.click("#actshow")
    await expect(page.locator("#acttext")).to_contain_text(f"to the group {SECRET}")
    await page.click("#actgo")
    await expect(page.locator("#toast")).to_contain_text("instead")
    await answer(harness, ada, f"to the group {SECRET}")
    assert any("This was meant for telegram/" in text for text in texts(harness, ada))
    await expect(refused).to_have_count(0)
    await page.keyboard.press("Escape")
    await waits.click()
    await page.keyboard.press("d")
    await expect(page.locator("#actlines")).to_contain_text("taken out of the outbox")
    await expect(page.locator("#actgo")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(waits).to_have_count(0)
    await page.keyboard.press("8")
    entries = page.locator("li[role=option] .head")
    await expect(entries).to_have_count(5)
    said = await entries.all_inner_texts()
    assert [one.partition(":")[0].split(" ")[0] for one in said[:3]] == ["Dropped", "Sent", "The"]
    await page.keyboard.press("Enter")
    await expect(page.locator("#detail")).to_contain_text('"state": "skipped"')
    await shot(page, "entry-desktop-light")
    await page.context.close()
    assert texts(harness, scene.chat("Gus")) == []


async def test_a_gateway_that_dies_is_told_and_comes_back(browser: Browser, scene: Scene):
    page = await opened(browser, scene)
    await scene.up.kill()
    await expect(page.locator("#link")).to_contain_text("Connection lost")
    async with process(scene.harness, **SETTINGS, OUTSPOKEN_SERVER__PORT=str(scene.port)):
        await expect(page.locator("#link")).to_have_text("live")
        scene.harness.model.release()
        await expect(page.locator("#count")).to_have_text("0 turns running")
    await page.context.close()


async def test_a_name_with_odd_ends_of_lines_is_shown_as_any_other(browser: Browser, up: Serving):
    async with aiohttp.ClientSession() as client:
        body = {"model": "outspoken", "user": "Ada\u2028B", "messages": [{"role": "user", "content": "hello"}]}
        async with client.post(f"{up.url}/v1/chat/completions", json=body) as answer:
            assert answer.status == 200
    page = await browser.new_page()
    await page.goto(f"{up.url}/console")
    await expect(page.locator("#list .head")).to_have_count(1)


async def test_a_console_that_nobody_sees_keeps_no_connection(browser: Browser, up: Serving):
    page = await browser.new_page()
    await page.clock.install()
    await page.goto(f"{up.url}/console")
    await expect(page.locator("#link")).to_have_text("live")
    async with page.expect_event("requestfailed", lambda request: request.url.endswith("/live")):
        await page.evaluate(SEEN, False)
        await page.clock.fast_forward(11_000)
    await expect(page.locator("#link")).to_have_text("live")
    async with page.expect_response(lambda response: response.url.endswith("/live")):
        await page.evaluate(SEEN, True)


async def test_what_has_the_focus_in_a_turn_keeps_it_while_the_turn_grows(browser: Browser, up: Serving):
    chat = await browser.new_page()
    await chat.goto(up.url)
    await say(chat, "count to 150 slowly")
    page = await browser.new_page()
    await page.goto(f"{up.url}/console#turns/turn/%E0%A4")  # no address; the turns are shown
    await page.locator("#list .k-running").first.click()
    await page.locator("#detail .facts button").focus()
    lines = await page.locator("#timeline li").count()
    await expect(page.locator("#timeline li").nth(lines)).to_be_visible()
    await expect(page.locator("#detail .facts button")).to_be_focused()
    await expect(page.locator("#link")).to_have_text("live")


NOTHING: dict[str, Any] = {
    "gateway": {"version": "1", "rehearsal": False, "laws_broken": 0}, "nodes": [], "adapters": [], "servers": [], "incidents": [], "audit": [],
    "turns": {"running": [], "ended": [], "more_running": 0}, "sessions": {"list": [], "more": 0},
    "outbox": {"waiting": [], "failed": [], "more_waiting": 0, "more_failed": 0},
    "spend": {"active": False, "zone": "UTC", "list": [], "more": 0, "turns": 0, "tokens": [0, 0], "prices": False},
    "exits": {"zone": "UTC", "days": [], "exits": []}, "trends": {"days": [], "spent": {"person": [], "model": [], "key": []}},
}  # fmt: skip
REFUSED: dict[str, Any] = {
    "id": "p", "name": {"surface": "telegram/1/7/", "origin": "inbox:1", "bubble": "b", "part": 0}, "session": "s_1", "place": "telegram/1/7",
    "called": "Telegram 7", "what": "text, 5 characters", "state": "failed", "why": "Refused for good.", "at": None, "failures": 1,
    "can": ["retry", "drop", "redirect"],
}  # fmt: skip
SETTLED = "() => new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve)))"


async def showing(browser: Browser, address: str, **sections: Any) -> Page:
    """The console of a gateway of which it is told this."""
    page = await browser.new_page()
    body = f"event: sections\ndata: {json.dumps({'now': 0, **NOTHING, **sections})}\n\n"

    async def told(route: Route) -> None:
        await route.fulfill(content_type="text/event-stream", body=body)

    await page.route("**/console/api/live", told)
    await page.goto(address)
    return page


async def test_a_part_is_sent_to_the_chat_that_the_field_names_and_to_no_other(browser: Browser, up: Serving):
    outbox = {**NOTHING["outbox"], "failed": [REFUSED]}
    page = await showing(browser, f"{up.url}/console#outbox", outbox=outbox)
    asked: list[Route] = []

    async def held(route: Route) -> None:
        asked.append(route)

    await page.route("**/outbox/preview", held)
    await page.locator("#list [role=option]").click()
    await page.click("#do-redirect")
    await page.fill("#actto", "telegram/1")
    for typed in ("2", ""):
        async with page.expect_request("**/outbox/preview"):
            await page.keyboard.press("Enter")
        await page.keyboard.type(typed)
        body: Any = asked[-1].request.post_data_json
        to: str = body["to"]
        async with page.expect_event("requestfinished", lambda request: request.url.endswith("/preview")):
            await asked[-1].fulfill(json={"lines": [f"It is sent to {to}."], "mark": "m", "to": to, "who": "here"})
        await page.evaluate(SETTLED)
        if typed:
            await expect(page.locator("#actgo")).to_be_disabled()
            await expect(page.locator("#actto")).to_be_focused()
    await expect(page.locator("#actlines li").first).to_have_text("It is sent to telegram/12.")
    await expect(page.locator("#actgo")).to_be_focused()


async def test_what_becomes_of_a_part_is_not_told_of_another_one(browser: Browser, up: Serving):
    outbox = {**NOTHING["outbox"], "failed": [REFUSED, {**REFUSED, "id": "q", "called": "Telegram 8"}]}
    page = await showing(browser, f"{up.url}/console#outbox", outbox=outbox)
    waiting: list[Route] = []

    async def held(route: Route) -> None:
        waiting.append(route)

    async def previewed(route: Route) -> None:
        await route.fulfill(json={"lines": ["It is tried again."], "mark": "m", "to": "", "who": "here"})

    await page.route("**/outbox/preview", previewed)
    await page.route("**/outbox/act", held)
    await page.route("**/outbox/text", held)
    answers: list[dict[str, Any]] = [
        {"json": {"text": "words of the first"}}, {"json": {"words": "Tried again."}}, {"status": 409, "json": {"error": {"message": "It has changed."}}},
    ]  # fmt: skip
    for button, said in zip(("#actshow", "#actgo", "#actgo"), answers, strict=True):
        await page.locator("#list [role=option]").first.click()
        await page.click("#do-retry")
        await expect(page.locator("#actgo")).to_be_enabled()
        async with page.expect_request(lambda request: request.url.endswith(("/act", "/text"))):
            await page.click(button)
        await page.keyboard.press("Escape")
        await page.locator("#list [role=option]").last.click()
        await page.click("#do-retry")
        await expect(page.locator("#actgo")).to_be_enabled()
        async with page.expect_event("requestfinished", lambda request: request.url.endswith(("/act", "/text"))):
            await waiting[-1].fulfill(**said)
        await page.evaluate(SETTLED)
        await expect(page.locator("#actpart")).to_contain_text("Telegram 8")
        await expect(page.locator("#acttext")).to_be_hidden()
        await expect(page.locator("#actwrong")).to_be_hidden()
        await expect(page.locator("#actgo")).to_be_enabled()
        await page.keyboard.press("Escape")
    await expect(page.locator("#toast")).to_have_text("It has changed.")


async def test_failures_are_counted_by_each_of_their_causes_however_many_there_are(browser: Browser, up: Serving):
    broke = {f"cause_{number}": number + 1 for number in range(12)}
    days = [{"day": "2026-11-27", "half": None, "most": None, "broke": broke}]
    exits: dict[str, Any] = {
        "zone": "UTC",
        "days": [{"day": "2026-11-27", "counts": {}, "tokens": [0, 0]}],
        "exits": [],
    }
    page = await showing(browser, f"{up.url}/console#exits", trends={**NOTHING["trends"], "days": days}, exits=exits)
    drawn = page.locator("svg[aria-label^=Failures]")
    await expect(drawn.locator("rect")).to_have_count(len(broke))
    told = await drawn.locator("title").text_content() or ""
    assert "78 failures" in told
    assert all(f"{count} {cause.replace('_', ' ')}" in told for cause, count in broke.items()), told
