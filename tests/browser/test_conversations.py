"""Conversations of the page: several, found again, named, deleted, written out; each person's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.daemon import Serving
from tests.browser.test_for_everybody import found_by_axe
from tests.browser.test_for_everybody import tools as tools
from tests.browser.test_page import finished, opened, say, shot
from tests.browser.test_page import pytestmark as pytestmark
from tests.gateway.test_keys import add
from tests.serving import served


async def two(page: Page) -> None:
    """Two conversations."""
    await say(page, "first things about apples")
    await finished(page)
    await page.click("#new")
    await expect(page.locator("#welcome")).to_be_visible()
    await say(page, "second things about pears")
    await finished(page)
    await expect(page.locator("#list li:not(.when)")).to_have_count(2)
    await expect(page.locator("#list li.when")).to_have_text(["Today"])


async def test_a_new_conversation_replaces_none_and_the_address_names_each(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await two(page)
    assert re.search(r"#c-[0-9a-f]{32}$", page.url)
    await shot(page, "conversations-desktop")
    await page.click("#list a:has-text('apples')")
    await expect(page.locator(".person")).to_have_text("first things about apples")
    await expect(page).to_have_title("first things about apples – outspoken")
    other = await page.context.new_page()
    await other.goto(page.url)
    await expect(other.locator(".person")).to_have_text("first things about apples")
    await other.click("#list a:has-text('pears')")
    await expect(other.locator(".person")).to_have_text("second things about pears")
    await expect(page.locator(".person")).to_have_text("first things about apples")
    await page.go_back()
    await expect(page.locator(".person")).to_have_text("second things about pears")


async def test_one_is_found_by_its_texts_renamed_pinned_and_deleted(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await two(page)
    await page.fill("#search", "APPLES first")
    await expect(page.locator("#list li:not(.when)")).to_have_count(1)
    await page.click("#list .more")
    await page.fill("#settingstitle", "Orchard")
    await shot(page, "conversation-settings")
    await page.keyboard.press("Enter")
    await expect(page.locator("#list li:not(.when)")).to_contain_text("Orchard")
    await expect(page.locator("#list small")).to_contain_text("apples")  # the title says nothing of them now
    await page.fill("#search", "")
    await expect(page.locator("#list li:not(.when)")).to_have_count(2)
    await page.click("#list li:has-text('Orchard') .more")
    await page.click("#pin")
    await expect(page.locator("#list li:not(.when)").first).to_contain_text("Orchard")
    await expect(page.locator("#list li:not(.when)").first).to_contain_text("pinned")
    await page.reload()
    await expect(page.locator("#list li:not(.when)").first).to_contain_text("Orchard")
    await page.click("#list li:has-text('Orchard') .more")
    await page.click("#delete")
    await expect(page.locator("#sure")).to_contain_text("cannot be undone")
    await page.click("#really")
    await expect(page.locator("#list li:not(.when)")).to_have_count(1)
    await expect(page.locator("#toast")).to_contain_text("“Orchard” is deleted")


async def test_one_is_exported_to_keep(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "write notes.txt: buy milk and then read notes.txt")
    await finished(page)
    for link, found in (
        ("#asmarkdown", "## You\n\nwrite notes.txt: buy milk"),
        ("#asjson", '"object":"outspoken.export"'),
    ):
        await page.click("#list .more")
        async with page.expect_download() as download:
            await page.click(link)
        text = Path(await (await download.value).path()).read_text()
        assert found in text
        assert "buy milk" in text


async def test_what_was_said_in_one_browser_is_not_seen_in_another_where_one_key_is_for_all(
    browser: Browser, up: Serving
):
    page = await opened(browser, up.url)
    await say(page, "a secret of mine")
    await finished(page)
    other = await opened(browser, page.url)
    await expect(other.locator("#listwords")).to_have_text("Conversations appear here.")
    await expect(other.locator("#welcome")).to_be_visible()
    await expect(page.locator("#list li:not(.when)")).to_have_count(1)


async def test_a_person_with_a_key_has_the_same_conversations_everywhere(browser: Browser, tmp_path: Path):
    async with served(tmp_path) as up:
        key = await add(up.url, "anna", owner="anna")

        async def entered(given: str) -> Page:
            context = await browser.new_context()
            await context.add_init_script(f"localStorage.setItem('outspoken.key', '{given}')")
            page = await context.new_page()
            await page.goto(up.url)
            await expect(page.locator("#banner")).to_contain_text("Rehearsal")
            return page

        page = await entered(key)
        for words in ("of anna", "more of anna"):
            await say(page, words)
            await expect(page.locator(".person").last).to_have_text(words)
        await finished(page, 2)
        phone = await entered(key)
        await phone.click("#list a")
        await expect(phone.locator(".person").first).to_have_text("of anna")
        stranger = await entered("")
        await expect(stranger.locator("#listwords")).to_have_text("Conversations appear here.")


async def test_what_waits_to_be_sent_is_sent_from_wherever_one_is(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.context.set_offline(True)
    await say(page, "written offline")
    await expect(page.locator(".unsent .hint")).to_contain_text("Sending")
    await page.click("#new")
    await say(page, "and another")
    await page.context.set_offline(False)
    await finished(page)
    await expect(page.locator("#list li:not(.when)")).to_have_count(2)
    await page.click("#list a:has-text('written offline')")
    await finished(page)
    await expect(page.locator(".person")).to_have_count(1)


async def test_on_a_phone_the_list_is_behind_a_button(browser: Browser, up: Serving):
    page = await opened(browser, up.url, width=390, height=844, dark=True)
    await say(page, "hello")
    await finished(page)
    await expect(page.locator("#side")).to_be_hidden()
    await page.click("#drawer")
    await expect(page.locator("#search")).to_be_focused()
    await page.wait_for_timeout(300)
    await shot(page, "conversations-phone-dark")
    await page.keyboard.press("Escape")
    await expect(page.locator("#side")).to_be_hidden()
    await expect(page.locator("#drawer")).to_be_focused()


@pytest.mark.parametrize(("width", "locale"), [(1280, "en"), (390, "ar")])
async def test_a_temporary_one_is_gone_when_it_is_left_or_the_page_is_closed(
    browser: Browser, up: Serving, width: int, locale: str
):
    context = await browser.new_context(viewport={"width": width, "height": 844}, locale=locale)
    page = await context.new_page()
    await page.goto(up.url)
    await expect(page.locator("#welcome")).to_be_visible()
    await page.fill("#text", "hello")
    await page.check("#temporary")
    await expect(page.locator("#text")).to_have_value("hello")
    assert re.search(r"#c-t-[0-9a-f]{24}$", page.url)
    await shot(page, f"temporary-begins-{width}")
    await page.locator("#text").press("Enter")
    await finished(page)
    await expect(page.locator("#passing")).to_be_visible()
    await shot(page, f"temporary-{width}")
    await expect(page.locator("#list a")).to_have_count(0)
    left = page.url
    await page.click("#new")
    await expect(page.locator("#passing")).to_be_hidden()
    await expect(page.locator("#toast")).to_be_visible()
    assert await there(page, left) == 404
    await page.check("#temporary")
    await say(page, "hello again")
    await finished(page)
    left = page.url
    await page.reload()
    await expect(page.locator("#welcome")).to_be_visible()
    assert "#c-t-" not in page.url
    for _ in range(100):
        if await there(page, left) == 404:
            break
        await page.wait_for_timeout(100)
    assert await there(page, left) == 404
    kept = await page.evaluate("JSON.stringify(localStorage)")
    assert "c-t-" not in kept


async def there(page: Page, address: str) -> int:
    """What the gateway says of a conversation that somebody wants to have written out."""
    name = address.rpartition("#")[2]
    return await page.evaluate(
        """async (name) => (await fetch(`/api/conversations/${name}/export`, { headers: { "X-Outspoken-Browser": JSON.parse(localStorage["outspoken.browser"]) } })).status""",
        name,
    )


@pytest.mark.parametrize(("width", "locale", "dark"), [(1280, "en", False), (390, "ar", True)])
async def test_one_is_shown_to_others_by_a_link_until_it_is_withdrawn(
    browser: Browser, up: Serving, tools: Path, width: int, locale: str, dark: bool
):
    context = await browser.new_context(
        viewport={"width": width, "height": 844}, locale=locale, color_scheme="dark" if dark else "light"
    )
    page = await context.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    await page.goto(up.url)
    await expect(page.locator("#welcome")).to_be_visible()
    await say(page, "write notes.txt: buy milk and then read notes.txt")
    await finished(page)
    await expect(page.locator("#list a")).to_have_count(1)
    if width < 800:
        await page.click("#drawer")
    await page.click("#list .more")
    await page.click("#share")
    await expect(page.locator("#sharewords")).not_to_be_empty()
    assert await found_by_axe(page, tools) == []
    await page.click("#sharemake")
    await expect(page.locator("#address")).to_be_focused()
    link = await page.input_value("#address")
    assert link.startswith(f"{up.url}/shared#")
    await expect(page.locator("#list small")).to_have_count(1)
    assert await found_by_axe(page, tools) == []
    await shot(page, f"share-{width}")

    reader = await (
        await browser.new_context(
            viewport={"width": width, "height": 844}, locale=locale, color_scheme="dark" if dark else "light"
        )
    ).new_page()
    reader.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    await reader.goto(link)
    await expect(reader.locator(".person")).to_have_text("write notes.txt: buy milk and then read notes.txt")
    await expect(reader.locator(".answer pre code")).to_have_text("buy milk")
    await reader.locator(".steps summary").first.click()
    await expect(reader.locator(".activity").first).to_contain_text("write_file")
    await expect(reader.locator(".activity .args").first).to_be_empty()
    await expect(reader.locator("textarea, .foot, #list")).to_have_count(0)
    await expect(reader.get_by_role("button", name="Edit")).to_have_count(0)
    assert await reader.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await found_by_axe(reader, tools) == []
    secret = link.rpartition(".")[2]
    assert not [url for url in asked if secret in url.partition("#")[0]]
    await shot(reader, f"shared-{width}")

    await page.click("#withdraw")
    await expect(page.locator("#address")).to_be_hidden()
    await expect(page.locator("#list small")).to_have_count(0)
    await reader.reload()
    await expect(reader.locator("#words")).not_to_be_empty()
    await expect(reader.locator(".turn")).to_have_count(0)
    assert await found_by_axe(reader, tools) == []


async def test_a_reader_shows_a_key_where_links_are_for_people_and_is_asked_for_none_where_they_are_for_anyone(
    browser: Browser, tmp_path: Path
):
    env = {"OUTSPOKEN_SERVER__API_KEY": "sesame-sesame"}
    for opens in ("people", "anyone"):
        async with served(tmp_path, env | {"OUTSPOKEN_SERVER__SHARE_LINKS": opens}) as up:
            page = await browser.new_page()
            await page.goto(up.url)
            await page.fill("#key", "sesame-sesame")
            await page.keyboard.press("Enter")
            await say(page, "write a.py: print(1) and then read a.py")
            await finished(page)
            await page.click("#list .more")
            await page.click("#share")
            await page.click("#sharemake")
            await expect(page.locator("#address")).to_be_visible()
            link = await page.input_value("#address")
            reader = await (await browser.new_context()).new_page()
            await reader.goto(link)
            if opens == "people":
                await expect(reader.locator("#keydialog")).to_be_visible()
                await expect(reader.locator(".turn")).to_have_count(0)
                await reader.fill("#key", "sesame-sesame")
                await reader.keyboard.press("Enter")
            await expect(reader.locator(".turn")).to_have_count(1)
            await reader.wait_for_timeout(500)
            await expect(reader.locator("#keydialog")).to_be_hidden()
            await page.context.close()
            await reader.context.close()


async def test_the_list_says_of_the_conversation_that_is_shown_what_it_does_now(browser: Browser, up: Serving):
    """It was asked for when a message had been sent, and again at the answer's end: so it said "waits" all the while."""
    page = await opened(browser, up.url)
    await say(page, "count to 200 slowly")
    row = page.locator("#list li.current")
    await expect(row.locator(".busy")).to_have_text("at work")
    await expect(row.locator(".title")).to_have_text("count to 200 slowly")
    await page.click("#stop")
    await expect(row.locator(".busy")).to_have_count(0)


