"""No dead link: files and anchors within, form without. Every page is in the site, and the site can be built."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from tests.docs.pages import ROOT, Page, pages, read, slug

DOCS = ROOT / "docs"


def problem(page: Page, target: str) -> str:
    """What is wrong with a link; empty if nothing is."""
    parts = urlsplit(target)
    if parts.scheme in {"http", "https"}:
        sound = re.fullmatch(r"[\w.-]+(:\d+)?", parts.netloc) and " " not in target
        return "" if sound else "is no address"
    if parts.scheme:
        return "" if parts.scheme == "mailto" else f"has an unknown scheme {parts.scheme}"
    file = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    if not file.is_relative_to(DOCS if page.path.is_relative_to(DOCS) else ROOT):
        return "leads out of the site, or of the project"
    if not file.exists():
        return "is not there"
    if parts.fragment and (file.suffix != ".md" or parts.fragment not in read(file).anchors):
        return "has no such heading"
    return ""


def test_no_link_is_dead() -> None:
    dead = [
        f"{page.name}:{line}: {target} {words}"
        for page in pages()
        for line, target in page.links
        if (words := problem(page, target))
    ]
    assert not dead, "\n".join(dead)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("setup.md", ""),
        ("setup.md#outspoken-doctor", ""),
        ("setup.md#nowhere", "has no such heading"),
        ("nowhere.md", "is not there"),
        ("../README.md", "leads out of the site, or of the project"),
        ("https://", "is no address"),
        ("javascript:1", "has an unknown scheme javascript"),
    ],
)
def test_dead_links_are_found(target: str, words: str) -> None:
    assert problem(read(DOCS / "web.md"), target) == words


def test_anchors_are_as_people_link_them() -> None:
    assert slug("`outspoken doctor`") == "outspoken-doctor"
    assert slug("When it does not start") == "when-it-does-not-start"


def navigation(nav: object) -> list[str]:
    """The files of the site's navigation, in order."""
    if isinstance(nav, str):
        return [nav]
    inner = list(cast("dict[str, object]", nav).values()) if isinstance(nav, dict) else cast("list[object]", nav)
    return [file for one in inner for file in navigation(one)]


def test_every_page_is_in_the_navigation_once() -> None:
    listed = navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])
    assert sorted(listed) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_every_picture_is_used_and_says_what_it_shows() -> None:
    shown = {Path(target).name for page in pages() for _, target in page.links if "images/" in target}
    assert {path.name for path in (DOCS / "images").glob("*.svg")} <= shown
    for path in (DOCS / "images").glob("*.svg"):
        text = path.read_text("utf-8")
        assert "<title" in text
        assert "<desc" in text
        assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), "a picture loads nothing"


def test_the_site_is_built_without_a_complaint_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    if shutil.which("zensical", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("zensical is not installed: make setup")
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    built = subprocess.run(
        [str(Path(sys.executable).parent / "zensical"), "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "build" / "site"
    for path in DOCS.glob("*.md"):
        html = (site / ("" if path.stem == "index" else path.stem) / "index.html").read_text("utf-8")
        assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=\"?https?://", html), path.name
        wanted = read(path).anchors
        assert not {anchor for anchor in wanted if f'id="{anchor}"' not in html and f"id={anchor}" not in html}, (
            path.name
        )


def test_the_moving_picture_moves_and_is_small_enough_for_a_page() -> None:
    path = DOCS / "images" / "make-run.png"
    data = path.read_bytes()
    frames = int.from_bytes(data.partition(b"acTL")[2][:4], "big")
    assert frames > 20, "python -m tests.browser.film takes it"
    assert len(data) < 1_500_000
    for page in (ROOT / "README.md", DOCS / "index.md"):
        assert path in {(page.parent / target).resolve() for _, target in read(page).links}
