"""How a person wants the page: light or dark, read aloud; and conversations put aside."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.daemon import Serving
from tests.browser.test_conversations import two
from tests.browser.test_for_everybody import found_by_axe, tools
from tests.browser.test_page import finished, opened, pytestmark, say, shot

__all__ = ["pytestmark", "tools"]

VOICES = """
window.said = [];
window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
Object.defineProperty(window, "speechSynthesis", { value: {
  now: [], getVoices: () => [{ lang: "de-DE" }, { lang: "en-US" }],
  speak(one) { this.now.push(one); said.push([one.lang, one.text]); }, cancel() { this.now = []; },
} });
"""
"""A browser that has voices, and does not speak."""


async def background(page: Page) -> str:
    return await page.evaluate("getComputedStyle(document.body).backgroundColor")


async def ready(page: Page) -> None:
    await expect(page.locator("#banner")).to_contain_text("Rehearsal")


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_person_has_the_page_light_or_dark_whatever_the_system_wants(browser: Browser, up: Serving, width: int):
    page = await opened(browser, up.url, width=width, height=844)
    light = await background(page)
    if width < 800:
        await page.click("#drawer")
    await page.click("#prefer")
    await page.select_option("#theme", "dark")
    dark = await background(page)
    assert dark != light
    await shot(page, f"settings-{width}")
    await page.keyboard.press("Escape")
    await page.reload()
    await ready(page)
    assert await background(page) == dark
    other = await page.context.new_page()
    await other.goto(up.url)
    await ready(other)
    if width < 800:
        await other.click("#drawer")
    await other.click("#prefer")
    await expect(other.locator("#theme")).to_have_value("dark")
    await other.select_option("#theme", "")
    assert await background(other) == light
    await expect(page.locator("body")).to_have_css("background-color", light)
    await other.emulate_media(color_scheme="dark")
    assert await background(other) == dark


async def test_an_answer_is_read_aloud_until_it_is_enough(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.add_init_script(VOICES)
    await page.reload()
    await ready(page)
    await say(page, "write notes.txt: buy milk and then read notes.txt")
    await finished(page)
    await page.get_by_role("button", name="Read aloud").click()
    stop = page.get_by_role("button", name="Stop reading")
    await expect(stop).to_have_count(1)
    said = await page.evaluate("said")
    assert {lang for lang, _ in said} == {"en-US"}
    words = "".join(text for _, text in said)
    assert "buy milk" in words
    assert "Copy" not in words
    assert all(len(text) <= 200 for _, text in said)
    await stop.click()
    assert await page.evaluate("speechSynthesis.now.length") == 0
    await page.get_by_role("button", name="Read aloud").click()
    await page.evaluate("speechSynthesis.now.forEach((one) => one.onend())")
    await expect(stop).to_have_count(0)
    await page.get_by_role("button", name="Read aloud").click()
    await page.evaluate("speechSynthesis.now[0].onerror({ error: 'synthesis-unavailable' })")
    await expect(page.locator("#toast")).to_contain_text("has no voice")
    await page.get_by_role("button", name="Read aloud").click()
    await page.click("#new")
    assert await page.evaluate("speechSynthesis.now.length") == 0


async def test_a_conversation_is_put_aside_and_comes_back_by_what_is_said_in_it(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await two(page)
    rows = page.locator("#list li:not(.when)")
    await expect(page.locator("#archived")).to_be_hidden()
    await page.click("#list li:has-text('apples') .more")
    await page.click("#archive")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("pears")
    await expect(page.locator("#toast")).to_contain_text("“first things about apples” is archived")
    await page.fill("#search", "apples")
    await expect(rows).to_contain_text("archived")
    await page.fill("#search", "")
    await page.get_by_role("button", name="Archived conversations").click()
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("apples")
    await page.fill("#search", "apples")
    await expect(rows).to_contain_text("archived")
    await page.fill("#search", "")
    await expect(rows).not_to_contain_text("archived")
    await shot(page, "archived")
    await page.click("#list .more")
    await page.get_by_role("button", name="Back to the list").click()
    await expect(rows).to_have_count(2)
    await page.click("#list li:has-text('apples') .more")
    await page.click("#archive")
    await page.get_by_role("button", name="Archived conversations").click()
    await page.click("#list li:has-text('apples') a")  # the list may still be the one of before
    await expect(page.locator(".person")).to_have_text("first things about apples")
    await say(page, "and plums")
    await finished(page, 2)
    await expect(rows).to_have_count(2)
    await expect(page.locator("#archived")).to_be_hidden()


@pytest.mark.parametrize(("width", "locale"), [(1280, "en"), (390, "ar")])
async def test_what_a_person_wants_of_every_answer_is_said_in_the_settings(
    browser: Browser, up: Serving, tools: Path, width: int, locale: str
):
    context = await browser.new_context(viewport={"width": width, "height": 844}, locale=locale)
    page = await context.new_page()
    await page.goto(up.url)
    await expect(page.locator("#welcome")).to_be_visible()
    if width < 800:
        await page.click("#drawer")
    await page.click("#prefer")
    await page.fill("#instructions", "Be brief.")
    assert await found_by_axe(page, tools) == []
    await shot(page, f"instructions-{width}")
    await page.click("#preferform [type=submit]")
    await expect(page.locator("#preferences")).to_be_hidden()
    await expect(page.locator("#toast")).to_be_visible()
    await page.click("#prefer")
    await expect(page.locator("#instructions")).to_have_value("Be brief.")
    await page.route("**/api/instructions", lambda route: route.abort())
    await page.fill("#instructions", "Be long.")
    await page.click("#preferform [type=submit]")
    await expect(page.locator("#preferwrong")).not_to_be_empty()
    await expect(page.locator("#instructions")).to_have_value("Be long.")


async def test_what_can_be_pressed_is_seen_where_a_person_has_colours_of_their_own(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.emulate_media(forced_colors="active")
    for name in ("#send", "#prefer", ".voice"):
        await expect(page.locator(name)).to_have_css("border-top-style", "solid")
