"""The auditor against databases that somebody has tampered with: each is found, by its law; and what was left alone breaks none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.laws.law import Law
from tests.laws.finer import FINER, ON_SQLITE
from tests.laws.look import breaches
from tests.laws.sabotages import ALL, Sabotage
from tests.laws.world import Left, changed, copied, postgres_left, sqlite_left
from tests.sampled import chosen

ENGINES = ("sqlite", "postgresql")

EVERY = (*ALL, *FINER)
RUN = [
    *((one, "sqlite") for one in (*EVERY, *ON_SQLITE)),
    *((one, "postgresql") for one in chosen("on a server", EVERY, len(EVERY) // 3)),
]
"""The laws read rows, and rows are the same on both: a third of them are enough on the slower one, and in `make soak` there are all."""


def left_by(request: pytest.FixtureRequest, factory: pytest.TempPathFactory, engine: str, story: str) -> Left:
    folder = factory.getbasetemp() / "laws"
    if engine == "sqlite":
        return sqlite_left(story, folder)
    return postgres_left(story, folder, request.getfixturevalue("postgres_server"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("story", ["rest", "middle"])
def test_what_a_gateway_has_left_breaks_no_law(
    story: str, engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    left = left_by(request, tmp_path_factory, engine, story)
    assert asyncio.run(breaches(left.where, now=left.at)) == []


@pytest.mark.parametrize(
    ("sabotage", "engine"), [pytest.param(*one, id=f"{one[0].law.value}-{one[0].name}-{one[1]}") for one in RUN]
)
def test_what_somebody_has_done_to_it_is_found_by_its_law(
    sabotage: Sabotage,
    engine: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    left = copied(left_by(request, tmp_path_factory, engine, sabotage.story), tmp_path)
    changed(left, sabotage.do)
    found = asyncio.run(breaches(left.where, now=left.at + sabotage.later_ms))
    assert sabotage.law in {one.law for one in found}, found


def test_every_law_has_a_database_that_breaks_it() -> None:
    assert {one.law for one in ALL} == set(Law)
