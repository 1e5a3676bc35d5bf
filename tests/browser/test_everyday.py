"""What people do with a chat page each day, where pages like it agree on how it goes: keys, times, trying again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from gateway.daemon import Serving
from tests.browser.test_attach import chosen
from tests.browser.test_conversations import two
from tests.browser.test_hostile_page import turn
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


LONG_CODE = "```python\n" + "".join(f"line_{n} = {n}  # a line of code\n" for n in range(600)) + "```\n\nThat was all."
RIGHTWARD = """> A quote

> - a list in it

| Name | Price |
|------|-------|
| tea | 2 |

1. First

   and more of it
"""
LEFTWARD = """> اقتباس

> - قائمة

| الاسم | السعر |
|------|-------|
| شاي | 2 |

1. أولا

   والمزيد
"""
TO_END = "(() => { const box = document.querySelector('#scroll'); return box.scrollHeight - box.scrollTop - box.clientHeight; })()"


async def answered(browser: Browser, url: str, text: str, locale: str = "en", turns: int = 1) -> Page:
    """The page with one answer, or with several."""

    async def told(route: Route) -> None:
        body = f"event: snapshot\ndata: {json.dumps([turn(n, text, final=True) for n in range(turns)])}\n\n"
        await route.fulfill(body=body, content_type="text/event-stream")

    context = await browser.new_context(viewport={"width": 1280, "height": 800}, locale=locale)
    page = await context.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    await page.route("**/events?changes=1", told)
    await page.goto(url)
    await expect(page.locator(".answer").last).to_be_visible()
    return page


async def test_the_end_stays_in_sight_while_what_is_above_it_grows_until_somebody_scrolls_up(
    browser: Browser, up: Serving
):
    page = await answered(browser, up.url, LONG_CODE)
    await expect(page.locator(".answer p")).to_be_in_viewport()
    assert await page.evaluate(TO_END) < 2
    grown = "document.querySelector('.answer').prepend(Object.assign(document.createElement('div'), { style: 'height: 900px' }))"
    await page.evaluate(grown)
    await expect(page.locator(".answer p")).to_be_in_viewport()
    await page.mouse.move(700, 300)
    await page.mouse.wheel(0, -400)
    await expect(page.locator(".answer p")).not_to_be_in_viewport()
    await page.evaluate(grown.replace("prepend", "append"))
    await page.wait_for_timeout(300)
    await expect(page.locator(".answer p")).not_to_be_in_viewport()
    assert await page.evaluate(TO_END) > 900


async def middle(box: Locator) -> float:
    found = await box.bounding_box()
    assert found is not None
    return found["x"] + found["width"] / 2


@pytest.mark.parametrize("locale", ["en", "ar"])
@pytest.mark.parametrize(("text", "way"), [(RIGHTWARD, "ltr"), (LEFTWARD, "rtl")], ids=["english", "arabic"])
async def test_lists_quotes_and_tables_go_the_way_of_their_words_whatever_the_pages_language(
    browser: Browser, up: Serving, text: str, way: str, locale: str
):
    page = await answered(browser, up.url, text, locale)
    answer = page.locator(".answer")
    for kind in ("blockquote", "blockquote ul", "table", "ol"):
        await expect(answer.locator(kind).first).to_have_css("direction", way)
    first, second = await middle(answer.locator("th").nth(0)), await middle(answer.locator("th").nth(1))
    assert (first < second) == (way == "ltr")


@pytest.mark.parametrize("locale", ["en", "ar"])
async def test_what_one_said_stands_at_the_end_of_the_line_with_its_buttons_in_every_language(
    browser: Browser, up: Serving, locale: str
):
    page = await answered(browser, up.url, "x", locale)

    async def edges(selector: str) -> tuple[float, float]:
        box = await page.locator(selector).first.bounding_box()
        assert box is not None
        return box["x"], box["x"] + box["width"]

    (words, buttons), whole = (await edges(".person"), await edges(".acts button:last-child")), await edges("#turns")
    side = 0 if locale == "ar" else 1
    assert words[side] == pytest.approx(whole[side], abs=1)
    assert buttons[side] == pytest.approx(whole[side], abs=10), "but for their own room"


async def test_a_picture_elsewhere_does_not_mix_its_words_with_those_of_the_page(browser: Browser, up: Serving):
    page = await answered(browser, up.url, "![A cat](https://pictures.example.org/cat.png)", "ar")
    link = page.locator("a.picture")
    await expect(link.locator("bdi")).to_have_text("A cat")
    await expect(page.locator(".answer p")).to_have_css("direction", "rtl")


async def test_what_is_begun_while_the_archive_is_shown_is_in_the_list(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await two(page)
    await page.click("#list li:has-text('apples') .more")
    await page.click("#archive")
    await page.get_by_role("button", name="Archived conversations").click()
    await expect(page.locator("#list a")).to_have_text(["first things about apples"])
    await page.keyboard.press("Control+Shift+O")
    await expect(page.locator("#list a")).to_have_count(1)
    await expect(page.locator("#list a")).to_contain_text("pears")
    await say(page, "third things")
    await finished(page)
    await expect(page.locator("#list a").first).to_have_text("third things")


async def test_what_the_page_says_does_not_cover_the_commands_it_offers(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.check("#temporary")
    await say(page, "hello")
    await finished(page)
    await page.click("#new")
    await page.fill("#text", "/")
    await expect(page.locator("#toast")).to_be_visible()
    await expect(page.locator("#menu")).to_be_visible()
    said, menu = await page.locator("#toast").bounding_box(), await page.locator("#menu").bounding_box()
    assert said is not None
    assert menu is not None
    assert said["y"] + said["height"] <= menu["y"]


async def test_a_phone_that_opens_the_list_is_not_given_its_keyboard(browser: Browser, up: Serving):
    context = await browser.new_context(viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True)
    page = await context.new_page()
    await page.goto(up.url)
    await page.tap("#drawer")
    await expect(page.locator("#search")).to_be_visible()
    await expect(page.locator("#search")).not_to_be_focused()


ENTER = """(code) => document.getElementById("text").dispatchEvent(
  new KeyboardEvent("keydown", { key: "Enter", keyCode: code, bubbles: true, cancelable: true }))"""


async def test_an_enter_that_belongs_to_the_input_method_sends_nothing_and_takes_no_command(
    browser: Browser, up: Serving
):
    page = await opened(browser, up.url)
    for written in ("日本", "/he"):
        await page.fill("#text", written)
        await page.evaluate(ENTER, 229)  # as Safari tells it: what was composed is over by then
        await expect(page.locator("#text")).to_have_value(written)
    await page.fill("#text", "日本")
    await page.evaluate(ENTER, 13)
    await finished(page)
    await expect(page.locator(".person")).to_have_text(["日本"])


async def test_what_is_printed_is_all_that_was_said_and_nothing_to_be_pressed(browser: Browser, up: Serving):
    page = await answered(browser, up.url, LONG_CODE)
    await page.emulate_media(media="print", color_scheme="dark")
    assert await page.evaluate("document.documentElement.scrollHeight") > 600 * 20, "and not one screen of it"
    for left in ("header", "#side", "#composer", ".acts button", ".codehead button"):
        await expect(page.locator(left).first).to_be_hidden()
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


async def test_a_text_with_odd_ends_of_lines_is_shown_as_any_other(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "say one\u2028two\u2029three\x85four")
    await finished(page)
    await expect(page.locator(".answer")).to_contain_text("three")
    await page.reload()
    await finished(page)
    await expect(page.locator(".person")).to_contain_text("three")


async def test_of_many_turns_those_far_away_are_not_laid_out_and_the_end_is_in_sight(browser: Browser, up: Serving):
    page = await answered(browser, up.url, "One line.\n\nAnd another one.", turns=120)
    turns = page.locator(".turn")
    await expect(turns).to_have_count(120)
    for place, laid in ((0, "auto"), (79, "auto"), (80, "visible"), (119, "visible")):
        await expect(turns.nth(place)).to_have_css("content-visibility", laid)
    await expect(turns.last.locator(".figures")).to_be_in_viewport()
    assert await page.evaluate(TO_END) < 2
    await page.mouse.move(700, 300)
    for _ in range(12):
        await page.mouse.wheel(0, -2000)
        await page.wait_for_timeout(30)
    await expect(turns.last).not_to_be_in_viewport()
    await turns.first.get_by_role("button", name="Edit").focus()
    await expect(turns.first).to_be_in_viewport()
