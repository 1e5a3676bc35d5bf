"""What the agent sends, on the page: a picture in its place, every file to be stored, and nothing of it is ever a document of ours."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser, expect

from gateway.daemon import Serving
from tests.browser.test_page import finished, opened, pytestmark, say

__all__ = ["pytestmark"]

PNG = b"\x89PNG\r\n\x1a\n"


async def test_a_picture_is_shown_in_its_place_also_after_a_reload_and_is_stored(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "draw")
    await finished(page)
    for _ in range(2):
        await expect(page.locator(".file img[alt='image.png']")).to_be_visible()
        assert await page.evaluate("() => document.querySelector('.file img').naturalWidth") > 0
        await page.reload()
    async with page.expect_download() as waiting:
        await page.locator(".file button").press("Enter")
    got = await waiting.value
    assert got.suggested_filename == "image.png"
    assert (await got.path()).read_bytes().startswith(PNG)


async def test_a_page_that_was_sent_is_stored_and_never_opened(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "write evil.html: <script>top.evil = 1</script> and then send me evil.html")
    await finished(page)
    await expect(page.locator(".file img, .file audio, iframe")).to_have_count(0)
    async with page.expect_download() as waiting:
        await page.locator(".file button").press("Enter")
    got = await waiting.value
    assert "script" in (await got.path()).read_text()
    assert page.url.startswith(up.url)
    assert await page.evaluate("() => window.evil") is None


async def test_a_file_that_is_not_kept_any_more_is_said(browser: Browser, up: Serving, tmp_path: Path):
    page = await opened(browser, up.url)
    await say(page, "write a.txt: words and then send me a.txt")
    await finished(page)
    for one in tmp_path.rglob("a.txt"):
        one.unlink()
    await page.locator(".file button").press("Enter")
    await expect(page.locator(".file .wrong")).to_contain_text("not kept any more")
