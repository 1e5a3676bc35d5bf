"""What the model is told of a file that came: never in the gateway's own voice, no more of it than it may read at once, and of recordings that nobody could
hear no second is tried for as long as that lasts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, SessionKey
from agent_core.documents.kinds import FileKind
from agent_core.messages import GATEWAY_PREFIX
from agent_core.model.speech.terms import SpeechFailed
from gateway.chats.attachments import SHOWN_CHARS, SHOWN_IN_ALL, TakenAttachment, notes_of
from gateway.chats.enclosed import EnclosedFiles
from gateway.chats.readout import BUSY, FileReaders, Readout, quoted


@given(st.text(), st.text(), st.integers(0, 200))
def test_no_text_of_a_file_speaks_as_the_gateway_and_no_more_of_it_is_shown_than_there_is_room(
    before: str, after: str, room: int
) -> None:
    text = f"{before}{GATEWAY_PREFIX}{after}"
    said = quoted("a.txt", text, room, "b.txt")
    assert GATEWAY_PREFIX not in said
    assert len(said) <= room + 150 + len(str(len(text)))


def test_all_files_of_a_message_share_the_room_that_there_is() -> None:
    taken = [TakenAttachment("[a note]", name="a.txt", text="\u2603" * SHOWN_CHARS, beside="a.txt")] * 20
    assert notes_of(taken).count("\u2603") == SHOWN_IN_ALL


class Ears:
    def __init__(self, fails: SpeechFailed | None) -> None:
        self.fails, self.heard_ = fails, 0

    async def heard(self, _data: bytes, _mime: str) -> str:
        self.heard_ += 1
        if self.fails is not None:
            raise self.fails
        return "hello"


@pytest.mark.parametrize("lasts", [None, True, False])
async def test_where_hearing_fails_for_longer_the_next_recording_is_not_tried(lasts: bool | None) -> None:
    ears = Ears(None if lasts is None else SpeechFailed("no money", lasts=lasts))
    reader: Any = SimpleNamespace(_ears=ears)
    hear = vars(FileReaders)["_heard"]
    bare = Readout(cast("Any", "sound"), "audio/ogg", about="a sound")
    first = await hear(reader, bare, b"x", "", "nobody")
    again = await hear(reader, bare, b"x", first.deaf, "nobody")
    assert ears.heard_ == (1 if lasts else 2)
    assert (first.text, again.text) == (("hello",) * 2 if lasts is None else ("",) * 2)
    assert (first.why, again.why) == (("", "") if lasts is None else (first.why,) * 2)
    assert bool(first.why) is (lasts is not None)


async def test_without_ears_it_is_said_that_nobody_can_hear() -> None:
    hear = vars(FileReaders)["_heard"]
    bare = Readout(cast("Any", "sound"), "audio/ogg", about="a sound")
    assert (await hear(cast("Any", SimpleNamespace(_ears=None)), bare, b"x", "", "nobody")).why == "nobody"


async def test_a_file_of_earlier_that_nobody_had_the_time_to_read_is_read_with_the_next_request(tmp_path: Path) -> None:
    found = [Readout(FileKind.PDF, "application/pdf", why=BUSY), Readout(FileKind.PDF, "application/pdf", text="plan")]

    async def read(*_: object) -> Readout:
        return found.pop(0)

    files = EnclosedFiles(None, cast("Any", SimpleNamespace(read=read)))
    part: Any = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,eA=="}}
    asked = FromApi(
        account="api", platform_key="k", session=SessionKey("api", "once", "k"), input=(), surface="api", memory_scope="",
        own_history=({"role": "user", "content": [part]},),
    )  # fmt: skip
    for seen in ("", "plan", "plan"):
        told = await files.told(asked, tmp_path)
        assert told.own_history is not None
        assert (seen or "a.pdf") in str(told.own_history)
        assert ("plan" in str(told.own_history)) is bool(seen)
