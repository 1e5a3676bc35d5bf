"""The web chat in a real browser: what a person sees, also when things break."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.daemon import Serving
from tests.serving import served

CHROMIUM = next(
    (
        path
        for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHOTS = os.environ.get("TESTS_SCREENSHOTS")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("CI"),
        reason="no Chromium on this machine: apt install chromium-headless-shell",
    ),
]


async def opened(browser: Browser, url: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> Page:
    """The page, with every error of its script raised."""
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page = await context.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    await page.goto(url)
    await expect(page.locator("#banner")).to_contain_text("Rehearsal")
    return page


async def say(page: Page, words: str) -> None:
    await page.fill("#text", words)
    await page.keyboard.press("Enter")


async def finished(page: Page, turns: int = 1) -> None:
    await expect(page.locator(".figures")).to_have_count(turns)


async def shot(page: Page, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=f"{SHOTS}/{name}.png")


async def test_a_conversation_with_a_tool_and_a_reload_that_loses_nothing(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await expect(page.locator("#welcome h2")).to_have_text("Ask, and you will hear back.")
    await shot(page, "first-screen-desktop")
    await say(page, "write notes.txt: buy milk and then read notes.txt")
    await finished(page)
    await expect(page.locator(".interim").first).to_have_text("I'll write notes.txt.")
    await expect(page.locator(".steps summary").first).to_contain_text("write_file")
    await expect(page.locator(".answer pre code")).to_have_text("buy milk")

    async def shown() -> str:
        """All of it; how long it took is rounded, and may be told with another tenth."""
        return re.sub(r"\d+\.\d s", "… s", await page.locator("#turns").inner_text())

    before = await shown()
    await page.reload()
    await finished(page)
    assert await shown() == before


async def test_a_stall_is_told_and_recovered(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.click("text=rehearse stall in tool call")
    await finished(page)
    await expect(page.locator(".answer")).to_contain_text("page.html is written, in two pieces")


async def test_what_the_readme_shows_is_what_a_gateway_without_settings_shows_each_time(
    browser: Browser, tmp_path: Path
):
    async with served(tmp_path, patient=True) as up:
        page = await opened(browser, up.url, width=640, height=440)
        for turn in (1, 2):
            await say(page, "rehearse stall in tool call")
            told = page.locator(".status")
            await expect(told).to_contain_text("nothing new for")
            await page.wait_for_timeout(2_000)
            await expect(told).to_contain_text("nothing new for", timeout=1)
            if turn == 1:
                await shot(page, "stall-told")
            await expect(page.locator(".figures")).to_have_count(turn, timeout=60_000)
            await expect(page.locator(".mended").last).to_contain_text("– recovered.")
            await expect(page.locator(".answer").last).to_contain_text("page.html is written, in two pieces")
            if turn == 1:
                await shot(page, "stall-recovered")


async def test_a_notice_stands_out_and_says_why(browser: Browser, up: Serving):
    page = await opened(browser, up.url, width=390, height=844, dark=True)
    await say(page, "rehearse stall in tool call forever")
    notice = page.locator(".notice")
    await expect(notice).to_contain_text("was not executed")
    await notice.get_by_role("button", name="Why?").click()
    await expect(notice.locator(".why li").first).to_contain_text("Turn")
    await shot(page, "notice-phone-dark")
    await notice.get_by_role("button", name="Continue").click()
    await expect(page.locator(".person").last).to_have_text("continue")
    await finished(page, 2)


async def test_stop_ends_the_turn_and_says_so(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "count to 90 slowly")
    await expect(page.locator(".partial")).to_contain_text("1, 2, 3")
    await page.click("#stop")
    await expect(page.locator(".notice")).to_contain_text("Stopped, as you asked.")
    await expect(page.locator("#stop")).to_be_hidden()


async def test_a_message_while_busy_waits_and_is_answered(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "count to 200 slowly")
    await expect(page.locator(".partial")).to_contain_text("1, 2")
    await say(page, "second message")
    await expect(page.locator(".hint")).to_contain_text("place 1 in the queue")
    await finished(page, 2)
    await expect(page.locator(".answer").last).to_contain_text("second message")


async def test_a_message_sent_while_offline_is_delivered_once(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.context.set_offline(True)
    await say(page, "sent into the void")
    await expect(page.locator(".unsent .hint")).to_contain_text("Sending")
    await page.context.set_offline(False)
    await finished(page)
    await expect(page.locator(".person")).to_have_count(1)


async def test_a_reload_in_the_middle_of_a_stream_shows_it_whole_and_once(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "count to 150 slowly")
    await expect(page.locator(".partial")).to_contain_text("5, 6")
    await page.reload()
    await finished(page)
    wanted = ", ".join(str(n) for n in range(1, 151)) + "."
    await expect(page.locator(".answer")).to_have_text(wanted)


async def test_what_a_model_writes_is_never_run(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    evil = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) <script>alert(2)</script>"
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    await say(page, evil)
    await finished(page)
    await expect(page.locator(".answer")).to_contain_text("<script>alert(2)</script>")
    assert await page.locator("#turns script, #turns img, #turns a[href^=javascript]").count() == 0


async def test_markdown_is_shown_as_it_is_meant(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "write a long answer")
    await finished(page)
    answer = page.locator(".answer")
    for selector in ("h1", "h2", "ol > li > ul > li", "pre code", "table th", "blockquote", "em", "strong", "a[href]"):
        assert await answer.locator(selector).count() > 0, selector
    await shot(page, "markdown-desktop")


async def test_the_key_is_asked_for(browser: Browser, tmp_path: Path):
    async with served(tmp_path, {"OUTSPOKEN_SERVER__API_KEY": "sesame-sesame"}) as up:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(up.url)
        await page.fill("#key", "sesame-sesame")
        await page.keyboard.press("Enter")
        await say(page, "hello")
        await finished(page)
