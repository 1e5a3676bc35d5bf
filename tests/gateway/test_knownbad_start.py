"""What is known of an endpoint and may be out of date is said in the log, once, at the start."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from agent_core.model.knownbad import ROWS, avoiding
from gateway.config.model import Model, endpoints_of
from gateway.config.sections import Config
from gateway.daemon import tell_of_old_rows
from tests.store.support import FakeClock

YEAR_MS = 366 * 24 * 3600 * 1000


def logged(model: str, now_ms: int) -> list[str]:
    config = Config(model=Model(name=model, base_url="https://openrouter.ai/api/v1"))
    with capture_logs() as lines:
        tell_of_old_rows(endpoints_of(config.model.chain()), FakeClock(now_ms))
    return [line["row"] for line in lines if line["event"] == "model.known_bad_overdue"]


def test_a_row_past_its_date_is_said_only_where_it_applies():
    before = int(ROWS[0].look_again.strftime("%s")) * 1000 - YEAR_MS
    assert logged("minimax/minimax-m2", before) == []
    assert logged("minimax/minimax-m2", before + 2 * YEAR_MS) == [ROWS[0].name]
    assert logged("x/y", before + 2 * YEAR_MS) == []


def test_the_operators_rows_are_added_and_rows_are_switched_off():
    own = {
        "name": "mine",
        "host": "openrouter.ai",
        "model": "x/*",
        "look_again": "2027-01-01",
        "extra_body": {"provider": {"ignore": ["slow"]}},
    }
    model = Model.model_validate(
        {"name": "x/y", "base_url": "https://openrouter.ai/api/v1", "known_bad": [own], "known_bad_off": [ROWS[0].name]}
    )
    (endpoint,) = endpoints_of(model.chain())
    names = [row.name for row in endpoint.known_bad]
    assert "mine" in names
    assert ROWS[0].name not in names
    assert avoiding(endpoint.base_url, "x/y", {}, endpoint.known_bad) == {"provider": {"ignore": ["slow"]}}


def test_a_row_that_is_about_something_else_than_routing_is_refused():
    own = {"name": "mine", "host": "h", "look_again": "2027-01-01", "extra_body": {"temperature": 0}}
    with pytest.raises(ValidationError):
        Model.model_validate({"known_bad": [own]})


@pytest.mark.parametrize("host", ["OpenRouter.ai", "openrouter.ai"])
@pytest.mark.parametrize("named", ["X/*", "x/Y", "x/y"])
def test_an_own_row_is_about_its_endpoint_however_its_letters_are_written(host: str, named: str):
    own = {
        "name": "mine",
        "host": host,
        "model": named,
        "look_again": "2027-01-01",
        "extra_body": {"route": "fallback"},
    }
    model = Model.model_validate({"name": "X/y", "base_url": "https://OpenRouter.ai/api/v1", "known_bad": [own]})
    (endpoint,) = endpoints_of(model.chain())
    assert avoiding(endpoint.base_url, "X/y", {}, endpoint.known_bad) == {"route": "fallback"}
