"""A browser for all tests that a process runs one after the other, and a gateway, new for each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from gateway.daemon import Serving
from tests.browser.test_page import CHROMIUM, FLAGS
from tests.serving import served

expect.set_options(timeout=60_000)  # a busy machine is no defect of a page


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def chromium() -> AsyncGenerator[Browser]:
    """To start one takes longer than most tests."""
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        await made.close()


@pytest_asyncio.fixture(loop_scope="package")
async def browser(chromium: Browser) -> AsyncGenerator[Browser]:
    """Without anything of an earlier test: its pages would look for their gateway for ever."""
    yield chromium
    for context in chromium.contexts:
        await context.close()


@pytest_asyncio.fixture(loop_scope="package")
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path) as serving:
        yield serving
