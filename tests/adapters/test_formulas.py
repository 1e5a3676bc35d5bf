"""Formulas: TeX to a closed set of MathML; whatever is written as one, nothing of it runs, and nothing raises."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.callers import ANYBODY
from adapters.http.common import CALLER
from adapters.http.written.drawing import drawn
from adapters.http.written.formulas import ATTRIBUTES, DEEPEST, ELEMENTS, MOST_NODES, work
from agent_core.jsonvalue import Json
from agent_core.workers.pool import WorkerTrouble, WorkFailed


def written(*formulas: str) -> list[Json]:
    made = work({}, orjson.dumps([[tex, True] for tex in formulas]))
    assert isinstance(made, list)
    return made


def elements(one: Json, depth: int = 0) -> Iterator[tuple[str, dict[str, Json], int]]:
    if isinstance(one, list):
        name, attributes, *children = one
        assert isinstance(name, str)
        assert attributes is None or isinstance(attributes, dict)
        yield name, attributes or {}, depth
        for child in children:
            yield from elements(child, depth + 1)


def text_of(one: Json) -> str:
    return one if isinstance(one, str) else "".join(map(text_of, one[2:])) if isinstance(one, list) else ""


def test_formulas_are_written_as_mathml():
    made = written(
        r"E = mc^2", r"\frac{a}{b} \le \sum_{i=0}^n x_i", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\text{a < b}"
    )
    assert [text_of(one) for one in made] == ["E=mc2", "ab≤∑i=0nxi", "(1234)", "a\xa0<\xa0b"]
    assert {"msup"} <= {name for name, _, _ in elements(made[0])}
    assert {"mfrac", "msub"} <= {name for name, _, _ in elements(made[1])}
    assert {"mtable", "mtr", "mtd"} <= {name for name, _, _ in elements(made[2])}


@pytest.mark.parametrize(
    "tex", [r"\frac", r"x^2^3", r"\begin{matrix}" * 60, "{" * 300 + "}" * 300, "a" * (MOST_NODES + 1), ""]
)
def test_what_cannot_be_read_or_is_too_much_stays_as_it_was_written(tex: str):
    assert written(tex) in ([None], [["math", {"display": "block"}, ["mrow", None]]])


def test_nothing_is_followed_fetched_or_run():
    (linked,) = written(r"\href{javascript:alert(1)}{x} \text{<script>alert(1)</script>}")
    assert not any({"href", "onclick", "style"} & set(attributes) for _, attributes, _ in elements(linked))
    assert "<script>" in text_of(linked), "it is text"


PIECES = st.sampled_from([r"\frac", r"\sqrt", "{", "}", "^", "_", "x", "1", r"\left(", r"\right)", "&", r"\\", r"\begin{pmatrix}", r"\end{pmatrix}",
                          r"\href{a}", r"\text{<b>}", r"\color{red}", r"\class{a}", r"\style{color:red}", " ", "é", "\0"])  # fmt: skip


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map("".join))
def test_whatever_is_written_gives_a_closed_set_or_nothing(tex: str):
    for name, attributes, depth in elements(written(tex)[0]):
        assert name in ELEMENTS
        assert set(attributes) <= ATTRIBUTES
        assert depth <= DEEPEST


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("count", [0, 1, 3])
async def test_each_formula_that_is_asked_for_is_answered_in_its_place_whether_it_could_be_written_or_not(
    count: int, *, fails: bool
) -> None:
    async def run(_: object, __: object, blob: bytes, *, owner: object) -> Json:
        assert owner == ("page", ANYBODY.realm)
        if fails:
            raise WorkFailed(WorkerTrouble.SLOW)
        return [f"of {tex}" for tex, _ in orjson.loads(blob)]

    async def read() -> bytes:
        return orjson.dumps({"formulas": [{"tex": f"x_{number}", "display": True} for number in range(count)]})

    request: Any = make_mocked_request("POST", "/api/formulas")
    request[CALLER], request.read = ANYBODY, read
    answer: Any = await drawn(cast("Any", SimpleNamespace(run=run)))(request)
    assert orjson.loads(answer.body) == {"formulas": [None if fails else f"of x_{number}" for number in range(count)]}
