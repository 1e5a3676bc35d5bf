"""What is known of an endpoint and may be out of date is said in the log, once, at the start."""

from __future__ import annotations

from structlog.testing import capture_logs

from agent_core.model.knownbad import ROWS
from gateway.configmodel import Config, Model
from gateway.daemon import tell_of_old_rows
from gateway.models import endpoints_of
from tests.store.support import FakeClock

YEAR_MS = 366 * 24 * 3600 * 1000


def logged(model: str, now_ms: int) -> list[str]:
    config = Config(model=Model(name=model, base_url="https://openrouter.ai/api/v1"))
    with capture_logs() as lines:
        tell_of_old_rows(endpoints_of(config.model.chain(), context_known=False), FakeClock(now_ms))
    return [line["row"] for line in lines if line["event"] == "model.known_bad_overdue"]


def test_a_row_past_its_date_is_said_only_where_it_applies():
    before = int(ROWS[0].look_again.strftime("%s")) * 1000 - YEAR_MS
    assert logged("minimax/minimax-m2", before) == []
    assert logged("minimax/minimax-m2", before + 2 * YEAR_MS) == [ROWS[0].name]
    assert logged("x/y", before + 2 * YEAR_MS) == []
