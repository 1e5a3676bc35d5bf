"""A question for approval on the page: what would change, and who may decide."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser, expect

from tests.browser.test_conversations import SEEN, TOLD
from tests.browser.test_for_everybody import found_by_axe
from tests.browser.test_for_everybody import tools as tools
from tests.browser.test_page import finished, opened, say, shot
from tests.browser.test_page import pytestmark as pytestmark
from tests.serving import served

ASKS = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}


async def test_what_would_become_of_a_file_is_seen_line_by_line(browser: Browser, tmp_path: Path, tools: Path):
    async with served(tmp_path, ASKS, patient=True) as up:
        page = await opened(browser, up.url)
        await say(page, "write a.txt: milk\tand <b>bread</b>")
        await expect(page.locator(".approval .diff .more")).to_have_text("+milk\tand <b>bread</b>\n")
        await expect(page.locator(".approval .asked").first).to_contain_text('path: "a.txt"')
        await expect(page.locator(".approval .asked").last).to_contain_text("left to decide; then the answer ends")
        await expect(page.locator(".approval")).not_to_contain_text("Decide within")
        assert await found_by_axe(page, tools) == []
        await shot(page, "approval-diff")
        await page.get_by_role("button", name="Approve", exact=True).click()
        await finished(page)
        await say(page, "write a.txt: eggs")
        await expect(page.locator(".approval .diff .less")).to_have_text("-milk\tand <b>bread</b>\n")
        await page.get_by_role("button", name="Deny").click()
        await finished(page, 2)


async def test_where_whoever_asked_may_not_decide_the_page_says_who_may(browser: Browser, tmp_path: Path):
    async with served(tmp_path, {**ASKS, "OUTSPOKEN_TOOLS__APPROVERS": "admins"}, patient=True) as up:
        page = await opened(browser, up.url)
        await say(page, "write a.txt: milk")
        approve = page.get_by_role("button", name="Approve", exact=True)
        await approve.click()
        await expect(page.locator(".approval .wrong")).to_have_text("Only an admin may decide that. It still waits.")
        await expect(approve).to_be_enabled()
        await page.wait_for_timeout(6_000)  # the question is drawn anew as its time goes by
        await expect(page.locator(".approval .wrong")).to_have_text("Only an admin may decide that. It still waits.")
    assert not list(tmp_path.rglob("a.txt"))


async def test_a_question_whose_time_runs_keeps_the_place_of_whoever_decides_it_by_keys(
    browser: Browser, tmp_path: Path
):
    async with served(tmp_path, {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}) as up:
        page = await opened(browser, up.url)
        await say(page, "write notes.txt: milk")
        approve = page.get_by_role("button", name="Approve", exact=True)
        await approve.focus()
        await expect(page.locator(".approval")).to_contain_text("9 min 5")
        begun = await page.locator(".approval .asked").last.text_content()
        await expect(page.locator(".approval .asked").last).not_to_have_text(begun or "")
        await expect(approve).to_be_focused()
        await page.keyboard.press("Enter")
        await finished(page)
        await expect(page.locator("#text")).to_be_focused()
        await say(page, "count to 150 slowly")
        await page.locator("#stop").press("Enter")
        await finished(page, 2)
        await expect(page.locator("#text")).to_be_focused()
        await page.locator("#list .more").press("Enter")
        await page.fill("#settingstitle", "Shopping")
        await page.keyboard.press("Enter")
        await expect(page.locator("#list .title")).to_have_text("Shopping")
        await expect(page.locator("#list .more")).to_be_focused()


async def test_the_lines_of_a_diff_begin_with_their_signs_in_a_language_from_right_to_left(
    browser: Browser, tmp_path: Path
):
    async with served(tmp_path, ASKS, patient=True) as up:
        page = await browser.new_page(locale="ar")
        await page.goto(up.url)
        await say(page, "write a.txt: milk")
        await expect(page.locator(".approval")).to_have_css("direction", "rtl")
        await expect(page.locator(".approval .diff")).to_have_css("direction", "ltr")


async def test_who_wants_to_be_told_is_told_that_a_tool_waits_for_a_decision(browser: Browser, tmp_path: Path):
    async with served(tmp_path, ASKS, patient=True) as up:
        page = await browser.new_page()
        await page.add_init_script(TOLD)
        await page.goto(up.url)
        await say(page, "say something")
        await finished(page)
        await page.evaluate(SEEN, False)
        await say(page, "write a.txt: milk")
        await expect(page.locator(".approval")).to_be_visible()
        [said] = await page.evaluate("told")
        assert 'May I write "a.txt"' in said
