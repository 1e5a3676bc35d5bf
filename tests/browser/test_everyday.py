"""What people do with a chat page each day, where pages like it agree on how it goes: keys, times, trying again."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser, expect

from gateway.daemon import Serving
from tests.browser.test_attach import chosen
from tests.browser.test_page import finished, opened, pytestmark, say

__all__ = ["pytestmark"]


async def test_escape_in_a_field_is_meant_for_the_field_and_not_for_the_answer(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "count to 150 slowly")
    await expect(page.locator(".partial")).to_contain_text("1, 2, 3")
    await page.keyboard.press("Control+k")
    await expect(page.locator("#search")).to_be_focused()
    await page.keyboard.type("pears")
    await page.keyboard.press("Escape")
    await expect(page.locator("#search")).to_have_value("")
    await page.keyboard.press("Escape")
    await expect(page.locator("#text")).to_be_focused()
    await finished(page)
    await expect(page.locator(".answer")).to_contain_text("150")
    await expect(page.locator(".notice")).to_have_count(0)


async def test_the_list_tells_what_becomes_of_a_conversation_that_is_not_shown(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "count to 150 slowly")
    await expect(page.locator(".partial")).to_contain_text("1, 2")
    await page.keyboard.press("Control+Shift+O")
    await expect(page.locator("#welcome")).to_be_visible()
    await expect(page.locator("#list .busy")).to_have_count(1)
    await expect(page.locator("#list .busy")).to_have_count(0)
    await expect(page.locator("#list a")).to_have_text("count to 150 slowly")


async def test_a_message_says_when_it_was_said(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "hello")
    await finished(page)
    said = page.locator(".mine time")
    await expect(said).to_have_text(await page.evaluate("new Date().toLocaleTimeString('en', {timeStyle: 'short'})"))
    assert "202" in (await said.get_attribute("title") or "")


async def test_what_was_stopped_is_tried_again_in_its_place_with_its_file(
    browser: Browser, up: Serving, tmp_path: Path
):
    page = await opened(browser, up.url)
    (tmp_path / "notes.txt").write_text("milk")
    await chosen(page, tmp_path / "notes.txt")
    await say(page, "count to 150 slowly")
    await expect(page.locator(".partial")).to_contain_text("1, 2, 3")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Retry").click()
    await expect(page.locator(".versions").first).to_contain_text("2 / 2")
    await expect(page.locator(".person")).to_have_text("count to 150 slowly")
    await expect(page.locator(".mine .file")).to_have_text(["⤓ notes.txt"])
    await page.keyboard.press("Escape")
    await page.locator("#text").press("ArrowUp")
    await expect(page.locator("#text")).to_have_value("count to 150 slowly")


async def test_a_message_that_is_being_changed_is_still_being_changed_when_one_comes_back(
    browser: Browser, up: Serving
):
    page = await opened(browser, up.url)
    await say(page, "hello")
    await finished(page)
    await page.locator("#text").press("ArrowUp")
    await page.locator("#text").press_sequentially(" there")
    await page.keyboard.press("Control+Shift+O")
    await expect(page.locator("#welcome")).to_be_visible()
    await expect(page.locator("#editing")).to_be_hidden()
    await page.go_back()
    await expect(page.locator("#text")).to_have_value("hello there")
    await expect(page.locator("#editing")).to_be_visible()
    await page.reload()
    await expect(page.locator("#editing")).to_be_visible()
    await page.locator("#text").press("Enter")
    await expect(page.locator(".versions").first).to_contain_text("2 / 2")
    await expect(page.locator(".person")).to_have_text("hello there")
    await expect(page.locator("#editing")).to_be_hidden()
