"""The pages that are printed from the code: as they are printed, whole, and true."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.failures.exits import EXITS
from agent_core.failures.remedies import LADDERS, Failure
from gateway.config.keys import describe
from tests import house
from tests.bench import page as performancepage
from tests.printed import configuration as configpage
from tests.printed import exits as exitpage
from tests.printed import families as familypage
from tests.printed import laws as lawspage
from tests.printed import logs as logpage
from tests.printed import metrics as metricpage
from tests.printed import openapi, pageevents
from tests.printed import turn as turnpage

DOCS = Path(__file__).parents[2] / "docs"
PRINTED: dict[str, tuple[str, Callable[[], str]]] = {
    "configuration.md": ("tests.printed.configuration", configpage.markdown),
    "exits.md": ("tests.printed.exits", exitpage.markdown),
    "families.md": ("tests.printed.families", familypage.markdown),
    "house.md": ("tests.house", house.page),
    "performance.md": ("tests.bench.page", lambda: performancepage.markdown(performancepage.read())),
    "logs.md": ("tests.printed.logs", logpage.markdown),
    "metrics.md": ("tests.printed.metrics", metricpage.markdown),
    "openapi.json": ("tests.printed.openapi", openapi.printed),
    "page-events.md": ("tests.printed.pageevents", pageevents.markdown),
    "turn.md": ("tests.printed.turn", turnpage.markdown),
}


@pytest.mark.parametrize("page", PRINTED)
def test_a_page_is_as_it_is_printed(page: str) -> None:
    module, markdown = PRINTED[page]
    assert (DOCS / page).read_text("utf-8") == markdown(), f"run: python -m {module} > docs/{page}"


def test_the_laws_of_the_audit_are_as_they_are_printed() -> None:
    assert (DOCS / "audit.md").read_text("utf-8") == lawspage.page(), "run: python -m tests.printed.laws"


def rows(page: str) -> list[list[str]]:
    """The cells of every row of every table."""
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in page.splitlines()
        if line.startswith("|") and not line.startswith("|---")
    ]


def test_every_key_of_the_configuration_has_a_row_with_type_unit_meaning_and_variable() -> None:
    found = {(cells[0], cells[-1]): cells for cells in rows(configpage.markdown())}
    for doc in describe():
        cells = found[f"`{doc.key}`", " ".join(f"`{name}`" for name in doc.env)]
        assert len(cells) == 6
        assert cells[4]
        numeric = doc.type.startswith(("number", "whole number"))
        assert bool(cells[2]) == numeric, f"{doc.name}: mark it with the Unit of what it counts"
    for holder in describe():
        for doc in holder.table:
            assert [cells for cells in found.values() if cells[0] == f"`{doc.key}`" and len(cells) == 5], doc.key


def test_every_exit_has_its_words_class_and_notice() -> None:
    assert set(exitpage.FAILURES) == set(Failure)
    assert set(LADDERS) == set(Failure)
    page = exitpage.markdown()
    for code, record in EXITS.items():
        section = page.partition(f"### `{code}`\n")[2].partition("\n##")[0]
        assert str(record.__doc__) in section
        assert ("> ⚠️ " in section) == (exitpage.example(record).notice() is not None)


def test_the_examples_are_real_sentences() -> None:
    for line in exitpage.markdown().splitlines():
        if line.startswith("> "):
            assert not re.search(r"\(\)| 0 s|  |“”| 0 ", line), line
            assert line.endswith((".", ")", "!", "?")), line
