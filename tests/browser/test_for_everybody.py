"""The page for everybody: what comes is said aloud, each trouble is a sentence, and the keyboard reaches all of it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from gateway.daemon import Serving
from tests.browser.test_page import finished, opened, say, shot
from tests.browser.test_page import pytestmark as pytestmark
from tests.serving import served

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build" / "page-tools"
"""axe and TypeScript, as npm has them; made when they are first needed."""
UNTYPED = ("attach.js",)
"""Scripts that say nothing of their types."""
PACKAGES = ("axe-core@4.14.1", "typescript@5.9.3")


@pytest.fixture(scope="session")
def tools() -> Path:
    npm = shutil.which("npm")
    if npm is None and not os.environ.get("CI"):
        pytest.skip("no npm on this machine")
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of tests want them at once
        if not (TOOLS / "installed").exists():
            assert npm is not None
            subprocess.run([npm, "install", "--no-audit", "--no-fund", "--prefix", str(TOOLS), *PACKAGES], check=True)
            (TOOLS / "installed").touch()
    return TOOLS / "node_modules"


async def test_the_types_of_the_scripts_fit(tools: Path):
    page = ROOT / "adapters" / "http" / "webpage"
    scripts = sorted(str(path) for path in page.glob("*.js") if path.name not in UNTYPED)
    told = await asyncio.create_subprocess_exec(
            str(tools / ".bin" / "tsc"), "--allowJs", "--checkJs", "--noEmit", "--strict", "--target", "es2022", "--module", "es2022",
            "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable,dom.asynciterable", *scripts,
            stdout=subprocess.PIPE,
    )  # fmt: skip
    said, _ = await told.communicate()
    complaints = [line for line in said.decode().splitlines() if not line.startswith(" ")]
    assert [line for line in complaints if not any(f"webpage/{name}" in line for name in UNTYPED)] == []


async def found_by_axe(page: Page, tools: Path) -> list[str]:
    """What axe finds, in words."""
    await page.evaluate((tools / "axe-core" / "axe.min.js").read_text())
    return await page.evaluate(
        """async () => (await axe.run(document)).violations.map((one) => `${one.id}: ${one.nodes.map((n) => n.html).join(" | ")}`)"""
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_axe_finds_nothing(browser: Browser, up: Serving, tools: Path, width: int, dark: bool):
    page = await opened(browser, up.url, width=width, height=844, dark=dark)
    assert await found_by_axe(page, tools) == []
    await say(page, "write a long answer")
    await finished(page)
    await say(page, "rehearse stall in tool call forever")
    await expect(page.locator(".notice")).to_be_visible()
    await page.locator(".notice").get_by_role("button", name="Why?").click()
    await expect(page.locator(".why li").first).to_be_visible()
    assert await found_by_axe(page, tools) == []
    await shot(page, f"notice-{width}-{'dark' if dark else 'light'}")
    if width < 800:
        await page.click("#drawer")
    await page.click("#list .more")
    await page.click("#delete")
    assert await found_by_axe(page, tools) == []
    await shot(page, f"delete-{width}-{'dark' if dark else 'light'}")


async def test_axe_finds_nothing_in_a_console_in_which_nothing_has_happened(browser: Browser, up: Serving, tools: Path):
    page = await browser.new_page()
    await page.goto(f"{up.url}/console")
    for view in ("turns", "sessions", "incidents", "outbox", "adapters", "spend", "exits", "audit"):
        await page.evaluate(f"location.hash = {view!r}")
        await expect(page.locator("nav [aria-current]")).to_contain_text(view.capitalize())
        assert await found_by_axe(page, tools) == [], view


async def test_answers_and_stalls_are_said_aloud(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    live = page.locator("#live")
    await say(page, "rehearse stall in tool call")
    await finished(page)
    await expect(live).to_contain_text("Answer: page.html is written, in two pieces")
    await expect(live).to_contain_text("Trying again")


async def test_a_stall_that_was_mended_says_how_and_why(browser: Browser, tmp_path: Path):
    async with served(tmp_path, patient=True) as up:
        page = await opened(browser, up.url)
        await say(page, "rehearse stall in tool call")
        await expect(page.locator(".figures")).to_have_count(1, timeout=60_000)
        await asked_why(page)


async def asked_why(page: Page) -> None:
    mended = page.locator(".mended").first
    await mended.get_by_role("button", name="Why?").click()
    await expect(mended.locator(".why li").first).to_contain_text("Turn")


async def test_what_was_opened_and_selected_stays_while_an_answer_grows(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await say(page, "list files")
    await finished(page)
    await page.locator(".steps summary").first.click()
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('.person'))")
    await say(page, "count to 120 slowly")
    await expect(page.locator(".partial")).to_contain_text("5, 6")
    assert await page.evaluate("getSelection().toString()") in ("list files", "")
    assert await page.locator("details.steps").first.evaluate("(box) => box.open")
    await page.locator(".person").last.evaluate("(box) => getSelection().selectAllChildren(box)")
    await finished(page, 2)
    assert await page.evaluate("getSelection().toString()") == "count to 120 slowly"


async def test_a_browser_that_keeps_nothing_is_told_so_and_the_page_works(browser: Browser, up: Serving):
    context = await browser.new_context()
    await context.add_init_script(
        "for (const name of ['localStorage', 'sessionStorage']) "
        "Object.defineProperty(window, name, { get() { throw new DOMException('blocked', 'SecurityError'); } })"
    )
    page = await context.new_page()
    await page.goto(up.url)
    await expect(page.locator("#storage")).to_contain_text("keeps nothing for this page")
    await say(page, "hello")
    await finished(page)


async def test_without_a_clipboard_the_text_is_copied_all_the_same_or_a_sentence_says_how(
    browser: Browser, up: Serving
):
    page = await opened(browser, up.url)
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    await say(page, "hello")
    await finished(page)
    copy = page.locator(".acts button").first
    await copy.click()
    await expect(copy).to_have_text("Copied")
    await page.evaluate("document.execCommand = () => false")
    await expect(copy).to_have_text("Copy")
    await copy.click()
    await expect(page.locator("#toast")).to_contain_text("The text is selected")
    assert await page.evaluate("getSelection().toString()") == "hello"


async def test_escape_in_the_question_for_a_key_leaves_a_sentence_and_a_way_back(browser: Browser, tmp_path: Path):
    async with served(tmp_path, {"OUTSPOKEN_SERVER__API_KEY": "sesame-sesame"}) as up:
        page = await (await browser.new_context()).new_page()
        await page.goto(up.url)
        await expect(page.locator("#keydialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#keyless")).to_contain_text("Without a key")
        await say(page, "kept until there is a key")
        await page.click("#keyagain")
        await page.fill("#key", "sesame-sesame")
        await page.keyboard.press("Enter")
        await finished(page)
        await expect(page.locator("#keyless")).to_be_hidden()


async def test_who_is_signed_out_at_a_proxy_is_told_so_and_asked_for_no_key(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.route(
        "**/messages", lambda route: route.fulfill(status=401, content_type="text/html", body="<h1>No</h1>")
    )
    await say(page, "kept until I am back")
    await expect(page.locator("#signedout")).to_contain_text("Load the page again to sign in")
    await expect(page.locator("#keydialog")).to_be_hidden()
    await page.unroute("**/messages")
    await page.click("#signin")
    await finished(page)
    await expect(page.locator("#signedout")).to_be_hidden()
    await expect(page.locator("#turns .person")).to_contain_text("kept until I am back")


async def test_a_connection_that_is_gone_is_told_also_where_what_is_followed_does_not_know_it(
    browser: Browser, up: Serving
):
    context = await browser.new_context(viewport={"width": 360, "height": 740})
    page = await context.new_page()
    await page.goto(up.url)
    await say(page, "hello")
    await finished(page)
    await context.set_offline(True)
    await say(page, "later")
    await expect(page.locator("#link")).to_contain_text("Connection lost")
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    await context.set_offline(False)
    await expect(page.locator("#link")).to_be_empty()
    await finished(page, 2)


async def test_a_machine_without_a_network_still_reaches_a_gateway_of_its_own(browser: Browser, up: Serving):
    page = await opened(browser, up.url)
    await page.evaluate(
        "() => { Object.defineProperty(navigator, 'onLine', { get: () => false }); dispatchEvent(new Event('offline')); }"
    )
    await say(page, "hello")
    await finished(page)
    await page.wait_for_timeout(2500)  # longer than a connection may be gone before it is told
    await expect(page.locator("#link")).to_be_empty()


async def test_a_phone_has_room_to_write_and_cuts_no_word_of_the_header(browser: Browser, up: Serving):
    context = await browser.new_context(viewport={"width": 360, "height": 740}, locale="de-DE")
    page = await context.new_page()
    await page.goto(up.url)
    box = await page.locator("#text").bounding_box()
    assert box is not None
    assert box["width"] > 150
    await page.get_by_role("button", name="Neue Unterhaltung", exact=True).click()
    cut = "one => one.scrollWidth > one.clientWidth"
    assert not await page.locator("#new").evaluate(cut)
