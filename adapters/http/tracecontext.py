"""A caller's trace, as W3C Trace Context puts it into the header ``traceparent``. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_core.records import dataclass

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TraceParent:
    """The span of somebody else that ours goes below."""

    trace: int
    span: int


def parsed(value: str) -> TraceParent | None:
    """What a header says; None if it says nothing, or is not as it has to be: then it is as if there was none."""
    found = _FORM.fullmatch(value)
    if found is None or found[1] == "ff" or (found[1] == "00" and found[4]):
        return None
    parent = TraceParent(int(found[2], 16), int(found[3], 16))
    return parent if parent.trace and parent.span else None


def traceparent_of(headers: Sequence[str]) -> str:
    """The one header, as it can be stored; empty if there is none that counts."""
    value = headers[0].strip(" \t") if len(headers) == 1 else ""
    return value[:55] if parsed(value) is not None else ""
