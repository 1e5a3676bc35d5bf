"""An address for sound that no request can be sent to is said in words, as whatever else goes wrong with one."""

from __future__ import annotations

import pytest

from agent_core.model.speech.asking import SpeechRequest, asked
from agent_core.model.speech.terms import SpeechFailed, SpeechTerms
from agent_core.ports import SystemClock


@pytest.mark.parametrize("url", ["http://somebody:secret@127.0.0.1:1/v1", "ftp://127.0.0.1/v1", "http://[/v1"])
async def test_what_no_request_can_be_sent_to_is_a_failure_in_words(url: str) -> None:
    terms = SpeechTerms(url=url, model="m", key="k", seconds=0.5)
    with pytest.raises(SpeechFailed):
        await asked(terms, SpeechRequest("/audio", b"x", "audio/wav", 100), SystemClock())
