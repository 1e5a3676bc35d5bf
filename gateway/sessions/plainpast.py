"""What a plain turn tells later ones, read from its journal without folding it: somebody asked, the model said something, and that was the answer. Pure.

Nearly all turns of a long conversation are so, and the first message after a start has two hundred of them read. Whatever is in a journal besides
(tools, thoughts, remedies, judgements, notices, a conversation that a client brought) makes it one for the fold.

Law (tests/gateway/test_plain_past.py): where anything is told, the fold tells the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from agent_core.failures.exits import ExitCode
from agent_core.journal.ordinary import SAME_AS
from agent_core.judging.compaction import ToldTurn
from agent_core.messages import InputMessage, Message, shown_still
from agent_core.turn.events import ReplyFinished, TextArrived, TurnEnded, TurnOpened

_OPENED, _TEXT, _FINISHED, _ENDED = (one.kind() for one in (TurnOpened, TextArrived, ReplyFinished, TurnEnded))
_OPENING = frozenset({"at", "input", "settings", "seed", "request", "surface", "agent", "key"})
_ASKED = frozenset({"content", "role", "name"})
_FINISHING = frozenset({"at", "reason", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "unsent"})


def told_plainly(rows: Sequence[tuple[str, bytes]]) -> ToldTurn | None:
    """What it tells; None if that takes the fold."""
    kinds = [kind for kind, _ in rows]
    if len(rows) < 4 or kinds != [_OPENED, *(_TEXT for _ in kinds[3:]), _FINISHED, _ENDED]:
        return None
    try:
        return _told([orjson.loads(body) for _, body in rows])
    except (ValueError, KeyError, TypeError, AttributeError):  # no event of ours: the fold says what is wrong with it
        return None


def _told(events: Sequence[Any]) -> ToldTurn | None:
    opened, *texts, finished, ended = events
    plain = (
        SAME_AS in opened["settings"]
        and opened.keys() <= _OPENING
        and finished.keys() <= _FINISHING
        and finished["reason"] == "stop"
        and ended.keys() == {"at", "exit"}
        and ended["exit"]["code"] == ExitCode.ANSWERED.value
        and all(one.keys() == {"at", "text"} for one in texts)
        and all(one.keys() <= _ASKED and "content" in one for one in opened["input"])
    )
    said = "".join(one["text"] for one in texts) if plain else ""
    if not said.strip():
        return None
    asked: list[Message] = [shown_still(InputMessage(**one).to_message()) for one in opened["input"]]
    return ToldTurn([*asked, {"role": "assistant", "content": said}])
