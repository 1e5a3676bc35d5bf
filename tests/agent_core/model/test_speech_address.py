"""An address for sound that no request can be sent to is said in words, as whatever else goes wrong with one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from agent_core.causes import BreakCause
from agent_core.model.speech import asking
from agent_core.model.speech.asking import SpeechBroke, SpeechRequest, asked
from agent_core.model.speech.terms import SpeechFailed, SpeechTerms
from agent_core.ports import SystemClock
from agent_core.retry import SPEECH
from tests.store.support import FakeClock


@pytest.mark.parametrize("url", ["http://somebody:secret@127.0.0.1:1/v1", "ftp://127.0.0.1/v1", "http://[/v1"])
async def test_what_no_request_can_be_sent_to_is_a_failure_in_words(url: str) -> None:
    terms = SpeechTerms(url=url, model="m", key="k", seconds=0.5)
    with pytest.raises(SpeechFailed):
        await asked(terms, SpeechRequest("/audio", b"x", "audio/wav", 100), SystemClock())


@pytest.mark.parametrize(
    ("cause", "pause", "tries"),
    [
        (BreakCause.RATE_LIMITED, 0.0, SPEECH.attempts),
        (BreakCause.RATE_LIMITED, 3.0, SPEECH.attempts),
        (BreakCause.RATE_LIMITED, 20.0, 2),
        (BreakCause.RATE_LIMITED, 60.0, 1),
        (BreakCause.UNAUTHORISED, 0.0, 1),
    ],
)
async def test_it_is_tried_again_where_that_can_help_and_never_beyond_its_time(
    cause: BreakCause, pause: float, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, left = FakeClock(), list[float]()

    async def broken(_terms: object, _request: object, seconds: float, _clock: object) -> tuple[bytes, str]:
        left.append(seconds)
        clock.now += 1_000
        raise SpeechBroke(cause, pause=pause)

    async def waited(seconds: float) -> None:
        assert seconds >= pause, "as long as it asks"
        clock.now += round(seconds * 1000)

    monkeypatch.setattr(asking, "_tried", broken)
    monkeypatch.setattr(asking, "asyncio", SimpleNamespace(sleep=waited))
    terms = SpeechTerms(url="http://127.0.0.1:1/v1", model="m", key="k", seconds=30)
    began = clock.monotonic()
    with pytest.raises(SpeechFailed):
        await asked(terms, SpeechRequest("/audio", b"x", "audio/wav", 100), clock)
    assert len(left) == tries
    assert min(left) > 0
    assert left == sorted(left, reverse=True), "a try has what those before it have left"
    assert len({*left}) == tries
    assert clock.monotonic() - began <= 30


def test_of_what_is_not_known_nothing_is_said() -> None:
    assert SpeechBroke(BreakCause.STALLED).words == "the stream went quiet"
    assert SpeechBroke(BreakCause.TOO_SLOW, seconds=60).words.endswith("after 60 s")
    assert "3 bytes" in SpeechBroke(BreakCause.TOO_SLOW, seconds=60, came=3).words