SEEN = """(seen) => {
  Object.defineProperty(document, "hidden", { get: () => !seen, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def test_a_tab_that_nobody_sees_keeps_no_connection_and_has_all_that_was_said_when_it_is_seen(
    browser: Browser, up: Serving
):
    """A browser opens six connections to one server, for all of its tabs: the seventh would not even load."""
    page = await opened(browser, up.url)
    await page.clock.install()
    await say(page, "hello")
    await finished(page)
    async with page.expect_event("requestfailed", lambda request: "/events" in request.url):
        await page.evaluate(SEEN, False)
        await page.clock.fast_forward(11_000)
    other = await page.context.new_page()
    await other.goto(page.url)
    await say(other, "more")
    await finished(other, 2)
    await expect(page.locator("#link")).to_be_empty()
    await finished(page, 1)
    await page.evaluate(SEEN, True)
    await finished(page, 2)


async def test_a_conversation_that_is_deleted_is_gone_from_every_tab(browser: Browser, up: Serving):
    """What is shown is what the model is told: nothing of it any more."""
    page = await opened(browser, up.url)
    await say(page, "hello")
    await finished(page)
    other = await page.context.new_page()
    await other.goto(page.url)
    await finished(other)
    await page.click("#list .more")
    await page.click("#delete")
    await page.click("#really")
    await expect(other.locator("#welcome")).to_be_visible()
    await expect(other.locator(".turn")).to_have_count(0)
    await expect(other.locator("#list a")).to_have_count(0)
    await say(other, "say again")
    await finished(other)
    await expect(other.locator(".person")).to_have_text(["say again"])


TOLD = """
  window.told = [];
  window.Notification = class { static permission = "granted"; };
  const shown = { showNotification: (title, { body }) => told.push(body) };
  Object.defineProperty(navigator.serviceWorker, "ready", { value: Promise.resolve(shown) });
