"""Files on the page: chosen, pasted, dropped, removed, sent and read."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

from playwright.async_api import Browser, Page, Route, async_playwright, expect

from gateway.daemon import Serving
from tests.agent_core.oddfiles import WORDS, pdf
from tests.browser.test_for_everybody import found_by_axe
from tests.browser.test_for_everybody import tools as tools
from tests.browser.test_page import CHROMIUM, FLAGS, finished, opened, pytestmark, say, shot

__all__ = ["pytestmark"]

PICTURE_BYTES = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mPQq43GihiGlgQAjP9BgSm9lmsAAAAASUVORK5CYII="
)
BROUGHT = """([kind, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: "text/plain" }));
  const target = document.getElementById("text");
  const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  target.dispatchEvent(event);
}"""


async def chosen(page: Page, *files: Path) -> None:
    async with page.expect_file_chooser() as waiting:
        await page.get_by_role("button", name="Attach files").press("Enter")
    await (await waiting.value).set_files([str(file) for file in files])


async def test_files_are_chosen_removed_and_sent_and_what_is_in_them_is_read(
    browser: Browser, up: Serving, tmp_path: Path
):
    page = await opened(browser, up.url)
    plan, other = tmp_path / "plan.pdf", tmp_path / "other.txt"
    plan.write_bytes(pdf([WORDS]))
    other.write_text("nothing of it")
    await chosen(page, plan, other)
    await expect(page.locator(".files li")).to_have_count(2)
    await page.get_by_role("button", name="Remove other.txt").press("Enter")
    await expect(page.locator(".files li")).to_have_text(["plan.pdf (600 B) ×"])
    await say(page, "what is in this PDF?")
    await finished(page)
    await expect(page.locator(".files li")).to_have_count(0)
    await expect(page.locator(".person")).to_have_text("what is in this PDF?")
    await expect(page.locator(".mine .file")).to_have_text(["⤓ plan.pdf"])
    await expect(page.locator(".answer")).to_contain_text(WORDS)
    await expect(page.locator("#list .title")).to_have_text("what is in this PDF?")
    await page.reload()
    await finished(page)
    await expect(page.locator(".person")).to_have_text("what is in this PDF?")
    await expect(page.locator(".mine .file")).to_have_text(["⤓ plan.pdf"])


async def test_files_are_pasted_and_dropped_and_go_without_words(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.evaluate(BROUGHT, ["paste", "pasted.txt", "one"])
    await page.evaluate(BROUGHT, ["drop", "dropped.txt", "two"])
    await expect(page.locator(".files li")).to_have_count(2)
    await page.focus("#text")
    await page.keyboard.press("Enter")
    await finished(page)
    await expect(page.locator(".person")).to_be_hidden()
    await expect(page.locator(".mine .file")).to_have_text(["⤓ pasted.txt", "⤓ dropped.txt"])
    await expect(page.locator("#list .title")).to_have_text("📎 pasted.txt 📎 dropped.txt")


async def test_a_picture_that_was_sent_is_seen_where_it_was_said_also_later(
    browser: Browser, up: Serving, tmp_path: Path
):
    page = await opened(browser, up.url)
    picture = tmp_path / "red dot.png"
    picture.write_bytes(PICTURE_BYTES)
    fetched: list[str] = []
    page.on("response", lambda response: fetched.append(response.url) if response.url.endswith("/files/0") else None)
    await chosen(page, picture)
    await say(page, "what is this?")
    await finished(page)
    for _ in range(2):
        await page.locator(".mine .file").scroll_into_view_if_needed()
        await expect(page.get_by_role("img", name="red dot.png")).to_be_visible()
        assert await page.evaluate("document.querySelector('.mine img').naturalWidth") > 0
        assert len(fetched) == 1, "it stays while its turn runs and ends"
        fetched.clear()
        await page.reload()
        await finished(page)
    async with page.expect_download() as stored:
        await page.get_by_role("button", name="⤓ red dot.png").click()
    assert Path(await (await stored.value).path()).read_bytes() == PICTURE_BYTES
    before = page.url
    await page.get_by_role("button", name="Branch").click()
    await expect(page).not_to_have_url(before)
    await finished(page)
    await page.locator(".mine .file").scroll_into_view_if_needed()
    await expect(page.get_by_role("img", name="red dot.png")).to_be_visible()


async def test_what_is_too_large_is_said_before_it_is_sent(browser: Browser, up: Serving, tmp_path: Path):
    page = await opened(browser, up.url)
    await expect(page.get_by_role("button", name="Attach files: 11.3 MB in all")).to_be_visible()
    large = tmp_path / "large.bin"
    large.write_bytes(b"x" * 12_000_000)
    await chosen(page, large)
    await expect(page.get_by_role("alert").filter(has_text="large.bin")).to_contain_text("is too large")
    await expect(page.locator(".files li")).to_have_count(0)


async def test_a_voice_is_recorded_attached_and_heard(up: Serving, tools: Path):
    heard = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *heard])
        page = await opened(browser, up.url, width=390, height=844)
        await page.get_by_role("button", name="Record your voice").click()
        stop = page.get_by_role("button", name="End the recording")
        await expect(stop.locator(".time")).to_have_text("0:02")
        assert await found_by_axe(page, tools) == []
        await shot(page, "recording")
        await stop.click()
        await expect(page.locator(".files li")).to_contain_text("voice.webm")
        await say(page, "transcribe this")
        await finished(page)
        await expect(page.locator(".person")).to_have_text("transcribe this")
        await expect(page.locator(".answer")).to_contain_text("what the rehearsal model hears: a sound of")
        await browser.close()


async def test_without_a_microphone_the_page_says_so(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.evaluate("() => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new Error('no')); }")
    await page.get_by_role("button", name="Record your voice").click()
    await expect(page.locator("#toast")).to_contain_text("does not let the page use a microphone")
    await expect(page.get_by_role("button", name="Record your voice")).to_be_visible()


COPIED = """(kinds) => {
  const data = new DataTransfer();
  for (const [kind, text] of kinds) data.setData(kind, text);
  data.items.add(new File(["not a picture"], "image.png", { type: "image/png" }));
  document.getElementById("text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""
CELLS = [["text/plain", "tea\t2"], ["text/html", "<table><tr><td>tea</td><td>2</td></tr></table>"]]


async def test_words_that_come_with_a_picture_of_themselves_are_pasted_as_words(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.evaluate(COPIED, CELLS)  # as spreadsheets and word processors copy
    await expect(page.locator(".files li")).to_have_count(0)
    await page.evaluate(COPIED, CELLS[1:])  # a picture of a web page, with the element that showed it
    await expect(page.locator(".files li")).to_have_count(1)
    await page.evaluate(COPIED, [["text/plain", "image.png"]])  # a file of a folder, with its name
    await expect(page.locator(".files li")).to_have_count(2)


async def test_a_file_that_is_still_on_its_way_from_one_tab_is_not_called_lost_by_another(
    browser: Browser, up: Serving, tmp_path: Path
):
    page = await opened(browser, up.url)
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)

    await page.route("**/messages", hold)
    (tmp_path / "notes.txt").write_text("milk")
    await chosen(page, tmp_path / "notes.txt")
    await say(page, "say what is in it")
    await expect(page.locator(".unsent .hint")).to_contain_text("Sending")
    other = await page.context.new_page()
    await other.goto(page.url)
    await say(other, "say second")
    await expect(other.locator(".unsent .hint")).to_have_count(2)
    await other.wait_for_timeout(700)  # it asks who has the file
    for tab in (page, other):
        await expect(tab.locator(".unsent .hint").first).to_contain_text("Sending")
    await held[0].continue_()
    for tab in (page, other):
        await finished(tab, 2)
        await expect(tab.locator(".person")).to_have_text(["say what is in it", "say second"])


async def test_a_file_that_cannot_be_read_any_more_is_named_and_keeps_nothing_else_from_being_sent(
    browser: Browser, up: Serving, tmp_path: Path
):
    page = await opened(browser, up.url)
    gone = tmp_path / "gone.txt"
    gone.write_text("something")
    await chosen(page, gone)
    gone.unlink()
    await say(page, "read this")
    hint = page.locator(".unsent .hint")
    await expect(hint).to_contain_text("gone.txt cannot be read any more.")
    await say(page, "hello")
    await finished(page)
    await hint.get_by_role("button", name="Edit").click()
    await expect(page.locator("#text")).to_have_value("read this")
    await page.get_by_role("button", name="Remove gone.txt").click()
    await page.locator("#text").press("Enter")
    await finished(page, 2)
    await expect(page.locator(".person")).to_have_text(["hello", "read this"])
