"""Whether a change that was begun was done, told from what was there before, what is to be there, and what is there now. Pure.

Theory. A *keyed* tool puts down a `Change` before it begins, and that is committed. Whoever finds the call later, begun and not back,
looks at what is there now. It is as it is to be: the call was done. It is as it was: it was not. It is neither: somebody has been
there since, and nobody can tell; then nothing is done, and that is said.

A change that *grows* only adds something at the end. What others have added behind it, or before it could begin, does not matter:
it was done if its piece lies where it was to begin.

Laws (tests/agent_core/tools/test_changes.py): killed at any point, and begun again any number of times, a change is made once; what
somebody else made of the thing is never overwritten by a call that is begun again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from agent_core.jsonvalue import Json
from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class ContentState:
    """What something holds: how many bytes, and which."""

    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Found:
    """What is there now."""

    state: ContentState
    head: bytes
    """Its content, or as much of its beginning as anybody asks for."""
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of something. None stands for nothing being there."""

    before: ContentState | None
    after: ContentState | None
    grows: bool = False
    facts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What else the call's result says of it."""


class ChangeVerdict(StrEnum):
    """What is to be done about a change that was begun before."""

    DONE = "done"
    DO = "do"
    CONFLICT = "conflict"
    """It is neither as it was nor as it is to be."""


def state_of(data: bytes) -> ContentState:
    """The state of something that holds `data`."""
    return ContentState(len(data), hashlib.blake2b(data, digest_size=16).hexdigest())


def found_of(data: bytes | None) -> Found | None:
    """`data` as something found, or nothing."""
    return None if data is None else Found(state_of(data), data)


def decide(change: Change, now: Found | None) -> ChangeVerdict:
    """What has become of `change`, which was begun before."""
    if change.grows:
        return _decide_growing(change, now)
    found = None if now is None else now.state
    if found == change.after:
        return ChangeVerdict.DONE
    return ChangeVerdict.DO if found == change.before else ChangeVerdict.CONFLICT


def _decide_growing(change: Change, now: Found | None) -> ChangeVerdict:
    if now is None:
        return ChangeVerdict.DO if change.before is None else ChangeVerdict.CONFLICT
    if change.after is not None and _begins_with(now, change.after):
        return ChangeVerdict.DONE
    return ChangeVerdict.DO if change.before is None or _begins_with(now, change.before) else ChangeVerdict.CONFLICT


def _begins_with(now: Found, state: ContentState) -> bool:
    return len(now.head) >= state.size and state_of(now.head[: state.size]) == state


# ---------------------------------------------------------------------- as it is committed


def written(change: Change) -> Json:
    value: dict[str, Json] = {"before": _written(change.before), "after": _written(change.after)}
    if change.grows:
        value["grows"] = True
    return {**value, **({"facts": dict(change.facts)} if change.facts else {})}


def _written(state: ContentState | None) -> Json:
    return None if state is None else [state.size, state.digest]


def read_change(value: Json) -> Change | None:
    """What `written` wrote; None for anything else."""
    if not isinstance(value, dict) or "before" not in value or "after" not in value:
        return None
    facts = value.get("facts")
    return Change(
        _read(value["before"]),
        _read(value["after"]),
        value.get("grows") is True,
        facts if isinstance(facts, dict) else {},
    )


def _read(value: Json) -> ContentState | None:
    match value:
        case [int(size), str(digest)]:
            return ContentState(size, digest)
        case _:
            return None
