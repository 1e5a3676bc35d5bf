"""Several sounds of one message: each is listened to, unless one before it met what all would meet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import Attachment, AttachmentKind, ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.messages import InputMessage, text_of
from agent_core.model.speech.terms import SpeechFailed
from gateway.chats.attachments import Attachments
from gateway.chats.readout import FileReaders

HEARD, ONCE, LASTS = "heard", "for once", "for all"


class Ears:
    """Hears, or fails in the way that its turn says."""

    def __init__(self, outcomes: Sequence[str]) -> None:
        self.outcomes, self.asked = outcomes, list[str]()

    async def heard(self, data: bytes, mime: str) -> str:
        del mime
        outcome = self.outcomes[data[-1]]
        self.asked.append(outcome)
        if outcome != HEARD:
            raise SpeechFailed(f"it failed {outcome}", lasts=outcome == LASTS)
        return f"words of {data[-1]}"


class Port:
    """Has every file."""

    async def fetch(self, ref: str, most: int) -> bytes:
        del most
        return b"OggS" + bytes(100) + bytes([int(ref)])


async def listened(outcomes: Sequence[str]) -> tuple[Ears, str, list[str]]:
    """The ears; what the model is given; what the person is told."""
    ears, told = Ears(outcomes), list[str]()
    sent = tuple(Attachment(AttachmentKind.FILE, str(n), f"{n}.ogg", "audio/ogg", 100) for n in range(len(outcomes)))
    origin = ChatOrigin(ChatAddress("telegram", "1", "7"), ChatKind.PRIVATE, ChatPerson("7", "Ada"), attachments=sent)
    inbound = FromChat(
        account="telegram/1", platform_key="k", session=SessionKey("telegram", "1", "7"), input=(InputMessage("hear"),),
        surface="telegram", memory_scope="s", chat=origin,
    )  # fmt: skip

    async def tell(words: str) -> None:
        told.append(words)

    readers = FileReaders(cast("Any", None), ears, takes=())
    with TemporaryDirectory() as folder:
        found = await Attachments(None, readers).fetched(inbound, Path(folder), cast("Any", Port()), tell)
    return ears, text_of(found.input[0].content), told


@given(st.lists(st.sampled_from([HEARD, ONCE, LASTS]), min_size=1, max_size=4))
@example([ONCE, HEARD])
@example([LASTS, HEARD])
@example([HEARD, LASTS, HEARD])
def test_each_is_listened_to_unless_one_before_it_met_what_all_would_meet(outcomes: list[str]) -> None:
    ears, given_, told = asyncio.run(listened(outcomes))
    first = outcomes.index(LASTS) if LASTS in outcomes else len(outcomes)
    assert ears.asked == outcomes[: first + 1]
    for number, outcome in enumerate(outcomes):
        assert (f"words of {number}" in given_) is (outcome == HEARD and number < first)
        why = outcome if number < first else LASTS
        assert (outcome == HEARD and number < first) or any(f"it failed {why}" in words for words in told)
