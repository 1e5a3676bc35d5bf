"""The moving picture of the README: what `make run` shows, taken from a Chromium that looks at the program.

``python -m tests.browser.film`` writes ``docs/images/make-run.png`` anew (an animated PNG, which every browser shows).
The program is started as a person starts it, without settings; a screen is taken five times a second, and one that is as the one
before only makes that one last longer. Nothing is cut out and nothing is sped up.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, async_playwright, expect

from tests.browser.test_page import CHROMIUM, FLAGS
from tests.docs.pages import ROOT
from tests.ports import free_port

PICTURE = ROOT / "docs" / "images" / "make-run.png"
WIDTH, HEIGHT = 720, 560
EVERY_SECONDS = 0.2
READY_SECONDS = 60.0
LAST_SECONDS = 4.0
"""The end stays for so long before it begins again."""

Frame = tuple[bytes, float]
"""A screen as PNG, and when it was taken."""


async def taken(page: Page, frames: list[Frame], over: asyncio.Event) -> None:
    """Look until it is over."""
    while not over.is_set():
        began = time.monotonic()
        frames.append((await page.screenshot(caret="hide"), began))
        await asyncio.sleep(max(0.0, EVERY_SECONDS - (time.monotonic() - began)))


async def shown(page: Page) -> None:
    """What somebody does who tries it for the first time."""
    await page.wait_for_timeout(1_500)
    await page.fill("#text", "write notes.txt: buy milk and then read notes.txt")
    await page.wait_for_timeout(800)
    await page.keyboard.press("Enter")
    await expect(page.locator(".figures")).to_have_count(1, timeout=60_000)
    await page.wait_for_timeout(1_500)
    await page.fill("#text", "rehearse stall in tool call")
    await page.wait_for_timeout(600)
    await page.keyboard.press("Enter")
    await expect(page.locator(".mended").last).to_contain_text("recovered", timeout=120_000)
    await expect(page.locator(".figures")).to_have_count(2, timeout=60_000)


async def filmed(url: str) -> list[Frame]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = await browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        await page.goto(url)
        await expect(page.locator("#banner")).to_contain_text("Rehearsal")
        frames: list[Frame] = []
        over = asyncio.Event()
        camera = asyncio.create_task(taken(page, frames, over))
        try:
            await shown(page)
            await page.wait_for_timeout(500)
        finally:
            over.set()
            await camera
        await browser.close()
    return frames


def put_together(frames: list[Frame], target: Path) -> None:
    """One file; what looks as the frame before lasts longer instead of being there twice."""
    images: list[Image.Image] = []
    milliseconds: list[int] = []
    before = b""
    ends = [at for _, at in frames[1:]] + [frames[-1][1] + LAST_SECONDS]
    for (picture, at), end in zip(frames, ends, strict=True):
        lasts = round((end - at) * 1000)
        if picture == before:
            milliseconds[-1] += lasts
            continue
        before = picture
        images.append(Image.open(BytesIO(picture)).convert("RGB"))
        milliseconds.append(lasts)
    images[0].save(target, save_all=True, append_images=images[1:], duration=milliseconds, loop=0, optimize=True)


def ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def main() -> None:
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "OUTSPOKEN_SERVER__PORT": str(port)}
        with (Path(home) / "log").open("wb") as log:
            program = subprocess.Popen(
                [sys.executable, "-m", "gateway", "run"], cwd=ROOT, env=env, stdout=log, stderr=log
            )
        try:
            until = time.monotonic() + READY_SECONDS
            while not ready(f"http://127.0.0.1:{port}"):
                assert program.poll() is None, (Path(home) / "log").read_text("utf-8")
                assert time.monotonic() < until, "it did not get ready"
                time.sleep(0.1)
            frames = asyncio.run(filmed(f"http://127.0.0.1:{port}"))
        finally:
            program.terminate()
            program.wait(60)
    put_together(frames, PICTURE)
    print(f"{PICTURE.name}: {len(frames)} screens, {PICTURE.stat().st_size // 1024} KiB", file=sys.stderr)


if __name__ == "__main__":
    main()
