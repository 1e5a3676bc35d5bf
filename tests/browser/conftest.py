"""A browser and a gateway, new for each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser, async_playwright, expect

from gateway.daemon import Serving
from tests.browser.test_page import CHROMIUM, FLAGS
from tests.serving import served

expect.set_options(timeout=60_000)  # a busy machine is no defect of a page


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        await made.close()


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path) as serving:
        yield serving
