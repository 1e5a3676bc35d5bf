"""Reads the corpora of endings (`endings_*.txt`): a record is `=== LANGUAGE KIND` and then the end of a reply, as a model wrote it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ANNOUNCEMENT = "announcement"
KINDS = frozenset(
    {
        ANNOUNCEMENT,
        "report",
        "answer",
        "offer",
        "question",
        "instruction",
        "plan",
        "list",
        "code",
        "quote",
        "table",
        "condition",
    }
)


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a reply, and what somebody who read it says that it is."""

    language: str
    kind: str
    text: str

    @property
    def announces(self) -> bool:
        return self.kind == ANNOUNCEMENT


def endings(half: str) -> list[Ending]:
    """The records of one half, `development` or `held_out`."""
    text = (HERE / f"endings_{half}.txt").read_text("utf-8")
    return [_ending(record) for record in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]]


def _ending(record: str) -> Ending:
    header, _, text = record.partition("\n")
    language, kind = header.split()
    assert kind in KINDS, header
    return Ending(language, kind, text.removesuffix("\n"))
