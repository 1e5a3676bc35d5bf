"""Sound that is listened to: an endpoint is told of what kind it is, which is that of what it is sent; what that used is what it says."""

from __future__ import annotations

import asyncio
import base64
import os
import tempfile
import time
from collections.abc import Mapping
from email import message_from_bytes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core.jsonvalue import Json
from agent_core.limits.budgets import CallSpent
from agent_core.model.speech import hearing, program
from agent_core.model.speech.asking import SpeechRequest
from agent_core.model.speech.hearing import ENDINGS, Transcriber, _text_of
from agent_core.model.speech.terms import SpeechTerms
from agent_core.model.speech.tool import Speak
from agent_core.tools.base import ToolContext, ToolStatus
from tests.store.support import FakeClock

GIVEN, TURNED = b"as it came", b"OggS turned"


@pytest.mark.parametrize("mime", [*ENDINGS, "audio/amr", "audio/x-caf"])
async def test_a_sound_is_sent_as_what_it_is(mime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[SpeechRequest] = []

    async def asked(_terms: object, request: SpeechRequest, _clock: object) -> tuple[bytes, str]:
        sent.append(request)
        return b'{"text": " hello "}', "application/json"

    async def ran(*_: object) -> Mapping[str, Json]:
        return {"sound": base64.b64encode(TURNED).decode()}

    monkeypatch.setattr(hearing, "asked", asked)
    monkeypatch.setattr(hearing, "ran", ran)
    workers: Any = SimpleNamespace()
    transcriber = Transcriber(SpeechTerms(url="http://speech.test", model="w1", language="fr"), workers, FakeClock())
    assert await transcriber.heard(GIVEN, mime) == "hello"
    (request,) = sent
    form = message_from_bytes(b"Content-Type: " + request.kind.encode() + b"\r\n\r\n" + request.body)
    parts: dict[Any, Any] = {one.get_param("name", header="content-disposition"): one for one in form.get_payload()}  # type: ignore[union-attr]
    assert {name: parts[name].get_payload() for name in ("model", "language")} == {"model": "w1", "language": "fr"}
    known = mime in ENDINGS
    assert parts["file"].get_payload(decode=True) == (GIVEN if known else TURNED)
    assert parts["file"].get_content_type() == (mime if known else "audio/ogg")
    assert parts["file"].get_filename() == f"sound{ENDINGS.get(mime, '.ogg')}"


@pytest.mark.parametrize(
    ("usage", "spent"),
    [
        (b'{"type": "duration", "seconds": 12.5}', CallSpent(seconds=12.5)),
        (b'{"type": "duration", "seconds": 0}', CallSpent()),
        (b'{"type": "duration", "seconds": -3}', CallSpent()),
        (b'{"type": "duration", "seconds": 1e9}', CallSpent()),
        (b'{"input_tokens": 7, "output_tokens": 3}', CallSpent(input_tokens=7, output_tokens=3)),
        (b'{"input_tokens": -7, "output_tokens": 3}', CallSpent()),
        (b"7", CallSpent()),
    ],
)
def test_what_listening_used_is_what_the_endpoint_says_if_that_can_be(usage: bytes, spent: CallSpent) -> None:
    assert _text_of(b'{"text": "hello", "usage": ' + usage + b"}", "application/json") == ("hello", spent)


def test_only_what_a_killed_worker_left_long_ago_is_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of one that hears now is as young as its sound may be long."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    now = time.time()
    ages = (
        0,
        program.LEFT_SECONDS / 2,
        program.LEFT_SECONDS - 60,
        program.LEFT_SECONDS + 60,
        10 * program.LEFT_SECONDS,
    )
    for prefix in (program._PLACE, "else-"):
        for age in ages:
            (place := tmp_path / f"{prefix}{age}").mkdir()
            (place / "sound").write_bytes(b"x")
            os.utime(place, (now - age, now - age))
    program._swept()
    left = {f"{program._PLACE}{age}" for age in ages if age < program.LEFT_SECONDS} | {f"else-{age}" for age in ages}
    assert {one.name for one in tmp_path.iterdir()} == left


@pytest.mark.parametrize("again", [False, True])
async def test_a_call_that_is_begun_again_says_what_it_had_said_and_has_it_made_once(
    tmp_path: Path, again: bool
) -> None:
    made: list[str] = []

    class Voice:
        async def spoken(self, text: str) -> tuple[bytes, str]:
            made.append(text)
            return f"sound {len(made)}".encode(), ".ogg"

    speak = Speak(Voice, tmp_path / "spool", 10)

    async def said(*, again: bool) -> bytes:
        context = ToolContext("t", "c", "t:c", tmp_path, "m", FakeClock(), lambda _: None, again=again)
        outcome = await speak.run({"text": "Hello"}, context)
        assert outcome.status is ToolStatus.OK
        return await asyncio.to_thread(Path(str(outcome.facts["sent_file"])).read_bytes)

    assert await said(again=again) == b"sound 1"
    assert await said(again=True) == b"sound 1"
    assert made == ["Hello"]
