"""Every promise of the documentation has the tests that hold it, and stands in its page as it is listed."""

from __future__ import annotations

import pytest

from tests.docs.pages import ROOT
from tests.docs.promises import PAGE, Promise, plain, problems, promises, sections
from tests.docs.test_generated import PRINTED

HELD_OTHERWISE = {
    **dict.fromkeys(PRINTED, "printed from the source, compared by tests/docs/test_generated.py"),
    "architecture.md": "compared with the source by tests/docs/test_house.py",
    "dependencies.md": "compared with pyproject.toml by tests/test_dependencies.py",
    "incidents.md": "staged and run, row by row, by tests/incidents/test_incidents.py",
    "measurements.md": "figures, each with the day of its measurement and the command that measures again",
    "promises.md": "this list",
    "tutorial.md": "played line by line by tests/docs/test_tutorial.py",
}
"""Pages that are held as a whole."""

NOTHING_PROMISED = {
    "README.md": {"What the agent can do", "Development"},
    "docs/index.md": {"Installation"},
    "docs/adapters.md": {"The conformance suite"},
    "docs/audit.md": {"What it cannot see"},
    "docs/budgets.md": {"What budgets do not do"},
    "docs/injection.md": {"What is not"},
    "docs/mutants.md": {"What was tried", "Survivors"},
    "docs/scale.md": {"How far it goes"},
    "docs/shell.md": {"What it is no protection against"},
}
"""Sections that say how something is done, where it is described, or what does not hold."""


def listed() -> list[Promise]:
    return list(promises(PAGE.read_text("utf-8")))


def test_every_promise_stands_in_its_page_and_every_test_is_there() -> None:
    found = [problem for promise in listed() for problem in problems(promise)]
    assert not found, "\n".join([*found, "Change docs/promises.md with the page (and write a test for what is new)."])


def test_no_promise_is_listed_twice() -> None:
    seen = [(promise.page, promise.sentence) for promise in listed()]
    assert sorted(set(seen)) == sorted(seen)


def bare_sections() -> list[str]:
    """Sections of pages that nothing holds."""
    by_page: dict[str, list[str]] = {}
    for promise in listed():
        by_page.setdefault(promise.page, []).append(promise.sentence)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    bare: list[str] = []
    for path in pages:
        if path.parent != ROOT and path.name in HELD_OTHERWISE:
            continue
        name = str(path.relative_to(ROOT))
        parts = sections(path)
        for part in parts:
            if not part.heading and len(parts) > 1:
                continue  # what stands before the first section introduces the page
            held = any(sentence in piece for sentence in by_page.get(name, []) for piece in part.pieces)
            if not held and part.heading not in NOTHING_PROMISED.get(name, ()):
                bare.append(f"{name}: {part.heading or 'the whole page'}")
    return bare


def test_every_section_has_its_promises_or_is_said_to_promise_nothing() -> None:
    assert not bare_sections(), "\n".join(bare_sections())


def test_what_is_excepted_is_still_there_and_needs_it() -> None:
    assert {name for name in HELD_OTHERWISE if not (ROOT / "docs" / name).exists()} == set()
    held = {(promise.page, promise.sentence) for promise in listed()}
    for name, headings in NOTHING_PROMISED.items():
        parts = {part.heading: part for part in sections(ROOT / name)}
        assert headings <= set(parts), name
        for heading in headings:
            inside = [
                sentence
                for page, sentence in held
                if page == name and any(sentence in piece for piece in parts[heading].pieces)
            ]
            assert not inside, f"{name}: {heading} is said to promise nothing, and does: {inside}"


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (Promise("README.md", plain("`kill -9` loses nothing"), ("tests/test_layers.py::test_every_import_keeps_to_the_layers",)), ""),
        (Promise("README.md", "Nothing at all is ever lost.", ()), "does not say"),
        (Promise("docs/nowhere.md", "", ()), "there is no page"),
        (Promise("README.md", plain("**Nothing accepted is lost.**"), ("tests/test_layers.py::test_nothing",)), "there is no test"),
        (Promise("README.md", "outspoken", ("tests/nowhere.py::test_nothing",)), "there is no test"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_found(promise: Promise, words: str) -> None:
    found = list(problems(promise))
    assert bool(found) == bool(words)
    assert all(words in one for one in found)


def test_a_point_without_a_test_is_refused() -> None:
    assert list(promises("## README.md\n\n- Said. `tests/a.py::test_b` `tests/c.py::test_d`\n")) == [
        Promise("README.md", "Said.", ("tests/a.py::test_b", "tests/c.py::test_d"))
    ]
    with pytest.raises(AssertionError, match="neither"):
        list(promises("- Said.\n"))
