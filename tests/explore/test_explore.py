"""The walk in small; the million transitions are `make soak`'s."""

from __future__ import annotations

import pytest

from agent_core.machine.turn import Turn
from agent_core.turn.events import Event
from tests.explore.run import report
from tests.explore.walk import Walk


def test_every_state_that_can_be_reached_keeps_the_laws() -> None:
    found = Walk(6_000).run()
    print(report(found, 0))
    assert found.broken == []
    assert found.transitions >= 6_000
    assert len(found.events) >= 19


def test_a_machine_that_forgets_to_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Turn.feed

    def deaf(turn: Turn, event: Event) -> list[object]:
        return [] if type(event).__name__ == "Superseded" else [*whole(turn, event)]

    monkeypatch.setattr(Turn, "feed", deaf)
    assert any("did not end it" in law for law in Walk(300).run().broken)
