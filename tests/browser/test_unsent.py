"""What the page holds, takes as a file, and shows on a narrow screen: messages that there is no room for, large pastes, odd names."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from gateway.daemon import Serving
from tests.browser.test_attach import chosen
from tests.browser.test_for_everybody import found_by_axe
from tests.browser.test_for_everybody import tools as tools
from tests.browser.test_page import finished, opened, pytestmark, say
from tests.serving import served

__all__ = ["pytestmark"]

WIDTHS = """() => [document.documentElement.scrollWidth, document.documentElement.clientWidth, innerWidth]"""
PASTED = """(lines) => {
  const data = new DataTransfer();
  data.setData("text/plain", "line of pasted text\\n".repeat(lines));
  document.getElementById("text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""
ONCE_FULL = """() => {
  const real = window.fetch;
  let left = 1;
  window.fetch = (path, options) => {
    if (!left || options?.method !== "POST" || !String(path).endsWith("/messages")) return real(path, options);
    left -= 1;
    return Promise.resolve(new Response('{"error": {"message": "No."}}', { status: 429, headers: { "Retry-After": "SECONDS" } }));
  };
}"""


async def test_what_there_is_no_room_for_is_kept_and_sent_by_itself_in_its_order(
    browser: Browser, up: Serving, tools: Path
):
    page = await opened(browser, up.url)
    await page.evaluate(ONCE_FULL.replace("SECONDS", "4"))
    await say(page, "say one")
    hints = page.locator(".unsent .hint")
    await expect(hints).to_contain_text("It is kept, and sent in")
    await say(page, "say two")
    await expect(hints).to_have_count(2)
    await expect(hints.last).to_contain_text("It is kept, and sent in")
    assert await found_by_axe(page, tools) == []
    await finished(page, 2)
    await expect(page.locator(".person")).to_have_text(["say one", "say two"])
    await expect(hints).to_have_count(0)


async def test_what_is_refused_until_tomorrow_is_told_and_can_be_sent_again(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.evaluate(ONCE_FULL.replace("SECONDS", "40000"))
    await say(page, "list files")
    hint = page.locator(".unsent .hint")
    await expect(hint).to_contain_text("No.")
    await hint.get_by_role("button", name="Send").click()
    await finished(page)


async def test_a_large_paste_becomes_a_file_and_the_page_stays_quick(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    began = time.monotonic()
    await page.evaluate(PASTED, 50_000)
    await expect(page.locator(".files li")).to_contain_text("pasted.txt")
    assert time.monotonic() - began < 60  # on a busy machine, too: what looks at it all for each line takes minutes
    assert await page.input_value("#text") == ""
    await page.evaluate(PASTED, 5)
    await expect(page.locator(".files li")).to_have_count(1)


async def test_what_takes_a_file_away_is_seen_and_a_name_is_shown_as_it_is(
    browser: Browser, up: Serving, tools: Path, tmp_path: Path
):
    page = await opened(browser, up.url)
    odd, long = tmp_path / "odd\u202egpj.exe", tmp_path / ("x" * 200 + ".txt")
    for file in (odd, long):
        file.write_text("something")
    await chosen(page, odd, long)
    await expect(page.locator(".files bdi")).to_have_text(["oddgpj.exe", long.name])
    assert await found_by_axe(page, tools) == []
    lines = await page.evaluate("() => [...document.querySelectorAll('.files li')].map((one) => one.clientHeight)")
    assert max(lines) < 60, lines


@pytest.mark.parametrize(("locale", "width"), [("en", 360), ("de", 320), ("ru", 360), ("ar", 360)])
async def test_a_phone_never_scrolls_sideways_and_has_all_of_it(
    browser: Browser, tmp_path: Path, tools: Path, locale: str, width: int
):
    async with served(tmp_path) as up:
        context = await browser.new_context(
            viewport={"width": width, "height": 640}, is_mobile=True, has_touch=True, locale=locale
        )
        page: Page = await context.new_page()
        await page.goto(up.url)
        await page.evaluate("() => document.getElementById('modelbox').hidden = false")
        await expect(page.locator("#new")).to_be_in_viewport(ratio=1)
        await expect(page.locator("#welcome h2")).to_be_in_viewport(ratio=1)
        assert len(set(await page.evaluate(WIDTHS))) == 1
        await page.tap("#drawer")
        await page.tap("#prefer")
        await expect(page.locator("#bell")).to_be_in_viewport(ratio=1)
        assert await found_by_axe(page, tools) == []
        await page.keyboard.press("Escape")
        await page.keyboard.press("Escape")
        await page.fill("#text", "/")
        await expect(page.locator("#menu")).to_be_visible()
        assert await found_by_axe(page, tools) == []
        await context.close()


async def test_a_message_on_a_connection_that_is_silently_gone_is_sent_on_another_one(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.clock.install()
    silent: list[Route] = []

    async def once(route: Route) -> None:
        if silent:
            await route.continue_()
        silent.append(route)

    await page.route("**/messages", once)
    async with page.expect_request("**/messages"):
        await say(page, "hello")
    await expect(page.locator(".unsent .hint")).to_contain_text("Sending")
    async with page.expect_request("**/messages"):
        await page.clock.run_for(25_000)
    await finished(page)
    await expect(page.locator(".person")).to_have_text(["hello"])


async def test_what_the_gateway_cannot_take_just_now_says_why_until_it_is_sent(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    full = ["The disk of the gateway is full."]

    async def answered(route: Route) -> None:
        if full:
            await route.fulfill(status=507, json={"error": {"message": full[0]}})
        else:
            await route.continue_()

    await page.route("**/messages", answered)
    await say(page, "hello")
    await expect(page.locator(".unsent .hint")).to_have_text("Sending … The disk of the gateway is full.")
    await expect(page.locator("#live")).to_contain_text("The disk of the gateway is full.")
    full.clear()
    await finished(page)
    await expect(page.locator(".person")).to_have_text(["hello"])
    await expect(page.locator(".unsent")).to_have_count(0)
