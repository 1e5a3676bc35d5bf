"""Commands on the page, in a real browser: offered, taken, answered, and what was taken back is folded."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from gateway.daemon import Serving
from tests.browser.test_for_everybody import found_by_axe
from tests.browser.test_for_everybody import tools as tools
from tests.browser.test_page import finished, opened, say, shot
from tests.browser.test_page import pytestmark as pytestmark


@pytest.mark.parametrize("width", [1280, 390])
async def test_commands_are_offered_taken_and_answered(browser: Browser, up: Serving, tools: Path, width: int):
    page = await opened(browser, up.url, width=width, height=844)
    await page.locator("#text").press_sequentially("/me")
    await expect(page.locator("#menu li")).to_have_count(1)
    assert await found_by_axe(page, tools) == []
    await shot(page, f"commands-{width}")
    await page.keyboard.press("Enter")
    await expect(page.locator("#text")).to_have_value("/memory ")
    await expect(page.locator("#menu")).to_be_hidden()
    await page.keyboard.press("Enter")
    await expect(page.locator(".notice")).to_contain_text("Nothing is remembered here")
    await expect(page.locator(".unsent")).to_have_count(0)
    await say(page, "hello")
    await finished(page)
    for times in (1, 2):  # each has a place of its own
        await say(page, "/retry")
        await expect(page.locator(".acts .versions")).to_have_text([f"‹{times + 1} / {times + 1}›"])
        await finished(page)
    await say(page, "hello again")
    await finished(page, 2)
    await say(page, "/undo")
    await page.locator(".undone summary").click()
    await expect(page.locator(".undone .person")).to_have_text("hello again")
    assert await found_by_axe(page, tools) == []
    await shot(page, f"commands-answered-{width}")
    await page.reload()
    await expect(page.locator(".undone")).to_have_count(1)
    await expect(page.locator(".notice").first).to_contain_text("Nothing is remembered here")
    before = page.url
    await say(page, "/new hello there")
    await expect(page.locator(".person")).to_have_text("hello there")
    assert page.url != before
    await finished(page)


async def test_a_reminder_is_seen_where_it_was_set_and_the_menu_is_left_by_its_keys(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.locator("#text").press_sequentially("/")
    first = page.locator("#menu li").first
    await expect(first).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowDown")
    await expect(first).to_have_attribute("aria-selected", "false")
    await page.keyboard.press("Escape")
    await expect(page.locator("#menu")).to_be_hidden()
    await expect(page.locator("#text")).to_have_value("/")
    await page.fill("#text", "")
    await say(page, "/remind in 1 second tea")
    await expect(page.locator(".notice").last).to_contain_text("⏰ Reminder: tea")
    await expect(page.locator("#live")).to_contain_text("⏰ Reminder: tea")
