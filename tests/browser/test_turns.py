"""What can be done with a message, and what is folded in an answer, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect

from gateway.daemon import Serving
from gateway.sessions import recents
from tests.browser.test_for_everybody import found_by_axe
from tests.browser.test_for_everybody import tools as tools
from tests.browser.test_hostile_page import turn
from tests.browser.test_page import finished, opened, say, shot
from tests.browser.test_page import pytestmark as pytestmark

RICH = """# An answer

1. First install it:
   ```bash
   pip install thing  # once
   ```
2. Then
   - [x] write
   - [ ] test

| Name | Description of the thing | Price | More | Even more of it |
|:-----|:------------------------:|------:|------|-----------------|
| Apple | a fruit that is red or green | 1.20 | yes | and so on it goes |

\\[ E = mc^2 \\]

שלום עולם, זה טקסט מימין לשמאל.

![A cat](https://pictures.example.org/cat.png)
"""


@pytest.mark.parametrize("width", [1280, 390])
async def test_an_earlier_message_is_changed_and_what_was_there_can_still_be_read(
    browser: Browser, up: Serving, tools: Path, width: int
):
    page = await opened(browser, up.url, width=width, height=844)
    await say(page, "first words")
    await finished(page)
    await say(page, "list files")
    await finished(page, 2)
    first = page.locator(".turn").first
    await first.get_by_role("button", name="Edit").click()
    await expect(page.locator("#editing")).to_contain_text("You are changing an earlier message")
    assert await found_by_axe(page, tools) == []
    await page.fill("#text", "other words")
    await page.keyboard.press("Enter")
    await expect(page.locator(".turn")).to_have_count(1)
    await expect(page.locator(".answer")).to_contain_text("other words")
    await expect(page.locator("#editing")).to_be_hidden()
    await finished(page)
    acts = page.locator(".acts")
    await expect(acts.locator(".versions")).to_have_text("‹2 / 2›")
    await page.locator(".turn").get_by_role("button", name="Regenerate").click()
    await expect(acts.locator(".versions")).to_have_text("‹3 / 3›")
    await finished(page)
    await shot(page, f"versions-{width}")
    assert await found_by_axe(page, tools) == []
    await acts.get_by_role("button", name="Earlier version").focus()
    for place in (2, 1):
        await page.keyboard.press("Enter")
        await expect(acts.locator(".versions").first).to_have_text(f"‹{place} / 3›")
        await expect(page.locator(".versions button:focus")).to_have_count(1)
    await expect(page.locator("#live")).to_contain_text("Version 1 of 3: first words")
    await expect(page.locator(".turn")).to_have_count(2)  # with all that came of it
    await expect(page.locator(".answer").first).to_contain_text("first words")
    await expect(page.locator(".versions button:focus")).to_have_attribute("aria-label", "Later version")
    other = await page.context.new_page()
    await other.goto(page.url)
    await page.reload()
    for tab in (page, other):
        await finished(tab, 2)
        await expect(tab.locator(".person").first).to_have_text("first words")
        await expect(tab.locator(".acts .versions")).to_have_text("‹1 / 3›")
    await page.locator(".acts").get_by_role("button", name="Later version").click()
    for tab in (page, other):
        await expect(tab.locator(".turn")).to_have_count(1)
        await expect(tab.locator(".person")).to_have_text("other words")


async def test_what_a_model_thought_is_shown_and_the_last_message_is_changed_by_a_key(
    browser: Browser, up: Serving, tools: Path
):
    page = await opened(browser, up.url)
    await say(page, "think")
    await finished(page)
    for _ in range(2):
        await page.locator("details.thought summary").click()
        await expect(page.locator("details.thought div")).to_have_text(
            "The person wants to see a thought. This is one; it has two sentences."
        )
        await page.reload()
        await finished(page)
    await page.focus("#text")
    await page.keyboard.press("ArrowUp")
    await expect(page.locator("#text")).to_have_value("think")
    await expect(page.locator("#editing")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#editing")).to_be_hidden()
    before = page.url
    await page.keyboard.press("Control+Shift+O")
    await expect(page.locator(".turn")).to_have_count(0)
    assert page.url != before
    await expect(page.locator("#text")).to_be_focused()


async def test_what_was_said_long_ago_is_shown_when_it_is_asked_for(
    browser: Browser, up: Serving, tools: Path, monkeypatch: pytest.MonkeyPatch
):
    async def smaller(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, body=(await answer.text()).replace("AT_ONCE = 50", "AT_ONCE = 2"))

    page = await (await browser.new_context(service_workers="block")).new_page()
    page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    await page.goto(up.url)
    for number in range(1, 6):
        await say(page, f"think {number}")
        await finished(page, number)
    monkeypatch.setattr(recents, "RECENT_TURNS", 2)
    await page.route("**/page.js", smaller)
    await page.goto("about:blank")
    await page.goto(up.url)
    await finished(page, 2)
    more = page.get_by_role("button", name="Show earlier messages")
    assert await found_by_axe(page, tools) == []
    for shown in (4, 5):
        await more.click()
        await finished(page, shown)
    await expect(more).to_be_hidden()
    assert [await one.text_content() for one in await page.locator(".person").all()] == [
        f"think {number}" for number in range(1, 6)
    ]
    await say(page, "think 6")
    await finished(page, 6)


async def test_a_conversation_branches_and_an_answer_goes_on(browser: Browser, up: Serving, tools: Path):
    page = await opened(browser, up.url)
    for number, words in enumerate(("first words", "second words"), 1):
        await say(page, words)
        await finished(page, number)
    await expect(page.get_by_role("button", name="Continue")).to_have_count(1)
    await page.locator(".turn").first.get_by_role("button", name="Branch").click()
    await expect(page.locator("#toast")).to_contain_text("a conversation of its own")
    await expect(page.locator(".person")).to_have_text("first words")
    await expect(page.locator("#list li.current .title")).to_have_text("Branch of “first words”")
    assert await found_by_axe(page, tools) == []
    await shot(page, "branch")
    await page.get_by_role("button", name="Continue").click()
    await finished(page, 2)
    await expect(page.locator(".person").last).to_have_text("continue")
    await page.locator("#list a", has_text="first words").last.click()
    await finished(page, 2)
    await expect(page.locator(".person").last).to_have_text("second words")


async def test_a_calls_arguments_and_result_are_folded(browser: Browser, up: Serving, tools: Path):
    page = await opened(browser, up.url)
    await say(page, "write notes.txt: buy milk and then read notes.txt")
    await finished(page)
    await page.locator(".steps > summary").last.click()
    call = page.locator("details.call").last
    await call.locator("summary").click()
    await expect(call).to_contain_text("Arguments")
    await expect(call.locator("pre").last).to_contain_text("buy milk")
    assert await found_by_axe(page, tools) == []
    await shot(page, "call-opened")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
async def test_reasoning_is_folded_and_an_answer_is_shown_as_it_is_meant(
    browser: Browser, up: Serving, tools: Path, width: int, dark: bool
):
    asked: list[str] = []

    async def told(route: Route) -> None:
        one = {
            **turn(0, RICH, final=True),
            "person": "Show me",
            "thought": [["", "I had better "], ["", "look twice."]],
        }
        await route.fulfill(body=f"event: snapshot\ndata: {json.dumps([one])}\n\n", content_type="text/event-stream")

    page = await (
        await browser.new_context(viewport={"width": width, "height": 844}, color_scheme="dark" if dark else "light")
    ).new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    await page.route("**/events?changes=1", told)
    async with page.expect_response("**/api/highlight") as coloured:
        await page.goto(up.url)
    assert "comment" in await (await coloured.value).text()
    thought = page.locator("details.thought")
    await expect(thought.locator("div")).to_be_hidden()
    await thought.locator("summary").click()
    await expect(thought.locator("div")).to_have_text("I had better look twice.")
    answer = page.locator(".answer")
    await expect(answer.locator("ol > li .code pre")).to_contain_text("pip install thing")
    await expect(answer.get_by_role("img", name="Done")).to_have_count(1)
    await expect(answer.locator(".formula math msup")).to_have_text("c2")
    await expect(answer.locator(".formula code")).to_be_hidden()
    await expect(answer.locator("p").nth(1)).to_have_css("direction", "rtl")
    box, table = answer.locator(".tablebox"), answer.locator("table")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if width < 800:
        assert (await table.bounding_box() or {})["width"] > (await box.bounding_box() or {})["width"]
    assert await found_by_axe(page, tools) == []
    assert not [url for url in asked if "pictures.example.org" in url]
    await shot(page, f"rich-{width}")
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    copies = answer.get_by_role("button", name="Copy this code")
    await copies.click()
    await expect(copies).to_have_text("Copied")


async def test_what_an_answer_came_to_before_it_was_stopped_can_be_copied(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    await say(page, "count to 300 slowly")
    await expect(page.locator(".bubble").first).to_contain_text("3, 4")
    await page.locator("#stop").click()
    await finished(page)
    await page.locator(".foot").get_by_role("button", name="Copy").click()
    assert "3, 4" in await page.evaluate("window.copied")
    await expect(page.locator(".foot").get_by_role("button", name="Continue")).to_have_count(0)


async def test_a_message_can_be_changed_once_it_is_answered_or_stopped(browser: Browser, up: Serving):
    """Before that nothing takes its place: it and what was to stand there would both be answered."""
    page = await opened(browser, up.url)
    await say(page, "rehearse stall in tool call")
    first = page.locator(".turn").first
    await expect(first.locator(".acts").get_by_role("button", name="Copy")).to_be_visible()
    await expect(page.locator("#stop")).to_be_visible()
    await expect(first.get_by_role("button", name="Edit")).to_have_count(0)
    await page.keyboard.press("Escape")
    await finished(page)
    await expect(first.get_by_role("button", name="Edit")).to_have_count(1)