"""


async def test_who_wants_to_be_told_of_answers_is_told_of_one_that_came_while_nothing_was_connected(
    browser: Browser, up: Serving
):
    page = await (await browser.new_context()).new_page()
    await page.add_init_script(TOLD)
    await page.clock.install()
    await page.goto(up.url)
    await say(page, "say one")
    await finished(page)
    async with page.expect_event("requestfailed", lambda request: "/events" in request.url):
        await page.evaluate(SEEN, False)
        await page.clock.fast_forward(11_000)
    other = await page.context.new_page()
    await other.goto(page.url)
    await say(other, "say two")
    await finished(other, 2)
    assert await page.evaluate("told") == []
    async with page.expect_response(lambda response: "/events" in response.url):
        await page.clock.fast_forward(16_000)
    await finished(page, 2)
    [said] = await page.evaluate("told")
    assert "say two" in said
    async with page.expect_event("requestfailed", lambda request: "/events" in request.url):
        await page.clock.fast_forward(3_000)


RENAME = """async ([href, title]) => {
  const browser = JSON.parse(localStorage["outspoken.browser"]);
  const headers = { "Content-Type": "application/json", "X-Outspoken-Browser": browser };
  await fetch(`/api/conversations/${href.slice(1)}`, { method: "POST", headers, body: JSON.stringify({ title }) });
  dispatchEvent(new Event("focus"));
}"""
"""As another tab does, and this one looks when somebody comes back to it."""


async def test_whoever_goes_by_keys_stays_at_a_conversation_that_is_drawn_anew_or_put_elsewhere(
    browser: Browser, up: Serving
):
    page = await opened(browser, up.url)
    await two(page)
    apples = page.locator("#list li").filter(has_text="apples")
    await apples.locator(".more").press("Enter")
    await page.evaluate(RENAME, [await apples.locator("a").get_attribute("href"), "Ripe apples"])
    await expect(page.locator("#list .title")).to_have_text(["second things about pears", "Ripe apples"])
    await page.keyboard.press("Escape")
    await expect(apples.locator(".more")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.locator("#pin").press("Enter")
    await expect(page.locator("#list .title")).to_have_text(["Ripe apples", "second things about pears"])
    await expect(apples.locator(".more")).to_be_focused()
    await apples.locator("a").press("Enter")
    await expect(apples).to_have_class("current")
    await expect(page.locator("#list [aria-current]")).to_have_count(1)
    await expect(apples.locator("a")).to_be_focused()
